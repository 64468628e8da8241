//! Forgetting: destroys the named data, and everything that depends on it alone.

use std::collections::{BTreeSet, VecDeque};

use super::user_data::{UserData, unknown};
use crate::error::Result;
use crate::id::{ItemId, MemoryId, SessionId};
use crate::memory::Memory;
use crate::store::{Forget, Removed, SESSION_PURPOSES, session_space};

impl UserData {
    pub(super) fn forget(&mut self, what: Forget, removed: &mut Removed) -> Result<()> {
        let before = *removed;
        match what {
            Forget::Session(session) => self.forget_session(&session, removed)?,
            Forget::Memory(id) => {
                if !self.memories.contains(&id) {
                    return Err(unknown("memory", id));
                }
                self.forget_memories(&self.replaced_by(id), removed);
            }
            Forget::Memories => {
                self.forget_memories(&self.memories.rows().keys().copied().collect(), removed);
            }
            Forget::User => {
                removed.sessions += self.sessions.remove_where(|_, _| true);
                removed.turns += self.turns.remove_where(|_, _| true);
                removed.memories += self.memories.remove_where(|_, _| true);
                removed.summaries += self.summaries.remove_where(|_, _| true);
                self.places.remove_where(|_, _| true);
                self.vectors.remove_where(|_, _| true);
                self.revisions.remove_where(|_, _| true);
                self.segments.remove_where(|_, _| true);
                self.progress.remove_where(|_, _| true);
                self.jobs.remove_where(|_, _| true);
                self.requests.remove_where(|_, _| true);
                self.keys.remove_where(|_, _| true);
                self.answers.remove_where(|_, _| true);
            }
        }
        if *removed != before {
            self.forget_segments();
        }
        Ok(())
    }

    /// Destroys all segments, because the store cannot read their content. Their spaces begin anew.
    fn forget_segments(&mut self) {
        let spaces: BTreeSet<String> = self.segments.rows().keys().map(|(space, _)| space.clone()).collect();
        self.segments.remove_where(|_, _| true);
        self.progress.remove_where(|space, _| spaces.contains(space));
    }

    /// Whether a memory is bound to a session, or only this session's turns say it.
    fn is_of_session(&self, memory: &Memory, session: &SessionId) -> bool {
        // Turns that were destroyed before do not count as sources.
        let mut said = memory.source_turns.iter().filter_map(|id| self.turns.get(id)).peekable();
        let only_here = said.peek().is_some() && said.all(|turn| turn.session == *session);
        memory.session.as_ref() == Some(session) || only_here
    }

    fn forget_session(&mut self, session: &SessionId, removed: &mut Removed) -> Result<()> {
        let bound = self.memories.rows().values().filter(|memory| self.is_of_session(memory, session));
        let bound: BTreeSet<MemoryId> = bound.map(|memory| memory.id).collect();
        let existed = self.sessions.remove(session);
        // A memory may be bound to a session that does not exist yet.
        if !existed && bound.is_empty() {
            return Err(unknown("session", session));
        }
        removed.sessions += u64::from(existed);
        removed.turns += self.turns.remove_where(|_, turn| turn.session == *session);
        removed.summaries += self.summaries.remove_where(|_, summary| summary.session == *session);
        self.places.remove_where(|(of, _), _| of == session);
        self.jobs.remove_where(|_, job| job.session.as_ref() == Some(session));
        for purpose in SESSION_PURPOSES {
            self.progress.remove(&session_space(purpose, session));
        }
        // Their questions were asked in the session.
        self.requests.remove_where(|_, request| request.session.as_ref() == Some(session));
        self.forget_memories(&bound, removed);
        Ok(())
    }

    fn forget_memories(&mut self, ids: &BTreeSet<MemoryId>, removed: &mut Removed) {
        removed.memories += self.memories.remove_where(|id, _| ids.contains(id));
        let orphans = self.memories.rows().values();
        let orphans = orphans.filter(|memory| memory.replaced_by.is_some_and(|id| ids.contains(&id)));
        let orphans: Vec<Memory> = orphans.cloned().collect();
        for memory in orphans {
            self.touch(ItemId::Memory(memory.id));
            self.memories.put(memory.id, Memory { replaced_by: None, ..memory });
        }
        let (turns, memories, summaries) = (&self.turns, &self.memories, &self.summaries);
        let is_gone = |item: &ItemId| match item {
            ItemId::Turn(id) => !turns.contains(id),
            ItemId::Memory(id) => !memories.contains(id),
            ItemId::Summary(id) => !summaries.contains(id),
        };
        self.vectors.remove_where(|(item, _), _| is_gone(item));
        self.revisions.remove_where(|item, _| is_gone(item));
    }

    fn replaced_directly_by(&self, id: MemoryId) -> Vec<MemoryId> {
        let memories = self.memories.rows().values();
        memories.filter(|memory| memory.replaced_by == Some(id)).map(|memory| memory.id).collect()
    }

    /// A memory and all that it replaced, directly or through others.
    pub(super) fn replaced_by(&self, id: MemoryId) -> BTreeSet<MemoryId> {
        let mut found = BTreeSet::from([id]);
        let mut open = VecDeque::from([id]);
        while let Some(id) = open.pop_front() {
            open.extend(self.replaced_directly_by(id).into_iter().filter(|former| found.insert(*former)));
        }
        found
    }
}
