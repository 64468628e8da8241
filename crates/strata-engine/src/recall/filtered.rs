//! Filters in recall: which of a user's items may be candidates.
//!
//! The index in memory does not hold the metadata that clients attach. So the items are read once and the filter is
//! applied before the ranking. Recall then finds the best of the accepted items, however few they are.

use super::Recall;
use std::collections::HashSet;

use super::request::RecallRequest;
use crate::filter::{Filter, Subject};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::store::{Hit, Item, MemoryQuery, MemorySelect, Page};

/// The number of items in one read. Items may be as long as a turn may be, and only their ids are kept.
const READ_AT_ONCE: u32 = 500;

/// With a filter, this many hits of a store's own index, or recent turns, are searched for accepted ones.
pub(super) const FILTER_SCAN_LIMIT: u32 = 10_000;

impl Recall {
    /// The owner's items that the request's filter accepts; `None` if it accepts all.
    pub(super) async fn accepted_items(
        &self,
        owner: &UserId,
        request: &RecallRequest,
    ) -> Result<Option<HashSet<ItemId>>> {
        let Some(filter) = request.filter.as_ref().filter(|filter| !filter.is_only(owner)) else {
            return Ok(None);
        };
        let mut passed = HashSet::new();
        if !request.kinds.turns {
            self.accepted_memories(owner, filter, &mut passed).await?;
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

    /// Adds the memories that a filter accepts, read page by page.
    async fn accepted_memories(
        &self,
        owner: &UserId,
        filter: &Filter,
        passed: &mut HashSet<ItemId>,
    ) -> Result<()> {
        let mut offset = 0;
        loop {
            let page = Page { offset, limit: READ_AT_ONCE };
            let query = MemoryQuery { page, ..MemoryQuery::new(MemorySelect::All) };
            let memories = self.store.memories(owner, &query).await?;
            let accepted = memories.iter().filter(|memory| filter.matches(Subject::Memory(owner, memory)));
            passed.extend(accepted.map(|memory| ItemId::Memory(memory.id)));
            if memories.len() < READ_AT_ONCE as usize {
                return Ok(());
            }
            offset += u64::from(READ_AT_ONCE);
        }
    }
}

/// Whether a filter accepts an item.
fn passes(filter: &Filter, owner: &UserId, item: &Item) -> bool {
    Subject::of(owner, item).is_some_and(|subject| filter.matches(subject))
}

/// Keeps the hits that the request's filter accepts.
pub(super) fn retain_accepted(request: &RecallRequest, owner: &UserId, hits: &mut Vec<Hit>) {
    if let Some(filter) = &request.filter {
        hits.retain(|hit| passes(filter, owner, &hit.item));
    }
}
