//! The remote embedder against a real socket: batches, retries, refusals and wrong answers.

use std::time::Duration;

use crate::server::{Server, answer};
use serde_json::{Value, json};
use strata_core::ports::{Embedder, Passage};
use strata_core::{Error, ErrorKind};
use strata_models::remote::RemoteEmbedder;

fn embedder(server: &Server) -> RemoteEmbedder {
    RemoteEmbedder::new(&server.url, "small", Some("secret".to_owned()), Duration::from_secs(5)).unwrap()
}

fn passages(count: usize) -> Vec<Passage> {
    (0..count).map(|number| Passage { context: None, text: format!("text {number}") }).collect()
}

/// Answers as OpenAI does, a vector `[number of the text in its call, 1]` each, in reversed order.
fn embeddings(body: &str) -> Vec<u8> {
    let request: Value = serde_json::from_str(body).unwrap();
    let texts = request["input"].as_array().unwrap();
    let data: Vec<Value> = (0..texts.len())
        .rev()
        .map(|index| json!({ "object": "embedding", "index": index, "embedding": [index as f32, 1.0] }))
        .collect();
    answer("200 OK", "", json!({ "object": "list", "data": data }).to_string().as_bytes())
}

#[tokio::test]
async fn texts_travel_in_batches_and_come_back_in_order() {
    let server = Server::start(|_, request| embeddings(&request.body)).await;
    let vectors = embedder(&server).embed_passages(&passages(100)).await.unwrap();
    assert_eq!(vectors.len(), 100);
    assert_eq!(vectors[3], [3.0, 1.0]);
    assert_eq!(vectors[99], [3.0, 1.0], "the second call begins anew");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].head.starts_with("post /v1/embeddings "), "{}", requests[0].head);
    assert!(requests[0].head.contains("authorization: bearer secret"));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_as_it_wishes() {
    let server = Server::start(|number, request| match number {
        0 => answer("429 Too Many Requests", "Retry-After: 0\r\n", b"slow down"),
        1 => answer("503 Service Unavailable", "", b""),
        _ => embeddings(&request.body),
    })
    .await;
    let vectors = embedder(&server).embed_passages(&passages(1)).await.unwrap();
    assert_eq!(vectors, [[0.0, 1.0]]);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_question_is_tried_once_because_somebody_waits() {
    let server = Server::start(|_, _| answer("503 Service Unavailable", "", b"")).await;
    assert!(embedder(&server).embed_question("hello").await.is_err());
    assert_eq!(server.requests().len(), 1);
}

async fn fails_after(tries: usize, reply: fn(usize, &crate::server::Request) -> Vec<u8>) -> Error {
    let server = Server::start(reply).await;
    let error = embedder(&server).embed_passages(&passages(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(server.requests().len(), tries, "{error}");
    error
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again() {
    let error = fails_after(1, |_, _| answer("401 Unauthorized", "", b"wrong key")).await;
    assert!(error.message().contains("401") && error.message().contains("wrong key"), "{error}");
    fails_after(1, |_, _| answer("200 OK", "", b"no json")).await;
    fails_after(1, |_, _| answer("200 OK", "", br#"{"data":[{"index":0,"embedding":[1.0]}]}"#)).await;
    fails_after(3, |_, _| answer("500 Internal Server Error", "", b"")).await;
    fails_after(3, |_, _| Vec::new()).await;
}

#[tokio::test]
async fn a_changed_dimension_is_refused() {
    let server = Server::start(|number, _| {
        let vector = vec![1.0; if number == 0 { 2 } else { 3 }];
        let body = json!({ "data": [{ "index": 0, "embedding": vector }] });
        answer("200 OK", "", body.to_string().as_bytes())
    })
    .await;
    let embedder = embedder(&server);
    embedder.embed_question("one").await.unwrap();
    let error = embedder.embed_question("two").await.unwrap_err();
    assert!(error.message().contains("3 numbers, but 2 before"), "{error}");
}

#[test]
fn an_endpoint_is_a_url_with_or_without_its_version() {
    for base in ["https://host", "https://host/", "https://host/v1", "https://host/v1/embeddings"] {
        let embedder = RemoteEmbedder::new(base, "m", None, Duration::from_secs(1)).unwrap();
        assert_eq!(embedder.model().split('@').next(), Some("m"));
    }
    assert!(RemoteEmbedder::new("host/v1", "m", None, Duration::from_secs(1)).is_err());
}
