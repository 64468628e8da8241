//! Summaries in recall: a kind of their own for a request that names it, and the last resort of any other.
//!
//! A summary says less than the turns that it covers, so a question looks for turns and memories first. Only if none of
//! them is relevant enough do the summaries stand in: the path `summaries_only` of the evolution plan.

use std::sync::Arc;

use super::Recall;
use super::candidates::{Candidate, CandidateSet};
use super::request::{Order, RecallPlan, RecallRequest, Recalled, RecalledItem};
use strata_core::error::Result;
use strata_core::id::{ItemId, RequestId, SessionId, UserId};
use strata_core::store::{Item, ItemKinds, SummaryQuery};
use strata_core::summary::{Summary, SummaryStatus};
use strata_core::turn::Turn;

/// The least relevance of a summary that stands in. A long text matches many questions a little.
const LEAST_RELEVANCE: f32 = 0.5;

/// The most summaries that stand in.
const MOST: usize = 2;

/// The number of a session's newest summaries among which one is looked for.
const NEWEST: u32 = 64;

impl Recall {
    /// Answers from the summaries a question that nothing else answers; `before` is the empty answer.
    pub(super) async fn summaries_only(
        &self,
        user: &UserId,
        request: &RecallRequest,
        plan: RecallPlan,
        id: RequestId,
        before: Recalled,
    ) -> Result<Recalled> {
        let asked = Arc::new(RecallRequest { kinds: ItemKinds::SUMMARIES, ..request.clone() });
        let plan = RecallPlan {
            score_threshold: plan.score_threshold.max(LEAST_RELEVANCE),
            limit: plan.limit.min(MOST),
            ..plan
        };
        let found = self.find_candidates(user, &asked, &plan).await?;
        let recalled = self.serve(user, &asked, &plan, id, found).await?;
        if recalled.items.is_empty() {
            return Ok(before);
        }
        let Recalled { fts_hits, trgm_hits, vector_hits, .. } = before;
        Ok(Recalled { fts_hits, trgm_hits, vector_hits, ..recalled })
    }

    /// The summaries among the chosen candidates.
    pub(super) async fn load_summaries(
        &self,
        found: &CandidateSet,
        chosen: &[(Candidate, f32)],
    ) -> Result<Vec<(ItemId, Item)>> {
        let mut loaded = Vec::new();
        for (candidate, _) in chosen {
            let Some((owner, session)) = owner_of(found, candidate) else { continue };
            let query = SummaryQuery {
                session,
                strategy: None,
                status: Some(SummaryStatus::Completed),
                limit: NEWEST,
            };
            let summaries = self.store.summaries(owner, &query).await?;
            let summary = summaries.into_iter().find(|summary| ItemId::Summary(summary.id) == candidate.id);
            loaded.extend(summary.map(|summary| (candidate.id, Item::Summary(summary))));
        }
        Ok(loaded)
    }
}

/// The owner and the session of a candidate that is a summary.
fn owner_of<'a>(found: &'a CandidateSet, candidate: &Candidate) -> Option<(&'a UserId, SessionId)> {
    let (ItemId::Summary(_), Some((place, ranked))) = (candidate.id, &candidate.ranked) else { return None };
    let session = found.indexes.get(*place)?.read().session_of(ranked.doc)?;
    Some((found.owners.get(*place)?, session))
}

/// Whether summaries may stand in for a request that found nothing.
pub(super) fn may_stand_in(request: &RecallRequest, found: &CandidateSet) -> bool {
    request.order == Order::Served
        && request.kinds == ItemKinds::ALL
        && request.filter.is_none()
        && found.indexes.iter().any(|index| index.read().has_summaries())
}

/// Of a summary and a turn that it covers, keeps the one that ranks higher.
pub(super) fn keep_one_of_covered(items: &mut Vec<RecalledItem>) {
    let mut place = 0;
    while place < items.len() {
        let (before, rest) = items.split_at(place);
        let is_said_before = before.iter().any(|earlier| covers(&earlier.item, &rest[0].item));
        if is_said_before {
            items.remove(place);
        } else {
            place += 1;
        }
    }
}

/// Whether one of two items is a summary that covers the other.
fn covers(one: &Item, other: &Item) -> bool {
    match (one, other) {
        (Item::Summary(summary), Item::Turn(turn)) | (Item::Turn(turn), Item::Summary(summary)) => {
            is_covered(summary, turn)
        }
        _ => false,
    }
}

fn is_covered(summary: &Summary, turn: &Turn) -> bool {
    summary.session == turn.session && (summary.start_seq..=summary.end_seq).contains(&turn.seq)
}
