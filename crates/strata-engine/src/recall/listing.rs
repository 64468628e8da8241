//! Questions for everything of one kind: «what is on my to-do list?» is answered by the current todos.
//!
//! Such a question names the kind and no thing, so neither words nor vectors lead to the memories. What the ranking finds beside
//! them stays behind them. The walls of a session hold for them as for any other candidate.

use std::cmp::Reverse;

use super::Recall;
use super::candidates::{Candidate, CandidateSet};
use super::request::{Order, RecallPlan, RecallRequest};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::memory::{Memory, MemoryKind};
use strata_core::scope::Scope;
use strata_core::store::{MemoryQuery, MemorySelect, Page};
use strata_core::trace::RetrievalPath;
use strata_language::cues::{Listed, listed};

/// The probability that a memory of the kind that a question asks for helps: such a question leaves no doubt.
const LISTED: f32 = 0.9;

/// The share of its standing that any other item keeps beside a list, so that it stays behind the list.
const BESIDE: f32 = 0.5;

impl Recall {
    /// Puts the current memories of the kind that the question asks for before all other candidates, the newest first.
    pub(super) async fn list_kind(
        &self,
        user: &UserId,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &mut CandidateSet,
    ) -> Result<()> {
        let asked =
            listed(&request.query).filter(|_| request.order == Order::Served && request.kinds.memories);
        let Some(asked) = asked else { return Ok(()) };
        let mut memories = Vec::new();
        for owner in plan.scope.owners(user, plan.shared) {
            for kind in kinds(asked) {
                memories.extend(self.of_kind(&owner, *kind, request, plan).await?);
            }
        }
        put_first(found, memories);
        Ok(())
    }

    /// The newest current memories of a kind that the request may see.
    async fn of_kind(
        &self,
        owner: &UserId,
        kind: MemoryKind,
        request: &RecallRequest,
        plan: &RecallPlan,
    ) -> Result<Vec<Memory>> {
        let query = MemoryQuery {
            kind: Some(kind),
            keep: request.filter.as_ref().map(|filter| filter.keep(owner)),
            page: Page::first(plan.pool as u32),
            ..MemoryQuery::new(MemorySelect::Current { as_of: request.as_of })
        };
        let mut memories = self.store.memories(owner, &query).await?;
        let is_here = |memory: &Memory| memory.session.is_none() || memory.session == request.session;
        memories.retain(|memory| plan.scope != Scope::Session || is_here(memory));
        memories.retain(|memory| !request.shown.items.contains(&ItemId::Memory(memory.id)));
        Ok(memories)
    }
}

/// The kinds of memories that a question asks for.
fn kinds(asked: Listed) -> &'static [MemoryKind] {
    match asked {
        Listed::Todos => &[MemoryKind::Todo],
        Listed::Plans => &[MemoryKind::Todo, MemoryKind::Schedule],
        Listed::Schedule => &[MemoryKind::Schedule],
        Listed::Preferences => &[MemoryKind::Preference],
        Listed::Instructions => &[MemoryKind::Instruction],
        Listed::Decisions => &[MemoryKind::Decision],
    }
}

/// Puts memories before the candidates, which keep their ranking if they were among them.
fn put_first(found: &mut CandidateSet, mut memories: Vec<Memory>) {
    if memories.is_empty() {
        return;
    }
    memories.sort_by_key(|memory| Reverse((memory.recorded_at, memory.id)));
    let rest = std::mem::take(&mut found.candidates);
    let is_listed = |id: ItemId| memories.iter().any(|memory| ItemId::Memory(memory.id) == id);
    let behind = rest.iter().filter(|candidate| !is_listed(candidate.id)).cloned();
    let behind: Vec<Candidate> =
        behind.map(|candidate| Candidate { standing: BESIDE * candidate.standing, ..candidate }).collect();
    let score = rest.first().map_or(LISTED, |best| best.score);
    found.candidates.extend(memories.iter().map(|memory| {
        let id = ItemId::Memory(memory.id);
        let ranked = rest.iter().find(|known| known.id == id).cloned();
        let recorded = memory.recorded_at.as_microsecond();
        let listed = ranked.unwrap_or_else(|| Candidate::unranked(id, recorded, score, LISTED));
        Candidate { score, relevance: LISTED, standing: 1.0, ..listed }
    }));
    found.candidates.extend(behind);
    found.is_list = true;
    if found.path == RetrievalPath::None {
        found.path = RetrievalPath::Fts;
    }
}
