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

    /// The length of an item's weights: what [`Likeness::cosine`] divides by, asked for once an item.
    pub(crate) fn norm(&self, doc: Doc) -> f32 {
        self.sum(doc, |weight| weight * weight).sqrt()
    }

    /// The cosine of two items, each with its norm, over their distinct words, from 0 to 1.
    pub(crate) fn cosine(&self, (a, a_norm): (Doc, f32), (b, b_norm): (Doc, f32)) -> f32 {
        let norms = a_norm * b_norm;
        if norms > 0.0 { self.shared(a, b, |weight| weight * weight) / norms } else { 0.0 }
    }

    /// The share of their words' weight that two items have in common, from 0 to 1.
    pub(crate) fn overlap(&self, a: Doc, b: Doc) -> f32 {
        let shared = self.shared(a, b, |weight| weight);
        let all = self.sum(a, |weight| weight) + self.sum(b, |weight| weight) - shared;
        if all > 0.0 { shared / all } else { 0.0 }
    }
}
