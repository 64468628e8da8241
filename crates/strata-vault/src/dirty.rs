//! The items whose files a change set makes out of date.

use std::collections::{BTreeMap, BTreeSet};

use strata_core::store::{Applied, Change, ChangeSet, Forget, SESSION_PURPOSES, session_space};
use strata_core::{KeyId, MemoryId, SessionId, SummaryId, TurnId, UserId};

use super::form::{Keyed, TurnExtra};
use super::snapshot::{ItemKey, Kind};

/// Items by their ids, each with what only its file has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    pub(crate) turns: BTreeMap<(UserId, TurnId), TurnExtra>,
    pub(crate) memories: BTreeMap<(UserId, MemoryId), Option<Keyed>>,
    pub(crate) summaries: BTreeSet<(UserId, SessionId, SummaryId)>,
    pub(crate) sessions: BTreeSet<(UserId, SessionId)>,
    pub(crate) keys: BTreeSet<(UserId, KeyId)>,
    /// Users of whom something was destroyed.
    pub(crate) forgetting: BTreeSet<UserId>,
    /// Items that were destroyed with everything in their folder: a user's session, or all of a user (`None`).
    pub(crate) emptied: BTreeSet<(UserId, Option<SessionId>)>,
}

impl Dirty {
    /// The items that a change set changes.
    pub(crate) fn of(user: &UserId, changes: &ChangeSet) -> Self {
        let mut dirty = Self::default();
        for change in &changes.changes {
            dirty.note(user, changes, change);
        }
        dirty.note_key(user, changes);
        dirty
    }

    fn note(&mut self, user: &UserId, set: &ChangeSet, change: &Change) {
        match change {
            Change::AppendTurns { session, turns } => {
                for turn in turns {
                    let extra = TurnExtra { recorded_at: Some(set.at), keyed: None };
                    self.turns.insert((user.clone(), turn.id), extra);
                }
                // The first turn tells of its session; a session without one needs a file of its own.
                if turns.is_empty() {
                    self.sessions.insert((user.clone(), session.clone()));
                }
            }
            Change::HideTurns { ids, .. } => {
                for id in ids {
                    self.turns.entry((user.clone(), *id)).or_default();
                }
            }
            Change::PutState { session, .. } => {
                self.sessions.insert((user.clone(), session.clone()));
            }
            Change::PutSummary(summary) => {
                self.summaries.insert((user.clone(), summary.session.clone(), summary.id));
            }
            Change::AddMemory(memory) => self.note_memory(user, memory.id),
            Change::ReviseMemory { id, archive_as, .. } => {
                self.note_memory(user, *id);
                self.note_memory(user, *archive_as);
            }
            Change::CloseMemory { id, .. }
            | Change::NoteMemory { id, .. }
            | Change::ConfirmMemory { id, .. }
            | Change::HideMemory { id, .. } => self.note_memory(user, *id),
            Change::SetProgress { space, .. } => {
                self.sessions.extend(session_of(space).map(|session| (user.clone(), session)));
            }
            Change::AddKey(key) => drop(self.keys.insert((user.clone(), key.id))),
            Change::RevokeKey { id } => drop(self.keys.insert((user.clone(), *id))),
            Change::Forget(forget) => self.note_forgotten(user, forget),
            // Derived and passing data has no file: it is made again from the rest, or it is lost with the index.
            Change::PutVectors(_)
            | Change::PutSegment { .. }
            | Change::MergeSegments { .. }
            | Change::DropSegments { .. }
            | Change::EnqueueJob(_)
            | Change::EnqueueOnce(_)
            | Change::FinishJob { .. }
            | Change::RetryJob { .. }
            | Change::PruneJobs { .. }
            | Change::AddRequest(_)
            | Change::AddFeedback { .. }
            | Change::PruneRequests { .. }
            | Change::PruneIdempotency { .. } => {}
        }
    }

    fn note_forgotten(&mut self, user: &UserId, forget: &Forget) {
        self.forgetting.insert(user.clone());
        let session = match forget {
            Forget::User => None,
            Forget::Session(session) => Some(session.clone()),
            Forget::Memory(_) | Forget::Memories => return,
        };
        self.emptied.insert((user.clone(), session));
    }

    pub(crate) fn note_memory(&mut self, user: &UserId, id: MemoryId) {
        self.memories.entry((user.clone(), id)).or_default();
    }

