//! Background jobs that survive a crash: they are kept in the store and leased, at most one per session at a time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::id::{JobId, LeaseId, SessionId, UserId};
use crate::names::{Named, unknown};

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<JobStatus>)]
pub enum JobStatus {
    /// Waiting until it is due and a worker is free.
    Queued,
    /// Leased by a worker until the lease ends.
    Leased,
    /// Finished.
    Done,
    /// Failed after too many attempts; a person may retry it.
    Dead,
}

impl JobStatus {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for JobStatus {
    const WHAT: &'static str = "status";
}

/// A background job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The user it belongs to.
    pub user: UserId,
    /// The session it works on; `None` means the user as a whole.
    pub session: Option<SessionId>,
    /// The kind of work. Only the worker interprets it.
    pub kind: String,
    /// The arguments.
    pub payload: Value,
    /// Its state.
    pub status: JobStatus,
    /// The number of attempts.
    pub attempts: u32,
    /// The time at which it is due.
    pub run_at: Timestamp,
    /// The current lease.
    pub lease: Option<Lease>,
    /// The last error.
    pub last_error: Option<String>,
    /// A report of the work and its cost, in the worker's own format. It never contains conversation text: forgetting
    /// would not find it here.
    #[serde(default)]
    pub result: Option<Value>,
    /// The time at which it was enqueued.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
}

/// A worker's lease of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The id of the lease.
    pub id: LeaseId,
    /// The name of the worker.
    pub worker: String,
    /// The end of the lease. Afterwards another worker may take the job over.
    pub until: Timestamp,
}

/// The outcome of a leased job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum JobOutcome {
    /// It is finished.
    Done {
        /// The report of the work and its cost.
        result: Option<Value>,
    },
    /// It is finished, and its row is removed: for frequent work that needs no report.
    Dropped,
    /// It was too early: the job waits again, and this attempt does not count.
    Later {
        /// The time at which it is due.
        run_at: Timestamp,
    },
    /// It failed and is retried.
    Retry {
        /// The time at which it is due.
        run_at: Timestamp,
        /// The error.
        error: String,
    },
    /// It failed for good.
    Dead {
        /// The error.
        error: String,
    },
}

impl JobOutcome {
    /// Finished, with an empty report.
    pub fn done() -> Self {
        Self::Done { result: None }
    }
}
