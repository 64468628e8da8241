//! Inverted lists: from a term or a word to the items that have it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::Doc;
use super::features::TermHash;
use crate::dot::dot;
use crate::lexicon::{DIMENSION, Lexicon};

/// Terms are hashes already: hashing them again would double the time of loading.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The map uses the highest bits too.
        self.0 = u64::from(number) | u64::from(number) << 32;
    }
}

/// From a term to the items that have it, with how often, in the order in which they came.
#[derive(Default)]
pub(crate) struct Terms {
    postings: HashMap<TermHash, Vec<(Doc, u8)>, BuildHasherDefault<Identity>>,
    entries: usize,
}

impl Terms {
    pub(crate) fn add(&mut self, doc: Doc, terms: &[(TermHash, u8)]) {
        for (hash, count) in terms {
            self.postings.entry(*hash).or_default().push((doc, *count));
        }
        self.entries += terms.len();
    }

    pub(crate) fn get(&self, hash: TermHash) -> &[(Doc, u8)] {
        self.postings.get(&hash).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries * size_of::<(Doc, u8)>() * 3 / 2 + self.postings.len() * 48
    }
}

/// A user's words with their vectors and the items that have them.
#[derive(Default)]
pub(crate) struct Words {
    numbers: HashMap<Box<str>, u32>,
    /// One row a word.
    vectors: Vec<i8>,
    scales: Vec<f32>,
    weights: Vec<f32>,
    /// Whether the word holds a digit: numbers match only themselves.
    numeric: Vec<bool>,
    postings: Vec<Vec<Doc>>,
    /// The words of each item, one item after the other, with their counts; and where each item's begin.
    forward: Vec<(u32, u8)>,
    starts: Vec<usize>,
}

impl Words {
    /// The word's number; a new word is looked up in the lexicon.
    pub(crate) fn intern(&mut self, text: &str, lexicon: &dyn Lexicon) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.postings.len() as u32;
        let word = lexicon.word(text);
        debug_assert_eq!(word.vector.values.len(), DIMENSION);
        self.vectors.extend(word.vector.values);
        self.scales.push(word.vector.scale);
        self.weights.push(word.weight);
        self.numeric.push(text.chars().any(char::is_numeric));
        self.postings.push(Vec::new());
        self.numbers.insert(text.into(), number);
        number
    }

    /// Adds the next item's words. Items are added in order of their places.
    pub(crate) fn add(&mut self, doc: Doc, words: impl IntoIterator<Item = (u32, u8)>) {
        debug_assert_eq!(self.starts.len(), doc as usize);
        self.starts.push(self.forward.len());
        for (word, count) in words {
            self.postings[word as usize].push(doc);
            self.forward.push((word, count));
        }
    }

    /// An item's distinct words with their counts.
    pub(crate) fn of(&self, doc: Doc) -> &[(u32, u8)] {
        let start = self.starts[doc as usize];
        let end = self.starts.get(doc as usize + 1).copied().unwrap_or(self.forward.len());
        &self.forward[start..end]
    }

    pub(crate) fn len(&self) -> usize {
        self.postings.len()
    }

    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    pub(crate) fn postings(&self, word: u32) -> &[Doc] {
        &self.postings[word as usize]
    }

    pub(crate) fn vector(&self, word: u32) -> (&[i8], f32) {
        let start = word as usize * DIMENSION;
        (&self.vectors[start..start + DIMENSION], self.scales[word as usize])
    }

    /// Whether a word holds a digit.
    pub(crate) fn is_numeric(&self, word: u32) -> bool {
        self.numeric[word as usize]
    }

    pub(crate) fn weight(&self, word: u32) -> f32 {
        self.weights[word as usize]
    }

    /// Calls `emit` with every word whose cosine with the given direction is above `least`. Words with digits are left
    /// out: 2022 is near 2023 in every embedding, and wrong.
    pub(crate) fn near(&self, vector: &[i8], scale: f32, least: f32, mut emit: impl FnMut(u32, f32)) {
        for (number, row) in self.vectors.chunks_exact(DIMENSION).enumerate() {
            let cosine = dot(row, vector) as f32 * scale * self.scales[number];
            if cosine > least && !self.numeric[number] {
                emit(number as u32, cosine);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len() * (DIMENSION + 104)
            + self.forward.len() * (8 + size_of::<Doc>() * 3 / 2)
            + self.starts.len() * 8
    }
}
