//! Rules for all routes: bad input is refused in the same shape and changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Method;
use serde_json::json;
use strata_core::UserId;
use strata_core::key::KeyScope;

use crate::Settings;
use crate::route::Rules;
use crate::testing::{TestServer, request};

/// An invalid request.
struct Bad {
    method: &'static str,
    uri: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
    status: u16,
}

fn bad(method: &'static str, uri: impl Into<String>, status: u16) -> Bad {
    Bad { method, uri: uri.into(), headers: Vec::new(), body: Vec::new(), status }
}

fn bad_body(method: &'static str, uri: impl Into<String>, body: impl Into<Vec<u8>>, status: u16) -> Bad {
    let headers = vec![("content-type", b"application/json".to_vec())];
    Bad { headers, body: body.into(), ..bad(method, uri, status) }
}

impl Bad {
    fn header(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }
}

const ID: &str = "00000000-0000-0000-0000-00000000ffff";

/// Broken bodies that no route accepts.
fn broken_bodies() -> Vec<(&'static str, String)> {
    [("POST", "/turns"), ("POST", "/memories"), ("POST", "/search")]
        .into_iter()
        .map(|(method, uri)| (method, uri.to_owned()))
        .chain([("PUT", format!("/memories/{ID}")), ("POST", "/sessions/s/prompt".to_owned())])
        .collect()
}

fn bad_everywhere() -> Vec<Bad> {
    let mut cases = Vec::new();
    for (method, uri) in broken_bodies() {
        cases.push(bad_body(method, &uri, "", 400));
        cases.push(bad_body(method, &uri, "{", 400));
        cases.push(bad_body(method, &uri, "[]", 400));
        cases.push(bad_body(method, &uri, "null", 400));
        cases.push(bad_body(method, &uri, b"{\"text\":\"\xff\"}", 400));
        cases.push(bad_body(method, &uri, "{\"surprise\":1}", 400));
        cases.push(bad_body(method, &uri, format!("{{\"metadata\":{}", "[".repeat(100_000)), 400));
        cases.push(bad_body(method, &uri, vec![b' '; 8 * 1024 * 1024 + 1], 413));
        cases.push(bad_body(method, &uri, "{}", 415).header("content-type", "text/plain"));
        cases.push(
            bad_body(method, &uri, "{}", 415).header("content-type", "application/json; charset=utf-16"),
        );
        cases.push(bad(method, &uri, 415));
    }
    let long = "x".repeat(10_000);
    for uri in [
        "/sessions",
        "/sessions/s",
        "/sessions/s/turns",
        "/sessions/s/summaries",
        "/summaries",
        "/sessions/s/context",
        "/sessions/s/state",
        "/memories",
        "/requests",
    ] {
        for query in [
            "user_id=",
            "user_id=%ff",
            "user_id=%zz",
            "user_id=*",
            "user_id=a%00b",
            "user_id=a&user_id=b",
            "x=1",
        ] {
            cases.push(bad("GET", format!("{uri}?{query}"), 400));
        }
        cases.push(bad("GET", format!("{uri}?user_id={long}"), 400));
        cases.push(bad("GET", uri, 400).header("x-strata-user", ""));
        cases.push(bad("GET", uri, 400).header("x-strata-user", b"\xff".to_vec()));
        cases.push(bad("GET", uri, 400).header("x-strata-session", long.clone()));
        cases.push(bad("PATCH", uri, 405));
    }
    for uri in
        ["/sessions", "/sessions/s/turns", "/sessions/s/summaries", "/summaries", "/memories", "/requests"]
    {
        for limit in ["", "0", "-1", "1001", "1.5", "abc", "99999999999999999999", "+5", "1&limit=2"] {
            cases.push(bad("GET", format!("{uri}?limit={limit}"), 400));
        }
    }
    for uri in ["/sessions", "/summaries", "/memories"] {
        for offset in ["", "-1", "9223372036854775808", "x"] {
            cases.push(bad("GET", format!("{uri}?offset={offset}"), 400));
        }
    }
    cases
}

