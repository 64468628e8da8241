//! Background work, as `--json` prints it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::job::Job;
use strata_core::{SessionId, UserId};
use uuid::Uuid;

/// A piece of background work.
#[derive(Debug, Serialize)]
pub(crate) struct JobJson<'a> {
    id: Uuid,
    user_id: &'a UserId,
    session_id: Option<&'a SessionId>,
    kind: &'a str,
    status: &'static str,
    attempts: u32,
    run_at: Timestamp,
    worker: Option<&'a str>,
    leased_until: Option<Timestamp>,
    last_error: Option<&'a str>,
    payload: &'a Value,
    result: Option<&'a Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<'a> JobJson<'a> {
    pub(crate) fn new(job: &'a Job) -> Self {
        let lease = job.lease.as_ref();
        Self {
            id: job.id.0,
            user_id: &job.user,
            session_id: job.session.as_ref(),
            kind: &job.kind,
            status: job.status.as_str(),
            attempts: job.attempts,
            run_at: job.run_at,
            worker: lease.map(|lease| lease.worker.as_str()),
            leased_until: lease.map(|lease| lease.until),
            last_error: job.last_error.as_deref(),
            payload: &job.payload,
            result: job.result.as_ref(),
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}
