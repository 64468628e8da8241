//! A filter's share in recall: which of a user's items may be candidates at all.
//!
//! What clients attach is not in the index in memory, which holds what ranking needs. So the items are read once and the
//! filter is asked before anything is ranked: the best of what it lets through are found, however few these are.

use super::Recall;
use std::collections::HashSet;

use super::request::RecallRequest;
use crate::filter::{Filter, Subject};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::store::{Hit, Item, MemoryQuery, MemorySelect};

/// How many items are read at a time.
const READ_AT_ONCE: u32 = 5_000;

/// How many hits of a store's own index, or recent turns, are looked through for those that a filter lets pass.
pub(super) const LOOKED_THROUGH: u32 = 10_000;

impl Recall {
    /// What of an owner's items the request's filter lets pass; all of them where this is `None`.
    pub(super) async fn let_through(
        &self,
        owner: &UserId,
        request: &RecallRequest,
    ) -> Result<Option<HashSet<ItemId>>> {
        let Some(filter) = request.filter.as_ref().filter(|filter| !filter.is_only(owner)) else {
            return Ok(None);
        };
        let mut passed = HashSet::new();
        if !request.kinds.turns {
            let all = MemoryQuery::new(MemorySelect::All);
            let memories = self.store.memories(owner, &all).await?;
            let memories = memories.iter().filter(|memory| filter.matches(Subject::Memory(owner, memory)));
            passed.extend(memories.map(|memory| ItemId::Memory(memory.id)));
            return Ok(Some(passed));
        }
        let mut after = 0;
        loop {
            let items = self.store.feed(owner, after, READ_AT_ONCE).await?;
            let Some((last, _)) = items.last() else { return Ok(Some(passed)) };
            after = *last;
            let items = items.iter().filter(|(_, item)| passes(filter, owner, item));
            passed.extend(items.map(|(_, item)| item.id()));
        }
    }
}

/// Whether a filter, if there is one, lets an item pass.
fn passes(filter: &Filter, owner: &UserId, item: &Item) -> bool {
    Subject::of(owner, item).is_some_and(|subject| filter.matches(subject))
}

/// Keeps what the request's filter lets pass.
pub(super) fn narrow(request: &RecallRequest, owner: &UserId, hits: &mut Vec<Hit>) {
    if let Some(filter) = &request.filter {
        hits.retain(|hit| passes(filter, owner, &hit.item));
    }
}
