//! Background work that survives a crash: kept in the store, held under a lease, one at a time a session.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::id::{JobId, LeaseId, SessionId, UserId};
use crate::names::{Named, unknown};

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<JobStatus>)]
pub enum JobStatus {
    /// Waiting for its time and a worker.
    Queued,
    /// Held by a worker until its lease ends.
    Leased,
    /// Finished.
    Done,
    /// Given up after too many attempts; a person may retry it.
    Dead,
}

impl JobStatus {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for JobStatus {
    const WHAT: &'static str = "status";
}

/// A piece of background work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub user: UserId,
    /// The session it works on; without one it is about the user as a whole.
    pub session: Option<SessionId>,
    /// What to do, in the worker's own words.
    pub kind: String,
    /// With what.
    pub payload: Value,
    /// How far it is.
    pub status: JobStatus,
    /// How often it was begun.
    pub attempts: u32,
    /// Not before this moment.
    pub run_at: Timestamp,
    /// The hold on it, while leased.
    pub lease: Option<Lease>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// What it did and spent, in the worker's own words. Never what was said: nobody would find it there to destroy it.
    #[serde(default)]
    pub result: Option<Value>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A worker's hold on a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// This hold.
    pub id: LeaseId,
    /// Who holds it.
    pub worker: String,
    /// Until when; afterwards another worker may take the job over.
    pub until: Timestamp,
}

/// What became of a leased job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum JobOutcome {
    /// It is finished.
    Done {
        /// What it did and spent.
        result: Option<Value>,
    },
    /// It is finished, and nothing is kept of it: for work of which there is much and about which nobody will ask.
    Dropped,
    /// It was not its time yet: it waits again, and this beginning does not count as an attempt.
    Later {
        /// Not before this moment.
        run_at: Timestamp,
    },
    /// It failed and shall be tried again.
    Retry {
        /// Not before this moment.
        run_at: Timestamp,
        /// What went wrong.
        error: String,
    },
    /// It failed for good.
    Dead {
        /// What went wrong.
        error: String,
    },
}

impl JobOutcome {
    /// Finished, with nothing to tell.
    pub fn done() -> Self {
        Self::Done { result: None }
    }
}