    /// Notes the key of a write on the first turn, or on the first memory, that it makes.
    fn note_key(&mut self, user: &UserId, set: &ChangeSet) {
        let Some(idempotency) = &set.idempotency else { return };
        let keyed =
            |turns| Keyed { key: idempotency.key.clone(), fingerprint: idempotency.fingerprint, turns };
        let mut appends = set.changes.iter().filter_map(|change| match change {
            Change::AppendTurns { turns, .. } => Some(turns),
            _ => None,
        });
        match (appends.next(), appends.next()) {
            (Some(turns), None) => {
                let Some(first) = turns.first() else { return };
                let extra = TurnExtra { recorded_at: Some(set.at), keyed: Some(keyed(turns.len())) };
                self.turns.insert((user.clone(), first.id), extra);
            }
            (None, _) => {
                let added = set.changes.iter().find_map(|change| match change {
                    Change::AddMemory(memory) => Some(memory.id),
                    _ => None,
                });
                if let Some(id) = added {
                    self.memories.insert((user.clone(), id), Some(keyed(0)));
                }
            }
            // The answer to a write of several sessions is not kept beyond the index.
            (Some(_), Some(_)) => {}
        }
    }

    /// The turns of an earlier answer, whose files may be on their way.
    pub(crate) fn replayed(user: &UserId, applied: &Applied) -> Self {
        let turns =
            applied.turns.iter().map(|turn| ((user.clone(), turn.id), TurnExtra::default())).collect();
        Self { turns, ..Self::default() }
    }

    /// Adds other items.
    pub(crate) fn merge(&mut self, other: Self) {
        for (key, extra) in other.turns {
            let known = self.turns.entry(key).or_default();
            if *known == TurnExtra::default() {
                *known = extra;
            }
        }
        for (key, keyed) in other.memories {
            let known = self.memories.entry(key).or_default();
            *known = known.take().or(keyed);
        }
        self.summaries.extend(other.summaries);
        self.sessions.extend(other.sessions);
        self.keys.extend(other.keys);
        self.forgetting.extend(other.forgetting);
        self.emptied.extend(other.emptied);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
            && self.memories.is_empty()
            && self.summaries.is_empty()
            && self.sessions.is_empty()
            && self.keys.is_empty()
            && self.forgetting.is_empty()
            && self.emptied.is_empty()
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.turns.len() + self.memories.len() + self.summaries.len() + self.sessions.len() + self.keys.len()
    }
}

/// The session whose own space this is.
fn session_of(space: &str) -> Option<SessionId> {
    let (purpose, session) = space.strip_prefix("session:")?.split_once(':')?;
    let session = SessionId::new(session).ok()?;
    (SESSION_PURPOSES.contains(&purpose) && session_space(purpose, &session) == space).then_some(session)
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owed {
    /// The file of an item is brought up to date.
    File(ItemKey),
    /// The files of a user's items that are gone are removed.
    Sweep(UserId),
    /// The remains of a forgotten session or user are removed.
    Empty(UserId, Option<SessionId>),
}

impl Dirty {
    /// Whether this is to be done.
    pub(crate) fn holds(&self, owed: &Owed) -> bool {
        !self.only(owed).is_empty()
    }

    /// One of these things alone.
    pub(crate) fn only(&self, owed: &Owed) -> Self {
        let mut one = Self::default();
        match owed {
            Owed::File(key) => self.add_item(key, &mut one),
            Owed::Sweep(user) => one.forgetting.extend(self.forgetting.get(user).cloned()),
            Owed::Empty(user, session) => {
                one.emptied.extend(self.emptied.get(&(user.clone(), session.clone())).cloned());
            }
        }
        one
    }

    /// Adds one of these items to another collection.
    fn add_item(&self, key: &ItemKey, one: &mut Self) {
        let is_it = |user: &UserId, id: String| *user == key.user && id == key.id;
        match key.kind {
            Kind::Turn => {
                let found = self.turns.iter().find(|((user, id), _)| is_it(user, id.to_string()));
                one.turns.extend(found.map(|(key, extra)| (key.clone(), extra.clone())));
            }
            Kind::Memory => {
                let found = self.memories.iter().find(|((user, id), _)| is_it(user, id.to_string()));
                one.memories.extend(found.map(|(key, keyed)| (key.clone(), keyed.clone())));
            }
            Kind::Summary => {
                let found = self.summaries.iter().find(|(user, _, id)| is_it(user, id.to_string()));
                one.summaries.extend(found.cloned());
            }
            Kind::Session => {
                let found = self.sessions.iter().find(|(user, session)| is_it(user, session.to_string()));
                one.sessions.extend(found.cloned());
            }
            Kind::Key => {
                let found = self.keys.iter().find(|(user, id)| is_it(user, id.to_string()));
                one.keys.extend(found.cloned());
            }
        }
    }
}
