//! The same life of a chat in the APIs of all providers.

use axum::http::StatusCode;
use proptest::prelude::*;

use super::*;

/// One API: its path, a request with one question, and answers that say a text.
#[derive(Debug, Clone, Copy)]
struct Door {
    path: &'static str,
    asked: fn(&str) -> Value,
    /// The question as the upstream saw it.
    sent: fn(&Value) -> &Value,
    said: fn(&str) -> Value,
    streamed: fn(&[&str]) -> String,
    kind: &'static str,
}

const EVENTS: &str = "text/event-stream";

const DOORS: [Door; 9] = [
    Door {
        path: "/v1/chat/completions",
        asked: |text| json!({"model": "m", "messages": [user(text)]}),
        sent: |body| &body["messages"][0]["content"],
        said: super::upstream::completion,
        streamed: super::upstream::stream,
        kind: EVENTS,
    },
    Door {
        path: "/openai/deployments/d-1/chat/completions?api-version=2024-10-21",
        asked: |text| json!({"messages": [user(text)]}),
        sent: |body| &body["messages"][0]["content"],
        said: super::upstream::completion,
        streamed: super::upstream::stream,
        kind: EVENTS,
    },
    Door {
        path: "/v1/responses",
        asked: |text| json!({"model": "m", "instructions": "be kind", "input": text}),
        sent: |body| &body["input"],
        said: response,
        streamed: response_stream,
        kind: EVENTS,
    },
    Door {
        path: "/v1/messages",
        asked: |text| json!({"model": "m", "max_tokens": 9, "system": "be kind", "messages": [user(text)]}),
        sent: |body| &body["messages"][0]["content"],
        said: message,
        streamed: message_stream,
        kind: EVENTS,
    },
    Door {
        path: "/api/chat",
        asked: |text| json!({"model": "m", "messages": [user(text)]}),
        sent: |body| &body["messages"][0]["content"],
        said: |text| json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": true, "done_reason": "stop"}),
        streamed: |words| lines(words, |word| json!({"message": {"role": "assistant", "content": word}})),
        kind: "application/x-ndjson",
    },
    Door {
        path: "/api/generate",
        asked: |text| json!({"model": "m", "prompt": text}),
        sent: |body| &body["prompt"],
        said: |text| json!({"model": "m", "response": text, "done": true, "done_reason": "stop"}),
        streamed: |words| lines(words, |word| json!({"response": word})),
        kind: "application/x-ndjson",
    },
    // Azure's newer paths are OpenAI's own.
    Door {
        path: "/openai/v1/chat/completions",
        asked: |text| json!({"model": "m", "messages": [user(text)]}),
        sent: |body| &body["messages"][0]["content"],
        said: super::upstream::completion,
        streamed: super::upstream::stream,
        kind: EVENTS,
    },
    Door {
        path: "/openai/v1/responses",
        asked: |text| json!({"model": "m", "input": text}),
        sent: |body| &body["input"],
        said: response,
        streamed: response_stream,
        kind: EVENTS,
    },
    Door {
        path: "/openai/responses?api-version=2025-03-01-preview",
        asked: |text| json!({"model": "m", "input": text}),
        sent: |body| &body["input"],
        said: response,
        streamed: response_stream,
        kind: EVENTS,
    },
];

fn response(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m-1", "error": null,
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}],
        "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}})
}

fn response_stream(words: &[&str]) -> String {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_1", "output": []}})];
    let delta = |word: &&str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": word});
    events.extend(words.iter().map(delta));
    events.push(json!({"type": "response.completed", "response": response(&words.concat())}));
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn message(text: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 9, "output_tokens": 2}})
}

