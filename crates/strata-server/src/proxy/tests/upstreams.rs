//! Several upstreams, and what they have stored.

use super::*;
use crate::{ModelPattern, Secret, UpstreamApi, UpstreamSettings};

/// A server in front of three upstreams: one for `claude-*`, one for `llama*`, and the main one.
struct Several {
    chatting: Chatting,
    claude: ScriptedUpstream,
    llama: ScriptedUpstream,
}

impl Several {
    async fn start() -> Self {
        let (claude, llama) = (ScriptedUpstream::start().await, ScriptedUpstream::start().await);
        let one = |pattern: &str, upstream: &ScriptedUpstream, api, key: Option<&str>| UpstreamSettings {
            models: vec![ModelPattern::new(pattern)],
            url: upstream.url(),
            api,
            key: key.map(Secret::new),
            timeout: None,
            transport: Default::default(),
            retries: 0,
        };
        let upstreams = vec![
            one("claude-*", &claude, UpstreamApi::Anthropic, Some("sk-ant")),
            one("llama*", &llama, UpstreamApi::Ollama, None),
        ];
        let chatting = Chatting::with(|proxy| proxy.upstreams = upstreams).await;
        Self { chatting, claude, llama }
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        let request = request(method, path).header("content-type", "application/json");
        let request = request.header("x-strata-user", "ada").header("x-strata-session", "s");
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.chatting.server.send(request.body(body).unwrap()).await
    }

    /// The same upstreams behind a new process with the same store. Its settings list them in another order.
    async fn restarted(self) -> Self {
        let app = &self.chatting.server.app;
        app.proxy().finish(Duration::from_secs(30)).await;
        let mut settings = app.settings().clone();
        settings.proxy.upstreams.reverse();
        let server = TestServer::over(Arc::clone(app.engine().store()), settings, Default::default());
        Self { chatting: Chatting { server, ..self.chatting }, ..self }
    }

    /// The number of requests that each upstream has seen.
    fn seen(&self) -> [usize; 3] {
        [&self.claude, &self.llama, &self.chatting.upstream].map(|upstream| upstream.received().len())
    }
}

#[tokio::test]
async fn a_model_chooses_its_upstream() {
    let several = Several::start().await;
    let check = async |path: &str, body: Value, expected: [usize; 3]| {
        let before = several.seen();
        several.send(Method::POST, path, body.clone()).await;
        let after = several.seen();
        let seen = [0, 1, 2].map(|place| after[place] - before[place]);
        assert_eq!(seen, expected, "{path} {body}");
    };
    let (claude, llama, main) = ([1, 0, 0], [0, 1, 0], [0, 0, 1]);
    let ask = |model: &str| json!({"model": model, "messages": [user("hi there")]});
    check("/v1/chat/completions", ask("claude-9"), claude).await;
    assert_eq!(several.claude.last().header("authorization"), Some("Bearer sk-ant"));
    check("/v1/messages", ask("claude-9"), claude).await;
    assert_eq!(several.claude.last().header("x-api-key"), Some("sk-ant"));
    check("/v1/chat/completions", ask("llama3:8b"), llama).await;
    check("/api/chat", ask("llama3:8b"), llama).await;
    assert_eq!(several.llama.last().target, "/api/chat");
    check("/v1/chat/completions", ask("gpt-5"), main).await;
    check("/v1/chat/completions", json!({"messages": []}), main).await;
    check("/v1/messages", json!({"messages": []}), claude).await;
    check("/v1/embeddings", json!({"model": "llama-embed", "input": "x"}), llama).await;
    check("/v1/messages/count_tokens", json!({"model": "claude-9", "messages": []}), claude).await;
    check("/v1/audio/speech", json!({"model": "tts", "input": "x"}), main).await;
    check("/openai/deployments/claude-x/chat/completions", json!({"messages": []}), claude).await;
    check("/api/tags", Value::Null, llama).await;
    check("/v1/models/llama/chat-8b", Value::Null, llama).await;
    check("/v1/models/llama%2Fchat-8b", Value::Null, llama).await;
}

