//! `detail` in the failures of the routes that mem0's clients call: where these look for the message.

use axum::Json;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde_json::Value;

/// Says the message of a failure once more, under `detail`.
pub(crate) async fn detailed(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !(response.status().is_client_error() || response.status().is_server_error()) {
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