fn message_stream(words: &[&str]) -> String {
    let mut events = vec![
        json!({"type": "message_start", "message": {"model": "m-1", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let delta = |word: &&str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}});
    events.extend(words.iter().map(delta));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]);
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn lines(words: &[&str], line: fn(&str) -> Value) -> String {
    let mut text = String::new();
    for word in words {
        let mut line = line(word);
        (line["model"], line["done"]) = (json!("m"), json!(false));
        text.push_str(&format!("{line}\n"));
    }
    let mut end = line("");
    (end["done"], end["done_reason"]) = (json!(true), json!("stop"));
    text + &format!("{end}\n")
}

impl Door {
    fn request(&self, user: &str, session: &str, body: &Value) -> Request<Body> {
        let request = request(Method::POST, self.path).header("content-type", "application/json");
        let request = request.header("x-strata-user", user).header("x-strata-session", session);
        request.body(Body::from(body.to_string())).unwrap()
    }
}

#[tokio::test]
async fn each_api_remembers_in_one_conversation_what_was_told_in_another() {
    for door in DOORS {
        let chatting = Chatting::start().await;
        chatting.upstream.will(axum::Json((door.said)("Noted.")));
        let told = (door.asked)("my canoe is called Heron");
        let answer = chatting.server.send(door.request("ada", "t", &told)).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, (door.said)("Noted.")), "{door:?}");
        assert_eq!(answer.header("x-strata-memory-items"), Some("0"), "{door:?}");
        assert_eq!(answer.header("x-strata-memory-reason"), Some("nothing-found"), "{door:?}");
        assert_eq!(chatting.upstream.last().json(), told, "nothing is known yet");
        chatting.turns().await;

        let text = (door.streamed)(&["He", "ron."]);
        chatting.upstream.will_send(door.kind, pieces(&text, &[]));
        let answer =
            chatting.server.send(door.request("ada", "s", &(door.asked)("what is my canoe called"))).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, text.as_str()), "{door:?}");
        assert_eq!(answer.header("x-strata-memory-reason"), None, "{door:?}");
        assert!(answer.header("x-strata-memory-items").unwrap().parse::<u32>().unwrap() > 0);
        assert!(answer.header("x-strata-memory-tokens").unwrap().parse::<u32>().unwrap() > 5);
        assert_eq!(answer.header("x-strata-memory-recorded"), Some("true"));
        let sent = chatting.upstream.last().json();
        let question = (door.sent)(&sent).as_str().unwrap().to_owned();
        assert!(
            question.starts_with("<strata_memory>\n") && question.contains("Heron"),
            "{door:?}: {question}"
        );
        assert!(question.ends_with("</strata_memory>\n\nwhat is my canoe called"), "{question}");
        assert_eq!(chatting.upstream.last().target, door.path);
        let turns = ["user: what is my canoe called", "assistant: Heron."];
        assert_eq!(chatting.turns().await, turns, "{door:?}");
        assert_eq!(chatting.turn(1).await.get("interrupted"), None, "{door:?}");
    }
}

