//! Eviction and pruning: hides old entries from recall. They stay stored and can be restored.
//!
//! The memory-proxy design deletes a session's oldest entries beyond a limit; Strata hides them. Summaries are exempt.
//! A restored entry is not evicted again: turns before the session's progress mark are never checked twice, and a
//! restored memory carries a note.

use jiff::{SignedDuration, Timestamp};

use super::Learning;
use crate::jobs::Work;
use strata_core::error::Result;
use strata_core::id::{MemoryId, SessionId, TurnId, UserId};
use strata_core::job::Job;
use strata_core::memory::Memory;
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, Page, TurnQuery, session_space};
use strata_core::turn::{Hidden, HiddenReason, Turn};

/// The number of turns in one read.
const PAGE: u32 = 1_000;

/// The number of sessions in one read, when pruning.
const SESSIONS_A_PAGE: u32 = 200;

/// An entry of a session that may be evicted.
enum Entry {
    Turn(TurnId, u64),
    Memory(MemoryId),
}

impl Learning {
    /// Whether a session has more entries than recall may see.
    pub(super) async fn is_over_full(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
    ) -> Result<bool> {
        let most = u64::from(self.settings.max_entries);
        if most == 0 {
            return Ok(false);
        }
        let mark = self.store.progress(user, &session_space("evict", session)).await?;
        let turns = turn_count.saturating_sub(mark);
        Ok(turns > most || turns + self.evictable_memories(user, session).await?.len() as u64 > most)
    }

    /// The memories that are bound to a session and were never restored.
    async fn evictable_memories(&self, user: &UserId, session: &SessionId) -> Result<Vec<Memory>> {
        let query = MemoryQuery {
            session: Some(session.clone()),
            ..MemoryQuery::new(MemorySelect::Current { as_of: None })
        };
        let mut memories = self.store.memories(user, &query).await?;
        memories.retain(|memory| memory.notes.restored_at.is_none());
        Ok(memories)
    }

    /// The changes of an `evict` job: it hides the oldest entries until the rest is within the limit.
    pub(super) async fn evict_job(&self, job: &Job) -> Result<Work> {
        let most = self.settings.max_entries as usize;
        let Some(session) = job.session.as_ref().filter(|_| most > 0) else { return Ok(Work::default()) };
        let space = session_space("evict", session);
        let mark = self.store.progress(&job.user, &space).await?;
        let mut entries: Vec<(Timestamp, Entry)> = Vec::new();
        for turn in self.visible_turns(&job.user, session, mark).await? {
            entries.push((turn.created_at, Entry::Turn(turn.id, turn.seq)));
        }
        for memory in self.evictable_memories(&job.user, session).await? {
            entries.push((memory.recorded_at, Entry::Memory(memory.id)));
        }
        let surplus = entries.len().saturating_sub(most);
        entries.sort_by_key(|(at, entry)| {
            (
                *at,
                match entry {
                    Entry::Turn(_, seq) => *seq,
                    Entry::Memory(_) => u64::MAX,
                },
            )
        });
        let hidden = Some(Hidden { reason: HiddenReason::Evicted, at: self.clock.now() });
        let (mut ids, mut changes, mut upto) = (Vec::new(), Vec::new(), mark);
        for (_, entry) in entries.into_iter().take(surplus) {
            match entry {
                Entry::Turn(id, seq) => {
                    ids.push(id);
                    upto = upto.max(seq + 1);
                }
                Entry::Memory(id) => changes.push(Change::HideMemory { id, hidden }),
            }
        }
        let mut work = Work::default();
        work.details.insert("evicted_turns".to_owned(), ids.len().into());
        work.details.insert("evicted_memories".to_owned(), changes.len().into());
        if !ids.is_empty() {
            changes.push(Change::HideTurns { ids, hidden });
            changes.push(Change::SetProgress { space, revision: upto });
        }
        work.changes = changes;
        Ok(work)
    }

    async fn visible_turns(&self, user: &UserId, session: &SessionId, from: u64) -> Result<Vec<Turn>> {
        let mut visible = Vec::new();
        let mut after = from.checked_sub(1);
        loop {
            let query = TurnQuery::Range { session: session.clone(), after, limit: PAGE };
            let turns = self.store.turns(user, &query).await?;
            let is_last = turns.len() < PAGE as usize;
            after = turns.last().map(|turn| turn.seq).or(after);
            visible.extend(turns.into_iter().filter(|turn| turn.hidden.is_none()));
            if is_last {
                return Ok(visible);
            }
        }
    }

    /// Hides the turns of a user's sessions that had no write for the number of days in the settings. Returns the
    /// number of hidden turns. Summaries and memories that were learned from the turns stay. A later write to a session
    /// does not bring its old turns back.
    pub async fn prune_sessions(&self, user: &UserId) -> Result<u64> {
        let days = i64::from(self.settings.prune_after_days);
        let now = self.clock.now();
        let Ok(before) = now.checked_sub(SignedDuration::from_hours(days * 24)) else { return Ok(0) };
        if days == 0 {
            return Ok(0);
        }
        let (mut offset, mut pruned) = (0, 0);
        loop {
            let page = Page { offset, limit: SESSIONS_A_PAGE };
            let sessions = self.store.sessions(user, page).await?;
            for session in sessions.iter().filter(|session| session.updated_at < before) {
                let space = session_space("prune", &session.id);
                let mark = self.store.progress(user, &space).await?;
                if mark >= session.turn_count {
                    continue;
                }
                let turns = self.visible_turns(user, &session.id, mark).await?;
                let ids: Vec<TurnId> = turns.into_iter().map(|turn| turn.id).collect();
                pruned += ids.len() as u64;
                let hidden = Some(Hidden { reason: HiddenReason::Evicted, at: now });
                let changes = vec![
                    Change::HideTurns { ids, hidden },
                    Change::SetProgress { space, revision: session.turn_count },
                ];
                self.store.apply(user, ChangeSet::new(now, changes)).await?;
            }
            if sessions.len() < SESSIONS_A_PAGE as usize {
                return Ok(pruned);
            }
            offset += u64::from(SESSIONS_A_PAGE);
        }
    }
}
