//! Background work.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::job::Job;
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Status;

/// A piece of background work.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobResponse {
    /// Its id.
    id: Uuid,
    /// The user it works for.
    user_id: String,
    /// The session it works on; without one it is about the user as a whole.
    session_id: Option<String>,
    /// What is to be done.
    kind: String,
    /// How far it is.
    status: Status,
    /// How often it was begun.
    attempts: u32,
    /// It does not start before this moment.
    run_at: Timestamp,
    /// The worker that holds it.
    worker: Option<String>,
    /// When the worker's lease ends; afterwards another worker may take the job over.
    leased_until: Option<Timestamp>,
    /// The last failure.
    last_error: Option<String>,
    /// What it works with.
    #[schema(value_type = Object)]
    payload: Value,
    /// What it did and spent.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// When it was asked for.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
}

impl From<&Job> for JobResponse {
    fn from(job: &Job) -> Self {
        let lease = job.lease.as_ref();
        Self {
            id: job.id.0,
            user_id: job.user.to_string(),
            session_id: job.session.as_ref().map(ToString::to_string),
            kind: job.kind.clone(),
            status: job.status.into(),
            attempts: job.attempts,
            run_at: job.run_at,
            worker: lease.map(|lease| lease.worker.clone()),
            leased_until: lease.map(|lease| lease.until),
            last_error: job.last_error.clone(),
            payload: job.payload.clone(),
            result: job.result.clone(),
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

/// Jobs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobsResponse {
    jobs: Vec<JobResponse>,
}

impl<'a> FromIterator<&'a Job> for JobsResponse {
    fn from_iter<I: IntoIterator<Item = &'a Job>>(jobs: I) -> Self {
        Self { jobs: jobs.into_iter().map(JobResponse::from).collect() }
    }
}
