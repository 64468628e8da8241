//! The Model Context Protocol: memory as tools and resources for agents, over streamable HTTP and over stdio.
//!
//! Both transports use one service. Over HTTP it keeps no state between two requests, so nothing has to expire or to
//! be shared between servers. [`Caller`] decides for which user a call asks, as for every other route. A failing tool
//! reports the failure in its result, with a next step, because a protocol error never reaches the model. Start
//! reading at [`tools`], then at one handler in [`calls`].

mod answers;
mod arguments;
mod calls;
mod resources;
#[cfg(test)]
mod tests;
mod tools;

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{QuitReason, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use serde::de::IgnoredAny;
use serde_json::json;
use strata_core::{SessionId, UserId};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Caller;
use crate::route::Route;

/// The instructions that a client gives its model about this server.
const INSTRUCTIONS: &str = "\
Strata is the user's long-term memory: what they said in earlier conversations and what was learned from it. \
Before you answer anything that may depend on the user, their preferences, projects, plans or earlier conversations, \
call `search_memories` with the question in plain words. When the user states something that will matter later \
(a fact about them, a preference, a decision, something to be done), call `add_memory` with one complete sentence. \
When something remembered is no longer true, call `update_memory` instead of adding a contradiction. \
Do not store secrets, and do not store what you have only guessed.";

/// Memory as an MCP server.
#[derive(Clone)]
pub(crate) struct MemoryService {
    app: App,
    /// The caller: over HTTP the caller of the request, over stdio the user who started the process.
    caller: Caller,
}

impl MemoryService {
    pub(crate) fn new(app: App, caller: Caller) -> Self {
        Self { app, caller }
    }
}

impl ServerHandler for MemoryService {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let server = Implementation::new("strata", env!("CARGO_PKG_VERSION")).with_title("Strata memory");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(calls::call(&self.app, &self.caller, &request.name, arguments).await?.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        resources::list(&self.app, &self.caller, cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&self.app, &self.caller, &request.uri).await?.into())
    }
}

/// `/mcp` is not in the OpenAPI document: the protocol describes itself (`tools/list`). Its tools need different
/// scopes, so each checks its own.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/mcp", post(answer)).needs(&[])]
}

/// Answers one message with JSON. No state is kept between two messages.
async fn answer(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let max_body_bytes = app.settings().max_body_bytes;
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // `Host` and `Origin` are checked before any route.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(max_body_bytes);
    let memory = MemoryService::new(app, caller);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(memory.clone()), sessions, config);
    let (parts, body) = request.into_parts();
    let is_json = is_json(&parts.headers);
    let body = match to_bytes(body, max_body_bytes).await {
        Ok(body) => body,
        Err(_) => return too_large(max_body_bytes).into_response(),
    };
    if is_json && let Err(error) = serde_json::from_slice::<IgnoredAny>(&body) {
        return refused(ErrorCode::PARSE_ERROR, format!("this is no JSON: {error}"));
    }
    let response = service.handle(Request::from_parts(parts, Body::from(body))).await;
    // The transport's answer to JSON that is not a message of the protocol.
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return refused(ErrorCode::INVALID_REQUEST, "this is no message of JSON-RPC".to_owned());
    }
    as_json(response.map(Body::new)).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|value| value.starts_with("application/json"))
}

fn too_large(max_body_bytes: usize) -> ApiError {
    let message = format!("the body is larger than {max_body_bytes} bytes or broke off; send less at once");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// A message that cannot be parsed is answered with an error of the protocol, without an id.
fn refused(code: ErrorCode, message: String) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code.0, "message": message } });
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
}

/// The transport reports failures (a wrong `Accept`, no JSON-RPC) as plain text; here every failure becomes JSON.
async fn as_json(response: Response) -> Response {
    let status = response.status();
    if is_json(response.headers()) || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        status if status.is_server_error() => "internal",
        _ => "invalid",
    };
    ApiError::new(status, code, String::from_utf8_lossy(&body)).into_response()
}

/// A message of a client, and the same bytes as the arguments of each tool.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz(data: &[u8]) {
    if let Ok(message) = serde_json::from_slice::<rmcp::model::ClientJsonRpcMessage>(data) {
        assert!(serde_json::to_vec(&message).is_ok(), "a message that is read can be written");
    }
    if let Ok(given) = serde_json::from_slice(data) {
        calls::fuzz(&given);
    }
}

/// Serves MCP over a pair of streams until the input ends or `stop` completes; running calls are finished first.
///
/// `user` and `session` are those of the process. The names in a call count only if these are not given.
pub async fn serve_mcp<R, W>(
    app: App,
    user: Option<UserId>,
    session: Option<SessionId>,
    (input, output): (R, W),
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let service = MemoryService::new(app, Caller::of_process(user, session));
    let starting = service.serve((input, output));
    tokio::pin!(stop);
    let running = tokio::select! {
        started = starting => match started {
            Ok(running) => running,
            // A client that disconnects before its first message is not a failure.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        },
        () = &mut stop => return Ok(()),
    };
    let cancel = running.cancellation_token();
    let ended = running.waiting();
    tokio::pin!(ended);
    let reason = tokio::select! {
        reason = &mut ended => reason,
        () = &mut stop => {
            cancel.cancel();
            ended.await
        }
    };
    match reason.map_err(io::Error::other)? {
        QuitReason::JoinError(error) => Err(io::Error::other(error)),
        _ => Ok(()),
    }
}
