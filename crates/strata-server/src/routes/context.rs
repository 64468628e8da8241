//! `/sessions/{id}/context` and `/sessions/{id}/compact`: a session's working context as one document.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header as names};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use strata_core::context::ContextData;
use strata_core::{Error, ErrorKind, SessionId};
use strata_engine::IfMatch;
use utoipa::ToSchema;

use super::params::{Named, SessionPath, UserParams};
use super::state::{open_object, task_schema, token_usage_schema, tool_stats_schema};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::JsonBody;
use crate::identity::header;
use crate::route::Route;

const IF_MATCH: &str = "If-Match";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(__path_get_context, get_context).on(__path_put_context, put_context),
        Route::new(__path_compact, compact),
    ]
}

/// Read a session's working context
///
/// One document with facts from memories, history from turns, the summary of the earlier history, tasks, tool
/// statistics, environment and token usage. Its `ETag` makes a later write safe.
#[utoipa::path(get, path = "/sessions/{id}/context", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "the context", body = ref("#/components/schemas/ContextDocument"),
            content_type = "application/json", headers(("ETag" = String, description = "for `If-Match`"))),
        (status = 404, description = "the user has no such session")))]
async fn get_context(
    State(app): State<App>,
    Named { user, id }: Named<SessionId>,
) -> Result<Response, ApiError> {
    Ok(tagged(app.engine().contexts.get(&user, &id).await?))
}

/// Write a session's working context back
///
/// The write succeeds completely or not at all. A new fact becomes a memory of the session, and a removed fact is
/// deleted. New entries at the end of the history become turns. The summary becomes a new version. The rest is stored
/// in the session's state, including fields that Strata does not know. The session is created if it does not exist.
///
/// A document that would remove anything has to come with `If-Match`, because a fact or a task that was added since the
/// document was read would count as removed. A fact that was said in another session is never removed here; delete the
/// memory itself.
#[utoipa::path(put, path = "/sessions/{id}/context", tag = "sessions",
    request_body(content = ref("#/components/schemas/ContextDocument"), content_type = "application/json"),
    params(SessionPath, UserParams,
        ("If-Match" = Option<String>, Header, nullable = false, description =
            "the `ETag` of the document that was read: any other is a conflict. `*` replaces any document. Required if the document removes anything")),
    responses((status = 200, description = "the context as it is now", body = ref("#/components/schemas/ContextDocument"),
            content_type = "application/json", headers(("ETag" = String, description = "for `If-Match`"))),
        (status = 409, description = "the context changed since it was read, or the document is not of this session and its turns"),
        (status = 428, description = "the document would remove something, and `If-Match` is missing")))]
async fn put_context(
    State(app): State<App>,
    Named { user, id }: Named<SessionId>,
    headers: HeaderMap,
    JsonBody(context): JsonBody<ContextData>,
) -> Result<Response, ApiError> {
    let if_match = if_match(&headers)?;
    // An incomplete document, or a document of another session, would delete the facts that it does not name.
    if context.session_id.is_empty() {
        return Err(ApiError::invalid(
            "`session_id` is missing; send the whole document, as `GET` of this route gives it",
        ));
    }
    Ok(tagged(app.engine().contexts.put(&user, &id, &context, if_match).await.map_err(with_hint)?))
}

/// Adds how a request names the document.
fn with_hint(error: Error) -> Error {
    if error.kind() != ErrorKind::Unconditional {
        return error;
    }
    let hint = "send the `ETag` of `GET` as `If-Match`, or `If-Match: *` to replace any document";
    Error::unconditional(format!("{}: {hint}", error.message()))
}

/// The result of a compaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompactResponse {
    /// Whether anything changed.
    compacted: bool,
    /// The context as it is now.
    #[schema(value_type = Object)]
    context: ContextData,
}

