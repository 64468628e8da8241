//! One row for each recall, written in the background. It answers «why did it forget?».

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use strata_core::error::{ErrorKind, Result};
use strata_core::id::{RequestId, SessionId, UserId};
use strata_core::metric::{ErrorStage, PromptUse, RequestMetric};
use strata_core::ports::Clock;
use strata_core::scope::Scope;
use strata_core::store::{Change, ChangeSet, Page, Store};
use strata_core::trace::RetrievalPath;

use crate::forgotten::Forgotten;
use crate::recall::{RecallRequest, Recalled};

/// The log of requests. A row is queued at once and written later by [`RequestLog::flush`], off the caller's path.
#[derive(Clone)]
pub(crate) struct RequestLog {
    pub(super) store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    unwritten: Arc<Unwritten>,
    forgotten: Arc<Forgotten>,
}

/// The maximum number of queued rows. Beyond it, the oldest row is dropped and a warning is logged.
const MAX_WAITING: usize = 10_000;

/// The number of rows in one write.
const BATCH: usize = 500;

/// Rows that are queued or being written.
#[derive(Default)]
struct Unwritten {
    rows: Mutex<VecDeque<(UserId, RequestMetric)>>,
    /// Rows that a [`Batch`] is writing. Locked after `rows`.
    writing: Mutex<Vec<(UserId, RequestMetric)>>,
}

impl Unwritten {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(UserId, RequestMetric)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writing(&self) -> std::sync::MutexGuard<'_, Vec<(UserId, RequestMetric)>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A row that is not in the store yet. A row in neither list was written before or never existed.
    fn find(&self, user: &UserId, id: RequestId) -> Option<RequestMetric> {
        let (rows, writing) = (self.lock(), self.lock_writing());
        let mut unwritten = rows.iter().chain(writing.iter());
        let found = unwritten.find(|(owner, row)| owner == user && row.id == id);
        found.map(|(_, row)| row.clone())
    }
}

/// Rows that are being written. On drop, the unwritten ones go back to the queue.
struct Batch<'a> {
    rows: VecDeque<(UserId, RequestMetric)>,
    ids: HashSet<RequestId>,
    waiting: &'a Unwritten,
}

impl<'a> Batch<'a> {
    /// The next rows. A row whose user or session was forgotten is dropped, also if it was queued or tried before.
    fn take(waiting: &'a Unwritten, forgotten: &Forgotten) -> Self {
        let mut rows = waiting.lock();
        let count = rows.len().min(BATCH);
        let mut rows: VecDeque<_> = rows.drain(..count).collect();
        rows.retain(|(user, row)| !forgotten.since(row.id.0, user, row.session.as_ref()));
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

impl RequestLog {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, forgotten: Arc<Forgotten>) -> Self {
        Self { store, clock, unwritten: Arc::default(), forgotten }
    }

    /// Queues the row of a recall. [`RequestLog::flush`] writes it, off the caller's path.
    pub(crate) fn note_request(
        &self,
        user: &UserId,
        request: &RecallRequest,
        id: RequestId,
        recalled: Option<&Recalled>,
        elapsed: SignedDuration,
    ) {
        let metric = self.row(request, id, recalled, elapsed);
        self.note(user, metric);
    }

    /// The row of a recall; `recalled` is `None` if it failed.
    pub(crate) fn row(
        &self,
        request: &RecallRequest,
        id: RequestId,
        recalled: Option<&Recalled>,
        elapsed: SignedDuration,
    ) -> RequestMetric {
        RequestMetric {
            id,
            session: request.session.clone(),
            created_at: self.clock.now(),
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
            late: recalled.and_then(|recalled| recalled.late),
            unasked: false,
            prompt: PromptUse::default(),
            feedback: Vec::new(),
            trace: recalled
                .and_then(|recalled| recalled.trace.as_ref())
                .and_then(|trace| serde_json::to_value(trace).ok()),
        }
    }

    /// Queues a row. [`RequestLog::flush`] writes it, off the caller's path. A question of a user or a session that was
    /// forgotten after it had been asked leaves no row.
    pub(crate) fn note(&self, user: &UserId, metric: RequestMetric) {
        let mut waiting = self.unwritten.lock();
        if self.forgotten.since(metric.id.0, user, metric.session.as_ref()) {
            return;
        }
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
            tracing::warn!(
                most = MAX_WAITING,
                "request rows come faster than they are written; the oldest was dropped"
            );
        }
        waiting.push_back((user.clone(), metric));
    }

    /// The number of queued request rows.
    pub(crate) fn waiting(&self) -> usize {
        self.unwritten.lock().len()
    }

