//! Anything under `/v1` that has no memory: to the upstream as it came, and back as it came, piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{Method, Response};
use axum::response::IntoResponse;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::error::{ProxyError, no_upstream};
use super::upstream::{Reading, answer_headers};
use crate::app::App;
use crate::router::wrong_method;

/// Passes a request on.
pub(crate) async fn pass_on(State(app): State<App>, request: Request) -> axum::response::Response {
    match passed_on(&app, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

/// Passes on what asks for chats that the upstream has stored. A chat has no other method.
pub(crate) async fn pass_on_reading(app: State<App>, request: Request) -> axum::response::Response {
    match *request.method() {
        Method::GET | Method::HEAD => pass_on(app, request).await,
        _ => ProxyError(wrong_method(request.method().clone()).await).into_response(),
    }
}

async fn passed_on(app: &App, request: Request) -> Result<axum::response::Response, ProxyError> {
    let upstream = app.proxy().upstream.as_ref().ok_or_else(no_upstream)?;
    let (parts, body) = request.into_parts();
    let headers = upstream.headers(&parts, Reading::Nothing);
    let answer = upstream.send(parts.method, &parts.uri, headers, body).await?;
    Ok(unread(answer, upstream.timeout()))
}

/// An answer that nobody reads on its way.
pub(crate) fn unread(answer: Response<Incoming>, timeout: Duration) -> axum::response::Response {
    let (head, body) = answer.into_parts();
    let mut response = axum::response::Response::new(Body::new(Patient::new(body, timeout)));
    *response.status_mut() = head.status;
    *response.headers_mut() = answer_headers(&head.headers);
    response
}

/// A body that gives up when the next piece does not come.
pub(crate) struct Patient {
    body: Incoming,
    timeout: Duration,
    silence: Pin<Box<Sleep>>,
}

/// Why a body ended early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The other end broke off.
    Off(hyper::Error),
    /// The other end fell silent.
    Silent,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off(error) => write!(f, "the upstream broke off: {error}"),
            Self::Silent => f.write_str("the upstream fell silent"),
        }
    }
}

impl std::error::Error for Broken {}

impl Patient {
    pub(crate) fn new(body: Incoming, timeout: Duration) -> Self {
        Self { body, timeout, silence: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl HttpBody for Patient {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let body = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut body.body).poll_frame(context) {
            let next = Instant::now() + body.timeout;
            body.silence.as_mut().reset(next);
            return Poll::Ready(frame.map(|frame| frame.map_err(Broken::Off)));
        }
        ready!(body.silence.as_mut().poll(context));
        Poll::Ready(Some(Err(Broken::Silent)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
