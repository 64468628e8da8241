//! One user's data, and how a change set changes it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::index::Index;
use super::table::JournaledTable;
use crate::error::{Error, Result};
use crate::id::{ItemId, JobId, KeyId, MemoryId, RequestId, SessionId, SummaryId, TurnId, UserId};
use crate::job::{Job, JobStatus};
use crate::key::ApiKey;
use crate::memory::{Memory, MemoryNotes};
use crate::metric::{Feedback, RequestMetric};
use crate::session::Session;
use crate::state::State;
use crate::store::{
    AppendedTurn, Applied, Change, ChangeSet, Expectation, Head, Idempotency, Removed, Segment,
};
use crate::summary::{Summary, SummaryStatus};
use crate::turn::{Hidden, Metadata, NewTurn, Turn};
use crate::vector::{ItemVector, Vector};

/// Everything of one user.
///
/// It stays when the user is forgotten, with nothing in it but its counters. If they began again at zero, an index or a
/// writer elsewhere could take a new user's data for the forgotten one's.
#[derive(Default)]
pub(super) struct UserData {
    pub(super) head: Head,
    /// Counts the change sets. The sessions that a change set writes to take the count as their version.
    writes: u64,
    pub(super) sessions: JournaledTable<SessionId, Session>,
    pub(super) turns: JournaledTable<TurnId, Turn>,
    pub(super) places: JournaledTable<(SessionId, u64), TurnId>,
    pub(super) summaries: JournaledTable<SummaryId, Summary>,
    pub(super) memories: JournaledTable<MemoryId, Memory>,
    pub(super) vectors: JournaledTable<(ItemId, String), (u64, Vector)>,
    /// The revision of each item's last change.
    pub(super) revisions: JournaledTable<ItemId, u64>,
    pub(super) segments: JournaledTable<(String, u64), Segment>,
    pub(super) progress: JournaledTable<String, u64>,
    pub(super) jobs: JournaledTable<JobId, Job>,
    pub(super) requests: JournaledTable<RequestId, RequestMetric>,
    pub(super) keys: JournaledTable<KeyId, ApiKey>,
    pub(super) answers: JournaledTable<String, StoredAnswer>,
    pub(super) index: Index,
}

/// The answer that was given under an idempotency key.
#[derive(Clone)]
pub(super) struct StoredAnswer {
    fingerprint: u64,
    at: Timestamp,
    applied: Applied,
}

/// Runs one method on every table.
macro_rules! for_all_tables {
    ($data:ident, $method:ident) => {
        $data.sessions.$method();
        $data.turns.$method();
        $data.places.$method();
        $data.summaries.$method();
        $data.memories.$method();
        $data.vectors.$method();
        $data.revisions.$method();
        $data.segments.$method();
        $data.progress.$method();
        $data.jobs.$method();
        $data.requests.$method();
        $data.keys.$method();
        $data.answers.$method();
    };
}

impl UserData {
    /// Applies all of `changes` or nothing.
    pub(super) fn apply_all(&mut self, user: &UserId, changes: ChangeSet) -> Result<Applied> {
        let ChangeSet { at, idempotency, expect, changes } = changes;
        if let Some(idempotency) = &idempotency
            && let Some(kept) = self.answers.get(&idempotency.key)
        {
            if kept.fingerprint != idempotency.fingerprint {
                return Err(Error::conflict(format!(
                    "idempotency key `{}` was used for another request; use a new key",
                    idempotency.key
                )));
            }
            return Ok(Applied { replayed: true, ..kept.applied.clone() });
        }
        if let Some(broken) = expect.iter().find(|expectation| !self.holds(expectation)) {
            return Err(broken.conflict());
        }
        self.writes += 1;
        let mut applied = Applied::default();
        for change in changes {
            if let Err(error) = self.apply(user, at, change, &mut applied) {
                for_all_tables!(self, roll_back);
                return Err(error);
            }
        }
        if let Some(idempotency) = idempotency {
            let Idempotency { key, fingerprint } = idempotency;
            self.answers.put(key, StoredAnswer { fingerprint, at, applied: applied.clone() });
        }
        self.raise_head(applied.removed != Removed::default());
        self.commit();
        Ok(applied)
    }

    fn holds(&self, expectation: &Expectation) -> bool {
        match expectation {
            Expectation::Session { id, version } => {
                self.sessions.get(id).map_or(0, |session| session.version) == *version
            }
            Expectation::Memories { revision, epoch } => {
                let mut revisions = self.revisions.rows().iter();
                let changed = |(item, changed): (&ItemId, &u64)| {
                    matches!(item, ItemId::Memory(_)) && changed > revision
                };
                self.head.epoch == *epoch && !revisions.any(changed)
            }
            Expectation::Progress { space, revision } => self.progress(space) == *revision,
        }
    }

