//! Keys from outside: which requests each key allows.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use strata_core::key::{KeyLimits, SECRET_BYTES, Scopes, SecretSource};
use strata_core::{Result, UserId};
use strata_engine::NewKey;

use super::*;
use crate::testing::{Answer, TestServer, request};
use crate::{Reach, Settings};

/// Secrets that count up.
struct Counted(u8);

impl SecretSource for Counted {
    fn fill(&self, bytes: &mut [u8; SECRET_BYTES]) -> Result<()> {
        bytes.fill(self.0);
        Ok(())
    }
}

/// A server that looks up keys at each request.
fn server() -> TestServer {
    TestServer::with(settings(), Default::default())
}

fn settings() -> Settings {
    Settings { keys_remembered: std::time::Duration::ZERO, ..Settings::default() }
}

fn bound(user: &str) -> NewKey {
    NewKey::new(UserId::new(user).unwrap())
}

/// Makes a key whose secret follows from `number`.
async fn make(server: &TestServer, number: u8, new: NewKey) -> (ApiKey, String) {
    let (key, secret) = server.app.engine().keys.create(new, &Counted(number)).await.unwrap();
    (key, secret.reveal().to_owned())
}

async fn call(
    server: &TestServer,
    method: Method,
    uri: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Answer {
    let mut request = request(method, uri).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    server.send(request.body(body).unwrap()).await
}

async fn get(server: &TestServer, uri: &str, headers: &[(&str, &str)]) -> Answer {
    call(server, Method::GET, uri, headers, Value::Null).await
}

fn code(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    // Ollama's clients read a text in `error`.
    let code = body["error"]["code"].as_str().or(body["code"].as_str()).unwrap_or_default().to_owned();
    (answer.status.as_u16(), code)
}

#[tokio::test]
async fn from_the_first_key_on_every_route_but_health_needs_one() {
    let server = server();
    assert_eq!(server.get("/memories").await.status, 200);
    let (_, secret) = make(&server, 1, NewKey { scopes: Scopes::ALL, ..bound("ada") }).await;
    let document = server.get("/openapi.json").await;
    assert_eq!(document.status, 401);
    let document = get(&server, "/openapi.json", &[("x-api-key", &secret)]).await.json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let uri = path.replace("{id}", "00000000-0000-0000-0000-000000000000");
            let answer = call(&server, method.clone(), &uri, &[], Value::Null).await;
            if matches!(path.as_str(), "/healthz" | "/readyz") {
                assert_eq!(answer.status, 200, "{path}");
                continue;
            }
            assert_eq!(code(&answer), (401, "missing_api_key".to_owned()), "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="strata""#));
            let answer = call(&server, method.clone(), &uri, &[("x-api-key", &secret)], Value::Null).await;
            assert_ne!(answer.status, 401, "{method} {path}");
        }
    }
    assert_eq!(server.get("/nowhere").await.status, 401, "strangers do not learn what there is");
    insta::assert_snapshot!("missing_key", server.get("/memories").await.shown());
}

#[tokio::test]
async fn a_key_is_sent_in_either_header_and_foreign_keys_are_ignored() {
    let server = server();
    let (_, ada) = make(&server, 1, bound("ada")).await;
    let (_, eve) = make(&server, 2, bound("eve")).await;
    let bearer = |secret: &str| format!("Bearer {secret}");
    for headers in [
        vec![("authorization", bearer(&ada))],
        vec![("authorization", format!("bearer   {ada} "))],
        vec![("authorization", format!("Token {ada}"))],
        vec![("x-api-key", ada.clone())],
        vec![("x-api-key", ada.clone()), ("authorization", bearer("sk-provider"))],
        vec![("x-api-key", "someone-elses".to_owned()), ("authorization", bearer(&ada))],
        vec![("x-api-key", ada.clone()), ("authorization", bearer(&ada))],
    ] {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(get(&server, "/memories", &headers).await.status, 200, "{headers:?}");
    }
    let cut = &ada[..ada.len() - 1];
    for (headers, expected) in [
        (vec![("authorization", ada.clone())], (401, "missing_api_key")),
        (vec![("authorization", format!("Basic {ada}"))], (401, "missing_api_key")),
        (vec![("authorization", bearer("sk-provider"))], (401, "missing_api_key")),
        (vec![("x-api-key", String::new())], (401, "missing_api_key")),
        (vec![("x-api-key", cut.to_owned())], (401, "invalid_api_key")),
        (vec![("x-api-key", ada.to_uppercase())], (401, "missing_api_key")),
        (vec![("x-api-key", format!("strata_{}", "0".repeat(32)))], (401, "invalid_api_key")),
        (vec![("x-api-key", ada.clone()), ("authorization", bearer(&eve))], (400, "invalid")),
    ] {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = get(&server, "/memories", &headers).await;
        assert_eq!(code(&answer), (expected.0, expected.1.to_owned()), "{headers:?}");
        assert!(!answer.body.contains(cut), "an answer never repeats a key: {}", answer.body);
    }
}

