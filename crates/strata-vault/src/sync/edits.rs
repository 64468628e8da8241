//! Files whose items are in the index: edited, moved and removed ones become changes of the index.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use strata_core::store::{
    Change, ChangeSet, Forget, KeyQuery, MemoryQuery, MemorySelect, Page, TurnQuery, session_space,
};
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::turn::{Hidden, HiddenReason};
use strata_core::{Memory, MemoryId, Result, SessionId, Store, Turn, TurnId, UserId};

use super::look::Found;
use super::turns::is_displaced;
use super::{Intake, Item, What};
use crate::dirty::Dirty;
use crate::form::{Given, ReadItem, SessionFile, TurnExtra};
use crate::layout;
use crate::row::{Content, Row};
use crate::snapshot::{Entry, ItemKey, Kind};
use crate::vault::{all_summaries, unwritten};

/// The ids of one query.
const IDS_A_QUERY: usize = 500;

/// How a file differs from its item.
pub(super) enum Difference {
    None,
    /// It cannot be taken in, for this reason.
    Refused(String),
    Changes(Vec<Change>),
    /// A turn that a person has corrected, with further changes.
    Correction(Box<Turn>, Vec<Change>),
}

impl Intake<'_> {
    /// Takes in the files whose items the index has, and returns the others.
    pub(super) async fn take_edits(&mut self, items: Vec<Item>) -> Result<Vec<Item>> {
        let rows = self.known(&items).await?;
        let mut new = Vec::new();
        let mut changed: BTreeMap<UserId, Vec<(Item, ChangeSet)>> = BTreeMap::new();
        let mut corrected: BTreeMap<UserId, Vec<(String, Turn)>> = BTreeMap::new();
        for item in items {
            let Some(row) = rows.get(&item.key) else {
                self.remove_leftover(&item.found)?;
                new.push(item);
                continue;
            };
            let difference = self.difference(&item, row).await?;
            if !matches!(difference, Difference::Refused(_)) {
                self.remove_leftover(&item.found)?;
            }
            match difference {
                Difference::None if is_incomplete(&item) || is_displaced(&item, row) => {
                    self.note_changed(&item)
                }
                Difference::None => self.adopt(&item.found, row)?,
                Difference::Refused(reason) => self.report(&item.found.path, reason),
                Difference::Changes(changes) => {
                    let set = ChangeSet::new(self.now, changes);
                    changed.entry(item.user.clone()).or_default().push((item, set));
                }
                Difference::Correction(turn, changes) => {
                    // A correction may change the session's times, which its turns tell otherwise.
                    self.dirty.sessions.insert((item.user.clone(), turn.session.clone()));
                    let path = item.found.path.clone();
                    corrected.entry(item.user.clone()).or_default().push((path, *turn));
                    let set = ChangeSet::new(self.now, changes);
                    changed.entry(item.user.clone()).or_default().push((item, set));
                }
            }
        }
        let failed = self.correct(corrected).await?;
        for (user, mut items) in changed {
            items.retain(|(item, _)| !failed.contains(&item.found.path));
            let sets = items.iter().map(|(item, set)| (item.found.path.clone(), set.clone())).collect();
            let applied = self.apply(&user, sets).await?;
            for (item, set) in items.iter().filter(|(item, _)| applied.contains(&item.found.path)) {
                self.dirty.merge(Dirty::of(&user, set));
                self.note_changed(item);
            }
        }
        Ok(new)
    }

    /// Removes the file that an interrupted move has left behind.
    fn remove_leftover(&self, found: &Found) -> Result<()> {
        match &found.elsewhere {
            Some(other) => self.vault.disk.remove(&other.path).map_err(|error| unwritten(&error)),
            None => Ok(()),
        }
    }

    /// The items of the index that files hold.
    async fn known(&self, items: &[Item]) -> Result<HashMap<ItemKey, Row>> {
        let mut rows = HashMap::new();
        let users: BTreeSet<&UserId> = items.iter().map(|item| &item.user).collect();
        for user in users {
            let own = || items.iter().filter(|item| item.user == *user);
            if self.vault.index.head(user).await?.revision > 0 {
                self.known_turns(user, own(), &mut rows).await?;
                self.known_memories(user, own(), &mut rows).await?;
            }
            self.known_others(user, own(), &mut rows).await?;
        }
        Ok(rows)
    }

    async fn known_turns(
        &self,
        user: &UserId,
        items: impl Iterator<Item = &Item>,
        rows: &mut HashMap<ItemKey, Row>,
    ) -> Result<()> {
        let ids: Vec<TurnId> = ids(items, Kind::Turn);
        for ids in ids.chunks(IDS_A_QUERY) {
            for turn in self.vault.index.turns(user, &TurnQuery::Ids(ids.to_vec())).await? {
                let row = Row::new(user, Content::Turn(Box::new(turn), TurnExtra::default()));
                rows.insert(row.key(), row);
            }
        }
        Ok(())
    }

    async fn known_memories(
        &self,
        user: &UserId,
        items: impl Iterator<Item = &Item>,
        rows: &mut HashMap<ItemKey, Row>,
    ) -> Result<()> {
        let ids: Vec<MemoryId> = ids(items, Kind::Memory);
        for ids in ids.chunks(IDS_A_QUERY) {
            let query = MemoryQuery::new(MemorySelect::Ids(ids.to_vec()));
            for memory in self.vault.index.memories(user, &query).await? {
                let row = Row::new(user, Content::Memory(Box::new(memory), None));
                rows.insert(row.key(), row);
            }
        }
        Ok(())
    }

    async fn known_others(
        &self,
        user: &UserId,
        items: impl Iterator<Item = &Item>,
        rows: &mut HashMap<ItemKey, Row>,
    ) -> Result<()> {
        let mut summarised: BTreeSet<&SessionId> = BTreeSet::new();
        for item in items {
            match &item.what {
                What::Entry(reading) => {
                    if let Given::Summary(summary) = &reading.given {
                        summarised.insert(&summary.session);
                    }
                }
                What::Session(session) => {
                    let row = self.vault.session_row(user, &session.session).await?;
                    rows.extend(row.map(|row| (row.key(), row)));
                }
                What::Key(key) => {
                    let query = KeyQuery {
                        id: Some(key.id),
                        user: Some(user.clone()),
                        revoked: true,
                        page: Page::first(1),
                    };
                    for key in self.vault.index.keys(&query).await? {
                        let row = Row::new(user, Content::Key(Box::new(key)));
                        rows.insert(row.key(), row);
                    }
                }
            }
        }
        for session in summarised {
            for summary in self.vault.index.summaries(user, &all_summaries(session)).await? {
                let row = Row::new(user, Content::Summary(Box::new(summary)));
                rows.insert(row.key(), row);
            }
        }
        Ok(())
    }

    async fn difference(&self, item: &Item, row: &Row) -> Result<Difference> {
        Ok(match (&item.what, &row.content) {
            (What::Entry(reading), Content::Memory(memory, _)) => {
                self.memory_difference(item, reading, memory).await?
            }
            (What::Entry(reading), Content::Turn(turn, _)) => self.turn_difference(item, reading, turn),
            (What::Entry(reading), Content::Summary(summary)) => summary_difference(reading, summary),
            (What::Session(file), Content::Session(session)) => session_difference(file, session),
            (What::Key(file), Content::Key(key)) if file.revoked_at.is_some() && key.revoked_at.is_none() => {
                Difference::Changes(vec![Change::RevokeKey { id: key.id }])
            }
            _ => Difference::None,
        })
    }

    async fn memory_difference(
        &self,
        item: &Item,
        reading: &ReadItem,
        memory: &Memory,
    ) -> Result<Difference> {
        let Given::Memory(given) = &reading.given else { return Ok(Difference::None) };
        let mut given = (**given).clone();
        if reading.bare {
            given = Memory { content: given.content, ..memory.clone() };
        }
        if reading.timeless {
            (given.recorded_at, given.valid_from) = (memory.recorded_at, memory.valid_from);
        }
        if let Some(tombstone) = item.found.elsewhere.as_ref().filter(|other| self.is_tombstone(item, other))
            && memory.valid_to.is_some()
            && given.valid_to.is_none()
        {
            return Ok(Difference::Refused(format!(
                "it was saved after Strata had ended this statement, whose file is `{}` now; remove that file to bring the \
                 statement back, or remove this one's `id` line to make it a statement of its own",
                tombstone.path
            )));
        }
        let mut given = self.rebased(item, given, memory).await?;
        if reading.tombstone && memory.is_current() {
            given.hidden = self.deleted();
        } else if is_brought_back(item) {
            (given.hidden, given.valid_to, given.replaced_by) = (None, None, None);
        }
        let revise = |given: Memory| Change::ReviseMemory {
            id: memory.id,
            archive_as: MemoryId(self.vault.ids.next()),
            metadata: (given.metadata != memory.metadata).then_some(given.metadata),
            content: given.content,
        };
        let same_text = given.content == memory.content && given.metadata == memory.metadata;
        // The file as it would be with the old text.
        let frame =
            Memory { content: memory.content.clone(), metadata: memory.metadata.clone(), ..given.clone() };
        if frame == *memory {
            return Ok(if same_text { Difference::None } else { Difference::Changes(vec![revise(given)]) });
        }
        let mut changes = self.reframed(item, memory, frame).await?;
        if !same_text {
            changes.push(revise(given));
        }
        Ok(Difference::Changes(changes))
    }

    /// Whether the file that Strata moved among the deleted ones is still there, so that this one was written anew.
    fn is_tombstone(&self, item: &Item, other: &Entry) -> bool {
        let is_deleted = layout::place(&other.path).is_some_and(|place| place.deleted);
        let is_as_written = || self.vault.disk.stat(&other.path).is_ok_and(|stat| stat == Some(other.stat));
        is_deleted && !item.found.place.deleted && is_as_written()
    }

    /// What a file says that was opened before the last change of its memory and saved after it: the text, and of the other keys
    /// those that were edited. The rest is of an earlier version.
    async fn rebased(&self, item: &Item, given: Memory, memory: &Memory) -> Result<Memory> {
        let times = |memory: &Memory| (memory.valid_from, memory.recorded_at);
        if times(&given) == times(memory) {
            return Ok(given);
        }
        let query = MemoryQuery::new(MemorySelect::History(memory.id));
        let history = self.vault.index.memories(&item.user, &query).await?;
        let is_former = |former: &&Memory| former.id != memory.id && times(former) == times(&given);
        let Some(former) = history.iter().find(is_former) else { return Ok(given) };
        Ok(Memory {
            session: edited(given.session, &former.session, &memory.session),
            agent: edited(given.agent, &former.agent, &memory.agent),
            kind: edited(given.kind, &former.kind, &memory.kind),
            confidence: edited(given.confidence, &former.confidence, &memory.confidence),
            metadata: edited(given.metadata, &former.metadata, &memory.metadata),
            content: given.content,
            valid_to: given.valid_to.or(memory.valid_to),
            replaced_by: given.replaced_by.or(memory.replaced_by),
            hidden: given.hidden,
            ..memory.clone()
        })
    }

    /// The changes that give a memory everything of `frame`, which has the same text.
    async fn reframed(&self, item: &Item, memory: &Memory, frame: Memory) -> Result<Vec<Change>> {
        let id = memory.id;
        if frame == (Memory { hidden: frame.hidden, ..memory.clone() }) {
            return Ok(vec![Change::HideMemory { id, hidden: frame.hidden }]);
        }
        let closed = Memory { valid_to: frame.valid_to, replaced_by: frame.replaced_by, ..memory.clone() };
        if let Some(valid_to) = frame.valid_to
            && frame == closed
        {
            let replaced_by = match frame.replaced_by {
                Some(other) => {
                    let query = MemoryQuery::new(MemorySelect::Ids(vec![other]));
                    (!self.vault.index.memories(&item.user, &query).await?.is_empty()).then_some(other)
                }
                None => None,
            };
            return Ok(vec![Change::CloseMemory { id, valid_to, replaced_by }]);
        }
        // Nothing else can be changed in place: the memory is put anew, with the statements that it replaced.
        let query = MemoryQuery::new(MemorySelect::History(id));
        let history = self.vault.index.memories(&item.user, &query).await?;
        let mut former: HashSet<MemoryId> = HashSet::from([id]);
        while let Some(next) = history.iter().find(|other| {
            !former.contains(&other.id) && other.replaced_by.is_some_and(|by| former.contains(&by))
        }) {
            former.insert(next.id);
        }
        former.remove(&id);
        let mut changes = vec![Change::Forget(Forget::Memory(id)), Change::AddMemory(Box::new(frame))];
        let kept = history.into_iter().filter(|other| former.contains(&other.id));
        changes.extend(kept.map(|other| Change::AddMemory(Box::new(other))));
        Ok(changes)
    }

    pub(super) fn deleted(&self) -> Option<Hidden> {
        Some(Hidden { reason: HiddenReason::Deleted, at: self.now })
    }

    /// Takes in that files are gone.
    pub(super) async fn take_removals(&mut self, gone: Vec<Entry>) -> Result<()> {
        let mut by_user: BTreeMap<UserId, Vec<(Entry, ChangeSet)>> = BTreeMap::new();
        for entry in self.take_removed_tombstones(gone).await? {
            let changes = self.removal(&entry).await?;
            self.forgotten.push(entry.path.clone());
            let set = ChangeSet::new(self.now, changes);
            by_user.entry(entry.item.user.clone()).or_default().push((entry, set));
        }
        for (user, removals) in by_user {
            let sets = removals.iter().filter(|(_, set)| !set.changes.is_empty());
            let sets = sets.map(|(entry, set)| (entry.path.clone(), set.clone())).collect();
            self.apply(&user, sets).await?;
            for (entry, set) in &removals {
                self.dirty.merge(Dirty::of(&user, set));
                self.mark_removed(&user, entry).await?;
            }
        }
        Ok(())
    }

    /// The changes that a removed file stands for.
    async fn removal(&self, entry: &Entry) -> Result<Vec<Change>> {
        let (user, id) = (&entry.item.user, &entry.item.id);
        let was_deleted = layout::place(&entry.path).is_some_and(|place| place.deleted);
        let hidden = self.deleted();
        Ok(match entry.item.kind {
            Kind::Memory => {
                let Ok(id) = id.parse() else { return Ok(Vec::new()) };
                let query = MemoryQuery::new(MemorySelect::Ids(vec![id]));
                match self.vault.index.memories(user, &query).await?.first() {
                    None => Vec::new(),
                    // A person who removes a tombstone wants the statement gone.
                    Some(_) if was_deleted => vec![Change::Forget(Forget::Memory(id))],
                    Some(memory) if memory.hidden.is_some() => Vec::new(),
                    Some(_) => vec![Change::HideMemory { id, hidden }],
                }
            }
            Kind::Turn => {
                let Ok(id) = id.parse::<TurnId>() else { return Ok(Vec::new()) };
                match self.vault.index.turns(user, &TurnQuery::Ids(vec![id])).await?.first() {
                    Some(turn) if turn.hidden.is_none() => vec![Change::HideTurns { ids: vec![id], hidden }],
                    _ => Vec::new(),
                }
            }
            Kind::Summary => match self.summary(user, id).await? {
                Some(summary) if summary.status != SummaryStatus::Failed => {
                    let failed = Summary { status: SummaryStatus::Failed, updated_at: self.now, ..summary };
                    vec![Change::PutSummary(Box::new(failed))]
                }
                _ => Vec::new(),
            },
            Kind::Session => {
                let Ok(session) = SessionId::new(id.clone()) else { return Ok(Vec::new()) };
                match self.vault.index.session(user, &session).await? {
                    Some(_) => vec![Change::PutState { session, state: Box::default() }],
                    None => Vec::new(),
                }
            }
            Kind::Key => {
                let Ok(id) = id.parse() else { return Ok(Vec::new()) };
                let query =
                    KeyQuery { id: Some(id), user: Some(user.clone()), revoked: false, page: Page::first(1) };
                let live = !self.vault.index.keys(&query).await?.is_empty();
                if live { vec![Change::RevokeKey { id }] } else { Vec::new() }
            }
        })
    }

    /// Has the tombstone of a removed file written.
    async fn mark_removed(&mut self, user: &UserId, entry: &Entry) -> Result<()> {
        let id = &entry.item.id;
        match entry.item.kind {
            Kind::Turn => {
                if let Ok(id) = id.parse() {
                    self.dirty.turns.entry((user.clone(), id)).or_default();
                }
            }
            Kind::Memory => {
                if let Ok(id) = id.parse() {
                    self.dirty.note_memory(user, id);
                }
            }
            Kind::Summary => {
                if let Some(summary) = self.summary(user, id).await? {
                    self.dirty.summaries.insert((user.clone(), summary.session, summary.id));
                }
            }
            Kind::Session | Kind::Key => {}
        }
        Ok(())
    }

    /// A summary by its id.
    pub(super) async fn summary(&self, user: &UserId, id: &str) -> Result<Option<Summary>> {
        for session in self.vault.index.sessions(user, Page::first(u32::MAX)).await? {
            let summaries = self.vault.index.summaries(user, &all_summaries(&session.id)).await?;
            if let Some(summary) = summaries.into_iter().find(|summary| summary.id.to_string() == id) {
                return Ok(Some(summary));
            }
        }
        Ok(None)
    }
}

