//! The limits of the server: how many requests run at once, and how long one may take.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Waits for a permit, then runs the request within its time limit.
///
/// Health and metrics have no limits: an operator must be able to look at a server that is full.
pub(crate) async fn limited(State(app): State<App>, request: Request, next: Next) -> Response {
    let work = async {
        // The semaphore is never closed, so the permit is always given in the end.
        let _permit = app.permits().acquire().await;
        next.run(request).await
    };
    match tokio::time::timeout(app.settings().request_timeout, work).await {
        Ok(response) => response,
        Err(_) => ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "timeout",
            "the request took too long and was given up; try again, with the same `Idempotency-Key` where you write turns",
        )
        .retryable()
        .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Settings;
    use crate::testing::TestServer;

    #[tokio::test]
    async fn a_request_whose_turn_does_not_come_is_given_up_but_health_answers() {
        let request_timeout = Duration::from_millis(20);
        let settings = Settings { max_concurrent_requests: 1, request_timeout, ..Settings::default() };
        let server = TestServer::with(settings, Default::default());
        let permit = server.app.permits().acquire().await.unwrap();
        let answer = server.get("/memories").await;
        insta::assert_snapshot!("timeout", answer.shown());
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(server.get("/healthz").await.status, 200);
        drop(permit);
        assert_eq!(server.get("/memories").await.status, 200);
    }
}