#[test]
fn headers_with_our_keys_are_recognised() {
    let secret = KeySecret::generate(&Counted(1)).unwrap();
    let identity = |pairs: &[(HeaderName, &str)]| {
        let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        Identity { key: None, headers: PresentedKey::read(&headers).unwrap().headers }
    };
    let bearer = format!("Bearer {}", secret.reveal());
    let both = identity(&[(API_KEY, secret.reveal()), (AUTHORIZATION, "Bearer sk-provider")]);
    assert!(both.is_ours(&API_KEY) && !both.is_ours(&AUTHORIZATION));
    let alone = identity(&[(AUTHORIZATION, &bearer)]);
    assert!(alone.is_ours(&AUTHORIZATION) && !alone.is_ours(&API_KEY));
    let none = identity(&[(AUTHORIZATION, "Bearer sk-provider")]);
    assert!(!none.is_ours(&AUTHORIZATION));
}

#[tokio::test]
async fn a_bound_key_never_names_another_user() {
    let server = server();
    let (_, ada) = make(&server, 1, bound("ada")).await;
    let key = ("x-api-key", ada.as_str());
    let added = call(&server, Method::POST, "/memories", &[key], json!({"text": "likes tea"})).await;
    assert_eq!(added.status, 200, "{}", added.body);
    for (uri, headers) in
        [("/memories", vec![key]), ("/memories?user_id=ada", vec![key, ("x-strata-user", "ada")])]
    {
        let list = get(&server, uri, &headers).await;
        assert_eq!(list.json()["results"][0]["user_id"], "ada", "{uri}");
    }
    let foreign = get(&server, "/memories?user_id=eve", &[key]).await;
    insta::assert_snapshot!("foreign_user", foreign.shown());
    for (uri, headers) in [
        ("/memories", vec![key, ("x-strata-user", "eve")]),
        ("/memories?user_id=ada", vec![key, ("x-strata-user", "eve")]),
        ("/memories?user_id=eve", vec![key, ("x-strata-user", "ada")]),
        ("/memories?scope=global&user_id=eve", vec![key]),
    ] {
        assert_eq!(code(&get(&server, uri, &headers).await), (403, "forbidden_user".to_owned()), "{uri}");
    }
    for body in [
        json!({"query": "tea", "user_id": "eve"}),
        json!({"query": "tea", "user": "eve"}),
        json!({"query": "tea", "user_id": "ada", "user": "eve"}),
    ] {
        let answer = call(&server, Method::POST, "/search", &[key], body.clone()).await;
        assert_eq!(code(&answer), (403, "forbidden_user".to_owned()), "{body}");
    }
    let answer = call(&server, Method::DELETE, "/memories?user_id=eve", &[key], Value::Null).await;
    assert_eq!(code(&answer), (403, "forbidden_user".to_owned()));
}

#[tokio::test]
async fn an_unbound_key_says_whom_it_serves() {
    let server = server();
    let unbound = NewKey { scopes: Scopes::ALL, ..NewKey::new(UserId::global()) };
    let (_, secret) = make(&server, 1, unbound).await;
    let key = ("x-api-key", secret.as_str());
    let answer = get(&server, "/memories", &[key]).await;
    assert_eq!(code(&answer), (400, "invalid".to_owned()));
    assert!(answer.body.contains("X-Strata-User"), "{}", answer.body);
    for user in ["ada", "eve"] {
        let add = json!({"text": format!("is {user}")});
        let headers = [key, ("x-strata-user", user)];
        assert_eq!(call(&server, Method::POST, "/memories", &headers, add).await.status, 200);
        let list = get(&server, &format!("/memories?user_id={user}"), &[key]).await.json();
        assert_eq!(list["results"].as_array().unwrap().len(), 1);
    }
    let shared = json!({"text": "is for all", "scope": "global"});
    assert_eq!(
        call(&server, Method::POST, "/memories", &[key], shared).await.status,
        200,
        "that is nobody's"
    );
    assert_eq!(get(&server, "/memories?scope=global", &[key]).await.status, 200);
}

