//! Requests of the providers' APIs without memory: they pass to the upstream and back unchanged, piece by piece.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::locating::locate;
use super::reading::{Named, read_named};
use super::recalled::{Recalled, Recorded, WhyNothing};
use super::relay::{Recording, Relay};
use super::stored::{self, Place};
use super::{models, websocket};
use crate::app::App;
use crate::compat::chat::ChatApi;
use crate::compat::openai::responses::Responses;
use crate::error::{ApiError, wrong_method};
use crate::identity::{Caller, is_websocket};
use crate::upstream::{AnswerUse, Asked, BackgroundId, StoredPath, Upstream, answer_headers};

/// Passes a request on.
pub(crate) async fn pass_on(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    if is_websocket(request.headers()) {
        return websocket::pass(&app, caller, request).await;
    }
    let is_list = request.method() == Method::GET && request.uri().path() == "/v1/models";
    if is_list && app.proxy().upstreams.are_several() {
        return models::list(&app, request).await;
    }
    let (parts, body, Named { model, stored, room: _room, .. }) = read_named(&app, &caller, request).await?;
    let by_path = Asked::of_path(parts.uri.path());
    let ids: Vec<&str> = by_path.stored.iter().copied().chain(stored.iter().map(String::as_str)).collect();
    let owner = caller.known_user().filter(|_| caller.has_key()).cloned();
    stored::check(&app, owner.as_ref(), ids.iter().copied())?;
    let model = model.map(Cow::Owned).or(by_path.model);
    let asked = Asked { model, stored: ids, api: by_path.api };
    let user = caller.known_user().cloned().unwrap_or_default();
    locate(&app, &user, &parts, &asked).await;
    let upstream = app.proxy().upstreams.choose(&asked)?;
    stored::check_list(upstream, &parts, caller.is_bound())?;
    let recording = match awaited_reply(&app, upstream, &parts, &asked) {
        Some(id) => Recording::Background(id),
        None if makes_container(&parts) => Recording::Ids,
        None => Recording::Off,
    };
    let place = Place { app: app.clone(), upstream: upstream.number, user, owner };
    let is_read = !matches!(recording, Recording::Off);
    let headers = upstream.headers(&parts, if is_read { AnswerUse::Read } else { AnswerUse::Pass });
    let answer = upstream.send(parts.method.clone(), &parts.uri, headers, body).await?;
    if answer.status().is_success() {
        place.used(asked.stored.iter().copied());
    }
    let is_silent = matches!(recording, Recording::Off) && writes_text(&parts);
    let mut response = match is_read {
        true => relayed(upstream, answer, &Responses, recording, place),
        false => unread(answer, upstream.timeout()),
    };
    if is_silent {
        Recalled::nothing(WhyNothing::NotAChat).tell(Recorded::Never, &mut response);
    }
    Ok(response)
}

/// Whether a request makes a conversation at the provider, whose id the answer tells.
fn makes_container(parts: &Parts) -> bool {
    let stored = StoredPath::of(parts.uri.path());
    parts.method == Method::POST && stored.is_some_and(|stored| stored.id.is_none() && stored.is_container)
}

/// Whether a request has a model write a text, without being a chat.
fn writes_text(parts: &Parts) -> bool {
    const WRITING: [&str; 8] =
        ["completions", "complete", "infill", "compact", "threads", "runs", "batches", "engines"];
    let mut segments = parts.uri.path().split('/');
    parts.method == Method::POST && segments.any(|segment| WRITING.contains(&segment))
}

/// The reply that a request fetches or cancels, if it was worked on in the background and is not recorded yet.
fn awaited_reply(app: &App, upstream: &Upstream, parts: &Parts, asked: &Asked<'_>) -> Option<BackgroundId> {
    let may_end =
        matches!(parts.method, Method::GET | Method::POST) && parts.uri.path().contains("/responses/");
    let id = asked.stored.first().filter(|_| may_end)?;
    Some((upstream.number, (*id).to_owned())).filter(|id| app.proxy().background.is_awaited(id))
}

/// An answer that is read while it passes.
pub(crate) fn relayed(
    upstream: &Upstream,
    answer: axum::http::Response<Incoming>,
    api: &'static dyn ChatApi,
    recording: Recording,
    place: Place,
) -> Response {
    let (head, body) = answer.into_parts();
    let body = IdleTimeoutBody::new(body, upstream.timeout());
    let relay = Relay::new(body, (head.status, &head.headers), api, recording, place);
    let mut response = Response::new(Body::new(relay));
    *response.status_mut() = head.status;
    *response.headers_mut() = answer_headers(&head.headers);
    response
}

/// Passes on requests for chats that the upstream has stored; other methods are refused.
pub(crate) async fn pass_on_reading(
    app: State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    match *request.method() {
        Method::GET | Method::HEAD => pass_on(app, caller, request).await,
        _ => Err(wrong_method(request.method().clone()).await),
    }
}

/// An answer that passes without being read.
pub(crate) fn unread(answer: axum::http::Response<Incoming>, timeout: Duration) -> Response {
    let (head, body) = answer.into_parts();
    let mut response = Response::new(Body::new(IdleTimeoutBody::new(body, timeout)));
    *response.status_mut() = head.status;
    *response.headers_mut() = answer_headers(&head.headers);
    response
}

/// A body of the upstream that fails if no piece arrives within `timeout`.
pub(crate) struct IdleTimeoutBody {
    body: Incoming,
    timeout: Duration,
    silence: Pin<Box<Sleep>>,
}

/// The reason why a body ended early.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The other end closed the connection.
    Off(hyper::Error),
    /// The other end sent nothing for too long.
    Silent,
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off(error) => write!(f, "the upstream broke off: {error}"),
            Self::Silent => f.write_str("the upstream fell silent"),
        }
    }
}

impl std::error::Error for BodyError {}

impl IdleTimeoutBody {
    pub(crate) fn new(body: Incoming, timeout: Duration) -> Self {
        Self { body, timeout, silence: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl HttpBody for IdleTimeoutBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let body = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut body.body).poll_frame(context) {
            let next = Instant::now() + body.timeout;
            body.silence.as_mut().reset(next);
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Off)));
        }
        ready!(body.silence.as_mut().poll(context));
        Poll::Ready(Some(Err(BodyError::Silent)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
