//! Comparing the files with the snapshot.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use strata_core::error::io_reason;
use strata_core::key::ApiKey;
use strata_core::{Result, UserId};

use super::{Item, What};
use crate::conflict;
use crate::disk::{Seen, in_parallel};
use crate::form::{self, Given, ReadItem, SessionFile};
use crate::front::{Document, Fault};
use crate::git::Git;
use crate::layout::{self, FileKind, Place};
use crate::processes::being_written;
use crate::scope::Scope;
use crate::snapshot::{Entry, ItemKey, Kind, Problem, Stat};
use crate::vault::{Vault, blocking};

/// How long a tombstone or key has to be missing to count as removed, because that cannot be taken back. Editors and git remove a
/// file before they write it anew.
const MISSING: std::time::Duration = std::time::Duration::from_millis(400);

/// A file that was looked at less than this after its last change may change again within the same tick of its clock.
const RACY_NANOS: i64 = 2_000_000_000;

/// Files between two reports of progress.
const FILES_A_REPORT: usize = 500;

/// The findings of a look.
pub(super) struct Look {
    /// New and changed files.
    pub(super) items: Vec<Item>,
    /// Files that are no longer there.
    pub(super) gone: Vec<Entry>,
    pub(super) problems: Vec<Problem>,
    /// Files whose times have changed and nothing else.
    pub(super) seen_again: Vec<Entry>,
    /// The paths that were looked at; `None` for all.
    pub(super) whole: Option<Vec<String>>,
}

/// A new or changed file.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) place: Place,
    /// The file of the same item at another path, which may be gone.
    pub(super) elsewhere: Option<Entry>,
    /// The other item that this file held, whose id a person has edited or whose place another file has taken.
    pub(super) displaced: Option<Entry>,
    pub(super) hash: [u8; 32],
    /// The line of the first mark, if the file has marks like those of a conflict that git could not merge.
    pub(super) marked: Option<u64>,
    stat: Stat,
    racy: bool,
}

impl Found {
    /// The file for the snapshot.
    pub(super) fn entry(&self, item: ItemKey, row: u64) -> Entry {
        Entry { path: self.path.clone(), item, hash: self.hash, stat: self.stat, racy: self.racy, row }
    }
}

/// The result of reading one file.
enum Looked {
    Same,
    Again(Entry),
    Item(Box<Item>),
    Problem(Problem),
    Gone,
}

impl Vault {
    /// Looks at these paths, or at everything.
    pub(super) fn look(&self, scope: &Scope) -> Result<Look> {
        let paths = scope.paths();
        let walk = match paths {
            Some(paths) => self.disk.walk(paths),
            None => self.disk.walk(&[layout::ENTRIES, layout::USERS, layout::KEYS]),
        };
        let known: HashMap<String, Entry> = {
            let snapshot = self.snapshot();
            let entries = match paths {
                Some(paths) => {
                    let below: Result<Vec<_>> = paths.iter().map(|path| snapshot.at_or_below(path)).collect();
                    below?.into_iter().flatten().collect()
                }
                None => snapshot.all()?,
            };
            entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
        };
        // A folder and a file in it may both be named.
        let there: BTreeSet<String> = walk.files.into_iter().map(|(path, _)| path).collect();
        let files: Vec<String> = there.iter().cloned().collect();
        let mut look = self.read_all(&files, &known, scope)?;
        look.problems.extend(walk.problems);
        look.gone.extend(known.into_values().filter(|entry| !there.contains(&entry.path)));
        // A path that is a link now, and what lay below it, is reported and otherwise left alone.
        let broken: HashSet<&str> = look.problems.iter().map(|problem| problem.path.as_str()).collect();
        look.gone.retain(|entry| !is_at_or_below(&entry.path, &broken));
        look.whole = paths.cloned();
        self.pair(&mut look)?;
        // A file that a program still writes is looked at when it is done: Strata may have to replace the file.
        let items = look.items.iter().map(|item| item.found.path.as_str());
        let problems = look.problems.iter().map(|problem| problem.path.as_str());
        let written = being_written(&self.root, items.chain(problems));
        look.items.retain(|item| !written.contains(&item.found.path));
        look.problems.retain(|problem| !written.contains(&problem.path));
        Ok(look)
    }

