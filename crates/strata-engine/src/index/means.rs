//! The cosine between the mean vector of an item's words and a direction.
//!
//! A mean is the sum of a few dozen vectors. Its length never changes, so it is computed once and kept, in a few bytes
//! for each item. Its dot product with a direction is the sum of its words' dot products, and items share words.

use std::sync::{Mutex, PoisonError};

use super::document::Doc;
use super::user::UserIndex;
use strata_core::dot::dot;
use strata_core::lexicon::{DIMENSION, add};
use strata_core::vector::Vector;

/// The lengths of the mean vectors of items, as far as they are known.
#[derive(Default)]
pub(crate) struct MeanLengths(Mutex<Vec<Option<f32>>>);

impl MeanLengths {
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).capacity() * size_of::<Option<f32>>()
    }
}

impl UserIndex {
    /// The weighted sum of the vectors of an item's words, not normalised.
    pub(crate) fn mean(&self, doc: Doc) -> [f32; DIMENSION] {
        let mut sum = [0.0; DIMENSION];
        for (word, count) in self.words.of(doc) {
            let (values, scale) = self.words.vector(*word);
            add(&mut sum, values, f32::from(*count) * self.words.weight(*word) * scale);
        }
        sum
    }

    /// The cosine between each item's mean and a direction of unit length.
    pub(crate) fn mean_cosines(&self, docs: &[Doc], direction: &Vector) -> Vec<f32> {
        let lengths = self.mean_lengths(docs);
        let mut known: Vec<Option<f32>> = vec![None; self.words.len()];
        let mut along = |word: u32| {
            *known[word as usize].get_or_insert_with(|| {
                let (values, scale) = self.words.vector(word);
                dot(values, &direction.values) as f32 * scale * direction.scale * self.words.weight(word)
            })
        };
        docs.iter()
            .zip(lengths)
            .map(|(doc, length)| {
                let words = self.words.of(*doc).iter();
                let sum: f32 = words.map(|(word, count)| f32::from(*count) * along(*word)).sum();
                if length > 0.0 { sum / length } else { 0.0 }
            })
            .collect()
    }

    fn mean_lengths(&self, docs: &[Doc]) -> Vec<f32> {
        let lock = || self.lengths.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Option<f32>> = {
            let lengths = lock();
            docs.iter().map(|doc| lengths.get(*doc as usize).copied().flatten()).collect()
        };
        if known.iter().all(Option::is_some) {
            return known.into_iter().flatten().collect();
        }
        let length = |doc: Doc| self.mean(doc).iter().map(|part| part * part).sum::<f32>().sqrt();
        let found: Vec<f32> =
            docs.iter().zip(known).map(|(doc, known)| known.unwrap_or_else(|| length(*doc))).collect();
        let mut lengths = lock();
        if lengths.len() < self.documents.len() {
            lengths.resize(self.documents.len(), None);
        }
        for (doc, length) in docs.iter().zip(&found) {
            lengths[*doc as usize] = Some(*length);
        }
        found
    }
}
