//! `POST /turns`: recording.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use strata_core::turn::Metadata;
use strata_core::turn::NewMessage;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, objects};
use crate::identity::{Caller, header};
use crate::moment::Moment;
use crate::route::Route;
use crate::wire::names::Role;
use crate::wire::session::RecordResponse;

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The longest speaker's name, in characters, as the core has it.
const MAX_NAME_CHARS: usize = 64;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_record_turns, record_turns)]
}

/// Messages to append to a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordRequest {
    /// Whose session it is; `default` where nobody says.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The session, which is created if it does not exist; `default` where nobody says.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    session_id: Option<String>,
    /// The same as `session_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    memory_id: Option<String>,
    /// The same as `session_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    run_id: Option<String>,
    /// The messages, in order.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1)]
    messages: Vec<MessageRequest>,
}

/// A message as it was said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageRequest {
    /// Who said it.
    pub(crate) role: Role,
    /// What was said.
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) content: String,
    /// The speaker's name.
    #[schema(max_length = 64, pattern = r"^[^\x00]*$")]
    pub(crate) name: Option<String>,
    /// When it was said; now where nobody says.
    pub(crate) created_at: Option<Moment>,
    /// Anything the client wants back with it.
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<Metadata>,
}

impl MessageRequest {
    /// Checks what the core would check when the message is recorded, for routes that record only some of them.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let name = self.name.as_deref().unwrap_or_default();
        if self.content.contains('\0') || name.contains('\0') || self.metadata.as_ref().is_some_and(holds_nul)
        {
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
        let Self { role, content, name, created_at, metadata } = self;
        let created_at = created_at.map(Moment::at);
        let metadata = metadata.unwrap_or_default();
        NewMessage { name, created_at, metadata, ..NewMessage::new(role.into(), content) }
    }
}

/// Whether a NUL character, which not every store can keep, is anywhere in what a client attaches.
pub(crate) fn holds_nul(metadata: &Metadata) -> bool {
    Value::Object(metadata.clone()).to_string().contains("\\u0000")
}

/// Append messages to a session
///
/// When it answers, the turns are durable, numbered without gaps, and found by the next search. With an
/// `Idempotency-Key`, a repeated call records nothing and answers as the first did.
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
    let user = caller.user([&request.user_id, &request.user])?;
    let session =
        caller.session([&request.session_id, &request.memory_id, &request.run_id])?.unwrap_or_default();
    let key = header(&headers, IDEMPOTENCY_KEY)?;
    let messages = request.messages.into_iter().map(MessageRequest::into_message).collect();

    let recorded = app.engine().record(&user, &session, messages, key.as_deref()).await?;
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

    use crate::testing::{TestServer, request};

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