/// The value of a key that may have been edited in a file of an earlier version.
fn edited<T: PartialEq + Clone>(given: T, former: &T, current: &T) -> T {
    if given == *former { current.clone() } else { given }
}

fn ids<'a, T: std::str::FromStr>(items: impl Iterator<Item = &'a Item>, kind: Kind) -> Vec<T> {
    items.filter(|item| item.key.kind == kind).filter_map(|item| item.key.id.parse().ok()).collect()
}

fn is_incomplete(item: &Item) -> bool {
    matches!(&item.what, What::Entry(reading) if reading.incomplete)
}

/// Whether an unchanged file was moved out of the deleted files.
pub(super) fn is_brought_back(item: &Item) -> bool {
    let Some(before) = &item.found.elsewhere else { return false };
    let was_deleted = layout::place(&before.path).is_some_and(|place| place.deleted);
    was_deleted && !item.found.place.deleted && before.hash == item.found.hash
}

fn summary_difference(reading: &ReadItem, summary: &Summary) -> Difference {
    let Given::Summary(given) = &reading.given else { return Difference::None };
    let mut given = (**given).clone();
    if reading.bare {
        given = Summary { text: given.text, ..summary.clone() };
    }
    if reading.timeless {
        (given.created_at, given.updated_at) = (summary.created_at, summary.updated_at);
    }
    if given == *summary {
        Difference::None
    } else {
        Difference::Changes(vec![Change::PutSummary(Box::new(given))])
    }
}

fn session_difference(file: &SessionFile, session: &SessionFile) -> Difference {
    if file.state == session.state && file.progress == session.progress {
        return Difference::None;
    }
    Difference::Changes(session_changes(file))
}

/// The changes that give a session what its file says.
pub(super) fn session_changes(file: &SessionFile) -> Vec<Change> {
    let state = Change::PutState { session: file.session.clone(), state: Box::new(file.state.clone()) };
    let progress = file.progress.iter().map(|(purpose, revision)| Change::SetProgress {
        space: session_space(purpose, &file.session),
        revision: *revision,
    });
    std::iter::once(state).chain(progress).collect()
}