fn bad_turns() -> Vec<Bad> {
    let with = |body: serde_json::Value| bad_body("POST", "/turns", body.to_string(), 400);
    let message = |extra: serde_json::Value| {
        let mut message = json!({"role": "user", "content": "x"});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        with(json!({"session_id": "s", "messages": [message]}))
    };
    let ok = json!([{"role": "user", "content": "x"}]);
    vec![
        with(json!({})),
        with(json!({"messages": []})),
        with(json!({"messages": "x"})),
        with(json!({"messages": [{"role": "user"}]})),
        with(json!({"messages": ok, "user_id": "*"})),
        with(json!({"messages": ok, "user_id": ""})),
        with(json!({"messages": ok, "user_id": "*"})).header("x-strata-user", "ada"),
        with(json!({"messages": ok, "user_id": 5})),
        with(json!({"messages": ok, "session_id": ""})),
        with(json!({"messages": ok, "session_id": "a\nb"})),
        with(json!({"messages": ok, "session_id": "x".repeat(10_000)})),
        bad_body("POST", "/turns", r#"{"messages":[],"messages":[]}"#, 400),
        with(json!({"messages": [["user", "x", null, null, null]]})),
        with(json!([null, null, null, null, null, ok])),
        message(json!({"role": "robot"})),
        message(json!({"role": {"user": null}})),
        message(json!({"content": null})),
        message(json!({"content": "a\u{0}b"})),
        message(json!({"contents": "x"})),
        message(json!({"created_at": "yesterday"})),
        message(json!({"created_at": 1e30})),
        message(json!({"created_at": 1_700_000_000_000_000_i64})),
        message(json!({"metadata": []})),
        message(json!({"metadata": {"a": "\u{0}"}})),
        message(json!({"name": "x".repeat(65)})),
        Bad { status: 413, ..message(json!({"content": "x".repeat(1024 * 1024 + 1)})) },
        Bad { status: 413, ..with(json!({"messages": vec![ok[0].clone(); 1001]})) },
        with(json!({"messages": ok})).header("idempotency-key", ""),
        with(json!({"messages": ok})).header("idempotency-key", "x".repeat(257)),
        with(json!({"messages": ok})).header("idempotency-key", b"\xff".to_vec()),
        bad("GET", "/turns", 405),
    ]
}

fn bad_paths() -> Vec<Bad> {
    let long = "x".repeat(10_000);
    let mut cases = vec![
        bad("GET", "/nowhere", 404),
        bad("GET", "/sessions/", 404),
        bad("GET", "/memories/", 404),
        bad("GET", "/sessions/a/b", 404),
        bad("GET", "/sessions/s/turns?after=-1", 400),
        bad("GET", "/sessions/s/turns?after=", 400),
    ];
    for method in ["GET", "DELETE"] {
        cases.push(bad(method, "/sessions/unknown", 404));
        for name in ["%ff", "%zz", "a%00b", "%", &long] {
            cases.push(bad(method, format!("/sessions/{name}"), 400));
        }
        for id in ["1", "%F0%9F%A6%80", "..%2F..%2Fx", "%ff", &long] {
            cases.push(bad(method, format!("/memories/{id}"), 400));
        }
        cases.push(bad(method, format!("/memories/{ID}"), 404));
        cases.push(bad(method, format!("/memories/{ID}?scope=all"), 400));
        cases.push(bad(method, format!("/memories/{ID}?user_id="), 400));
    }
    cases.extend([
        bad("GET", format!("/memories/{ID}/history"), 404),
        bad("GET", "/memories/x/history", 400),
        bad("POST", format!("/memories/{ID}/restore"), 404),
        bad("POST", "/memories/x/restore", 400),
        bad("DELETE", format!("/memories/{ID}?forget=true"), 404),
        bad("DELETE", format!("/memories/{ID}?forget=1"), 400),
        bad("DELETE", "/memories?user_id=", 400),
        bad("DELETE", "/memories?user_id=*", 400),
        bad("DELETE", "/memories?user_id=ada&forget=yes", 400),
        bad("DELETE", "/memories?user_id=ada&run_id=", 400),
        bad("DELETE", "/memories?user_id=ada&agent_id=", 400),
        bad("DELETE", "/memories?user_id=ada", 400).header("x-strata-user", "eve"),
        bad("DELETE", "/memories", 400).header("x-strata-user", "ada"),
        bad("GET", format!("/requests/{ID}"), 404),
        bad("GET", "/requests/x", 400),
        bad("GET", "/requests?since=yesterday", 400),
        bad("GET", format!("/requests/{ID}/explain"), 400),
        bad("GET", format!("/requests/{ID}/explain?item=x"), 400),
        bad("GET", format!("/requests/{ID}/explain?item={ID}"), 404),
        bad("GET", "/memories?kind=secret", 400),
        bad("GET", "/memories?as_of=yesterday", 400),
        bad("GET", "/memories?run_id=", 400),
        bad_body("PUT", format!("/memories/{ID}"), r#"{"text":"x"}"#, 404),
        bad_body("PUT", format!("/memories/{ID}"), "{}", 400),
        bad_body("PUT", format!("/memories/{ID}"), r#"{"text":"x","data":" "}"#, 400),
        bad_body("PUT", "/memories/x", r#"{"text":"x"}"#, 400),
    ]);
    cases
}

fn bad_prompts_and_documents() -> Vec<Bad> {
    let prompt = |body: serde_json::Value| bad_body("POST", "/sessions/s/prompt", body.to_string(), 400);
    let context = |body: serde_json::Value| {
        let session = body["session_id"].as_str().filter(|name| *name != "other").unwrap_or("s");
        bad_body("PUT", format!("/sessions/{session}/context?user_id=ada"), body.to_string(), 400)
    };
    let state =
        |body: serde_json::Value| bad_body("PUT", "/sessions/s/state?user_id=ada", body.to_string(), 400);
    let whole = json!({"session_id": "s", "facts": ["tea"]});
    let mut cases = vec![
        prompt(json!({"question": " "})),
        prompt(json!({"question": "a\u{0}"})),
        prompt(json!({"question": ["x"]})),
        prompt(json!({"question": "x", "format": "round"})),
        prompt(json!({"question": "x", "format": {"flat": null}})),
        prompt(json!({"question": "x", "max_tokens": 0})),
        prompt(json!({"question": "x", "max_tokens": 1.5})),
        prompt(json!({"question": "x", "user_id": "*"})),
        prompt(json!({"question": "x", "session_id": "s"})),
        Bad { status: 413, ..prompt(json!({"question": "x".repeat(1024 * 1024 + 1)})) },
        context(json!({})),
        Bad { status: 409, ..context(json!({"session_id": "other"})) },
        Bad { status: 409, ..context(whole.clone()) },
        context(json!({"session_id": "s", "facts": "tea"})),
        context(json!({"session_id": "new", "facts": [" "]})),
        context(json!({"session_id": "s", "recent_history": [["user", "x"]]})),
        context(json!({"session_id": "new", "recent_history": [{"role": "king", "content": "x"}]})),
        Bad {
            status: 409,
            ..context(json!({"session_id": "s", "recent_history": [{"role": "user", "content": "x"}]}))
        },
        context(json!({"session_id": "s", "tool_stats": {"total_calls": -1}})),
        context(json!({"session_id": "new", "system_state": {"a": "\u{0}"}})),
        context(json!({"session_id": "new", "diagnostic": {}})),
        Bad { status: 409, ..context(whole.clone()) }.header("if-match", "W/\"0\""),
        Bad { status: 409, ..context(whole.clone()) }.header("if-match", ""),
        Bad { status: 409, ..context(whole) }.header("if-match", "\"0000000000000000\""),
        state(json!({"diagnostic": []})),
        state(json!({"diagnostic": null})),
        state(json!({"diagnostic": {"status": "asleep"}})),
        state(json!({"active_tasks": [{"id": 5}]})),
        state(json!({"own": "a\u{0}"})),
        Bad { status: 413, ..state(json!({"own": "x".repeat(1024 * 1024 + 1)})) },
        bad_body("PUT", "/sessions/s/state", r#"{"diagnostic":{},"diagnostic":{}}"#, 400),
        bad("POST", "/sessions/unknown/compact", 404),
        bad("POST", "/sessions/s/compact?limit=1", 400),
        bad("GET", "/sessions/s/compact", 405),
        bad("POST", "/sessions/s/context", 405),
    ];
    for uri in ["/sessions/s/context", "/sessions/s/state"] {
        for body in ["", "{", "[]", "null"] {
            cases.push(bad_body("PUT", uri, body, 400));
        }
        cases.push(bad_body("PUT", uri, "{}", 415).header("content-type", "text/plain"));
        cases.push(bad_body("PUT", uri, vec![b' '; 8 * 1024 * 1024 + 1], 413));
    }
    for part in ["summaries", "context", "state"] {
        cases.push(bad("GET", format!("/sessions/unknown/{part}"), 404));
    }
    cases
}

fn bad_memories_and_searches() -> Vec<Bad> {
    let memory = |body: serde_json::Value| bad_body("POST", "/memories", body.to_string(), 400);
    let search = |body: serde_json::Value| bad_body("POST", "/search", body.to_string(), 400);
    vec![
        memory(json!({})),
        memory(json!({"text": " "})),
        memory(json!({"text": "a\u{0}"})),
        memory(json!({"text": 5})),
        memory(json!({"messages": []})),
        memory(json!({"messages": [["user", "x", null, null, null]]})),
        memory(
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": " "}]}),
        ),
        memory(json!({"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": ""}]})),
        memory(json!({"text": "x", "messages": [{"role": "user", "content": "x"}]})),
        memory(json!({"text": "x", "messages": []})),
        memory(json!({"messages": [{"role": "tool", "content": "a\u{0}"}]})),
        memory(json!({"messages": [{"role": "tool", "content": "x", "metadata": {"\u{0}": 1}}]})),
        memory(json!({"messages": [{"role": "tool", "content": "x", "name": "x".repeat(65)}]})),
        memory(json!({"text": "x", "scope": "user", "run_id": "s"})),
        memory(json!({"text": "x", "scope": "global", "run_id": "s"})),
        memory(json!({"text": "x", "scope": "all"})),
        memory(json!({"text": "x", "kind": "turn"})),
        memory(json!({"text": "x", "user_id": "*"})),
        memory(json!({"text": "x", "agent_id": ""})),
        memory(json!({"text": "x", "run_id": "x".repeat(10_000)})),
        memory(json!({"text": "x", "infer": "yes"})),
        Bad { status: 413, ..memory(json!({"text": "x".repeat(1024 * 1024 + 1)})) },
        Bad {
            status: 413,
            ..memory(json!({"messages": vec![json!({"role": "user", "content": "x"}); 1001]}))
        },
        search(json!({"query": " "})),
        search(json!({"query": ["x"]})),
        Bad { status: 413, ..search(json!({"query": "x".repeat(10_001)})) },
        search(json!({"query": "x", "top_k": 0})),
        search(json!({"query": "x", "top_k": -1})),
        search(json!({"query": "x", "limit": 1001})),
        search(json!({"query": "x", "top_k": 1, "limit": 0})),
        search(json!({"query": "x", "top_k": 1.5})),
        search(json!({"query": "x", "top_k": 1e10})),
        search(json!({"query": "x", "threshold": -0.1})),
        search(json!({"query": "x", "as_of": "soon"})),
        search(json!({"query": "x", "scope": "galaxy"})),
        search(json!({"query": "x", "threshold": 1.1})),
        search(json!({"query": "x", "recency_weight": 2})),
        search(json!({"query": "x", "mmr_lambda": -1})),
        search(json!({"query": "x", "max_tokens": 0})),
        search(json!({"query": "x", "max_tokens": 1.5})),
        search(json!({"query": "x", "kinds": []})),
        search(json!({"query": "x", "kinds": ["dream"]})),
        search(json!({"query": "x", "explain": "please"})),
        search(json!({"query": "x", "filters": {"a": {"like": 1}}})),
        search(json!({"query": "x", "user_id": "*"})),
        search(json!({"query": "x", "session_id": ""})),
    ]
}

fn bad_chats() -> Vec<Bad> {
    const CHAT: &str = "/v1/chat/completions";
    let chat = |body: serde_json::Value| bad_body("POST", CHAT, body.to_string(), 400);
    vec![
        bad_body("POST", CHAT, "", 400),
        bad_body("POST", CHAT, "{", 400),
        bad_body("POST", CHAT, "[]", 400),
        bad_body("POST", CHAT, b"{\"messages\":\"\xff\"}", 400),
        bad_body("POST", CHAT, format!("{{\"messages\":{}", "[".repeat(100_000)), 400),
        chat(json!({"messages": [], "memory_id": ""})),
        chat(json!({"messages": [], "memory_id": 5})),
        chat(json!({"messages": [], "memory_top_k": 0})),
        chat(json!({"messages": [], "memory_recency_weight": 2})),
        chat(json!({"messages": [], "memory_score_threshold": "high"})),
        chat(json!({"messages": [], "user": "*"})),
        chat(json!({"messages": []})).header("x-strata-memory", "perhaps"),
        chat(json!({"messages": []})).header("x-strata-session", b"\xff".to_vec()),
        // These requests are valid, but there is no upstream to pass them on to.
        Bad { status: 503, ..chat(json!({"messages": [{"role": "user", "content": "x"}]})) },
        bad("GET", CHAT, 503),
        bad("DELETE", "/v1/files/a%2Fb?x=1", 503),
    ]
}

#[tokio::test]
async fn bad_input_gets_a_clear_error_and_changes_nothing() {
    let server = TestServer::new();
    let body = json!({"user_id": "ada", "session_id": "s", "messages": [{"role": "user", "content": "tea"}]});
    assert_eq!(server.post("/turns", body).await.status, 201);
    assert_eq!(server.post("/memories", json!({"user_id": "ada", "text": "tea"})).await.status, 200);
    let before = server.heads().await;
    assert_eq!(before[0].0, UserId::new("ada").unwrap());

    let mut messages = String::new();
    let all = [
        bad_everywhere(),
        bad_turns(),
        bad_paths(),
        bad_prompts_and_documents(),
        bad_memories_and_searches(),
        bad_chats(),
    ];
    for cases in all {
        for case in cases {
            let mut request = request(case.method.parse::<Method>().unwrap(), &case.uri);
            for (name, value) in &case.headers {
                request = request.header(*name, value.as_slice());
            }
            let shown: String = case.uri.chars().take(60).collect();
            let sent = String::from_utf8_lossy(&case.body);
            let sent: String = sent.trim().chars().take(70).collect();
            let answer = server.send(request.body(Body::from(case.body)).unwrap()).await;
            let line = format!("{} {shown} {sent}", case.method);
            assert_eq!(answer.status, case.status, "{line}: {}", answer.body);
            assert_eq!(answer.header("content-type"), Some("application/json"), "{line}");
            assert!(answer.header("x-strata-request-id").is_some(), "{line}");
            let error = &answer.json()["error"];
            for field in ["message", "type", "code"] {
                assert!(
                    error[field].as_str().is_some_and(|text| !text.is_empty()),
                    "{line}: {}",
                    answer.body
                );
            }
            let message = error["message"].as_str().unwrap();
            let message: String = message.chars().take(200).collect();
            writeln!(messages, "{line}\n    {} {message}", answer.status.as_u16()).unwrap();
        }
    }
    assert_eq!(server.heads().await, before, "the store is as it was");
    insta::assert_snapshot!("bad_input", messages);
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_server_lives_on() {
    let server = TestServer::new();
    let body = json!({"messages": [{"role": "user", "content": "panic!"}]});
    let answer = server.post("/turns", body).await;
    insta::assert_snapshot!("panicked", answer.shown());
    assert!(answer.header("x-strata-request-id").is_some());
    assert_eq!(
        server.post("/turns", json!({"messages": [{"role": "user", "content": "x"}]})).await.status,
        201
    );
}

#[tokio::test]
async fn a_foreign_host_is_refused_in_the_same_shape() {
    let server = TestServer::new();
    let request = axum::http::Request::builder().uri("/memories").header("host", "evil.example");
    insta::assert_snapshot!("foreign_host", server.send(request.body(Body::empty()).unwrap()).await.shown());
    let request = request_from("https://evil.example");
    insta::assert_snapshot!("foreign_origin", server.send(request).await.shown());
}

fn request_from(origin: &str) -> axum::http::Request<Body> {
    request(Method::GET, "/memories").header("origin", origin).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_said_so() {
    let server = TestServer::new();
    server.app.engine().store().close().await.unwrap();
    for uri in ["/sessions", "/sessions/s", "/memories", "/readyz"] {
        let answer = server.get(uri).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["error"]["code"].as_str()),
            (503, Some("unavailable")),
            "{uri}"
        );
    }
}

/// Collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_holds_events_but_no_text_and_no_names() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let server = TestServer::with(Settings::default(), Default::default());
    let message = json!({"role": "user", "content": "SECRET words", "metadata": {"SECRET": 1}});
    let body = json!({"user_id": "SECRET-user", "session_id": "SECRET-session", "messages": [message]});
    let answer = server.post("/turns", body).await;
    server.post("/search", json!({"query": "SECRET", "user_id": "SECRET-user"})).await;
    server.post("/memories", json!({"text": "SECRET", "SECRET": "SECRET"})).await;
    server.get("/sessions/SECRET-session/turns?user_id=SECRET-user").await;
    server.get("/SECRET").await;
    server.app.engine().store().close().await.unwrap();
    server.get("/sessions/SECRET-session?user_id=SECRET-user").await;

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("SECRET"), "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<_> =
        lines.iter().map(|line| &line["fields"]).filter(|f| f["route"].is_string()).collect();
    assert_eq!(requests.len(), 6, "{text}");
    assert_eq!(requests[0]["request_id"].as_str(), answer.header("x-strata-request-id"));
    assert_eq!((&requests[0]["method"], &requests[0]["status"]), (&json!("POST"), &json!(201)));
    assert_eq!(requests[3]["route"], "/sessions/{id}/turns");
    assert_eq!(requests[5]["error"], "the store is closed; open it again");
}

#[test]
fn every_route_declares_its_rules_once() {
    let mut lines = BTreeMap::new();
    for route in super::all() {
        assert_eq!(super::RULES.get(&route.path), Some(&route.rules), "{}", route.path);
        let limits = if route.is_limited { "limited" } else { "unlimited" };
        let Rules { access, dialect } = route.rules;
        let line = format!("{} {access:?} {dialect:?} {limits}\n", route.path);
        assert_eq!(lines.insert(route.path, line), None, "a path is declared once");
    }
    insta::assert_snapshot!("routes", lines.into_values().collect::<String>());
}

#[test]
fn unlisted_routes_need_read_for_get_and_write_otherwise() {
    let scopes = |method: &Method| Rules::default().access.needed(method).map(|needed| needed.scopes);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        assert_eq!(scopes(&method), Some(&[KeyScope::Read][..]), "{method}");
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::TRACE] {
        assert_eq!(scopes(&method), Some(&[KeyScope::Write][..]), "{method}");
    }
}

#[tokio::test]
async fn the_id_of_an_answer_is_ours() {
    let server = TestServer::new();
    let request = request(Method::GET, "/healthz").header("x-strata-request-id", "theirs");
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert!(answer.header("x-strata-request-id").unwrap().parse::<uuid::Uuid>().is_ok());
}
