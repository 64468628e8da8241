//! Background work.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::job::Job;
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Status;

response! {
    /// A piece of background work.
    pub JobResponse from (job: Job) {
        /// Its id.
        id: Uuid = job.id.0,
        /// The user it works for.
        user_id: String = job.user.to_string(),
        /// The session it works on; without one it is about the user as a whole.
        session_id: Option<String> = job.session.as_ref().map(ToString::to_string),
        /// What is to be done.
        kind: String = job.kind.clone(),
        /// How far it is.
        status: Status = job.status.into(),
        /// How often it was begun.
        attempts: u32 = job.attempts,
        /// It does not start before this moment.
        run_at: Timestamp = job.run_at,
        /// The worker that holds it.
        worker: Option<String> = job.lease.as_ref().map(|lease| lease.worker.clone()),
        /// When the worker's lease ends; afterwards another worker may take the job over.
        leased_until: Option<Timestamp> = job.lease.as_ref().map(|lease| lease.until),
        /// The last failure.
        last_error: Option<String> = job.last_error.clone(),
        /// What it works with.
        #[schema(value_type = Object)]
        payload: Value = job.payload.clone(),
        /// What it did and spent.
        #[schema(value_type = Option<Object>)]
        result: Option<Value> = job.result.clone(),
        /// When it was asked for.
        created_at: Timestamp = job.created_at,
        /// When it last changed.
        updated_at: Timestamp = job.updated_at,
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
