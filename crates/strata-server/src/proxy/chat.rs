//! `POST /v1/chat/completions`: recall, pass the request on, pass the reply back, record.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use strata_core::metric::RequestMetric;
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_core::{RequestId, SessionId, UserId};
use strata_engine::align::key;
use strata_engine::index::TextFingerprint;
use strata_engine::{ChatMemory, ChatQuestion, ChatSnapshot, Ending};
use tokio::task::JoinHandle;
use utoipa::{IntoParams, ToSchema};

use super::compaction::compact;
use super::forward::{IdleTimeoutBody, unread};
use super::recorder::{ExchangeRecorder, ExchangeStart};
use super::relay::Relay;
use crate::app::App;
use crate::compat::openai::reply::failure;
use crate::compat::openai::request::ChatBody;
use crate::error::ApiError;
use crate::extract::read_body_in_time;
use crate::identity::{Caller, header};
use crate::telemetry::set_request_id;
use crate::upstream::{AnswerUse, Upstream, answer_headers, hash};

const MEMORY_HEADER: &str = "X-Strata-Memory";

/// The share of the prompt that is the same as before, see `stable_share` in [`upstream`](crate::upstream).
const STABLE_PREFIX: HeaderName = HeaderName::from_static("x-strata-stable-prefix");

/// The share of the remaining time that recall waits for models. The rest is for choosing and loading the items: a model
/// that is late costs quality, and not the memory.
const MODELS_SHARE: f64 = 0.8;

/// The headers that only this route reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "the document's, not the code's: a header is read by hand")]
pub(crate) struct ChatHeaders {
    /// `off` leaves memory out of this call.
    #[param(rename = "X-Strata-Memory", inline, nullable = false)]
    memory: Option<Switch>,
}

/// Whether memory takes part.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "the document's, not the code's: a header is read by hand")]
pub(crate) enum Switch {
    /// The default.
    On,
    /// Nothing is recalled or recorded.
    Off,
}

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
    responses(
        (status = 200, description = "the upstream's answer: a document, or with `stream` server-sent events",
            content((Object = "application/json"), (Value = "text/event-stream"))),
        (status = "default", description = "any other answer of the upstream, unchanged"),
        (status = 502, description = "the upstream cannot be reached"),
        (status = 504, description = "the upstream did not answer in time"),
    ))]
pub(crate) async fn complete_chat(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let is_on = memory_is_on(&parts.headers)?;
    let bytes = {
        let settings = app.settings();
        let limit = (settings.proxy.max_body_bytes, "proxy.max_body_bytes");
        read_body_in_time(Request::from_parts(parts.clone(), body), limit, settings.body_timeout).await?
    };
    let body = ChatBody::read(&bytes)?;
    let names = &body.names;
    let users = [&names.user_id, &names.user];
    let user = caller.user(users)?;
    let session = caller.session([&names.memory_id, &names.session_id, &names.run_id])?.unwrap_or_default();
    let upstream = app.proxy().upstream()?;
    if !is_on {
        let sent = Body::from(body.forwarded(&[], |_| false).text);
        let headers = upstream.headers(&parts, AnswerUse::Pass);
        let answer = upstream.send(parts.method, &parts.uri, headers, sent).await?;
        return Ok(unread(answer, upstream.timeout()));
    }
    let scope = caller.recall_scope(caller.names_user(users), Some(&session), body.options.scope);
    Exchange { app: &app, upstream, user, session, scope, parts, body }.run().await
}

fn memory_is_on(headers: &HeaderMap) -> Result<bool, ApiError> {
    match header(headers, MEMORY_HEADER)?.map(|value| value.trim().to_ascii_lowercase()).as_deref() {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(_) => {
            Err(ApiError::invalid(format!("the header `{MEMORY_HEADER}` is neither `on` nor `off`; use one")))
        }
    }
}

/// A chat with memory, while it is being served.
struct Exchange<'a> {
    app: &'a App,
    upstream: &'a Upstream,
    user: UserId,
    session: SessionId,
    /// How far recall may look from the session; `None` leaves it to the settings.
    scope: Option<RecallScope>,
    parts: Parts,
    body: ChatBody<'a>,
}

