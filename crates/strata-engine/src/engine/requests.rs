//! One row for each recall, written behind it: what makes «it forgot» a question with an answer.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::explain::why_no_candidate;
use crate::recall::{MAX_LIMIT, RecallRequest, Recalled};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{ItemId, RequestId, UserId};
use strata_core::metric::{ErrorStage, RequestMetric};
use strata_core::scope::Scope;
use strata_core::store::{Change, ChangeSet, MetricQuery, TurnQuery};
use strata_core::trace::RetrievalPath;
use strata_core::trace::{Explanation, Outcome, Trace, TraceCandidate};

/// The most rows that wait to be written. Beyond, the oldest are dropped, counted and logged.
const MAX_WAITING: usize = 10_000;

/// How many rows are written at once.
const BATCH: usize = 500;

/// Rows that wait to be written.
#[derive(Default)]
pub(crate) struct Waiting {
    rows: Mutex<VecDeque<(UserId, RequestMetric)>>,
    /// Those that somebody writes just now. Locked after `rows`.
    writing: Mutex<Vec<(UserId, RequestMetric)>>,
}

impl Waiting {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(UserId, RequestMetric)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writing(&self) -> std::sync::MutexGuard<'_, Vec<(UserId, RequestMetric)>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A row that is not in the store yet. One that is in neither place was written or never was.
    fn find(&self, user: &UserId, id: RequestId) -> Option<RequestMetric> {
        let (rows, writing) = (self.lock(), self.lock_writing());
        let mut unwritten = rows.iter().chain(writing.iter());
        let found = unwritten.find(|(owner, row)| owner == user && row.id == id);
        found.map(|(_, row)| row.clone())
    }
}

/// Rows that are being written. Whatever is left of them goes back when this is dropped.
struct Batch<'a> {
    rows: VecDeque<(UserId, RequestMetric)>,
    ids: HashSet<RequestId>,
    waiting: &'a Waiting,
}

impl<'a> Batch<'a> {
    fn take(waiting: &'a Waiting) -> Self {
        let mut rows = waiting.lock();
        let count = rows.len().min(BATCH);
        let rows: VecDeque<_> = rows.drain(..count).collect();
        waiting.lock_writing().extend(rows.iter().cloned());
        Self { ids: rows.iter().map(|(_, row)| row.id).collect(), rows, waiting }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        for row in self.rows.drain(..).rev() {
            waiting.push_front(row);
        }
        self.waiting.lock_writing().retain(|(_, row)| !self.ids.contains(&row.id));
    }
}

impl Engine {
    /// Notes what a recall did. The row is written by [`Engine::flush_requests`], off the caller's path.
    pub(crate) fn note_request(
        &self,
        user: &UserId,
        request: &RecallRequest,
        id: RequestId,
        recalled: Option<&Recalled>,
        elapsed: SignedDuration,
    ) {
        let metric = self.metric(request, id, recalled, elapsed);
        self.note_metric(user, metric);
    }

    /// The row of a recall, or of one that failed.
    pub(crate) fn metric(
        &self,
        request: &RecallRequest,
        id: RequestId,
        recalled: Option<&Recalled>,
        elapsed: SignedDuration,
    ) -> RequestMetric {
        RequestMetric {
            id,
            session: request.session.clone(),
            created_at: self.now(),
            query: request.query.clone(),
            fts_hits: recalled.map_or(0, |recalled| recalled.fts_hits),
            trgm_hits: recalled.map_or(0, |recalled| recalled.trgm_hits),
            vector_hits: recalled.map_or(0, |recalled| recalled.vector_hits),
            used_fallback: recalled
                .is_some_and(|recalled| matches!(recalled.path, RetrievalPath::Trgm | RetrievalPath::Window)),
            retrieval_path: recalled.map_or(RetrievalPath::None, |recalled| recalled.path),
            scope: request.scope.unwrap_or(if request.session.is_some() {
                Scope::Session
            } else {
                Scope::User
            }),
            scope_used: recalled.map_or(Scope::User, |recalled| recalled.scope),
            expansion: recalled.and_then(|recalled| recalled.expansion.clone()),
            context_items: recalled.map_or(0, |recalled| recalled.items.len() as u32),
            estimated_tokens: recalled.map_or(0, |recalled| recalled.tokens),
            truncated: recalled.is_some_and(|recalled| recalled.truncated),
            latency_retrieval_us: u64::try_from(elapsed.as_micros()).unwrap_or(0),
            latency_llm_us: None,
            error_stage: recalled.map_or(Some(ErrorStage::Retrieval), |recalled| recalled.error_stage),
            trace: recalled
                .and_then(|recalled| recalled.trace.as_ref())
                .and_then(|trace| serde_json::to_value(trace).ok()),
        }
    }

