//! Inverted lists: from a term or a word to the items that have it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::Doc;
use super::features::TermHash;
use crate::dot::for_each_dot;
use crate::lexicon::{DIMENSION, Lexicon};
use crate::vector::Vector;

/// Words compared with one direction before the next direction's turn: 16 KiB of vectors.
const BLOCK: usize = 64;

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

    /// Takes an item out again, given the terms with which it was added.
    pub(crate) fn remove(&mut self, doc: Doc, terms: &[(TermHash, u8)]) {
        for (hash, _) in terms {
            if let Some(postings) = self.postings.get_mut(hash)
                && let Ok(at) = postings.binary_search_by_key(&doc, |(doc, _)| *doc)
            {
                postings.remove(at);
                self.entries -= 1;
            }
        }
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
    /// New words that wait for their vectors, in the order of their numbers.
    entered: Vec<Box<str>>,
    /// The words of each item, one item after the other, with their counts; and where each item's begin.
    forward: Vec<(u32, u8)>,
    starts: Vec<usize>,
}

impl Words {
    /// The word's number; a new word is looked up in the lexicon.
    pub(crate) fn intern(&mut self, text: &str, lexicon: &dyn Lexicon) -> u32 {
        let number = self.enter(text);
        self.look_up(lexicon);
        number
    }

    /// The word's number. A new word has no vector until [`Words::look_up`] is called, which must be before anything else
    /// is asked of it.
    pub(crate) fn enter(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.postings.len() as u32;
        self.numeric.push(text.chars().any(char::is_numeric));
        self.postings.push(Vec::new());
        self.numbers.insert(text.into(), number);
        self.entered.push(text.into());
        number
    }

    /// Looks up the words that were entered since it was called last.
    pub(crate) fn look_up(&mut self, lexicon: &dyn Lexicon) {
        for word in lexicon.words(&std::mem::take(&mut self.entered)) {
            debug_assert_eq!(word.vector.values.len(), DIMENSION);
            self.vectors.extend(word.vector.values);
            self.scales.push(word.vector.scale);
            self.weights.push(word.weight);
        }
    }

    /// Adds the next item's words. Items are added in order of their places.
    pub(crate) fn add(&mut self, doc: Doc, words: &[(u32, u8)]) {
        debug_assert_eq!(self.starts.len(), doc as usize);
        self.starts.push(self.forward.len());
        for (word, _) in words {
            self.postings[*word as usize].push(doc);
        }
        self.forward.extend_from_slice(words);
    }

    /// Takes an item out of the lists. What it says can still be asked for.
    pub(crate) fn remove(&mut self, doc: Doc) {
        for at in 0..self.of(doc).len() {
            let word = self.of(doc)[at].0;
            let postings = &mut self.postings[word as usize];
            if let Ok(at) = postings.binary_search(&doc) {
                postings.remove(at);
            }
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

    /// Calls `emit` with the place of each given direction, every word whose cosine with it is above `least`, and that
    /// cosine; for one direction the words rise. Words with digits are left out: 2022 is near 2023 in every embedding, and
    /// wrong.
    pub(crate) fn near(&self, directions: &[&Vector], least: f32, mut emit: impl FnMut(usize, u32, f32)) {
        // All directions look at a block of words while it is in the processor's nearest cache.
        for (block, rows) in self.vectors.chunks(BLOCK * DIMENSION).enumerate() {
            let first = block * BLOCK;
            let (scales, numeric) = (&self.scales[first..], &self.numeric[first..]);
            for (place, direction) in directions.iter().enumerate().filter(|(_, d)| d.scale > 0.0) {
                for_each_dot(rows, &direction.values, |at, product| {
                    let cosine = product as f32 * direction.scale * scales[at];
                    if cosine > least && !numeric[at] {
                        emit(place, (first + at) as u32, cosine);
                    }
                });
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len() * (DIMENSION + 104)
            + self.forward.len() * (8 + size_of::<Doc>() * 3 / 2)
            + self.starts.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::Word;

    /// Each number points its own way.
    struct Numbers;

    impl Lexicon for Numbers {
        fn for_each_word(&self, text: &str, emit: &mut dyn FnMut(&str)) {
            text.split(' ').for_each(emit);
        }

        fn word(&self, word: &str) -> Word {
            let number: usize = word.parse().unwrap();
            let mut direction = [1.0; DIMENSION];
            direction[number % DIMENSION] = number as f32;
            Word::new(&direction, 0.1)
        }
    }

    #[test]
    fn words_looked_up_together_are_those_looked_up_one_by_one() {
        let (mut together, mut alone) = (Words::default(), Words::default());
        for number in 0..300 {
            let text = number.to_string();
            assert_eq!(together.enter(&text), alone.intern(&text, &Numbers));
            assert_eq!(together.enter(&text), number as u32, "a known word is not entered again");
        }
        together.look_up(&Numbers);
        assert!(together.vectors == alone.vectors);
        assert_eq!((together.scales, together.weights), (alone.scales, alone.weights));
    }
}
