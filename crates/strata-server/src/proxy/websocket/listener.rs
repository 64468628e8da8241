//! Records what is said on a WebSocket while it passes.
//!
//! In a realtime conversation ([`Realtime`]), a reply and what was said before it are one exchange. On a connection for OpenAI's
//! Responses, each `response.create` has the fields of a request to `/v1/responses`, and the server answers with the events of its stream.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde_json::Value;
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_engine::KeptBy;

use super::requests::{Asked, Requests, Steered};
use crate::app::App;
use crate::compat::chat::ChatBody;
use crate::compat::openai::realtime::{Realtime, Spoken};
use crate::compat::openai::responses::Responses;
use crate::error::ApiError;
use crate::identity::Caller;
use crate::proxy::chat::{heard, recordable};
use crate::proxy::housekeeping::is_housekeeping;
use crate::proxy::names::Asker;
use crate::proxy::recorder::{ExchangeRecorder, ExchangeStart, MayPass};
use crate::proxy::relay::ending_of;
use crate::proxy::stored::{self, Place};
use crate::proxy::switch::MemoryUse;

/// The end that has sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// The listener of one connection.
pub(super) struct Listener {
    app: App,
    caller: Caller,
    headers: HeaderMap,
    /// The number of the upstream.
    upstream: usize,
    records: bool,
    conversation: Mutex<Conversation>,
}

/// The conversation on a connection.
enum Conversation {
    Realtime { asker: Asker, realtime: Realtime },
    Responses(Requests),
}

impl Listener {
    /// The listener of a connection; `None` if there is nothing to record or to check.
    pub(super) fn of(
        app: &App,
        caller: Caller,
        parts: &Parts,
        upstream: usize,
    ) -> Result<Option<Self>, ApiError> {
        let records = MemoryUse::of(&parts.headers, &caller)?.records;
        let path = parts.uri.path().trim_end_matches('/');
        let conversation = match path.rsplit('/').next() {
            Some("realtime") if records => {
                let nothing = ChatBody::read(&Responses, b"{}")?;
                let asker = Asker::read(&app.settings().proxy.names, &caller, &parts.headers, &nothing)?;
                asker.warn_if_shared(app, &parts.headers);
                Conversation::Realtime { asker, realtime: Realtime::default() }
            }
            // A key may go on with its own responses only, whether they are recorded or not.
            Some("responses") if records || caller.has_key() => Conversation::Responses(Requests::default()),
            _ => return Ok(None),
        };
        let (app, headers, conversation) = (app.clone(), parts.headers.clone(), Mutex::new(conversation));
        Ok(Some(Self { app, caller, headers, upstream, records, conversation }))
    }

    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// Whether the conversation is recorded.
    pub(super) fn records(&self) -> bool {
        self.records
    }

    /// Reads a message, and waits until it may be passed on. An error ends the connection.
    pub(super) async fn hear(&self, side: Side, message: &[u8]) -> io::Result<()> {
        match side {
            Side::Client => self.hear_client(message)?,
            Side::Server => {
                for may_pass in self.hear_server(message) {
                    may_pass.await;
                }
            }
        }
        Ok(())
    }

    /// The messages of one end can no longer be read. If their ids have to be checked, that ends the connection.
    pub(super) fn lose(&self, side: Side) -> io::Result<()> {
        tracing::warn!(?side, "the messages of a WebSocket cannot be read; nothing more of it is recorded");
        let is_checked = self.caller.has_key() && matches!(*self.conversation(), Conversation::Responses(_));
        match is_checked && side == Side::Client {
            true => Err(io::Error::other("the ids in the client's messages cannot be checked")),
            false => Ok(()),
        }
    }

