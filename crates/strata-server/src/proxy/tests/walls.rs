//! Walls, budgets and deadlines of a chat's memory.

use strata_core::UserId;
use strata_core::key::SecretSource;
use strata_core::scope::RecallScope;
use strata_engine::NewKey;

use super::*;

/// A chat without a user, with the given fields beside its messages.
async fn anonymous(chatting: &Chatting, extra: Value, said: &str) -> String {
    let mut body = json!({"model": "m", "messages": [user(said)]});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let request = request(Method::POST, "/v1/chat/completions").header("content-type", "application/json");
    let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    chatting.sent()[0]["content"].as_str().unwrap().to_owned()
}

async fn learn(chatting: &Chatting) {
    chatting.server.app.engine().learning.learn_all().await.unwrap();
}

#[tokio::test]
async fn a_memory_id_without_a_user_is_a_wall() {
    let chatting = Chatting::start().await;
    let (one, other) = (json!({"memory_id": "patient-17"}), json!({"memory_id": "patient-18"}));
    anonymous(&chatting, one.clone(), "My insurance number is QX-5519 and I am allergic to penicillin.")
        .await;
    anonymous(&chatting, json!({"memory_id": "病人三"}), "我的保险号是 HZ-2207，我对青霉素过敏。").await;
    learn(&chatting).await;
    let told = json!({"text": "the insurance number desk opens at nine", "scope": "global"});
    chatting.server.post("/memories", told).await;
    let asked = [
        "what is my insurance number",
        "what did I say last time about my insurance number",
        "我的保险号是多少",
        "之前说过的保险号",
        "what am I allergic to",
    ];
    for extra in [other, json!({}), json!({"memory_id": "patient-18", "memory_scope": "user"})] {
        for question in asked {
            let sent = anonymous(&chatting, extra.clone(), question).await;
            for secret in ["5519", "2207", "penicillin", "青霉素"] {
                assert!(!sent.contains(secret), "{extra} {question}: {sent}");
            }
            if question == asked[0] {
                assert!(sent.contains("opens at nine"), "what all share crosses: {sent}");
            }
        }
    }
    // Each session still has its own.
    let sent = anonymous(&chatting, one, "which insurance number do I have").await;
    assert!(sent.contains("QX-5519"), "{sent}");
    let sent = anonymous(&chatting, json!({"memory_id": "病人三"}), "保险号是多少").await;
    assert!(sent.contains("HZ-2207") && !sent.contains("QX-5519"), "{sent}");
}

#[tokio::test]
async fn searches_and_prompts_stay_behind_the_wall_too() {
    let chatting = Chatting::start().await;
    let server = &chatting.server;
    for (session, said) in
        [("booth-1", "The deposit of the tenor sax is 340 euros."), ("booth-2", "Hello there.")]
    {
        let body = json!({"session_id": session, "messages": [user(said)]});
        assert_eq!(server.post("/turns", body).await.status, 201);
    }
    learn(&chatting).await;
    let ask = async |extra: Value| {
        let mut body = json!({"query": "deposit of the sax", "top_k": 50, "threshold": 0});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        server.post("/search", body).await.json()
    };
    for name in ["session_id", "memory_id", "run_id"] {
        for scope in [json!(null), json!("session"), json!("user"), json!("global")] {
            let answer = ask(json!({name: "booth-2", "scope": scope})).await;
            assert!(!answer.to_string().contains("340"), "{name} {scope}: {answer}");
            assert_eq!(answer["scope"], "session");
        }
    }
    assert!(ask(json!({"session_id": "booth-1"})).await.to_string().contains("340"));
    // Whoever names the user `default`, or neither user nor session, asks for all of its sessions.
    assert!(ask(json!({"session_id": "booth-2", "user_id": "default"})).await.to_string().contains("340"));
    assert!(ask(json!({})).await.to_string().contains("340"));
    let prompt = async |body: Value| server.post("/sessions/booth-2/prompt", body).await.body;
    let question = json!({"question": "deposit of the sax", "format": "chat"});
    assert!(!prompt(question.clone()).await.contains("340"));
    let mut named = question;
    named["user_id"] = json!("default");
    assert!(prompt(named.clone()).await.contains("340"));
    named["memory_scope"] = json!("session");
    assert!(!prompt(named).await.contains("340"));
}

#[tokio::test]
async fn with_a_user_the_scope_decides() {
    let chatting = Chatting::start().await;
    let body =
        json!({"user_id": "ada", "session_id": "t", "messages": [user("the kiln fires at 1240 degrees")]});
    chatting.server.post("/turns", body).await;
    let asked = async |scope: Value| {
        let question = user("at how many degrees does the kiln fire");
        let body = json!({"model": "m", "memory_scope": scope, "messages": [question]});
        assert_eq!(chatting.chat_with(body).await.status, 200);
        assert_eq!(chatting.upstream.last().json().get("memory_scope"), None, "it is not passed on");
        chatting.sent()[0]["content"].as_str().unwrap().contains("1240")
    };
    assert!(asked(json!(null)).await, "the default for a named user is `user`");
    assert!(asked(json!("user")).await);
    assert!(!asked(json!("session")).await);
    for wrong in [json!("global"), json!(""), json!(1), json!(["user"])] {
        let body = json!({"memory_scope": wrong, "messages": [user("the kiln?")]});
        let answer = chatting.chat_with(body).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.body.contains("use `session` or `user`"), "{}", answer.body);
    }
}