    /// Notes a row. It is written by [`Engine::flush_requests`], off the caller's path.
    pub(crate) fn note_metric(&self, user: &UserId, metric: RequestMetric) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
            tracing::warn!(
                most = MAX_WAITING,
                "request rows come faster than they are written; the oldest was dropped"
            );
        }
        waiting.push_back((user.clone(), metric));
    }

    /// How many request rows wait to be written.
    pub fn waiting_requests(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Writes the request rows that wait. What could not be written waits on, also when the caller goes away.
    pub async fn flush_requests(&self) -> Result<()> {
        loop {
            let mut batch = Batch::take(&self.waiting);
            let Some(user) = batch.rows.front().map(|(user, _)| user.clone()) else { return Ok(()) };
            let count = batch.rows.iter().take_while(|(other, _)| *other == user).count();
            match self.write_rows(&user, batch.rows.iter().take(count)).await {
                Ok(()) => drop(batch.rows.drain(..count)),
                // A caller went away after the store had written, so that one of the rows is there already: one by one.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let written = self.write_rows(&user, batch.rows.iter().take(1)).await;
                    if let Err(error) = written
                        && error.kind() != ErrorKind::Conflict
                    {
                        return Err(error);
                    }
                    batch.rows.pop_front();
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn write_rows<'a>(
        &self,
        user: &UserId,
        rows: impl Iterator<Item = &'a (UserId, RequestMetric)>,
    ) -> Result<()> {
        let changes = rows.map(|(_, metric)| Change::AddRequest(Box::new(metric.clone()))).collect();
        self.store.apply(user, ChangeSet::new(self.now(), changes)).await?;
        Ok(())
    }

    /// The user's request rows, newest first, those that wait to be written included.
    pub async fn requests(
        &self,
        user: &UserId,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<RequestMetric>> {
        self.flush_requests().await?;
        self.store.requests(user, &MetricQuery { id: None, since, limit }).await
    }

    /// One request's row; *not found* where there is none.
    pub async fn request(&self, user: &UserId, id: RequestId) -> Result<RequestMetric> {
        self.flush_requests().await?;
        // The worker may have taken the row and be at writing it: flushing does not wait for that.
        if let Some(row) = self.waiting.find(user, id) {
            return Ok(row);
        }
        let query = MetricQuery { id: Some(id), since: None, limit: 1 };
        let row = self.store.requests(user, &query).await?.pop();
        row.ok_or_else(|| Error::not_found(format!("request `{id}` does not exist for this user")))
    }

    /// The trace of an earlier request: the one that was kept with it, or one made by asking again as of then, which
    /// leaves no row of its own. Where the row says what was given, the trace says the same.
    /// [`RequestMetric::trace_source`] tells which it is.
    pub async fn trace(&self, user: &UserId, id: RequestId) -> Result<Trace> {
        let row = self.request(user, id).await?;
        self.trace_of(user, row).await
    }

    /// As [`Engine::trace`], for a row that was read already.
    pub async fn trace_of(&self, user: &UserId, row: RequestMetric) -> Result<Trace> {
        let served = row.served();
        if let Some(trace) = row.trace.and_then(|trace| serde_json::from_value(trace).ok()) {
            return Ok(trace);
        }
        // A chat may ask nothing in words, as with an image: then nothing was looked for.
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
            // Whether a scope was named is not kept; most name none.
            shared: true,
            as_of: Some(row.created_at),
            // What was asked for is not kept; what was given back is, and the trace should agree with it.
            limit: Some(row.context_items.clamp(1, MAX_LIMIT)),
            explain: true,
            ..RecallRequest::new(row.query)
        };
        let recalled = self.recall_unnoted(user, &request, row.id).await?;
        let trace = recalled.trace;
        let trace =
            trace.ok_or_else(|| Error::internal("a recall that was to be explained gave no trace"))?;
        match served {
            Some(served) => self.as_given(user, trace, &served).await,
            None => Ok(trace),
        }
    }

    /// A trace that was made anew, with what was given then. The question itself is no candidate, though it is stored now.
    async fn as_given(&self, user: &UserId, mut trace: Trace, served: &[ItemId]) -> Result<Trace> {
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
            let given = served.iter().zip(1..).find(|(item, _)| **item == candidate.item);
            match given {
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
        let row = self.request(user, id).await?;
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

    /// Removes request rows older than `before` of a user.
    pub async fn prune_requests(&self, user: &UserId, before: Timestamp) -> Result<()> {
        self.store.apply(user, ChangeSet::one(self.now(), Change::PruneRequests { before })).await?;
        Ok(())
    }

    pub(crate) fn new_waiting() -> Arc<Waiting> {
        Arc::default()
    }
}

/// An item that was given and that asking again does not find.
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
        relevance: 0.0,
        age_days: None,
        served_score: None,
        replaced_by: None,
        outcome: Outcome::NotChosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::fixture::World;

    #[tokio::test]
    async fn a_row_that_somebody_is_writing_is_found() {
        let world = World::new();
        world.say("s", "a journey by train").await;
        let asked = world.recall(&RecallRequest::new("journey")).await.request_id;
        let batch = Batch::take(&world.engine.waiting);
        assert_eq!(world.engine.waiting_requests(), 0);
        assert_eq!(world.engine.request(&world.user, asked).await.unwrap().query, "journey");
        let stranger = UserId::new("eve").unwrap();
        assert!(world.engine.request(&stranger, asked).await.is_err());
        drop(batch);
        assert_eq!(world.engine.waiting_requests(), 1, "what was not written waits on");
        assert_eq!(world.engine.request(&world.user, asked).await.unwrap().query, "journey");
        assert!(world.engine.waiting.lock_writing().is_empty());
    }
}