/// The state of the question to memory.
enum Remembering {
    /// There is nothing to recall, or the block of the previous request is used again.
    Known(Option<String>, Box<ChatQuestion>),
    /// The session and the index have been read.
    Prepared {
        question: Box<ChatQuestion>,
        /// A hash of the messages up to the question.
        upto: u64,
        snapshot: Box<ChatSnapshot>,
    },
    /// Memory failed.
    Failed(Box<ChatQuestion>, String),
}

impl Exchange<'_> {
    async fn run(self) -> Result<Response, ApiError> {
        let Self { app, upstream, ref user, ref session, ref parts, ref body, .. } = self;
        let id = RequestId(app.engine().next_id());
        let deadline = app.settings().proxy.memory_deadline;
        let heard = self.heard();
        let began = Instant::now();
        // Recall must not find the question itself. So the question is recorded only after the snapshot is read, and
        // from then on concurrently with recall.
        let remembering = self.remember(&heard, deadline).await;
        let start = ExchangeStart { user: user.clone(), session: session.clone(), messages: heard };
        let mut recorder = ExchangeRecorder::start(app, start);
        let (block, row) = self.remembered(id, remembering, began, deadline).await;
        recorder.recalled(row);

        let compacted = compact(app, user, session, body);
        let mut blocks = Vec::new();
        blocks.extend(compacted.block.clone());
        blocks.extend(body.question().zip(block));
        let sent = body.forwarded(&blocks, |place| compacted.is_gone(body, place));
        let stable = app.proxy().histories.with(user, session, |known| known.stable_share(sent.prompt()));
        if let Some(share) = stable {
            app.meters().prompt_stayed(share);
        }

        let (method, headers) = (parts.method.clone(), upstream.headers(parts, AnswerUse::Read));
        let sending = upstream.send(method, &parts.uri, headers, Body::from(sent.text));
        // The answer is passed on only after the question is durable.
        let (answer, ()) = tokio::join!(sending, recorder.opened(deadline));
        let mut response = match answer {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(is_event_stream);
                let body = IdleTimeoutBody::new(body, upstream.timeout());
                let relay = Relay::new(body, head.status, is_stream, recorder, deadline);
                let mut response = Response::new(Body::new(relay));
                *response.status_mut() = head.status;
                *response.headers_mut() = answer_headers(&head.headers);
                response
            }
            Err(error) => {
                let (status, detail) = error.detail();
                let ending = Ending::Failed(failure(Some(status.as_u16()), b"", &detail.message));
                // The client gets the answer even if it could not be recorded.
                let _ = tokio::time::timeout(deadline, recorder.end(ending)).await;
                error.into_response()
            }
        };
        set_request_id(&mut response, id.0);
        // For a first prompt there is nothing to compare with.
        let share = format!("{:.3}", stable.unwrap_or(0.0));
        if let Ok(share) = HeaderValue::from_str(&share) {
            response.headers_mut().insert(STABLE_PREFIX, share);
        }
        Ok(response)
    }

    /// The client's messages in the form that is recorded. Memories that are learned behind a wall stay behind it.
    fn heard(&self) -> Vec<NewMessage> {
        let mut heard: Vec<_> = self.body.messages.iter().filter_map(|message| message.heard()).collect();
        for message in &mut heard {
            let is_behind = self.scope == Some(RecallScope::Session);
            (message.notes.owner.in_session, message.notes.owner.apart) = (is_behind, is_behind);
        }
        heard
    }

    /// Prepares recall: reads the session and the index.
    async fn remember(&self, heard: &[NewMessage], most: Duration) -> Remembering {
        let options = &self.body.options;
        let place = self.body.question();
        let said = place.map(|place| self.body.messages[place].said.as_str()).unwrap_or_default();
        let question = Box::new(ChatQuestion {
            session: self.session.clone(),
            question: strata_engine::prompt::strip_injected(said).into_owned(),
            shown: heard.iter().map(|message| key(message.role, &message.content, &message.notes)).collect(),
            texts: heard.iter().map(|message| TextFingerprint::new(&message.content)).collect(),
            top_k: options.top_k,
            recency_weight: options.recency_weight,
            score_threshold: options.score_threshold,
            rerank: options.rerank,
            scope: self.scope,
            deadline: None,
        });
        let upto = self.conversation_upto(place);
        // Within one turn of the user, for instance while tools are called, the block stays the same byte for byte.
        let goes_on = place.is_some_and(|place| place + 1 < self.body.messages.len());
        let sessions = &self.app.proxy().histories;
        let injected = sessions.with(&self.user, &self.session, |known| known.injected.clone());
        match injected.filter(|(of, _)| goes_on && *of == upto) {
            _ if question.question.trim().is_empty() => return Remembering::Known(None, question),
            Some((_, block)) => return Remembering::Known(block, question),
            None => {}
        }
        // On a task of its own, like ranking: loading a large index takes longer than a chat should wait, and does
        // not yield.
        let (engine, user, session) = (self.app.engine().clone(), self.user.clone(), self.session.clone());
        let reading = tokio::spawn(async move { engine.prompting.chat_snapshot(&user, &session).await });
        match self.in_time(most, reading).await {
            Ok(snapshot) => Remembering::Prepared { question, upto, snapshot: Box::new(snapshot) },
            Err(problem) => Remembering::Failed(question, problem),
        }
    }

    /// The block in front of the question, and the row of the request.
    async fn remembered(
        &self,
        id: RequestId,
        remembering: Remembering,
        began: Instant,
        deadline: Duration,
    ) -> (Option<String>, RequestMetric) {
        let engine = self.app.engine();
        let (question, problem) = match remembering {
            Remembering::Known(block, question) => {
                return (block, engine.prompting.chat_without_memory(id, &question, began.elapsed(), false));
            }
            Remembering::Prepared { question, upto, snapshot } => {
                let left = deadline.saturating_sub(began.elapsed());
                let asked =
                    ChatQuestion { deadline: Some(left.mul_f64(MODELS_SHARE)), ..(*question).clone() };
                let (user, engine) = (self.user.clone(), engine.clone());
                let recalling =
                    tokio::spawn(
                        async move { engine.prompting.chat_memory(&user, id, &asked, *snapshot).await },
                    );
                match self.in_time(left, recalling).await {
                    Ok(ChatMemory { block, row }) => {
                        let injected = Some((upto, block.clone()));
                        let sessions = &self.app.proxy().histories;
                        sessions.with(&self.user, &self.session, |known| known.injected = injected);
                        return (block, row);
                    }
                    Err(problem) => (question, problem),
                }
            }
            Remembering::Failed(question, problem) => (question, problem),
        };
        tracing::warn!(problem, "a chat goes on without memory");
        (None, engine.prompting.chat_without_memory(id, &question, began.elapsed(), true))
    }

    /// The result of a task, or the reason why it has none.
    async fn in_time<T>(
        &self,
        most: Duration,
        task: JoinHandle<strata_core::Result<T>>,
    ) -> Result<T, String> {
        match tokio::time::timeout(most, task).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => {
                let deadline = self.app.settings().proxy.memory_deadline;
                Err(format!("it took longer than {} ms", deadline.as_millis()))
            }
        }
    }

    /// A hash of the messages up to and including one.
    fn conversation_upto(&self, place: Option<usize>) -> u64 {
        let messages = self.body.messages.iter().take(place.map_or(0, |place| place + 1));
        // A block is used again only for a question with the same scope.
        let mut all = vec![u8::from(self.scope == Some(RecallScope::Session))];
        for message in messages.filter(|message| message.role != Some(strata_core::Role::System)) {
            all.extend_from_slice(&hash(message.said.as_bytes()).to_le_bytes());
        }
        hash(&all)
    }
}

fn is_event_stream(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}
