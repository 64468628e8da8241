//! The paths under which a chat has memory, each in the API of its provider. The OpenAPI document adds the answers that all of
//! them share (`routes/openapi.rs`).

use axum::extract::{Request, State};
use axum::response::Response;

use super::chat::chat;
use super::switch::ChatHeaders;
use crate::app::App;
use crate::compat::anthropic::Messages;
use crate::compat::ollama;
use crate::compat::openai::completions::Completions;
use crate::compat::openai::responses::Responses;
use crate::error::ApiError;
use crate::identity::Caller;

/// Chat with memory
///
/// OpenAI's chat completions, passed on to the upstream. Strata inserts a block of memories in front of the user's
/// last message, and records the conversation. Besides OpenAI's own fields the body may have `memory_id` (the
/// session), `memory_scope` (`session` or `user`), `memory_top_k`, `memory_recency_weight`,
/// `memory_score_threshold` and `memory_rerank`, which are not passed on. A session without a user is a wall: only
/// memories that all users share are recalled from outside it. Every other path under `/v1` is passed on unchanged,
/// and so is `GET` of this path.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "proxy",
    params(ChatHeaders),
    request_body(content = ref("#/components/schemas/ChatRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or with `stream` server-sent events",
            content((Object = "application/json"), (Value = "text/event-stream")))))]
pub(crate) async fn complete_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &Completions, caller, request).await
}

/// Create a response with memory
///
/// OpenAI's Responses, with memory as in chat completions: a block goes in front of the last message of `input`. If
/// the provider keeps the conversation (`previous_response_id`, `conversation`), the new items are recorded after
/// those of the session. Reading, deleting and cancelling a response are passed on.
#[utoipa::path(post, path = "/v1/responses", tag = "proxy",
    params(ChatHeaders),
    request_body(content = ref("#/components/schemas/ResponsesRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or with `stream` server-sent events",
            content((Object = "application/json"), (Value = "text/event-stream")))))]
pub(crate) async fn create_response(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &Responses, caller, request).await
}

/// Create a message with memory
///
/// Anthropic's Messages, with memory as in chat completions. `x-api-key` and `anthropic-version` are passed on, and a
/// configured key of the upstream is sent as `x-api-key`. Counting tokens and batches are passed on.
#[utoipa::path(post, path = "/v1/messages", tag = "proxy",
    params(ChatHeaders),
    request_body(content = ref("#/components/schemas/MessagesRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or with `stream` server-sent events",
            content((Object = "application/json"), (Value = "text/event-stream")))))]
pub(crate) async fn create_message(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &Messages, caller, request).await
}

/// Chat with memory, as Ollama does
///
/// Ollama's own chat, with memory as in chat completions. Every other path under `/api` is passed on unchanged.
#[utoipa::path(post, path = "/api/chat", tag = "proxy",
    params(ChatHeaders),
    request_body(content = ref("#/components/schemas/OllamaChatRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or one on each line",
            content((Object = "application/json"), (Value = "application/x-ndjson")))))]
pub(crate) async fn ollama_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &ollama::Chat, caller, request).await
}

/// Generate with memory, as Ollama does
///
/// Ollama's generation: a block goes in front of `prompt`. A raw prompt and one with a `suffix` are passed on
/// unchanged and not recorded, because the model continues them.
#[utoipa::path(post, path = "/api/generate", tag = "proxy",
    params(ChatHeaders),
    request_body(content = ref("#/components/schemas/OllamaGenerateRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or one on each line",
            content((Object = "application/json"), (Value = "application/x-ndjson")))))]
pub(crate) async fn ollama_generate(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &ollama::Generate, caller, request).await
}

/// Chat with memory, by deployment
///
/// Azure's path of a chat completion. A configured key of the upstream is sent as `api-key`. Every other path under
/// `/openai` is passed on unchanged.
#[utoipa::path(post, path = "/openai/deployments/{deployment}/chat/completions", tag = "proxy",
    params(("deployment" = String, Path, description = "the deployment"), ChatHeaders),
    request_body(content = ref("#/components/schemas/ChatRequest"), content_type = "application/json"),
    responses((status = 200, description = "the upstream's answer: a document, or with `stream` server-sent events",
            content((Object = "application/json"), (Value = "text/event-stream")))))]
pub(crate) async fn azure_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    chat(&app, &Completions, caller, request).await
}
