//! Taking in what a person has changed: files that were made, edited, moved or removed since Strata last saw them.
//!
//! [`look`] compares the files with the snapshot, [`edits`] turns differences into changes of the index, and [`import`] adds
//! what is new, which is everything when the index was deleted.

mod edits;
mod import;
mod look;
mod tombstones;
mod turns;

use std::collections::HashSet;
use std::sync::Arc;

use strata_core::Result;
use strata_core::store::ChangeSet;
use strata_core::{Store, UserId};

use super::dirty::Dirty;
use super::form::{Given, ReadItem};
use super::front::Fault;
use super::layout::FileKind;
use super::row::Row;
use super::scope::Scope;
use super::snapshot::{Entry, ItemKey, Kind, Problem};
use super::vault::{Vault, blocking};
pub(crate) use import::is_placeholder;
use look::{Found, Look};
pub(crate) use tombstones::is_empty_summary;

/// Changes of one change set.
const CHANGES_A_SET: usize = 200;

/// One look at the files, on its way into the index.
struct Intake<'a> {
    vault: &'a Arc<Vault>,
    now: jiff::Timestamp,
    /// Files to write afterwards.
    dirty: Dirty,
    /// Files as they were seen, for the snapshot.
    entries: Vec<Entry>,
    /// Paths that the snapshot forgets.
    forgotten: Vec<String>,
    problems: Vec<Problem>,
}

/// A file with the item that it holds.
struct Item {
    found: Found,
    user: UserId,
    key: ItemKey,
    what: What,
}

/// The item in a file.
enum What {
    Entry(Box<ReadItem>),
    Session(Box<super::form::SessionFile>),
    Key(Box<strata_core::key::ApiKey>),
}

impl Vault {
    /// Takes in the changes that a look finds. Returns the items whose files have to be written.
    pub(crate) async fn take_in(self: &Arc<Self>, scope: Scope) -> Result<Dirty> {
        let vault = Arc::clone(self);
        let mut look = blocking(move || vault.look(&scope)).await?;
        self.leave_conflicts(&mut look).await?;
        let Look { items, gone, problems, seen_again, whole } = look;
        let mut gone = self.still_gone(gone).await?;
        gone.extend(look::displaced(&items));
        // Git keeps a person's edits too, also those that need no write by Strata.
        self.git_notice(items.len() + gone.len() + problems.len());
        let mut intake = Intake {
            vault: self,
            now: self.clock.now(),
            dirty: Dirty::default(),
            entries: seen_again,
            forgotten: Vec::new(),
            problems,
        };
        let new = intake.take_edits(items).await?;
        intake.take_removals(gone).await?;
        intake.import(new).await?;
        let Intake { dirty, entries, forgotten, problems, .. } = intake;
        let vault = Arc::clone(self);
        blocking(move || vault.note_look(&entries, &forgotten, &problems, whole.as_ref())).await?;
        Ok(dirty)
    }

    /// Notes in the snapshot what a look has found. `looked_at` is `None` for all paths.
    fn note_look(
        &self,
        entries: &[Entry],
        forgotten: &[String],
        problems: &[Problem],
        looked_at: Option<&Vec<String>>,
    ) -> Result<()> {
        let mut snapshot = self.snapshot();
        let broken: HashSet<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        let solved: Vec<String> = match looked_at {
            Some(paths) => {
                let below: Result<Vec<_>> =
                    paths.iter().map(|path| snapshot.problems_at_or_below(path)).collect();
                below?.into_iter().flatten().collect()
            }
            None => snapshot.problems()?.into_iter().map(|problem| problem.path).collect(),
        };
        snapshot.write(|snapshot| {
            forgotten.iter().try_for_each(|path| snapshot.remove(path))?;
            entries.iter().try_for_each(|entry| snapshot.put(entry))?;
            let solved = solved.iter().filter(|path| !broken.contains(path.as_str()));
            solved.into_iter().try_for_each(|path| snapshot.solve(path))?;
            problems.iter().try_for_each(|problem| snapshot.report(problem))
        })
    }
}

impl Intake<'_> {
    /// Notes a file whose item is in the index as `row`.
    fn adopt(&mut self, found: &Found, row: &Row) -> Result<()> {
        let digest = row.digest()?;
        self.entries.push(found.entry(row.key(), digest));
        Ok(())
    }

    /// Notes a file whose item has changed, so that the file is brought up to date afterwards.
    fn note_changed(&mut self, item: &Item) {
        self.entries.push(item.found.entry(item.key.clone(), 0));
        self.mark(&item.key, item);
    }

    fn mark(&mut self, key: &ItemKey, item: &Item) {
        match &item.what {
            What::Entry(reading) => match &reading.given {
                Given::Turn { turn, .. } => {
                    self.dirty.turns.entry((item.user.clone(), turn.id)).or_default();
                }
                Given::Memory(memory) => self.dirty.note_memory(&item.user, memory.id),
                Given::Summary(summary) => {
                    self.dirty.summaries.insert((item.user.clone(), summary.session.clone(), summary.id));
                }
            },
            What::Session(session) => {
                self.dirty.sessions.insert((item.user.clone(), session.session.clone()));
            }
            What::Key(api_key) => {
                debug_assert_eq!(key.kind, Kind::Key);
                self.dirty.keys.insert((item.user.clone(), api_key.id));
            }
        }
    }

    fn report(&mut self, path: &str, reason: impl Into<String>) {
        self.problems.push(Problem { path: path.to_owned(), fault: Fault::new(reason) });
    }

    /// Applies change sets of one user, which belong to paths. A set that the index refuses is tried change by change, and the
    /// paths of changes that cannot be applied become problems. Returns the paths whose changes were applied.
    async fn apply(&mut self, user: &UserId, changes: Vec<(String, ChangeSet)>) -> Result<HashSet<String>> {
        let mut applied = HashSet::new();
        let mut rest = changes.into_iter().peekable();
        while rest.peek().is_some() {
            let batch: Vec<(String, ChangeSet)> = rest.by_ref().take(CHANGES_A_SET).collect();
            let together = ChangeSet::new(
                self.now,
                batch.iter().flat_map(|(_, set)| set.changes.iter().cloned()).collect(),
            );
            if batch.len() > 1 && self.vault.index.apply(user, together).await.is_ok() {
                applied.extend(batch.into_iter().map(|(path, _)| path));
                continue;
            }
            for (path, set) in batch {
                match self.vault.index.apply(user, set).await {
                    Ok(_) => drop(applied.insert(path)),
                    Err(error) if error.kind() == strata_core::ErrorKind::Unavailable => return Err(error),
                    Err(error) => self.report(&path, error.message().to_owned()),
                }
            }
        }
        Ok(applied)
    }
}

impl Item {
    fn is_entry(&self) -> bool {
        self.found.place.file == FileKind::Entry
    }
}
