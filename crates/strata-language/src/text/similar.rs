//! Substrings and misspellings: the search that is tried when no term matches.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::normalise::fold;
use super::{MAX_TERM_CHARS, is_stop_word};

/// Words shorter than this are similar to everything. They are compared only if the question has no longer word.
const MIN_WORD_CHARS: usize = 3;

/// A question, ready to be compared with many texts.
pub struct SimilarWords {
    folded: String,
    /// The compared words, and their trigrams in the same order.
    compared: Vec<String>,
    words: Vec<Trigrams>,
    /// The best similarity of each word seen so far: ten thousand texts have ten times more words than distinct words.
    known: RefCell<HashMap<Box<str>, f32>>,
}

impl SimilarWords {
    /// Prepares a question. Stop words and very short words are left out if it has other words.
    pub fn new(question: &str) -> Self {
        let folded = fold(question);
        let distinct: HashSet<&str> = words(&folded).collect();
        let telling = |word: &&&str| word.chars().count() >= MIN_WORD_CHARS && !is_stop_word(word);
        let mut compared: Vec<String> =
            distinct.iter().filter(telling).map(|word| (*word).to_owned()).collect();
        if compared.is_empty() {
            compared = distinct.iter().map(|word| (*word).to_owned()).collect();
        }
        let words = compared.iter().map(|word| Trigrams::of(word)).collect();
        Self { folded, compared, words, known: RefCell::default() }
    }

    /// The words of the question that are compared, for a store that looks similar words up in an index of its own.
    pub fn compared(&self) -> &[String] {
        &self.compared
    }

    /// The question as it is looked for in a text.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// The score of a text, from 0 to 1: 1 if it contains the question as a substring, otherwise the similarity of the most
    /// similar pair of words, one from each side.
    pub fn score(&self, text: &str) -> f32 {
        if self.folded.is_empty() {
            return 0.0;
        }
        let text = fold(text);
        if text.contains(&self.folded) {
            return 1.0;
        }
        words(&text).map(|word| self.best_similarity(word)).fold(0.0, f32::max)
    }

    /// The similarity of a word to the most similar word of the question.
    fn best_similarity(&self, word: &str) -> f32 {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(word) {
            return *known;
        }
        let trigrams = Trigrams::of(word);
        let best = self.words.iter().map(|own| own.similarity(&trigrams)).fold(0.0, f32::max);
        known.insert(word.into(), best);
        best
    }
}

/// The words of folded text: runs of letters and digits, cut like terms.
fn words(folded: &str) -> impl Iterator<Item = &str> {
    let words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.char_indices().nth(MAX_TERM_CHARS).map_or(word, |(end, _)| &word[..end]))
}

/// A word's distinct trigrams, sorted. Two blanks before the word and one after it count.
pub(super) struct Trigrams(Vec<[char; 3]>);

impl Trigrams {
    pub(super) fn of(word: &str) -> Self {
        let padded: Vec<char> = [' ', ' '].into_iter().chain(word.chars()).chain([' ']).collect();
        let mut trigrams: Vec<[char; 3]> =
            padded.windows(3).map(|three| [three[0], three[1], three[2]]).collect();
        trigrams.sort_unstable();
        trigrams.dedup();
        Self(trigrams)
    }

    /// The share of the trigrams that both words have, from 0 to 1. `pg_trgm` computes the same, so its threshold of 0.3 has the
    /// same meaning here.
    pub(super) fn similarity(&self, other: &Self) -> f32 {
        let shared = self.0.iter().filter(|trigram| other.0.binary_search(trigram).is_ok()).count();
        shared as f32 / (self.0.len() + other.0.len() - shared) as f32
    }
}
