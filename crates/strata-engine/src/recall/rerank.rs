//! A cross-encoder reads the best candidates together with the question and reorders them.
//!
//! Its judgement does not replace the ranking: the two are added. The probability of an item stays its own; only the order
//! changes. If the cross-encoder fails or is late, this is recorded and the order stays.

use std::collections::HashMap;

use super::Recall;
use super::candidates::{Candidate, CandidateSet};
use super::deadline::in_time;
use super::request::{RecallPlan, RecallRequest};
use crate::index::spoken;
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::ports::TurnInContext;
use strata_core::store::{Item, TurnQuery};
use strata_core::turn::Turn;
use strata_language::rules::with_question_mark;
use strata_language::statements::rough_length;

/// The number of candidates that the cross-encoder reads. `docs/recall.md` has the figures for other numbers.
const READ: usize = 20;

/// The weight of the cross-encoder's logit against the logarithm of the place in the ranking, and the number that is added
/// to the place. Fitted on the public half of the benchmarks.
const LOGIT_WEIGHT: f32 = 0.2;
const PLACE_OFFSET: f32 = 3.0;

impl Recall {
    /// Reorders the best candidates if the request wants it. Returns the items that were loaded for it.
    pub(super) async fn rerank(
        &self,
        request: &RecallRequest,
        plan: &RecallPlan,
        found: &mut CandidateSet,
    ) -> Result<HashMap<ItemId, Item>> {
        let read = found.candidates.len().min(READ);
        let Some(reranker) = self.reranker.as_ref().filter(|_| plan.rerank && read > 1) else {
            return Ok(HashMap::new());
        };
        let (question_pieces, item_pieces) = reranker.reads();
        // The end of a long message, which is not read, often holds the question.
        if rough_length(&request.query) > question_pieces {
            return Ok(HashMap::new());
        }
        let (items, turns) = self.in_context(&found.owners, &found.candidates[..read]).await?;
        let question = with_question_mark(&request.query);
        let scores = in_time(request.deadline.as_ref(), reranker.score(&question, &turns)).await;
        match scores {
            // After a late embedder the cross-encoder is not called at all.
            None => found.late = found.late.or(Some(LateStage::Reranking)),
            Some(Ok(scores)) if scores.len() == read && !scores.iter().any(|score| score.is_nan()) => {
                let is_whole = |turn: &TurnInContext| rough_length(&turn.text) <= item_pieces;
                let scores = fair(scores, turns.iter().map(is_whole));
                reorder(&mut found.candidates[..read], &scores);
            }
            Some(Ok(scores)) => {
                let given = scores.len();
                tracing::warn!(expected = read, given, "the cross-encoder gave no sound scores");
                found.error_stage = Some(ErrorStage::Retrieval);
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the cross-encoder failed; recall goes on without");
                found.error_stage = Some(ErrorStage::Retrieval);
            }
        }
        Ok(items)
    }

    /// The items of candidates, and each as the cross-encoder reads it: with its speaker and the turn before it.
    pub(super) async fn in_context(
        &self,
        owners: &[UserId],
        candidates: &[Candidate],
    ) -> Result<(HashMap<ItemId, Item>, Vec<TurnInContext>)> {
        let mut items = HashMap::new();
        let mut read = HashMap::new();
        for owner in owners {
            let ids = candidates.iter().map(|candidate| candidate.id);
            let found = self.load(std::slice::from_ref(owner), ids).await?;
            for (id, item) in &found {
                let before = match item {
                    Item::Turn(turn) => self.said_before(owner, turn).await?,
                    Item::Memory(_) | Item::Summary(_) => String::new(),
                };
                read.insert(*id, TurnInContext { before, text: spoken(item) });
            }
            items.extend(found);
        }
        let turns = candidates.iter().map(|candidate| read.remove(&candidate.id).unwrap_or_default());
        let turns = turns.collect();
        Ok((items, turns))
    }

    /// The turn just before another one in its session; empty if there is none that may be seen.
    async fn said_before(&self, owner: &UserId, turn: &Turn) -> Result<String> {
        let Some(seq) = turn.seq.checked_sub(1) else { return Ok(String::new()) };
        let query = TurnQuery::Range { session: turn.session.clone(), after: seq.checked_sub(1), limit: 1 };
        let before = self.store.turns(owner, &query).await?.pop();
        let before = before.filter(|before| before.seq == seq && before.hidden.is_none());
        Ok(before.map(|before| spoken(&Item::Turn(before))).unwrap_or_default())
    }
}

/// The logits, where a low one of an item that was not read to its end counts as the mean: the rest may hold the answer.
fn fair(mut logits: Vec<f32>, read_whole: impl Iterator<Item = bool>) -> Vec<f32> {
    let mean = logits.iter().sum::<f32>() / logits.len().max(1) as f32;
    for (logit, is_whole) in logits.iter_mut().zip(read_whole) {
        if !is_whole {
            *logit = logit.max(mean);
        }
    }
    logits
}

/// Reorders candidates by their logits and places. The standings stay with the places, because recency and diversity
/// work with them; the probabilities stay with the items.
fn reorder(candidates: &mut [Candidate], logits: &[f32]) {
    let value = |place: usize| LOGIT_WEIGHT * logits[place] - (place as f32 + PLACE_OFFSET).ln();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| value(*b).total_cmp(&value(*a)).then(a.cmp(b)));
    keep_settled(candidates, &mut order);
    let before = candidates.to_vec();
    for (place, from) in order.into_iter().enumerate() {
        candidates[place] = Candidate { standing: before[place].standing, ..before[from].clone() };
    }
}

/// Time has decided the order of statements about the same thing, and learning the order of current and outdated ones. A
/// cross-encoder knows neither, so within such a group the old order holds.
fn keep_settled(candidates: &[Candidate], order: &mut [usize]) {
    let mut groups: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    for (at, place) in order.iter().enumerate() {
        if let Some((index, ranked)) = &candidates[*place].ranked
            && let Some(group) = ranked.parts.restated
        {
            groups.entry((*index, group)).or_default().push(at);
        }
    }
    for positions in groups.into_values() {
        let mut members: Vec<usize> = positions.iter().map(|at| order[*at]).collect();
        members.sort_unstable();
        for (at, member) in positions.into_iter().zip(members) {
            order[at] = member;
        }
    }
    let all: Vec<&Candidate> = candidates.iter().collect();
    super::validity::keep_current_first(&all, order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_logit_of_half_an_item_says_nothing() {
        let read = [true, false, false];
        assert_eq!(fair(vec![3.0, -6.0, 9.0], read.into_iter()), [3.0, 2.0, 9.0]);
        assert_eq!(fair(vec![3.0, -6.0, 9.0], [true; 3].into_iter()), [3.0, -6.0, 9.0]);
    }
}
