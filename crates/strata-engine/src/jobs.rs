//! Jobs: the work in the background that survives a crash.
//!
//! A change set asks for jobs together with what it records ([`Jobs::asked_for`]). A worker leases one, works out what to
//! write, and writes that *together with* the job's end ([`Jobs::settle`]): a worker that lost its lease writes nothing, so
//! each job has exactly one result.

use std::sync::Arc;

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

/// How long a turn waits for others where a model is called: three minutes, in which a few exchanges of an ordinary
/// conversation share a call. Recall does not wait for it: it finds the turns themselves at once.
const MODEL_DELAY_SECS: u32 = 180;

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<JobKind>)]
pub(crate) enum JobKind {
    /// Statements from what the user said, reconciled with what is known.
    Extract,
    /// Summaries of a session.
    Summarise,
    /// A session's oldest entries leave recall.
    Evict,
    /// A reply is awaited: due only when the process that awaited it is gone, see [`crate::recording`].
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

/// What became of a statement or of a memory, in document 4's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Event {
    /// A new memory.
    Add,
    /// A memory that took an older one's place.
    Update,
    /// A memory that is no longer believed.
    Delete,
    /// A statement that was known already.
    None,
}

impl Event {
    /// The name clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One thing that learning did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferredEvent {
    /// The memory: the new one, the one that ended, or the one that says it already.
    pub id: MemoryId,
    /// What it says.
    pub memory: String,
    /// What became of it.
    pub event: Event,
    /// What it said before, for [`Event::Update`].
    pub previous: Option<String>,
}

/// What a handler wants to be written, and what it took.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// What has to hold for the changes to be written.
    pub(crate) expect: Vec<Expectation>,
    /// Written together with the job's end.
    pub(crate) changes: Vec<Change>,
    /// What the models cost.
    pub(crate) spent: Spent,
    /// What it did.
    pub(crate) events: Vec<InferredEvent>,
    /// Anything else that belongs into the job's result. Never what was said.
    pub(crate) details: Map<String, Value>,
    /// It is not time yet: nothing is written but that the job waits until then.
    pub(crate) later: Option<Timestamp>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Its result is stored.
    Done,
    /// It was not its time yet.
    Later {
        /// When it will be.
        run_at: Timestamp,
    },
    /// It failed and is tried again.
    Retried {
        /// When.
        run_at: Timestamp,
        /// What went wrong.
        error: String,
    },
    /// It failed for good and waits for a person.
    Dead {
        /// What went wrong.
        error: String,
    },
    /// Its lease was lost or its session forgotten: nothing was stored.
    Dropped,
}

/// One job that was worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The job.
    pub job: JobId,
    /// Whose.
    pub user: UserId,
    /// The session it worked on.
    pub session: Option<SessionId>,
    /// What it was for, as it stands in the store.
    pub kind: String,
    /// How it ended.
    pub ended: Ended,
    /// What the models cost.
    pub spent: Spent,
    /// What it did.
    pub events: Vec<InferredEvent>,
}

/// Jobs in the store: asked for, listed, retried and ended.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Arc<LearnSettings>,
    /// Whether a chat model learns, which is called once for several turns.
    pub(crate) has_model: bool,
}

impl Jobs {
    /// Writes what a handler wants, together with the job's end. A retryable conflict is an error, anything that says the job
    /// is no longer ours is not.
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
                tracing::info!(job = %job.id, %error, "a result was dropped: the job is somebody else's");
                Ok((Ended::Dropped, Work { spent: work.spent, ..Work::default() }))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a failed job back with a pause, or gives it up.
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
            Ok(_) => Ok(ended),
            Err(error) if is_lost(&error) => Ok(Ended::Dropped),
            Err(error) => Err(error),
        }
    }

    /// When to try again after so many attempts: twice as long with each, the last half of it by chance, so that what failed
    /// together does not come back together.
    fn retry_at(&self, attempts: u32) -> Timestamp {
        let first = u64::from(self.settings.retry_secs).max(1);
        let doubled = first.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(MAX_PAUSE_SECS);
        let millis = doubled * 1_000;
        // Time-ordered ids differ at their end.
        let chance = self.ids.next().as_u64_pair().1.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let jitter = chance % (millis / 2 + 1);
        self.clock.now() + SignedDuration::from_millis(i64::try_from(millis - jitter).unwrap_or(i64::MAX))
    }

    /// The jobs that recording these turns asks for, in the change set that records them.
    pub(crate) fn asked_for(
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
        let kinds = extract.into_iter().chain(summarise);
        kinds.map(|(kind, run_at)| self.enqueue_once(user, session, kind, run_at, now)).collect()
    }

    /// When what these turns ask for in the way of summaries should run; `None` where they ask for nothing. Only a reply ends
    /// a round; turns that nobody answers are counted when they have been learned from ([`crate::Summaries`]).
    fn summary_at(&self, turns: &[NewTurn], now: Timestamp) -> Option<Timestamp> {
        let ends_round = |turn: &NewTurn| turn.role == Role::Assistant && turn.hidden.is_none();
        let is_due = self.settings.summaries.enable_summarization && turns.iter().any(ends_round);
        is_due.then(|| after(now, self.delay()))
    }

    /// The change that asks for a job unless one of its kind waits already.
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

    /// One job; *not found* where there is none.
    pub async fn get(&self, user: &UserId, id: JobId) -> Result<Job> {
        let query = JobQuery { id: Some(id), limit: 1, ..JobQuery::default() };
        let found = self.store.jobs(user, &query).await?.pop();
        found.ok_or_else(|| Error::not_found(format!("job `{id}` does not exist for this user")))
    }

    /// Sends a dead job back into the queue; a *conflict* where it is not dead.
    pub async fn retry(&self, user: &UserId, id: JobId) -> Result<Job> {
        self.store.apply(user, ChangeSet::one(self.clock.now(), Change::RetryJob { id })).await?;
        self.get(user, id).await
    }

    /// Removes a user's jobs that were finished longer ago than they are kept.
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
        let unsaid = if self.has_model { MODEL_DELAY_SECS } else { 0 };
        u64::from(self.settings.delay_secs.unwrap_or(unsaid))
    }
}

/// What is kept of a job's work: ids and counts, never what was said.
fn result(work: &Work) -> Value {
    let events: Vec<Value> =
        work.events.iter().map(|event| json!({"event": event.event, "memory": event.id})).collect();
    let mut result = work.details.clone();
    result.insert("events".to_owned(), events.into());
    result.insert("spent".to_owned(), json!(work.spent));
    Value::Object(result)
}

/// Whether a write failed because the job is no longer ours: taken over, or gone with its session.
fn is_lost(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict => !error.is_retryable(),
        ErrorKind::NotFound => true,
        _ => false,
    }
}

/// Whether a write failed because another one came first, and can be worked out anew.
pub(crate) fn was_overtaken(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict && error.is_retryable()
}

/// So many seconds later.
pub(crate) fn after(now: Timestamp, seconds: u64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)))
        .unwrap_or(Timestamp::MAX)
}
