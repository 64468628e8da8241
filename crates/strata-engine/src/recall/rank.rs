//! The relevance ranking of a user's items for a question.
//!
//! The scores of terms, words and vectors are fused. Items that resemble the best answers get a bonus, because the
//! other half of an answer is often in another item. Among statements that answer the same thing, the newest comes
//! first. `docs/recall.md` has the measurements behind each constant.

use std::cmp::Ordering;

use super::best::Scores;
use super::calibration::{self, QuestionShape};
use super::exclusions::{Excluded, ExclusionRules};
use super::identifiers::{NamedItems, SOLE_WEIGHT};
use super::lexical::Lexical;
use super::likeness::{ItemLikeness, MAX_COMPARED};
use super::multi_question;
use super::question::Question;
use super::visible::VisibleItems;
use crate::index::{Doc, UserIndex};
use strata_core::vector::Vector;

/// The weight of the cosine of the means beside terms and words, and the cosine below which it counts as 0.
const MEAN_WEIGHT: f32 = 0.15;
const MEAN_UNRELATED: f32 = 0.25;

/// The weight of terms and words beside the encoder's cosine. For a message of more than [`LONG`] distinct words it grows
/// with the logarithm of their number: one vector blurs several sentences, and words do not.
pub(super) const LEXICAL_WEIGHT: f32 = 0.35;
const LONG: f32 = 25.0;
const LONG_GROWTH: f32 = 3.0;

/// Instead of [`LEXICAL_WEIGHT`] where question and item are both in Chinese: the encoder reads only glosses of the words,
/// and the words themselves tell more.
const CHINESE_LEXICAL_WEIGHT: f32 = 2.0;

/// Added to the cosine of a question and an item in different scripts. Those that belong together have lower cosines than
/// in one language (a median of 0.33 instead of 0.6), and those that do not have lower ones too (0.2).
const ACROSS_SCRIPTS: f32 = 0.05;

/// A long item resembles many questions a little, and answers few. With an encoder, the score of an item of more than
/// [`LONG_ITEM`] words loses this share with the logarithm of its length.
const LONG_ITEM: f32 = 100.0;
const LONG_ITEM_LOSS: f32 = 0.1;
/// Beyond this many times [`LONG_ITEM`], length counts no more.
const MAX_EXCESS: f32 = 20.0;

/// An item from a time that the question names gets this bonus, as a share of its score.
const TIME_WEIGHT: f32 = 0.3;

/// An item of the session in which the question is asked gets this bonus, as a share of its score.
pub(super) const SESSION_WEIGHT: f32 = 0.1;

/// Similarity to the best answers adds to an item's score: the weight, the number of best answers compared with, and
/// the number of items that can gain.
const HOP_WEIGHT: f32 = 0.3;
/// Instead of [`HOP_WEIGHT`] with an encoder, which finds most of the other half by itself.
const HOP_WEIGHT_ENCODED: f32 = 0.15;
const HOP_FROM: usize = 5;
const HOP_TO: usize = 80;
const _: () = assert!(HOP_FROM <= MAX_COMPARED, "likeness compares with so many at once");

/// Maps the score of an item without an encoder vector to the scale of encoded items (offset, factor). Fitted on the
/// answers to public English questions, for which both scores are known.
const TO_ENCODED: (f32, f32) = (0.34, 0.47);

/// The share of the standing that comes from the distance to the best score. The rest depends on whether the item is
/// among the first `served` items, so that recency and diversity do not push out good answers.
const NEARNESS: f32 = 0.6;
const PLACE_STEEPNESS: i32 = 20;

/// Below this share of the best score, an item's position stops counting.
const LEAST_MATCH: f32 = 0.005;

/// A question of a message whose best item helps with a lower probability contributes no items, if another question has
/// better ones.
const MEANINGFUL: f32 = 0.1;

/// The quality from which a match counts as the same word in another form: «lives» for «live».
const SAME_WORD: f32 = 0.6;

/// The BM25 share of an item that has every term of the question once.
pub(super) const FULL_TERM: f32 = 1.0 / (1.0 + super::lexical::K1);

