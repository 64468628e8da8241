//! `GET /v1/models` with several upstreams: their lists as one.

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::forward::unread;
use crate::app::App;
use crate::error::ApiError;
use crate::settings::UpstreamApi;
use crate::upstream::{AnswerUse, Upstream};

/// The largest list that is read.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The models of all upstreams. An upstream that does not answer is left out; if none answers, its failure is.
pub(crate) async fn list(app: &App, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let (mut models, mut refusal, mut answered) = (Vec::new(), None, false);
    for upstream in app.proxy().upstreams.iter() {
        match listed(upstream, &parts).await {
            Ok(Ok(more)) => {
                models.extend(more);
                answered = true;
            }
            Ok(Err(response)) => refusal = refusal.or(Some(Ok(response))),
            Err(error) => refusal = refusal.or(Some(Err(error))),
        }
    }
    match refusal {
        Some(refusal) if !answered => refusal,
        _ => Ok(Json(json!({ "object": "list", "data": models, "has_more": false })).into_response()),
    }
}

/// The models of one upstream, or its refusal.
async fn listed(upstream: &Upstream, parts: &Parts) -> Result<Result<Vec<Value>, Response>, ApiError> {
    let mut headers = upstream.headers(parts, AnswerUse::Read);
    if upstream.api == UpstreamApi::Anthropic && !headers.contains_key(&ANTHROPIC_VERSION) {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2023-06-01"));
    }
    let answer = upstream.send(Method::GET, &parts.uri, headers, Body::empty()).await?;
    if !answer.status().is_success() {
        return Ok(Err(unread(answer, upstream.timeout())));
    }
    let body =
        tokio::time::timeout(upstream.timeout(), Limited::new(answer.into_body(), MAX_LIST_BYTES).collect());
    let bytes = body.await.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let mut list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let data = list.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Ok(data.as_array().cloned().unwrap_or_default()))
}
