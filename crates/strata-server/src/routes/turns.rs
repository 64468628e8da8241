//! `POST /turns`: recording.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use strata_core::nul::MayHoldNul;
use strata_core::scope::RecallScope;
use strata_core::turn::{Metadata, NewMessage, TurnNotes};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, object, objects};
use crate::identity::{Caller, header};
use crate::moment::Moment;
use crate::route::Route;
use crate::wire::names::Role;
use crate::wire::session::{RecordResponse, Usage};

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The longest name of a speaker, in characters; the core has the same limit.
const MAX_NAME_CHARS: usize = 64;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_record_turns, record_turns)]
}

/// Messages to append to a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordRequest {
    /// The owner of the session. Defaults to the user `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The session, which is created if it does not exist. Defaults to the session `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    session_id: Option<String>,
    /// The same as `session_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    memory_id: Option<String>,
    /// The same as `session_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    run_id: Option<String>,
    /// The messages, in order.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1)]
    messages: Vec<MessageRequest>,
}

/// A message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageRequest {
    /// The role of the speaker.
    pub(crate) role: Role,
    /// The text of the message.
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) content: String,
    /// The speaker's name.
    #[schema(max_length = 64, pattern = r"^[^\x00]*$")]
    pub(crate) name: Option<String>,
    /// When it was said. Defaults to now.
    pub(crate) created_at: Option<Moment>,
    /// A JSON object of the client's own. It comes back as it was sent and changes nothing else.
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<Metadata>,
    /// The tokens that the model reports for a reply. If absent, Strata counts them.
    #[serde(default, deserialize_with = "object")]
    usage: Usage,
    /// Whether a tool's call failed. If absent, Strata looks for an error in the content.
    failed: Option<bool>,
    /// Whether the turn is embedded even if embedding costs money.
    high_value: Option<bool>,
}

impl MessageRequest {
    /// Makes the core's checks of a recorded message, for routes that record only some of the messages.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let name = self.name.as_deref().unwrap_or_default();
        let attached = self.metadata.as_ref().is_some_and(|metadata| metadata.holds_nul());
        if self.content.holds_nul() || name.holds_nul() || attached {
            return Err(ApiError::invalid("a message holds a NUL character; remove it"));
        }
        if name.chars().count() > MAX_NAME_CHARS {
            return Err(ApiError::invalid(format!(
                "`name` is longer than {MAX_NAME_CHARS} characters; use a shorter one"
            )));
        }
        Ok(())
    }

    pub(crate) fn into_message(self) -> NewMessage {
        let Self { role, content, name, created_at, metadata, usage, failed, high_value } = self;
        let created_at = created_at.map(Moment::at);
        let metadata = metadata.unwrap_or_default();
        let notes = TurnNotes {
            usage: usage.into(),
            failed,
            high_value: high_value.unwrap_or_default(),
            ..TurnNotes::default()
        };
        NewMessage { name, created_at, metadata, notes, ..NewMessage::new(role.into(), content) }
    }
}