/// One ranked item, with the parts of its score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) doc: Doc,
    /// All parts together.
    pub(crate) score: f32,
    /// The probability that the item helps to answer.
    pub(crate) relevance: f32,
    /// The standing among the items of this question, from 0 to 1. Recency and diversity choose by it.
    pub(crate) standing: f32,
    pub(crate) parts: ScoreParts,
}

/// The parts of a score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ScoreParts {
    /// BM25, as a share of the question's weight.
    pub(crate) terms: f32,
    /// Late interaction, as a share of the question's weight.
    pub(crate) words: f32,
    /// The cosine of the means of word vectors.
    pub(crate) mean: f32,
    /// The encoder's cosine, if the item has a vector.
    pub(crate) encoder: Option<f32>,
    /// Whether the encoder compared other items, so that a score without its cosine must be mapped to its scale.
    pub(crate) unread: bool,
    /// Whether it is written in another script than the question.
    pub(crate) across: bool,
    /// The weight of terms and words beside the encoder.
    pub(crate) lexical_weight: f32,
    /// The share of an encoded score that an item loses by its length.
    pub(crate) length_loss: f32,
    /// Whether it is from a time that the question names.
    pub(crate) timely: bool,
    /// Whether it is from the session in which the question is asked.
    pub(crate) in_session: bool,
    /// The bonus for having the question's identifiers.
    pub(crate) identified: f32,
    /// The share of the question that is words of this item alone, if it is long.
    pub(crate) sole: f32,
    /// The bonus for similarity to the best answers.
    pub(crate) likeness: f32,
    /// How many positions the item moved up because it is newer than a similar statement; negative if it moved down.
    pub(crate) fresher_by: i32,
    /// The place of the first statement about the same thing, if there are several: their times decide their order.
    pub(crate) restated: Option<u32>,
    /// The share of the question's weight that the item itself repeats, in any form of a word, without its neighbours.
    pub(crate) exact: f32,
}

/// The inputs of a ranking.
#[derive(Clone, Copy)]
pub(crate) struct RankingInputs<'a> {
    pub(crate) index: &'a UserIndex,
    pub(crate) question: &'a Question,
    /// The vector of each question in the message, in the space of the index's vectors.
    pub(crate) vectors: &'a [Option<Vector>],
    /// Whether the encoder that made the vectors knows Chinese.
    pub(crate) reads_chinese: bool,
    /// The session whose items are preferred, by its number in the index.
    pub(crate) preferred: Option<u32>,
    /// Which items may be seen.
    pub(crate) visible: &'a VisibleItems<'a>,
    /// The exclusion rules; `None` for the order by relevance.
    pub(crate) rules: Option<&'a ExclusionRules<'a>>,
}

/// A ranking, and the numbers of hits.
pub(crate) struct Ranking {
    /// The best items, best first.
    pub(crate) items: Vec<Ranked>,
    /// VisibleItems items that share a term with the question.
    pub(crate) term_hits: u32,
    /// VisibleItems items that were compared by their vectors.
    pub(crate) vector_hits: u32,
    /// Items that rank high enough and are excluded.
    pub(crate) excluded: Excluded,
}

/// Ranks the visible items and returns the best `limit`. The caller intends to serve `served` of them.
pub(crate) fn rank(inputs: &RankingInputs<'_>, limit: usize, served: usize) -> Ranking {
    let whole = Lexical::new(inputs.index, inputs.question);
    let mut ranking = if inputs.question.sub_questions.is_empty() {
        rank_one(inputs, &whole, limit)
    } else {
        rank_each(inputs, &whole, limit)
    };
    set_standing(&mut ranking.items, served);
    ranking
}

/// Ranks for each question of a message with several, and interleaves the answers. A question without a meaningful
/// answer contributes none.
fn rank_each(inputs: &RankingInputs<'_>, whole: &Lexical, limit: usize) -> Ranking {
    let mut rankings: Vec<Ranking> = inputs
        .question
        .sub_questions
        .iter()
        .enumerate()
        .map(|(place, sub_question)| {
            let vectors = inputs.vectors.get(place..=place).unwrap_or_default();
            let lexical = Lexical::new(inputs.index, sub_question).within(whole);
            rank_one(&RankingInputs { question: sub_question, vectors, ..*inputs }, &lexical, limit)
        })
        .collect();
    let means = |ranking: &Ranking| ranking.items.iter().any(|item| item.relevance >= MEANINGFUL);
    if rankings.iter().any(means) {
        rankings.retain(means);
    }
    let term_hits = rankings.iter().map(|ranking| ranking.term_hits).max().unwrap_or_default();
    let vector_hits = rankings.iter().map(|ranking| ranking.vector_hits).max().unwrap_or_default();
    let (lists, exclusions): (Vec<_>, Vec<_>) =
        rankings.into_iter().map(|ranking| (ranking.items, ranking.excluded)).unzip();
    let mut items = multi_question::interleave(lists);
    items.truncate(limit);
    let excluded = Excluded::of_all(exclusions, &items);
    Ranking { items, term_hits, vector_hits, excluded }
}

