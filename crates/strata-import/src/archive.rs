//! A store as JSON lines: everything that a person has said and that Strata has learned, to move, to keep and to read.
//!
//! The first line names the format, the last one has the counts and a digest of all lines before it, so that a file that was
//! cut or changed is refused before anything is written. A line `{"user": …}` begins a user, and a line `{"session": …}` begins
//! a session of that user, whose turns and summaries follow.
//!
//! Deliberately absent: vectors and segments, which Strata makes anew; request rows and finished jobs, which describe a machine
//! and not a memory; and the secrets of keys. Start reading at [`export`], then [`import`](read::import).

mod read;

use std::collections::BTreeMap;
use std::io::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use strata_core::error::io_reason;
use strata_core::hash::hex;
use strata_core::job::{Job, JobStatus};
use strata_core::key::{ApiKey, KeyLimits, Scopes};
use strata_core::scope::RecallScope;
use strata_core::store::{
    JobQuery, KeyQuery, MemoryQuery, MemorySelect, Page, SESSION_PURPOSES, SummaryQuery, TurnQuery,
    session_space,
};
use strata_core::summary::Summary;
use strata_core::{Error, KeyId, Memory, Result, Session, Store, Turn, UserId};

pub use read::{ArchiveOptions, ArchiveReport, import, verify};

/// The version of the format.
const VERSION: u32 = 1;

/// The turns that are read at once.
const TURNS_A_PAGE: u32 = 500;

/// The users that are read at once.
const USERS_A_PAGE: u32 = 500;

/// One line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line {
    /// The first line.
    Strata(Head),
    /// The user of the following lines; `*` for the memories that all users share.
    User(String),
    /// A session of the user.
    Session(Box<SessionLine>),
    /// A turn of the session.
    Turn(Box<Turn>),
    /// A summary of the session.
    Summary(Box<Summary>),
    /// A memory of the user, closed and hidden ones included.
    Memory(Box<Memory>),
    /// Work that is not done yet.
    Job(Box<Job>),
    /// A key, without its secret.
    Key(Box<KeyLine>),
    /// The last line.
    End(End),
}

/// The beginning of an export.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    version: u32,
    exported_at: Timestamp,
    /// The only user; `null` for the whole store.
    user: Option<UserId>,
}

/// A session and how far its background work has come.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionLine {
    session: Session,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    progress: BTreeMap<String, u64>,
}

/// A key without its secret and without the digest of the secret.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeyLine {
    id: KeyId,
    user: String,
    name: Option<String>,
    scopes: Scopes,
    prefix: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    limits: KeyLimits,
    recall_scope: Option<RecallScope>,
}

impl From<ApiKey> for KeyLine {
    fn from(key: ApiKey) -> Self {
        let ApiKey { id, user, name, scopes, prefix, created_at, expires_at, revoked_at, limits, .. } = key;
        let recall_scope = key.recall_scope;
        let user = user.as_str().to_owned();
        Self { id, user, name, scopes, prefix, created_at, expires_at, revoked_at, limits, recall_scope }
    }
}

/// The end of an export.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct End {
    counts: ArchiveCounts,
    /// The SHA-256 of all lines before this one.
    sha256: String,
}

/// The number of items in an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveCounts {
    /// Users.
    pub users: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns, hidden ones included.
    pub turns: u64,
    /// Summaries of every version.
    pub summaries: u64,
    /// Memories, closed and hidden ones included.
    pub memories: u64,
    /// Unfinished jobs.
    pub jobs: u64,
    /// API keys, without their secrets.
    pub keys: u64,
}

impl ArchiveCounts {
    fn count(&mut self, line: &Line) {
        match line {
            Line::User(_) => self.users += 1,
            Line::Session(_) => self.sessions += 1,
            Line::Turn(_) => self.turns += 1,
            Line::Summary(_) => self.summaries += 1,
            Line::Memory(_) => self.memories += 1,
            Line::Job(_) => self.jobs += 1,
            Line::Key(_) => self.keys += 1,
            Line::Strata(_) | Line::End(_) => {}
        }
    }
}