    /// Writes all queued rows. Rows that could not be written stay in the queue, also if the caller is cancelled.
    pub(crate) async fn flush(&self) -> Result<()> {
        loop {
            let mut batch = Batch::take(&self.unwritten, &self.forgotten);
            let Some(user) = batch.rows.front().map(|(user, _)| user.clone()) else { return Ok(()) };
            let count = batch.rows.iter().take_while(|(other, _)| *other == user).count();
            match self.write_rows(&user, batch.rows.iter().take(count)).await {
                Ok(()) => drop(batch.rows.drain(..count)),
                // An earlier caller was cancelled after the store had written, so one of the rows exists already: write
                // one row at a time.
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

    /// Writes rows. A question about somebody of whom nothing is stored leaves none: it would make a user of a mistyped name.
    async fn write_rows<'a>(
        &self,
        user: &UserId,
        rows: impl Iterator<Item = &'a (UserId, RequestMetric)>,
    ) -> Result<()> {
        let rows: Vec<&RequestMetric> = rows.map(|(_, metric)| metric).collect();
        // A chat is recorded, perhaps after its row.
        let is_kept = |metric: &&RequestMetric| metric.context_items > 0 || metric.latency_llm_us.is_some();
        if !rows.iter().any(is_kept) && !self.is_known(user).await? {
            return Ok(());
        }
        let changes = rows.into_iter().map(|metric| Change::AddRequest(Box::new(metric.clone()))).collect();
        self.store.apply(user, ChangeSet::new(self.clock.now(), changes)).await?;
        Ok(())
    }

    /// Whether the store has a session or a memory of a user.
    async fn is_known(&self, user: &UserId) -> Result<bool> {
        let has_items = self.store.head(user).await?.revision > 0;
        Ok(has_items || !self.store.sessions(user, Page::first(1)).await?.is_empty())
    }

    /// Removes a user's request rows older than `before`.
    pub(crate) async fn prune(&self, user: &UserId, before: Timestamp) -> Result<()> {
        self.store.apply(user, ChangeSet::one(self.clock.now(), Change::PruneRequests { before })).await?;
        Ok(())
    }

    /// Drops the queued rows of a user, or of one of the user's sessions, and all that come later of questions that were
    /// asked before `now`, a new id. Returns whether other rows of them are being written.
    pub(crate) fn forget(&self, user: &UserId, session: Option<&SessionId>, now: Uuid) -> bool {
        self.forgotten.note(user, session, now);
        let is_gone = |(owner, row): &(UserId, RequestMetric)| {
            owner == user && (session.is_none() || row.session.as_ref() == session)
        };
        let mut rows = self.unwritten.lock();
        rows.retain(|row| !is_gone(row));
        self.unwritten.lock_writing().iter().any(is_gone)
    }

    /// A row that is not in the store yet.
    pub(crate) fn find_unwritten(&self, user: &UserId, id: RequestId) -> Option<RequestMetric> {
        self.unwritten.find(user, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::tests::fixture::World;

    #[tokio::test]
    async fn a_row_that_is_being_written_is_found() {
        let world = World::new();
        world.say("s", "a journey by train").await;
        let asked = world.recall(&RecallRequest::new("journey")).await.request_id;
        let log = &world.engine.recall.log;
        let batch = Batch::take(&log.unwritten, &log.forgotten);
        assert_eq!(world.engine.requests.waiting(), 0);
        assert_eq!(world.engine.requests.get(&world.user, asked).await.unwrap().query, "journey");
        let stranger = UserId::new("eve").unwrap();
        assert!(world.engine.requests.get(&stranger, asked).await.is_err());
        drop(batch);
        assert_eq!(world.engine.requests.waiting(), 1, "unwritten rows stay queued");
        assert_eq!(world.engine.requests.get(&world.user, asked).await.unwrap().query, "journey");
        assert!(log.unwritten.lock_writing().is_empty());
    }

    #[tokio::test]
    async fn a_question_about_a_mistyped_user_makes_no_user() {
        let world = World::new();
        world.say("s", "a journey by train").await;
        let (store, requests) = (world.engine.store(), &world.engine.requests);
        let mistyped = UserId::new("anm").unwrap();
        let asked = world.engine.recall.ask(&mistyped, &RecallRequest::new("journey")).await.unwrap();
        requests.flush().await.unwrap();
        assert_eq!(store.users(Page::first(9)).await.unwrap(), std::slice::from_ref(&world.user));
        assert!(requests.get(&mistyped, asked.request_id).await.is_err());
        assert_eq!(requests.waiting(), 0);
    }
}