#[tokio::test]
async fn a_model_is_found_in_forms_and_in_bodies_of_unknown_length() {
    let several = Several::start().await;
    let part =
        |head: &str, value: &str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n");
    let sound = "x".repeat(300_000);
    let file = part("name=\"file\"; filename=\"a.wav\"", &sound);
    let model = part("name=\"model\"", "llama-listen");
    let json = json!({"model": "llama-embed", "input": sound}).to_string();
    let form = "multipart/form-data; boundary=b";
    for (kind, body) in [
        (form, format!("{file}{model}--b--\r\n")),
        (form, format!("{model}{file}--b--\r\n")),
        ("application/json", json),
    ] {
        for is_chunked in [false, true] {
            let before = several.seen();
            let sent = match is_chunked {
                true => super::upstream::chunked(pieces(&body, &[1_000, 70_000, 290_000])),
                false => Body::from(body.clone()),
            };
            let request = request(Method::POST, "/v1/audio/transcriptions").header("content-type", kind);
            several.chatting.server.send(request.body(sent).unwrap()).await;
            assert_eq!(several.seen(), [before[0], before[1] + 1, before[2]], "{kind} {is_chunked}");
            assert!(several.llama.last().body == body.as_bytes(), "it passes unchanged");
        }
    }
}

#[tokio::test]
async fn the_lists_of_models_are_one() {
    let several = Several::start().await;
    let list = |id: &str| axum::Json(json!({"object": "list", "data": [{"id": id, "x": 1.0}]}));
    several.claude.will(list("claude-9"));
    several.llama.will((axum::http::StatusCode::INTERNAL_SERVER_ERROR, "broken"));
    several.chatting.upstream.will(list("gpt-5"));
    let answer = several.send(Method::GET, "/v1/models", Value::Null).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["data"], json!([{"id": "claude-9", "x": 1.0}, {"id": "gpt-5", "x": 1.0}]));
    assert_eq!(several.claude.last().header("anthropic-version"), Some("2023-06-01"));
    several.claude.will(axum::Json(json!({"id": "claude-9"})));
    let answer = several.send(Method::GET, "/v1/models/claude-9", Value::Null).await;
    assert_eq!(answer.json()["id"], "claude-9");
    for upstream in [&several.claude, &several.llama, &several.chatting.upstream] {
        upstream.will((axum::http::StatusCode::UNAUTHORIZED, "no"));
    }
    let answer = several.send(Method::GET, "/v1/models", Value::Null).await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (401, "no"));
}

