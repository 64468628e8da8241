//! `GET /healthz` and `GET /readyz`: whether the process is alive, and whether it can work.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use strata_core::Result;
use strata_core::store::{CheckDepth, Health};
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// How long the store may take to say whether it works. A monitor gets its answer within a second, also from a disk that
/// hangs.
const PATIENCE: Duration = Duration::from_millis(900);

pub(crate) fn routes() -> Vec<Route> {
    // A monitor has no key, and these answers only tell whether the server works.
    [Route::new(__path_alive, alive), Route::new(__path_ready, ready)]
        .map(|route| route.open().unlimited())
        .into()
}

/// The server works.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusResponse {
    /// `ok` or `ready`.
    status: &'static str,
}

/// Check that the process is alive
#[utoipa::path(get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "it is", body = StatusResponse)))]
async fn alive() -> Json<StatusResponse> {
    Json(StatusResponse { status: "ok" })
}

/// Check that the store can be read and written
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "it can", body = StatusResponse),
        (status = 503, description = "it cannot; the message says why")))]
async fn ready(State(app): State<App>) -> Result<Json<StatusResponse>, ApiError> {
    readiness(app.engine().store().check(CheckDepth::Quick)).await
}

/// The answer to a check of the store that may never come to its end.
async fn readiness(check: impl Future<Output = Result<Health>>) -> Result<Json<StatusResponse>, ApiError> {
    let Ok(health) = timeout(PATIENCE, check).await else {
        let message = format!("the store has not answered within {} ms", PATIENCE.as_millis());
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message));
    };
    let health = health?;
    if health.problems.is_empty() {
        return Ok(Json(StatusResponse { status: "ready" }));
    }
    let message = format!("the store is not well: {}", health.problems.join("; "));
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{PATIENCE, readiness};
    use crate::testing::TestServer;

    #[tokio::test]
    async fn a_store_that_hangs_is_not_ready_within_a_second() {
        let refused = readiness(std::future::pending()).await.err().unwrap();
        assert_eq!(refused.detail().0, 503);
        assert!(PATIENCE < Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_closed_store_is_alive_but_not_ready() {
        let server = TestServer::new();
        assert_eq!(server.get("/readyz").await.body, r#"{"status":"ready"}"#);
        server.app.engine().store().close().await.unwrap();
        assert_eq!(server.get("/healthz").await.body, r#"{"status":"ok"}"#);
        insta::assert_snapshot!("not_ready", server.get("/readyz").await.shown());
    }
}
