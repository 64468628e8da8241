//! Requests and answers that pass through, also if the connection breaks.

use axum::http::StatusCode;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::upstream::stream;
use super::*;
use crate::UpstreamUrl;

#[tokio::test]
async fn other_paths_go_to_the_upstream_as_they_came() {
    let chatting = Chatting::start().await;
    chatting.upstream.will((
        StatusCode::IM_A_TEAPOT,
        [("x-custom", "kept"), ("connection", "x-hop"), ("x-hop", "1"), ("content-type", "text/odd")],
        vec![0_u8, 159, 146, 150],
    ));
    let request = request(Method::PATCH, "/v1/files/a%2Fb?x=%20&y=1&x=2")
        .header("authorization", "Bearer mine")
        .header("x-strata-user", "ada")
        .header("connection", "close, X-Mine")
        .header("x-mine", "1")
        .header("x-yours", "2");
    let body = vec![255_u8; 9 * 1024 * 1024];
    let response = crate::router::router(chatting.server.app.clone())
        .oneshot(request.body(Body::from(body.clone())).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 418);
    assert_eq!(response.headers()["x-custom"], "kept");
    assert!(response.headers().get("x-hop").is_none() && response.headers().get("connection").is_none());
    assert!(response.headers().contains_key("x-strata-request-id"));
    let returned = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&returned[..], [0_u8, 159, 146, 150]);

    let sent = chatting.upstream.last();
    assert_eq!((sent.method.as_str(), sent.target.as_str()), ("PATCH", "/v1/files/a%2Fb?x=%20&y=1&x=2"));
    assert!(sent.body == body, "{} bytes arrived", sent.body.len());
    assert_eq!(sent.header("host"), Some(chatting.upstream.address()));
    assert_eq!(sent.header("authorization"), Some("Bearer mine"));
    assert_eq!(sent.header("x-yours"), Some("2"));
    assert_eq!((sent.header("x-mine"), sent.header("x-strata-user")), (None, None));
    // The upstream lists the chats that it has stored; chats have no other method.
    let answer = chatting.server.get("/v1/chat/completions?limit=2").await;
    assert_eq!(answer.status, 200);
    assert_eq!(chatting.upstream.last().target, "/v1/chat/completions?limit=2");
    let passed = chatting.upstream.received().len();
    for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS, Method::TRACE] {
        let request = super::request(method, "/v1/chat/completions").body(Body::empty()).unwrap();
        let answer = chatting.server.send(request).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, Some("POST")));
    }
    assert_eq!(chatting.upstream.received().len(), passed);
}

