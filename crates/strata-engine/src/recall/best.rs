//! The best of a user's items, found in one pass.

use std::cmp::Ordering;

use super::rank::{Scored, better, keep_best};
use super::visible::VisibleItems;
use crate::index::{Doc, UserIndex};

/// The scores of all items. The scores of invisible items have no meaning.
pub(crate) struct Scores<'a> {
    pub(crate) index: &'a UserIndex,
    pub(crate) visible: &'a VisibleItems<'a>,
    pub(crate) values: Vec<f32>,
}

impl Scores<'_> {
    /// The best `count` visible items, best first; fewer if there are not enough.
    pub(crate) fn best(&self, count: usize) -> Vec<Scored> {
        let mut best: Vec<Scored> = Vec::with_capacity(2 * count);
        // Items after this one are not among the best. Most items end here, and their visibility is not checked.
        let mut least: Option<Scored> = None;
        for (doc, score) in (0..).zip(&self.values) {
            let scored = Scored { doc, score: *score };
            if self.is_before(&scored, least.as_ref()) && self.visible.contains(doc) {
                best.push(scored);
                if best.len() == 2 * count {
                    keep_best(self.index, &mut best, count);
                    least = best.last().copied();
                }
            }
        }
        keep_best(self.index, &mut best, count);
        best
    }

    #[inline]
    fn is_before(&self, scored: &Scored, least: Option<&Scored>) -> bool {
        match least {
            Some(least) if scored.score == least.score => better(self.index, scored, least) == Ordering::Less,
            Some(least) => scored.score > least.score,
            None => true,
        }
    }

    /// The number of visible items for which `is_one` is true.
    pub(crate) fn count(&self, is_one: impl Fn(Doc) -> bool) -> u32 {
        let docs = 0..self.index.documents.len() as Doc;
        docs.filter(|doc| is_one(*doc) && self.visible.contains(*doc)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::Document;
    use crate::recall::RecallRequest;
    use strata_core::id::{ItemId, TurnId};
    use strata_core::scope::Scope;

    proptest! {
        #[test]
        fn the_best_items_equal_those_of_a_sorted_list(
            // Few distinct scores give many ties; the ids are not in the order of the positions.
            items in proptest::collection::vec((0_u8..6, any::<u64>(), any::<bool>()), 0..120),
            count in 0_usize..40,
        ) {
            let mut index = UserIndex::default();
            for (_, id, is_hidden) in &items {
                let id = ItemId::Turn(TurnId(uuid::Uuid::from_u64_pair(*id, 0)));
                let hidden_at = if *is_hidden { 1 } else { i64::MAX };
                index.place(Document { hidden_at, ..Document::new(id) }, || Box::from([]));
            }
            let request = RecallRequest::new("?");
            let visible = &VisibleItems::new(&index, &request, Scope::User, None);
            let values: Vec<f32> = items.iter().map(|(score, ..)| f32::from(*score)).collect();
            let scores = Scores { index: &index, visible, values };
            let mut sorted: Vec<Scored> = (0..)
                .zip(&items)
                .filter(|(_, (_, _, is_hidden))| !is_hidden)
                .map(|(doc, (score, ..))| Scored { doc, score: f32::from(*score) })
                .collect();
            prop_assert_eq!(scores.count(|_| true) as usize, sorted.len());
            sorted.sort_by(|a, b| better(&index, a, b));
            sorted.truncate(count);
            prop_assert_eq!(scores.best(count), sorted);
        }
    }
}
