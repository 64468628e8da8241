//! `detail` in the failures of the routes that mem0's clients call: where these look for the message.

use axum::Json;
use axum::extract::{MatchedPath, Request};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::Value;

/// Whether mem0's clients call a route.
fn is_mem0s(route: &str) -> bool {
    matches!(route, "/search" | "/reset")
        || [
            "/memories",
            "/v1/memories/",
            "/v2/memories/",
            "/v3/memories/",
            "/v1/batch/",
            "/v1/entities/",
            "/v2/entities/",
        ]
        .iter()
        .any(|path| route.starts_with(path))
}

/// Says the message of a failure once more, under `detail`. Around everything that may refuse a request, so that a missing key
/// or too many requests are told there as well.
pub(crate) async fn detailed(request: Request, next: Next) -> Response {
    let is_theirs = request.extensions().get::<MatchedPath>().is_some_and(|route| is_mem0s(route.as_str()));
    let response = next.run(request).await;
    if !is_theirs || !(response.status().is_client_error() || response.status().is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut failure: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = failure.pointer("/error/message").cloned().unwrap_or_default();
    if let Some(failure) = failure.as_object_mut() {
        failure.insert("detail".to_owned(), message);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    let (known, body) = Json(failure).into_response().into_parts();
    parts.headers.extend(known.headers);
    Response::from_parts(parts, body)
}