#[tokio::test]
async fn a_key_is_limited_to_its_scopes() {
    let server = server();
    let scoped = |scopes: &str| NewKey { scopes: scopes.parse().unwrap(), ..bound("ada") };
    let (_, read) = make(&server, 1, scoped("read")).await;
    let (_, write) = make(&server, 2, scoped("write")).await;
    let (_, admin) = make(&server, 3, scoped("read,write,admin")).await;
    let (_, watch) = make(&server, 4, scoped("admin")).await;
    let turn = json!({"messages": [{"role": "user", "content": "green tea"}]});
    let shared = json!({"text": "tea is at four", "scope": "global"});
    let id = {
        let headers = [("x-api-key", admin.as_str())];
        let added = call(&server, Method::POST, "/memories", &headers, shared.clone()).await.json();
        added["results"][0]["id"].as_str().unwrap().to_owned()
    };
    let of_all = format!("/memories/{id}?scope=global");
    let cases: [(Method, &str, Value, [u16; 4]); 12] = [
        (Method::GET, "/memories", Value::Null, [200, 403, 200, 403]),
        (Method::POST, "/search", json!({"query": "tea"}), [200, 403, 200, 403]),
        (Method::POST, "/turns", turn, [403, 201, 201, 403]),
        (Method::POST, "/sessions/default/prompt", json!({"question": "tea?"}), [200, 403, 200, 403]),
        (Method::POST, "/memories", shared, [403, 403, 200, 403]),
        (Method::GET, &of_all, Value::Null, [200, 403, 200, 403]),
        (Method::PUT, &of_all, json!({"text": "tea is at five"}), [403, 403, 200, 403]),
        (Method::DELETE, &of_all, Value::Null, [403, 403, 200, 403]),
        (Method::GET, "/metrics", Value::Null, [403, 403, 200, 200]),
        (Method::GET, "/openapi.json", Value::Null, [200, 200, 200, 200]),
        (Method::GET, "/unlisted", Value::Null, [404, 403, 404, 403]),
        (Method::POST, "/unlisted", Value::Null, [403, 404, 404, 403]),
    ];
    for (method, uri, body, expected) in cases {
        for (secret, expected) in [&read, &write, &admin, &watch].into_iter().zip(expected) {
            let answer = call(&server, method.clone(), uri, &[("x-api-key", secret)], body.clone()).await;
            assert_eq!(answer.status, expected, "{method} {uri} {}", answer.body);
            if expected == 403 {
                assert_eq!(code(&answer).1, "insufficient_scope");
            }
        }
    }
}

#[tokio::test]
async fn a_key_ends_by_itself_or_is_taken_back() {
    let server = server();
    let soon = server.app.engine().now() + jiff::SignedDuration::from_secs(30);
    let (_, expiring) = make(&server, 1, NewKey { expires_at: Some(soon), ..bound("ada") }).await;
    let (key, revoked) = make(&server, 2, bound("ada")).await;
    assert_eq!(get(&server, "/memories", &[("x-api-key", &revoked)]).await.status, 200);
    assert_eq!(get(&server, "/memories", &[("x-api-key", &expiring)]).await.status, 200);
    server.app.engine().keys.revoke(key.id).await.unwrap();
    let answer = get(&server, "/memories", &[("x-api-key", &revoked)]).await;
    assert_eq!(code(&answer), (401, "invalid_api_key".to_owned()));
    assert!(answer.body.contains("revoked"), "{}", answer.body);
    assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="strata", error="invalid_token""#));
    // The clock advances one second with each read.
    while server.app.engine().now() < soon {}
    let answer = get(&server, "/memories", &[("x-api-key", &expiring)]).await;
    assert_eq!(code(&answer), (401, "invalid_api_key".to_owned()));
    assert!(answer.body.contains("time is over"), "{}", answer.body);
    assert_eq!(server.get("/memories").await.status, 401, "time alone opens no door");
    for key in server.app.engine().keys.list(&KeyQuery::unrevoked(Page::first(9))).await.unwrap() {
        server.app.engine().keys.revoke(key.id).await.unwrap();
    }
    assert_eq!(server.get("/memories").await.status, 200, "taking back the last key does, on loopback");
    assert_eq!(get(&server, "/memories", &[("x-api-key", &revoked)]).await.status, 401, "it stays no key");
}

