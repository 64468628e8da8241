//! `/requests…`: what each recall did, and why something was or was not recalled.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strata_core::metric::{ErrorStage, RequestMetric, TraceSource};
use strata_core::trace::Trace;
use strata_core::{ItemId, TurnId, UserId};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::params::{Limit, UserName, UserParams, limit};
use super::trace::{ExplanationResponse, TraceResponse};
use super::vocabulary::Scope;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Params, PathName};
use crate::identity::Caller;
use crate::moment::Moment;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/requests", get(list_requests)),
        ("/requests/{id}", get(get_request)),
        ("/requests/{id}/explain", get(explain_request)),
    ]
}

/// What one request did and cost.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestResponse {
    /// Its id, as in the answer's `request_id`.
    id: Uuid,
    /// Whose memory was asked.
    user_id: String,
    /// The session it was asked in.
    session_id: Option<String>,
    /// When.
    created_at: Timestamp,
    /// The question.
    query: String,
    /// Items that hold a word of the question.
    fts_hits: u32,
    /// Items found by trigrams.
    trgm_hits: u32,
    /// Items compared by their vectors.
    vector_hits: u32,
    /// Whether full text and vectors gave nothing and trigrams or the most recent turns stood in.
    used_fallback: bool,
    /// Which path gave the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `none`.
    retrieval_path: &'static str,
    /// The scope asked for.
    scope: Scope,
    /// Where was looked in the end.
    scope_used: Scope,
    /// Why the scope was widened.
    expansion: Option<String>,
    /// How many items were given back.
    context_items: u32,
    /// Their tokens.
    estimated_tokens: u32,
    /// Whether the budget cut something.
    truncated: bool,
    /// Time spent on recall, in milliseconds.
    latency_retrieval_ms: f64,
    /// Time spent on the model, in milliseconds.
    latency_llm_ms: Option<f64>,
    /// What failed: `retrieval`, `embedding`, `llm_reply` or `summary`.
    error_stage: Option<&'static str>,
}

impl RequestResponse {
    fn new(user: &UserId, row: &RequestMetric) -> Self {
        let milliseconds = |micros: u64| micros as f64 / 1_000.0;
        Self {
            id: row.id.0,
            user_id: user.as_str().to_owned(),
            session_id: row.session.as_ref().map(|session| session.as_str().to_owned()),
            created_at: row.created_at,
            query: row.query.clone(),
            fts_hits: row.fts_hits,
            trgm_hits: row.trgm_hits,
            vector_hits: row.vector_hits,
            used_fallback: row.used_fallback,
            retrieval_path: row.retrieval_path.as_str(),
            scope: row.scope.into(),
            scope_used: row.scope_used.into(),
            expansion: row.expansion.clone(),
            context_items: row.context_items,
            estimated_tokens: row.estimated_tokens,
            truncated: row.truncated,
            latency_retrieval_ms: milliseconds(row.latency_retrieval_us),
            latency_llm_ms: row.latency_llm_us.map(milliseconds),
            error_stage: row.error_stage.map(ErrorStage::as_str),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Whose requests; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// Only those since then.
    #[param(value_type = Option<Moment>, inline, nullable = false)]
    since: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
}

/// Requests, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestsResponse {
    requests: Vec<RequestResponse>,
}

/// List what was asked
///
/// One row for each recall, the newest first, kept for the setting `requests_days`.
#[utoipa::path(get, path = "/requests", tag = "requests", params(ListParams),
    responses((status = 200, description = "the rows, the newest first", body = RequestsResponse)))]
async fn list_requests(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<RequestsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let since = params.since.as_deref().map(Moment::parse).transpose();
    let since = since.map_err(|reason| ApiError::invalid(format!("`since`: {reason}")))?;
    let limit = limit(&params.limit)?;
    let rows = app.engine().requests.list(&user, since.map(Moment::at), limit).await?;
    Ok(Json(RequestsResponse { requests: rows.iter().map(|row| RequestResponse::new(&user, row)).collect() }))
}

/// A request and what happened in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TracedRequestResponse {
    /// What it did and cost.
    #[serde(flatten)]
    request: RequestResponse,
    /// Whether the trace was made then, because somebody asked with `explain`. Otherwise the question was asked again, of
    /// what could be seen then, with the settings of now.
    trace_kept: bool,
    /// The same in words: from what the trace was made.
    trace_note: &'static str,
    /// What became of each candidate.
    trace: TraceResponse,
}

impl TracedRequestResponse {
    /// A user's request and its trace.
    pub fn new(user: &UserId, row: &RequestMetric, trace: Trace) -> Self {
        let source = row.trace_source();
        Self {
            request: RequestResponse::new(user, row),
            trace_kept: source == TraceSource::Kept,
            trace_note: source.note(),
            trace: trace.into(),
        }
    }
}

/// Show a request with its trace
#[utoipa::path(get, path = "/requests/{id}", tag = "requests",
    params(("id" = Uuid, Path, description = "the request"), UserParams),
    responses((status = 200, description = "the request", body = TracedRequestResponse),
        (status = 404, description = "the user has made no such request")))]
