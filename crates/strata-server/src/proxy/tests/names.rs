//! Who asks, in which conversation, and how far a key lets memory take part.

use strata_core::UserId;
use strata_core::key::SecretSource;
use strata_core::store::Page;
use strata_engine::{CLIENTS_SPACE, NewKey};

use super::*;

pub(super) struct Counted(pub(super) u8);

impl SecretSource for Counted {
    fn fill(&self, bytes: &mut [u8; strata_core::key::SECRET_BYTES]) -> strata_core::Result<()> {
        bytes.fill(self.0);
        Ok(())
    }
}

/// Asks in one of the APIs, and returns the users and sessions that something was recorded for.
async fn recorded(
    chatting: &Chatting,
    path: &str,
    headers: &[(&str, &str)],
    mut more: Value,
) -> Vec<(String, String)> {
    let body = more.as_object_mut().unwrap();
    match path {
        "/v1/responses" => body.insert("input".to_owned(), json!("good evening, I row")),
        _ => body.insert("messages".to_owned(), json!([user("good evening, I row")])),
    };
    let mut request = request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = chatting.server.send(request.body(Body::from(more.to_string())).unwrap()).await;
    assert_eq!(answer.status, 200, "{path} {headers:?} {more}: {}", answer.body);
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    let store = chatting.server.app.engine().store();
    let mut found = Vec::new();
    for user in store.users(Page::first(100)).await.unwrap() {
        let sessions = chatting.server.app.engine().sessions.list(&user, Page::first(100)).await.unwrap();
        found.extend(sessions.into_iter().map(|session| (user.to_string(), session.id.to_string())));
    }
    found
}

#[tokio::test]
async fn names_are_taken_in_their_order() {
    let own = ("x-strata-user", "ines");
    let webui = [("x-openwebui-user-id", "u-1"), ("x-openwebui-chat-id", "c-1")];
    let gateway = [("x-litellm-end-user-id", "u-2"), ("x-litellm-session-id", "c-2")];
    let check = async |path: &str, headers: &[(&str, &str)], body: Value, user: &str, session: &str| {
        let chatting = Chatting::start().await;
        let found = recorded(&chatting, path, headers, body.clone()).await;
        assert_eq!(found, [(user.to_owned(), session.to_owned())], "{path} {headers:?} {body}");
    };
    let (chat, responses, messages) = ("/v1/chat/completions", "/v1/responses", "/v1/messages");
    let fields = json!({"user": "u-3", "safety_identifier": "u-4", "prompt_cache_key": "c-3"});
    check(chat, &[own, webui[0], webui[1]], fields.clone(), "ines", "c-1").await;
    check(chat, &webui, json!({"user": "u-3", "user_id": "noor", "memory_id": "m"}), "noor", "m").await;
    check(chat, &webui, fields.clone(), "u-1", "c-1").await;
    check(chat, &gateway, fields.clone(), "u-2", "c-2").await;
    let libre = [("x-librechat-user-id", "65f1c0ffee"), ("x-librechat-conversation-id", "c-9")];
    check(chat, &libre, fields.clone(), "65f1c0ffee", "c-9").await;
    check(responses, &libre, json!({"conversation": "c-4"}), "65f1c0ffee", "c-9").await;
    check(chat, &[], fields, "u-3", "c-3").await;
    check(responses, &[], json!({"safety_identifier": "u-4", "conversation": {"id": "c-4"}}), "u-4", "c-4")
        .await;
    check(
        responses,
        &[],
        json!({"metadata": {"user_id": "u-5"}, "conversation": "c-5", "prompt_cache_key": "k"}),
        "u-5",
        "c-5",
    )
    .await;
    check(
        messages,
        &[],
        json!({"metadata": {"user_id": "user_77_account_9_session_0b5c7e7c-51a7-4d0e-9f1c-6d2f6c1f2a3b"}}),
        "user_77_account_9",
        "0b5c7e7c-51a7-4d0e-9f1c-6d2f6c1f2a3b",
    )
    .await;
    check(
        chat,
        &[("x-librechat-user-id", "{{LIBRECHAT_USER_ID}}")],
        json!({"user": ""}),
        "default",
        "default",
    )
    .await;
    check(chat, &[], json!({"user": null}), "default", "default").await;
}

#[tokio::test]
async fn a_name_is_never_a_part_of_what_a_client_sends() {
    let (chat, agent) =
        ("/v1/chat/completions", "user_1_account_2_session_0b5c7e7c-51a7-4d0e-9f1c-6d2f6c1f2a3b");
    for (one, other) in [
        (json!({"user": "guest_session_1"}), json!({"user": "guest_session_2"})),
        (
            json!({"user": "{\"tenant\":\"acme\",\"id\":17}"}),
            json!({"user": "{\"tenant\":\"acme\",\"id\":18}"}),
        ),
        (
            json!({"metadata": {"user_id": "guest_session_1"}}),
            json!({"metadata": {"user_id": "guest_session_2"}}),
        ),
        (json!({"safety_identifier": agent}), json!({"safety_identifier": agent.replace("3b", "3c")})),
    ] {
        let chatting = Chatting::start().await;
        recorded(&chatting, chat, &[], one.clone()).await;
        let found = recorded(&chatting, chat, &[], other).await;
        assert_eq!(found.len(), 2, "two users: {one} {found:?}");
        assert_ne!(found[0].0, found[1].0);
    }
}