#[tokio::test]
async fn a_configured_key_stands_for_the_clients() {
    let chatting = Chatting::with(|proxy| proxy.upstream_key = Some(crate::Secret::new("ours"))).await;
    for uri in ["/v1/models", "/v1/chat/completions"] {
        let request = request(Method::POST, uri).header("authorization", "Bearer theirs");
        chatting.server.send(request.body(Body::from(r#"{"messages":[]}"#)).unwrap()).await;
        assert_eq!(chatting.upstream.last().header("authorization"), Some("Bearer ours"));
    }
}

#[tokio::test]
async fn a_configured_key_goes_to_known_paths_only() {
    let chatting = Chatting::with(|proxy| proxy.upstream_key = Some(crate::Secret::new("ours"))).await;
    let key_at = |uri: &'static str| {
        let chatting = &chatting;
        async move {
            let request = request(Method::GET, uri).header("authorization", "Bearer theirs");
            let answer = chatting.server.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status, 200, "{uri}: {}", answer.body);
            let sent = chatting.upstream.last();
            (sent.target.clone(), sent.header("authorization").map(str::to_owned))
        }
    };
    for uri in ["/v1/models", "/v1/files/f", "/api/tags", "/v1/./models", "//v1/models", "/v1/x/../models"] {
        let (target, key) = key_at(uri).await;
        assert!(key.as_deref() == Some("Bearer ours") && !target.contains(".."), "{uri} {target} {key:?}");
    }
    for uri in
        ["/v1/organization/users", "/v1/admin/keys", "/api/secrets", "/v1/models/../organization/users"]
    {
        let (_, key) = key_at(uri).await;
        assert_eq!(key.as_deref(), Some("Bearer theirs"), "{uri}");
    }
    let passed = chatting.upstream.received().len();
    for uri in ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2fadmin", "/v1/%252e%252e%252fadmin", "/v1/a%00b"]
    {
        let answer = chatting.server.get(uri).await;
        assert_eq!(answer.status, 400, "{uri}: {}", answer.body);
    }
    assert_eq!(chatting.upstream.received().len(), passed, "nothing was passed on");
}

#[tokio::test]
async fn a_chat_by_a_roundabout_path_is_a_chat() {
    let chatting = Chatting::start().await;
    for uri in [
        "/v1/chat/./completions",
        "//v1/chat//completions",
        "/v1/%63hat/completions",
        "/v1/x/../chat/completions",
    ] {
        let body = json!({"memory_id": "paths", "messages": [{"role": "user", "content": uri}]});
        let request = request(Method::POST, uri).header("x-strata-user", "ada");
        chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(chatting.upstream.last().target, "/v1/chat/completions");
    }
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    let turns = chatting.server.get("/sessions/paths/turns?user_id=ada").await.json();
    assert_eq!(turns["turns"].as_array().unwrap().len(), 8, "{turns}");
}

#[tokio::test]
async fn unknown_fields_pass_byte_for_byte() {
    let chatting = Chatting::start().await;
    let body = r#"{"model":"m", "n":2,"temperature":1.0,"seed":12345678901234567890,"logprobs":true,
        "tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}],
        "response_format":{"type":"json_schema"},"memory_id":"other","future":{"z":[1e2,{}]},
        "messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}"#;
    let request = request(Method::POST, "/v1/chat/completions").header("x-strata-user", "ada");
    chatting.server.send(request.body(Body::from(body)).unwrap()).await;
    let expected = body.replace(r#""memory_id":"other","#, "");
    assert_eq!(String::from_utf8(chatting.upstream.last().body.to_vec()).unwrap(), expected);
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    let turns = chatting.server.get("/sessions/other/turns?user_id=ada").await.json();
    let turn = &turns["turns"][0];
    assert_eq!(turn["metadata"], json!({"parts": ["image_url"]}));
    assert_eq!(turn.get("follows"), Some(&Value::Null));
}

#[tokio::test]
async fn the_escape_of_a_nul_is_recorded_and_a_nul_is_left_out() {
    let chatting = Chatting::start().await;
    for (session, arguments, is_kept) in [("escape", r#"{"a":"\u0000"}"#, true), ("nul", "\0", false)] {
        let calls = json!([{"id": "c1", "function": {"name": "look", "arguments": arguments}}]);
        let body = json!({"memory_id": session, "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": "looking", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": [
                {"type": "text", "text": "seen"}, {"type": if is_kept { r"\u0000" } else { "\0" }},
            ]},
        ]});
        let request = request(Method::POST, "/v1/chat/completions").header("x-strata-user", "ada");
        chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
        let turns = chatting.server.get(&format!("/sessions/{session}/turns?user_id=ada")).await.json();
        let (asked, result) = (&turns["turns"][1], &turns["turns"][2]);
        assert_eq!((&asked["content"], &result["content"]), (&json!("looking"), &json!("seen")));
        let calls = json!([{"id": "c1", "name": "look", "arguments": arguments}]);
        assert_eq!(asked.get("tool_calls"), is_kept.then_some(&calls), "{turns}");
        assert_eq!(result["tool_call_id"], "c1");
        let metadata = if is_kept { json!({"parts": [r"\u0000"]}) } else { json!({}) };
        assert_eq!(result["metadata"], metadata, "{turns}");
    }
}

