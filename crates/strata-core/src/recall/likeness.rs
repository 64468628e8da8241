//! How much two items say the same, by the words they share.

use crate::index::{Doc, UserIndex};

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
        let (count, holding) =
            (self.index.documents.len() as f32, self.index.words.postings(word).len() as f32);
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

    /// The cosine of two items over their distinct words, from 0 to 1.
    pub(crate) fn cosine(&self, a: Doc, b: Doc) -> f32 {
        let square = |weight: f32| weight * weight;
        let norms = self.sum(a, square).sqrt() * self.sum(b, square).sqrt();
        if norms > 0.0 { self.shared(a, b, square) / norms } else { 0.0 }
    }

    /// The share of their words' weight that two items have in common, from 0 to 1.
    pub(crate) fn overlap(&self, a: Doc, b: Doc) -> f32 {
        let shared = self.shared(a, b, |weight| weight);
        let all = self.sum(a, |weight| weight) + self.sum(b, |weight| weight) - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}
