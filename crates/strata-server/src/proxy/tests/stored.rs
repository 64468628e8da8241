//! What an upstream has stored belongs to the user for whom it was stored.

use strata_core::UserId;
use strata_engine::NewKey;

use super::names::Counted;
use super::*;
use crate::Secret;

/// A server with the upstream's key, and keys of Ann, of Bob and of a gateway.
async fn start(upstream_key: Option<&str>) -> (Chatting, [String; 3]) {
    let chatting = Chatting::with(|proxy| proxy.upstream_key = upstream_key.map(Secret::new)).await;
    let mut secrets = Vec::new();
    for (number, user) in
        [UserId::new("ann").unwrap(), UserId::new("bob").unwrap(), UserId::global()].into_iter().enumerate()
    {
        let keys = &chatting.server.app.engine().keys;
        let (_, secret) = keys.create(NewKey::new(user), &Counted(20 + number as u8)).await.unwrap();
        secrets.push(secret.reveal().to_owned());
    }
    (chatting, secrets.try_into().unwrap())
}

async fn send(chatting: &Chatting, key: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = request(method, path).header("x-api-key", key).header("content-type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let answer = chatting.server.send(request.body(body).unwrap()).await;
    chatting.server.app.proxy().finish(Duration::from_secs(30)).await;
    answer
}

fn response(id: &str) -> Value {
    let content = json!([{"type": "output_text", "text": "Noted."}]);
    json!({"id": id, "status": "completed", "output": [{"type": "message", "content": content}]})
}

#[tokio::test]
async fn a_key_does_not_get_what_another_user_has_stored() {
    let (chatting, [ann, bob, _]) = start(Some("sk-ours")).await;
    chatting.upstream.will(axum::Json(response("resp_a")));
    let told = json!({"model": "m", "input": "the code of my locker is hidden", "conversation": "conv_a"});
    assert_eq!(send(&chatting, &ann, Method::POST, "/v1/responses", told).await.status, 200);
    let mut completion = super::upstream::completion("Noted.");
    completion["id"] = json!("chatcmpl-a");
    chatting.upstream.will(axum::Json(completion));
    let stored = json!({"model": "m", "store": true, "messages": [user("my locker is blue")]});
    assert_eq!(send(&chatting, &ann, Method::POST, "/v1/chat/completions", stored).await.status, 200);
    let seen = chatting.upstream.received().len();
    let chat = |more: Value| {
        let mut body = json!({"model": "m", "input": "what is my code"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let calls = || {
        [
            (Method::GET, "/v1/responses/resp_a", Value::Null),
            (Method::GET, "/v1/responses/resp_a/input_items", Value::Null),
            (Method::GET, "/openai/v1/responses/resp_a", Value::Null),
            (Method::POST, "/v1/responses/resp_a/cancel", json!({})),
            (Method::GET, "/v1/conversations/conv_a/items", Value::Null),
            (Method::GET, "/v1/chat/completions/chatcmpl-a/messages", Value::Null),
            (Method::POST, "/v1/responses", chat(json!({"previous_response_id": "resp_a"}))),
            (Method::POST, "/v1/responses", chat(json!({"conversation": {"id": "conv_a"}}))),
            (Method::POST, "/v1/responses/compact", chat(json!({"previous_response_id": "resp_a"}))),
            (Method::POST, "/v1/responses/input_tokens", chat(json!({"conversation": "conv_a"}))),
            (Method::DELETE, "/v1/responses/resp_a", Value::Null),
        ]
    };
    for (method, path, body) in calls() {
        let answer = send(&chatting, &bob, method, path, body.clone()).await;
        assert_eq!(answer.status, 404, "{path} {body}: {}", answer.body);
        assert!(!answer.body.contains("ann"), "{}", answer.body);
    }
    assert_eq!(chatting.upstream.received().len(), seen, "nothing reached the upstream");
    for (method, path, body) in calls() {
        let answer = send(&chatting, &ann, method, path, body.clone()).await;
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_id_cannot_be_hidden_in_a_body() {
    let (chatting, [ann, bob, _]) = start(Some("sk-ours")).await;
    chatting.upstream.will(axum::Json(response("resp_a")));
    send(&chatting, &ann, Method::POST, "/v1/responses", json!({"input": "hello there"})).await;
    let seen = chatting.upstream.received().len();
    let body = json!({"input": "x", "previous_response_id": "resp_a"}).to_string();
    let packed = crate::proxy::decoding::tests::gzip(body.as_bytes());
    for path in [
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/openai/deployments/d/responses",
    ] {
        for (kind, encoding, body, refused) in [
            ("text/plain", "identity", Bytes::from(body.clone()), [404, 404]),
            ("multipart/form-data", "identity", Bytes::from(body.clone()), [404, 404]),
            ("application/json", "gzip", Bytes::from(packed.clone()), [404, 404]),
            ("application/json", "zstd", Bytes::from(packed.clone()), [415, 413]),
        ] {
            let request = request(Method::POST, path).header("x-api-key", &bob).header("content-type", kind);
            let request = request.header("content-encoding", encoding).body(Body::from(body)).unwrap();
            let status = chatting.server.send(request).await.status.as_u16();
            assert!(refused.contains(&status), "{path} {kind} {encoding}: {status}");
        }
    }
    assert_eq!(chatting.upstream.received().len(), seen);
}

#[tokio::test]
async fn an_unknown_id_passes_and_belongs_to_its_first_user() {
    let (chatting, [ann, bob, gateway]) = start(Some("sk-ours")).await;
    chatting.upstream.will((StatusCode::NOT_FOUND, "{}"));
    assert_eq!(send(&chatting, &bob, Method::GET, "/v1/responses/resp_old", Value::Null).await.status, 404);
    assert_eq!(send(&chatting, &ann, Method::GET, "/v1/responses/resp_old", Value::Null).await.status, 200);
    assert_eq!(send(&chatting, &bob, Method::GET, "/v1/responses/resp_old", Value::Null).await.status, 404);
    // A gateway asks for the user that it names.
    let path = "/v1/responses/resp_old";
    for (named, expected) in [("ann", 200), ("bob", 404)] {
        let request = request(Method::GET, path).header("x-api-key", &gateway).header("x-strata-user", named);
        let answer = chatting.server.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), expected, "{named}");
    }
}

#[tokio::test]
async fn a_list_of_all_users_is_for_no_user() {
    for (upstream_key, own, expected) in [
        (Some("sk-ours"), None, 403),
        (Some("sk-ours"), Some("Bearer sk-mine"), 403),
        (None, None, 403),
        // The provider tells the users apart.
        (None, Some("Bearer sk-mine"), 200),
    ] {
        let (chatting, [ann, _, gateway]) = start(upstream_key).await;
        for path in [
            "/v1/chat/completions",
            "/openai/v1/chat/completions",
            "/v1/threads/",
            "/v1/batches",
            "/v1/messages/batches",
        ] {
            for (key, expected) in [(&ann, expected), (&gateway, 200)] {
                let mut asked =
                    request(Method::GET, path).header("x-api-key", key).body(Body::empty()).unwrap();
                if let Some(own) = own {
                    asked.headers_mut().insert("authorization", own.parse().unwrap());
                }
                let answer = chatting.server.send(asked).await;
                assert_eq!(
                    answer.status.as_u16(),
                    expected,
                    "{path} {upstream_key:?} {own:?}: {}",
                    answer.body
                );
            }
        }
        assert_eq!(send(&chatting, &ann, Method::GET, "/v1/models", Value::Null).await.status, 200);
    }
}

#[tokio::test]
async fn without_keys_nothing_is_checked() {
    let chatting = Chatting::start().await;
    chatting.upstream.will(axum::Json(response("resp_a")));
    for (user, method, path) in [
        ("ann", Method::POST, "/v1/responses"),
        ("bob", Method::GET, "/v1/responses/resp_a"),
        ("bob", Method::GET, "/v1/chat/completions"),
    ] {
        let body = if method == Method::POST { r#"{"input":"hello there"}"# } else { "" };
        let request = request(method, path).header("x-strata-user", user);
        assert_eq!(chatting.server.send(request.body(Body::from(body)).unwrap()).await.status, 200, "{path}");
    }
}
