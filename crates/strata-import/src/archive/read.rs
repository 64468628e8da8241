//! Reads an export back into a store. The whole file is checked first, so a damaged file changes nothing.
//!
//! Nothing is written down about how far an import has come: items that the store has already are left alone. So an import that
//! was interrupted is simply run again.

mod order;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};
use strata_core::error::io_reason;
use strata_core::hash::hex;
use strata_core::job::{Job, JobStatus};
use strata_core::nul::check_nul;
use strata_core::store::{
    Change, ChangeSet, JobQuery, MemoryQuery, MemorySelect, SummaryQuery, TurnQuery, session_space,
};
use strata_core::turn::NewTurn;
use strata_core::{Error, JobId, Memory, MemoryId, Result, Session, Store, SummaryId, Turn, UserId};

use order::Order;

use super::{ArchiveCounts, Line, SessionLine};

/// The turns, and the other items, of one change set.
const TURNS_A_BATCH: usize = 500;
const ITEMS_A_BATCH: usize = 200;

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct ArchiveOptions {
    /// Imports an export of one user as this user.
    pub user: Option<UserId>,
    /// Imports the lines before the first damaged one, instead of refusing the file.
    pub skip_bad: bool,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// The items of the file.
    pub found: ArchiveCounts,
    /// The items that were added to the store; the others were there.
    pub added: ArchiveCounts,
    /// The damage from which on the file was left out, if it was to be imported nonetheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Imports the export at `path`. `tell` is called with the lines that have been read, of all lines.
///
/// A file that is damaged or incomplete, or whose sessions continue differently in the store, is refused before anything is
/// written. With [`ArchiveOptions::skip_bad`], the lines before the damage are imported. Keys are counted and not imported, because an export has no secrets.
pub async fn import(
    store: &dyn Store,
    path: &Path,
    options: &ArchiveOptions,
    mut tell: impl FnMut(u64, u64) + Send,
) -> Result<ArchiveReport> {
    let checked = check(store, path, options).await?;
    let mut writing = Writing::new(store, options.clone());
    let mut reader = Reader::open(path)?;
    while reader.number < checked.lines
        && let Some(line) = reader.next()?
    {
        tell(reader.number, checked.lines);
        writing.take(line).await?;
    }
    if checked.damage.is_some() {
        writing.read_last_session_again();
    }
    writing.flush().await?;
    Ok(ArchiveReport { found: checked.counts, added: writing.added, damage: checked.damage })
}

/// Fails if the export at `path` could not be imported. Nothing is written.
pub async fn verify(store: &dyn Store, path: &Path, options: &ArchiveOptions) -> Result<()> {
    check(store, path, options).await.map(drop)
}

/// A file that can be imported.
struct Checked {
    counts: ArchiveCounts,
    /// The lines to import: all of them, or those before the damage.
    lines: u64,
    damage: Option<String>,
}

/// Reads the whole file and compares its sessions with those of the store.
async fn check(store: &dyn Store, path: &Path, options: &ArchiveOptions) -> Result<Checked> {
    let mut reader = Reader::open(path)?;
    let mut order = Order::default();
    let mut comparing = Comparing { store, turns: Vec::new(), user: None };
    let ended = loop {
        match order.next(&mut reader) {
            Ok(Some(line)) => comparing.take(&line, options).await.map_err(|error| reader.at_line(error))?,
            ended => break ended.and_then(|_| order.finish(&reader)),
        }
    };
    comparing.compare().await?;
    let damage = order.damage(ended, options)?;
    let (counts, lines) = (order.counts, order.lines);
    if options.user.is_some() && counts.users != 1 {
        return Err(Error::invalid(format!(
            "the export has {} users, and `--user` gives one name; leave it out to keep their names",
            counts.users
        )));
    }
    Ok(Checked { counts, lines, damage })
}

/// The lines of a file, with the digest of those read so far.
struct Reader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    number: u64,
    digest: Sha256,
    ended: Option<super::End>,
}

