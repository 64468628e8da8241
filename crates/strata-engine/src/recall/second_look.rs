//! A second look: where the scores leave in doubt whether anything helps to answer, the reader reads the best candidates.
//!
//! The ranking sees a question and an item apart, by words and vectors. In a small store, an answer in other words scores
//! like an item of the same topic. The reader sees both together; its judgement is added to the log odds of the items that
//! it reads. Reading takes some milliseconds an item, so questions with a clear answer, questions with clearly none and large
//! stores, where the scores know better, go without it. The order stays: [`super::rerank`] changes it for requests that want
//! it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use strata_core::error::Result;
use strata_core::id::ItemId;
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::store::Item;
use strata_language::statements::rough_length;

use super::Recall;
use super::calibration::shifted;
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

/// How many candidates are read, and the least relevance of each.
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
        let reader = self.reader.as_ref().filter(|_| plan.second_look && is_doubtful(found));
        let Some(reader) = reader else { return Ok(HashMap::new()) };
        let (question_pieces, item_pieces) = reader.reads();
        if rough_length(&request.query) > question_pieces {
            return Ok(HashMap::new());
        }
        let read = worth_reading(&found.candidates);
        let candidates: Vec<Candidate> = read.iter().map(|at| found.candidates[*at].clone()).collect();
        let (items, turns) = self.in_context(&found.owners, &candidates).await?;
        match in_time(request.deadline.as_ref(), reader.answers(&request.query, &turns)).await {
            None => found.late = found.late.or(Some(LateStage::SecondLook)),
            Some(Ok(logits)) => {
                for ((at, turn), logit) in read.into_iter().zip(&turns).zip(logits) {
                    let is_whole = rough_length(&turn.text) <= item_pieces;
                    judge(&mut found.candidates[at], logit, is_whole);
                }
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the reader failed; the scores stay in doubt");
                found.error_stage = found.error_stage.or(Some(ErrorStage::Retrieval));
            }
        }
        Ok(items)
    }
}

/// Adds a judgement to a relevance. A low one of an item that was not read to its end says nothing: the rest may hold the
/// answer.
fn judge(candidate: &mut Candidate, logit: f32, is_whole: bool) {
    let shift = LOGIT_WEIGHT * (logit + LOGIT_OFFSET);
    if logit.is_finite() && (is_whole || shift > 0.0) {
        candidate.judged = Some(logit);
        candidate.relevance = shifted(candidate.relevance, shift);
    }
}

/// Whether the scores leave a doubt in a small store. The store's own index, for large users, has no indexes in memory.
fn is_doubtful(found: &CandidateSet) -> bool {
    let relevance = |candidate: &Candidate| {
        let is_across = candidate.ranked.as_ref().is_some_and(|(_, ranked)| ranked.parts.across);
        if is_across && candidate.relevance < DOUBTFUL_ACROSS { 0.0 } else { candidate.relevance }
    };
    let best = found.candidates.iter().map(relevance).fold(0.0, f32::max);
    let words = || found.indexes.iter().map(|index| index.read().word_count()).sum::<u64>();
    DOUBTFUL.contains(&best) && !found.indexes.is_empty() && words() <= SMALL_STORE
}

/// The places of the candidates that are read.
fn worth_reading(candidates: &[Candidate]) -> Vec<usize> {
    (0..candidates.len()).filter(|at| candidates[*at].relevance >= LEAST_READ).take(READ).collect()
}