/// Ranks for one question.
fn rank_one(inputs: &RankingInputs<'_>, lexical: &Lexical, limit: usize) -> Ranking {
    let RankingInputs { index, question, visible, .. } = inputs;
    let encoder = EncoderScores::new(inputs);
    let (unread, weights) = (encoder.is_used(), lexical_weights(question));
    let named = NamedItems::new(index, question, LONG_ITEM);
    let parts = |doc: Doc, encoder: Option<f32>| ScoreParts {
        identified: named.identified(doc),
        sole: named.sole(doc),
        terms: lexical.terms[doc as usize],
        words: lexical.words[doc as usize],
        encoder,
        unread,
        across: question.latin != index.documents[doc as usize].latin,
        lexical_weight: weights[usize::from(!index.documents[doc as usize].latin)],
        length_loss: length_loss(index.documents[doc as usize].word_count),
        timely: is_timely(inputs, doc),
        in_session: is_preferred(inputs, doc),
        ..ScoreParts::default()
    };
    let docs = 0..index.documents.len() as Doc;
    let values = if unread || !question.times.is_empty() || inputs.preferred.is_some() {
        let score = |doc: Doc| parts(doc, encoder.cosine(doc)).score();
        docs.map(|doc| if visible.contains(doc) { score(doc) } else { f32::NEG_INFINITY }).collect()
    } else {
        let lexical = lexical.terms.iter().zip(&lexical.words);
        lexical.zip(docs).map(|((terms, words), doc)| terms + words + named.bonus(doc)).collect()
    };
    let scores = Scores { index, visible, values };
    let mut term_hits = scores.count(|doc| lexical.has_term[doc as usize]);
    let vector_hits = if unread { scores.count(|doc| encoder.reads(doc)) } else { 0 };
    let most = HOP_TO.max(limit);
    let (mut best, excluded) = super::exclusions::best_without_excluded(inputs, &scores, most, limit);
    best.truncate(most);
    let not_hits = excluded
        .items
        .iter()
        .filter(|(scored, reason)| reason.is_no_hit() && lexical.has_term[scored.doc as usize]);
    term_hits -= not_hits.count() as u32;
    // The parts are computed for the remaining items only.
    let mut scored: Vec<Ranked> = best
        .into_iter()
        .map(|Scored { doc, score }| {
            let parts = parts(doc, encoder.cosine(doc));
            Ranked { doc, score, relevance: 0.0, standing: 0.0, parts }
        })
        .collect();
    let unread_docs: Vec<Doc> =
        scored.iter().filter(|item| item.parts.encoder.is_none()).map(|item| item.doc).collect();
    let cosines = index.mean_cosines(&unread_docs, &question.mean);
    for (item, cosine) in scored.iter_mut().filter(|item| item.parts.encoder.is_none()).zip(cosines) {
        item.parts.mean = (cosine - MEAN_UNRELATED).max(0.0) * index.places[item.doc as usize].length_norm;
        item.score = item.parts.score();
    }
    sort(index, &mut scored);
    hop(index, &mut scored, if unread { HOP_WEIGHT_ENCODED } else { HOP_WEIGHT });
    keep_best(index, &mut scored, limit);
    set_relevance(inputs, lexical, &mut scored);
    super::newest_first::newest_first(inputs, lexical, &mut scored);
    Ranking { items: scored, term_hits, vector_hits, excluded }
}

