//! A second look: where the scores leave in doubt whether anything helps to answer, the reader reads the best candidates.
//!
//! The ranking sees a question and an item apart, by words and vectors. In a small store, an answer in other words scores
//! like an item of the same topic, and an item about the same thing like an answer. The reader sees both together. For a question
//! whose items have vectors, its judgement and the cosine give the relevance ([`super::calibration::by_reading`]); for any other
//! message, the judgement is added to the log odds of doubtful items. Reading takes some milliseconds an item, so questions with
//! clearly no answer and large stores, where the scores know better, go without it. The order stays: [`super::rerank`] changes it
//! for requests that want it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use strata_core::error::Result;
use strata_core::id::ItemId;
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::store::Item;
use strata_language::rules::{is_question, with_question_mark};
use strata_language::statements::rough_length;

use super::Recall;
use super::calibration::{beside, by_reading, shifted};
use super::candidates::{Candidate, CandidateSet};
use super::deadline::in_time;
use super::request::{RecallPlan, RecallRequest};

/// The relevances of the best candidate that leave a doubt. `docs/recall.md` has the figures for other ranges.
const DOUBTFUL: RangeInclusive<f32> = 0.08..=0.6;
/// The least relevance that leaves a doubt for an item in another script than the question: in a small store, most items reach
/// [`DOUBTFUL`]'s by chance.
const DOUBTFUL_ACROSS: f32 = 0.2;

/// The number of words of a user's items up to which the reader is asked: those of which the fit of the scores knew none. In
/// `beam100k` (30,000 words), the reader would serve something to 38 instead of 29 % of the questions of others.
const SMALL_STORE: u64 = 4_000;

/// The least relevance of the best candidate from which a question's items are read, if they have vectors, and how many are. Below
/// it lie 2 of 165 answers of `evals/withheld`; of more than five items the reader finds no more of them.
const WORTH_READING: f32 = 0.04;
const READ_OF_QUESTION: usize = 5;

/// How many candidates are read in case of doubt, and the least relevance of each.
const READ: usize = 8;
const LEAST_READ: f32 = 0.01;

/// The weight of the reader's logit in the log odds, and what is added to the logit.
const LOGIT_WEIGHT: f32 = 0.8;
const LOGIT_OFFSET: f32 = 0.5;

impl Recall {
    /// Corrects the relevance of the best candidates by the reader's judgement if they leave a doubt. Returns the items that
    /// were loaded for it.
    pub(super) async fn look_again(
        &self,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &mut CandidateSet,
    ) -> Result<HashMap<ItemId, Item>> {
        let look = if plan.second_look { Look::at(request, found) } else { None };
        let (Some(reader), Some(look)) = (&self.reader, look) else { return Ok(HashMap::new()) };
        let (question_pieces, item_pieces) = reader.reads();
        if rough_length(&request.query) > question_pieces {
            return Ok(HashMap::new());
        }
        let read = look.places(&found.candidates);
        let candidates: Vec<Candidate> = read.iter().map(|at| found.candidates[*at].clone()).collect();
        let (items, turns) = self.in_context(&found.owners, &candidates).await?;
        let question = with_question_mark(&request.query);
        match in_time(request.deadline.as_ref(), reader.answers(&question, &turns)).await {
            None => found.late = found.late.or(Some(LateStage::SecondLook)),
            Some(Ok(logits)) => {
                for ((at, turn), logit) in read.into_iter().zip(&turns).zip(logits) {
                    let is_whole = rough_length(&turn.text) <= item_pieces;
                    look.judge(&mut found.candidates[at], logit, is_whole);
                }
                look.compare(&mut found.candidates);
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the reader failed; the scores stay in doubt");
                found.error_stage = found.error_stage.or(Some(ErrorStage::Retrieval));
            }
        }
        Ok(items)
    }
}

/// How the reader's judgements are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// For a question whose items have vectors: a judgement and the cosine give the relevance.
    Question,
    /// In doubt: a judgement is added to the relevance.
    Doubt,
}

impl Look {
    /// How a small store is looked at; `None` if it is not. The store's own index, for large users, has no indexes in memory. A
    /// list of all memories of a kind leaves no doubt.
    fn at(request: &RecallRequest, found: &CandidateSet) -> Option<Self> {
        let words = || found.indexes.iter().map(|index| index.read().word_count()).sum::<u64>();
        if found.indexes.is_empty() || found.is_list || words() > SMALL_STORE {
            return None;
        }
        let asks = is_question(&request.query);
        let may_answer =
            |candidate: &Candidate| cosine(candidate).is_some() && candidate.relevance >= WORTH_READING;
        if asks && found.candidates.iter().any(may_answer) {
            return Some(Self::Question);
        }
        is_doubtful(&found.candidates).then_some(Self::Doubt)
    }

    /// The places of the candidates that are read.
    fn places(self, candidates: &[Candidate]) -> Vec<usize> {
        let most = match self {
            Self::Question => READ_OF_QUESTION,
            Self::Doubt => READ,
        };
        (0..candidates.len()).filter(|at| candidates[*at].relevance >= LEAST_READ).take(most).collect()
    }

    /// Applies a judgement. A low one of an item that was not read to its end says nothing: the rest may hold the answer.
    fn judge(self, candidate: &mut Candidate, logit: f32, is_whole: bool) {
        let before = candidate.relevance;
        let after = match (self, cosine(candidate)) {
            (Self::Question, Some(cosine)) => by_reading(logit, cosine),
            (Self::Question, None) if !DOUBTFUL.contains(&before) => before,
            _ => shifted(before, LOGIT_WEIGHT * (logit + LOGIT_OFFSET)),
        };
        if logit.is_finite() && (is_whole || after > before) {
            candidate.judged = Some(logit);
            candidate.relevance = after;
        }
    }

    /// Compares the items of a question with the best one that was read: a part of an answer helps beside it, and an item that was
    /// not read helps at most as much.
    fn compare(self, candidates: &mut [Candidate]) {
        if self == Self::Doubt {
            return;
        }
        let judged = candidates.iter().filter(|candidate| candidate.judged.is_some());
        let best = judged.map(|candidate| candidate.relevance).fold(0.0, f32::max);
        for candidate in candidates.iter_mut().filter(|candidate| cosine(candidate).is_some()) {
            candidate.relevance = match candidate.judged {
                Some(_) => beside(candidate.relevance, best),
                None => candidate.relevance.min(best),
            };
        }
    }
}

/// The encoder's cosine of an item in the question's own script. An item with the question's identifiers, or a long one with its rare
/// words, has better evidence.
fn cosine(candidate: &Candidate) -> Option<f32> {
    let parts = &candidate.ranked.as_ref()?.1.parts;
    parts.encoder.filter(|_| !parts.across && parts.identified + parts.sole <= 0.0)
}

/// Whether the scores leave a doubt.
fn is_doubtful(candidates: &[Candidate]) -> bool {
    let relevance = |candidate: &Candidate| {
        let is_across = candidate.ranked.as_ref().is_some_and(|(_, ranked)| ranked.parts.across);
        if is_across && candidate.relevance < DOUBTFUL_ACROSS { 0.0 } else { candidate.relevance }
    };
    DOUBTFUL.contains(&candidates.iter().map(relevance).fold(0.0, f32::max))
}