/// Append messages to a session
///
/// When the call returns, the turns are durable, numbered without gaps, and found by the next search. With an
/// `Idempotency-Key`, a repeated call records nothing and returns the first call's answer.
#[utoipa::path(
    post, path = "/turns", tag = "turns", request_body = RecordRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "makes a repeated call harmless",
        min_length = 1, max_length = 256, pattern = r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$")),
    responses(
        (status = 201, description = "recorded", body = RecordResponse),
        (status = 200, description = "recorded before, under the same key", body = RecordResponse,
            headers(("Idempotency-Replayed" = String, description = "`true`"))),
        (status = 409, description = "the key was used for other content"),
    )
)]
async fn record_turns(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RecordRequest>,
) -> Result<Response, ApiError> {
    let users = [&request.user_id, &request.user];
    let user = caller.user(users)?;
    let session =
        caller.session([&request.session_id, &request.memory_id, &request.run_id])?.unwrap_or_default();
    let within = caller.recall_scope(caller.names_user(users), Some(&session), None);
    let key = header(&headers, IDEMPOTENCY_KEY)?;
    let mut messages: Vec<_> = request.messages.into_iter().map(MessageRequest::into_message).collect();
    for message in &mut messages {
        // Memories that are learned behind a wall stay behind it.
        let is_behind = within == Some(RecallScope::Session);
        (message.notes.owner.in_session, message.notes.owner.apart) = (is_behind, is_behind);
    }

    let recorded = app.engine().recording.record(&user, &session, messages, key.as_deref()).await?;
    let response = Json(RecordResponse::from(recorded.turns.as_slice()));
    if recorded.replayed {
        return Ok(([(REPLAYED, HeaderValue::from_static("true"))], response).into_response());
    }
    app.meters().turns_recorded(recorded.turns.len());
    Ok((StatusCode::CREATED, response).into_response())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Method;
    use serde_json::json;

    use crate::testing::{Answer, TestServer, request};

    #[tokio::test]
    async fn turns_are_recorded_and_read_back() {
        let server = TestServer::new();
        let body = json!({
            "user_id": "ada", "session_id": "tea",
            "messages": [
                {"role": "user", "content": "I like green tea", "created_at": "2026-02-01T08:00:00+01:00", "name": "Ada"},
                {"role": "assistant", "content": "Noted.", "created_at": 1770000000.5, "metadata": {"model": "m"}},
                {"role": "tool", "content": ""},
            ],
        });
        let answer = server.post("/turns", body).await;
        insta::assert_snapshot!("recorded", answer.shown());
        let answer = server.get("/sessions/tea/turns?user_id=ada").await;
        insta::assert_snapshot!("recorded_turns", answer.shown());
    }

    async fn post_raw(server: &TestServer, body: String) -> Answer {
        let request = request(Method::POST, "/turns").header("content-type", "application/json");
        server.send(request.body(Body::from(body)).unwrap()).await
    }

    #[tokio::test]
    async fn metadata_comes_back_byte_for_byte_and_steers_nothing() {
        let server = TestServer::new();
        let attached = concat!(
            r#"{"z":1.0,"big":123456789012345678901234567890,"a":{"y":1e2,"b":"\\u0000 \u4f60"},"follows":null,"#,
            r#""interrupted":true,"tool_calls":[{"id":"x"}],"usage":{"prompt_tokens":9},"tool":"t","success":false}"#
        );
        for role in ["user", "assistant", "tool"] {
            let message = format!(r#"{{"role":"{role}","content":"hi","metadata":{attached}}}"#);
            let plain =
                format!(r#"{{"session_id":"plain","messages":[{{"role":"{role}","content":"hi"}}]}}"#);
            for body in [format!(r#"{{"session_id":"s","messages":[{message}]}}"#), plain] {
                assert_eq!(post_raw(&server, body).await.status, 201);
            }
        }
        let answer = server.get("/sessions/s/turns").await;
        assert_eq!(answer.body.matches(attached).count(), 3, "{}", answer.body);
        for turn in answer.json()["turns"].as_array().unwrap() {
            let fields: Vec<&String> = turn.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["content", "created_at", "id", "metadata", "role", "seq", "token_count"]);
        }
        let state = async |session: &str| server.get(&format!("/sessions/{session}/state")).await.json();
        assert_eq!(state("s").await, state("plain").await);
    }

    #[tokio::test]
    async fn reports_of_a_client_have_fields_of_their_own() {
        let server = TestServer::new();
        let messages = json!([
            {"role": "tool", "name": "read", "content": "no", "failed": true},
            {"role": "assistant", "content": "hm", "high_value": true,
                "usage": {"input_tokens": 50.0, "output_tokens": 9, "total_tokens": 59}},
        ]);
        server.post("/turns", json!({"session_id": "s", "messages": messages})).await;
        let turns = server.get("/sessions/s/turns").await.json()["turns"].clone();
        assert_eq!((&turns[0]["failed"], turns[0].get("usage")), (&json!(true), None));
        assert_eq!(turns[1]["usage"], json!({"prompt_tokens": 50, "completion_tokens": 9}));
        assert_eq!((&turns[1]["high_value"], turns[1].get("failed")), (&json!(true), None));
        let state = server.get("/sessions/s/state").await.json();
        assert_eq!(
            (&state["tool_stats"]["failures"], &state["tool_stats"]["by_tool"]),
            (&json!(1), &json!({"read": 1}))
        );
        assert_eq!(state["token_usage"]["by_session"], 59);
    }

    #[tokio::test]
    async fn a_nul_and_a_number_beyond_a_float_are_refused() {
        let server = TestServer::new();
        for (metadata, reason) in [
            (r#"{"a":["\u0000"]}"#, "`metadata` holds a NUL character; remove it"),
            (r#"{"a":{"b\u0000":1}}"#, "`metadata` holds a NUL character; remove it"),
            (r#"{"a":1e400}"#, "number out of range"),
        ] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":"hi","metadata":{metadata}}}]}}"#);
            let answer = post_raw(&server, body).await;
            assert_eq!(answer.status, 400, "{metadata}");
            assert!(answer.body.contains(reason), "{}", answer.body);
        }
    }

    #[tokio::test]
    async fn a_repeated_call_with_the_same_key_records_nothing() {
        let server = TestServer::new();
        let send = async |content: &str, key: &str| {
            let body = json!({"messages": [{"role": "user", "content": content}]});
            let request = request(Method::POST, "/turns").header("content-type", "application/json");
            server
                .send(request.header("idempotency-key", key).body(Body::from(body.to_string())).unwrap())
                .await
        };
        let first = send("hello", "k1").await;
        assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, None));
        let again = send("hello", "k1").await;
        assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (200, Some("true")));
        assert_eq!(first.body, again.body);
        let other = send("other", "k1").await;
        assert_eq!(other.status, 409, "{}", other.body);
        let second = send("hello", "k2").await;
        assert_eq!(second.json()["turns"][0]["seq"], 1);
    }

    #[tokio::test]
    async fn the_user_and_session_come_from_headers_first_and_have_defaults() {
        let server = TestServer::new();
        let body = json!({"user_id": "body", "run_id": "r", "messages": [{"role": "user", "content": "x"}]});
        let by_header = request(Method::POST, "/turns")
            .header("content-type", "application/json")
            .header("x-strata-user", "kopf")
            .header("x-strata-session", "Sitzung ä");
        let answer = server.send(by_header.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert_eq!(server.get("/sessions/Sitzung%20%C3%A4?user_id=kopf").await.status, 200);
        assert_eq!(server.get("/sessions?user_id=body").await.json(), json!({"sessions": []}));

        server.post("/turns", body).await;
        assert_eq!(server.get("/sessions/r?user_id=body").await.status, 200);
        server.post("/turns", json!({"messages": [{"role": "user", "content": "x"}]})).await;
        assert_eq!(server.get("/sessions/default").await.json()["user_id"], "default");
    }
}