/// Writes a whole store, or the data of one user, to `to`. `tell` is called with what has been written so far.
///
/// The order of the lines depends on the data alone, so two stores with the same data have the same lines.
pub async fn export(
    store: &dyn Store,
    user: Option<&UserId>,
    now: Timestamp,
    to: &mut (dyn Write + Send),
    mut tell: impl FnMut(&ArchiveCounts) + Send,
) -> Result<ArchiveCounts> {
    let users = match user {
        Some(user) => vec![user.clone()],
        None => all_users(store).await?,
    };
    let mut lines = Lines { to, digest: Sha256::new(), counts: ArchiveCounts::default() };
    lines.put(&Line::Strata(Head { version: VERSION, exported_at: now, user: user.cloned() }))?;
    for user in &users {
        // A user may have request rows alone.
        let has_data =
            store.head(user).await?.revision > 0 || !store.sessions(user, Page::first(1)).await?.is_empty();
        if !has_data {
            continue;
        }
        lines.put(&Line::User(user.as_str().to_owned()))?;
        export_user(store, user, &mut lines, &mut tell).await?;
    }
    let query = KeyQuery { user: user.cloned(), revoked: true, ..KeyQuery::unrevoked(Page::first(u32::MAX)) };
    let mut keys = store.keys(&query).await?;
    keys.sort_by_key(|key| (key.created_at, key.id));
    for key in keys {
        lines.put(&Line::Key(Box::new(key.into())))?;
    }
    lines.end()
}

async fn all_users(store: &dyn Store) -> Result<Vec<UserId>> {
    let mut users = Vec::new();
    loop {
        let found = store.users(Page { offset: users.len() as u64, limit: USERS_A_PAGE }).await?;
        if found.is_empty() {
            return Ok(users);
        }
        users.extend(found);
    }
}

async fn export_user(
    store: &dyn Store,
    user: &UserId,
    lines: &mut Lines<'_>,
    tell: &mut (impl FnMut(&ArchiveCounts) + Send),
) -> Result<()> {
    let mut sessions = store.sessions(user, Page::first(u32::MAX)).await?;
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    for session in sessions {
        export_session(store, user, session, lines, tell).await?;
    }
    let mut memories = store.memories(user, &MemoryQuery::new(MemorySelect::All)).await?;
    memories.sort_by_key(|memory| (memory.recorded_at, memory.id));
    for memory in memories {
        lines.put(&Line::Memory(Box::new(memory)))?;
    }
    let mut jobs = store.jobs(user, &JobQuery { limit: u32::MAX, ..JobQuery::default() }).await?;
    jobs.retain(|job| job.status != JobStatus::Done && job.user != UserId::global());
    jobs.sort_by_key(|job| (job.created_at, job.id));
    for job in jobs {
        lines.put(&Line::Job(Box::new(job)))?;
    }
    tell(&lines.counts);
    Ok(())
}

async fn export_session(
    store: &dyn Store,
    user: &UserId,
    session: Session,
    lines: &mut Lines<'_>,
    tell: &mut (impl FnMut(&ArchiveCounts) + Send),
) -> Result<()> {
    let id = session.id.clone();
    let mut progress = BTreeMap::new();
    for purpose in SESSION_PURPOSES {
        let revision = store.progress(user, &session_space(purpose, &id)).await?;
        if revision > 0 {
            progress.insert(purpose.to_owned(), revision);
        }
    }
    // The version of a session is a store's own.
    let session = Session { version: 0, ..session };
    lines.put(&Line::Session(Box::new(SessionLine { session, progress })))?;
    let mut after = None;
    loop {
        let query = TurnQuery::Range { session: id.clone(), after, limit: TURNS_A_PAGE };
        let turns = store.turns(user, &query).await?;
        let Some(last) = turns.last() else { break };
        after = Some(last.seq);
        for turn in turns {
            lines.put(&Line::Turn(Box::new(turn)))?;
        }
        tell(&lines.counts);
    }
    let query = SummaryQuery { session: id, strategy: None, status: None, limit: u32::MAX };
    let mut summaries = store.summaries(user, &query).await?;
    summaries.sort_by_key(|summary| (summary.created_at, summary.id));
    for summary in summaries {
        lines.put(&Line::Summary(Box::new(summary)))?;
    }
    Ok(())
}

/// The lines under way.
struct Lines<'a> {
    to: &'a mut (dyn Write + Send),
    digest: Sha256,
    counts: ArchiveCounts,
}

impl Lines<'_> {
    fn put(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_vec(line)
            .map_err(|error| Error::internal("an item cannot be exported").with_source(error))?;
        text.push(b'\n');
        self.digest.update(&text);
        self.counts.count(line);
        self.to.write_all(&text).map_err(not_written)
    }

    fn end(mut self) -> Result<ArchiveCounts> {
        let counts = self.counts;
        let sha256 = hex(&std::mem::take(&mut self.digest).finalize());
        self.put(&Line::End(End { counts, sha256 }))?;
        self.to.flush().map_err(not_written)?;
        Ok(counts)
    }
}

fn not_written(error: std::io::Error) -> Error {
    Error::unavailable(format!("the export cannot be written: {}", io_reason(&error))).with_source(error)
}