#[tokio::test]
async fn the_settings_say_where_names_are() {
    let chatting = Chatting::with(|proxy| {
        proxy.names.user_headers = vec!["X-Tenant".to_owned()];
        proxy.names.user_fields = vec!["extra.who".to_owned()];
    })
    .await;
    let body = json!({"user": "ignored", "extra": {"who": "wanda"}});
    let found = recorded(&chatting, "/v1/chat/completions", &[("x-openwebui-user-id", "u-1")], body).await;
    assert_eq!(found, [("wanda".to_owned(), "default".to_owned())]);
    let found = recorded(&chatting, "/v1/chat/completions", &[("x-tenant", "tom")], json!({})).await;
    assert_eq!(found.len(), 2, "{found:?}");
}

#[tokio::test]
async fn wrong_names_are_refused() {
    let chatting = Chatting::start().await;
    for (headers, body) in [
        (vec![], json!({"user": 5, "messages": []})),
        (vec![], json!({"user": "*", "messages": []})),
        (vec![], json!({"conversation": 5, "messages": []})),
        (vec![], json!({"metadata": {"user_id": [1]}, "messages": []})),
        (vec![("x-openwebui-user-id", "*")], json!({"messages": []})),
        (vec![("x-openwebui-user-id", "a"), ("x-openwebui-user-id", "b")], json!({"messages": []})),
    ] {
        let mut request = request(Method::POST, "/v1/chat/completions");
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.status, 400, "{headers:?} {body}");
    }
    assert!(chatting.upstream.received().is_empty());
}

