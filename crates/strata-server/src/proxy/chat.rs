//! The life of a chat, the same in all APIs: recall, pass the request on, pass the reply back, record.

use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use strata_core::scope::RecallScope;
use strata_core::turn::NewMessage;
use strata_core::{RequestId, SessionId, UserId};
use strata_engine::{Ending, KeptBy};

use super::compaction::compact;
use super::forward::{relayed, unread};
use super::housekeeping::is_housekeeping;
use super::locating::locate;
use super::names::Asker;
use super::recalled::{Recalled, Recorded, WhyNothing, tell_stable};
use super::receiving::{Received, receive};
use super::recorder::{ExchangeRecorder, ExchangeStart};
use super::relay::Recording;
use super::stored::{self, Place};
use super::switch::MemoryUse;
use crate::app::App;
use crate::compat::chat::reply::failure;
use crate::compat::chat::{ChatApi, ChatBody, Forwarded};
use crate::error::ApiError;
use crate::extract::begun;
use crate::identity::Caller;
use crate::telemetry::set_request_id;
use crate::upstream::{AnswerUse, Asked, PromptPrint, Upstream};

/// The most text of a client's messages that is compared with its session and recorded. It is more than the context
/// window of any model holds. Older messages were recorded when they were the last ones.
const MAX_HEARD_BYTES: usize = 4 * 1024 * 1024;

/// Serves a chat in one of the APIs.
pub(crate) async fn chat(
    app: &App,
    api: &'static dyn ChatApi,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let uses = MemoryUse::of(request.headers(), &caller)?;
    let settings = app.settings();
    let request = begun(request, settings.proxy.max_body_bytes, settings.body_timeout).await?;
    let (mut parts, body) = request.into_parts();
    let (bytes, _room) = match receive(app, &mut parts, body).await? {
        Received::Readable(bytes, room) => (bytes, room),
        Received::Unreadable(bytes, _room) => return pass_unread(app, &caller, parts, bytes).await,
    };
    let body = ChatBody::read(api, &bytes)?;
    let asker = Asker::read(&settings.proxy.names, &caller, &parts.headers, &body)?;
    let (stored, kept) = (body.stored(), body.kept());
    let user = Some(&asker.user).filter(|_| caller.has_key());
    stored::check(app, user, stored.iter().map(String::as_str))?;
    let kept = kept.iter().map(String::as_str).collect();
    let upstream = upstream_of(app, &asker.user, &parts, &body, kept).await?;
    let place = Place {
        app: app.clone(),
        upstream: upstream.number,
        user: asker.user.clone(),
        owner: caller.has_key().then(|| asker.user.clone()),
    };
    let why_bare = match uses.is_off() {
        true => Some(WhyNothing::Off),
        // Nothing more can be kept until the store works again. A chat whose reply would be lost goes without memory, and says so.
        false if uses.records && app.proxy().spill.is_full() => Some(WhyNothing::StoreFails),
        // The request has no message, as one that loads a model: a reply would answer nothing.
        false if body.is_silent() => Some(WhyNothing::NoQuestion),
        false => (!uses.is_asked && is_housekeeping(&body)).then_some(WhyNothing::Housekeeping),
    };
    if let Some(why) = why_bare {
        return pass_bare(upstream, place, (parts, &bytes), &body, why).await;
    }
    asker.warn_if_shared(app, &parts.headers);
    let scope = caller.recall_scope(asker.names_user, Some(&asker.session), body.options.scope);
    let Asker { user, session, .. } = asker;
    ProxiedChat { app, upstream, user, session, scope, uses, parts, bytes: &bytes, body, place }.run().await
}

