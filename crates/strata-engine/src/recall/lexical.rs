//! Lexical scores: BM25 over terms, and late interaction over word vectors.
//!
//! Both scores give each item the share of the question's weight that it covers, from 0 to 1. Three things differ from
//! the textbook, each measured on public conversations (`docs/recall.md`). Lengths are normalised by a constant and not
//! by the mean of the store, because the length of a turn does not depend on other turns. An item inherits a part of
//! its neighbours' matches, word by word, because people answer in other words than those of the question. A common
//! word weighs less by its general frequency, because a user's own few turns do not tell which words are common.

use super::question::{Question, repeated};
use crate::index::{Doc, Placement, UserIndex};
use strata_core::vector::Vector;

/// The saturation of the term frequency: the default of Lucene and Elasticsearch.
pub(super) const K1: f32 = 1.2;

/// Below this cosine, two words count as unrelated.
const UNRELATED: f32 = 0.25;

/// With more items than the first number, word similarities below the second number are ignored: among so many items a
/// faint similarity changes no ranking, and most similar words are only faintly similar. Among few items a faint
/// similarity may be the only way to an answer.
const FAINT: (usize, f32) = (2_000, 0.32);

/// The share of a match that an item inherits from the turn before it and from the turn after it.
const FROM_PREVIOUS: f32 = 0.5;
const FROM_NEXT: f32 = 0.25;

/// The weight of the whole message's matches for one question in it. In «When is Ann's birthday? What does she like?»,
/// the second question needs the name in the first.
const FROM_WHOLE: f32 = 0.25;

/// A word is common if more than one in this many items matches it.
const COMMON: usize = 4;

/// The lexical scores of all of a user's items.
pub(crate) struct Lexical {
    /// BM25, as a share of the question's weight.
    pub(crate) terms: Vec<f32>,
    /// Late interaction, as a share of the question's weight.
    pub(crate) words: Vec<f32>,
    /// Whether each item itself has a term of the question.
    pub(crate) has_term: Vec<bool>,
    /// For each word of the question, the matching words of the user's vocabulary in ascending order, with the quality
    /// of the match.
    matches: Vec<Vec<(u32, f32)>>,
}

impl Lexical {
    pub(crate) fn new(index: &UserIndex, question: &Question) -> Self {
        let mut spread = Spread::new(index);
        let mut has_term = vec![false; index.documents.len()];
        let terms = score_terms(index, question, &mut spread, &mut has_term);
        let matches = matches(index, question);
        let words = score_words(index, question, &matches, &mut spread);
        Self { terms, words, has_term, matches }
    }

    /// Mixes in the scores of the whole message that contains this question: a name behind a pronoun may be elsewhere
    /// in the message.
    pub(crate) fn within(mut self, whole: &Self) -> Self {
        let lean = |own: &mut [f32], whole: &[f32]| {
            for (own, whole) in own.iter_mut().zip(whole) {
                *own = (*own + FROM_WHOLE * whole) / (1.0 + FROM_WHOLE);
            }
        };
        lean(&mut self.terms, &whole.terms);
        lean(&mut self.words, &whole.words);
        self.has_term.clone_from(&whole.has_term);
        self
    }

    /// How well an item itself matches each word of the question, without its neighbours.
    pub(crate) fn coverage(&self, index: &UserIndex, doc: Doc) -> Vec<f32> {
        let best = |matches: &Vec<(u32, f32)>| {
            let found = |(word, _): &(u32, u8)| matches.binary_search_by_key(word, |(word, _)| *word).ok();
            index.words.of(doc).iter().filter_map(found).map(|at| matches[at].1).fold(0.0, f32::max)
        };
        self.matches.iter().map(best).collect()
    }
}

/// The inverse document frequency of a term or word that `holding` of `count` items have.
fn inverse_frequency(count: usize, holding: f32) -> f32 {
    (1.0 + (count as f32 - holding + 0.5) / (holding + 0.5)).ln()
}

