//! Jobs: background work that survives a crash.
//!
//! A change set enqueues jobs together with the turns that it records ([`Jobs::jobs_for_turns`]). A worker leases a job,
//! computes its changes, and writes them *together with* the job's end ([`Jobs::settle`]). A worker that lost its lease
//! writes nothing, so that each job has exactly one result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{JobId, LeaseId, MemoryId, SessionId, UserId};
use strata_core::job::{Job, JobOutcome, JobStatus};
use strata_core::names::{Named, unknown};
use strata_core::ports::{Clock, IdSource, Spent};
use strata_core::store::{Change, ChangeSet, Expectation, JobQuery, Store};
use strata_core::turn::{NewTurn, Role};

use crate::learn::LearnSettings;

/// The longest pause after a failure.
const MAX_PAUSE_SECS: u64 = 3_600;

/// How long a turn waits for others if a model is called: three minutes, so that a few exchanges of an ordinary
/// conversation share one call. Recall does not wait for it, because it finds the turns themselves at once.
const MODEL_DELAY_SECS: u32 = 180;

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<JobKind>)]
pub(crate) enum JobKind {
    /// Extracts statements from the user's turns and reconciles them with the known memories.
    Extract,
    /// Judges the sentences of a session and folds them into its state.
    State,
    /// Summarises a session.
    Summarise,
    /// Hides a session's oldest entries from recall.
    Evict,
    /// Compacts a session's working context.
    Compact,
    /// Settles a reply that was not recorded. It is due only if the process that awaited the reply is gone; see
    /// [`crate::recording`].
    Reply,
}

impl JobKind {
    /// The name in the store.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for JobKind {
    const WHAT: &'static str = "job kind";
}

/// The result for a statement or a memory, in the words of the memory-proxy design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Event {
    /// A memory was added.
    Add,
    /// A memory replaced an older one.
    Update,
    /// A memory was closed.
    Delete,
    /// A statement was known already.
    None,
}

impl Event {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One result of learning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferredEvent {
    /// The memory that was added or closed, or that already held the statement.
    pub id: MemoryId,
    /// The text of the memory.
    pub memory: String,
    /// The result.
    pub event: Event,
    /// The text of the replaced memory, for [`Event::Update`].
    pub previous: Option<String>,
}

/// The changes that a handler computed, and their cost.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// The preconditions of the changes.
    pub(crate) expect: Vec<Expectation>,
    /// The changes, written together with the job's end.
    pub(crate) changes: Vec<Change>,
    /// The cost of the models.
    pub(crate) spent: Spent,
    /// The results of learning.
    pub(crate) events: Vec<InferredEvent>,
    /// Further details for the job's result. They never hold what a user said.
    pub(crate) details: Map<String, Value>,
    /// If set, the job is not due yet: no change is written, and the job waits until this time.
    pub(crate) later: Option<Timestamp>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The result is stored.
    Done,
    /// The job was not due yet.
    Later {
        /// When it is due.
        run_at: Timestamp,
    },
    /// The job failed and is tried again.
    Retried {
        /// The time of the next attempt.
        run_at: Timestamp,
        /// The error.
        error: String,
    },
    /// The job failed for good and waits for a person.
    Dead {
        /// The error.
        error: String,
    },
    /// The lease was lost or the session was forgotten: nothing was stored.
    Dropped,
}

/// One job that was worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The job.
    pub job: JobId,
    /// The user.
    pub user: UserId,
    /// The session of the job.
    pub session: Option<SessionId>,
    /// The kind of the job, as stored.
    pub kind: String,
    /// How it ended.
    pub ended: Ended,
    /// The cost of the models.
    pub spent: Spent,
    /// The results of learning.
    pub events: Vec<InferredEvent>,
}

/// The failures in the background, as far as this process did the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Jobs that were given up, by kind.
    pub dead: BTreeMap<String, u64>,
    /// Summaries that were made without the model, because it failed, by strategy.
    pub without_model: BTreeMap<&'static str, u64>,
    /// Summaries that another worker had left unfinished.
    pub taken_over: u64,
}