    /// Raises the counters of the head for the changes of the set.
    fn raise_head(&mut self, destroyed: bool) {
        let Head { revision, epoch, vectors } = self.head;
        let written = self.vectors.commit();
        let stored =
            written.iter().filter_map(|(key, _)| self.vectors.get(key)).any(|(stored, _)| *stored > vectors);
        let changed = self.revisions.commit();
        let raise = (changed.len() as u64).max(u64::from(destroyed));
        for (item, _) in changed {
            // All items of a set carry the revision to which the set leads.
            if self.revisions.contains(&item) {
                self.revisions.put(item, revision + raise);
            }
        }
        self.head = Head {
            revision: revision + raise,
            epoch: epoch + u64::from(destroyed),
            vectors: vectors + u64::from(stored),
        };
    }

    /// Makes the changes final and brings the text index up to date with them.
    fn commit(&mut self) {
        let turns = self.turns.commit().into_iter();
        let turns = turns.map(|(id, before)| (ItemId::Turn(id), before.map(|turn| turn.content)));
        let memories = self.memories.commit().into_iter();
        let memories = memories.map(|(id, before)| (ItemId::Memory(id), before.map(|memory| memory.content)));
        let mut seen = BTreeSet::new();
        for (item, before) in turns.chain(memories) {
            // Only the first entry of an item has the value that is in the index.
            if seen.insert(item) {
                self.reindex(item, before);
            }
        }
        for_all_tables!(self, commit);
    }

    /// Replaces an item's text in the text index.
    fn reindex(&mut self, item: ItemId, before: Option<String>) {
        let after = match item {
            ItemId::Turn(id) => self.turns.get(&id).map(|turn| &turn.content),
            ItemId::Memory(id) => self.memories.get(&id).map(|memory| &memory.content),
            ItemId::Summary(_) => None,
        };
        if before.as_ref() == after {
            return;
        }
        if let Some(before) = before {
            self.index.remove(item, &before);
        }
        if let Some(after) = after {
            self.index.insert(item, after);
        }
    }

    fn apply(&mut self, user: &UserId, at: Timestamp, change: Change, applied: &mut Applied) -> Result<()> {
        match change {
            Change::AppendTurns { session, turns } => self.append(at, session, turns, applied),
            Change::HideTurns { ids, hidden } => {
                ids.into_iter().try_for_each(|id| self.hide_turn(id, hidden))
            }
            Change::PutState { session, state } => self.put_state(at, session, *state),
            Change::PutSummary(summary) => self.put_summary(*summary),
            Change::AddMemory(memory) => self.add_memory(*memory),
            Change::ReviseMemory { id, archive_as, content, metadata } => {
                self.revise_memory(at, id, archive_as, content, metadata)
            }
            Change::CloseMemory { id, valid_to, replaced_by } => self.close_memory(id, valid_to, replaced_by),
            Change::NoteMemory { id, notes } => {
                self.change_memory(id, |memory| memory.notes = notes.or(memory.notes))
            }
            Change::ConfirmMemory { id, turns } => self.change_memory(id, |memory| {
                Memory::confirm(&mut memory.source_turns, &turns);
            }),
            Change::HideMemory { id, hidden } => self.change_memory(id, |memory| memory.hidden = hidden),
            Change::PutVectors(vectors) => {
                self.put_vectors(vectors);
                Ok(())
            }
            Change::PutSegment { segment, epoch } => self.put_segment(segment, epoch),
            Change::MergeSegments { segment, epoch } => self.merge_segments(segment, epoch),
            Change::DropSegments { space } => {
                self.segments.remove_where(|(of, _), _| *of == space);
                self.progress.remove(&space);
                Ok(())
            }
            Change::SetProgress { space, revision } => {
                self.progress.put(space, revision);
                Ok(())
            }
            Change::EnqueueJob(job) => self.enqueue_job(user, *job),
            Change::EnqueueOnce(job) => self.enqueue_once(user, *job),
            Change::FinishJob { id, lease, outcome } => self.finish_job(at, id, lease, outcome),
            Change::RetryJob { id } => self.retry_job(at, id),
            Change::PruneJobs { before } => {
                self.jobs.remove_where(|_, job| job.status == JobStatus::Done && job.updated_at < before);
                Ok(())
            }
            Change::AddRequest(request) => self.add_request(*request),
            Change::AddFeedback { id, feedback } => self.add_feedback(id, feedback),
            Change::PruneRequests { before } => {
                self.requests.remove_where(|_, request| request.created_at < before);
                Ok(())
            }
            Change::PruneIdempotency { before } => {
                self.answers.remove_where(|_, answer| answer.at < before);
                Ok(())
            }
            Change::AddKey(key) => self.add_key(user, *key),
            Change::RevokeKey { id } => self.revoke_key(at, id),
            Change::Forget(what) => self.forget(what, &mut applied.removed),
        }
    }