#[tokio::test]
async fn a_chat_that_asks_nothing_in_words_has_a_trace_without_candidates() {
    let chatting = Chatting::start().await;
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]);
    let answer = chatting.chat(json!([{"role": "user", "content": image}])).await;
    assert_eq!(answer.status, 200);
    let id = answer.header("x-strata-request-id").unwrap().to_owned();
    assert_eq!(chatting.rows().await[0]["id"], id);
    let shown = chatting.server.get(&format!("/requests/{id}?user_id=ada")).await;
    assert_eq!((shown.status.as_u16(), &shown.json()["trace"]["candidates"]), (200, &json!([])));
}

#[tokio::test]
async fn without_an_upstream_it_is_said_so() {
    let server = TestServer::new();
    let answer = server.post("/v1/chat/completions", json!({"messages": []})).await;
    insta::assert_snapshot!("no_upstream", answer.shown());
    assert_eq!(server.get("/v1/models").await.json()["error"]["code"], "no_upstream");

    let chatting = Chatting::with(|proxy| {
        proxy.upstream = Some("http://127.0.0.1:1/v1".parse::<UpstreamUrl>().unwrap());
    })
    .await;
    let answer = chatting.chat(json!([user("one")])).await;
    insta::assert_snapshot!("unreachable", answer.shown());
    assert_eq!(chatting.turns().await.len(), 2);
    assert_eq!(chatting.rows().await[0]["error_stage"], "llm_reply");
    assert!(chatting.turns().await[1].contains("(error)"));
}

#[tokio::test]
async fn an_unreachable_proxy_is_not_blamed_on_the_upstream() {
    for upstream in ["http://models.example/v1", "https://models.example/v1"] {
        let chatting = Chatting::with(|proxy| {
            proxy.upstream = Some(upstream.parse::<UpstreamUrl>().unwrap());
            proxy.upstream_transport.proxy = Some("http://ann:pass-77@127.0.0.1:1".parse().unwrap());
        })
        .await;
        let answer = chatting.chat(json!([user("one")])).await;
        assert_eq!(answer.status, 502);
        let told = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(told.contains("`upstream_proxy` is right") && !told.contains("pass-77"), "{told}");
    }
}

#[tokio::test]
async fn an_error_of_the_upstreams_is_passed_on_and_recorded() {
    let chatting = Chatting::start().await;
    let body =
        r#"{"error": {"message":"slow down","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#;
    for is_stream in [false, true] {
        let headers = [("retry-after-ms", "20"), ("content-type", "application/json")];
        chatting.upstream.will((StatusCode::TOO_MANY_REQUESTS, headers, body));
        let answer = chatting.chat_with(json!({"stream": is_stream, "messages": [user("one")]})).await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (429, body));
        assert_eq!(answer.header("retry-after-ms"), Some("20"));
    }
    chatting.chat(json!([user("one")])).await;
    let error = "assistant: The model failed with status 429: slow down (error)";
    assert_eq!(chatting.turns().await, ["user: one", error, error, "assistant: ok"]);
    let found = chatting.server.post("/search", json!({"query": "slow down", "user_id": "ada"})).await.json();
    assert!(!found.to_string().contains("slow down"), "{found}");
}

#[tokio::test]
async fn a_stream_arrives_as_it_was_sent_wherever_it_is_cut() {
    let chatting = Chatting::start().await;
    let text =
        stream(&["你", "好", ", wor", "ld 🦀\r\n"]).replace("\n\n", "\r\n\r\n") + ": after the end\n\n";
    let mut seed = 1_usize;
    for round in 0..24 {
        let cuts: Vec<usize> = (0..round)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed >> 33
            })
            .collect();
        let question = format!("question {round}");
        chatting.upstream.will_stream(pieces(&text, &cuts));
        let answer = chatting.chat_with(json!({"stream": true, "messages": [user(&question)]})).await;
        assert_eq!(answer.body, text);
        let turns = chatting.turns().await;
        assert_eq!(turns.last().unwrap(), "assistant: 你好, world 🦀\r\n");
    }
}