impl ScoreParts {
    /// All parts together.
    fn score(&self) -> f32 {
        let lexical = self.terms + self.words;
        let score = match self.encoder {
            Some(cosine) => (cosine + self.lexical_weight * lexical) * (1.0 - self.length_loss),
            None if self.unread => {
                TO_ENCODED.0 + TO_ENCODED.1 * (lexical + MEAN_WEIGHT * self.mean) + self.reweighed()
            }
            None => lexical + MEAN_WEIGHT * self.mean,
        };
        let bonus = |applies: bool, weight: f32| if applies { 1.0 + weight } else { 1.0 };
        let named = self.identified + SOLE_WEIGHT * self.sole;
        score * bonus(self.timely, TIME_WEIGHT) * bonus(self.in_session, SESSION_WEIGHT) + named
    }

    /// The gain or loss of an encoded score by weights that the regression of its probability does not know: those of long
    /// questions, of Chinese and of long items.
    pub(super) fn reweighed(&self) -> f32 {
        let lexical = self.terms + self.words;
        let (usual, given) = (LEXICAL_WEIGHT * lexical, self.lexical_weight * lexical);
        self.encoder
            .map_or(given - usual, |cosine| (cosine + given) * (1.0 - self.length_loss) - (cosine + usual))
    }
}

/// The weights of terms and words beside the encoder, for items in Latin script and in Chinese.
fn lexical_weights(question: &Question) -> [f32; 2] {
    let usual = LEXICAL_WEIGHT * (1.0 + LONG_GROWTH * (question.words.len() as f32 / LONG).max(1.0).ln());
    [usual, if question.latin { usual } else { CHINESE_LEXICAL_WEIGHT }]
}

fn length_loss(words: u32) -> f32 {
    let excess = words as f32 / LONG_ITEM - 1.0;
    if excess <= 0.0 { 0.0 } else { LONG_ITEM_LOSS * excess.min(MAX_EXCESS).ln_1p() }
}

/// The encoder's cosines, if it can read both the question and the item.
struct EncoderScores<'a> {
    index: &'a UserIndex,
    vector: Option<&'a Vector>,
    /// Whether the question is in Latin script.
    latin: bool,
    reads_chinese: bool,
}

impl<'a> EncoderScores<'a> {
    fn new(inputs: &RankingInputs<'a>) -> Self {
        let RankingInputs { index, question, reads_chinese, .. } = *inputs;
        let fits = |vector: &&Vector| {
            (question.latin || reads_chinese) && vector.values.len() == index.vectors.dimension
        };
        let vector = inputs.vectors.first().and_then(Option::as_ref);
        Self { index, vector: vector.filter(fits), latin: question.latin, reads_chinese }
    }

    fn is_used(&self) -> bool {
        self.vector.is_some() && self.index.vectors.count > 0
    }

    fn cosine(&self, doc: Doc) -> Option<f32> {
        let vector = self.vector?;
        let (values, scale) = self.index.vectors.get(doc).filter(|_| self.is_readable(doc))?;
        let cosine = strata_core::dot::dot(values, &vector.values) as f32 * scale * vector.scale;
        let across = self.latin != self.index.documents[doc as usize].latin;
        Some(if across { cosine + ACROSS_SCRIPTS } else { cosine })
    }

    /// Whether the encoder compares an item with the question.
    fn reads(&self, doc: Doc) -> bool {
        self.vector.is_some() && self.index.vectors.get(doc).is_some() && self.is_readable(doc)
    }

    fn is_readable(&self, doc: Doc) -> bool {
        self.reads_chinese || self.index.documents[doc as usize].latin
    }
}

fn is_timely(inputs: &RankingInputs<'_>, doc: Doc) -> bool {
    inputs.question.times.iter().any(|span| {
        let said = inputs.index.documents[doc as usize].created_at;
        let (start, end) = super::question::whole_days(span);
        start <= said && said < end
    })
}

fn is_preferred(inputs: &RankingInputs<'_>, doc: Doc) -> bool {
    inputs.preferred.is_some_and(|session| inputs.index.documents[doc as usize].session == session)
}

/// The direction of an item: the weighted mean of its words.
pub(crate) fn mean_vector(index: &UserIndex, doc: Doc) -> Vector {
    Vector::quantise(&index.mean(doc))
}

