//! Requests of the providers' APIs without memory: they pass to the upstream and back unchanged, piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::relay::{Recording, Relay};
use super::websocket::is_upgrade;
use super::{models, websocket};
use crate::app::App;
use crate::compat::chat::ChatApi;
use crate::compat::chat::splice::{self, Object};
use crate::compat::openai::responses::Responses;
use crate::error::{ApiError, wrong_method};
use crate::extract::read_body_in_time;
use crate::upstream::{AnswerUse, Asked, BackgroundId, Upstream, answer_headers};

/// The largest body that is read for the model that it names. Larger ones have no model, or are no JSON.
const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;

/// Passes a request on.
pub(crate) async fn pass_on(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    if is_upgrade(request.headers()) {
        return websocket::pass(&app, request).await;
    }
    let is_list = request.method() == Method::GET && request.uri().path() == "/v1/models";
    if is_list && app.proxy().upstreams.are_several() {
        return models::list(&app, request).await;
    }
    let (parts, body, model) = read_model(&app, request).await?;
    let by_path = Asked::of_path(parts.uri.path());
    let asked = Asked { model: model.as_deref().or(by_path.model), ..by_path };
    let upstream = app.proxy().upstreams.choose(&asked)?;
    if let Some(id) = awaited_reply(&app, upstream, &parts, &asked) {
        let headers = upstream.headers(&parts, AnswerUse::Read);
        let answer = upstream.send(parts.method, &parts.uri, headers, body).await?;
        return Ok(relayed(&app, upstream, answer, &Responses, Recording::Background(id)));
    }
    let headers = upstream.headers(&parts, AnswerUse::Pass);
    let answer = upstream.send(parts.method, &parts.uri, headers, body).await?;
    Ok(unread(answer, upstream.timeout()))
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
    app: &App,
    upstream: &Upstream,
    answer: axum::http::Response<Incoming>,
    api: &'static dyn ChatApi,
    recording: Recording,
) -> Response {
    let (head, body) = answer.into_parts();
    let body = IdleTimeoutBody::new(body, upstream.timeout());
    let home = (app.clone(), upstream.number);
    let relay = Relay::new(body, (head.status, &head.headers), api, recording, home);
    let mut response = Response::new(Body::new(relay));
    *response.status_mut() = head.status;
    *response.headers_mut() = answer_headers(&head.headers);
    response
}

/// Reads the model that a body names, if that decides anything.
async fn read_model(app: &App, request: Request) -> Result<(Parts, Body, Option<String>), ApiError> {
    let is_json = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = is_json.is_some_and(|kind| kind.trim_start().starts_with("application/json"));
    let is_short =
        request.body().size_hint().exact().is_some_and(|bytes| (1..=MAX_READ_BYTES).contains(&bytes));
    let (parts, body) = request.into_parts();
    if !(app.proxy().upstreams.are_several() && is_json && is_short) {
        return Ok((parts, body, None));
    }
    let limit = (MAX_READ_BYTES as usize, "proxy.max_body_bytes");
    let request = Request::from_parts(parts.clone(), body);
    let bytes = read_body_in_time(request, limit, app.settings().body_timeout).await?;
    let model = match splice::parse(&bytes) {
        Ok((text, place)) => Object::at(text, &place).string("model").map(|model| model.into_owned()),
        Err(_) => None,
    };
    Ok((parts, Body::from(bytes), model))
}

/// Passes on requests for chats that the upstream has stored; other methods are refused.
pub(crate) async fn pass_on_reading(app: State<App>, request: Request) -> Result<Response, ApiError> {
    match *request.method() {
        Method::GET | Method::HEAD => pass_on(app, request).await,
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
