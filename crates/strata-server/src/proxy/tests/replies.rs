//! Replies of every kind: compressed, large, and under a wrong name.

use http_body_util::BodyExt;

use super::upstream::{ScriptedUpstream, completion, stream};
use super::*;
use crate::proxy::decoding::tests::{brotli, gzip};

const SAID: &str = "The lighthouse keeper 说:海上有雾。";

#[tokio::test]
async fn compressed_replies_pass_as_they_are_and_are_recorded() {
    let chatting = Chatting::start().await;
    let (document, events) =
        (completion(SAID).to_string(), stream(&["The lighthouse keeper ", "说:海上有雾。"]));
    let mut said = Vec::new();
    for (encoding, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("br", brotli)] {
        for (kind, text) in [("application/json", &document), ("text/event-stream", &events)] {
            let question = format!("{encoding} {kind}");
            let bytes = compress(text.as_bytes());
            chatting.upstream.will(([("content-type", kind), ("content-encoding", encoding)], bytes.clone()));
            let body = json!({"stream": kind.starts_with("text"), "messages": [user(&question)]});
            let response = chatting.open(body).await;
            assert_eq!(response.headers()["content-encoding"], encoding);
            let passed = response.into_body().collect().await.unwrap().to_bytes();
            assert!(passed == bytes, "{question}");
            said.extend([format!("user: {question}"), format!("assistant: {SAID}")]);
        }
    }
    assert_eq!(chatting.turns().await, said);
}

#[tokio::test]
async fn a_reply_of_20_mb_is_recorded_as_far_as_a_turn_goes() {
    let chatting = Chatting::start().await;
    let most = chatting.server.app.engine().settings().limits.max_turn_bytes;
    let long = "词".repeat(20 * 1024 * 1024 / 3);
    chatting.upstream.will_say(&long);
    let answer = chatting.chat(json!([user("one")])).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"].as_str().unwrap().len(), long.len());
    let whole: Vec<Bytes> = [Bytes::from(stream(&[&long]))].into();
    chatting.upstream.will_stream(whole);
    chatting.chat_with(json!({"stream": true, "messages": [user("two")]})).await;
    let turns = chatting.turns().await;
    assert_eq!(turns.len(), 4);
    for place in [1, 3] {
        let turn = chatting.turn(place).await;
        assert!(
            turn["content"].as_str().unwrap().len() > most - 4,
            "{}",
            turn["content"].as_str().unwrap().len()
        );
        assert_eq!((&turn["truncated"], &turn["interrupted"]), (&json!(true), &Value::Null));
    }
}

#[tokio::test]
async fn a_document_is_whole_whatever_its_server_calls_it() {
    let chatting = Chatting::start().await;
    let mut bare = completion(SAID);
    bare["choices"][0].as_object_mut().unwrap().remove("finish_reason");
    chatting.upstream.will(axum::Json(bare));
    chatting.chat(json!([user("one")])).await;
    chatting.upstream.will(([("content-type", "application/json")], stream(&[SAID])));
    chatting.chat_with(json!({"stream": true, "messages": [user("two")]})).await;
    chatting.upstream.will(completion(SAID).to_string());
    chatting.chat(json!([user("three")])).await;
    let turns = chatting.turns().await;
    assert_eq!(turns.iter().filter(|turn| **turn == format!("assistant: {SAID}")).count(), 3, "{turns:?}");
    for place in [1, 3, 5] {
        assert_eq!(chatting.turn(place).await["interrupted"], Value::Null);
    }
}

#[tokio::test]
async fn replies_that_are_held_count_among_the_bytes_under_way() {
    let upstream = ScriptedUpstream::start().await;
    let memory_deadline = Duration::from_secs(30);
    let proxy = ProxySettings { upstream: Some(upstream.url()), memory_deadline, ..ProxySettings::default() };
    let settings = Settings { proxy, max_bytes_under_way: 4 << 20, ..Settings::default() };
    let server = TestServer::over(Arc::new(InMemoryStore::new()), settings, Default::default());
    let chatting = Chatting { server, upstream };
    let long = "word ".repeat(200 * 1024);
    for _ in 0..2 {
        chatting.upstream.will_say(&long);
    }
    let ask = |question: &str| json!({"model": "m", "messages": [user(question)]});
    // It is held while its client does not read on: it was read whole, and passes in pieces.
    let mut first = chatting.open(ask("one")).await.into_body();
    assert!(first.frame().await.unwrap().is_ok());
    let second = chatting.open(ask("two")).await.into_body().collect();
    let mut second = std::pin::pin!(second);
    let soon = tokio::time::timeout(Duration::from_millis(300), second.as_mut()).await;
    assert!(soon.is_err(), "two such replies are more than there is room for");
    drop(first);
    assert!(second.await.unwrap().to_bytes().len() > long.len());
    // Small ones take no room.
    chatting.upstream.will_say("fine");
    assert_eq!(chatting.chat(json!([user("three")])).await.status, 200);
}
