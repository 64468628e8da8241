//! `POST /sessions/{id}/prompt`: what the model is to be shown for a question.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use strata_core::{Error, SessionId};
use strata_engine::prompt::{Cut, Layer, Prompt, PromptBody, PromptFormat};
use strata_engine::{PromptRequest, Prompted};
use utoipa::ToSchema;

use super::params::SessionPath;
use super::search::{MAX_TOKENS, count};
use super::vocabulary::Role;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{JsonBody, PathName};
use crate::identity::Caller;
use crate::router::Route;
use crate::telemetry::set_request_id;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/sessions/{id}/prompt", post(make_prompt))]
}

/// A question for which a prompt is wanted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromptBodyRequest {
    /// The current request.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    question: String,
    /// In which form; `flat` where nobody says.
    format: Option<Format>,
    /// Whose session; `default` where nobody says.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user_id: Option<String>,
    /// The same as `user_id`, which goes first.
    #[schema(min_length = 1, max_length = 256, pattern = r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$")]
    user: Option<String>,
    /// The most tokens of the prompt, instead of the setting `prompt.max_tokens`. The question is never cut.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000_000)]
    max_tokens: Option<Number>,
}

/// In which form a prompt is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub(crate) enum Format {
    /// One text, the request first.
    Flat,
    /// A list of messages, memory beside the last of the user's.
    Chat,
}

impl TryFrom<String> for Format {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        Ok(match name.parse::<PromptFormat>()? {
            PromptFormat::Flat => Self::Flat,
            PromptFormat::Chat => Self::Chat,
        })
    }
}

impl From<Format> for PromptFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Flat => Self::Flat,
            Format::Chat => Self::Chat,
        }
    }
}

/// A prompt, and how it came to its size.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptResponse {
    /// The text, where it is flat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    prompt: Option<String>,
    /// The messages, where it is a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    messages: Option<Vec<PromptMessage>>,
    /// The tokens of all of it.
    tokens: u32,
    /// The layers that are in it, in their order.
    layers: Vec<LayerResponse>,
    /// What gave way to the budget, in the order in which it did.
    cut: Vec<CutResponse>,
}

/// A message for a chat model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptMessage {
    /// Who says it.
    role: Role,
    /// What it says.
    content: String,
}

/// One layer's share of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LayerResponse {
    /// The layer, by the name of its tag.
    name: String,
    /// Its tokens.
    tokens: u32,
}

/// Something that gave way to the budget.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CutResponse {
    /// The layer, by the name of its tag.
    layer: String,
    /// How many of the things that `what` names went; 0 where they are not counted.
    count: usize,
    /// What of it went, and where to.
    what: String,
}

impl From<Prompt> for PromptResponse {
    fn from(made: Prompt) -> Self {
        let Prompt { body, tokens, layers, cut } = made;
        let (prompt, messages) = match body {
            PromptBody::Text(text) => (Some(text), None),
            PromptBody::Messages(messages) => (None, Some(messages)),
        };
        let messages = messages.map(|messages| {
            let messages = messages.into_iter();
            messages
                .map(|message| PromptMessage { role: message.role.into(), content: message.content })
                .collect()
        });
        let layers = layers.into_iter().map(|Layer { name, tokens }| LayerResponse { name, tokens });
        let cut = cut.into_iter().map(|Cut { layer, count, what }| CutResponse { layer, count, what });
        Self { prompt, messages, tokens, layers: layers.collect(), cut: cut.collect() }
    }
}

/// Make a prompt
///
/// What the model is to be shown for a question: the request, what is known, a summary of what was said earlier, the recent
/// turns, and for a chat what recall finds. Nothing is recorded by it, and the session need not exist.
#[utoipa::path(post, path = "/sessions/{id}/prompt", tag = "sessions", request_body = PromptBodyRequest,
    params(SessionPath),
    responses((status = 200, description = "the prompt, or the messages of a chat", body = PromptResponse)))]
async fn make_prompt(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(request): JsonBody<PromptBodyRequest>,
) -> Result<Response, ApiError> {
    let user = caller.user([&request.user_id, &request.user])?;
    let request = PromptRequest {
        format: request.format.map(PromptFormat::from).unwrap_or_default(),
        max_tokens: count("max_tokens", &request.max_tokens, MAX_TOKENS)?,
        ..PromptRequest::new(SessionId::new(id)?, request.question)
    };
    let Prompted { prompt, request_id } = app.engine().prompting.prompt(&user, &request).await?;
    let mut response = Json(PromptResponse::from(prompt)).into_response();
    if let Some(request_id) = request_id {
        set_request_id(&mut response, request_id.0);
    }
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
    async fn what_the_budget_cuts_is_said() {
        let server = diagnosed().await;
        let body = json!({"question": "why?", "user_id": "ada", "max_tokens": 1});
        let answer = server.post("/sessions/s/prompt", body).await.json();
        assert_eq!(answer["prompt"], "why?");
        assert!(!answer["cut"].as_array().unwrap().is_empty(), "{answer}");
    }
}
