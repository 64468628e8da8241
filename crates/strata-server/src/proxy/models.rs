//! `GET /v1/models` with several upstreams: their lists as one.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::forward::unread;
use crate::app::App;
use crate::error::ApiError;
use crate::settings::UpstreamApi;
use crate::upstream::{AnswerUse, Asked, Upstream};

/// The largest list that is read.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// How long the lists are waited for: a client that fills a menu does not wait longer for a server that is away.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// An upstream's models, or its refusal.
type Listed = Result<Result<Vec<Value>, Response>, ApiError>;

/// The models of all upstreams, each under the upstream that would serve it. An upstream that does not answer is left
/// out; if none answers, the failure of the first one is told.
pub(crate) async fn list(app: &App, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let upstreams = &app.proxy().upstreams;
    // The client's own credentials are meant for one server.
    let theirs = upstreams.choose(&asked(&parts))?.number;
    let mut asking = JoinSet::new();
    for number in upstreams.iter().map(|upstream| upstream.number) {
        let (app, parts) = (app.clone(), parts.clone());
        asking.spawn(async move {
            let Some(upstream) = app.proxy().upstreams.iter().nth(number) else {
                return (number, Ok(Ok(Vec::new())));
            };
            let listed = tokio::time::timeout(LONGEST_WAIT, listed(upstream, &parts, number == theirs)).await;
            (number, listed.unwrap_or_else(|_| Err(late())))
        });
    }
    let mut answers: Vec<(usize, Listed)> = asking.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    let (mut models, mut refusal, mut answered) = (Vec::new(), None, false);
    for (number, answer) in answers {
        match answer {
            Ok(Ok(more)) => {
                models.extend(more.into_iter().filter(|model| is_served(app, model, number)));
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

/// The list as a request: Anthropic's clients tell themselves by a header.
fn asked(parts: &Parts) -> Asked<'_> {
    let by_path = Asked::of_path(parts.uri.path());
    let is_anthropic = parts.headers.contains_key(&ANTHROPIC_VERSION);
    Asked { api: if is_anthropic { Some(UpstreamApi::Anthropic) } else { by_path.api }, ..by_path }
}

/// Whether a request for a model would go to this upstream.
fn is_served(app: &App, model: &Value, upstream: usize) -> bool {
    let Some(id) = model.get("id").and_then(Value::as_str) else { return true };
    let asked = Asked { model: Some(id.into()), ..Asked::default() };
    app.proxy().upstreams.choose(&asked).is_ok_and(|one| one.number == upstream)
}

/// The models of one upstream, or its refusal. `is_theirs` tells that the client's own credentials are meant for it.
async fn listed(upstream: &Upstream, parts: &Parts, is_theirs: bool) -> Listed {
    let (mut headers, mut uri) = match is_theirs {
        true => (upstream.headers(parts, AnswerUse::Read), parts.uri.clone()),
        false => (upstream.bare_headers(parts), Uri::from_static("/v1/models")),
    };
    if upstream.api == UpstreamApi::Anthropic {
        headers.entry(&ANTHROPIC_VERSION).or_insert(HeaderValue::from_static("2023-06-01"));
        // Its lists have pages of 20.
        if uri.query().is_none() {
            uri = Uri::from_static("/v1/models?limit=1000");
        }
    }
    let answer = upstream.send(Method::GET, &uri, headers, Body::empty()).await?;
    if !answer.status().is_success() {
        return Ok(Err(unread(answer, upstream.timeout())));
    }
    let body = Limited::new(answer.into_body(), MAX_LIST_BYTES).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let data = list.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Ok(data.as_array().cloned().unwrap_or_default()))
}

fn late() -> ApiError {
    let message = format!(
        "the upstream did not send its list of models within {} s; see that it runs",
        LONGEST_WAIT.as_secs()
    );
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", message).retryable()
}
