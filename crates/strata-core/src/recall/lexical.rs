//! What words say about how well an item answers a question: BM25 over terms, and late interaction over word vectors.
//!
//! Both give each item the share of the question's weight that it covers, from 0 to 1. Three things differ from the
//! textbook, each measured on public conversations (`docs/recall.md`): lengths are normalised absolutely, not against the
//! mean of the store, because what makes a turn long has nothing to do with the others; an item inherits part of what its
//! neighbours match, word by word, because people answer in other words than they were asked in; and a common word counts
//! less by its general frequency, because a user's own few turns do not tell which words are common.

use super::question::{Question, repeated};
use crate::index::{Doc, NO_DOC, UserIndex};
use crate::vector::Vector;

/// How soon more of the same term stops counting: Lucene's and Elasticsearch's default.
const K1: f32 = 1.2;

/// An item of this many words counts half: 1 / (1 + words / 100).
const HALF_LENGTH: f32 = 100.0;

/// Below this cosine two words have nothing to do with each other.
const UNRELATED: f32 = 0.25;

/// How much of the match of the turn before it an item inherits, and of the turn after it.
const FROM_PREVIOUS: f32 = 0.5;
const FROM_NEXT: f32 = 0.25;

/// The lexical scores of all of a user's items.
pub(crate) struct Lexical {
    /// BM25, as a share of the question's weight.
    pub(crate) terms: Vec<f32>,
    /// Late interaction, as a share of the question's weight.
    pub(crate) words: Vec<f32>,
    /// Which items have a term of the question themselves.
    pub(crate) has_term: Vec<bool>,
    /// For each word of the question, the words of the user's vocabulary that match it, rising, and how well.
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

    /// How well an item matches each word of the question, without its neighbours.
    pub(crate) fn coverage(&self, index: &UserIndex, doc: Doc) -> Vec<f32> {
        let best = |matches: &Vec<(u32, f32)>| {
            let found = |(word, _): &(u32, u8)| matches.binary_search_by_key(word, |(word, _)| *word).ok();
            index.words.of(doc).iter().filter_map(found).map(|at| matches[at].1).fold(0.0, f32::max)
        };
        self.matches.iter().map(best).collect()
    }
}

/// How much an item of this many words counts.
pub(crate) fn length_norm(word_count: u32) -> f32 {
    1.0 / (1.0 + word_count as f32 / HALF_LENGTH)
}

/// How much a term or word tells that `holding` of `count` items have.
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
    let mut scores = vec![0.0; index.documents.len()];
    let mut total = 0.0;
    for (hash, times) in &question.terms {
        let postings = index.terms.get(*hash);
        let weight = inverse_frequency(count, postings.len() as f32) * repeated(*times);
        total += weight;
        for (doc, times) in postings {
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
    let mut scores = vec![0.0; index.documents.len()];
    let mut total = 0.0;
    for (question_word, matches) in question.words.iter().zip(matches) {
        for (word, matched) in matches {
            for doc in index.words.postings(*word) {
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

/// For each word of the question, the words of the user's vocabulary that match it, rising, and how well from 0 to 1.
fn matches(index: &UserIndex, question: &Question) -> Vec<Vec<(u32, f32)>> {
    let mut matches = vec![Vec::new(); question.words.len()];
    let nowhere = Vector { scale: 0.0, values: Vec::new() };
    let directions =
        question.words.iter().map(|word| if word.numeric { &nowhere } else { &word.word.vector });
    let directions: Vec<&Vector> = directions.collect();
    index.words.near(&directions, UNRELATED, |place, word, cosine| {
        matches[place].push((word, (cosine - UNRELATED) / (1.0 - UNRELATED)));
    });
    for (matches, question_word) in matches.iter_mut().zip(&question.words) {
        let Some(word) = index.words.number(&question_word.text) else { continue };
        match matches.binary_search_by_key(&word, |(word, _)| *word) {
            Ok(at) => matches[at].1 = 1.0,
            Err(at) => matches.insert(at, (word, 1.0)),
        }
    }
    matches
}

/// Gathers the matches of one word over all items and lets neighbours share them.
struct Spread {
    norms: Vec<f32>,
    /// What was said just before and after each item, side by side: the documents themselves are too far apart.
    neighbours: Vec<(Doc, Doc)>,
    own: Vec<f32>,
    touched: Vec<Doc>,
    shared: Vec<f32>,
    reached: Vec<Doc>,
}

impl Spread {
    fn new(index: &UserIndex) -> Self {
        let count = index.documents.len();
        let (norms, neighbours) = index
            .documents
            .iter()
            .map(|document| (length_norm(document.word_count), (document.previous, document.next)))
            .unzip();
        Self {
            norms,
            neighbours,
            own: vec![0.0; count],
            touched: Vec::new(),
            shared: vec![0.0; count],
            reached: Vec::new(),
        }
    }

    /// An item matches with `value`; of several matches the best counts.
    fn offer(&mut self, doc: Doc, value: f32) {
        let own = &mut self.own[doc as usize];
        if *own == 0.0 {
            self.touched.push(doc);
        }
        *own = own.max(value);
    }

    /// Adds the matches, shared with neighbours, to `scores`, by the weight that `weigh` gives for how many items match,
    /// softly counted; then is ready for the next word.
    fn add_to(&mut self, scores: &mut [f32], weigh: impl FnOnce(f32) -> f32) {
        let holding: f32 = self.touched.iter().map(|doc| self.own[*doc as usize]).sum();
        let weight = weigh(holding);
        for at in 0..self.touched.len() {
            let doc = self.touched[at];
            let value = self.own[doc as usize] * self.norms[doc as usize];
            self.own[doc as usize] = 0.0;
            let (previous, next) = self.neighbours[doc as usize];
            self.reach(doc, value);
            self.reach(next, FROM_PREVIOUS * value);
            self.reach(previous, FROM_NEXT * value);
        }
        for doc in self.reached.drain(..) {
            scores[doc as usize] += weight * self.shared[doc as usize];
            self.shared[doc as usize] = 0.0;
        }
        self.touched.clear();
    }

    fn reach(&mut self, doc: Doc, value: f32) {
        if doc == NO_DOC || value == 0.0 {
            return;
        }
        let shared = &mut self.shared[doc as usize];
        if *shared == 0.0 {
            self.reached.push(doc);
        }
        *shared = shared.max(value);
    }
}