#[tokio::test]
async fn errors_pass_and_are_not_recalled() {
    for door in DOORS {
        let chatting = Chatting::start().await;
        let body = r#"{"type":"error", "error": {"message":"slow down","type":"tokens"}}"#;
        let headers = [("retry-after", "20"), ("content-type", "application/json")];
        chatting.upstream.will((StatusCode::TOO_MANY_REQUESTS, headers, body));
        let answer = chatting.server.send(door.request("ada", "s", &(door.asked)("one"))).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (429, body), "{door:?}");
        let error = "assistant: The model failed with status 429: slow down (error)";
        assert_eq!(chatting.turns().await, ["user: one", error], "{door:?}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_shape_of_the_api() {
    let chatting = Chatting::start().await;
    let refused = async |path: &str| {
        let request = request(Method::POST, path).header("x-strata-memory", "perhaps");
        let answer = chatting.server.send(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 400, "{path}");
        answer.json()
    };
    for path in ["/v1/chat/completions", "/v1/responses", "/openai/deployments/d/chat/completions"] {
        assert_eq!(refused(path).await["error"]["code"], "invalid", "{path}");
    }
    let anthropic = refused("/v1/messages").await;
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
    for path in ["/api/chat", "/api/generate"] {
        assert!(refused(path).await["error"].as_str().unwrap().contains("X-Strata-Memory"), "{path}");
    }
    assert!(chatting.upstream.received().is_empty());
}

#[tokio::test]
async fn memory_is_off_read_or_write_for_a_call() {
    for door in DOORS {
        let chatting = Chatting::start().await;
        let known =
            json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
        chatting.server.post("/turns", known).await;
        let asked = (door.asked)("what is my canoe called");
        for (switch, recalls, records, reason) in [
            ("off", false, false, Some("off")),
            ("read", true, false, None),
            ("write", false, true, Some("write-only")),
            ("on", true, true, None),
        ] {
            chatting.upstream.will(axum::Json((door.said)("Heron.")));
            let mut request = door.request("ada", "s", &asked);
            request.headers_mut().insert("x-strata-memory", switch.parse().unwrap());
            let answer = chatting.server.send(request).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("x-strata-memory-reason"), reason, "{switch} {door:?}");
            let recorded = if records { "true" } else { "false" };
            assert_eq!(answer.header("x-strata-memory-recorded"), Some(recorded), "{switch} {door:?}");
            let sent = chatting.upstream.last().json();
            let has_block = (door.sent)(&sent).as_str().unwrap().contains("<strata_memory>");
            assert_eq!(has_block, recalls, "{switch} {door:?}");
            assert_eq!(chatting.turns().await.is_empty(), !records, "{switch} {door:?}");
        }
    }
}

#[tokio::test]
async fn a_request_in_which_nobody_says_anything_leaves_no_trace() {
    let chatting = Chatting::start().await;
    for (path, body) in [
        ("/v1/chat/completions", json!({"model": "m", "messages": []})),
        ("/v1/chat/completions", json!({"model": "m", "messages": [{"role": "system", "content": "write"}]})),
        ("/v1/responses", json!({"model": "m", "instructions": "write", "input": []})),
        ("/v1/responses", json!({"prompt": {"id": "pmpt_1"}})),
        ("/v1/chat/completions", json!({"model": "m", "messages": [{"role": "user", "content": 5}]})),
        ("/v1/messages", json!({"model": "m", "max_tokens": 5, "messages": []})),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": 5}]}),
        ),
        ("/api/chat", json!({"model": "m", "messages": [{"role": "user", "content": {"text": "hi"}}]})),
        ("/api/chat", json!({"model": "m", "keep_alive": 0})),
        ("/api/generate", json!({"model": "m"})),
        ("/api/generate", json!({"model": "m", "prompt": "def area(", "suffix": "return", "stream": false})),
        ("/api/generate", json!({"model": "m", "prompt": "[INST] hello [/INST]", "raw": true})),
    ] {
        let request = request(Method::POST, path).header("content-type", "application/json");
        let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
        let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.header("x-strata-memory-reason"), Some("no-question"), "{path} {body}");
        assert_eq!(answer.header("x-strata-memory-recorded"), Some("false"), "{path} {body}");
        assert_eq!(chatting.upstream.last().json(), body);
    }
    assert!(chatting.turns().await.is_empty());
    assert_eq!(chatting.rows().await, json!([]));
}

