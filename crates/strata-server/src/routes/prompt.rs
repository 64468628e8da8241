//! `POST /sessions/{id}/prompt`: makes a prompt for a question.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Number;
use strata_core::SessionId;
use strata_core::key::KeyScope;
use strata_engine::prompt::PromptFormat;
use strata_engine::{PromptRequest, Prompted};
use utoipa::ToSchema;

use super::params::SessionPath;
use super::search::MAX_TOKENS;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::numbers::count;
use crate::extract::{JsonBody, PathName};
use crate::identity::Caller;
use crate::route::Route;
use crate::telemetry::{set_request_id, tell_unreadable};
use crate::wire::PromptResponse;
use crate::wire::names::{Format, RecallScope};

pub(crate) fn routes() -> Vec<Route> {
    // The body is a question. Nothing is written.
    vec![Route::new(__path_make_prompt, make_prompt).needs(&[KeyScope::Read])]
}

/// A question for which a prompt is wanted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptBodyRequest {
    /// The current request.
    #[schema(pattern = r"^[^\x00]*[^\s\x00\x85][^\x00]*$")]
    question: String,
    /// The form of the prompt. Defaults to `flat`.
    format: Option<Format>,
    /// The owner of the session. Defaults to the user `default`.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which takes precedence.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The most tokens of the prompt without the question, instead of the setting `prompt.max_tokens`. The question is
    /// never cut.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000_000)]
    max_tokens: Option<Number>,
    /// For a chat: how far recall looks, instead of the setting `recall.scope`. Without a user, or with a key whose recall
    /// scope is `session`, recall always stays in the session.
    memory_scope: Option<RecallScope>,
}

/// Make a prompt
///
/// The prompt contains the question, the known state, a summary of the earlier turns, the recent turns, and for a
/// chat the items that recall finds. Nothing is recorded, and the session need not exist.
#[utoipa::path(post, path = "/sessions/{id}/prompt", tag = "sessions", request_body = PromptBodyRequest,
    params(SessionPath),
    responses((status = 200, description = "the prompt, or the messages of a chat", body = PromptResponse)))]
async fn make_prompt(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(request): JsonBody<PromptBodyRequest>,
) -> Result<Response, ApiError> {
    let users = [&request.user_id, &request.user];
    let user = caller.user(users)?;
    let session = SessionId::new(id)?;
    let asked = request.memory_scope.map(Into::into);
    let request = PromptRequest {
        scope: caller.recall_scope(caller.names_user(users), Some(&session), asked),
        deadline: Some(app.settings().proxy.memory_deadline),
        format: request.format.map(PromptFormat::from).unwrap_or_default(),
        max_tokens: count("max_tokens", &request.max_tokens, MAX_TOKENS)?,
        ..PromptRequest::new(session, request.question)
    };
    let Prompted { prompt, request_id } = app.engine().prompting.prompt(&user, &request).await?;
    let mut response = Json(PromptResponse::from(&prompt)).into_response();
    if let Some(request_id) = request_id {
        set_request_id(&mut response, request_id.0);
    }
    tell_unreadable(app.engine().store().unreadable(&user), &mut response);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    async fn diagnosed() -> TestServer {
        let server = TestServer::new();
        let messages = json!([
            {"role": "user", "content": "10.1.1.47 的溫度波動，請看一下"},
            {"role": "assistant", "content": "I downloaded tic_20260301.log.\n\nFindings:\n- TIC-101 swings by 4 °C"},
        ]);
        server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": messages})).await;
        server
    }

    #[tokio::test]
    async fn a_flat_prompt_holds_the_layers() {
        let server = diagnosed().await;
        let body = json!({"question": "why?", "user_id": "ada"});
        insta::assert_snapshot!("flat", server.post("/sessions/s/prompt", body).await.shown());
        let foreign = server.post("/sessions/s/prompt", json!({"question": "why?"})).await;
        assert_eq!((foreign.status.as_u16(), foreign.json()["prompt"].as_str()), (200, Some("why?")));
    }

    #[tokio::test]
    async fn a_chat_is_messages_and_names_its_recall() {
        let server = diagnosed().await;
        server
            .post("/memories", json!({"user_id": "ada", "text": "the temperature alarm is at 80 °C"}))
            .await;
        let body = json!({"question": "where is the temperature alarm?", "format": "chat", "user_id": "ada"});
        let answer = server.post("/sessions/s/prompt", body).await;
        insta::assert_snapshot!("chat", answer.shown());
        let request = answer.header("x-strata-request-id").unwrap();
        let row = server.get(&format!("/requests/{request}?user_id=ada")).await;
        assert_eq!(row.status, 200, "{}", row.body);
    }

    #[tokio::test]
    async fn cuts_of_the_budget_are_listed() {
        let server = diagnosed().await;
        let body = json!({"question": "why?", "user_id": "ada", "max_tokens": 1});
        let answer = server.post("/sessions/s/prompt", body).await.json();
        assert_eq!(answer["prompt"], "why?");
        assert!(!answer["cut"].as_array().unwrap().is_empty(), "{answer}");
    }
}