fn score_terms(
    index: &UserIndex,
    question: &Question,
    spread: &mut Spread,
    has_term: &mut [bool],
) -> Vec<f32> {
    let count = index.len();
    let mut scores = spread.scores();
    let mut total = 0.0;
    for (hash, times) in &question.terms {
        let postings = index.terms.get(*hash);
        let weight = inverse_frequency(count, postings.len() as f32) * repeated(*times);
        total += weight;
        for (doc, times) in postings.iter() {
            has_term[*doc as usize] = true;
            let times = f32::from(*times);
            spread.offer(*doc, times / (times + K1));
        }
        spread.add_to(&mut scores, |_| weight);
    }
    normalise(scores, total)
}

fn score_words(
    index: &UserIndex,
    question: &Question,
    matches: &[Vec<(u32, f32)>],
    spread: &mut Spread,
) -> Vec<f32> {
    let count = index.len();
    let mut scores = spread.scores();
    let mut total = 0.0;
    for (question_word, matches) in question.words.iter().zip(matches) {
        for (word, matched) in matches {
            for doc in index.words.postings(*word).iter() {
                spread.offer(*doc, *matched);
            }
        }
        let mut weight = 0.0;
        spread.add_to(&mut scores, |holding| {
            weight = question_word.weight * inverse_frequency(count, holding);
            weight
        });
        total += weight;
    }
    normalise(scores, total)
}

fn normalise(mut scores: Vec<f32>, total: f32) -> Vec<f32> {
    if total > 0.0 {
        scores.iter_mut().for_each(|score| *score /= total);
    }
    scores
}

/// For each word of the question, the matching words of the user's vocabulary in ascending order, with the quality of
/// the match from 0 to 1.
fn matches(index: &UserIndex, question: &Question) -> Vec<Vec<(u32, f32)>> {
    let nowhere = Vector { scale: 0.0, values: Vec::new() };
    let directions: Vec<(&str, &Vector)> = question
        .words
        .iter()
        .map(|word| (word.text.as_str(), if word.numeric { &nowhere } else { &word.word.vector }))
        .collect();
    let least = if index.len() > FAINT.0 { FAINT.1 } else { UNRELATED };
    let mut matches = index.words.near(&directions, least);
    for (_, matched) in matches.iter_mut().flatten() {
        *matched = (*matched - UNRELATED) / (1.0 - UNRELATED);
    }
    for (matches, question_word) in matches.iter_mut().zip(&question.words) {
        let Some(word) = index.words.number(&question_word.text) else { continue };
        match matches.binary_search_by_key(&word, |(word, _)| *word) {
            Ok(at) => matches[at].1 = 1.0,
            Err(at) => matches.insert(at, (word, 1.0)),
        }
    }
    matches
}

/// Collects the matches of one word over all items, and shares them with neighbours.
///
/// The lists are written without a branch: each write happens, and the count grows only if the item is new to the list.
/// Whether an item is new is not predictable, and a mispredicted branch costs more than the whole step.
struct Spread<'a> {
    places: &'a [Placement],
    own: Vec<f32>,
    touched: Vec<Doc>,
    touched_count: usize,
    /// One entry for each item, and a last entry for missing neighbours.
    shared: Vec<f32>,
    reached: Vec<Doc>,
    reached_count: usize,
}

impl<'a> Spread<'a> {
    fn new(index: &'a UserIndex) -> Self {
        Self::over(&index.places)
    }

    fn over(places: &'a [Placement]) -> Self {
        let count = places.len();
        Self {
            places,
            own: vec![0.0; count],
            touched: vec![0; count + 1],
            touched_count: 0,
            shared: vec![0.0; count + 1],
            reached: vec![0; count + 2],
            reached_count: 0,
        }
    }

    /// Empty scores: one for each item, and one for missing neighbours.
    fn scores(&self) -> Vec<f32> {
        vec![0.0; self.places.len() + 1]
    }

    /// Records that an item matches with `value`, which is above 0. The best of several matches counts.
    #[inline]
    fn offer(&mut self, doc: Doc, value: f32) {
        let own = &mut self.own[doc as usize];
        self.touched[self.touched_count] = doc;
        self.touched_count += usize::from(*own == 0.0);
        *own = own.max(value.max(f32::MIN_POSITIVE));
    }

