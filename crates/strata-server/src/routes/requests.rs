//! `/requests…`: the result of each recall, and why an item was or was not recalled.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use strata_core::{ItemId, RequestId, TurnId};
use utoipa::ToSchema;

use super::params::{IdPath, Limit, Named, UserName, UserParams, query};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::limit;
use crate::extract::{JsonBody, Params, PathName};
use crate::identity::Caller;
use crate::moment::Moment;
use crate::route::Route;
use crate::wire::trace::{ExplanationResponse, RequestResponse, RequestsResponse, TracedRequestResponse};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(__path_list_requests, list_requests),
        Route::new(__path_get_request, get_request),
        Route::new(__path_explain_request, explain_request),
        Route::new(__path_file_feedback, file_feedback),
    ]
}

query!(ListParams {
    user_id: UserName = "The user of the requests. Defaults to the user `default`.";
    since: Moment = "Only requests since then.";
    limit: Limit = "The most entries to list.";
});

/// List requests
///
/// One row for each recall, the newest first. Rows are kept for the number of days in the setting `requests_days`.
#[utoipa::path(get, path = "/requests", tag = "requests", params(ListParams),
    responses((status = 200, description = "the rows, the newest first", body = RequestsResponse)))]
async fn list_requests(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<RequestsResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let since = Moment::parameter("since", params.since.as_deref())?;
    let rows = app.engine().requests.list(&user, since.map(Moment::at), limit(&params.limit)?).await?;
    Ok(Json(RequestsResponse::new(&user, &rows)))
}

/// Show a request with its trace
#[utoipa::path(get, path = "/requests/{id}", tag = "requests",
    params(IdPath, UserParams),
    responses((status = 200, description = "the request", body = TracedRequestResponse),
        (status = 404, description = "the user has made no such request")))]
async fn get_request(
    State(app): State<App>,
    Named { user, id }: Named<RequestId>,
) -> Result<Json<TracedRequestResponse>, ApiError> {
    let row = app.engine().requests.get(&user, id).await?;
    let trace = app.engine().requests.trace_of(&user, row.clone()).await?;
    Ok(Json(TracedRequestResponse::new(&user, &row, &trace)))
}

query!(ExplainParams {
    item: Uuid = "The turn or memory.", required = true;
    user_id: UserName = "The user of the request. Defaults to the user `default`.";
});

/// Explain why an item was or was not recalled
#[utoipa::path(get, path = "/requests/{id}/explain", tag = "requests",
    params(IdPath, ExplainParams),
    responses((status = 200, description = "the reason in a sentence, and the outcome of the item", body = ExplanationResponse),
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
    // Ids are unique across kinds, so the engine finds the item of any kind.
    let item = ItemId::Turn(item.parse::<TurnId>()?);
    Ok(Json((&app.engine().requests.explain(&user, id.parse()?, item).await?).into()))
}

/// A complaint about a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedbackRequest {
    /// The complaint in your own words, as in «it forgot my sister's name»; at most 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2000)]
    text: String,
    /// The kind of failure: `forgot`, or `meaning` if the forgotten item shares no words with the question.
    #[schema(pattern = "^(forgot|meaning)$")]
    kind: Option<String>,
    /// The user of the request. Defaults to the user `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
}

/// File that it forgot something
///
/// The complaint stays with the row of the request and counts in the report.
#[utoipa::path(post, path = "/requests/{id}/feedback", tag = "requests",
    params(IdPath), request_body = FeedbackRequest,
    responses((status = 201, description = "filed", body = RequestResponse),
        (status = 404, description = "the user has made no such request")))]
async fn file_feedback(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(request): JsonBody<FeedbackRequest>,
) -> Result<(StatusCode, Json<RequestResponse>), ApiError> {
    let user = caller.user([&request.user_id])?;
    let kind = request.kind.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    let row = app.engine().reporting.complain(&user, id.parse()?, kind, &request.text).await?;
    Ok((StatusCode::CREATED, Json(RequestResponse::new(&user, &row))))
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
