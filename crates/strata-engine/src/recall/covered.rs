//! A memory and the turn that it was learned from: if there are more relevant items than places, only one of them is served if
//! it says all that the other one says.
//!
//! Both match a question by the same words, so without this rule a list of five items would hold three. A turn that says
//! more than the memory stays beside it if the memory ranks higher, because the rest of the turn may be what is asked for.

use super::candidates::{Candidate, CandidateSet};
use crate::index::UserIndex;
use strata_core::id::ItemId;

/// The share of an item's words that the other one has to have.
const SHARE: f32 = 0.85;
/// A turn with more words than this does not stand for a memory: the short form is easier to read, and the budget may cut
/// the turn.
const MOST_WORDS: u32 = 100;

/// The candidates, best first, without those that say nothing beyond a better one.
pub(super) fn without_covered<'c>(
    found: &CandidateSet,
    candidates: Vec<&'c Candidate>,
) -> Vec<&'c Candidate> {
    let mut kept: Vec<&Candidate> = Vec::new();
    for candidate in candidates {
        if kept.iter().any(|better| covers(found, better, candidate)) {
            continue;
        }
        // A turn stands for several memories that were learned from it.
        if kept.iter().filter(|better| covers(found, candidate, better)).count() > 1 {
            kept.retain(|better| !covers(found, candidate, better));
        }
        kept.push(candidate);
    }
    kept
}

/// Whether one of the two is a memory, the other one a turn, and the first one is current and says all that the other one says.
fn covers(found: &CandidateSet, one: &Candidate, other: &Candidate) -> bool {
    let of_two_kinds = matches!(
        (one.id, other.id),
        (ItemId::Turn(_), ItemId::Memory(_)) | (ItemId::Memory(_), ItemId::Turn(_))
    );
    let (Some((place, ranked)), Some((other_place, other_ranked))) = (&one.ranked, &other.ranked) else {
        return false;
    };
    if !of_two_kinds || place != other_place || one.replaced_by.is_some() {
        return false;
    }
    let Some(index) = found.indexes.get(*place) else { return false };
    let index = index.read();
    index.documents[ranked.doc as usize].word_count <= MOST_WORDS
        && has_words(&index, ranked.doc, other_ranked.doc)
}

/// Whether an item has nearly all words of another one.
fn has_words(index: &UserIndex, one: u32, other: u32) -> bool {
    // A turn is indexed with its speaker, who is «the user» in a memory.
    let user = index.words.number("user");
    let having = index.words.of(one);
    let wanted: Vec<u32> =
        index.words.of(other).iter().map(|(word, _)| *word).filter(|word| Some(*word) != user).collect();
    let shared = wanted.iter().filter(|word| having.iter().any(|(known, _)| known == *word)).count();
    !wanted.is_empty() && shared as f32 >= SHARE * wanted.len() as f32
}
