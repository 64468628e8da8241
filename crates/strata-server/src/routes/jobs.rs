//! `/jobs…`: background jobs: waiting, finished and dead ones, and retrying a dead job.

use axum::Json;
use axum::extract::State;
use strata_core::store::JobQuery;
use strata_core::{JobId, SessionId};

use super::params::{IdPath, Limit, Name, Named, UserName, UserParams, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Params;
use crate::extract::numbers::limit;
use crate::identity::Caller;
use crate::route::Route;
use crate::wire::names::Status;
use crate::wire::{JobResponse, JobsResponse};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(__path_list_jobs, list_jobs),
        Route::new(__path_get_job, get_job),
        Route::new(__path_retry_job, retry_job),
    ]
}

query!(ListParams {
    user_id: UserName = "The user of the jobs. Defaults to the user `default`.";
    session_id: Name = "Only jobs of this session.";
    status: Status = "Only jobs with this status.";
    limit: Limit = "The most entries to list.";
});

/// List background jobs
///
/// Finished jobs are kept for some days; dead ones stay until they are retried.
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
    Ok(Json(jobs.iter().collect()))
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs",
    params(IdPath, UserParams),
    responses((status = 200, description = "the job", body = JobResponse),
        (status = 404, description = "the user has no such job")))]
async fn get_job(
    State(app): State<App>,
    Named { user, id }: Named<JobId>,
) -> Result<Json<JobResponse>, ApiError> {
    Ok(Json((&app.engine().jobs.get(&user, id).await?).into()))
}

/// Try a dead job again
///
/// The job goes back into the queue, and its attempts start at zero again.
#[utoipa::path(post, path = "/jobs/{id}/retry", tag = "jobs",
    params(IdPath, UserParams),
    responses((status = 200, description = "the job, in the queue again", body = JobResponse),
        (status = 404, description = "the user has no such job"),
        (status = 409, description = "the job is not dead")))]
async fn retry_job(
    State(app): State<App>,
    Named { user, id }: Named<JobId>,
) -> Result<Json<JobResponse>, ApiError> {
    Ok(Json((&app.engine().jobs.retry(&user, id).await?).into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{DEAD_JOB, with_jobs};

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
        let path = format!("/jobs/{DEAD_JOB}");
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