/// Compact a session's working context
///
/// The oldest part of the history moves into the summary, and old completed tasks are removed. Turns stay.
#[utoipa::path(post, path = "/sessions/{id}/compact", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "done", body = CompactResponse),
        (status = 404, description = "the user has no such session"),
        (status = 409, description = "the context changed meanwhile; try again")))]
async fn compact(
    State(app): State<App>,
    Named { user, id }: Named<SessionId>,
) -> Result<Json<CompactResponse>, ApiError> {
    let limits = &app.engine().settings().compaction;
    let (context, compacted) = app.engine().contexts.compact(&user, &id, limits).await?;
    Ok(Json(CompactResponse { compacted, context }))
}

fn tagged(context: ContextData) -> Response {
    let tag = format!("\"{:016x}\"", context.fingerprint());
    let mut response = Json(context).into_response();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(names::ETAG, tag);
    }
    response
}

/// The document that the client has read, by its tag; `*` matches any.
fn if_match(headers: &HeaderMap) -> Result<IfMatch, ApiError> {
    let Some(text) = header(headers, IF_MATCH)? else { return Ok(IfMatch::Absent) };
    if text == "*" {
        return Ok(IfMatch::Any);
    }
    let digits = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let digits = digits.filter(|text| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let tag = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // An invalid tag cannot match the current document.
    tag.map(IfMatch::Document).ok_or_else(|| {
        Error::conflict(
            "`If-Match` is not an `ETag` of this document; send the one that `GET` returned, or `*`",
        )
        .into()
    })
}

/// The schema of the document. A missing or `null` field counts as empty.
pub(crate) fn schema() -> Value {
    let text = json!({ "type": "string", "pattern": r"^[^\x00]*$" });
    let or_null = |mut schema: Value| {
        schema["type"] = json!([schema["type"], "null"]);
        schema
    };
    let moment =
        json!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": 253_402_207_200_i64 });
    let mut entry = open_object(json!({
        "timestamp": or_null(moment.clone()),
        "role": { "type": "string", "enum": ["user", "assistant", "system", "tool"] },
        "content": text,
        "token_count": { "type": ["integer", "null"], "minimum": 0, "maximum": i64::MAX },
    }));
    entry["required"] = json!(["role", "content"]);
    let environment = open_object(json!({
        "workspace": or_null(text.clone()),
        "last_update": or_null(moment),
        "system_snapshot": { "$ref": "#/components/schemas/MetadataValue" },
    }));
    let fact = json!({ "type": "string", "pattern": r"^[^\x00]*[^\s\x00\x85][^\x00]*$" });
    let mut schema = open_object(json!({
        "session_id": { "type": "string", "minLength": 1, "description": "the session's name, as in the path" },
        "system_state": or_null(open_object(json!({}))),
        "facts": { "type": ["array", "null"], "items": fact },
        "recent_history": { "type": ["array", "null"], "items": entry },
        "long_term_summary": or_null(text),
        "active_tasks": { "type": ["array", "null"], "items": task_schema() },
        "tool_stats": or_null(tool_stats_schema()),
        "last_known_environment": or_null(environment),
        "token_usage": or_null(token_usage_schema()),
        "diagnostic": false,
        "observed": false,
    }));
    schema["description"] = json!(
        "A session's working context. Fields that Strata does not know are kept; entries of the history that were served \
         come back as they were, and new ones at the end become turns."
    );
    schema["required"] = json!(["session_id"]);
    schema
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Method;
    use serde_json::{Value, json};

    use crate::testing::{Answer, TestServer, request};

    async fn begun() -> TestServer {
        let server = TestServer::new();
        let messages = json!([
            {"role": "user", "content": "read the file"},
            {"role": "tool", "content": "{\"success\": true}", "name": "file_read"},
            {"role": "assistant", "content": "It is empty."},
        ]);
        server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": messages})).await;
        server.post("/memories", json!({"user_id": "ada", "text": "Ada prefers short answers"})).await;
        server
    }

    async fn put(server: &TestServer, tag: Option<&str>, context: &Value) -> Answer {
        let mut request = request(Method::PUT, "/sessions/s/context?user_id=ada");
        request = request.header("content-type", "application/json");
        if let Some(tag) = tag {
            request = request.header("if-match", tag);
        }
        server.send(request.body(Body::from(context.to_string())).unwrap()).await
    }

    #[tokio::test]
    async fn a_context_is_served_and_written_back() {
        let server = begun().await;
        let read = server.get("/sessions/s/context?user_id=ada").await;
        insta::assert_snapshot!("served", read.shown());
        let mut context = read.json();
        context["facts"].as_array_mut().unwrap().push(json!("the file is empty"));
        context["recent_history"]
            .as_array_mut()
            .unwrap()
            .push(json!({"timestamp": 0, "role": "user", "content": "thanks", "mood": "good"}));
        context["own_field"] = json!({"later": [1, 2.5, null]});
        let written = put(&server, read.header("etag"), &context).await;
        insta::assert_snapshot!("written", written.shown());
        assert_eq!(server.get("/sessions/s?user_id=ada").await.json()["turn_count"], 4);
        assert_eq!(server.get("/sessions/s/context?user_id=ada").await.json(), written.json());
    }

    #[tokio::test]
    async fn a_document_that_changed_is_a_conflict() {
        let server = begun().await;
        let read = server.get("/sessions/s/context?user_id=ada").await;
        server.post("/memories", json!({"user_id": "ada", "text": "learned meanwhile"})).await;
        let answer = put(&server, read.header("etag"), &read.json()).await;
        insta::assert_snapshot!("conflict", answer.shown());
        let facts = server.get("/sessions/s/context?user_id=ada").await.json()["facts"].clone();
        assert_eq!(facts, json!(["Ada prefers short answers", "learned meanwhile"]));
        assert_eq!(put(&server, Some("*"), &read.json()).await.status, 200);
    }

    #[tokio::test]
    async fn a_write_that_removes_needs_if_match() {
        let server = begun().await;
        let read = server.get("/sessions/s/context?user_id=ada").await;
        let mut shorter = read.json();
        shorter["facts"] = json!([]);
        let refused = put(&server, None, &shorter).await;
        insta::assert_snapshot!("precondition_required", refused.shown());
        assert_eq!(
            server.get("/sessions/s/context?user_id=ada").await.json(),
            read.json(),
            "nothing changed"
        );
        // A document that only adds needs none.
        let mut longer = read.json();
        longer["facts"].as_array_mut().unwrap().push(json!("the shed has a new roof"));
        let written = put(&server, None, &longer).await;
        assert_eq!(written.status, 200, "{}", written.body);
        assert_eq!(put(&server, read.header("etag"), &shorter).await.status, 409, "the tag is old");
        let tag = written.header("etag").unwrap().to_owned();
        let emptied = put(&server, Some(&tag), &shorter).await.json();
        assert_eq!(emptied["facts"], json!([]));
    }

    #[tokio::test]
    async fn compaction_moves_the_oldest_into_the_summary() {
        let server = begun().await;
        let compact = "/sessions/s/compact?user_id=ada";
        let send = async || server.send(request(Method::POST, compact).body(Body::empty()).unwrap()).await;
        assert_eq!(send().await.json()["compacted"], false);
        let messages: Vec<_> =
            (0..60).map(|n| json!({"role": "user", "content": format!("message {n}")})).collect();
        server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": messages})).await;
        let answer = send().await.json();
        assert_eq!(answer["compacted"], true, "{answer}");
        assert_eq!(answer["context"]["recent_history"].as_array().unwrap().len(), 30);
        assert!(answer["context"]["long_term_summary"].as_str().unwrap().contains("message 10"), "{answer}");
        assert_eq!(server.get("/sessions/s?user_id=ada").await.json()["turn_count"], 63, "turns stay");
        let metrics = server.get("/metrics").await.body;
        assert!(metrics.lines().any(|line| line == "strata_context_compactions_total 1"), "{metrics}");
    }
}