    /// Adds the matches, shared with neighbours, to `scores`, and resets the state for the next word. `weigh` gets the
    /// sum of all matches, a soft count of the matching items, and returns the weight.
    fn add_to(&mut self, scores: &mut [f32], weigh: impl FnOnce(f32) -> f32) {
        let docs = &self.touched[..self.touched_count];
        let weight = weigh(docs.iter().map(|doc| self.own[*doc as usize]).sum());
        if self.touched_count * COMMON > self.places.len() {
            self.touched_count = 0;
            self.add_everywhere(scores, weight);
        } else {
            self.add_where_it_matches(scores, weight);
        }
    }

    fn add_where_it_matches(&mut self, scores: &mut [f32], weight: f32) {
        let touched = std::mem::take(&mut self.touched);
        for doc in &touched[..std::mem::take(&mut self.touched_count)] {
            let Placement { previous, next, length_norm } = self.places[*doc as usize];
            let value = std::mem::take(&mut self.own[*doc as usize]) * length_norm;
            self.reach(*doc, value);
            self.reach(next, FROM_PREVIOUS * value);
            self.reach(previous, FROM_NEXT * value);
        }
        for doc in &self.reached[..std::mem::take(&mut self.reached_count)] {
            scores[*doc as usize] += weight * std::mem::take(&mut self.shared[*doc as usize]);
        }
        self.touched = touched;
    }

    /// Same result as [`Spread::add_where_it_matches`], for common words: if many items match, a pass over all items in
    /// order is faster than random access to the matching ones.
    fn add_everywhere(&mut self, scores: &mut [f32], weight: f32) {
        let missing = self.places.len();
        let own = self.own.iter_mut().zip(self.places);
        for ((own, place), shared) in own.zip(&mut self.shared) {
            *shared = std::mem::take(own) * place.length_norm;
        }
        let at = |doc: Doc| self.shared[(doc as usize).min(missing)];
        for ((place, own), score) in self.places.iter().zip(&self.shared).zip(scores) {
            let best = own.max(FROM_PREVIOUS * at(place.previous)).max(FROM_NEXT * at(place.next));
            *score += weight * best;
        }
        self.shared.fill(0.0);
    }

    #[inline]
    fn reach(&mut self, doc: Doc, value: f32) {
        let place = (doc as usize).min(self.places.len());
        let shared = &mut self.shared[place];
        self.reached[self.reached_count] = place as Doc;
        self.reached_count += usize::from(*shared == 0.0);
        *shared = shared.max(value.max(f32::MIN_POSITIVE));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ITEMS: usize = 40;

    /// Items in one row, with neighbours as `joined` says.
    fn places(joined: &[bool], lengths: &[u32]) -> Vec<Placement> {
        let mut places: Vec<Placement> = lengths.iter().map(|length| Placement::new(*length)).collect();
        for (first, joined) in joined.iter().enumerate().take(ITEMS - 1) {
            if *joined {
                places[first].next = first as Doc + 1;
                places[first + 1].previous = first as Doc;
            }
        }
        places
    }

    proptest! {
        #[test]
        fn common_and_rare_words_are_shared_alike(
            joined in proptest::collection::vec(any::<bool>(), ITEMS),
            lengths in proptest::collection::vec(0_u32..60, ITEMS),
            matched in proptest::collection::vec((0..ITEMS as Doc, 0.01_f32..1.0), 0..80),
        ) {
            let places = places(&joined, &lengths);
            let score = |is_common: bool| {
                let mut spread = Spread::over(&places);
                let mut scores = spread.scores();
                // Two rounds show that the state is reset after each word.
                for round in [1.0, 0.5] {
                    for (doc, value) in &matched {
                        spread.offer(*doc, value * round);
                    }
                    if is_common {
                        spread.touched_count = 0;
                        spread.add_everywhere(&mut scores, 0.7);
                    } else {
                        spread.add_where_it_matches(&mut scores, 0.7);
                    }
                }
                scores.truncate(ITEMS);
                scores
            };
            prop_assert_eq!(score(true), score(false));
        }
    }
}
