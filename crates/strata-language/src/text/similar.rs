//! Substrings and misspellings: what is tried when no term matches.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::normalise::fold;
use super::{MAX_TERM_CHARS, is_stop_word};

/// Words shorter than this resemble everything; they are compared only where the question has none longer.
const MIN_WORD_CHARS: usize = 3;

/// How much two words resemble each other, from 0 to 1: the share of their trigrams that both have, two blanks before
/// the word and one after it counted in. `pg_trgm` computes the same, so that its threshold of 0.3 means the same here.
pub fn trigram_similarity(a: &str, b: &str) -> f32 {
    Trigrams::of(a).similarity(&Trigrams::of(b))
}

/// A question, ready to be compared with many texts.
pub struct SimilarWords {
    folded: String,
    words: Vec<Trigrams>,
    /// How much words of texts resemble the question's: ten thousand texts have ten times as many words as different ones.
    known: RefCell<HashMap<Box<str>, f32>>,
}

impl SimilarWords {
    /// Prepares a question. Stop words and very short words are left out where it has others.
    pub fn new(question: &str) -> Self {
        let folded = fold(question);
        let distinct: HashSet<&str> = words(&folded).collect();
        let telling = |word: &&&str| word.chars().count() >= MIN_WORD_CHARS && !is_stop_word(word);
        let mut words: Vec<Trigrams> =
            distinct.iter().filter(telling).map(|word| Trigrams::of(word)).collect();
        if words.is_empty() {
            words = distinct.iter().map(|word| Trigrams::of(word)).collect();
        }
        Self { folded, words, known: RefCell::default() }
    }

    /// 1 for a text that holds the question as a substring, else the similarity of the two words, one from each, that
    /// resemble each other most; from 0 to 1.
    pub fn score(&self, text: &str) -> f32 {
        if self.folded.is_empty() {
            return 0.0;
        }
        let text = fold(text);
        if text.contains(&self.folded) {
            return 1.0;
        }
        words(&text).map(|word| self.likeness(word)).fold(0.0, f32::max)
    }

    /// The similarity of a word to the one of the question that it resembles most.
    fn likeness(&self, word: &str) -> f32 {
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

/// A word's distinct trigrams, sorted.
struct Trigrams(Vec<[char; 3]>);

impl Trigrams {
    fn of(word: &str) -> Self {
        let padded: Vec<char> = [' ', ' '].into_iter().chain(word.chars()).chain([' ']).collect();
        let mut trigrams: Vec<[char; 3]> =
            padded.windows(3).map(|three| [three[0], three[1], three[2]]).collect();
        trigrams.sort_unstable();
        trigrams.dedup();
        Self(trigrams)
    }

    fn similarity(&self, other: &Self) -> f32 {
        let shared = self.0.iter().filter(|trigram| other.0.binary_search(trigram).is_ok()).count();
        shared as f32 / (self.0.len() + other.0.len() - shared) as f32
    }
}