    /// Takes out the files in which git has marked a conflict, and reports them: a person has to merge them.
    pub(super) async fn leave_conflicts(&self, look: &mut Look) -> Result<()> {
        let marked = look.items.iter().filter_map(|item| Some((item.found.path.clone(), item.found.marked?)));
        let marked: HashMap<String, u64> = marked.collect();
        if marked.is_empty() {
            return Ok(());
        }
        let git = Git::new(&self.root, Arc::clone(&self.clock))?;
        let waiting = git.awaiting_merge(marked.keys().cloned().collect()).await?;
        look.items.retain(|item| !waiting.contains(&item.found.path));
        let fault = |path: &String| unmerged(marked.get(path).copied());
        look.problems.extend(waiting.iter().map(|path| Problem { path: path.clone(), fault: fault(path) }));
        Ok(())
    }

    /// Those of the files that are gone for good.
    pub(super) async fn still_gone(self: &Arc<Self>, gone: Vec<Entry>) -> Result<Vec<Entry>> {
        let is_final = |entry: &Entry| {
            entry.item.kind == Kind::Key || layout::place(&entry.path).is_some_and(|place| place.deleted)
        };
        if gone.iter().any(is_final) {
            tokio::time::sleep(MISSING).await;
        }
        let vault = Arc::clone(self);
        let is_gone = move |entry: &Entry| vault.disk.is_gone(&entry.path);
        blocking(move || Ok(gone.into_iter().filter(is_gone).collect())).await
    }

    fn read_all(&self, files: &[String], known: &HashMap<String, Entry>, scope: &Scope) -> Result<Look> {
        // Without the time of the file system, every file counts as changed just now.
        let now = self.disk.now();
        let progress = self.progress();
        let done = AtomicUsize::new(0);
        let looked = in_parallel(files, |path| {
            let looked = self.read_one(path, known.get(path), now, scope);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = &progress
                && (done.is_multiple_of(FILES_A_REPORT) || done == files.len())
            {
                progress(done, files.len());
            }
            looked
        });
        let mut look = Look {
            items: Vec::new(),
            gone: Vec::new(),
            problems: Vec::new(),
            seen_again: Vec::new(),
            whole: None,
        };
        for (path, looked) in files.iter().zip(looked) {
            match looked? {
                Looked::Same => {}
                Looked::Again(entry) => look.seen_again.push(entry),
                Looked::Item(item) => look.items.push(*item),
                Looked::Problem(problem) => look.problems.push(problem),
                Looked::Gone => look.gone.extend(known.get(path).cloned()),
            }
        }
        Ok(look)
    }