    fn append(
        &mut self,
        at: Timestamp,
        id: SessionId,
        turns: Vec<NewTurn>,
        applied: &mut Applied,
    ) -> Result<()> {
        let mut session = self.session_at(&id, at);
        for turn in turns {
            if self.turns.contains(&turn.id) {
                return Err(Error::conflict(format!(
                    "turn `{}` exists already; give it another id",
                    turn.id
                )));
            }
            let turn = turn.at(id.clone(), session.turn_count);
            applied.turns.push(AppendedTurn { id: turn.id, seq: turn.seq });
            self.places.put((id.clone(), turn.seq), turn.id);
            self.touch(ItemId::Turn(turn.id));
            self.turns.put(turn.id, turn);
            session.turn_count += 1;
        }
        self.sessions.put(id, session);
        Ok(())
    }

    /// The session as a write at `at` leaves it; a new session if it does not exist.
    fn session_at(&self, id: &SessionId, at: Timestamp) -> Session {
        let found = self.sessions.get(id).cloned();
        let mut session = found.unwrap_or_else(|| Session::unwritten(id.clone(), at));
        session.version = self.writes;
        // Writers that overtake each other do not set the session's time back.
        session.updated_at = session.updated_at.max(at);
        session
    }

    fn hide_turn(&mut self, id: TurnId, hidden: Option<Hidden>) -> Result<()> {
        let turn = self.turns.get(&id).ok_or_else(|| unknown("turn", id))?;
        let turn = Turn { hidden, ..turn.clone() };
        self.touch(ItemId::Turn(id));
        self.turns.put(id, turn);
        Ok(())
    }

    fn put_state(&mut self, at: Timestamp, id: SessionId, state: State) -> Result<()> {
        let session = Session { state, ..self.session_at(&id, at) };
        self.sessions.put(id, session);
        Ok(())
    }

    fn put_summary(&mut self, summary: Summary) -> Result<()> {
        if !self.sessions.contains(&summary.session) {
            return Err(unknown("session", &summary.session));
        }
        if self.summaries.get(&summary.id).is_some_and(|before| before.session != summary.session) {
            return Err(Error::conflict(format!(
                "summary `{}` exists already in another session; give it another id",
                summary.id
            )));
        }
        let another_is_processing = || {
            self.summaries.rows().values().any(|other| {
                other.id != summary.id
                    && other.session == summary.session
                    && other.status == SummaryStatus::Processing
            })
        };
        if summary.status == SummaryStatus::Processing && another_is_processing() {
            return Err(Error::conflict(format!(
                "session `{}` is being summarised already; wait until that summary is completed or failed",
                summary.session
            )));
        }
        let before = self.summaries.get(&summary.id).map(|before| before.status);
        // Recall sees completed summaries only.
        if [before, Some(summary.status)].contains(&Some(SummaryStatus::Completed)) {
            self.touch(ItemId::Summary(summary.id));
        }
        self.summaries.put(summary.id, summary);
        Ok(())
    }

    /// Notes that this change set changes what recall sees of the item.
    pub(super) fn touch(&mut self, item: ItemId) {
        self.revisions.put(item, self.head.revision + 1);
    }

    fn add_memory(&mut self, memory: Memory) -> Result<()> {
        if self.memories.contains(&memory.id) {
            return Err(Error::conflict(format!(
                "memory `{}` exists already; give it another id",
                memory.id
            )));
        }
        self.touch(ItemId::Memory(memory.id));
        self.memories.put(memory.id, memory);
        Ok(())
    }

    fn revise_memory(
        &mut self,
        at: Timestamp,
        id: MemoryId,
        archive_as: MemoryId,
        content: String,
        metadata: Option<Metadata>,
    ) -> Result<()> {
        let memory = self.memories.get(&id).ok_or_else(|| unknown("memory", id))?.clone();
        let archived = Memory {
            id: archive_as,
            valid_to: Some(memory.valid_to.map_or(at, |end| end.min(at))),
            replaced_by: Some(id),
            ..memory.clone()
        };
        let metadata = metadata.unwrap_or_else(|| memory.metadata.clone());
        let notes = MemoryNotes { first_recorded_at: Some(memory.first_recorded_at()), ..memory.notes };
        let says_the_same = content == memory.content;
        let revised = Memory {
            source_turns: if says_the_same { memory.source_turns.clone() } else { Vec::new() },
            source_summary: memory.source_summary.filter(|_| says_the_same),
            content,
            metadata,
            notes,
            valid_from: at,
            recorded_at: at,
            ..memory
        };
        self.add_memory(archived)?;
        self.touch(ItemId::Memory(id));
        self.memories.put(id, revised);
        // A vector of the old statement would match questions that the new one does not answer.
        self.vectors.remove_where(|(item, _), _| *item == ItemId::Memory(id));
        Ok(())
    }

