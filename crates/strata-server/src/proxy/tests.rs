//! The proxy in process, in front of a scripted upstream on a real socket.

mod background;
mod compaction;
mod compressed;
mod doors;
mod harness;
mod memory;
mod names;
mod new_session;
mod passing;
mod receiving;
mod replies;
mod stored;
mod upstream;
mod upstreams;
mod walls;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use strata_core::store::InMemoryStore;
use tower::ServiceExt;
use upstream::ScriptedUpstream;

use crate::testing::{Answer, TestServer, request};
use crate::{ProxySettings, Settings};

/// A server in front of a scripted upstream.
struct Chatting {
    server: TestServer,
    upstream: ScriptedUpstream,
}

impl Chatting {
    async fn start() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut ProxySettings)) -> Self {
        let upstream = ScriptedUpstream::start().await;
        // No test waits for memory; a long deadline only tolerates a loaded machine.
        let memory_deadline = Duration::from_secs(30);
        let mut proxy =
            ProxySettings { upstream: Some(upstream.url()), memory_deadline, ..ProxySettings::default() };
        change(&mut proxy);
        // The absence of keys is looked up once, so that only the chat meets a store that does not answer.
        let keys_remembered = Duration::from_secs(3_600);
        let settings = Settings { proxy, keys_remembered, ..Settings::default() };
        let server = TestServer::over(Arc::new(InMemoryStore::new()), settings, Default::default());
        Self { server, upstream }
    }

    /// A chat in session `s` of user `ada`.
    async fn chat(&self, messages: Value) -> Answer {
        self.chat_with(json!({"model": "m", "messages": messages})).await
    }

    async fn chat_with(&self, body: Value) -> Answer {
        self.server.send(chat_request(body)).await
    }

    /// An answer whose body has not been read.
    async fn open(&self, body: Value) -> Response {
        crate::router::router(self.server.app.clone()).oneshot(chat_request(body)).await.unwrap()
    }

    /// The turns of session `s` as `role: content`, a hidden one with its reason.
    async fn turns(&self) -> Vec<String> {
        self.server.app.proxy().finish(Duration::from_secs(30)).await;
        let answer = self.server.get("/sessions/s/turns?user_id=ada&limit=1000").await.json();
        let turn = |turn: &Value| {
            let why = turn["hidden"]["reason"].as_str().or_else(|| turn["hidden"].as_str());
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{}: {}{why}", turn["role"].as_str().unwrap(), turn["content"].as_str().unwrap())
        };
        answer["turns"].as_array().map(|turns| turns.iter().map(turn).collect()).unwrap_or_default()
    }

    async fn turn(&self, place: usize) -> Value {
        self.server.get("/sessions/s/turns?user_id=ada").await.json()["turns"][place].clone()
    }

    async fn rows(&self) -> Value {
        self.server.app.proxy().finish(Duration::from_secs(30)).await;
        self.server.get("/requests?user_id=ada").await.json()["requests"].clone()
    }

    /// The messages of the request that the upstream saw last.
    fn sent(&self) -> Value {
        self.upstream.last().json()["messages"].clone()
    }
}

fn chat_request(body: Value) -> Request<Body> {
    let request = request(Method::POST, "/v1/chat/completions").header("content-type", "application/json");
    let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
    request.body(Body::from(body.to_string())).unwrap()
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: &str) -> Value {
    json!({"role": "assistant", "content": content})
}

/// The bytes of a stream, cut into these pieces.
fn pieces(text: &str, cuts: &[usize]) -> Vec<Bytes> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    cuts.windows(2).filter(|cut| cut[0] < cut[1]).map(|cut| bytes.slice(cut[0]..cut[1])).collect()
}
