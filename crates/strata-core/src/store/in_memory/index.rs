//! A user's inverted index: the terms of all turns and memories, with BM25 over the user's own statistics.

use std::collections::{BTreeMap, HashMap};

use crate::id::ItemId;
use strata_language::text;

/// How quickly repeats of a term stop adding to the score. The default of Lucene and Elasticsearch; on our Chinese and
/// English benchmark conversations values from 0.9 to 1.5 differ by less than half a point of recall.
const K1: f32 = 1.2;

/// How strongly the score of a long item is reduced. The default of Lucene and Elasticsearch, as above.
const B: f32 = 0.75;

/// The terms of each item, with their counts.
#[derive(Default)]
pub(super) struct Index {
    postings: HashMap<String, BTreeMap<ItemId, u32>>,
    lengths: BTreeMap<ItemId, u32>,
    total_length: u64,
}

impl Index {
    pub(super) fn insert(&mut self, item: ItemId, content: &str) {
        let mut length = 0_u32;
        text::for_each_term(content, |term| {
            length += 1;
            match self.postings.get_mut(term) {
                Some(items) => *items.entry(item).or_default() += 1,
                None => {
                    self.postings.insert(term.to_owned(), BTreeMap::from([(item, 1)]));
                }
            }
        });
        self.lengths.insert(item, length);
        self.total_length += u64::from(length);
    }

    pub(super) fn remove(&mut self, item: ItemId, content: &str) {
        let Some(length) = self.lengths.remove(&item) else { return };
        self.total_length -= u64::from(length);
        text::for_each_term(content, |term| {
            if let Some(items) = self.postings.get_mut(term) {
                items.remove(&item);
                if items.is_empty() {
                    self.postings.remove(term);
                }
            }
        });
    }

    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// All items that share a term with `question`, with their scores, in no particular order.
    pub(super) fn search(&self, question: &str) -> BTreeMap<ItemId, f32> {
        let count = self.lengths.len() as f32;
        let mean_length = (self.total_length as f32 / count.max(1.0)).max(1.0);
        let mut scores = BTreeMap::new();
        for term in text::query_terms(question) {
            let Some(items) = self.postings.get(&term) else { continue };
            let holding = items.len() as f32;
            let rarity = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
            for (item, times) in items {
                let length = self.lengths.get(item).copied().unwrap_or_default() as f32;
                let times = *times as f32;
                let saturation = times + K1 * (1.0 - B + B * length / mean_length);
                *scores.entry(*item).or_insert(0.0) += rarity * times * (K1 + 1.0) / saturation;
            }
        }
        scores
    }
}
