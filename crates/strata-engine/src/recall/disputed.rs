//! Memories in dispute: neither is served without the other where both are known, and the newer one comes first.

use std::collections::HashMap;

use super::candidates::Candidate;
use super::request::RecalledItem;
use crate::disputes::is_newer_side;
use strata_core::id::ItemId;
use strata_core::memory::Memory;
use strata_core::store::Item;

/// Makes two memories in dispute equally relevant, as the better one of them: the reader may judge that only one of them answers, and
/// it cannot know which of them is true. `items` are those that were loaded for the reader.
pub(super) fn lift_disputed(candidates: &mut [Candidate], items: &HashMap<ItemId, Item>) {
    let memories: Vec<(ItemId, &Memory)> = items
        .iter()
        .filter_map(|(id, item)| match item {
            Item::Memory(memory) => Some((*id, memory)),
            Item::Turn(_) | Item::Summary(_) => None,
        })
        .collect();
    for (newer, one) in &memories {
        let Some((older, _)) = memories.iter().find(|(_, other)| is_newer_side(one, other)) else { continue };
        let of_pair = |candidate: &&mut Candidate| candidate.id == *newer || candidate.id == *older;
        let relevance =
            candidates.iter_mut().filter(of_pair).map(|found| found.relevance).fold(0.0, f32::max);
        candidates.iter_mut().filter(of_pair).for_each(|found| found.relevance = relevance);
    }
}

/// Puts the newer one of two memories in dispute before the older one. The others keep their places, and each item keeps
/// its score.
pub(crate) fn newer_side_first(items: &mut [RecalledItem]) {
    for at in 0..items.len() {
        let is_newer = |later: &RecalledItem| match (memory(later), memory(&items[at])) {
            (Some(later), Some(first)) => is_newer_side(later, first),
            _ => false,
        };
        if let Some(later) = items[at + 1..].iter().position(is_newer) {
            items.swap(at, at + 1 + later);
        }
    }
}

fn memory(item: &RecalledItem) -> Option<&Memory> {
    match &item.item {
        Item::Memory(memory) => Some(memory),
        Item::Turn(_) | Item::Summary(_) => None,
    }
}