impl Reader {
    fn open(path: &Path) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            Error::not_found(format!(
                "file `{}` cannot be read: {}; check the path",
                path.display(),
                io_reason(&error)
            ))
            .with_source(error)
        };
        let mut file = BufReader::new(File::open(path).map_err(cannot)?);
        let is_packed = file.fill_buf().map_err(cannot)?.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn BufRead + Send> = match is_packed {
            true => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Ok(Self { path: path.to_owned(), input, number: 0, digest: Sha256::new(), ended: None })
    }

    /// The next line; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Line>> {
        let mut text = Vec::new();
        let read = self.input.read_until(b'\n', &mut text);
        let length = read.map_err(|error| {
            Error::unavailable(format!(
                "file `{}` cannot be read: {}",
                self.path.display(),
                io_reason(&error)
            ))
        })?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        let line: Line = self.parsed(&text)?;
        // JSON can write a NUL character as an escape alone. Most lines are not parsed twice.
        if text.windows(6).any(|part| part == br"\u0000") {
            check_nul("the line", &self.parsed::<Value>(&text)?)
                .map_err(|error| self.wrong(error.message()))?;
        }
        if self.ended.is_some() {
            return Err(self.wrong("another line follows the last one of an export"));
        }
        match line {
            Line::End(end) => {
                let found = hex(&self.digest.clone().finalize());
                if found != end.sha256 {
                    return Err(self.wrong("the lines before it are not those that were exported"));
                }
                self.ended = Some(end);
                self.next()
            }
            line => {
                self.digest.update(&text);
                Ok(Some(line))
            }
        }
    }

    fn parsed<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T> {
        serde_json::from_slice(text).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            self.wrong(&format!("{reason}, at column {}", error.column()))
        })
    }

    /// The error for the line that was read last.
    fn wrong(&self, reason: &str) -> Error {
        Error::invalid(format!(
            "`{}` is damaged: line {}: {}",
            self.path.display(),
            self.number,
            shown_reason(reason)
        ))
    }

    fn at_line(&self, error: Error) -> Error {
        let message = format!("line {}: {}; nothing was imported", self.number, error.message());
        Error::new(error.kind(), message).with_source(error)
    }
}

fn shown_reason(reason: &str) -> String {
    reason.chars().take(300).collect()
}

/// Compares the turns of a file with those of the store.
struct Comparing<'a> {
    store: &'a dyn Store,
    user: Option<UserId>,
    turns: Vec<Turn>,
}

impl Comparing<'_> {
    async fn take(&mut self, line: &Line, options: &ArchiveOptions) -> Result<()> {
        match line {
            Line::Turn(turn) => {
                self.turns.push((**turn).clone());
                if self.turns.len() < TURNS_A_BATCH { Ok(()) } else { self.compare().await }
            }
            Line::User(name) => {
                self.compare().await?;
                self.user = Some(renamed(name, options)?);
                Ok(())
            }
            _ => self.compare().await,
        }
    }

    /// Fails if the store has other turns in the places of those that were taken.
    async fn compare(&mut self) -> Result<()> {
        let turns = std::mem::take(&mut self.turns);
        let (Some(user), Some(first)) = (&self.user, turns.first()) else { return Ok(()) };
        let (session, after) = (first.session.clone(), first.seq.checked_sub(1));
        let query = TurnQuery::Range { session, after, limit: turns.len() as u32 };
        let present = self.store.turns(user, &query).await?;
        match turns.iter().zip(&present).find(|(turn, present)| turn.id != present.id) {
            None => Ok(()),
            Some((turn, _)) => Err(Error::conflict(format!(
                "session `{}` of user `{user}` has another turn {} in the store; import it as another user with `--user`",
                turn.session, turn.seq
            ))),
        }
    }
}

fn renamed(name: &str, options: &ArchiveOptions) -> Result<UserId> {
    options.user.clone().map_or_else(|| UserId::from_stored(name.to_owned()), Ok)
}

/// The lines that wait to be written, and what the store has of the present user.
struct Writing<'a> {
    store: &'a dyn Store,
    options: ArchiveOptions,
    user: UserId,
    session: Option<(SessionLine, Option<Session>)>,
    turns: Vec<Turn>,
    memories: Vec<Memory>,
    jobs: Vec<Job>,
    summaries: HashSet<SummaryId>,
    known_memories: HashSet<MemoryId>,
    known_jobs: HashSet<JobId>,
    added: ArchiveCounts,
}

impl<'a> Writing<'a> {
    fn new(store: &'a dyn Store, options: ArchiveOptions) -> Self {
        Self {
            store,
            options,
            user: UserId::default(),
            session: None,
            turns: Vec::new(),
            memories: Vec::new(),
            jobs: Vec::new(),
            summaries: HashSet::new(),
            known_memories: HashSet::new(),
            known_jobs: HashSet::new(),
            added: ArchiveCounts::default(),
        }
    }

    async fn take(&mut self, line: Line) -> Result<()> {
        match line {
            Line::User(name) => self.begin_user(&name).await,
            Line::Session(line) => self.begin_session(*line).await,
            Line::Turn(turn) => {
                self.turns.push(*turn);
                if self.turns.len() < TURNS_A_BATCH { Ok(()) } else { self.write_turns().await }
            }
            Line::Summary(summary) => {
                self.end_session().await?;
                if self.summaries.insert(summary.id) {
                    self.added.summaries += 1;
                    let at = summary.updated_at;
                    self.store.apply(&self.user, ChangeSet::one(at, Change::PutSummary(summary))).await?;
                }
                Ok(())
            }
            Line::Memory(memory) => {
                self.end_session().await?;
                if self.known_memories.insert(memory.id) {
                    self.memories.push(*memory);
                }
                if self.memories.len() < ITEMS_A_BATCH { Ok(()) } else { self.write_memories().await }
            }
            Line::Job(job) => {
                self.end_session().await?;
                if self.known_jobs.insert(job.id) {
                    self.jobs.push(*job);
                }
                Ok(())
            }
            Line::Strata(_) | Line::Key(_) | Line::End(_) => Ok(()),
        }
    }