    fn close_memory(
        &mut self,
        id: MemoryId,
        valid_to: Timestamp,
        replaced_by: Option<MemoryId>,
    ) -> Result<()> {
        if let Some(successor) = replaced_by.filter(|successor| !self.memories.contains(successor)) {
            return Err(unknown("memory", successor));
        }
        self.change_memory(id, |memory| {
            memory.valid_to = Some(valid_to);
            memory.replaced_by = replaced_by;
        })
    }

    fn change_memory(&mut self, id: MemoryId, change: impl FnOnce(&mut Memory)) -> Result<()> {
        let mut memory = self.memories.get(&id).ok_or_else(|| unknown("memory", id))?.clone();
        change(&mut memory);
        self.touch(ItemId::Memory(id));
        self.memories.put(id, memory);
        Ok(())
    }

    fn expect_epoch(&self, segment: &Segment, epoch: u64) -> Result<()> {
        if self.head.epoch == epoch {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "a segment of `{}` was made in epoch {epoch}, before something was destroyed; make it anew",
            segment.space
        )))
    }

    fn merge_segments(&mut self, segment: Segment, epoch: u64) -> Result<()> {
        self.expect_epoch(&segment, epoch)?;
        let covered = self.segments(&segment.space, segment.first);
        let covered: Vec<_> = covered.take_while(|other| other.last <= segment.last).collect();
        let ends = (covered.first().map(|other| other.first), covered.last().map(|other| other.last));
        if covered.len() < 2 || ends != (Some(segment.first), Some(segment.last)) {
            return Err(Error::conflict(format!(
                "no segments of `{}` cover just the revisions {} to {}; read them again",
                segment.space, segment.first, segment.last
            )));
        }
        self.segments.remove_where(|(space, first), _| {
            *space == segment.space && (segment.first..=segment.last).contains(first)
        });
        self.segments.put((segment.space.clone(), segment.first), segment);
        Ok(())
    }

    fn put_segment(&mut self, segment: Segment, epoch: u64) -> Result<()> {
        self.expect_epoch(&segment, epoch)?;
        let progress = self.progress(&segment.space);
        if segment.first != progress + 1 || segment.last < segment.first {
            return Err(Error::conflict(format!(
                "a segment of `{}` begins at revision {} and not at {}; read the progress again",
                segment.space,
                segment.first,
                progress + 1
            )));
        }
        self.progress.put(segment.space.clone(), segment.last);
        self.segments.put((segment.space.clone(), segment.first), segment);
        Ok(())
    }

    fn put_vectors(&mut self, vectors: Vec<ItemVector>) {
        for ItemVector { item, model, vector } in vectors {
            let exists = match item {
                ItemId::Turn(id) => self.turns.contains(&id),
                ItemId::Memory(id) => self.memories.contains(&id),
                ItemId::Summary(id) => self.summaries.contains(&id),
            };
            if exists {
                self.vectors.put((item, model), (self.head.vectors + 1, vector));
            }
        }
    }

    fn add_request(&mut self, request: RequestMetric) -> Result<()> {
        if self.requests.contains(&request.id) {
            return Err(Error::conflict(format!("request `{}` exists already", request.id)));
        }
        self.requests.put(request.id, request);
        Ok(())
    }

    fn add_feedback(&mut self, id: RequestId, feedback: Feedback) -> Result<()> {
        let mut request = self.requests.get(&id).cloned().ok_or_else(|| unknown("request", id))?;
        request.feedback.push(feedback);
        self.requests.put(id, request);
        Ok(())
    }

    /// The store has checked already that no other user has the hash.
    fn add_key(&mut self, user: &UserId, key: ApiKey) -> Result<()> {
        if key.user != *user {
            return Err(Error::invalid(format!("key `{}` names another user than the call", key.id)));
        }
        if self.keys.rows().values().any(|other| other.id == key.id || other.hash == key.hash) {
            return Err(Error::conflict(format!("key `{}` exists already; make another", key.id)));
        }
        self.keys.put(key.id, key);
        Ok(())
    }

    fn revoke_key(&mut self, at: Timestamp, id: KeyId) -> Result<()> {
        let key = self.keys.get(&id).ok_or_else(|| unknown("key", id))?;
        let key = ApiKey { revoked_at: Some(key.revoked_at.unwrap_or(at)), ..key.clone() };
        self.keys.put(id, key);
        Ok(())
    }
}

pub(super) fn unknown(what: &str, id: impl std::fmt::Display) -> Error {
    Error::not_found(format!("{what} `{id}` does not exist for this user"))
}
