//! Inverted lists: from a term or a word to the items that contain it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::Doc;
use super::features::TermHash;
use super::lists::{List, Lists};
use super::similar_words::SimilarWordsCache;
use super::vocabulary::Vocabulary;
use strata_core::lexicon::{DIMENSION, Lexicon, WordRows};

/// A hasher that returns its input. Terms are hashes already, and hashing them again would double the time of loading.
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
        // The map also uses the highest bits.
        self.0 = u64::from(number) | u64::from(number) << 32;
    }
}

/// From a term to the items that contain it, with the term's count, in order of insertion.
#[derive(Default)]
pub(crate) struct Terms {
    numbers: HashMap<TermHash, u32, BuildHasherDefault<Identity>>,
    lists: Lists<(Doc, u8)>,
}

impl Terms {
    /// The term's number. While an index is loaded, all terms are numbered first; [`Terms::lay_out`] then adds the
    /// items.
    pub(crate) fn enter(&mut self, hash: TermHash) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(hash).or_insert(next)
    }

    /// Adds all items of an index that is being loaded: each value is a term's number with an item and a count, in
    /// order of items.
    pub(crate) fn lay_out(&mut self, things: impl Iterator<Item = (u32, (Doc, u8))> + Clone) {
        self.lists = Lists::lay_out(self.numbers.len(), things);
    }

    /// Reserves memory for this many more terms.
    pub(crate) fn reserve(&mut self, terms: usize) {
        self.numbers.reserve(terms);
    }

    pub(crate) fn add(&mut self, doc: Doc, terms: &[(TermHash, u8)]) {
        for (hash, count) in terms {
            let number = self.enter(*hash);
            self.lists.add(number, (doc, *count));
        }
    }

    /// Removes an item, given the terms with which it was added.
    pub(crate) fn remove(&mut self, doc: Doc, terms: &[(TermHash, u8)]) {
        for (hash, _) in terms {
            if let Some(number) = self.numbers.get(hash) {
                self.lists.remove(*number, |(other, _)| other.cmp(&doc));
            }
        }
    }

    pub(crate) fn get(&self, hash: TermHash) -> List<'_, (Doc, u8)> {
        self.numbers.get(&hash).map_or(List::EMPTY, |number| self.lists.get(*number))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lists.bytes() + self.numbers.capacity() * 9
    }
}

/// A user's words with their vectors and the items that contain them.
#[derive(Default)]
pub(crate) struct Words {
    vocabulary: Vocabulary,
    /// One row for each word. Words that were added after the last call of [`Words::look_up`] have no row yet.
    vectors: Vec<i8>,
    scales: Vec<f32>,
    weights: Vec<f32>,
    /// Whether the word holds a digit: numbers match only themselves.
    numeric: Vec<bool>,
    lists: Lists<Doc>,
    /// The words of all items with their counts, one item after the other, and the start of each item's words.
    forward: Vec<(u32, u8)>,
    starts: Vec<usize>,
    similar: SimilarWordsCache,
}

impl Words {
    /// The word's number. A new word has no vector until [`Words::look_up`] is called; call it before any other method
    /// uses the word.
    pub(crate) fn enter(&mut self, text: &str) -> u32 {
        let (number, is_new) = self.vocabulary.enter(text);
        if is_new {
            self.numeric.push(text.chars().any(char::is_numeric));
        }
        number
    }

    /// Reserves memory for this many more words, and for this many more words of items.
    pub(crate) fn reserve(&mut self, words: usize, said: usize) {
        self.vocabulary.reserve(words);
        self.forward.reserve(said);
    }

    /// Lends the vocabulary of an index that is being loaded, so that vectors can be looked up while items are added.
    /// It must be [returned](Words::take_back) before any other method is called.
    pub(crate) fn lend_vocabulary(&mut self) -> Vocabulary {
        std::mem::take(&mut self.vocabulary)
    }

    /// Takes the vocabulary back, with the vectors of its words.
    pub(crate) fn take_back(&mut self, vocabulary: Vocabulary, rows: WordRows) {
        debug_assert_eq!(rows.vectors.len(), vocabulary.len() * DIMENSION);
        self.vocabulary = vocabulary;
        (self.vectors, self.scales, self.weights) = (rows.vectors, rows.scales, rows.weights);
    }

