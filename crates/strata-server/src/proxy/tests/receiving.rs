//! Bodies of chats and the room that they share.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

use super::*;
use crate::proxy::decoding::tests::gzip;

const MIB: usize = 1024 * 1024;

/// A body whose rest comes when a gate opens.
struct Gated {
    first: Option<Bytes>,
    rest: Option<Bytes>,
    gate: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether the head of the request says how long it is.
    is_declared: bool,
    /// The bodies whose rest is awaited.
    waiting: Arc<AtomicUsize>,
}

impl HttpBody for Gated {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.rest.is_some() && self.gate.as_mut().poll(context).is_pending() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            return Poll::Pending;
        }
        Poll::Ready(self.rest.take().map(|rest| Ok(Frame::data(rest))))
    }

    fn size_hint(&self) -> SizeHint {
        let left = [&self.first, &self.rest].into_iter().flatten().map(|bytes| bytes.len() as u64).sum();
        if self.is_declared { SizeHint::with_exact(left) } else { SizeHint::default() }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }
}

/// Text that hardly shrinks when it is packed.
fn noise(bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state % 75) as u8)
    };
    (0..bytes).map(|_| letter()).filter(|letter| *letter != '\\').collect()
}

/// Many chats whose bodies all begin before any of them ends. Returns how many of them were answered.
async fn answered(
    chatting: &Chatting,
    count: usize,
    encoding: &str,
    body: &[u8],
    is_declared: bool,
) -> usize {
    let (open, gate) = watch::channel(false);
    let waiting = Arc::<AtomicUsize>::default();
    let router = crate::router::router(chatting.server.app.clone());
    let chats: Vec<_> = (0..count)
        .map(|number| {
            let (first, rest) = body.split_at(300 * 1024);
            let mut gate = gate.clone();
            let gated = Gated {
                first: Some(Bytes::copy_from_slice(first)),
                rest: Some(Bytes::copy_from_slice(rest)),
                gate: Box::pin(async move { drop(gate.wait_for(|is_open| *is_open).await) }),
                is_declared,
                waiting: Arc::clone(&waiting),
            };
            let mut request = request(Method::POST, "/v1/chat/completions")
                .header("content-type", "application/json")
                .header("x-strata-memory", "off")
                .header("x-strata-session", format!("s{number}"));
            if !encoding.is_empty() {
                request = request.header("content-encoding", encoding);
            }
            tokio::spawn(router.clone().oneshot(request.body(Body::new(gated)).unwrap()))
        })
        .collect();
    // All get as far as they can.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(waiting.load(Ordering::SeqCst) > 0);
    open.send_replace(true);
    let mut answered = 0;
    for chat in chats {
        answered += usize::from(chat.await.unwrap().unwrap().status() == StatusCode::OK);
    }
    answered
}

/// A server with little room for bodies.
async fn cramped() -> Chatting {
    let upstream = ScriptedUpstream::start().await;
    let memory_deadline = Duration::from_secs(30);
    let max_body_bytes = 8 * MIB;
    let proxy = ProxySettings {
        upstream: Some(upstream.url()),
        memory_deadline,
        max_body_bytes,
        ..Default::default()
    };
    let settings = Settings {
        proxy,
        max_bytes_under_way: 16 * MIB,
        body_timeout: Duration::from_secs(240),
        ..Settings::default()
    };
    let server = TestServer::over(Arc::new(InMemoryStore::new()), settings, Default::default());
    Chatting { server, upstream }
}

#[tokio::test]
async fn chats_that_begin_together_do_not_block_one_another() {
    let body = json!({"model": "m", "messages": [user(&noise(450 * 1024))]}).to_string();
    let packed = gzip(body.as_bytes());
    assert!(packed.len() > 310 * 1024, "{}", packed.len());
    // So many that together they would hold all the room if each kept a part of it and waited for more.
    for (encoding, body, is_declared, count) in [
        ("gzip", packed.as_slice(), true, 30),
        ("gzip", packed.as_slice(), false, 30),
        ("", body.as_bytes(), false, 30),
    ] {
        let chatting = cramped().await;
        let answered = answered(&chatting, count, encoding, body, is_declared).await;
        assert_eq!(answered, count, "{encoding} {is_declared}");
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_takes_its_room_before_it_is_read() {
    let chatting = cramped().await;
    let (open, gate) = watch::channel(false);
    let waiting = Arc::<AtomicUsize>::default();
    let body = json!({"model": "m", "messages": [user(&noise(MIB))]}).to_string().into_bytes();
    let chat = |number: usize| {
        let mut gate = gate.clone();
        let gated = Gated {
            first: Some(Bytes::copy_from_slice(&body[..300 * 1024])),
            rest: Some(Bytes::copy_from_slice(&body[300 * 1024..])),
            gate: Box::pin(async move { drop(gate.wait_for(|is_open| *is_open).await) }),
            is_declared: false,
            waiting: Arc::clone(&waiting),
        };
        let request = request(Method::POST, "/v1/messages").header("x-strata-session", format!("s{number}"));
        let router = crate::router::router(chatting.server.app.clone());
        tokio::spawn(router.oneshot(request.body(Body::new(gated)).unwrap()))
    };
    let chats = [chat(1), chat(2), chat(3)];
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // Three quarters of the room are for large bodies, so only one of the largest fits.
    assert_eq!(waiting.load(Ordering::SeqCst), 1, "the others are not read on");
    open.send_replace(true);
    for chat in chats {
        assert_eq!(chat.await.unwrap().unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_text_that_is_packed_unusually_well_is_read() {
    let chatting = cramped().await;
    let body = json!({"model": "m", "messages": [user(&"tide ".repeat(MIB))]}).to_string();
    let packed = gzip(body.as_bytes());
    assert!(packed.len() * 32 < body.len());
    let request = request(Method::POST, "/v1/chat/completions").header("content-encoding", "gzip");
    let answer = chatting.server.send(request.body(Body::from(packed)).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(chatting.upstream.last().body.len() >= body.len());
}