#[tokio::test]
async fn half_a_character_is_passed_on_and_read_as_one_that_is_missing() {
    let chatting = Chatting::start().await;
    chatting.server.post("/memories", json!({"user_id": "ada", "text": "the canoe is called Heron"})).await;
    let half = r#"what is the canoe called \ud83d"#;
    for (path, body) in [
        ("/v1/chat/completions", format!(r#"{{"messages":[{{"role":"user","content":"{half}"}}]}}"#)),
        ("/v1/responses", format!(r#"{{"input":"{half}"}}"#)),
        ("/api/generate", format!(r#"{{"prompt":"{half}"}}"#)),
    ] {
        let request = request(Method::POST, path).header("content-type", "application/json");
        let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
        let answer = chatting.server.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.header("x-strata-memory-reason"), None, "{path}");
        let sent = String::from_utf8(chatting.upstream.last().body.to_vec()).unwrap();
        assert!(sent.contains("Heron") && sent.contains(half), "{sent}");
    }
    assert_eq!(chatting.turns().await[0], "user: what is the canoe called \u{fffd}");
    // A name that cannot be read must not become the default one.
    let named = r#"{"user":"ann\ud83d","messages":[{"role":"user","content":"hello"}]}"#;
    let request = request(Method::POST, "/v1/chat/completions").header("content-type", "application/json");
    let answer = chatting.server.send(request.body(Body::from(named)).unwrap()).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(answer.body.contains("`user`"), "{}", answer.body);
}

#[tokio::test]
async fn a_reply_that_the_client_begins_is_one_turn() {
    let chatting = Chatting::start().await;
    let asked = json!({"role": "user", "content": "name a colour"});
    let send = async |messages: Value| {
        let body = json!({"model": "m", "max_tokens": 5, "messages": messages});
        let request = request(Method::POST, "/v1/messages").header("content-type", "application/json");
        let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
        chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        chatting.turns().await
    };
    chatting.upstream.will(axum::Json(message(" is green.")));
    let turns = send(json!([asked, {"role": "assistant", "content": "My colour"}])).await;
    assert_eq!(turns, ["user: name a colour", "assistant: My colour is green."]);
    chatting.upstream.will(axum::Json(message("Yes.")));
    let whole = json!({"role": "assistant", "content": "My colour is green."});
    let turns = send(json!([asked, whole, {"role": "user", "content": "really"}])).await;
    let expected =
        ["user: name a colour", "assistant: My colour is green.", "user: really", "assistant: Yes."];
    assert_eq!(turns, expected);
}

/// A provider that stores nothing keeps no conversation: the client sends it whole each time.
#[tokio::test]
async fn a_response_that_is_not_stored_has_memory_and_is_recorded_once() {
    let chatting = Chatting::start().await;
    let known = json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
    chatting.server.post("/turns", known).await;
    let door = DOORS[2];
    let mut items = vec![json!({"role": "user", "content": "what is my canoe called"})];
    for said in ["Heron.", "Green."] {
        chatting.upstream.will(axum::Json(response(said)));
        let body =
            json!({"model": "m", "store": false, "include": ["reasoning.encrypted_content"], "input": items});
        let answer = chatting.server.send(door.request("ada", "s", &body)).await;
        assert_eq!(answer.header("x-strata-memory-recorded"), Some("true"));
        let sent = chatting.upstream.last().json();
        assert_eq!((&sent["store"], &sent["include"]), (&json!(false), &body["include"]));
        items.extend(response(said)["output"].as_array().unwrap().iter().cloned());
        items.push(json!({"role": "user", "content": "and which colour has it"}));
        chatting.turns().await;
    }
    let sent = chatting.upstream.received()[0].json().to_string();
    assert!(sent.contains("<strata_memory>") && sent.contains("Heron"), "{sent}");
    let expected = [
        "user: what is my canoe called",
        "assistant: Heron.",
        "user: and which colour has it",
        "assistant: Green.",
    ];
    assert_eq!(chatting.turns().await, expected);
}

#[tokio::test]
async fn a_conversation_that_the_provider_keeps_goes_on() {
    let chatting = Chatting::start().await;
    let door = DOORS[2];
    for (number, (said, replied)) in
        [("yes", "Go on."), ("yes", "Again?"), ("no", "Fine.")].into_iter().enumerate()
    {
        chatting.upstream.will(axum::Json(response(replied)));
        let mut body = (door.asked)(said);
        if number > 0 {
            body["previous_response_id"] = json!("resp_1");
        }
        chatting.server.send(door.request("ada", "s", &body)).await;
        chatting.turns().await;
    }
    // A client repeats a request that failed.
    chatting.upstream.will((StatusCode::INTERNAL_SERVER_ERROR, "{}"));
    let body = json!({"input": "why", "conversation": "conv_1"});
    chatting.server.send(door.request("ada", "s", &body)).await;
    chatting.turns().await;
    chatting.upstream.will(axum::Json(response("Because.")));
    chatting.server.send(door.request("ada", "s", &body)).await;
    let turns = chatting.turns().await;
    let expected = [
        "user: yes",
        "assistant: Go on.",
        "user: yes",
        "assistant: Again?",
        "user: no",
        "assistant: Fine.",
        "user: why",
    ];
    assert_eq!(turns[..7], expected);
    assert_eq!(turns.last().unwrap(), "assistant: Because.");
    assert_eq!(turns.len(), 9, "{turns:?}");
}

#[tokio::test]
async fn the_rest_of_each_api_is_passed_on() {
    let chatting = Chatting::start().await;
    for (method, path) in [
        (Method::GET, "/v1/responses/resp_1?include[]=x"),
        (Method::DELETE, "/v1/responses/resp_1"),
        (Method::POST, "/v1/responses/resp_1/cancel"),
        (Method::GET, "/v1/responses/resp_1/input_items"),
        (Method::POST, "/v1/messages/count_tokens"),
        (Method::POST, "/v1/messages/batches"),
        (Method::GET, "/api/tags"),
        (Method::POST, "/api/embed"),
        (Method::DELETE, "/api/delete"),
        (Method::POST, "/openai/deployments/d/embeddings?api-version=1"),
        (Method::GET, "/openai/models"),
        (Method::POST, "/v1/embeddings"),
        (Method::POST, "/v1/audio/speech"),
        (Method::POST, "/v1/images/generations"),
        (Method::POST, "/v1/images/edits"),
        (Method::POST, "/v1/batches"),
        (Method::GET, "/v1/batches/batch_1"),
        (Method::POST, "/v1/files"),
    ] {
        let body = r#"{"messages":[{"role":"user","content":"count me"}]}"#;
        let request = request(method.clone(), path).header("content-type", "application/json");
        let answer = chatting.server.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, 200, "{path}");
        let sent = chatting.upstream.last();
        assert_eq!((sent.method.as_str(), sent.target.as_str()), (method.as_str(), path));
        assert_eq!(sent.body, body, "{path}");
        let is_text = answer.header("x-strata-memory-reason").is_some();
        assert_eq!(is_text, path.ends_with("/batches"), "{path}");
    }
    assert!(chatting.server.heads().await.is_empty(), "nothing is recorded");
}

#[tokio::test]
async fn a_key_of_the_upstreams_is_sent_as_its_api_takes_it() {
    let chatting = Chatting::with(|proxy| proxy.upstream_key = Some(crate::Secret::new("ours"))).await;
    for (path, name, value) in [
        ("/v1/chat/completions", "authorization", "Bearer ours"),
        ("/v1/responses", "authorization", "Bearer ours"),
        ("/v1/messages", "x-api-key", "ours"),
        ("/v1/messages/count_tokens", "x-api-key", "ours"),
        ("/openai/deployments/d/chat/completions", "api-key", "ours"),
        ("/api/chat", "authorization", "Bearer ours"),
    ] {
        let request = request(Method::POST, path)
            .header("authorization", "Bearer theirs")
            .header("x-api-key", "theirs")
            .header("api-key", "theirs")
            .header("anthropic-beta", "b-1");
        chatting.server.send(request.body(Body::from(r#"{"messages":[]}"#)).unwrap()).await;
        let sent = chatting.upstream.last();
        for header in ["authorization", "x-api-key", "api-key"] {
            let expected = (header == name).then_some(value);
            assert_eq!(sent.header(header), expected, "{path} {header}");
        }
        assert_eq!(sent.header("anthropic-beta"), Some("b-1"));
    }
}

#[tokio::test]
async fn a_clients_own_key_and_version_pass() {
    let chatting = Chatting::start().await;
    let request = request(Method::POST, "/v1/messages")
        .header("x-api-key", "sk-ant-1")
        .header("anthropic-version", "2023-06-01");
    chatting.server.send(request.body(Body::from(r#"{"messages":[]}"#)).unwrap()).await;
    let sent = chatting.upstream.last();
    assert_eq!(sent.header("x-api-key"), Some("sk-ant-1"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn tools_in_a_loop_are_recorded_once_and_the_block_stays() {
    let chatting = Chatting::start().await;
    let known = json!({"user_id": "ada", "session_id": "t", "messages": [user("the key is under the mat")]});
    chatting.server.post("/turns", known).await;
    let door = DOORS[3];
    let call = json!({"type": "tool_use", "id": "t1", "name": "look", "input": {}});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let mut asks = message("I look.");
    asks["content"].as_array_mut().unwrap().insert(0, thought.clone());
    asks["content"].as_array_mut().unwrap().push(call.clone());
    chatting.upstream.will(axum::Json(asks.clone()));
    let mut body = (door.asked)("where is the key");
    chatting.server.send(door.request("ada", "s", &body)).await;
    let first = chatting.sent()[0].clone();
    assert!(first["content"].as_str().unwrap().contains("under the mat"));
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "there"}]});
    let messages = body["messages"].as_array_mut().unwrap();
    messages.extend([json!({"role": "assistant", "content": asks["content"]}), result.clone()]);
    chatting.upstream.will(axum::Json(message("There.")));
    let answer = chatting.server.send(door.request("ada", "s", &body)).await;
    assert!(answer.header("x-strata-memory-items").unwrap().parse::<u32>().unwrap() > 0);
    assert_eq!(chatting.sent()[0], first, "byte for byte");
    assert_eq!(chatting.sent()[2], result);
    let turns = ["user: where is the key", "assistant: I look.", "tool: there", "assistant: There."];
    assert_eq!(chatting.turns().await, turns);
    assert_eq!(
        chatting.turn(1).await["tool_calls"],
        json!([{"id": "t1", "name": "look", "arguments": "{}"}])
    );
}

#[tokio::test]
async fn a_response_that_calls_tools_comes_back_as_items_and_is_recorded_once() {
    let chatting = Chatting::start().await;
    let door = DOORS[2];
    let mut asks = response("I look.");
    let reasoning = json!({"type": "reasoning", "id": "r1", "summary": []});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"});
    asks["output"].as_array_mut().unwrap().insert(0, reasoning);
    asks["output"].as_array_mut().unwrap().push(call);
    chatting.upstream.will(axum::Json(asks.clone()));
    let mut items = vec![json!({"role": "user", "content": "where is the key"})];
    chatting.server.send(door.request("ada", "s", &json!({"input": items}))).await;
    items.extend(asks["output"].as_array().unwrap().iter().cloned());
    items.push(json!({"type": "function_call_output", "call_id": "c1", "output": "there"}));
    chatting.upstream.will(axum::Json(response("There.")));
    chatting.server.send(door.request("ada", "s", &json!({"input": items}))).await;
    assert_eq!(chatting.upstream.last().json(), json!({"input": items}));
    let turns = ["user: where is the key", "assistant: I look.", "tool: there", "assistant: There."];
    assert_eq!(chatting.turns().await, turns);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A stream of any API arrives as it was sent, wherever it is cut.
    #[test]
    fn a_stream_arrives_as_it_was_sent(
        words in proptest::collection::vec("[a-z\r\"长é🦀 ]{0,6}", 1..5),
        cuts in proptest::collection::vec(any::<usize>(), 0..16),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for door in DOORS {
                let chatting = Chatting::start().await;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let text = (door.streamed)(&words);
                chatting.upstream.will_send(door.kind, pieces(&text, &cuts));
                let answer = chatting.server.send(door.request("ada", "s", &(door.asked)("go on"))).await;
                assert_eq!(answer.body, text, "{door:?}");
                let expected = format!("assistant: {}", words.concat());
                let turns = chatting.turns().await;
                assert_eq!(turns[1], expected, "{door:?}");
            }
        });
    }
}

/// Streams that think, speak and call a tool, in each API that can.
fn rich_streams() -> [(&'static str, Value, &'static str, String); 4] {
    let named = |events: &[Value]| -> String {
        let written =
            |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        events.iter().map(written).collect()
    };
    let chunk = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let called = |id: Value, name: Value, arguments: &str| json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]});
    let completions = [
        chunk(json!({"role": "assistant", "reasoning_content": "hm, é"}), Value::Null),
        chunk(json!({"content": "I "}), Value::Null),
        chunk(json!({"content": "look."}), Value::Null),
        chunk(called(json!("c1"), json!("look"), ""), Value::Null),
        chunk(called(Value::Null, Value::Null, "{\"at\":\"长"), Value::Null),
        chunk(called(Value::Null, Value::Null, "🦀\"}"), json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let arguments = "{\"at\":\"长🦀\"}";
    let reasoning =
        json!({"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm, é"}]});
    let call =
        json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "look", "arguments": arguments});
    let mut whole = response("I look.");
    whole["output"].as_array_mut().unwrap().insert(0, reasoning.clone());
    whole["output"].as_array_mut().unwrap().push(call.clone());
    let begun =
        json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "look", "arguments": ""});
    let responses = named(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "output": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm, é"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "I "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": begun}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"at\":\"长"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "🦀\"}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        json!({"type": "response.completed", "response": whole}),
    ]);
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let messages = named(&[
        json!({"type": "message_start", "message": {"model": "m-1", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm, é"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I look."})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"at\":\"长"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "🦀\"}"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]);
    let tool = json!([{"function": {"name": "look", "arguments": {"at": "长🦀"}}}]);
    let ollama: String = [
        json!({"message": {"role": "assistant", "content": "", "thinking": "hm, é"}, "done": false}),
        json!({"message": {"role": "assistant", "content": "I "}, "done": false}),
        json!({"message": {"role": "assistant", "content": "look."}, "done": false}),
        json!({"message": {"role": "assistant", "content": "", "tool_calls": tool}, "done": false}),
        json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"}),
    ]
    .iter()
    .map(|line| format!("{line}\n"))
    .collect();
    [
        (DOORS[0].path, (DOORS[0].asked)("look around"), EVENTS, completions.concat()),
        (DOORS[2].path, (DOORS[2].asked)("look around"), EVENTS, responses),
        (DOORS[3].path, (DOORS[3].asked)("look around"), EVENTS, messages),
        (DOORS[4].path, (DOORS[4].asked)("look around"), "application/x-ndjson", ollama),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A stream that thinks and calls a tool arrives as it was sent, wherever it is cut, and its words and its call are recorded.
    #[test]
    fn a_stream_with_thoughts_and_calls_arrives_as_it_was_sent(
        cuts in proptest::collection::vec(any::<usize>(), 0..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (path, asked, kind, text) in rich_streams() {
                let chatting = Chatting::start().await;
                chatting.upstream.will_send(kind, pieces(&text, &cuts));
                let request = request(Method::POST, path).header("x-strata-user", "ada").header("x-strata-session", "s");
                let answer = chatting.server.send(request.body(Body::from(asked.to_string())).unwrap()).await;
                assert_eq!(answer.body, text, "{path}");
                assert_eq!(chatting.turns().await[1], "assistant: I look.", "{path}");
                let turn = chatting.turn(1).await;
                let call = &turn["tool_calls"][0];
                assert_eq!(call["name"], "look", "{path}: {turn}");
                assert!(call["arguments"].to_string().contains("长🦀"), "{path}: {turn}");
                assert_eq!(turn["tool_calls"].as_array().unwrap().len(), 1, "{path}: {turn}");
            }
        });
    }
}