    fn read_one(
        &self,
        path: &str,
        before: Option<&Entry>,
        now: Option<i64>,
        scope: &Scope,
    ) -> Result<Looked> {
        let Some(place) = layout::place(path) else { return Ok(Looked::Same) };
        let problem = |fault| Ok(Looked::Problem(Problem { path: path.to_owned(), fault }));
        let unreadable = |error| Fault::new(format!("the file cannot be read: {}", io_reason(&error)));
        let stat = match self.disk.stat(path) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(Looked::Gone),
            Err(error) => return problem(unreadable(error)),
        };
        let same_times = before.is_some_and(|before| before.stat == stat);
        let is_racy = before.is_some_and(|before| before.racy);
        match scope {
            Scope::All if same_times && !is_racy => return Ok(Looked::Same),
            Scope::Hinted(_) if same_times => return Ok(Looked::Same),
            _ => {}
        }
        let _turn = self.disk.turn_to_read(stat.size);
        let seen = match self.disk.read(path) {
            Ok(None) => return Ok(Looked::Gone),
            Ok(Some(Err(fault))) => return problem(fault),
            Ok(Some(Ok(seen))) => seen,
            Err(error) => return problem(unreadable(error)),
        };
        let racy = now.is_none_or(|now| now.saturating_sub(seen.stat.changed).abs() < RACY_NANOS);
        if let Some(before) = before
            && before.hash == seen.hash
        {
            return Ok(Looked::Again(Entry { stat: seen.stat, racy, ..before.clone() }));
        }
        match self.understand(path, place, before, seen, racy) {
            Ok(item) => Ok(Looked::Item(Box::new(item))),
            Err(fault) => problem(fault),
        }
    }

    fn understand(
        &self,
        path: &str,
        place: Place,
        before: Option<&Entry>,
        seen: Seen,
        racy: bool,
    ) -> std::result::Result<Item, Fault> {
        let user = self.user_of(&place)?;
        let (user, kind, id, what) = match place.file {
            FileKind::Entry => {
                let document = Document::parse(&seen.bytes)?;
                // A file without an id is the item that it was.
                let known = before.and_then(|before| before.item.id.parse().ok());
                let id = known.unwrap_or_else(|| self.ids.next());
                let reading = form::read(&document, &place, id, self.clock.now())?;
                self.expect_usable(&reading, &document, &seen.bytes)?;
                let kind = match &reading.given {
                    Given::Turn { .. } => Kind::Turn,
                    Given::Memory(_) => Kind::Memory,
                    Given::Summary(_) => Kind::Summary,
                };
                (user, kind, reading.given.uuid().to_string(), What::Entry(Box::new(reading)))
            }
            FileKind::Session => {
                let session: SessionFile = from_json(&seen.bytes)?;
                (user, Kind::Session, session.session.to_string(), What::Session(Box::new(session)))
            }
            FileKind::Key => {
                let key: ApiKey = from_json(&seen.bytes)?;
                (key.user.clone(), Kind::Key, key.id.to_string(), What::Key(Box::new(key)))
            }
        };
        let key = ItemKey { user: user.clone(), kind, id };
        let displaced = before.filter(|before| before.item != key).cloned();
        let found = Found {
            path: path.to_owned(),
            place,
            elsewhere: None,
            displaced,
            hash: seen.hash,
            marked: conflict::marked(&seen.bytes),
            stat: seen.stat,
            racy,
        };
        Ok(Item { found, user, key, what })
    }

    /// Fails if a memory or summary is none that Strata would keep: it is too long, or git could not merge it. A turn may quote a
    /// conflict, and one that is left out would be missing in its session.
    fn expect_usable(
        &self,
        reading: &ReadItem,
        document: &Document,
        bytes: &[u8],
    ) -> std::result::Result<(), Fault> {
        let size = match &reading.given {
            Given::Memory(memory) => memory.content.len(),
            Given::Summary(_) => 0,
            Given::Turn { .. } => return Ok(()),
        };
        if size > self.max_memory_bytes {
            return Err(too_long(size, self.max_memory_bytes));
        }
        match conflict::begun(bytes).filter(|_| !document.is_verbatim()) {
            Some(line) => Err(unmerged(Some(line))),
            None => Ok(()),
        }
    }

    /// The user whose file this is.
    fn user_of(&self, place: &Place) -> std::result::Result<UserId, Fault> {
        #[derive(Deserialize)]
        struct UserFile {
            user: String,
        }
        let folder = place.user_folder.as_deref().unwrap_or_default();
        let named = || -> Option<UserId> {
            let path = format!("{}/{folder}/{}", layout::USERS, layout::USER_FILE);
            let seen = self.disk.read(&path).ok()??.ok()?;
            let file: UserFile = serde_json::from_slice(&seen.bytes).ok()?;
            let user = UserId::from_stored(file.user).ok()?;
            // A folder belongs to one user only, whatever its file says.
            layout::is_folder_of(folder, &user).then_some(user)
        };
        place.user().or_else(named).ok_or_else(|| {
            Fault::new(format!(
                "the folder `{}/{folder}` names no user; rename it to the user's name",
                layout::USERS
            ))
        })
    }

    /// Finds for each item where it was before, and reports those that two files claim to be.
    fn pair(&self, look: &mut Look) -> Result<()> {
        let snapshot = self.snapshot();
        // Files that are gone, or that hold other items now.
        let displaced = look.items.iter().filter_map(|item| item.found.displaced.as_ref());
        let displaced: HashSet<String> = displaced.map(|entry| entry.path.clone()).collect();
        let gone: HashSet<String> = look.gone.iter().map(|entry| entry.path.clone()).collect();
        // Of two files with one id, that among the deleted ones is the later step of an interrupted move.
        look.items.sort_by_key(|item| !item.found.place.deleted);
        let mut claimed: HashMap<ItemKey, usize> = HashMap::new();
        let mut kept: Vec<Item> = Vec::with_capacity(look.items.len());
        let mut moved = HashSet::new();
        for mut item in std::mem::take(&mut look.items) {
            if let Some(first) = claimed.get(&item.key).and_then(|place| kept.get_mut(*place)) {
                if is_first_step(&item, first) {
                    first.found.elsewhere = Some(item.found.entry(item.key.clone(), 0));
                } else {
                    look.problems.push(twice(&item, &first.found.path));
                }
                continue;
            }
            let elsewhere = snapshot.of(&item.key)?.filter(|entry| entry.path != item.found.path);
            let elsewhere = elsewhere.filter(|entry| !displaced.contains(&entry.path));
            if let Some(entry) = &elsewhere {
                // An entry that cannot be looked at may be there.
                let is_seen = || self.disk.stat(&entry.path).map_or(true, |stat| stat.is_some());
                let there = !gone.contains(&entry.path) && is_seen();
                if there && !is_leftover(&item, entry) {
                    look.problems.push(twice(&item, &entry.path));
                    continue;
                }
                if there
                    && item.is_entry()
                    && was_ended_unseen(&item, entry)
                    && snapshot.has_problem(&item.found.path)?
                {
                    look.problems.push(ended(&item.found.path, &entry.path));
                    continue;
                }
                moved.insert(entry.path.clone());
            }
            claimed.insert(item.key.clone(), kept.len());
            item.found.elsewhere = elsewhere;
            kept.push(item);
        }
        look.items = kept;
        look.gone.retain(|entry| !moved.contains(&entry.path));
        Ok(())
    }
}