#[tokio::test]
async fn pieces_pass_while_the_model_still_speaks() {
    let chatting = Chatting::start().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    chatting.upstream.will_stream_from(receiver);
    let response = chatting.open(json!({"stream": true, "messages": [user("one")]})).await;
    let mut body = response.into_body();
    for word in ["one ", "two ", "three"] {
        let text = stream(&[word]);
        let piece = Bytes::copy_from_slice(text.split_inclusive("\n\n").next().unwrap().as_bytes());
        sender.send(Ok(piece.clone())).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
    }
    // The client disconnects in the middle.
    drop(body);
    assert_eq!(chatting.turns().await, ["user: one", "assistant: one two three"]);
    assert_eq!(chatting.turn(1).await["interrupted"], true);
}

#[tokio::test]
async fn a_model_that_breaks_off_breaks_off_for_the_client_too() {
    let chatting = Chatting::start().await;
    let text = stream(&["half"]);
    let first = text.split_inclusive("\n\n").next().unwrap();
    let (sender, receiver) = mpsc::unbounded_channel();
    chatting.upstream.will_stream_from(receiver);
    sender.send(Ok(Bytes::copy_from_slice(first.as_bytes()))).unwrap();
    let response = chatting.open(json!({"stream": true, "messages": [user("one")]})).await;
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), first);
    sender.send(Err("broken")).unwrap();
    assert!(body.frame().await.unwrap().is_err());
    assert_eq!(chatting.turns().await, ["user: one", "assistant: half"]);
    assert_eq!(chatting.turn(1).await["interrupted"], true);
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up() {
    let chatting = Chatting::with(|proxy| proxy.upstream_timeout = Duration::from_millis(50)).await;
    let (sender, receiver) = mpsc::unbounded_channel();
    chatting.upstream.will_stream_from(receiver);
    sender.send(Ok(Bytes::from_static(b": begun\n\n"))).unwrap();
    let response = chatting.open(json!({"stream": true, "messages": [user("one")]})).await;
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(chatting.turns().await, ["user: one", "assistant:  (error)"]);
}

#[tokio::test]
async fn invalid_requests_are_refused_in_openais_shape() {
    let chatting = Chatting::start().await;
    let send = async |headers: &[(&str, &str)], body: &str| {
        let mut request = request(Method::POST, "/v1/chat/completions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = chatting.server.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        assert_eq!(answer.status, 400, "{headers:?} {body}: {}", answer.body);
        let error = answer.json()["error"].clone();
        assert!(error["message"].is_string() && error["type"].is_string() && error["param"].is_null());
        assert!(error.as_object().unwrap().contains_key("param"));
    };
    send(&[], "{").await;
    send(&[], "[]").await;
    send(&[], "{}").await;
    send(&[], r#"{"messages": null}"#).await;
    send(&[], r#"{"messages": {"role": "user", "content": "one"}}"#).await;
    send(&[], r#"{"messages": [], "memory_top_k": 0}"#).await;
    send(&[], r#"{"messages": [], "user": "*"}"#).await;
    send(&[], r#"{"messages": [], "memory_id": ""}"#).await;
    send(&[("x-strata-memory", "maybe")], r#"{"messages": []}"#).await;
    send(&[("x-strata-user", "")], r#"{"messages": []}"#).await;
    assert!(chatting.upstream.received().is_empty());
    assert!(chatting.server.heads().await.is_empty());
}

#[tokio::test]
async fn a_text_that_is_no_chat_says_that_memory_has_no_part() {
    let chatting = Chatting::start().await;
    for path in
        ["/v1/completions", "/v1/threads/runs", "/v1/responses/compact", "/openai/deployments/d/completions"]
    {
        let request = request(Method::POST, path).body(Body::from(r#"{"prompt":"go on"}"#));
        let answer = chatting.server.send(request.unwrap()).await;
        assert_eq!(answer.header("x-strata-memory-reason"), Some("not-a-chat"), "{path}");
        assert_eq!(answer.header("x-strata-memory-recorded"), Some("false"), "{path}");
    }
    assert!(chatting.server.heads().await.is_empty(), "nothing is recorded");
}
