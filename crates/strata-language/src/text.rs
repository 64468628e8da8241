//! Text analysis: turns a text into the terms that are indexed and searched, in the same way for every backend.
//!
//! English words are stemmed and stop words are removed. Scripts without spaces (Chinese, Japanese, Thai and others)
//! become overlapping pairs of characters: they recall more than the words of a dictionary and need no dictionary
//! (`docs/text-analysis.md` has the figures). A term contains only letters, digits and their marks. A database gets the
//! terms with spaces between them, and its own tokenizer leaves each of them whole.
//!
//! Deliberately absent: ranking, phrases, synonyms, and detection of a text's language. Start reading at
//! [`for_each_term`].

mod normalise;
mod runs;
mod similar;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

pub use normalise::{fold, simplified};
pub use similar::SimilarWords;
pub use words::{WordRun, for_each_word};

use normalise::normalise;
use runs::{Run, for_each_run};

/// The maximum length of a term in characters. Longer words are cut: they are hashes, base64 and random keystrokes, and
/// their beginning identifies them as well as the whole.
const MAX_TERM_CHARS: usize = 64;

/// English words that carry grammar rather than meaning. Leaving them out gains 1 to 17 points of recall on English
/// conversations; a Chinese list moved the figures by less than half a point either way, so Chinese has no list.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a an the and or but if of at by for with about to from in on is are was were be been being am do does did doing \
     have has had having i me my we our you your he him his she her it its they them their this that these those what \
     which who whom whose when where why how as so than then there here not no nor can could will would shall should \
     may might must s t d ll m re ve"
        .split_ascii_whitespace()
        .collect()
});

/// The terms of `text` as they are indexed, in order and with repeats.
pub fn analyse(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for_each_term(text, |term| terms.push(term.to_owned()));
    terms
}

/// The distinct terms of a question, in order of first appearance.
pub fn query_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut terms = analyse(text);
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// Calls `emit` with each term of `text`, in order and with repeats.
///
/// A text that has nothing but stop words keeps them: «to be or not to be» can be found.
pub fn for_each_term(text: &str, mut emit: impl FnMut(&str)) {
    let text = normalise(text);
    let stemmer = Stemmer::create(Algorithm::English);
    let mut empty = true;
    for_each_run(&text, |run| {
        if matches!(run, Run::Word(word) if is_stop_word(word)) {
            return;
        }
        empty = false;
        match run {
            Run::Word(word) => emit(&stem(&stemmer, word)),
            Run::Compound(word) | Run::Unspaced(word) => emit(word),
        }
    });
    if empty {
        for_each_run(&text, |run| emit(run.as_str()));
    }
}

pub(crate) fn is_stop_word(word: &str) -> bool {
    word.len() <= 6 && STOP_WORDS.contains(word)
}

/// The English stem. It is stable: the stem of a stem is itself, so analysing terms again changes nothing. Words with
/// other letters than plain Latin ones are not English and stay unchanged.
fn stem<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let mut last = Cow::Borrowed(word);
    loop {
        let stem = stemmer.stem(&last);
        // `cans` and `wills` would otherwise become stop words.
        if stem == last || stem.is_empty() || is_stop_word(&stem) {
            break;
        }
        last = Cow::Owned(stem.into_owned());
    }
    last
}
