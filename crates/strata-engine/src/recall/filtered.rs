//! Filters in recall: which of a user's items may be candidates.
//!
//! The index in memory does not hold the metadata that clients attach. So the items are read once and the filter is
//! applied before the ranking. Recall then finds the best of the accepted items, however few they are.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::Recall;
use super::request::RecallRequest;
use crate::filter::{Filter, Subject};
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::store::{Item, ItemRef, Keep, MemoryQuery, MemorySelect};

/// The number of items in one read. Only their ids are kept. An item and its metadata may have a megabyte each (setting
/// `max_turn_bytes`), so a read takes a few megabytes at most for usual items and 256 MiB for the largest.
const READ_AT_ONCE: u32 = 128;

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
        if !request.kinds.turns {
            return self.accepted_memories(owner, filter).await.map(Some);
        }
        let mut passed = HashSet::new();
        let mut after = 0;
        loop {
            let items = self.store.feed(owner, after, READ_AT_ONCE).await?;
            let Some((last, _)) = items.last() else { return Ok(Some(passed)) };
            after = *last;
            let items = items.iter().filter(|(_, item)| passes(filter, owner, item));
            passed.extend(items.map(|(_, item)| item.id()));
        }
    }

    /// The memories that a filter accepts. The store keeps none of them, because only their ids are wanted.
    async fn accepted_memories(&self, owner: &UserId, filter: &Filter) -> Result<HashSet<ItemId>> {
        let passed: Arc<Mutex<HashSet<ItemId>>> = Arc::default();
        let (accepts, found) = (filter.keep(owner), Arc::clone(&passed));
        let collect = Keep::new(move |item| {
            if let ItemRef::Memory(memory) = item
                && accepts.keeps(item)
            {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.insert(ItemId::Memory(memory.id));
            }
            false
        });
        let query = MemoryQuery { keep: Some(collect), ..MemoryQuery::new(MemorySelect::All) };
        self.store.memories(owner, &query).await?;
        let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *passed))
    }
}

/// Whether a filter accepts an item.
pub(super) fn passes(filter: &Filter, owner: &UserId, item: &Item) -> bool {
    Subject::of(owner, item).is_some_and(|subject| filter.matches(subject))
}
