//! Background jobs.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::job::Job;
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Status;

response! {
    /// A background job.
    pub JobResponse from (job: Job) {
        /// Its id.
        id: Uuid = job.id.0,
        /// The user it works for.
        user_id: String = job.user.to_string(),
        /// The session it works on; absent if it concerns the user as a whole.
        session_id: Option<String> = job.session.as_ref().map(ToString::to_string),
        /// The kind of work.
        kind: String = job.kind.clone(),
        /// The status.
        status: Status = job.status.into(),
        /// How often it was started.
        attempts: u32 = job.attempts,
        /// The job does not start before this time.
        run_at: Timestamp = job.run_at,
        /// The worker that holds it.
        worker: Option<String> = job.lease.as_ref().map(|lease| lease.worker.clone()),
        /// When the worker's lease ends. Afterwards another worker may take the job over.
        leased_until: Option<Timestamp> = job.lease.as_ref().map(|lease| lease.until),
        /// The last failure.
        last_error: Option<String> = job.last_error.clone(),
        /// The input of the job.
        #[schema(value_type = Object)]
        payload: Value = job.payload.clone(),
        /// The result of the job, and its cost.
        #[schema(value_type = Option<Object>)]
        result: Option<Value> = job.result.clone(),
        /// When it was created.
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
