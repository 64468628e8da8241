//! `/jobs…`: the work behind the conversation: what waits, what was done, what was given up, and another try for that.

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_core::SessionId;
use strata_core::job::Job;
use strata_core::store::JobQuery;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::params::{Limit, Name, UserName, UserParams, limit};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Params, PathName};
use crate::identity::Caller;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/jobs", get(list_jobs)), ("/jobs/{id}", get(get_job)), ("/jobs/{id}/retry", post(retry_job))]
}

/// A piece of background work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobResponse {
    /// Its id.
    id: Uuid,
    /// Whose it is.
    user_id: String,
    /// The session it works on; without one it is about the user as a whole.
    session_id: Option<String>,
    /// What is to be done.
    kind: String,
    /// How far it is.
    status: Status,
    /// How often it was begun.
    attempts: u32,
    /// Not before this moment.
    run_at: Timestamp,
    /// Who works on it, while somebody does.
    worker: Option<String>,
    /// Until when that one holds it; afterwards another may take it over.
    leased_until: Option<Timestamp>,
    /// What went wrong last.
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

impl From<Job> for JobResponse {
    fn from(job: Job) -> Self {
        let (worker, leased_until) = job.lease.map(|lease| (lease.worker, lease.until)).unzip();
        Self {
            id: job.id.0,
            user_id: job.user.as_str().to_owned(),
            session_id: job.session.map(String::from),
            kind: job.kind,
            status: job.status.into(),
            attempts: job.attempts,
            run_at: job.run_at,
            worker,
            leased_until,
            last_error: job.last_error,
            payload: job.payload,
            result: job.result,
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

/// How far a job is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// Waiting for its time and a worker.
    Queued,
    /// Held by a worker until its lease ends.
    Leased,
    /// Finished.
    Done,
    /// Given up after too many attempts.
    Dead,
}

impl From<strata_core::job::JobStatus> for Status {
    fn from(status: strata_core::job::JobStatus) -> Self {
        use strata_core::job::JobStatus;
        match status {
            JobStatus::Queued => Self::Queued,
            JobStatus::Leased => Self::Leased,
            JobStatus::Done => Self::Done,
            JobStatus::Dead => Self::Dead,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Whose jobs; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// Only those of this session.
    #[param(value_type = Option<Name>, inline, nullable = false)]
    session_id: Option<String>,
    /// Only those that are so far.
    #[param(value_type = Option<Status>, inline, nullable = false)]
    status: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
}

/// Jobs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobsResponse {
    jobs: Vec<JobResponse>,
}

/// List background work
///
/// What was finished is kept for some days; what is dead stays until somebody retries it.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(ListParams),
    responses((status = 200, description = "the jobs, the newest first", body = JobsResponse)))]
async fn list_jobs(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<JobsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let query = JobQuery {
        id: None,
        status: params.status.as_deref().map(str::parse).transpose()?,
        session: params.session_id.map(SessionId::new).transpose()?,
        limit: limit(&params.limit)?,
    };
    let jobs = app.engine().jobs.list(&user, &query).await?;
    Ok(Json(JobsResponse { jobs: jobs.into_iter().map(JobResponse::from).collect() }))
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs",
    params(("id" = Uuid, Path, description = "the job"), UserParams),
    responses((status = 200, description = "the job", body = JobResponse),
        (status = 404, description = "the user has no such job")))]
async fn get_job(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<UserParams>,
) -> Result<Json<JobResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    Ok(Json(app.engine().jobs.get(&user, id.parse()?).await?.into()))
}

/// Try a dead job again
///
/// It goes back into the queue with its attempts at zero.
#[utoipa::path(post, path = "/jobs/{id}/retry", tag = "jobs",
    params(("id" = Uuid, Path, description = "the job"), UserParams),
    responses((status = 200, description = "the job, in the queue again", body = JobResponse),
        (status = 404, description = "the user has no such job"),
        (status = 409, description = "the job is not dead")))]
async fn retry_job(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<UserParams>,
) -> Result<Json<JobResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    Ok(Json(app.engine().jobs.retry(&user, id.parse()?).await?.into()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use strata_core::job::{Job, JobOutcome, JobStatus};
    use strata_core::store::{Change, ChangeSet, LeaseRequest};
    use strata_core::{JobId, LeaseId, UserId};
    use uuid::Uuid;

    use crate::testing::TestServer;

    const DEAD: u128 = 0xdead;

    fn moment(second: i64) -> Timestamp {
        Timestamp::from_second(1_770_000_000 + second).unwrap()
    }

    /// A server with a dead job and a waiting one of `ada`.
    async fn with_jobs() -> TestServer {
        let server = TestServer::new();
        let store = server.app.engine().store();
        let ada = UserId::new("ada").unwrap();
        for (id, second) in [(DEAD, 0), (0xf00d, 500)] {
            let job = Job {
                id: JobId(Uuid::from_u128(id)),
                user: ada.clone(),
                session: Some("trip".parse().unwrap()),
                kind: "learn".to_owned(),
                payload: json!({}),
                status: JobStatus::Queued,
                attempts: 0,
                run_at: moment(second),
                lease: None,
                last_error: None,
                result: None,
                created_at: moment(second),
                updated_at: moment(second),
            };
            let changes = ChangeSet::one(moment(second), Change::EnqueueJob(Box::new(job)));
            store.apply(&ada, changes).await.unwrap();
        }
        let lease = LeaseId(Uuid::from_u128(1));
        let request = LeaseRequest { lease, worker: "w".to_owned(), now: moment(1), until: moment(60) };
        let job = store.lease_job(&request).await.unwrap().unwrap();
        let outcome = JobOutcome::Dead { error: "the model refuses".to_owned() };
        let finish = Change::FinishJob { id: job.id, lease, outcome };
        store.apply(&ada, ChangeSet::one(moment(2), finish)).await.unwrap();
        server
    }

    #[tokio::test]
    async fn jobs_are_listed_the_newest_first() {
        let server = with_jobs().await;
        insta::assert_snapshot!("listed", server.get("/jobs?user_id=ada").await.shown());
        for (query, count) in [
            ("user_id=ada&status=dead", 1),
            ("user_id=ada&limit=1", 1),
            ("user_id=ada&session_id=x", 0),
            ("", 0),
        ] {
            let list = server.get(&format!("/jobs?{query}")).await.json();
            assert_eq!(list["jobs"].as_array().unwrap().len(), count, "{query}");
        }
        insta::assert_snapshot!("unknown_status", server.get("/jobs?status=lost").await.shown());
    }

    #[tokio::test]
    async fn a_dead_job_is_tried_again_and_no_other() {
        let server = with_jobs().await;
        let path = format!("/jobs/{}", Uuid::from_u128(DEAD));
        assert_eq!(
            server.get(&format!("{path}?user_id=ada")).await.json()["last_error"],
            "the model refuses"
        );
        assert_eq!(server.get(&path).await.status, 404, "another user");
        let retry = format!("{path}/retry?user_id=ada");
        let retried = server.post(&retry, json!(null)).await;
        assert_eq!((retried.status.as_u16(), &retried.json()["status"]), (200, &json!("queued")));
        assert_eq!(retried.json()["attempts"], 0);
        assert_eq!(server.post(&retry, json!(null)).await.status, 409, "it is not dead any more");
        assert_eq!(server.post("/jobs/7/retry", json!(null)).await.status, 400);
    }
}