    async fn begin_user(&mut self, name: &str) -> Result<()> {
        self.flush().await?;
        self.user = renamed(name, &self.options)?;
        if self.store.sessions(&self.user, strata_core::store::Page::first(1)).await?.is_empty()
            && self.store.head(&self.user).await?.revision == 0
        {
            self.added.users += 1;
        }
        let all = MemoryQuery::new(MemorySelect::All);
        self.known_memories =
            self.store.memories(&self.user, &all).await?.into_iter().map(|memory| memory.id).collect();
        let jobs = JobQuery { limit: u32::MAX, ..JobQuery::default() };
        self.known_jobs = self.store.jobs(&self.user, &jobs).await?.into_iter().map(|job| job.id).collect();
        Ok(())
    }

    async fn begin_session(&mut self, line: SessionLine) -> Result<()> {
        self.end_session().await?;
        let id = line.session.id.clone();
        let known = self.store.session(&self.user, &id).await?;
        if known.is_none() {
            self.added.sessions += 1;
            let begin = Change::AppendTurns { session: id.clone(), turns: Vec::new() };
            self.store.apply(&self.user, ChangeSet::one(line.session.created_at, begin)).await?;
        }
        let query = SummaryQuery { session: id, strategy: None, status: None, limit: u32::MAX };
        let summaries = self.store.summaries(&self.user, &query).await?;
        self.summaries = summaries.into_iter().map(|summary| summary.id).collect();
        self.session = Some((line, known));
        Ok(())
    }

    /// Forgets how far the work on the present session had come: the file was cut, and what the work has made may be lost.
    fn read_last_session_again(&mut self) {
        if let Some((line, _)) = &mut self.session {
            line.progress.clear();
        }
    }

    /// Appends the turns that the session does not have.
    async fn write_turns(&mut self) -> Result<()> {
        let mut turns = std::mem::take(&mut self.turns);
        let Some((line, known)) = &self.session else { return Ok(()) };
        let present = known.as_ref().map_or(0, |known| known.turn_count);
        turns.retain(|turn| turn.seq >= present);
        if turns.is_empty() {
            return Ok(());
        }
        self.added.turns += turns.len() as u64;
        let turns = turns.into_iter().map(as_new).collect();
        let append = Change::AppendTurns { session: line.session.id.clone(), turns };
        self.store.apply(&self.user, ChangeSet::one(line.session.created_at, append)).await?;
        Ok(())
    }

    /// Writes the state of a session after its turns. A state that the store has written later stays.
    async fn end_session(&mut self) -> Result<()> {
        self.write_turns().await?;
        let Some((line, known)) = self.session.take() else { return Ok(()) };
        let SessionLine { session, progress } = line;
        let is_newer = known.as_ref().is_some_and(|known| {
            known.updated_at > session.updated_at || known.turn_count > session.turn_count
        });
        let is_same = known.as_ref().is_some_and(|known| {
            known.turn_count == session.turn_count
                && known.state == session.state
                && known.updated_at == session.updated_at
        });
        if is_newer || is_same {
            return Ok(());
        }
        let state = Box::new(session.state);
        let mut changes = vec![Change::PutState { session: session.id.clone(), state }];
        changes.extend(progress_changes(&session.id, progress));
        self.store.apply(&self.user, ChangeSet::new(session.updated_at, changes)).await?;
        Ok(())
    }

    async fn write_memories(&mut self) -> Result<()> {
        let memories = std::mem::take(&mut self.memories);
        let Some(at) = memories.iter().map(|memory| memory.recorded_at).max() else { return Ok(()) };
        self.added.memories += memories.len() as u64;
        let changes = memories.into_iter().map(|memory| Change::AddMemory(Box::new(memory))).collect();
        self.store.apply(&self.user, ChangeSet::new(at, changes)).await?;
        Ok(())
    }

    /// Writes everything that waits.
    async fn flush(&mut self) -> Result<()> {
        self.end_session().await?;
        self.write_memories().await?;
        let jobs = std::mem::take(&mut self.jobs);
        self.added.jobs += jobs.len() as u64;
        for job in jobs {
            let at = job.updated_at;
            // A lease belongs to a worker of the other store.
            let status = if job.status == JobStatus::Leased { JobStatus::Queued } else { job.status };
            let job = Job { user: self.user.clone(), lease: None, status, ..job };
            self.store.apply(&self.user, ChangeSet::one(at, Change::EnqueueJob(Box::new(job)))).await?;
        }
        Ok(())
    }
}

fn progress_changes(
    session: &strata_core::SessionId,
    progress: BTreeMap<String, u64>,
) -> impl Iterator<Item = Change> {
    progress
        .into_iter()
        .map(|(purpose, revision)| Change::SetProgress { space: session_space(&purpose, session), revision })
}

fn as_new(turn: Turn) -> NewTurn {
    let Turn { id, role, name, content, created_at, token_count, metadata, notes, hidden, .. } = turn;
    NewTurn { id, role, name, content, created_at, token_count, metadata, notes, hidden }
}