/// Whether a file takes the place of another one of the same item: as the second step of a move that a crash has cut short, or
/// because a person has brought back an item that Strata has moved among the deleted ones.
fn is_leftover(item: &Item, other: &Entry) -> bool {
    let path = &item.found.path;
    let was_deleted = layout::place(&other.path).is_some_and(|place| place.deleted);
    let is_step = layout::moved(&other.path, true) == *path || layout::moved(&other.path, false) == *path;
    is_step || was_deleted && !item.found.place.deleted
}

/// Whether a file is what an interrupted move among the deleted files has left behind, seen without the index: its text stands in the
/// tombstone. A file that is the tombstone byte for byte is a person's copy.
fn is_first_step(item: &Item, tombstone: &Item) -> bool {
    let (left, moved) = (&item.found, &tombstone.found);
    let is_moved = moved.place.deleted && layout::moved(&moved.path, false) == left.path;
    let is_known = moved.elsewhere.as_ref().is_some_and(|other| other.path != left.path);
    is_moved && !is_known && left.hash != moved.hash && text(item).is_some() && text(item) == text(tombstone)
}

fn text(item: &Item) -> Option<&str> {
    let What::Entry(reading) = &item.what else { return None };
    match &reading.given {
        Given::Memory(memory) => Some(&memory.content),
        Given::Summary(summary) => Some(&summary.text),
        Given::Turn { turn, .. } => Some(&turn.content),
    }
}

/// Whether Strata has put an item among the deleted ones without this file of it, see `Vault::plan_beside`.
fn was_ended_unseen(item: &Item, other: &Entry) -> bool {
    !item.found.place.deleted && layout::place(&other.path).is_some_and(|place| place.deleted)
}

/// Whether a path, or a folder that it lies in, is among others.
fn is_at_or_below(path: &str, others: &HashSet<&str>) -> bool {
    others.contains(path) || path.match_indices('/').any(|(at, _)| others.contains(&path[..at]))
}

/// Tells a person to settle a conflict.
fn unmerged(line: Option<u64>) -> Fault {
    let reason = "git could not merge it; settle the lines between `<<<<<<<` and `>>>>>>>` and commit that, or write \
                  `verbatim: true` into the front matter if they are part of the text";
    Fault { line, reason: reason.to_owned() }
}

fn too_long(bytes: usize, most: usize) -> Fault {
    Fault::new(format!(
        "the memory has {bytes} bytes; the most is {most} (setting `max_turn_bytes`), so shorten it or split it"
    ))
}

fn ended(path: &str, tombstone: &str) -> Problem {
    let reason = format!(
        "it was saved after Strata had ended this statement, whose file is `{tombstone}` now; remove that file to bring the statement \
         back, or remove this one's `id` line to make it a statement of its own"
    );
    Problem { path: path.to_owned(), fault: Fault::new(reason) }
}

fn twice(item: &Item, other: &str) -> Problem {
    let reason = match item.what {
        What::Entry(_) => {
            format!("it has the id of `{other}`; remove its `id` line to make it an item of its own")
        }
        What::Session(_) => {
            format!("it is of the same session as `{other}`, which counts; remove one of the two")
        }
        What::Key(_) => format!("it has the id of `{other}`, which counts; remove one of the two"),
    };
    Problem { path: item.found.path.clone(), fault: Fault::new(reason) }
}

/// The items whose files hold other items now, and that no other file holds. An edited `session.json` does not end the session that
/// it was of.
pub(super) fn displaced(items: &[Item]) -> Vec<Entry> {
    let held: HashSet<&ItemKey> = items.iter().map(|item| &item.key).collect();
    let displaced =
        items.iter().filter(|item| item.is_entry()).filter_map(|item| item.found.displaced.clone());
    displaced.filter(|entry| !held.contains(&entry.item)).collect()
}

fn from_json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(|error| {
        let said = error.to_string();
        // The parser names the line too.
        let said = said.split(" at line ").next().unwrap_or_default();
        let reason = format!("it is not valid: {said}, at column {}; correct it", error.column());
        Fault { line: Some(error.line() as u64), reason }
    })
}
