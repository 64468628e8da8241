//! The terms of a text as PostgreSQL keeps them: a `tsvector` of our own analyser's terms, which no dictionary of the server
//! changes.
//!
//! Every term carries a tag of its user before it. A user's lists in the GIN index are then as long as the user's own data,
//! however many users share a partition. Two users may share a tag, so a query names the user as well. A term that a text holds
//! more than once is kept a second time with a mark; higher counts hardly change a BM25 score. Lengths beyond
//! [`EXACT_LENGTHS`] are rounded. The mark and the lengths are those of the embedded store, so both rank alike.

use std::collections::BTreeMap;
use std::fmt::Write;

use strata_core::UserId;
use strata_core::hash::{fnv, fnv32};
use strata_language::text;

/// Marks a term that a text holds at least twice. It is a private-use character, so no term holds it.
const REPEATED: char = '\u{e001}';

/// The letters of a user's tag.
const TAG_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Up to this length an item's length is kept exactly; beyond it, in steps of a fifth.
const EXACT_LENGTHS: u32 = 24;
const LENGTH_STEP: f64 = 1.2;
const LAST_STEP: u32 = 63;

/// The longest term in bytes that is kept as it is; PostgreSQL takes up to 2,046. A longer one is kept as its hash.
const LONGEST_TERM: usize = 1_000;

/// The most bytes of all terms of a text; PostgreSQL takes 1 MiB. A text with more, which has some 100,000 different terms, is
/// found by the terms that fit.
const MOST_BYTES: usize = 1_000_000;

/// A text's terms and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The text of a `tsvector`.
    pub(crate) vector: String,
    /// About how many terms the text has.
    pub(crate) length: i32,
}

impl Terms {
    pub(crate) fn of(user: &UserId, content: &str) -> Self {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        let mut length = 0_u32;
        text::for_each_term(content, |term| {
            length = length.saturating_add(1);
            match times.get_mut(term) {
                Some(times) => *times += 1,
                None => {
                    times.insert(term.to_owned(), 1);
                }
            }
        });
        let tag = tag(user);
        let (mut vector, mut bytes) = (String::new(), 0);
        for (term, times) in times {
            let term = kept(&term);
            bytes += 2 * (tag.len() + term.len() + REPEATED.len_utf8());
            if bytes > MOST_BYTES {
                break;
            }
            quote(&mut vector, &tag, &term, "");
            if times > 1 {
                quote(&mut vector, &tag, &term, REPEATED.encode_utf8(&mut [0; 4]));
            }
        }
        Self { vector, length: rounded(length).cast_signed() }
    }
}

/// The text of a `tsquery` for items of the user that hold a term, and of one for items that hold it repeatedly.
pub(crate) fn queries(user: &UserId, term: &str) -> (String, String) {
    let (tag, term) = (tag(user), kept(term));
    let (mut once, mut twice) = (String::new(), String::new());
    quote(&mut once, &tag, &term, "");
    quote(&mut twice, &tag, &term, REPEATED.encode_utf8(&mut [0; 4]));
    (once, twice)
}

/// Four letters that stand for the user.
fn tag(user: &UserId) -> String {
    let hash = fnv32(user.as_str().as_bytes());
    let letter = |place: u32| char::from(TAG_LETTERS[((hash >> (8 * place)) & 31) as usize]);
    (0..4).map(letter).collect()
}

fn kept(term: &str) -> String {
    if term.len() <= LONGEST_TERM { term.to_owned() } else { format!("{:016x}", fnv(term.as_bytes())) }
}

/// Appends a quoted lexeme.
fn quote(vector: &mut String, tag: &str, term: &str, mark: &str) {
    let _ = write!(vector, "'{tag}");
    for character in term.chars() {
        if matches!(character, '\'' | '\\') {
            vector.push(character);
        }
        vector.push(character);
    }
    let _ = write!(vector, "{mark}' ");
}

fn rounded(length: u32) -> u32 {
    if length <= EXACT_LENGTHS {
        return length;
    }
    let steps = (f64::from(length) / f64::from(EXACT_LENGTHS)).ln() / LENGTH_STEP.ln();
    let steps = (steps.round() as u32).min(LAST_STEP - EXACT_LENGTHS);
    (f64::from(EXACT_LENGTHS) * LENGTH_STEP.powi(steps.cast_signed())).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_term_is_marked_and_quotes_are_doubled() {
        let user = UserId::new("ann").unwrap();
        let terms = Terms::of(&user, "tea tea milk");
        assert_eq!(terms.length, 3);
        assert_eq!(terms.vector.matches(REPEATED).count(), 1);
        assert_eq!(terms.vector.split_whitespace().count(), 3);
        let mut quoted = String::new();
        quote(&mut quoted, "TAGS", "it's\\", "");
        assert_eq!(quoted, "'TAGSit''s\\\\' ");
    }

    #[test]
    fn long_terms_and_texts_fit() {
        let user = UserId::new("ann").unwrap();
        let (once, _) = queries(&user, &"x".repeat(5_000));
        assert!(once.len() < 40);
        let many: String = (0..300_000).map(|number| format!("word{number} ")).collect();
        assert!(Terms::of(&user, &many).vector.len() < 1_100_000);
    }
}
