//! `/sessions/{id}/state`: reading and editing the structured state of a session.

use axum::Json;
use axum::extract::State as Shared;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strata_core::SessionId;
use strata_core::state::{DiagnosticState, State, Task, TokenUsage, ToolStats};

use super::params::{Named, SessionPath, UserParams};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, object};
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_get_state, get_state).on(__path_put_state, put_state)]
}

/// A state in the form that clients write. The client's own fields are kept. `observed` is ignored: Strata alone sets
/// it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StateRequest {
    #[serde(deserialize_with = "object")]
    diagnostic: DiagnosticState,
    system_state: Map<String, Value>,
    active_tasks: Vec<Task>,
    tool_stats: ToolStats,
    last_known_environment: Map<String, Value>,
    token_usage: TokenUsage,
    archived: Vec<Subject>,
    #[serde(rename = "observed")]
    _observed: Value,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// An earlier subject. It is an object, never a list of its fields.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Subject(#[serde(deserialize_with = "object")] DiagnosticState);

impl From<StateRequest> for State {
    fn from(request: StateRequest) -> Self {
        Self {
            diagnostic: request.diagnostic,
            system_state: request.system_state,
            active_tasks: request.active_tasks,
            tool_stats: request.tool_stats,
            last_known_environment: request.last_known_environment,
            token_usage: request.token_usage,
            archived: request.archived.into_iter().map(|Subject(subject)| subject).collect(),
            extra: request.extra,
            ..Self::default()
        }
    }
}

/// A state in the form that clients read.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct StateResponse(State);

/// Read a session's state
///
/// The known facts of the current problem, tasks, tool statistics and token usage. Recording turns updates it.
#[utoipa::path(get, path = "/sessions/{id}/state", tag = "sessions",
    params(SessionPath, UserParams),
    responses((status = 200, description = "the state", body = ref("#/components/schemas/StateDocument"),
            content_type = "application/json"),
        (status = 404, description = "the user has no such session")))]
async fn get_state(
    Shared(app): Shared<App>,
    Named { user, id }: Named<SessionId>,
) -> Result<Json<StateResponse>, ApiError> {
    let state = app.engine().sessions.state(&user, &id).await?;
    Ok(Json(StateResponse(state)))
}

/// Replace a session's state
///
/// Absent fields become empty, fields that Strata does not know are kept, and `observed` stays as it is. The session
/// is created if it does not exist.
#[utoipa::path(put, path = "/sessions/{id}/state", tag = "sessions",
    request_body(content = ref("#/components/schemas/StateDocument"), content_type = "application/json"),
    params(SessionPath, UserParams),
    responses((status = 200, description = "the state as it is now", body = ref("#/components/schemas/StateDocument"),
            content_type = "application/json"),
        (status = 409, description = "others kept writing to the session; try again")))]
async fn put_state(
    Shared(app): Shared<App>,
    Named { user, id }: Named<SessionId>,
    JsonBody(request): JsonBody<StateRequest>,
) -> Result<Json<StateResponse>, ApiError> {
    let state = app.engine().sessions.put_state(&user, &id, request.into()).await?;
    Ok(Json(StateResponse(state)))
}

/// The document that both routes use. `MetadataValue` is any JSON without NUL characters.
pub(crate) fn schema() -> Value {
    let free = free_object();
    let text = json!({ "type": ["string", "null"], "pattern": r"^[^\x00]*$" });
    let list = json!({ "type": "array", "items": { "type": "string", "pattern": r"^[^\x00]*$" } });
    let diagnostic = json!({
        "type": "object",
        "description": "what is known of the problem at hand",
        "properties": {
            "device_ip": text, "device_name": text, "last_log_file": text,
            "downloaded_logs": list, "findings": list, "hypotheses": list, "ruled_out": list, "root_causes": list,
            "decisions": list, "constraints": list, "facts": list,
            "status": { "type": "string", "enum": ["idle", "investigating", "resolved"] },
        },
    });
    let observed =
        json!({ "description": "how far the turns have been read; not written", "readOnly": true });
    let mut schema = free_object();
    schema["description"] = json!("A session's structured state. Fields that Strata does not know are kept.");
    schema["properties"] = json!({
        "archived": { "type": "array", "items": diagnostic },
        "diagnostic": diagnostic,
        "system_state": free,
        "active_tasks": { "type": "array", "items": task_schema() },
        "tool_stats": tool_stats_schema(),
        "last_known_environment": free,
        "token_usage": token_usage_schema(),
        "observed": observed,
    });
    schema
}

/// An object with fields of any name.
pub(super) fn free_object() -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": r"^[^\x00]*$" },
        "additionalProperties": { "$ref": "#/components/schemas/MetadataValue" },
    })
}

/// An object with these fields and any others.
pub(super) fn open_object(properties: Value) -> Value {
    let mut schema = free_object();
    schema["properties"] = properties;
    schema
}

pub(super) fn task_schema() -> Value {
    let text = json!({ "type": "string", "pattern": r"^[^\x00]*$" });
    let moment = json!({ "type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX });
    let mut schema = open_object(json!({
        "id": text, "description": text, "status": text,
        "progress": { "type": "number" }, "created_at": moment, "updated_at": moment,
    }));
    schema["required"] = json!(["id", "description", "status", "created_at", "updated_at"]);
    schema
}

pub(super) fn tool_stats_schema() -> Value {
    let by_tool = json!({
        "type": "object", "propertyNames": { "pattern": r"^[^\x00]*$" }, "additionalProperties": count_schema(),
    });
    open_object(json!({ "total_calls": count_schema(), "by_tool": by_tool, "failures": count_schema() }))
}

pub(super) fn token_usage_schema() -> Value {
    let count = count_schema();
    open_object(json!({ "total_input": count, "total_output": count, "by_session": count }))
}

fn count_schema() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn a_state_fills_itself_and_can_be_edited() {
        let server = TestServer::new();
        let messages = json!([
            {"role": "user", "content": "look at 10.1.1.47"},
            {"role": "tool", "content": "ok", "name": "fetch_log"},
            {"role": "assistant", "content": "I downloaded tic_20260301.log."},
        ]);
        server.post("/turns", json!({"session_id": "s", "messages": messages})).await;
        let read = server.get("/sessions/s/state").await;
        insta::assert_snapshot!("filled", read.shown());

        let mut state = read.json();
        state["diagnostic"]["findings"] = json!(["the pump is loose"]);
        state["own"] = json!({"a": [1, null]});
        let observed = state["observed"].take();
        let written = server.write(Method::PUT, "/sessions/s/state", state.clone()).await;
        assert_eq!(written.status, 200, "{}", written.body);
        state["observed"] = observed;
        assert_eq!(written.json(), state, "what a client says of `observed` does not count");
        assert_eq!(server.get("/sessions/s/state").await.json(), state);
        assert_eq!(server.get("/sessions/s/state?user_id=eve").await.status, 404);
    }

    #[tokio::test]
    async fn a_state_may_come_before_the_first_turn() {
        let server = TestServer::new();
        let state = json!({"diagnostic": {"device_ip": "10.0.0.7"}});
        let written = server.write(Method::PUT, "/sessions/new/state?user_id=ada", state).await;
        assert_eq!(written.json()["diagnostic"]["device_ip"], "10.0.0.7", "{}", written.body);
        assert_eq!(server.get("/sessions/new?user_id=ada").await.json()["turn_count"], 0);
    }
}
