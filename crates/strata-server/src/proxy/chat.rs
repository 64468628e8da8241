//! The life of a chat, the same in all APIs: recall, pass the request on, pass the reply back, record.

use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_core::{RequestId, SessionId, UserId};
use strata_engine::Ending;

use super::compaction::compact;
use super::forward::{IdleTimeoutBody, unread};
use super::housekeeping::is_housekeeping;
use super::names::Asker;
use super::recalled::{Recalled, WhyNothing, tell_stable};
use super::recorder::{ExchangeRecorder, ExchangeStart};
use super::relay::Relay;
use super::switch::MemoryUse;
use crate::app::App;
use crate::compat::chat::reply::{Framing, failure};
use crate::compat::chat::{ChatApi, ChatBody};
use crate::error::ApiError;
use crate::extract::read_body_in_time;
use crate::identity::Caller;
use crate::telemetry::set_request_id;
use crate::upstream::{AnswerUse, Asked, Upstream, answer_headers};

/// Serves a chat in one of the APIs.
pub(crate) async fn chat(
    app: &App,
    api: &'static dyn ChatApi,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let uses = MemoryUse::of(&parts.headers, &caller)?;
    let settings = app.settings();
    let bytes = {
        let limit = (settings.proxy.max_body_bytes, "proxy.max_body_bytes");
        read_body_in_time(Request::from_parts(parts.clone(), body), limit, settings.body_timeout).await?
    };
    let body = ChatBody::read(api, &bytes)?;
    let asker = Asker::read(&settings.proxy.names, &caller, &parts.headers, &body)?;
    let upstream = upstream_of(app, parts.uri.path(), &body)?;
    let why_bare = match uses.is_off() {
        true => Some(WhyNothing::Off),
        // Nothing more can be kept until the store works again. A chat whose reply would be lost goes without memory, and says so.
        false if uses.records && app.proxy().spill.is_full() => Some(WhyNothing::StoreFails),
        false => (!uses.is_asked && is_housekeeping(&body)).then_some(WhyNothing::Housekeeping),
    };
    if let Some(why) = why_bare {
        let sent = Body::from(body.forwarded(&[], |_| false).text);
        let headers = upstream.headers(&parts, AnswerUse::Pass);
        let answer = upstream.send(parts.method, &parts.uri, headers, sent).await?;
        let mut response = unread(answer, upstream.timeout());
        Recalled::nothing(why).tell(false, &mut response);
        return Ok(response);
    }
    asker.warn_if_shared(app, &parts.headers);
    let scope = caller.recall_scope(asker.names_user, Some(&asker.session), body.options.scope);
    let Asker { user, session, .. } = asker;
    Exchange { app, upstream, user, session, scope, uses, parts, body }.run().await
}

/// The upstream that serves a chat. A chat stays with the upstream that it begins with.
fn upstream_of<'a>(app: &'a App, path: &str, body: &ChatBody<'_>) -> Result<&'a Upstream, ApiError> {
    let (model, stored) = (body.model(), body.stored());
    let by_path = Asked::of_path(path);
    let stored = stored.iter().map(String::as_str).collect();
    app.proxy().upstreams.choose(&Asked { model: model.as_deref().or(by_path.model), stored, ..by_path })
}

/// A chat with memory, while it is being served.
pub(super) struct Exchange<'a> {
    pub(super) app: &'a App,
    upstream: &'a Upstream,
    pub(super) user: UserId,
    pub(super) session: SessionId,
    /// How far recall may look from the session; `None` leaves it to the settings.
    pub(super) scope: Option<RecallScope>,
    pub(super) uses: MemoryUse,
    parts: Parts,
    pub(super) body: ChatBody<'a>,
}

impl Exchange<'_> {
    async fn run(self) -> Result<Response, ApiError> {
        let Self { app, ref user, ref session, ref body, .. } = self;
        let id = RequestId(app.engine().next_id());
        let deadline = app.settings().proxy.memory_deadline;
        let heard = self.heard();
        let began = Instant::now();
        // Recall must not find the question itself. So the question is recorded only after the snapshot is read, and
        // from then on concurrently with recall.
        let remembering = self.remember(&heard, deadline).await;
        let mut recorder = self.uses.records.then(|| {
            let (user, session, is_kept) = (user.clone(), session.clone(), body.is_kept_upstream());
            ExchangeRecorder::start(app, ExchangeStart { user, session, messages: heard, is_kept })
        });
        let (recalled, mut row) = self.remembered(id, remembering, began, deadline).await;

        let compacted = compact(app, user, session, body);
        let mut blocks = Vec::new();
        blocks.extend(compacted.block.clone());
        blocks.extend(body.question().zip(recalled.block.clone()));
        let sent = body.forwarded(&blocks, |place| compacted.is_gone(body, place));
        let stable = app.proxy().histories.with(user, session, |known| known.stable_share(sent.prompt()));
        if let Some(share) = stable {
            app.meters().prompt_stayed(share);
        }
        row.prompt.stable_share = stable.map(|share| share as f32);
        match &mut recorder {
            Some(recorder) => recorder.recalled(row),
            None => app.engine().prompting.note_chat(user, row).await,
        }
        let mut response = self.answer(sent.text, recorder).await;
        set_request_id(&mut response, id.0);
        recalled.tell(self.uses.records, &mut response);
        // For a first prompt there is nothing to compare with.
        tell_stable(stable.unwrap_or(0.0), &mut response);
        Ok(response)
    }

    /// Passes the request on, and the answer back.
    async fn answer(&self, sent: String, mut recorder: Option<ExchangeRecorder>) -> Response {
        let Self { app, upstream, parts, body, .. } = self;
        let deadline = app.settings().proxy.memory_deadline;
        let (method, headers) = (parts.method.clone(), upstream.headers(parts, AnswerUse::Read));
        let sending = upstream.send(method, &parts.uri, headers, Body::from(sent));
        let opened = async {
            if let Some(recorder) = &mut recorder {
                recorder.opened(deadline).await;
            }
        };
        // The answer is passed on only after the question is durable.
        let (answer, ()) = tokio::join!(sending, opened);
        match answer {
            Ok(answer) => {
                let (head, passing) = answer.into_parts();
                let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
                let passing = IdleTimeoutBody::new(passing, upstream.timeout());
                let relay = Relay::new(
                    passing,
                    (head.status, Framing::of(kind)),
                    body.api(),
                    recorder,
                    ((*app).clone(), upstream.number),
                );
                let mut response = Response::new(Body::new(relay));
                *response.status_mut() = head.status;
                *response.headers_mut() = answer_headers(&head.headers);
                response
            }
            Err(error) => {
                let (status, detail) = error.detail();
                let ending = Ending::Failed(failure(Some(status.as_u16()), b"", &detail.message));
                if let Some(recorder) = recorder {
                    // The client gets the answer even if it could not be recorded.
                    let _ = tokio::time::timeout(deadline, recorder.end(ending)).await;
                }
                error.into_response()
            }
        }
    }

    /// The client's messages in the form that is recorded. Memories that are learned behind a wall stay behind it.
    fn heard(&self) -> Vec<NewMessage> {
        let messages = self.body.messages().iter();
        let mut heard: Vec<_> = messages.flat_map(|message| message.turns.iter().cloned()).collect();
        for message in &mut heard {
            let is_behind = self.scope == Some(RecallScope::Session);
            (message.notes.owner.in_session, message.notes.owner.apart) = (is_behind, is_behind);
        }
        heard
    }
}