/// Passes a chat on without memory.
async fn pass_bare(
    upstream: &Upstream,
    place: Place,
    (parts, bytes): (Parts, &Bytes),
    body: &ChatBody<'_>,
    why: WhyNothing,
) -> Result<Response, ApiError> {
    let sent = body.forwarded(&[], |_| false);
    let is_stored = body.is_stored_upstream();
    let headers = upstream.headers(&parts, if is_stored { AnswerUse::Read } else { AnswerUse::Pass });
    let answer = upstream.send_again(parts.method, &parts.uri, headers, || sent.body(bytes)).await?;
    if answer.status().is_success() {
        place.used(body.kept().iter().map(String::as_str));
    }
    let mut response = match is_stored {
        true => relayed(upstream, answer, body.api(), Recording::Ids, place),
        false => unread(answer, upstream.timeout()),
    };
    Recalled::nothing(why).tell(Recorded::Never, &mut response);
    Ok(response)
}

/// Passes on a body that cannot be read.
async fn pass_unread(app: &App, caller: &Caller, parts: Parts, bytes: Bytes) -> Result<Response, ApiError> {
    if caller.has_key() {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body is compressed in a way that cannot be read; send it plain, or with gzip, deflate or Brotli",
        ));
    }
    tracing::warn!(
        "a chat is compressed in a way that cannot be read; it goes without memory and is not recorded"
    );
    let upstream = app.proxy().upstreams.choose(&Asked::of_path(parts.uri.path()))?;
    let headers = upstream.headers(&parts, AnswerUse::Pass);
    let answer = upstream.send(parts.method, &parts.uri, headers, Body::from(bytes)).await?;
    let mut response = unread(answer, upstream.timeout());
    Recalled::nothing(WhyNothing::Compressed).tell(Recorded::Never, &mut response);
    Ok(response)
}

/// The upstream that serves a chat. A chat stays with the upstream that it begins with.
async fn upstream_of<'a>(
    app: &'a App,
    user: &UserId,
    parts: &Parts,
    body: &ChatBody<'_>,
    stored: Vec<&str>,
) -> Result<&'a Upstream, ApiError> {
    let by_path = Asked::of_path(parts.uri.path());
    let asked = Asked { model: body.model().or(by_path.model), stored, ..by_path };
    locate(app, user, parts, &asked).await;
    app.proxy().upstreams.choose(&asked)
}

/// A chat with memory, while it is being served.
pub(super) struct ProxiedChat<'a> {
    pub(super) app: &'a App,
    upstream: &'a Upstream,
    pub(super) user: UserId,
    pub(super) session: SessionId,
    /// How far recall may look from the session; `None` leaves it to the settings.
    pub(super) scope: Option<RecallScope>,
    pub(super) uses: MemoryUse,
    parts: Parts,
    /// The client's body, as it came.
    bytes: &'a Bytes,
    pub(super) body: ChatBody<'a>,
    place: Place,
}

