//! The day and the speaker of what was said reach every client.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::testing::{TestServer, request};

const SAID: &str = "2022-09-03T10:00:00Z";

async fn spoken() -> TestServer {
    let server = TestServer::new();
    let messages = json!([
        {"role": "user", "name": "Ingrid", "content": "I passed the pilot exam.", "created_at": SAID},
        {"role": "assistant", "content": "The pilot exam is hard.", "created_at": "2022-09-04T10:00:00Z"},
    ]);
    server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": messages})).await;
    server
}

async fn tool(server: &TestServer, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = request(Method::POST, "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("x-strata-user", "ada");
    let answer = server.send(request.body(Body::from(message.to_string())).unwrap()).await;
    answer.json()["result"]["structuredContent"].clone()
}

fn item(found: &Value, text: &str) -> Value {
    let results = found["results"].as_array().unwrap();
    results.iter().find(|item| item["memory"].as_str().unwrap().contains(text)).unwrap().clone()
}

#[tokio::test]
async fn a_search_names_the_speaker_and_the_time() {
    let server = spoken().await;
    let body = json!({"query": "pilot exam", "user_id": "ada"});
    let over_http = server.post("/search", body).await.json();
    let over_mcp = tool(&server, "search_memories", json!({"query": "pilot exam"})).await;
    for found in [over_http, over_mcp] {
        let passed = item(&found, "I passed");
        assert_eq!((&passed["name"], &passed["said_at"]), (&json!("Ingrid"), &json!(SAID)), "{found}");
        let hard = item(&found, "is hard");
        assert_eq!((hard.get("name"), &hard["role"]), (None, &json!("assistant")), "{found}");
    }
}

#[tokio::test]
async fn a_conversation_s_context_names_speakers_and_times() {
    let server = spoken().await;
    let context = tool(&server, "get_context", json!({"session_id": "s"})).await;
    let history = &context["recent_history"];
    assert_eq!((&history[0]["name"], &history[0]["said_at"]), (&json!("Ingrid"), &json!(SAID)), "{context}");
    assert_eq!((history[1].get("name"), &history[1]["said_at"]), (None, &json!("2022-09-04T10:00:00Z")));
}

#[tokio::test]
async fn prompts_show_days_and_speakers() {
    let server = spoken().await;
    let prompt = async |session: &str, format: &str| {
        let body = json!({"question": "Who passed the pilot exam?", "format": format, "user_id": "ada"});
        server.post(&format!("/sessions/{session}/prompt"), body).await.json()
    };
    let flat = prompt("s", "flat").await["prompt"].as_str().unwrap().to_owned();
    assert!(flat.contains("\n[2022-09-03 Ingrid] I passed the pilot exam.\n"), "{flat}");
    assert!(flat.contains("\n[2022-09-04 assistant] The pilot exam is hard.\n"), "{flat}");
    let chat = prompt("s", "chat").await;
    assert_eq!(chat["messages"][0]["content"], "[2022-09-03 Ingrid] I passed the pilot exam.");
    assert_eq!(chat["messages"][1]["content"], "The pilot exam is hard.", "the model's own words");
    let elsewhere = prompt("t", "chat").await["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(
        elsewhere.contains("\n[2022-09-03 Ingrid, 3 years ago] I passed the pilot exam.\n"),
        "{elsewhere}"
    );
}

#[tokio::test]
async fn mem0_s_client_gets_the_speaker_and_the_time() {
    let server = TestServer::new();
    let said = json!([{"role": "user", "name": "Ingrid", "content": "I live in Bergen", "created_at": SAID}]);
    server.post("/turns", json!({"user_id": "ada", "session_id": "s", "messages": said})).await;
    let user = strata_core::UserId::new("ada").unwrap();
    let turns = server.app.engine().sessions.turns(&user, &"s".parse().unwrap(), None, 10).await.unwrap();
    let memory = strata_engine::NewMemory::new("Ingrid lives in Bergen");
    let added = server.app.engine().memories.add(&user, vec![memory]).await.unwrap().pop().unwrap();
    let query = json!({"query": "Bergen", "filters": {"user_id": "ada"}});
    let found = server.post("/v3/memories/search/", query).await.json();
    let shown = item(&found, "Bergen");
    assert_eq!((shown.get("name"), shown["said_at"].is_string()), (None, true), "{found}");
    // With a source turn, its speaker and its time.
    let mut memory = added;
    memory.source_turns = vec![turns[0].id];
    let sources = super::memory::Sources::load(server.app.engine(), &user, [&memory]).await.unwrap();
    assert_eq!(
        (sources.name(&memory), sources.said_at(&memory).to_string()),
        (Some("Ingrid".into()), SAID.into())
    );
}
