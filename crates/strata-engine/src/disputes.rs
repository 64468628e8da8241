//! Disputes: two memories of which the reader was not sure enough that one replaces the other. Both stay current, and
//! lines, lists and answers show them as disputed, the newer one first.
//!
//! A memory names the other one for good. The dispute is over when one of the two is closed or hidden, which only a
//! look at the other one tells.

use std::collections::HashSet;

use strata_core::error::Result;
use strata_core::id::{MemoryId, UserId};
use strata_core::memory::Memory;
use strata_core::store::{MemoryQuery, MemorySelect, Store};

/// Removes the disputes that are over from current memories.
pub(crate) async fn drop_settled<'a>(
    store: &dyn Store,
    owner: &UserId,
    memories: impl Iterator<Item = &'a mut Memory>,
) -> Result<()> {
    let mut disputed: Vec<&mut Memory> =
        memories.filter(|memory| memory.in_dispute_with().is_some()).collect();
    if disputed.is_empty() {
        return Ok(());
    }
    let others = disputed.iter().filter_map(|memory| memory.notes.disputed).collect();
    let others = store.memories(owner, &MemoryQuery::new(MemorySelect::Ids(others))).await?;
    let current: HashSet<MemoryId> =
        others.iter().filter(|other| other.is_current()).map(|other| other.id).collect();
    for memory in &mut disputed {
        memory.notes.disputed = memory.notes.disputed.filter(|other| current.contains(other));
    }
    Ok(())
}

/// Whether `newer` is the newer one of two memories in dispute.
pub(crate) fn is_newer_side(newer: &Memory, other: &Memory) -> bool {
    let names = |one: &Memory, other: &Memory| one.in_dispute_with() == Some(other.id);
    let since = |memory: &Memory| (memory.valid_from, memory.recorded_at, memory.id);
    (names(newer, other) || names(other, newer)) && since(newer) > since(other)
}