impl ProxiedChat<'_> {
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
            let keeper = if body.is_kept_upstream() { KeptBy::Provider } else { KeptBy::Client };
            let (user, session) = (user.clone(), session.clone());
            let begun = body.begun_reply().unwrap_or_default().to_owned();
            let number = app.proxy().spill.owed.number();
            ExchangeRecorder::start(
                app,
                ExchangeStart { user, session, messages: heard, keeper, number },
                begun,
            )
        });
        let (recalled, mut row) = self.remembered(id, remembering, began, deadline).await;

        let compacted = compact(app, user, session, body);
        let mut blocks = Vec::new();
        blocks.extend(compacted.block.clone());
        blocks.extend(body.question().zip(recalled.block.clone()));
        let sent = body.forwarded(&blocks, |place| compacted.is_gone(body, place));
        let print = PromptPrint::of(sent.prompt(self.bytes));
        let stable = app.proxy().histories.with(user, session, |known| known.stable_share(print));
        if let Some(share) = stable {
            app.meters().prompt_stayed(share);
        }
        row.prompt.stable_share = stable.map(|share| share as f32);
        match &mut recorder {
            Some(recorder) => recorder.recalled(row),
            None => app.engine().prompting.note_chat(user, row).await,
        }
        let (mut response, is_opened) = self.answer(&sent, recorder).await;
        set_request_id(&mut response, id.0);
        recalled.tell(self.recorded(is_opened), &mut response);
        // For a first prompt there is nothing to compare with.
        tell_stable(stable.unwrap_or(0.0), &mut response);
        Ok(response)
    }

    /// Passes the request on, and the answer back. Also returns whether what the client said is durable.
    async fn answer(&self, sent: &Forwarded, mut recorder: Option<ExchangeRecorder>) -> (Response, bool) {
        let Self { app, upstream, parts, body, place, .. } = self;
        let deadline = app.settings().proxy.memory_deadline;
        let (method, headers) = (parts.method.clone(), upstream.headers(parts, AnswerUse::Read));
        let sending = upstream.send_again(method, &parts.uri, headers, || sent.body(self.bytes));
        let opened = async {
            match &mut recorder {
                Some(recorder) => recorder.opened(deadline).await,
                None => false,
            }
        };
        // The answer is passed on only after the question is durable.
        let (answer, is_opened) = tokio::join!(sending, opened);
        let response = match answer {
            Ok(answer) => {
                if answer.status().is_success() {
                    place.used(body.kept().iter().map(String::as_str));
                }
                let unrecorded = if body.is_stored_upstream() { Recording::Ids } else { Recording::Off };
                let recording = recorder.map_or(unrecorded, Recording::Live);
                relayed(upstream, answer, body.api(), recording, place.clone())
            }
            Err(error) => {
                let (status, detail) = error.detail();
                let ending = Ending::Failed(failure(Some(status.as_u16()), b"", &detail.message));
                if let Some(recorder) = recorder {
                    recorder.end(ending).await;
                }
                error.into_response()
            }
        };
        (response, is_opened)
    }

    /// When the chat is recorded. While the store fails, or still owes chats of an outage, that may be later.
    fn recorded(&self, is_opened: bool) -> Recorded {
        let is_background = self.body.fields().written("background") == Some("true");
        match (self.uses.records, self.app.settings().proxy.reply_wait) {
            (false, _) => Recorded::Never,
            (true, None) if !is_background && is_opened && self.app.proxy().spill.owed.is_empty() => {
                Recorded::BeforeTheEnd
            }
            (true, _) => Recorded::Later,
        }
    }

    /// The client's messages in the form that is recorded.
    fn heard(&self) -> Vec<NewMessage> {
        heard(self.app, &self.body, self.scope)
    }
}

/// The messages of a request in the form that is recorded. `scope` says how far recall may look from the session.
pub(super) fn heard(app: &App, body: &ChatBody<'_>, scope: Option<RecallScope>) -> Vec<NewMessage> {
    let messages = body.messages();
    // A reply that the client has begun is recorded with the rest of it.
    let messages = &messages[..messages.len() - usize::from(body.begun_reply().is_some())];
    recordable(app, messages.iter().flat_map(|message| &message.turns), scope)
}

/// The last messages, up to [`MAX_HEARD_BYTES`]. Memories that are learned behind a wall stay behind it.
pub(super) fn recordable<'m>(
    app: &App,
    turns: impl DoubleEndedIterator<Item = &'m NewMessage>,
    scope: Option<RecallScope>,
) -> Vec<NewMessage> {
    let longest = app.engine().settings().limits.max_turn_bytes;
    let mut left = MAX_HEARD_BYTES;
    let mut heard = Vec::new();
    for turn in turns.rev() {
        let turn = shortened(turn, longest);
        if turn.content.len() > left && !heard.is_empty() {
            break;
        }
        left = left.saturating_sub(turn.content.len());
        heard.push(turn);
    }
    heard.reverse();
    for message in &mut heard {
        let is_behind = scope == Some(RecallScope::Session);
        (message.notes.owner.in_session, message.notes.owner.apart) = (is_behind, is_behind);
    }
    heard
}

/// A copy of a message with at most `longest` bytes of its text and a few more, by which the engine sees that it is too
/// long.
fn shortened(message: &NewMessage, longest: usize) -> NewMessage {
    let NewMessage { role, name, content, created_at, metadata, notes, hidden } = message;
    let content = &content[..content.floor_char_boundary(longest.saturating_add(4))];
    NewMessage {
        name: name.clone(),
        created_at: *created_at,
        metadata: metadata.clone(),
        notes: notes.clone(),
        hidden: *hidden,
        ..NewMessage::new(*role, content)
    }
}
