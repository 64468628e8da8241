//! How similar two items are, by the words they share.

use crate::index::{Doc, UserIndex};

/// An item is compared with at most this many others at once: one bit each in a `u8`.
pub(crate) const MAX_COMPARED: usize = 8;

/// Compares items of one index. Rare shared words weigh more than common ones.
pub(crate) struct ItemLikeness<'a> {
    index: &'a UserIndex,
}

impl<'a> ItemLikeness<'a> {
    pub(crate) fn new(index: &'a UserIndex) -> Self {
        Self { index }
    }

    /// The weight of a word: its inverse document frequency.
    fn weight(&self, word: u32) -> f32 {
        let (count, holding) = (self.index.len() as f32, self.index.words.postings(word).len() as f32);
        (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln()
    }

    fn sum(&self, doc: Doc, value: impl Fn(f32) -> f32) -> f32 {
        self.index.words.of(doc).iter().map(|(word, _)| value(self.weight(*word))).sum()
    }

    fn shared(&self, a: Doc, b: Doc, value: impl Fn(f32) -> f32) -> f32 {
        let (a, b) = (self.index.words.of(a), self.index.words.of(b));
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        let in_long = |word: &u32| long.iter().any(|(other, _)| other == word);
        short.iter().filter(|(word, _)| in_long(word)).map(|(word, _)| value(self.weight(*word))).sum()
    }

    /// Prepares the given items for comparison with many others. Their words are marked, so that each other item is
    /// read only once.
    pub(crate) fn with(&self, items: &[Doc]) -> LikenessWith<'_> {
        let mut masks = vec![0; self.index.words.len()];
        for (place, doc) in items.iter().take(MAX_COMPARED).enumerate() {
            for (word, _) in self.index.words.of(*doc) {
                masks[*word as usize] |= 1 << place;
            }
        }
        let mut with = LikenessWith { likeness: self, masks, norms: [0.0; MAX_COMPARED] };
        for (place, doc) in items.iter().take(MAX_COMPARED).enumerate() {
            with.norms[place] = with.read(*doc).1;
        }
        with
    }

    /// The weight of the shared words of two items as a share of the weight of all their words, from 0 to 1.
    pub(crate) fn overlap(&self, a: Doc, b: Doc) -> f32 {
        let shared = self.shared(a, b, |weight| weight);
        let all = self.sum(a, |weight| weight) + self.sum(b, |weight| weight) - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// The few items that others are compared with.
pub(crate) struct LikenessWith<'a> {
    likeness: &'a ItemLikeness<'a>,
    /// For each word, one bit for each item that has it.
    masks: Vec<u8>,
    /// The norms of the items' weight vectors.
    norms: [f32; MAX_COMPARED],
}

impl LikenessWith<'_> {
    /// The cosines of an item with each of the few items over their distinct words, from 0 to 1.
    pub(crate) fn cosines(&self, doc: Doc) -> [f32; MAX_COMPARED] {
        let (mut cosines, norm) = self.read(doc);
        for (cosine, other_norm) in cosines.iter_mut().zip(self.norms) {
            let norms = norm * other_norm;
            *cosine = if norms > 0.0 { *cosine / norms } else { 0.0 };
        }
        cosines
    }

    /// The dot product of an item with each of the few items, and the norm of its weight vector.
    fn read(&self, doc: Doc) -> ([f32; MAX_COMPARED], f32) {
        let (mut shared, mut all) = ([0.0; MAX_COMPARED], 0.0);
        for (word, _) in self.likeness.index.words.of(doc) {
            let square = self.likeness.weight(*word).powi(2);
            all += square;
            let mask = self.masks[*word as usize];
            if mask != 0 {
                for (place, shared) in shared.iter_mut().enumerate() {
                    *shared += if mask >> place & 1 == 1 { square } else { 0.0 };
                }
            }
        }
        (shared, all.sqrt())
    }
}
