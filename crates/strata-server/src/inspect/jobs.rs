//! The jobs that were given up, on the first page, and the form that puts one into the queue again.

use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use strata_core::job::{Job, JobStatus};
use strata_core::store::JobQuery;
use strata_core::{JobId, UserId};

use super::clip::Room;
use super::frame::{Frame, Visitor, moment, quoted};
use super::guard::Form;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::route::Route;

/// The most jobs that are shown.
const SHOWN: u32 = 5;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/jobs/{id}/retry", post(retry)).inspects()]
}

/// A job that was given up.
pub(super) struct DeadJob {
    pub(super) kind: String,
    pub(super) error: String,
    pub(super) at: String,
    /// Where the form is sent that tries it again.
    pub(super) retry: String,
}

impl DeadJob {
    /// The newest ones of a user.
    pub(super) async fn load(
        app: &App,
        user: &UserId,
        frame: &Frame,
        room: &mut Room,
    ) -> Result<Vec<Self>, ApiError> {
        let query = JobQuery { status: Some(JobStatus::Dead), limit: SHOWN, ..JobQuery::default() };
        let jobs = app.engine().jobs.list(user, &query).await?;
        Ok(jobs.iter().map(|job| Self::new(job, frame, room)).collect())
    }

    fn new(job: &Job, frame: &Frame, room: &mut Room) -> Self {
        let error = job.last_error.as_deref().unwrap_or("the reason is not known");
        Self {
            kind: job.kind.clone(),
            error: quoted(&room.line(error, 300).text),
            at: moment(job.updated_at),
            retry: frame.href(&format!("/inspect/jobs/{}/retry", job.id)),
        }
    }
}

async fn retry(
    State(app): State<App>,
    visitor: Visitor,
    PathName(id): PathName,
    _form: Form,
) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let id: JobId = id.parse()?;
    app.engine().jobs.retry(&user, id).await?;
    Ok(frame.go("/inspect", "retried"))
}
