//! An upstream with scripted answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::UpstreamUrl;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Script {
    received: Vec<Received>,
    answers: VecDeque<Response>,
}

/// A server with scripted answers. Without a script it answers `ok`.
pub(super) struct ScriptedUpstream {
    script: Arc<Mutex<Script>>,
    address: String,
}

impl ScriptedUpstream {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script = Arc::<Mutex<Script>>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { script, address }
    }

    pub(super) fn url(&self) -> UpstreamUrl {
        format!("http://{}/v1", self.address).parse().unwrap()
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The next answers.
    pub(super) fn will(&self, answer: impl IntoResponse) {
        self.script.lock().unwrap().answers.push_back(answer.into_response());
    }

    /// Forgets the answers that were not asked for.
    pub(super) fn drop_script(&self) {
        self.script.lock().unwrap().answers.clear();
    }

    pub(super) fn will_say(&self, content: &str) {
        self.will(axum::Json(completion(content)));
    }

    /// Sends these pieces next.
    pub(super) fn will_stream(&self, pieces: Vec<Bytes>) {
        self.will_send("text/event-stream; charset=utf-8", pieces);
    }

    /// Sends these pieces next, with this `Content-Type`.
    pub(super) fn will_send(&self, kind: &'static str, pieces: Vec<Bytes>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        for piece in pieces {
            sender.send(Ok(piece)).unwrap();
        }
        self.will(([("content-type", kind), ("x-upstream", "yes")], Body::new(Pieces(receiver))));
    }

    pub(super) fn will_stream_from(&self, pieces: mpsc::UnboundedReceiver<Result<Bytes, &'static str>>) {
        let headers = [("content-type", "text/event-stream; charset=utf-8"), ("x-upstream", "yes")];
        self.will((headers, Body::new(Pieces(pieces))));
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.script.lock().unwrap().received.clone()
    }

    pub(super) fn last(&self) -> Received {
        self.received().pop().expect("the upstream was called")
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let received = Received {
        method: parts.method.to_string(),
        target: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    let mut script = script.lock().unwrap();
    script.received.push(received);
    let answer = script.answers.pop_front();
    Ok(answer.unwrap_or_else(|| (StatusCode::OK, axum::Json(completion("ok"))).into_response()))
}

/// A body with these pieces.
struct Pieces(mpsc::UnboundedReceiver<Result<Bytes, &'static str>>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece?))))
    }
}

/// A body whose length nobody knows before its end.
pub(super) fn chunked(pieces: Vec<Bytes>) -> Body {
    let (sender, receiver) = mpsc::unbounded_channel();
    for piece in pieces {
        sender.send(Ok(piece)).unwrap();
    }
    Body::new(Pieces(receiver))
}

/// A complete completion.
pub(super) fn completion(content: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    })
}

/// A stream with these words.
pub(super) fn stream(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]});
        text.push_str(&format!("data: {chunk}\n\n"));
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    text + &format!("data: {end}\n\ndata: [DONE]\n\n")
}
