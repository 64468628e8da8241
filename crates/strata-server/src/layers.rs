//! The layers around the routes. [`router`](crate::router::router()) lists them in their order.

mod guarded;
mod observed;
mod withheld;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use strata_core::key::KeyScope;

use crate::app::App;
use crate::compat;
use crate::cookies::with_cookie_key;
use crate::error::{ApiError, ErrorDetail};
use crate::extract::begun;
use crate::inspect::{self, FrameSlot};
use crate::route::{Access, Dialect, Rules, RulesByPath};
pub(crate) use guarded::guarded;
pub(crate) use observed::observed;
pub(crate) use withheld::withhold;

/// Writes a failure in the shape that the clients of its route expect. This layer is outside of all layers that may
/// refuse a request, so a missing key or an exceeded limit is reported in that shape too. Failures of an upstream
/// pass unchanged.
pub(crate) async fn translated(
    State(rules): State<RulesByPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let dialect = Rules::of(&request, rules).dialect;
    let frame = FrameSlot::default();
    if dialect == Dialect::Page {
        request.extensions_mut().insert(frame.clone());
    }
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ErrorDetail>() {
        Some(error) if dialect == Dialect::Page => inspect::failure_page(frame, error, response),
        Some(error) => compat::failure(dialect, error, response),
        None => response,
    }
}

/// Lets a request pass with its identity, or answers with the reason of the refusal. The rules of its route name the
/// scopes that the key needs. A key without `read` gets no stored content in the answer of a call that writes.
pub(crate) async fn admitted(
    State((app, rules)): State<(App, RulesByPath)>,
    mut request: Request,
    next: Next,
) -> Response {
    let access = Rules::of(&request, rules).access;
    let Some(needed) = access.needed(request.method()) else {
        return next.run(request).await;
    };
    let parts = (app.engine(), app.settings());
    let admitted = match access {
        Access::Inspector => {
            let headers = with_cookie_key(request.headers());
            app.keys().admit(parts, needed, &headers).await
        }
        _ => app.keys().admit(parts, needed, request.headers()).await,
    };
    match admitted {
        Ok((identity, permit)) => {
            let withholds = needed.shows_nothing() && identity.require(KeyScope::Read).is_err();
            request.extensions_mut().insert(identity);
            let mut response = next.run(request).await;
            if withholds {
                response = withheld::withheld(response).await;
            }
            match permit {
                Some(permit) => permit.hold(response),
                None => response,
            }
        }
        Err(error) => inspect::refused(access, (request.method(), request.uri(), request.headers()), error),
    }
}

/// Waits for a permit, then runs the request within its time limit. The beginning of the body comes first, so that a client
/// that does not send its body holds no permit. If clients do not read their answers, requests wait for room, too.
///
/// Health and metrics have no limits: an operator must be able to inspect a server that is full.
pub(crate) async fn limited(State(app): State<App>, request: Request, next: Next) -> Response {
    let settings = app.settings();
    let request = match begun(request, settings.max_body_bytes, settings.body_timeout).await {
        Ok(request) => request,
        Err(error) => return error.into_response(),
    };
    let work = async {
        app.answers().room().await;
        // The semaphore is never closed, so every request gets its permit in the end.
        let _permit = app.permits().acquire().await;
        app.answers().send(next.run(request).await)
    };
    match tokio::time::timeout(app.settings().request_timeout, work).await {
        Ok(response) => response,
        Err(_) => ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "timeout",
            "the request took too long and was stopped; try again, with the same `Idempotency-Key` if you record turns",
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