    /// Looks up the vectors of the words that were added since the last call.
    pub(crate) fn look_up(&mut self, lexicon: &dyn Lexicon) {
        let entered = self.scales.len() as u32..self.vocabulary.len() as u32;
        if entered.is_empty() {
            return;
        }
        let words: Vec<&str> = entered.map(|number| self.vocabulary.text(number)).collect();
        let WordRows { vectors, scales, weights } = lexicon.words(&words);
        debug_assert_eq!(vectors.len(), words.len() * DIMENSION);
        self.vectors.extend(vectors);
        self.scales.extend(scales);
        self.weights.extend(weights);
    }

    /// Adds the next item's words. Items must be added in order of their positions.
    pub(crate) fn add(&mut self, doc: Doc, words: &[(u32, u8)]) {
        for (word, _) in words {
            self.lists.add(*word, doc);
        }
        self.add_unlisted(doc, words.iter().copied());
    }

    /// Adds the next item's words without the inverted lists, which [`Words::lay_out`] builds at the end of loading.
    pub(crate) fn add_unlisted(&mut self, doc: Doc, words: impl Iterator<Item = (u32, u8)>) {
        debug_assert_eq!(self.starts.len(), doc as usize);
        self.starts.push(self.forward.len());
        self.forward.extend(words);
    }

    /// Builds the inverted lists of all items for which `is_listed` is true.
    pub(crate) fn lay_out(&mut self, is_listed: impl Fn(Doc) -> bool) {
        let ends = self.starts.iter().skip(1).copied().chain(std::iter::once(self.forward.len()));
        let items = self.starts.iter().zip(ends).zip(0..).filter(|(_, doc)| is_listed(*doc));
        let things = items.clone().flat_map(|((start, end), doc)| {
            self.forward[*start..end].iter().map(move |(word, _)| (*word, doc))
        });
        self.lists = Lists::lay_out(self.numeric.len(), things);
    }

    /// Removes an item from the inverted lists. [`Words::of`] still returns its words.
    pub(crate) fn remove(&mut self, doc: Doc) {
        for at in 0..self.of(doc).len() {
            let word = self.of(doc)[at].0;
            self.lists.remove(word, |other| other.cmp(&doc));
        }
    }

    /// An item's distinct words with their counts.
    pub(crate) fn of(&self, doc: Doc) -> &[(u32, u8)] {
        let start = self.starts[doc as usize];
        let end = self.starts.get(doc as usize + 1).copied().unwrap_or(self.forward.len());
        &self.forward[start..end]
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        self.vocabulary.number(text)
    }

    pub(crate) fn postings(&self, word: u32) -> List<'_, Doc> {
        self.lists.get(word)
    }

    pub(crate) fn vector(&self, word: u32) -> (&[i8], f32) {
        let start = word as usize * DIMENSION;
        (&self.vectors[start..start + DIMENSION], self.scales[word as usize])
    }

    /// Whether a word contains a digit.
    pub(crate) fn is_numeric(&self, word: u32) -> bool {
        self.numeric[word as usize]
    }

    pub(crate) fn weight(&self, word: u32) -> f32 {
        self.weights[word as usize]
    }

    /// The vectors of all words that have one, the scale of each vector, and whether each word contains a digit.
    pub(super) fn rows(&self) -> (&[i8], &[f32], &[bool]) {
        (&self.vectors, &self.scales, &self.numeric)
    }

    /// The cache of similar words.
    pub(super) fn similar(&self) -> &SimilarWordsCache {
        &self.similar
    }

    pub(crate) fn bytes(&self) -> usize {
        self.vectors.capacity()
            + self.scales.len() * 9
            + self.vocabulary.bytes()
            + self.lists.bytes()
            + self.forward.capacity() * size_of::<(u32, u8)>()
            + self.starts.capacity() * size_of::<usize>()
            + self.similar.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::lexicon::Word;

    /// A lexicon in which each number has its own direction.
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
    fn words_looked_up_together_equal_words_looked_up_alone() {
        let (mut together, mut alone) = (Words::default(), Words::default());
        for number in 0..300 {
            let text = number.to_string();
            assert_eq!(together.enter(&text), alone.enter(&text));
            alone.look_up(&Numbers);
            assert_eq!(together.enter(&text), number as u32, "a known word is not entered again");
        }
        together.look_up(&Numbers);
        assert!(together.vectors == alone.vectors);
        assert_eq!((together.scales, together.weights), (alone.scales, alone.weights));
    }
}