    /// Records what is left when the connection has ended.
    pub(super) async fn end(&self) {
        let rest: Vec<MayPass> = match &mut *self.conversation() {
            Conversation::Realtime { asker, realtime } => {
                let rest = std::iter::from_fn(|| realtime.rest());
                rest.map(|spoken| self.record(asker, spoken)).collect()
            }
            Conversation::Responses(requests) => requests.drain().filter_map(Asked::end).collect(),
        };
        for recorded in rest {
            recorded.await;
        }
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear_client(&self, message: &[u8]) -> io::Result<()> {
        match &mut *self.conversation() {
            Conversation::Realtime { realtime, .. } => realtime.hear(message),
            Conversation::Responses(requests) => {
                let asked = self.ask(requests, message);
                if requests.are_too_many() {
                    return Err(io::Error::other("too many requests are under way"));
                }
                let Err(error) = asked else { return Ok(()) };
                let reason = error.message();
                tracing::warn!(reason, "a request on a WebSocket cannot be recorded");
                // Without a key, the upstream judges it.
                if self.caller.has_key() {
                    return Err(io::Error::other(reason));
                }
            }
        }
        Ok(())
    }

    fn hear_server(&self, message: &[u8]) -> Vec<MayPass> {
        let Ok(event) = serde_json::from_slice::<Value>(message) else { return Vec::new() };
        match &mut *self.conversation() {
            Conversation::Realtime { asker, realtime } => {
                realtime.read(&event);
                let ended = std::iter::from_fn(|| realtime.next());
                ended.map(|spoken| self.record(asker, spoken)).collect()
            }
            Conversation::Responses(requests) => self.answered(requests, &event).into_iter().collect(),
        }
    }

    /// Reads an event of the client.
    fn ask(&self, requests: &mut Requests, message: &[u8]) -> Result<(), ApiError> {
        let body = ChatBody::read(&Responses, message)?;
        match body.fields().string("type").as_deref() {
            Some("response.create") => {
                let before = requests.steered_in(lane(&body).as_deref());
                requests.add(self.created(before, &body, requests.has_room())?);
            }
            Some("response.steer") => {
                // The provider lets a connection steer its own responses only.
                let target = body.fields().string("previous_response_id");
                if let Some(target) = target.and_then(|id| requests.of(&id)) {
                    target.steered.extend(heard(&self.app, &body, self.scope(&target.asker)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins to record a request for a response, and before it what was said to steer the last one.
    fn created(
        &self,
        before: Option<Steered>,
        body: &ChatBody<'_>,
        has_room: bool,
    ) -> Result<Asked, ApiError> {
        let asker = Asker::read(&self.app.settings().proxy.names, &self.caller, &self.headers, body)?;
        let owner = self.caller.has_key().then_some(&asker.user);
        stored::check(&self.app, owner, body.stored().iter().map(String::as_str))?;
        // A request may only prepare the next one.
        let is_silent = body.is_silent() || body.fields().written("generate") == Some("false");
        let is_recorded = self.records && has_room && !is_silent && !is_housekeeping(body);
        let recorder = is_recorded.then(|| {
            asker.warn_if_shared(&self.app, &self.headers);
            let keeper = if body.is_kept_upstream() { KeptBy::Provider } else { KeptBy::Client };
            let before = before.into_iter().flat_map(|steered| steered.messages);
            let heard = heard(&self.app, body, self.scope(&asker));
            self.open(&asker, before.chain(heard).collect(), keeper)
        });
        Ok(Asked::new(asker, lane(body), recorder))
    }

    /// Reads an event of the server.
    fn answered(&self, requests: &mut Requests, event: &Value) -> Option<MayPass> {
        if let Some(Steered { asker, lane, messages }) = requests.successor(event) {
            let recorder = self.open(&asker, messages, KeptBy::Provider);
            requests.add(Asked::new(asker, lane, Some(recorder)));
        }
        let ended = requests.read(event)?;
        let user = ended.asker.user.clone();
        let owner = self.caller.has_key().then(|| user.clone());
        let place = Place { app: self.app.clone(), upstream: self.upstream, user, owner };
        ended.reply.id().into_iter().for_each(|id| place.made(id));
        ended.end()
    }

    /// Records a reply of a realtime conversation as soon as the result is waited for: several are recorded one after the other.
    fn record(&self, asker: &Asker, Spoken { messages, reply }: Spoken) -> MayPass {
        let messages = recordable(&self.app, messages.iter(), self.scope(asker));
        let (app, start) = (self.app.clone(), self.start(asker, messages, KeptBy::Provider));
        Box::pin(
            async move { ExchangeRecorder::start(&app, start, String::new()).end(ending_of(reply)).await },
        )
    }

    fn open(&self, asker: &Asker, messages: Vec<NewMessage>, keeper: KeptBy) -> ExchangeRecorder {
        ExchangeRecorder::start(&self.app, self.start(asker, messages, keeper), String::new())
    }

    fn start(&self, asker: &Asker, messages: Vec<NewMessage>, keeper: KeptBy) -> ExchangeStart {
        let (user, session) = (asker.user.clone(), asker.session.clone());
        let number = self.app.proxy().spill.owed.number();
        ExchangeStart { user, session, messages, keeper, number }
    }

    fn scope(&self, asker: &Asker) -> Option<RecallScope> {
        self.caller.recall_scope(asker.names_user, Some(&asker.session), None)
    }
}

/// The lane of a request.
fn lane(body: &ChatBody<'_>) -> Option<String> {
    body.fields().string("stream_id").map(|lane| lane.into_owned())
}