async fn get_request(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<UserParams>,
) -> Result<Json<TracedRequestResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let row = app.engine().requests.get(&user, id.parse()?).await?;
    let trace = app.engine().requests.trace_of(&user, row.clone()).await?;
    Ok(Json(TracedRequestResponse::new(&user, &row, trace)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExplainParams {
    /// The turn or memory.
    #[param(value_type = Uuid, required = true, nullable = false)]
    item: Option<String>,
    /// Whose request; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
}

/// Why was this (not) recalled?
#[utoipa::path(get, path = "/requests/{id}/explain", tag = "requests",
    params(("id" = Uuid, Path, description = "the request"), ExplainParams),
    responses((status = 200, description = "why, in a sentence, and what happened to it", body = ExplanationResponse),
        (status = 404, description = "the user has made no such request, or has no such turn or memory")))]
async fn explain_request(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<ExplainParams>,
) -> Result<Json<ExplanationResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let Some(item) = params.item else {
        return Err(ApiError::invalid("`item` is missing; name a turn or a memory, as `?item=ID`"));
    };
    // Ids are unique over kinds, and nobody who asks should have to know which it is.
    let item = ItemId::Turn(item.parse::<TurnId>()?);
    Ok(Json(app.engine().requests.explain(&user, id.parse()?, item).await?.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestServer;

    /// A server that was asked twice: once plainly, once to explain itself.
    async fn asked() -> (TestServer, [String; 2], [String; 3]) {
        let server = TestServer::new();
        let messages = json!([
            {"role": "user", "content": "we drink green tea"},
            {"role": "user", "content": "she drinks black tea"},
            {"role": "user", "content": "coffee"},
        ]);
        let body = json!({"user_id": "ada", "session_id": "s", "messages": messages});
        let turns = server.post("/turns", body).await.json();
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        let turns = [0, 1, 2].map(|place| id(&turns["turns"][place]["id"]));
        let mut requests = Vec::new();
        for explain in [false, true] {
            let body = json!({"user_id": "ada", "query": "tea", "top_k": 1, "explain": explain});
            requests.push(id(&server.post("/search", body).await.json()["request_id"]));
        }
        (server, requests.try_into().unwrap(), turns)
    }

    #[tokio::test]
    async fn each_search_leaves_a_row() {
        let (server, [plain, explained], _) = asked().await;
        let rows = server.get("/requests?user_id=ada").await;
        let ids: Vec<_> =
            rows.json()["requests"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        assert_eq!(ids, [json!(explained), json!(plain)], "the newest first");
        insta::assert_snapshot!("rows", server.get("/requests?user_id=ada&limit=1").await.shown());
        let none = json!({"requests": []});
        assert_eq!(server.get("/requests?user_id=eve").await.json(), none);
        assert_eq!(server.get("/requests?user_id=ada&since=2100-01-01T00:00:00Z").await.json(), none);
        assert_eq!(
            server.get("/requests?user_id=ada&since=0").await.json()["requests"].as_array().unwrap().len(),
            2
        );
    }

    #[tokio::test]
    async fn a_request_shows_its_trace_whether_it_was_kept_or_not() {
        let (server, requests, turns) = asked().await;
        for (request, kept) in requests.iter().zip([false, true]) {
            let shown = server.get(&format!("/requests/{request}?user_id=ada")).await.json();
            assert_eq!((&shown["id"], &shown["trace_kept"]), (&json!(request), &json!(kept)));
            let candidates = shown["trace"]["candidates"].as_array().unwrap();
            assert_eq!(candidates.len(), 2, "{shown}");
            assert!(candidates.iter().any(|candidate| candidate["id"] == json!(turns[0])), "{shown}");
        }
        let kept = server.get(&format!("/requests/{}?user_id=ada", requests[1])).await;
        insta::assert_snapshot!("traced", kept.shown());
        assert_eq!(server.get(&format!("/requests/{}?user_id=eve", requests[1])).await.status, 404);
        let rows = server.get("/requests?user_id=ada").await.json();
        assert_eq!(rows["requests"].as_array().unwrap().len(), 2, "looking leaves no row");
    }

    #[tokio::test]
    async fn an_item_is_told_why_it_was_not_recalled() {
        let (server, [_, request], turns) = asked().await;
        let explain = async |item: &str| {
            server.get(&format!("/requests/{request}/explain?user_id=ada&item={item}")).await
        };
        let answers = [explain(&turns[0]).await.json(), explain(&turns[1]).await.json()];
        let outcomes: Vec<_> = answers.iter().map(|answer| &answer["candidate"]["outcome"]).collect();
        assert!(
            outcomes.contains(&&json!("served")) && outcomes.contains(&&json!("not_chosen")),
            "{answers:?}"
        );
        for answer in &answers {
            assert_eq!(answer["recalled"], answer["candidate"]["outcome"] == "served");
        }
        insta::assert_snapshot!("unrelated", explain(&turns[2]).await.shown());
        let later = json!({"user_id": "ada", "text": "tea at four"});
        let later = server.post("/memories", later).await.json();
        let answer = explain(later["results"][0]["id"].as_str().unwrap()).await.json();
        assert_eq!(answer["kind"], "memory");
        assert!(answer["reason"].as_str().unwrap().contains("after the request"), "{answer}");
        assert_eq!(explain("00000000-0000-0000-0000-00000000ffff").await.status, 404);
        assert_eq!(explain("x").await.status, 400);
        assert_eq!(server.get(&format!("/requests/{request}/explain?user_id=ada")).await.status, 400);
    }
}