struct Zeros;

impl SecretSource for Zeros {
    fn fill(&self, bytes: &mut [u8; strata_core::key::SECRET_BYTES]) -> strata_core::Result<()> {
        bytes.fill(7);
        Ok(())
    }
}

#[tokio::test]
async fn a_key_confines_and_no_request_lifts_it() {
    let chatting = Chatting::start().await;
    let body =
        json!({"user_id": "ada", "session_id": "t", "messages": [user("the kiln fires at 1240 degrees")]});
    chatting.server.post("/turns", body).await;
    let new = NewKey { recall_scope: Some(RecallScope::Session), ..NewKey::new(UserId::new("ada").unwrap()) };
    let (_, secret) = chatting.server.app.engine().keys.create(new, &Zeros).await.unwrap();
    let send = async |path: &str, body: Value| {
        let request = request(Method::POST, path).header("content-type", "application/json");
        let request = request.header("x-api-key", secret.reveal());
        chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await
    };
    for scope in [json!(null), json!("user"), json!("session")] {
        let body =
            json!({"memory_scope": scope, "messages": [user("at how many degrees does the kiln fire")]});
        assert_eq!(send("/v1/chat/completions", body).await.status, 200);
        assert!(!chatting.sent().to_string().contains("1240"), "{scope}");
        let found = send("/search", json!({"query": "kiln degrees", "scope": scope})).await;
        assert!(found.status == 200 && !found.body.contains("1240"), "{scope}: {}", found.body);
    }
    let found = send("/search", json!({"query": "kiln degrees", "session_id": "t"})).await;
    assert!(found.body.contains("1240"), "{}", found.body);
}

#[tokio::test]
async fn a_number_of_items_raises_the_items_and_never_the_tokens() {
    let chatting = Chatting::start().await;
    for number in 0..60 {
        let said = format!("orchid number {number} stands in row {number}");
        let body = json!({"user_id": "ada", "session_id": format!("t{number}"), "messages": [user(&said)]});
        chatting.server.post("/turns", body).await;
    }
    let shown = async |top_k: u32| {
        let body =
            json!({"memory_top_k": top_k, "memory_score_threshold": 0, "messages": [user("which orchid")]});
        chatting.chat_with(body).await;
        let content = chatting.sent()[0]["content"].as_str().unwrap().to_owned();
        content.matches("orchid number").count()
    };
    for top_k in [10, 20, 50] {
        assert_eq!(shown(top_k).await, top_k as usize);
    }
    // 250 words each: eight of them are 2,000 tokens.
    for number in 0..20 {
        let said = format!("fern {number} {}", "leaf ".repeat(248));
        let body = json!({"user_id": "ada", "session_id": format!("f{number}"), "messages": [user(&said)]});
        chatting.server.post("/turns", body).await;
    }
    for body in [json!({"limit": 20}), json!({"top_k": 20}), json!({"top_k": 1000})] {
        let mut body = body;
        body["query"] = json!("which fern");
        body["user_id"] = json!("ada");
        body["threshold"] = json!(0);
        let answer = chatting.server.post("/search", body).await.json();
        assert!(answer["tokens"].as_u64().is_none_or(|tokens| tokens <= 2_000), "{answer}");
        let ferns = answer["results"].as_array().unwrap().iter();
        let ferns = ferns.filter(|found| found["memory"].as_str().unwrap().starts_with("fern")).count();
        assert!((5..=8).contains(&ferns), "{ferns}");
        assert_eq!(answer["truncated"], true);
    }
}

#[tokio::test]
async fn a_long_question_does_not_compact_the_conversation() {
    let chatting = Chatting::with(|proxy| proxy.compact_tokens = 500).await;
    let log = "pump 7 stalled at 41 rpm\n".repeat(2_000);
    let messages = json!([user("one"), assistant("two"), user(&log)]);
    chatting.chat(messages.clone()).await;
    assert_eq!(chatting.sent(), messages);
}

#[tokio::test]
async fn a_wall_is_told_as_the_reason() {
    let chatting = Chatting::start().await;
    anonymous(&chatting, json!({"memory_id": "patient-17"}), "My insurance number is QX-5519.").await;
    for (extra, expected) in [
        (json!({"memory_id": "patient-18"}), "wall"),
        (json!({"user_id": "ada"}), "nothing-found"),
        (json!({"user_id": "ada", "memory_scope": "session"}), "wall"),
    ] {
        let mut body = json!({"model": "m", "messages": [user("what is my insurance number")]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let request = request(Method::POST, "/v1/chat/completions");
        let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.header("x-strata-memory-reason"), Some(expected), "{extra}");
    }
}