#[tokio::test]
async fn a_server_on_a_network_needs_a_key_for_every_request() {
    let named = vec!["memory.example".to_owned()];
    for settings in
        [Settings { reach: Reach::Network, ..settings() }, Settings { allowed_hosts: named, ..settings() }]
    {
        let server = TestServer::with(settings, Default::default());
        assert_eq!(server.get("/memories").await.status, 401);
        assert_eq!(server.get("/healthz").await.status, 200);
        let (key, secret) = make(&server, 1, bound("ada")).await;
        let shown = [("x-api-key", secret.as_str())];
        assert_eq!(get(&server, "/memories", &shown).await.status, 200);
        server.app.engine().keys.revoke(key.id).await.unwrap();
        assert_eq!(server.get("/memories").await.status, 401);
    }
}

#[tokio::test]
async fn a_remembered_key_costs_no_lookup_and_a_stranger_takes_no_room() {
    let long = std::time::Duration::from_secs(3_600);
    let server = TestServer::with(Settings { keys_remembered: long, ..settings() }, Default::default());
    let (key, secret) = make(&server, 1, bound("ada")).await;
    let shown = [("x-api-key", secret.as_str())];
    assert_eq!(get(&server, "/memories", &shown).await.status, 200);
    server.app.engine().keys.revoke(key.id).await.unwrap();
    assert_eq!(get(&server, "/memories", &shown).await.status, 200, "it is still remembered");
    let wrong = format!("strata_{}", "7".repeat(32));
    assert_eq!(get(&server, "/memories", &[("x-api-key", &wrong)]).await.status, 401);
    assert_eq!(server.app.keys().lock().keys.len(), 1);
}

#[tokio::test]
async fn the_last_answer_counts_while_the_store_is_away() {
    let learned = Instant::now();
    let known = Known { value: "open", learned, asked: learned };
    let away = async || Result::<&str>::Err(strata_core::Error::unavailable("the store is away"));
    let kept = Known::ask(Some(known.clone()), away()).await.unwrap();
    assert_eq!((kept.value, kept.learned), ("open", learned));
    assert!(kept.asked >= learned, "it is not asked again at once");
    assert!(Known::ask(None, away()).await.is_err());
    assert!(known.is_trusted(learned) && !known.is_trusted(learned + KNOWN_WHILE_AWAY));
    let damaged = async || Result::<&str>::Err(strata_core::Error::internal("a row is damaged"));
    assert!(Known::ask(Some(known.clone()), damaged()).await.is_err());
    let new = Known::ask(Some(known), async { Ok("guarded") }).await.unwrap();
    assert_eq!(new.value, "guarded");
}

#[tokio::test]
async fn a_key_has_limits_of_its_own() {
    let server = server();
    let limits = KeyLimits { per_minute: Some(2), concurrent: None };
    let (_, few) = make(&server, 1, NewKey { limits, ..bound("ada") }).await;
    let (_, many) = make(&server, 2, bound("ada")).await;
    let shown = [("x-api-key", few.as_str())];
    let statuses =
        [get(&server, "/memories", &shown).await.status, get(&server, "/memories", &shown).await.status];
    assert_eq!(statuses, [200, 200]);
    let answer = get(&server, "/memories", &shown).await;
    assert_eq!(code(&answer), (429, "rate_limited".to_owned()));
    assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(get(&server, "/memories", &[("x-api-key", &many)]).await.status, 200);
}

