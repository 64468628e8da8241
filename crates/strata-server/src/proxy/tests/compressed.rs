//! Bodies of chats that clients send compressed.

use super::*;
use crate::proxy::decoding::tests::{brotli, gzip};

async fn send(chatting: &Chatting, path: &str, encoding: &str, body: Vec<u8>) -> Answer {
    let request = request(Method::POST, path)
        .header("content-type", "application/json")
        .header("content-encoding", encoding);
    let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
    chatting.server.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn a_compressed_chat_has_memory() {
    for path in ["/v1/chat/completions", "/v1/messages", "/api/chat"] {
        for (encoding, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("br", brotli)] {
            let chatting = Chatting::start().await;
            let known =
                json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
            chatting.server.post("/turns", known).await;
            let body = json!({"model": "m", "messages": [user("what is my canoe called")]}).to_string();
            let answer = send(&chatting, path, encoding, pack(body.as_bytes())).await;
            assert_eq!(answer.status, 200, "{path} {encoding}: {}", answer.body);
            let sent = chatting.upstream.last();
            assert_eq!(sent.header("content-encoding"), None, "{path} {encoding}");
            assert!(sent.json()["messages"][0]["content"].as_str().unwrap().contains("Heron"));
            assert_eq!(chatting.turns().await[0], "user: what is my canoe called");
        }
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_unpacked_passes_as_it_came() {
    let small = Chatting::with(|proxy| proxy.max_body_bytes = 10_000).await;
    let bomb = gzip(json!({"messages": [user(&"a".repeat(1_000_000))]}).to_string().as_bytes());
    for (encoding, body) in [
        ("zstd", b"\x28\xb5\x2f\xfd".to_vec()),
        ("gzip, br", b"x".to_vec()),
        ("gzip", b"{}".to_vec()),
        ("gzip", bomb),
    ] {
        let answer = send(&small, "/v1/chat/completions", encoding, body.clone()).await;
        assert_eq!(answer.status, 200, "{encoding}: {}", answer.body);
        assert_eq!(answer.header("x-strata-memory-reason"), Some("compressed"), "{encoding}");
        assert_eq!(answer.header("x-strata-memory-recorded"), Some("false"), "{encoding}");
        let sent = small.upstream.last();
        assert_eq!((sent.header("content-encoding"), sent.body.to_vec()), (Some(encoding), body));
    }
    assert!(small.turns().await.is_empty());
}
