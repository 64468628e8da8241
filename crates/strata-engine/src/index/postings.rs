//! Inverted lists: from a term or a word to the items that have it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::Doc;
use super::features::TermHash;
use super::lists::{List, Lists};
use super::similar_words::SimilarWords;
use super::vocabulary::Vocabulary;
use strata_core::lexicon::{DIMENSION, Lexicon, WordRows};

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
    numbers: HashMap<TermHash, u32, BuildHasherDefault<Identity>>,
    lists: Lists<(Doc, u8)>,
}

impl Terms {
    /// The term's number. Those of a cold index are numbered first; [`Terms::lay_out`] then brings the items.
    pub(crate) fn enter(&mut self, hash: TermHash) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(hash).or_insert(next)
    }

    /// Takes in all items of a cold index in one go, each a term's number with its item and count, in order of items.
    pub(crate) fn lay_out(&mut self, things: impl Iterator<Item = (u32, (Doc, u8))> + Clone) {
        self.lists = Lists::lay_out(self.numbers.len(), things);
    }

    /// Makes room for so many more terms.
    pub(crate) fn reserve(&mut self, terms: usize) {
        self.numbers.reserve(terms);
    }

    pub(crate) fn add(&mut self, doc: Doc, terms: &[(TermHash, u8)]) {
        for (hash, count) in terms {
            let number = self.enter(*hash);
            self.lists.add(number, (doc, *count));
        }
    }

    /// Takes an item out again, given the terms with which it was added.
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

/// A user's words with their vectors and the items that have them.
#[derive(Default)]
pub(crate) struct Words {
    vocabulary: Vocabulary,
    /// One row a word. Words that were entered since [`Words::look_up`] was called last have none yet.
    vectors: Vec<i8>,
    scales: Vec<f32>,
    weights: Vec<f32>,
    /// Whether the word holds a digit: numbers match only themselves.
    numeric: Vec<bool>,
    lists: Lists<Doc>,
    /// The words of each item, one item after the other, with their counts; and where each item's begin.
    forward: Vec<(u32, u8)>,
    starts: Vec<usize>,
    similar: SimilarWords,
}

impl Words {
    /// The word's number. A new word has no vector until [`Words::look_up`] is called, which must be before anything else
    /// is asked of it.
    pub(crate) fn enter(&mut self, text: &str) -> u32 {
        let (number, is_new) = self.vocabulary.enter(text);
        if is_new {
            self.numeric.push(text.chars().any(char::is_numeric));
        }
        number
    }

    /// Makes room for so many more words, and so many more places at which items say one.
    pub(crate) fn reserve(&mut self, words: usize, said: usize) {
        self.vocabulary.reserve(words);
        self.forward.reserve(said);
    }

    /// Hands out the words of a cold index, to be looked up while items that say them are added; they have to come
    /// [back](Words::take_back) before anything else is asked.
    pub(crate) fn lend_vocabulary(&mut self) -> Vocabulary {
        std::mem::take(&mut self.vocabulary)
    }

    /// Takes the words of a cold index back, with what is known of them.
    pub(crate) fn take_back(&mut self, vocabulary: Vocabulary, rows: WordRows) {
        debug_assert_eq!(rows.vectors.len(), vocabulary.len() * DIMENSION);
        self.vocabulary = vocabulary;
        (self.vectors, self.scales, self.weights) = (rows.vectors, rows.scales, rows.weights);
    }

    /// Looks up the words that were entered since it was called last.
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

    /// Adds the next item's words. Items are added in order of their places.
    pub(crate) fn add(&mut self, doc: Doc, words: &[(u32, u8)]) {
        for (word, _) in words {
            self.lists.add(*word, doc);
        }
        self.add_unlisted(doc, words.iter().copied());
    }

    /// Adds the next item's words to what items say, but to no list: [`Words::lay_out`] makes those of a cold index.
    pub(crate) fn add_unlisted(&mut self, doc: Doc, words: impl Iterator<Item = (u32, u8)>) {
        debug_assert_eq!(self.starts.len(), doc as usize);
        self.starts.push(self.forward.len());
        self.forward.extend(words);
    }

    /// Makes the lists of all items that `is_listed` says yes to.
    pub(crate) fn lay_out(&mut self, is_listed: impl Fn(Doc) -> bool) {
        let ends = self.starts.iter().skip(1).copied().chain(std::iter::once(self.forward.len()));
        let items = self.starts.iter().zip(ends).zip(0..).filter(|(_, doc)| is_listed(*doc));
        let things = items.clone().flat_map(|((start, end), doc)| {
            self.forward[*start..end].iter().map(move |(word, _)| (*word, doc))
        });
        self.lists = Lists::lay_out(self.numeric.len(), things);
    }

    /// Takes an item out of the lists. What it says can still be asked for.
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

    /// How many words there are.
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

    /// Whether a word holds a digit.
    pub(crate) fn is_numeric(&self, word: u32) -> bool {
        self.numeric[word as usize]
    }

    pub(crate) fn weight(&self, word: u32) -> f32 {
        self.weights[word as usize]
    }

    /// The rows of words that have vectors, with what to multiply each with, and whether it holds a digit.
    pub(super) fn rows(&self) -> (&[i8], &[f32], &[bool]) {
        (&self.vectors, &self.scales, &self.numeric)
    }

    /// The words of questions whose like was looked for.
    pub(super) fn similar(&self) -> &SimilarWords {
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
            assert_eq!(together.enter(&text), alone.enter(&text));
            alone.look_up(&Numbers);
            assert_eq!(together.enter(&text), number as u32, "a known word is not entered again");
        }
        together.look_up(&Numbers);
        assert!(together.vectors == alone.vectors);
        assert_eq!((together.scales, together.weights), (alone.scales, alone.weights));
    }
}