/// Adds a bonus to items that resemble the best answers.
fn hop(index: &UserIndex, scored: &mut [Ranked], weight: f32) {
    let Some(best) = scored.first().map(|item| item.score).filter(|best| *best > 0.0) else { return };
    let from: Vec<Doc> = scored.iter().take(HOP_FROM).map(|item| item.doc).collect();
    let weights: Vec<f32> =
        scored.iter().take(HOP_FROM).map(|item| (item.score.max(0.0) / best).powi(2)).collect();
    let total: f32 = weights.iter().sum();
    let likeness = ItemLikeness::new(index);
    let likeness = likeness.with(&from);
    for item in scored.iter_mut().take(HOP_TO) {
        let cosines = likeness.cosines(item.doc);
        let others = from.iter().zip(&weights).zip(cosines).filter(|((doc, _), _)| **doc != item.doc);
        let like: f32 = others.map(|((_, weight), cosine)| weight * cosine).sum();
        item.parts.likeness = weight * best * like / total;
        item.score += item.parts.likeness;
    }
    sort(index, scored);
}

/// An item with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) doc: Doc,
    pub(crate) score: f32,
}

impl From<&Self> for Scored {
    fn from(scored: &Self) -> Self {
        *scored
    }
}

impl From<&Ranked> for Scored {
    fn from(ranked: &Ranked) -> Self {
        Self { doc: ranked.doc, score: ranked.score }
    }
}

/// Best first. Among equal scores, the item that was recorded first wins, as its id tells: the position in the index
/// also depends on items that were hidden or revised since.
pub(super) fn better<T>(index: &UserIndex, a: &T, b: &T) -> Ordering
where
    Scored: for<'a> From<&'a T>,
{
    let (a, b) = (Scored::from(a), Scored::from(b));
    let id = |item: Scored| index.documents[item.doc as usize].id.uuid();
    b.score.total_cmp(&a.score).then_with(|| id(a).cmp(&id(b)))
}

fn sort<T>(index: &UserIndex, scored: &mut [T])
where
    Scored: for<'a> From<&'a T>,
{
    scored.sort_unstable_by(|a, b| better(index, a, b));
}

/// Keeps the best `count`, best first.
pub(super) fn keep_best<T>(index: &UserIndex, scored: &mut Vec<T>, count: usize)
where
    Scored: for<'a> From<&'a T>,
{
    if count == 0 {
        scored.clear();
    } else if scored.len() > count {
        scored.select_nth_unstable_by(count - 1, |a, b| better(index, a, b));
        scored.truncate(count);
    }
    sort(index, scored);
}

/// Sets the probability that each item helps.
fn set_relevance(inputs: &RankingInputs<'_>, lexical: &Lexical, scored: &mut [Ranked]) {
    let RankingInputs { index, question, .. } = inputs;
    let weights: Vec<f32> = question.words.iter().map(|word| word.weight).collect();
    let full = weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    for item in scored.iter_mut() {
        let covered = lexical.coverage(index, item.doc).into_iter().zip(&weights);
        let same = covered.filter(|(quality, _)| *quality >= SAME_WORD).map(|(_, weight)| weight);
        let by_words = same.sum::<f32>() / full;
        item.parts.exact = by_words.max(item.parts.terms / FULL_TERM).min(1.0);
    }
    let shape = QuestionShape {
        words: question.words.len(),
        latin: question.latin,
        searched_words: Some(index.word_count()),
    };
    calibration::calibrate(scored, shape);
}

/// Sets each item's standing from its position and its score. The position counts, so that recency and diversity do not
/// push out good answers.
pub(super) fn set_standing(scored: &mut [Ranked], served: usize) {
    let (Some(best), Some(worst)) = (scored.first().map(|i| i.score), scored.last().map(|i| i.score)) else {
        return;
    };
    for (place, item) in scored.iter_mut().enumerate() {
        let nearness = if best > worst { (item.score - worst) / (best - worst) } else { 1.0 };
        let among = 1.0 / (1.0 + ((place as f32 + 1.0) / (served as f32 + 0.5)).powi(PLACE_STEEPNESS));
        // In a small store, even unrelated items are among the first.
        let matched = (item.score / (LEAST_MATCH * best).max(f32::MIN_POSITIVE)).clamp(0.0, 1.0);
        item.standing = NEARNESS * nearness + (1.0 - NEARNESS) * among * matched;
    }
}
