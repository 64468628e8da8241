use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::testing::{Answer, TestServer, request};

/// A server with one memory of `ada` and one of `bob`, and the ids of both.
async fn with_memories() -> (TestServer, [String; 2]) {
    let server = TestServer::new();
    let mut ids = Vec::new();
    for (user, text) in [("ada", "likes green tea"), ("bob", "likes green apples")] {
        let body =
            json!({"messages": text, "user_id": user, "metadata": {"colour": "green"}, "unknown_field": 1});
        let added = server.post("/v3/memories/add/", body).await;
        assert_eq!(added.status, 200, "{}", added.body);
        ids.push(added.json()["results"][0]["id"].as_str().unwrap().to_owned());
    }
    (server, ids.try_into().unwrap())
}

/// A call whose header names `user`.
async fn call(server: &TestServer, user: &str, method: Method, uri: &str, body: Option<Value>) -> Answer {
    let request =
        request(method, uri).header("content-type", "application/json").header("x-strata-user", user);
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    server.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn a_caller_that_is_bound_sees_and_changes_nothing_of_others() {
    let (server, [tea, _]) = with_memories().await;
    let many = json!({"memories": [{"memory_id": tea, "text": "mine"}]});
    let mine = |filters: Value| json!({"query": "green", "filters": filters});
    let any = json!({"OR": [{"user_id": "ada"}, {"colour": "green"}]});
    let calls = [
        (Method::GET, format!("/v1/memories/{tea}/"), None),
        (Method::GET, format!("/memories/{tea}"), None),
        (Method::GET, format!("/v1/memories/{tea}/history/"), None),
        (Method::PUT, format!("/v1/memories/{tea}/"), Some(json!({"text": "mine"}))),
        (Method::PUT, "/v1/batch/".to_owned(), Some(many.clone())),
        (Method::DELETE, "/v1/batch/".to_owned(), Some(many)),
        (Method::DELETE, format!("/v1/memories/{tea}/"), None),
        (Method::DELETE, "/v1/memories/?user_id=ada".to_owned(), None),
        (Method::DELETE, "/v2/entities/user/ada/".to_owned(), None),
        (Method::POST, "/v3/memories/".to_owned(), Some(mine(json!({"user_id": "ada"})))),
        (Method::POST, "/v3/memories/search/".to_owned(), Some(mine(json!({"user_id": "ada"})))),
        (Method::POST, "/v3/memories/search/".to_owned(), Some(mine(any.clone()))),
        (Method::POST, "/search".to_owned(), Some(mine(any))),
        (Method::GET, "/v1/entities/".to_owned(), None),
        (Method::POST, "/reset".to_owned(), None),
    ];
    for (method, uri, body) in calls {
        let answer = call(&server, "eve", method.clone(), &uri, body).await;
        assert!(!answer.body.contains("green tea"), "{method} {uri}: {}", answer.body);
        assert!(!answer.body.contains("\"ada\""), "{method} {uri}: {}", answer.body);
    }
    assert_eq!(server.get(&format!("/memories/{tea}")).await.json()["memory"], "likes green tea");
}

#[tokio::test]
async fn a_reset_that_names_a_user_leaves_the_others() {
    let (server, [tea, apples]) = with_memories().await;
    let refused = server.post("/reset", json!({"user_id": "ada"})).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(server.post("/reset?user_id=nobody", json!({})).await.status, 200);
    for memory in [tea, apples] {
        assert_eq!(server.get(&format!("/memories/{memory}")).await.status, 200);
    }
}

#[tokio::test]
async fn filters_tell_users_apart() {
    let (server, [tea, apples]) = with_memories().await;
    let search = async |filters: Value| {
        let answer = server.post("/v3/memories/search/", json!({"query": "green", "filters": filters})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let found = answer.json()["results"].as_array().unwrap().clone();
        found.into_iter().map(|memory| memory["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(search(json!({"user_id": "ada"})).await, [tea]);
    assert_eq!(search(json!({"AND": [{"user_id": "bob"}, {"colour": "green"}]})).await, [apples]);
    assert!(search(json!({"user_id": "bob", "colour": {"ne": "green"}})).await.is_empty());
    for filters in [json!({"user_id": {"in": ["ada", "bob"]}}), json!({"NOT": [{"user_id": "ada"}]})] {
        let answer = server.post("/v3/memories/search/", json!({"query": "x", "filters": filters})).await;
        assert_eq!(answer.status, 400);
        assert!(answer.json()["detail"].as_str().unwrap().contains("one user at a time"), "{}", answer.body);
    }
}

#[tokio::test]
async fn refusals_are_in_the_field_that_the_client_reads() {
    let (server, [tea, _]) = with_memories().await;
    let before = server.heads().await;
    for (method, uri, body, expected) in [
        (Method::POST, "/v3/memories/add/", json!({"messages": 1, "user_id": "ada"}), "`messages`"),
        (Method::POST, "/v3/memories/add/", json!({"messages": "x", "user_id": "*"}), "user"),
        (
            Method::POST,
            "/v3/memories/add/",
            json!({"messages": "x", "expiration_date": "2030-01-01"}),
            "`expiration_date`",
        ),
        (Method::POST, "/v3/memories/", json!({"filters": {"a": {"like": 1}}}), "`like`"),
        (Method::POST, "/v3/memories/search/", json!({"query": " "}), "empty"),
        (Method::PUT, "/v1/memories/nonsense/", json!({"text": "x"}), "nonsense"),
        (Method::DELETE, "/v1/memories/", json!({}), "nothing is named"),
        (Method::DELETE, "/v2/entities/planet/x/", json!({}), "not an entity"),
    ] {
        let answer = server.write(method, uri, body).await;
        assert_eq!(answer.status, 400, "{uri} {}", answer.body);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(expected), "{uri}: {detail}");
    }
    let nothing = server.write(Method::PUT, &format!("/v1/memories/{tea}/"), json!({})).await;
    assert!(nothing.json()["detail"].as_str().unwrap().contains("nothing to change"));
    assert_eq!(server.heads().await, before);
    let empty = json!({"messages": [{"role": "assistant", "content": "x"}], "user_id": "ada"});
    assert_eq!(server.post("/v3/memories/add/", empty).await.json()["results"], json!([]));
}

#[tokio::test]
async fn metadata_keeps_its_order_and_its_numbers() {
    let server = TestServer::new();
    let metadata = r#"{"zone":9007199254740993123,"berth":1.50,"a":"\u0041"}"#;
    let add = |path: &str, text: &str| {
        let body = format!(r#"{{"messages":"{text}","user_id":"ada","infer":false,"metadata":{metadata}}}"#);
        let request = request(Method::POST, path).header("content-type", "application/json");
        server.send(request.body(Body::from(body)).unwrap())
    };
    let added = add("/v3/memories/add/", "the sloop lies in the north basin").await;
    let id = added.json()["results"][0]["id"].as_str().unwrap().to_owned();
    let filters = json!({"filters": {"user_id": "ada"}, "query": "where does the sloop lie"});
    for answer in [
        server.get(&format!("/v1/memories/{id}/?user_id=ada")).await,
        server.post("/v3/memories/", filters.clone()).await,
        server.post("/v3/memories/search/", filters).await,
    ] {
        assert!(answer.body.contains(&format!(r#""metadata":{metadata}"#)), "{}", answer.body);
    }
}