/// Jobs in the store: enqueued, listed, retried and ended.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Arc<LearnSettings>,
    /// Whether a chat model learns. One call of the model serves several turns.
    pub(crate) has_model: bool,
    /// Whether a reader judges sentences.
    pub(crate) has_reader: bool,
    pub(crate) counts: Arc<Mutex<JobRecord>>,
}

impl Jobs {
    /// Writes a handler's changes together with the job's end. A retryable conflict is an error. If the job now belongs
    /// to another worker or no longer exists, the result is [`Ended::Dropped`].
    pub(crate) async fn settle(&self, job: &Job, lease: LeaseId, mut work: Work) -> Result<(Ended, Work)> {
        let (outcome, ended) = match work.later {
            Some(run_at) => {
                (work.expect, work.changes) = (Vec::new(), Vec::new());
                (JobOutcome::Later { run_at }, Ended::Later { run_at })
            }
            None => (JobOutcome::Done { result: Some(result(&work)) }, Ended::Done),
        };
        let mut set = ChangeSet::new(self.clock.now(), std::mem::take(&mut work.changes));
        set.expect = std::mem::take(&mut work.expect);
        set.changes.push(Change::FinishJob { id: job.id, lease, outcome });
        match self.store.apply(&job.user, set).await {
            Ok(_) => Ok((ended, work)),
            Err(error) if is_lost(&error) => {
                tracing::info!(job = %job.id, %error, "the result of a job was dropped: another worker has the job, or it is gone");
                Ok((Ended::Dropped, Work { spent: work.spent, ..Work::default() }))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a failed job back with a pause, or gives it up.
    pub(crate) async fn put_back(&self, job: &Job, lease: LeaseId, error: &Error) -> Result<Ended> {
        tracing::warn!(job = %job.id, kind = job.kind, attempts = job.attempts, %error, "a job failed");
        let error = error.to_string();
        let (outcome, ended) = if job.attempts >= self.settings.max_attempts.max(1) {
            (JobOutcome::Dead { error: error.clone() }, Ended::Dead { error })
        } else {
            let run_at = self.retry_at(job.attempts);
            (JobOutcome::Retry { run_at, error: error.clone() }, Ended::Retried { run_at, error })
        };
        let change = Change::FinishJob { id: job.id, lease, outcome };
        match self.store.apply(&job.user, ChangeSet::one(self.clock.now(), change)).await {
            Ok(_) => {
                if matches!(ended, Ended::Dead { .. }) {
                    self.count(|counts| *counts.dead.entry(job.kind.clone()).or_default() += 1);
                }
                Ok(ended)
            }
            Err(error) if is_lost(&error) => Ok(Ended::Dropped),
            Err(error) => Err(error),
        }
    }

    /// The failures in this process.
    pub fn record(&self) -> JobRecord {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut JobRecord)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The time of the next attempt. The pause doubles with each attempt. Up to half of it is subtracted at random, so
    /// that jobs that failed together do not run together again.
    fn retry_at(&self, attempts: u32) -> Timestamp {
        let first = u64::from(self.settings.retry_secs).max(1);
        let doubled = first.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(MAX_PAUSE_SECS);
        let millis = doubled * 1_000;
        // Time-ordered ids differ in their last bits.
        let chance = self.ids.next().as_u64_pair().1.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let jitter = chance % (millis / 2 + 1);
        let pause = SignedDuration::from_millis(i64::try_from(millis - jitter).unwrap_or(i64::MAX));
        self.clock.now().checked_add(pause).unwrap_or(Timestamp::MAX)
    }

    /// The jobs to enqueue in the change set that records these turns.
    pub(crate) fn jobs_for_turns(
        &self,
        user: &UserId,
        session: &SessionId,
        turns: &[NewTurn],
        now: Timestamp,
    ) -> Vec<Change> {
        if !self.settings.enabled {
            return Vec::new();
        }
        let said = |role: Role| turns.iter().any(|turn| turn.role == role && turn.hidden.is_none());
        let extract = said(Role::User).then_some((JobKind::Extract, now));
        let summarise = self.summary_at(turns, now).map(|run_at| (JobKind::Summarise, run_at));
        let is_judged = self.has_reader && (said(Role::User) || said(Role::Assistant));
        let state = is_judged.then_some((JobKind::State, now));
        let kinds = extract.into_iter().chain(state).chain(summarise);
        kinds.map(|(kind, run_at)| self.enqueue_once(user, session, kind, run_at, now)).collect()
    }

    /// When a summary job for these turns should run; `None` if they need none. Only a reply ends a round. Turns
    /// without a reply are counted after they have been learned from ([`crate::Summaries`]).
    fn summary_at(&self, turns: &[NewTurn], now: Timestamp) -> Option<Timestamp> {
        let ends_round = |turn: &NewTurn| turn.role == Role::Assistant && turn.hidden.is_none();
        let is_due = self.settings.summaries.enable_summarization && turns.iter().any(ends_round);
        is_due.then(|| after(now, self.delay()))
    }

    /// The change that enqueues a job, unless a job of its kind waits already.
    pub(crate) fn enqueue_once(
        &self,
        user: &UserId,
        session: &SessionId,
        kind: JobKind,
        run_at: Timestamp,
        now: Timestamp,
    ) -> Change {
        Change::EnqueueOnce(Box::new(Job {
            id: JobId(self.ids.next()),
            user: user.clone(),
            session: Some(session.clone()),
            kind: kind.as_str().to_owned(),
            payload: Value::Object(Map::new()),
            status: JobStatus::Queued,
            attempts: 0,
            run_at,
            lease: None,
            last_error: None,
            result: None,
            created_at: now,
            updated_at: now,
        }))
    }

    /// The user's jobs, newest first.
    pub async fn list(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        self.store.jobs(user, query).await
    }

    /// One job; *not found* if there is none.
    pub async fn get(&self, user: &UserId, id: JobId) -> Result<Job> {
        let query = JobQuery { id: Some(id), limit: 1, ..JobQuery::default() };
        let found = self.store.jobs(user, &query).await?.pop();
        found.ok_or_else(|| Error::not_found(format!("job `{id}` does not exist for this user")))
    }

    /// Puts a dead job back into the queue; a *conflict* if it is not dead.
    pub async fn retry(&self, user: &UserId, id: JobId) -> Result<Job> {
        self.store.apply(user, ChangeSet::one(self.clock.now(), Change::RetryJob { id })).await?;
        self.get(user, id).await
    }

    /// Removes a user's finished jobs that are older than the settings allow.
    pub async fn prune(&self, user: &UserId) -> Result<()> {
        let kept = u64::from(self.settings.jobs_kept_days) * 86_400;
        let now = self.clock.now();
        let kept = SignedDuration::from_secs(i64::try_from(kept).unwrap_or(i64::MAX));
        let Ok(before) = now.checked_sub(kept) else { return Ok(()) };
        self.store.apply(user, ChangeSet::one(now, Change::PruneJobs { before })).await?;
        Ok(())
    }

    /// How long a turn waits for others to share a job with.
    pub(crate) fn delay(&self) -> u64 {
        let default = if self.has_model { MODEL_DELAY_SECS } else { 0 };
        u64::from(self.settings.delay_secs.unwrap_or(default))
    }
}

/// The stored result of a job: ids and counts, never what a user said.
fn result(work: &Work) -> Value {
    let events: Vec<Value> =
        work.events.iter().map(|event| json!({"event": event.event, "memory": event.id})).collect();
    let mut result = work.details.clone();
    result.insert("events".to_owned(), events.into());
    result.insert("spent".to_owned(), json!(work.spent));
    Value::Object(result)
}

/// Whether a write failed because another worker has the job, or because the job is gone with its session.
fn is_lost(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict => !error.is_retryable(),
        ErrorKind::NotFound => true,
        _ => false,
    }
}

/// Whether a write failed because another write came first. The changes can be computed again.
pub(crate) fn was_overtaken(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict && error.is_retryable()
}

/// The time so many seconds after `now`.
pub(crate) fn after(now: Timestamp, seconds: u64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)))
        .unwrap_or(Timestamp::MAX)
}
