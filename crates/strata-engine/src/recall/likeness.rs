//! How much two items say the same, by the words they share.

use crate::index::{Doc, UserIndex};

/// How many items another can be compared with at once.
pub(crate) const MOST: usize = 8;

/// Compares items of one index. A rare shared word tells more than a common one.
pub(crate) struct Likeness<'a> {
    index: &'a UserIndex,
}

impl<'a> Likeness<'a> {
    pub(crate) fn new(index: &'a UserIndex) -> Self {
        Self { index }
    }

    /// How much a word tells.
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

    /// The given items, ready to be compared with many others: their words are marked, so that another is read once.
    pub(crate) fn with(&self, items: &[Doc]) -> LikenessWith<'_> {
        let mut masks = vec![0; self.index.words.len()];
        for (place, doc) in items.iter().take(MOST).enumerate() {
            for (word, _) in self.index.words.of(*doc) {
                masks[*word as usize] |= 1 << place;
            }
        }
        let mut with = LikenessWith { likeness: self, masks, norms: [0.0; MOST] };
        for (place, doc) in items.iter().take(MOST).enumerate() {
            with.norms[place] = with.read(*doc).1;
        }
        with
    }

    /// The share of their words' weight that two items have in common, from 0 to 1.
    pub(crate) fn overlap(&self, a: Doc, b: Doc) -> f32 {
        let shared = self.shared(a, b, |weight| weight);
        let all = self.sum(a, |weight| weight) + self.sum(b, |weight| weight) - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// A few items that others are compared with.
pub(crate) struct LikenessWith<'a> {
    likeness: &'a Likeness<'a>,
    /// Which of the items have each word, a bit an item.
    masks: Vec<u8>,
    /// The lengths of the items' weights.
    norms: [f32; MOST],
}

impl LikenessWith<'_> {
    /// The cosines of an item with each of the few over their distinct words, from 0 to 1.
    pub(crate) fn cosines(&self, doc: Doc) -> [f32; MOST] {
        let (mut cosines, norm) = self.read(doc);
        for (cosine, other_norm) in cosines.iter_mut().zip(self.norms) {
            let norms = norm * other_norm;
            *cosine = if norms > 0.0 { *cosine / norms } else { 0.0 };
        }
        cosines
    }

    /// What an item shares with each of the few, in squares of weights, and the length of its weights.
    fn read(&self, doc: Doc) -> ([f32; MOST], f32) {
        let (mut shared, mut all) = ([0.0; MOST], 0.0);
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