#[tokio::test]
async fn a_list_has_what_would_be_served_and_no_key_goes_astray() {
    let several = Several::start().await;
    let list = |ids: &[&str]| {
        let data: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        axum::Json(json!({"object": "list", "data": data}))
    };
    several.claude.will(list(&["claude-9", "other"]));
    several.llama.will(list(&["llama3", "mistral"]));
    several.chatting.upstream.will(list(&["gpt-5", "claude-copy"]));
    let mut asked = request(Method::GET, "/v1/models?key=sk-mine").body(Body::empty()).unwrap();
    for (name, value) in [
        ("authorization", "Bearer sk-mine"),
        ("x-api-key", "sk-mine"),
        ("cookie", "k=sk-mine"),
        ("x-goog-api-key", "sk-mine"),
    ] {
        asked.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = several.chatting.server.send(asked).await;
    let ids: Vec<Value> =
        answer.json()["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(ids, ["claude-9", "llama3", "gpt-5"], "in the order of the upstreams");
    assert_eq!(several.chatting.upstream.last().header("authorization"), Some("Bearer sk-mine"));
    for upstream in [&several.claude, &several.llama] {
        let sent = upstream.last();
        assert!(!sent.target.contains("sk-mine"), "{}", sent.target);
        assert!(
            sent.headers.values().all(|value| !value.to_str().unwrap().contains("sk-mine")),
            "{:?}",
            sent.headers
        );
    }
    assert_eq!(
        several.claude.last().header("x-api-key").or(several.claude.last().header("authorization")),
        Some("sk-ant")
    );
    assert_eq!(several.claude.last().target, "/v1/models?limit=1000");
}

#[tokio::test]
async fn a_chat_stays_with_the_upstream_that_keeps_it() {
    let several = Several::start().await;
    let response = |id: &str| {
        let content = json!([{"type": "output_text", "text": "ok"}]);
        axum::Json(
            json!({"id": id, "status": "completed", "output": [{"type": "message", "content": content}]}),
        )
    };
    several.llama.will(response("resp_7"));
    several.send(Method::POST, "/v1/responses", json!({"model": "llama3", "input": "one"})).await;
    several.chatting.turns().await;
    // The client has chosen another model meanwhile.
    several.llama.will(response("resp_8"));
    let body = json!({"model": "gpt-5", "input": "two", "previous_response_id": "resp_7"});
    several.send(Method::POST, "/v1/responses", body).await;
    assert_eq!(several.seen(), [0, 2, 0]);
    for (method, path) in [
        (Method::GET, "/v1/responses/resp_8"),
        (Method::POST, "/v1/responses/resp_8/cancel"),
        (Method::DELETE, "/v1/responses/resp_7"),
    ] {
        several.send(method, path, Value::Null).await;
        assert_eq!(several.llama.last().target, path);
    }
    // The main upstream is asked whether it keeps this one.
    several.send(Method::GET, "/v1/responses/resp_unknown", Value::Null).await;
    assert_eq!(several.seen(), [0, 5, 2]);
}

#[tokio::test]
async fn a_chat_stays_with_its_upstream_over_a_restart() {
    let several = Several::start().await;
    several.llama.will(axum::Json(json!({"id": "resp_a1", "status": "completed", "output": []})));
    several.send(Method::POST, "/v1/responses", json!({"model": "llama3", "input": "one"})).await;
    several.chatting.upstream.will(axum::Json(json!({"id": "conv_b2", "object": "conversation"})));
    several.send(Method::POST, "/v1/conversations", json!({})).await;
    assert_eq!(several.seen(), [0, 1, 1]);
    let mut several = several;
    for round in 1..=2 {
        several = several.restarted().await;
        // The client has chosen another model each time.
        for body in [
            json!({"model": "gpt-5", "input": "two", "previous_response_id": "resp_a1"}),
            json!({"model": "llama3", "input": "two", "conversation": {"id": "conv_b2"}}),
        ] {
            let asked = request(Method::POST, "/v1/responses").header("x-strata-user", "ada");
            let asked = asked.header("x-strata-memory", "off").body(Body::from(body.to_string())).unwrap();
            assert_eq!(several.chatting.server.send(asked).await.status, 200);
        }
        several.send(Method::POST, "/v1/responses/resp_a1/cancel", json!({})).await;
        several.send(Method::GET, "/v1/conversations/conv_b2/items", Value::Null).await;
        assert_eq!(several.seen(), [0, 1 + 2 * round, 1 + 2 * round], "nobody is asked who keeps them");
    }
    // It is noted for its user alone.
    let several = several.restarted().await;
    several.chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
    let asked = request(Method::GET, "/v1/responses/resp_a1").header("x-strata-user", "bob");
    several.chatting.server.send(asked.body(Body::empty()).unwrap()).await;
    assert_eq!(several.seen(), [0, 7, 6], "the upstreams are asked");
}

#[tokio::test]
async fn an_upstream_is_asked_for_what_an_earlier_process_has_passed_on() {
    let shown = |upstream: &ScriptedUpstream| {
        upstream.received().iter().map(|one| format!("{} {}", one.method, one.target)).collect::<Vec<_>>()
    };
    for (more, address) in [
        (json!({"previous_response_id": "resp_7"}), "GET /v1/responses/resp_7"),
        (json!({"conversation": {"id": "conv_7"}}), "GET /v1/conversations/conv_7"),
    ] {
        let several = Several::start().await;
        let mut body = json!({"model": "gpt-5", "input": "two"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        several.chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
        for _ in 0..2 {
            let request = request(Method::POST, "/v1/responses").header("authorization", "Bearer sk-client");
            let request = request.header("x-strata-user", "ada").header("content-type", "application/json");
            let answer =
                several.chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        assert_eq!(shown(&several.chatting.upstream), [address], "the model's own upstream does not keep it");
        assert_eq!(shown(&several.llama), [address, "POST /v1/responses", "POST /v1/responses"]);
        assert!(shown(&several.claude).is_empty(), "its API has no such thing");
        let asked = &several.llama.received()[0];
        assert_eq!(asked.header("authorization"), None, "the client's key is meant for another server");
        assert!(asked.body.is_empty());
    }
    // By a path, and for a response that no upstream keeps.
    let several = Several::start().await;
    several.chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
    several.send(Method::POST, "/v1/responses/resp_8/cancel", json!({})).await;
    assert_eq!(shown(&several.llama), ["GET /v1/responses/resp_8", "POST /v1/responses/resp_8/cancel"]);
    several.chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
    several.llama.will((StatusCode::NOT_FOUND, "{}"));
    several.send(Method::DELETE, "/v1/responses/resp_9", Value::Null).await;
    let main = shown(&several.chatting.upstream);
    assert_eq!(
        main[1..],
        ["GET /v1/responses/resp_9", "DELETE /v1/responses/resp_9"],
        "it judges the request"
    );
}

#[tokio::test]
async fn a_conversation_stays_with_the_upstream_that_keeps_it() {
    let several = Several::start().await;
    let seen = |expected: [usize; 3]| assert_eq!(several.seen(), expected);
    // A conversation that is made by itself.
    several.chatting.upstream.will(axum::Json(json!({"id": "conv_1", "object": "conversation"})));
    let answer = several.send(Method::POST, "/v1/conversations", json!({})).await;
    assert_eq!(answer.json()["id"], "conv_1");
    let ask = |conversation: &str| json!({"model": "llama3", "input": "one", "conversation": conversation});
    several.send(Method::POST, "/v1/responses", ask("conv_1")).await;
    seen([0, 0, 2]);
    // One that is first seen in a chat.
    several.send(Method::POST, "/v1/responses", ask("conv_2")).await;
    several
        .send(
            Method::POST,
            "/v1/responses",
            json!({"model": "gpt-5", "input": "two", "conversation": {"id": "conv_2"}}),
        )
        .await;
    several.send(Method::GET, "/v1/conversations/conv_2/items", Value::Null).await;
    // It was asked first whether it keeps the conversation.
    seen([0, 4, 2]);
    // A chat without memory, as one document and as a stream.
    let off = async |body: Value| {
        let request = request(Method::POST, "/v1/responses").header("x-strata-memory", "off");
        several.chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    several.llama.will(axum::Json(json!({"id": "resp_5", "status": "completed", "output": []})));
    off(json!({"model": "llama3", "input": "one"})).await;
    let event = json!({"type": "response.created", "response": {"id": "resp_6"}});
    several.llama.will_stream(vec![Bytes::from(format!("data: {event}\n\n"))]);
    off(json!({"model": "gpt-5", "input": "two", "previous_response_id": "resp_5", "stream": true})).await;
    off(json!({"model": "gpt-5", "input": "three", "previous_response_id": "resp_6"})).await;
    seen([0, 7, 2]);
}

#[tokio::test]
async fn a_label_of_a_conversation_leaves_the_choice_to_the_model() {
    let several = Several::start().await;
    for (model, expected) in [("gpt-5", [0, 0, 1]), ("llama3", [0, 1, 1]), ("gpt-5", [0, 1, 2])] {
        let body = json!({"model": model, "messages": [user("hi there")], "conversation": "thread-9"});
        several.send(Method::POST, "/v1/chat/completions", body).await;
        assert_eq!(several.seen(), expected, "{model}");
    }
}

#[tokio::test]
async fn a_model_without_an_upstream_is_named() {
    let only = ScriptedUpstream::start().await;
    let upstreams = vec![UpstreamSettings {
        models: vec![ModelPattern::new("claude-*")],
        url: only.url(),
        api: UpstreamApi::Anthropic,
        key: None,
        timeout: None,
        transport: Default::default(),
        retries: 0,
    }];
    let chatting = Chatting::with(|proxy| (proxy.upstream, proxy.upstreams) = (None, upstreams)).await;
    let answer = chatting.chat_with(json!({"model": "gpt-5", "messages": [user("hi")]})).await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("`gpt-5`"), "{}", answer.body);
    assert!(only.received().is_empty());
}

#[tokio::test]
async fn a_chat_is_sent_again_only_if_the_setting_says_so_and_nothing_was_answered() {
    for retries in [0, 2] {
        let chatting = Chatting::with(|proxy| {
            let (url, models) = (proxy.upstream.take().unwrap(), vec![ModelPattern::new("*")]);
            let (api, transport) = (UpstreamApi::OpenAi, Default::default());
            proxy.upstreams =
                vec![UpstreamSettings { models, url, api, key: None, timeout: None, transport, retries }];
        })
        .await;
        let overloaded = || (StatusCode::SERVICE_UNAVAILABLE, "busy");
        chatting.upstream.will(overloaded());
        chatting.upstream.will(overloaded());
        chatting.upstream.will_say("Noted.");
        let answer = chatting.chat(json!([user("my ferry leaves at nine")])).await;
        let received = chatting.upstream.received();
        assert_eq!(received.len(), 1 + retries as usize);
        assert_eq!(answer.status.as_u16(), if retries == 0 { 503 } else { 200 });
        assert!(received.iter().all(|request| request.body == received[0].body), "it is the same each time");
        assert_eq!(chatting.turns().await.len(), 2, "it is recorded once");
        // What the upstream has judged is final.
        for status in
            [StatusCode::BAD_REQUEST, StatusCode::TOO_MANY_REQUESTS, StatusCode::INTERNAL_SERVER_ERROR]
        {
            let before = chatting.upstream.received().len();
            chatting.upstream.drop_script();
            chatting.upstream.will((status, "no"));
            assert_eq!(chatting.chat(json!([user("and again")])).await.status, status);
            assert_eq!(chatting.upstream.received().len(), before + 1, "{status}");
        }
    }
}

#[tokio::test]
async fn what_mem0_alone_has_is_refused_and_never_passed_on() {
    let chatting = Chatting::start().await;
    for (method, path) in [
        (Method::POST, "/v1/feedback/"),
        (Method::POST, "/v1/exports/"),
        (Method::POST, "/v1/exports/get/"),
        (Method::POST, "/v1/summary/"),
        (Method::GET, "/api/v1/orgs/organizations/o/projects/p/"),
        (Method::POST, "/api/v1/webhooks/projects/p/"),
        (Method::GET, "/v1/memories"),
        (Method::GET, "/v2/entities/user/ada/profile/"),
        (Method::GET, "/v1/memories/7"),
        (Method::DELETE, "/v1/memories/7"),
        (Method::GET, "/v1/memories/7/history"),
        (Method::POST, "/v1/memories/7/feedback/"),
        (Method::POST, "/v1/memories/search"),
        (Method::PUT, "/v1/batch"),
        (Method::GET, "/v1/entities"),
        (Method::GET, "/v1/ping"),
        (Method::POST, "/v1/feedback"),
        (Method::POST, "/v1/exports/get"),
        (Method::POST, "/v1/summary"),
        (Method::POST, "/v1/webhooks"),
        (Method::GET, "/v1/event/7"),
    ] {
        let request = request(method, path).header("content-type", "application/json");
        let answer = chatting.server.send(request.body(Body::from(r#"{"user_id":"ada"}"#)).unwrap()).await;
        assert!(answer.status == 501 || answer.status == 404, "{path}: {}", answer.status);
        assert!(answer.json()["error"]["message"].is_string(), "{path}");
    }
    assert!(chatting.upstream.received().is_empty());
}

#[tokio::test]
async fn an_upstream_has_a_time_limit_of_its_own() {
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", silent.local_addr().unwrap()).parse().unwrap();
    let slow = UpstreamSettings {
        models: vec![ModelPattern::new("slow-*")],
        url,
        api: UpstreamApi::OpenAi,
        key: None,
        timeout: Some(Duration::from_millis(50)),
        transport: Default::default(),
        retries: 0,
    };
    let chatting = Chatting::with(|proxy| proxy.upstreams = vec![slow]).await;
    let answer = chatting.chat_with(json!({"model": "slow-1", "messages": [user("one")]})).await;
    assert_eq!(answer.status, 504, "{}", answer.body);
    let answer = chatting.chat_with(json!({"model": "m", "messages": [user("two")]})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}