#[tokio::test]
async fn pages_that_were_named_may_ask_and_read() {
    let origin = "https://app.example";
    let settings = Settings { cors_origins: vec![origin.to_owned()], ..settings() };
    let server = TestServer::with(settings, Default::default());
    let (_, secret) = make(&server, 1, bound("ada")).await;
    let preflight = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type,x-stainless-lang"),
    ];
    let answer = call(&server, Method::OPTIONS, "/search", &preflight, Value::Null).await;
    assert_eq!(answer.status, 204, "a browser asks before it has a key to show");
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
    assert_eq!(answer.header("access-control-allow-headers"), Some(preflight[2].1));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert!(answer.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("Origin")));
    for (headers, status) in
        [(vec![("origin", origin), ("x-api-key", secret.as_str())], 200), (vec![("origin", origin)], 401)]
    {
        let answer = get(&server, "/memories", &headers).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "an error can be read too");
    }
    for origin in ["https://other.example", "http://localhost:3000"] {
        let answer = get(&server, "/memories", &[("origin", origin), ("x-api-key", &secret)]).await;
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
        let preflight = [("origin", origin), ("access-control-request-method", "POST")];
        let answer = call(&server, Method::OPTIONS, "/search", &preflight, Value::Null).await;
        assert_ne!(answer.status, 204, "{origin}");
    }
}

#[tokio::test]
async fn refusals_for_mem0s_clients_are_in_detail() {
    let server = server();
    let reader = NewKey {
        scopes: "read".parse().unwrap(),
        limits: KeyLimits { per_minute: Some(1), ..KeyLimits::default() },
        ..bound("ada")
    };
    let (_, secret) = make(&server, 1, reader).await;
    let key = format!("Bearer {secret}");
    let shown = [("authorization", key.as_str())];
    let told = |answer: Answer, status: u16| {
        assert_eq!(answer.status, status, "{}", answer.body);
        let told = answer.json();
        assert!(told["detail"].is_string() && told["detail"] == told["error"]["message"], "{told}");
    };
    told(get(&server, "/memories", &[]).await, 401);
    told(get(&server, "/v1/entities/", &[]).await, 401);
    let said = json!({"text": "x"});
    told(call(&server, Method::POST, "/memories", &shown, said).await, 403);
    assert_eq!(get(&server, "/memories", &shown).await.status, 200);
    told(get(&server, "/memories", &shown).await, 429);
    assert!(get(&server, "/sessions", &[]).await.json().get("detail").is_none());
}

#[tokio::test]
async fn a_key_forgets_its_own_user_and_only_administrators_forget_others() {
    let server = server();
    let anybody = |scopes: &str| NewKey { scopes: scopes.parse().unwrap(), ..NewKey::new(UserId::global()) };
    let (_, admin) = make(&server, 1, anybody("read,write,admin")).await;
    let (_, gateway) = make(&server, 2, anybody("read,write")).await;
    let (_, own) = make(&server, 3, bound("mira")).await;
    let (_, reader) = make(&server, 4, NewKey { scopes: "read".parse().unwrap(), ..bound("mira") }).await;
    make(&server, 5, bound("jon")).await;
    let forget = async |secret: &str, user: &str| {
        code(
            &call(&server, Method::DELETE, &format!("/users/{user}"), &[("x-api-key", secret)], Value::Null)
                .await,
        )
    };
    let mem0 = async |secret: &str| {
        let uri = "/v2/entities/user/jon/";
        call(&server, Method::DELETE, uri, &[("x-api-key", secret)], Value::Null).await.status.as_u16()
    };
    assert_eq!(forget(&gateway, "mira").await, (403, "insufficient_scope".to_owned()));
    assert_eq!(mem0(&gateway).await, 403);
    assert_eq!(forget(&reader, "mira").await, (403, "insufficient_scope".to_owned()));
    assert_eq!(forget(&own, "jon").await, (403, "forbidden_user".to_owned()));
    assert_eq!(forget(&own, "mira").await.0, 200);
    assert_eq!(forget(&own, "mira").await.0, 401, "the user's keys are gone");
    assert_eq!(forget(&admin, "jon").await.0, 200);
    assert_eq!(mem0(&admin).await, 404, "nothing is left of a user who only had a key");
}

#[tokio::test]
async fn forgetting_a_user_does_not_open_the_server() {
    let server = server();
    let (_, own) = make(&server, 1, bound("mira")).await;
    let shown = [("x-api-key", own.as_str())];
    let refused = call(&server, Method::DELETE, "/users/mira", &shown, Value::Null).await;
    assert_eq!(code(&refused), (409, "conflict".to_owned()));
    assert_eq!(get(&server, "/memories", &[]).await.status, 401);
    make(&server, 2, bound("jon")).await;
    assert_eq!(call(&server, Method::DELETE, "/users/mira", &shown, Value::Null).await.status, 200);
    assert_eq!(get(&server, "/memories", &[]).await.status, 401);
}
