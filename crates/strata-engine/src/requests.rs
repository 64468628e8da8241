//! One row for each recall, written in the background. With it, the complaint «it forgot» can be investigated.

mod explain;
mod homes;

use crate::recall::{Recall, RequestLog};
use std::sync::Arc;
use strata_core::store::Store;

use jiff::Timestamp;

use crate::recall::{MAX_LIMIT, RecallRequest};
use explain::why_no_candidate;
use strata_core::error::{Error, Result};
use strata_core::id::{ItemId, RequestId, UserId};
use strata_core::metric::RequestMetric;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{Change, ChangeSet, MetricQuery, TurnQuery};
use strata_core::trace::{Explanation, Outcome, Trace, TraceCandidate};

/// The rows and traces of recalls.
#[derive(Clone)]
pub struct Requests {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) recall: Recall,
    pub(crate) log: RequestLog,
}

/// The space whose progress is the number of clients that a user has without having been named, see
/// [`Requests::note_clients`].
pub const CLIENTS_SPACE: &str = "unnamed-clients";

impl Requests {
    /// Notes that several clients share a user because none of them names one, so that an operator is told later.
    pub async fn note_clients(&self, user: &UserId, count: u64, now: Timestamp) -> Result<()> {
        let noted = Change::SetProgress { space: CLIENTS_SPACE.to_owned(), revision: count };
        self.store.apply(user, ChangeSet::one(now, noted)).await.map(drop)
    }

    /// How many rows are not written yet.
    pub fn waiting(&self) -> usize {
        self.log.waiting()
    }

    /// Writes the pending rows. A row that cannot be written stays pending, also if the caller is cancelled.
    pub async fn flush(&self) -> Result<()> {
        self.log.flush().await
    }

    /// Removes a user's rows older than `before`.
    pub async fn prune(&self, user: &UserId, before: Timestamp) -> Result<()> {
        self.log.prune(user, before).await
    }

    /// The user's request rows, newest first, including rows that are not written yet.
    pub async fn list(
        &self,
        user: &UserId,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<RequestMetric>> {
        self.log.flush().await?;
        self.store.requests(user, &MetricQuery { id: None, since, limit }).await
    }

    /// One request's row; *not found* if there is none.
    pub async fn get(&self, user: &UserId, id: RequestId) -> Result<RequestMetric> {
        self.log.flush().await?;
        // The worker may be writing this row at the moment. Flushing does not wait for the worker.
        if let Some(row) = self.log.find_unwritten(user, id) {
            return Ok(row);
        }
        let query = MetricQuery { id: Some(id), since: None, limit: 1 };
        let row = self.store.requests(user, &query).await?.pop();
        row.ok_or_else(|| Error::not_found(format!("request `{id}` does not exist for this user")))
    }

    /// The trace of an earlier request: the stored trace, or a new one, made by asking again as of the time of the
    /// request. Asking again writes no row. If the row lists the items that were returned, the trace agrees with it.
    /// [`RequestMetric::trace_source`] tells which of the two it is.
    pub async fn trace(&self, user: &UserId, id: RequestId) -> Result<Trace> {
        let row = self.get(user, id).await?;
        self.trace_of(user, row).await
    }

    /// Like [`crate::Requests::trace`], for a row that is read already.
    pub async fn trace_of(&self, user: &UserId, row: RequestMetric) -> Result<Trace> {
        let served = row.served();
        if let Some(trace) = row.trace.and_then(|trace| serde_json::from_value(trace).ok()) {
            return Ok(trace);
        }
        // A chat may contain no question in words, for example only an image. Then there was no recall.
        if row.query.trim().is_empty() {
            return Ok(Trace {
                query: row.query,
                scope: row.scope_used,
                expansion: row.expansion,
                path: row.retrieval_path,
                fts_hits: 0,
                trgm_hits: 0,
                vector_hits: 0,
                candidates: Vec::new(),
            });
        }
        let request = RecallRequest {
            session: row.session,
            scope: Some(row.scope_used),
            within: (row.scope_used == Scope::Session).then_some(RecallScope::Session),
            // The row does not say whether the request named a scope. Most requests name none.
            shared: true,
            as_of: Some(row.created_at),
            // The row does not keep the requested number of items. It keeps how many were returned, and the trace
            // should agree with that.
            limit: Some(row.context_items.clamp(1, MAX_LIMIT)),
            explain: true,
            ..RecallRequest::new(row.query)
        };
        let recalled = self.recall.ask_unnoted(user, &request, row.id).await?;
        let trace = recalled.trace;
        let trace =
            trace.ok_or_else(|| Error::internal("a recall that was to be explained gave no trace"))?;
        match served {
            Some(served) => self.with_served(user, trace, &served).await,
            None => Ok(trace),
        }
    }

    /// Corrects a repeated trace to the items that were returned originally. The question itself is not a candidate,
    /// though it is stored by now.
    async fn with_served(&self, user: &UserId, mut trace: Trace, served: &[ItemId]) -> Result<Trace> {
        let turns = trace.candidates.iter().filter_map(|candidate| match candidate.item {
            ItemId::Turn(id) if !served.contains(&candidate.item) => Some(id),
            _ => None,
        });
        let mut said = self.store.turns(user, &TurnQuery::Ids(turns.collect())).await?;
        said.retain(|turn| turn.content.trim() == trace.query.trim());
        trace.candidates.retain(|candidate| said.iter().all(|turn| ItemId::Turn(turn.id) != candidate.item));
        for (item, place) in served.iter().zip(trace.candidates.len() as u32 + 1..) {
            if trace.candidates.iter().all(|candidate| candidate.item != *item) {
                trace.candidates.push(unranked(*item, place));
            }
        }
        for (candidate, place) in trace.candidates.iter_mut().zip(1..) {
            candidate.place = place;
            match served.iter().zip(1..).find(|(item, _)| **item == candidate.item) {
                Some((_, number)) => candidate.outcome = Outcome::Served(number),
                None if matches!(candidate.outcome, Outcome::Served(_)) => {
                    candidate.outcome = Outcome::NotChosen
                }
                None => {}
            }
        }
        Ok(trace)
    }

    /// Why an item was or was not recalled by a request.
    pub async fn explain(&self, user: &UserId, id: RequestId, item: ItemId) -> Result<Explanation> {
        let row = self.get(user, id).await?;
        let trace = self.trace_of(user, row.clone()).await?;
        if let Some(candidate) =
            trace.candidates.iter().find(|candidate| candidate.item.uuid() == item.uuid())
        {
            let reason = format!("it was candidate {} by relevance: {}", candidate.place, candidate.reason());
            return Ok(Explanation { item: candidate.item, reason, candidate: Some(candidate.clone()) });
        }
        let item = self.find_item(user, item).await?;
        Ok(Explanation { item: item.id(), reason: why_no_candidate(&row, &item), candidate: None })
    }
}

/// An item that was returned originally and that the repeated request does not find.
fn unranked(item: ItemId, place: u32) -> TraceCandidate {
    TraceCandidate {
        item,
        place,
        terms: None,
        words: None,
        mean: None,
        encoder: None,
        timely: false,
        likeness: None,
        fresher_by: 0,
        score: 0.0,
        judged: None,
        relevance: 0.0,
        age_days: None,
        served_score: None,
        replaced_by: None,
        outcome: Outcome::NotChosen,
    }
}
