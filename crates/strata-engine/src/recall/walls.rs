//! Walls between a user's sessions. A memory that is bound to no session is visible in all of them; a request that is
//! confined to one session must not see it if it was learned from the turns of another.

use std::collections::HashSet;

use super::Recall;
use super::candidates::CandidateSet;
use super::request::RecallRequest;
use strata_core::error::Result;
use strata_core::id::{ItemId, MemoryId, SessionId, TurnId, UserId};
use strata_core::memory::Memory;
use strata_core::store::{MemoryQuery, MemorySelect, TurnQuery};

impl Recall {
    /// Drops the candidates that were learned in other sessions. Memories that were added by hand for no session stay,
    /// and so do those that all users share.
    pub(super) async fn exclude_learned_elsewhere(
        &self,
        request: &RecallRequest,
        found: &mut CandidateSet,
    ) -> Result<()> {
        let (Some(session), Some(user)) = (&request.session, found.owners.first()) else { return Ok(()) };
        let ids: Vec<MemoryId> = found.candidates.iter().filter_map(|found| memory_id(found.id)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let memories = self.store.memories(user, &MemoryQuery::new(MemorySelect::Ids(ids))).await?;
        let elsewhere = self.learned_elsewhere(user, session, &memories).await?;
        let is_elsewhere = |id: &ItemId| memory_id(*id).is_some_and(|id| elsewhere.contains(&id));
        found.candidates.retain(|candidate| !is_elsewhere(&candidate.id));
        for candidate in &mut found.candidates {
            candidate.replaced_by = candidate.replaced_by.filter(|current| !is_elsewhere(current));
        }
        Ok(())
    }

    /// Those of a user's memories that are bound to no session and were learned in others than `session`.
    pub(crate) async fn learned_elsewhere(
        &self,
        user: &UserId,
        session: &SessionId,
        memories: &[Memory],
    ) -> Result<HashSet<MemoryId>> {
        let learned: Vec<&Memory> =
            memories.iter().filter(|memory| memory.session.is_none() && is_learned(memory)).collect();
        let sources: HashSet<TurnId> =
            learned.iter().flat_map(|memory| memory.source_turns.iter().copied()).collect();
        if learned.is_empty() {
            return Ok(HashSet::new());
        }
        let turns = self.store.turns(user, &TurnQuery::Ids(sources.into_iter().collect())).await?;
        let here: HashSet<TurnId> =
            turns.iter().filter(|turn| turn.session == *session).map(|turn| turn.id).collect();
        let is_from_here = |memory: &Memory| {
            !memory.source_turns.is_empty() && memory.source_turns.iter().all(|turn| here.contains(turn))
        };
        Ok(learned.into_iter().filter(|memory| !is_from_here(memory)).map(|memory| memory.id).collect())
    }
}

/// Whether a memory comes from turns or a summary. A memory that was added by hand has no source.
fn is_learned(memory: &Memory) -> bool {
    !memory.source_turns.is_empty() || memory.source_summary.is_some()
}

fn memory_id(item: ItemId) -> Option<MemoryId> {
    match item {
        ItemId::Memory(id) => Some(id),
        ItemId::Turn(_) | ItemId::Summary(_) => None,
    }
}
