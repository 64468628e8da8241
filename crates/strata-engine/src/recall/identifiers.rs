//! Identifiers in a question: an order number, an article number, the beginning of a hash.
//!
//! An encoder blurs them: `hinge48213` and `hinge48231` have nearly the same vector. A rare token of such a form that a
//! question and an item share is the strongest evidence that there is, so the items that have it come first. The rule is
//! about the form of a word, not about its meaning: years and small numbers are no identifiers.

use std::collections::HashMap;

use super::question::Question;
use crate::index::{Doc, UserIndex};

/// What an item gains that has all identifiers of a question: more than a cosine can make up for.
const IDENTIFIED: f32 = 1.0;

/// An identifier that more than one in this many items have, and more than [`FEW`], tells them apart no longer.
const RARE: usize = 50;
const FEW: usize = 3;

/// The bonus of each item that has an identifier of the question.
pub(super) fn identified(index: &UserIndex, question: &Question) -> HashMap<Doc, f32> {
    let words = question.words.iter().filter(|word| word.numeric && is_identifier(&word.text));
    let known: Vec<u32> = words.filter_map(|word| index.words.number(&word.text)).collect();
    let mut bonus = HashMap::new();
    for word in &known {
        let postings = index.words.postings(*word);
        if postings.len() > FEW && postings.len() * RARE > index.len() {
            continue;
        }
        for doc in postings.iter() {
            *bonus.entry(*doc).or_insert(0.0) += IDENTIFIED / known.len() as f32;
        }
    }
    bonus
}

/// Whether a word with a digit has the form of an identifier: five digits or more, four that are no year, or letters
/// with at least two digits.
fn is_identifier(word: &str) -> bool {
    let digits = word.chars().filter(|c| c.is_numeric()).count();
    let letters = word.chars().count() - digits;
    let is_year = letters == 0 && digits == 4 && (word.starts_with("19") || word.starts_with("20"));
    match letters {
        0 => digits >= 4 && !is_year,
        _ => digits >= 2 && digits + letters >= 4 && !is_measure(word),
    }
}

/// Whether a word is a number with a unit or an ending: «250ml», «12th», «10pm», «90s».
fn is_measure(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_numeric());
    unit.len() < word.len() && unit.chars().count() <= 3 && unit.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_from_years_and_amounts() {
        for word in ["hinge48213", "48213", "0417", "a1b2", "b767", "9f3c1d", "20240117", "x12y"] {
            assert!(is_identifier(word), "{word}");
        }
        for word in ["2023", "1999", "250ml", "12th", "90s", "10pm", "7", "417", "v2", "1080p"] {
            assert!(!is_identifier(word), "{word}");
        }
    }
}
