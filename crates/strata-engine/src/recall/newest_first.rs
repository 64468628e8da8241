//! Among statements that answer the same thing, the newest comes first.
//!
//! People change their minds, addresses and plans, and say so in nearly the same words. Ranking alone cannot tell which
//! of two such statements is current; their times can. Only the positions of such statements are swapped. All other
//! items keep their positions.

use uuid::Uuid;

use super::lexical::Lexical;
use super::likeness::ItemLikeness;
use super::rank::{Ranked, RankingInputs};
use crate::index::{Doc, UserIndex};
use strata_core::store::CLOCK_SLACK;

/// The number of top items considered, and the minimum ratio of the scores of similar statements.
const LOOKED_AT: usize = 10;
const SCORE_RATIO: f32 = 0.5;

/// Statements of the same subject and attribute: the second matches nearly all that the first matches of the question. A
/// name or a thing that only the first has («Ana's pill», «Luis's pill») makes them statements about different things.
const SAME_MATCH: f32 = 0.95;

/// Near-duplicates: the words that both match cover enough of the question, and the statements share enough of their own
/// words.
const COVERED: f32 = 0.4;
const OVERLAP: f32 = 0.3;

/// Statements with different numbers: both match most of the question, whatever else they say.
const NUMBERS_COVERED: f32 = 0.6;

/// How many items of a wrong clock are passed over to find one of the right time.
const LOOKED_BACK: usize = 10_000;

/// Swaps the positions of similar statements so that the newest comes first.
pub(crate) fn newest_first(inputs: &RankingInputs<'_>, lexical: &Lexical, ranked: &mut [Ranked]) {
    let looked_at = ranked.len().min(LOOKED_AT);
    let weights: Vec<f32> = inputs.question.words.iter().map(|word| word.weight).collect();
    if weights.is_empty() {
        return;
    }
    let statements: Vec<RankedStatement> = ranked[..looked_at]
        .iter()
        .map(|item| RankedStatement::new(inputs.index, lexical, &weights, item))
        .collect();
    let comparison = Comparison { index: inputs.index, full: weights.iter().sum() };
    let mut settled = vec![false; looked_at];
    let mut groups: Vec<Option<u32>> = vec![None; looked_at];
    let mut order: Vec<usize> = (0..looked_at).collect();
    for first in 0..looked_at {
        if settled[first] {
            continue;
        }
        let later = (first + 1..looked_at).filter(|other| !settled[*other]);
        let like = later.filter(|other| comparison.alike(&statements[first], &statements[*other]));
        let places: Vec<usize> = std::iter::once(first).chain(like).collect();
        if places.len() > 1 {
            let mut newest = places.clone();
            newest.sort_by_key(|place| std::cmp::Reverse(said(inputs, statements[*place].doc)));
            for (place, statement) in places.iter().zip(newest) {
                order[*place] = statement;
                settled[*place] = true;
                groups[*place] = Some(first as u32);
            }
        }
    }
    let before: Vec<Ranked> = ranked[..looked_at].to_vec();
    for (place, from) in order.into_iter().enumerate() {
        // Scores stay with the positions, so that the list stays sorted by score.
        let Ranked { score, relevance, .. } = before[place];
        ranked[place] = Ranked { score, relevance, ..before[from].clone() };
        ranked[place].parts.fresher_by = from as i32 - place as i32;
        ranked[place].parts.restated = groups[place];
    }
}

/// The time of an item. Of items with the same time, the one recorded last counts as the newest. An item of a time that is
/// still to come was recorded under a clock that was ahead: it takes the time of the item that was recorded before it.
fn said(inputs: &RankingInputs<'_>, doc: Doc) -> (i64, Uuid) {
    let documents = &inputs.index.documents;
    let latest = inputs.question.asked_at.saturating_add(CLOCK_SLACK.as_micros() as i64);
    let before = documents[..=doc as usize].iter().rev().map(|document| document.created_at);
    let time = before.take(LOOKED_BACK).find(|time| *time <= latest);
    (time.unwrap_or(i64::MIN), documents[doc as usize].id.uuid())
}

/// The features of a top item that decide whether two statements are similar.
struct RankedStatement {
    doc: Doc,
    score: f32,
    speaker: u32,
    /// Whether it is from a time that the question names. A newer statement from another time does not replace it.
    timely: bool,
    /// For each word of the question: the quality of the match times the word's weight.
    matched: Vec<f32>,
    numbers: Vec<u32>,
}

impl RankedStatement {
    fn new(index: &UserIndex, lexical: &Lexical, weights: &[f32], item: &Ranked) -> Self {
        let matched =
            lexical.coverage(index, item.doc).into_iter().zip(weights).map(|(m, w)| m * w).collect();
        let mut numbers: Vec<u32> = index.words.of(item.doc).iter().map(|(word, _)| *word).collect();
        numbers.retain(|word| index.words.is_numeric(*word));
        numbers.sort_unstable();
        let speaker = index.documents[item.doc as usize].speaker;
        Self { doc: item.doc, score: item.score, speaker, timely: item.parts.timely, matched, numbers }
    }
}

struct Comparison<'a> {
    index: &'a UserIndex,
    /// The total weight of the question's words.
    full: f32,
}

impl Comparison<'_> {
    /// Whether the second statement, which ranks lower, repeats or updates the first.
    fn alike(&self, first: &RankedStatement, second: &RankedStatement) -> bool {
        let apart = first.speaker != second.speaker || first.timely != second.timely;
        if second.score < SCORE_RATIO * first.score || apart {
            return false;
        }
        let matched: f32 = first.matched.iter().sum();
        let both: f32 = first.matched.iter().zip(&second.matched).map(|(a, b)| a.min(*b)).sum();
        if both < SAME_MATCH * matched {
            return false;
        }
        let restated = both >= COVERED * self.full
            && ItemLikeness::new(self.index).overlap(first.doc, second.doc) >= OVERLAP;
        let renumbered = both >= NUMBERS_COVERED * self.full
            && !first.numbers.is_empty()
            && !second.numbers.is_empty()
            && first.numbers != second.numbers;
        restated || renumbered
    }
}