#[tokio::test]
async fn a_bound_key_takes_other_programs_names_for_labels() {
    let chatting = Chatting::with(|_| ()).await;
    let keys = &chatting.server.app.engine().keys;
    let (_, secret) = keys.create(NewKey::new(UserId::new("ada").unwrap()), &Counted(3)).await.unwrap();
    let key = ("x-api-key", secret.reveal());
    let labels = json!({"user": "eve", "safety_identifier": "*", "metadata": {"user_id": "mallory"}});
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"] {
        let found = recorded(&chatting, path, &[key, ("x-openwebui-user-id", "eve")], labels.clone()).await;
        assert_eq!(found, [("ada".to_owned(), "default".to_owned())], "{path}");
        assert_eq!(chatting.upstream.last().json()["user"], "eve", "the label is passed on");
        // Strata's own names are no labels.
        for (headers, body) in [
            (vec![key, ("x-strata-user", "eve")], json!({"messages": []})),
            (vec![key], json!({"user_id": "eve", "messages": []})),
        ] {
            let mut request = request(Method::POST, path);
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
            assert_eq!(answer.status, 403, "{path} {body}");
        }
    }
    let unbound = NewKey::new(UserId::global());
    let (_, secret) = keys.create(unbound, &Counted(4)).await.unwrap();
    let key = ("x-api-key", secret.reveal());
    let found = recorded(&chatting, "/v1/chat/completions", &[key], json!({"user": "eve"})).await;
    assert!(found.contains(&("eve".to_owned(), "default".to_owned())), "{found:?}");
    let request = request(Method::POST, "/v1/chat/completions").header(key.0, key.1);
    let answer = chatting.server.send(request.body(Body::from(r#"{"messages":[]}"#)).unwrap()).await;
    assert_eq!(answer.status, 400, "an unbound key names its user");
}

#[tokio::test]
async fn a_label_of_a_bound_key_never_causes_a_refusal() {
    let chatting = Chatting::start().await;
    let keys = &chatting.server.app.engine().keys;
    let (_, secret) = keys.create(NewKey::new(UserId::new("ada").unwrap()), &Counted(3)).await.unwrap();
    let key = ("x-api-key", secret.reveal());
    let (user, chat) = ("x-openwebui-user-id", "x-openwebui-chat-id");
    let long = "c".repeat(2_000);
    for (headers, body, session) in [
        (vec![], json!({"user": 5}), "default"),
        (vec![], json!({"user": ["eve"], "safety_identifier": {"id": 1}}), "default"),
        (vec![], json!({"metadata": {"user_id": [1]}, "prompt_cache_key": 7}), "default"),
        (vec![(user, "eve"), (user, "bob")], json!({}), "default"),
        (vec![(chat, "c-1"), (chat, "c-2")], json!({}), "default"),
        (vec![(chat, long.as_str())], json!({"prompt_cache_key": "second"}), "second"),
        (vec![(chat, long.as_str()), ("x-librechat-conversation-id", "c-7")], json!({}), "c-7"),
        (vec![], json!({"metadata": {"user_id": "{\"id\":\"d\",\"session_id\":\"a\\u0000b\"}"}}), "default"),
    ] {
        let headers: Vec<_> = [key].into_iter().chain(headers).collect();
        for path in ["/v1/chat/completions", "/v1/messages"] {
            let found = recorded(&chatting, path, &headers, body.clone()).await;
            assert!(found.contains(&("ada".to_owned(), session.to_owned())), "{path} {body}: {found:?}");
            assert!(found.iter().all(|(user, _)| user == "ada"), "{found:?}");
        }
    }
    // Strata's own names are no labels.
    let request = request(Method::POST, "/v1/chat/completions").header(key.0, key.1);
    let answer =
        chatting.server.send(request.body(Body::from(r#"{"user_id":5,"messages":[]}"#)).unwrap()).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_key_for_chats_has_as_much_memory_as_its_other_scopes() {
    for (scopes, recalls, records) in [
        ("chat", false, false),
        ("chat,read", true, false),
        ("chat,write", false, true),
        ("chat,read,write", true, true),
    ] {
        let chatting = Chatting::start().await;
        let known =
            json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
        chatting.server.post("/turns", known).await;
        let new = NewKey { scopes: scopes.parse().unwrap(), ..NewKey::new(UserId::new("ada").unwrap()) };
        let (_, secret) = chatting.server.app.engine().keys.create(new, &Counted(5)).await.unwrap();
        // The absence of keys is cached.
        let body = json!({"messages": [user("what is my canoe called")]});
        let request = request(Method::POST, "/v1/chat/completions").header("x-api-key", secret.reveal());
        let request = request.header("x-strata-session", "s");
        let answer = chatting.server.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.status, 200, "{scopes}");
        assert_eq!(chatting.sent()[0]["content"].as_str().unwrap().contains("Heron"), recalls, "{scopes}");
        assert_eq!(chatting.turns().await.is_empty(), !records, "{scopes}");
        let listed = super::request(Method::GET, "/v1/models").header("x-api-key", secret.reveal());
        assert_eq!(chatting.server.send(listed.body(Body::empty()).unwrap()).await.status, 200, "{scopes}");
        let searched = super::request(Method::POST, "/search").header("x-api-key", secret.reveal());
        let searched =
            searched.header("content-type", "application/json").body(Body::from(r#"{"query":"canoe"}"#));
        let status = chatting.server.send(searched.unwrap()).await.status.as_u16();
        assert_eq!(status, if scopes.contains("read") { 200 } else { 403 }, "{scopes}");
    }
}

#[tokio::test]
async fn housekeeping_passes_bare_and_leaves_no_trace() {
    let chatting = Chatting::start().await;
    let known = json!({"user_id": "ada", "session_id": "t", "messages": [user("my canoe is called Heron")]});
    chatting.server.post("/turns", known).await;
    let prompt = "### Task:\nGenerate a title of 3-5 words for the chat history, as JSON.\n<chat_history>\nUSER: what is my canoe called\n</chat_history>";
    let body = json!({"model": "m", "messages": [user(prompt)]});
    let answer = chatting.chat_with(body.clone()).await;
    assert_eq!(answer.header("x-strata-memory-reason"), Some("housekeeping"));
    assert_eq!(answer.header("x-strata-memory-recorded"), Some("false"));
    assert_eq!(chatting.upstream.last().json(), body);
    assert!(chatting.turns().await.is_empty());
    assert_eq!(chatting.rows().await, json!([]));
    // A program may send these with all its requests, so they do not ask for memory here.
    for switch in ["read", "write"] {
        let mut request = chat_request(body.clone());
        request.headers_mut().insert("x-strata-memory", switch.parse().unwrap());
        let answer = chatting.server.send(request).await;
        assert_eq!(answer.header("x-strata-memory-reason"), Some("housekeeping"), "{switch}");
        assert_eq!(chatting.upstream.last().json(), body, "{switch}");
        assert!(chatting.turns().await.is_empty(), "{switch}");
    }
    // Who asks for memory gets it.
    let mut request = chat_request(body);
    request.headers_mut().insert("x-strata-memory", "on".parse().unwrap());
    chatting.server.send(request).await;
    assert_eq!(chatting.turns().await.len(), 2);
}

#[tokio::test]
async fn clients_that_share_the_default_user_are_counted() {
    let chatting = Chatting::start().await;
    let store = chatting.server.app.engine().store();
    let counted = async || store.progress(&UserId::default(), CLIENTS_SPACE).await.unwrap();
    let (nobody, named, cached) = (json!({}), json!({"user": "ada"}), json!({"prompt_cache_key": "app"}));
    for (agent, body, expected) in [
        ("a/1", &nobody, 0),
        ("a/1", &nobody, 0),
        ("b/1", &named, 0),
        // A program that sends one cache key for all of its conversations names none of them.
        ("a/1", &cached, 0),
        ("b/1", &cached, 2),
        ("b/1", &nobody, 2),
        ("c/1", &nobody, 3),
    ] {
        let body = body.clone();
        recorded(&chatting, "/v1/chat/completions", &[("user-agent", agent)], body).await;
        while counted().await < expected {
            tokio::task::yield_now().await;
        }
        assert_eq!(counted().await, expected, "{agent}");
    }
}
