//! Memories in dispute among the served items: the newer one comes first.

use super::request::RecalledItem;
use crate::disputes::is_newer_side;
use strata_core::memory::Memory;
use strata_core::store::Item;

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
