//! Bad input gets a clear error and changes nothing: every route of the OpenAPI document, and every command.
//!
//! The routes come from the running server's own document, so that new routes are tested automatically.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "hostile/commands.rs"]
mod commands;
mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Answer, Client, Framing, Server, Upstream};

const HUNDRED_MEGABYTES: u64 = 100 * 1024 * 1024;
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A served store with some data, and a snapshot of the data.
struct Victim {
    // Declared before the directory, so that the server ends before its files are removed.
    server: Server,
    client: Client,
    /// The scripted model, which no bad request may reach.
    upstream: Upstream,
    memory: String,
    before: Value,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Victim {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hostile.db");
        let upstream = Upstream::start();
        let setting = format!("upstream={}", upstream.url());
        // Learning in the background would change the store too.
        let server = Server::start_with(&file, &["learn.enabled=false", &setting]);
        let mut client = server.client();
        let turn =
            json!({ "session_id": "trip", "messages": [{ "role": "user", "content": "I moved to Lisbon" }] });
        assert_eq!(client.post("/turns", &turn).unwrap().status, 201);
        let memory = json!({ "text": "likes tea", "user_id": "default", "infer": false });
        let answer = client.post("/memories", &memory).unwrap();
        assert!(answer.status < 300, "{} {}", answer.status, answer.text());
        let memory = answer.json()["results"][0]["id"].as_str().unwrap().to_owned();
        let before = snapshot(&mut client, &file);
        Self { server, client, upstream, memory, before, file, _directory: directory }
    }

    #[track_caller]
    fn assert_unchanged(&mut self, after: &str) {
        self.server.assert_running();
        assert_eq!(snapshot(&mut self.client, &self.file), self.before, "the store changed after {after}");
        let passed_on = self.upstream.received();
        assert!(passed_on.is_empty(), "the model was asked after {after}: {passed_on:?}");
    }

    /// The path of an operation with valid names, so that a case is wrong in only one way.
    fn path(&self, template: &str) -> String {
        let name = if template.starts_with("/memories") { &self.memory } else { "trip" };
        template.replace("{id}", name).replace("{deployment}", "d")
    }
}

/// The data that a client can see, and the counts of the file.
fn snapshot(client: &mut Client, file: &Path) -> Value {
    let mut read = |path: &str| client.get(path).unwrap().json();
    json!([
        read("/sessions"),
        read("/sessions/trip/turns"),
        read("/sessions/trip/state"),
        read("/sessions/trip/summaries"),
        read("/memories?user_id=default"),
        support::counts(file)
    ])
}

#[track_caller]
fn assert_refused(answer: &Answer, statuses: &[u16], what: &str) {
    let text = answer.text();
    assert!(statuses.contains(&answer.status), "{what}: {} {text}", answer.status);
    assert!(
        answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")),
        "{what}: {answer:?}"
    );
    let error = answer.json()["error"].clone();
    // Ollama's clients read a text.
    let message = error["message"].as_str().or(error.as_str()).unwrap_or_default().to_owned();
    assert!(message.len() > 10 && text.len() < 8_000, "{what}: the error should be clear and short: {text}");
}

/// One operation of the document.
struct Operation {
    method: String,
    template: String,
    has_body: bool,
    /// Parameters of the query that are whole numbers.
    numbers: Vec<String>,
}

fn operations(client: &mut Client) -> Vec<Operation> {
    let document = client.get("/openapi.json").unwrap().json();
    let mut operations = Vec::new();
    for (template, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let numbers = parameters.iter().filter(|parameter| {
                parameter["in"] == "query" && parameter["schema"].to_string().contains("\"integer\"")
            });
            operations.push(Operation {
                method: method.to_uppercase(),
                template: template.clone(),
                has_body: operation.get("requestBody").is_some(),
                numbers: numbers.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect(),
            });
        }
    }
    assert!(operations.len() >= 10, "the document lists the routes");
    operations
}

/// A valid body for the operation.
fn good_body(template: &str) -> Value {
    match template {
        "/turns" => json!({ "session_id": "trip", "messages": [{ "role": "user", "content": "hello" }] }),
        "/search" => json!({ "query": "Lisbon", "user_id": "default" }),
        "/memories" => json!({ "text": "likes coffee", "user_id": "default", "infer": false }),
        "/memories/{id}" => json!({ "text": "likes coffee" }),
        "/sessions/{id}/prompt" => json!({ "question": "where do I live?" }),
        "/sessions/{id}/context" => json!({ "session_id": "trip", "facts": ["likes tea"] }),
        "/sessions/{id}/state" => json!({ "diagnostic": { "device_ip": "10.0.0.7" } }),
        "/requests/{id}/feedback" => json!({ "text": "it forgot the harbour", "user_id": "default" }),
        "/v1/responses" => json!({ "memory_id": "trip", "input": "hello" }),
        "/api/generate" => json!({ "memory_id": "trip", "prompt": "hello" }),
        _ if is_chat(template) => {
            json!({ "memory_id": "trip", "messages": [{ "role": "user", "content": "hello" }] })
        }
        other => panic!("`{other}` is new: give this test a valid body for it"),
    }
}

/// Whether the route is a chat in the API of a provider.
fn is_chat(template: &str) -> bool {
    ["/v1/", "/api/", "/openai/"].iter().any(|prefix| template.starts_with(prefix))
}

#[test]
fn every_route_that_takes_a_body_refuses_a_bad_one() {
    let mut victim = Victim::new();
    for operation in operations(&mut victim.client).iter().filter(|operation| operation.has_body) {
        let path = victim.path(&operation.template);
        let good = good_body(&operation.template);
        let mut unknown = good.clone();
        unknown["nonsense"] = json!(1);
        let good = good.to_string();
        let half = &good[..good.len() / 2];
        let invalid_utf8 = [&good.as_bytes()[..good.len() - 3], b"\xff\xfe\"}"].concat();
        let repeated = format!("{},{}", &good[..good.len() - 1], &good[1..]);
        let deep = "[".repeat(100_000);
        let bodies: [(&str, &[u8]); 11] = [
            ("no body", b""),
            ("a brace", b"{"),
            ("half a body", half.as_bytes()),
            ("a list", b"[]"),
            ("a string", b"\"hello\""),
            ("null", b"null"),
            ("an empty object", b"{}"),
            ("an unknown field", unknown.to_string().leak().as_bytes()),
            ("invalid UTF-8", &invalid_utf8),
            ("each field twice", repeated.as_bytes()),
            ("a hundred thousand brackets", deep.as_bytes()),
        ];
        // These two are the client's own documents: unknown fields are kept, and a state may be empty.
        let is_context = operation.template == "/sessions/{id}/context";
        let is_state = operation.template == "/sessions/{id}/state";
        // A chat is forwarded to the upstream byte for byte, and the upstream judges its other fields and its media type.
        let is_chat = is_chat(&operation.template);
        // These APIs have requests without messages.
        let needs_nothing =
            ["/v1/responses", "/api/chat", "/api/generate"].contains(&operation.template.as_str());
        for (what, body) in bodies {
            let is_taken = match what {
                "an unknown field" => is_context || is_state || is_chat,
                "an empty object" => is_state || needs_nothing,
                "each field twice" => is_chat,
                _ => false,
            };
            if is_taken {
                continue;
            }
            let answer = victim.client.send(&operation.method, &path, &[JSON], body).unwrap();
            assert_refused(&answer, &[400, 413, 422], &format!("{} {path} with {what}", operation.method));
        }
        let kinds = ["text/plain", "application/json; charset=latin1", "multipart/form-data"];
        for kind in kinds.into_iter().filter(|_| !is_chat) {
            let headers = [("Content-Type", kind)];
            let answer = victim.client.send(&operation.method, &path, &headers, good.as_bytes()).unwrap();
            assert_refused(&answer, &[415], &format!("{} {path} as {kind}", operation.method));
        }
        victim.assert_unchanged(&format!("bad bodies for {} {path}", operation.method));
    }
}

#[test]
fn every_route_that_takes_a_body_refuses_a_hundred_megabytes() {
    let mut victim = Victim::new();
    let operations = operations(&mut victim.client);
    for operation in operations.iter().filter(|operation| operation.has_body && operation.method == "POST") {
        for framing in [Framing::Announced, Framing::Chunked] {
            // The connection is not reused after this.
            let mut client = victim.server.client();
            let answer = client.send_huge(&operation.template, HUNDRED_MEGABYTES, framing).unwrap();
            assert_refused(&answer, &[413], &format!("100 MB to {}, {framing:?}", operation.template));
        }
    }
    victim.assert_unchanged("100 MB bodies");
}

#[test]
fn every_route_refuses_a_query_that_it_does_not_understand() {
    let mut victim = Victim::new();
    for operation in operations(&mut victim.client) {
        let Operation { method, template, has_body, numbers } = &operation;
        let path = victim.path(template);
        let body = if *has_body { good_body(template).to_string() } else { String::new() };
        // Routes with a body do not read a query, and a chat's query is for the upstream. All other routes read it strictly.
        let mut queries: Vec<String> = Vec::new();
        if matches!(
            template.as_str(),
            "/sessions"
                | "/sessions/{id}"
                | "/sessions/{id}/turns"
                | "/sessions/{id}/summaries"
                | "/summaries"
                | "/sessions/{id}/context"
                | "/sessions/{id}/state"
                | "/sessions/{id}/compact"
                | "/memories"
                | "/requests"
                | "/jobs"
        ) && (!has_body || method == "PUT")
        {
            queries.extend(
                ["nonsense=1", "user_id=a&user_id=b", "user_id=%ff", "user_id=%", "user_id=", "user_id=*"]
                    .map(str::to_owned),
            );
            queries.push(format!("user_id={}", "x".repeat(10_000)));
        }
        for number in numbers {
            let values =
                ["-1", "abc", "1.5", "1e3", "%2B1", "", "99999999999999999999999", "0x10", "%EF%BC%91"];
            queries.extend(values.map(|value| format!("{number}={value}")));
        }
        for query in queries {
            let answer =
                victim.client.send(method, &format!("{path}?{query}"), &[JSON], body.as_bytes()).unwrap();
            let shown: String = query.chars().take(40).collect();
            assert_refused(&answer, &[400, 414], &format!("{method} {path}?{shown}"));
        }
    }
    victim.assert_unchanged("bad queries");
}

#[test]
fn every_route_refuses_an_invalid_name() {
    let mut victim = Victim::new();
    let long = "x".repeat(10_000);
    let emoji = "%F0%9F%A6%80".repeat(300);
    for operation in operations(&mut victim.client) {
        let Operation { method, template, has_body, .. } = &operation;
        if !template.contains("{id}") {
            continue;
        }
        let body = if *has_body { good_body(template).to_string() } else { String::new() };
        for name in
            [long.as_str(), &emoji, "%ff", "%", "%zz", "a%00b", "line%0Abreak", "..%2F..%2Fx", "%F0%9F%A6%80"]
        {
            let path = template.replace("{id}", name);
            // A session's name may be odd, and these routes create a session that does not exist.
            let is_odd_name = name.starts_with("..") || name == "%F0%9F%A6%80";
            if *has_body && template.starts_with("/sessions") && is_odd_name {
                continue;
            }
            let answer = victim.client.send(method, &path, &[JSON], body.as_bytes()).unwrap();
            let shown: String = path.chars().take(40).collect();
            assert_refused(&answer, &[400, 404, 414], &format!("{method} {shown}"));
        }
    }
    victim.assert_unchanged("bad names");
}

#[test]
fn invalid_values_are_refused() {
    let mut victim = Victim::new();
    let long = "x".repeat(10_000);
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let two_megabytes = "x".repeat(2 * 1024 * 1024);
    let cases = [
        ("/turns", json!({ "session_id": long, "messages": [message("user", "a")] })),
        ("/turns", json!({ "session_id": "", "messages": [message("user", "a")] })),
        ("/turns", json!({ "session_id": "a\u{0}b", "messages": [message("user", "a")] })),
        ("/turns", json!({ "user_id": long, "session_id": "s", "messages": [message("user", "a")] })),
        ("/turns", json!({ "user_id": "*", "session_id": "s", "messages": [message("user", "a")] })),
        ("/turns", json!({ "session_id": 7, "messages": [message("user", "a")] })),
        ("/turns", json!({ "session_id": "s", "messages": [] })),
        ("/turns", json!({ "session_id": "s", "messages": [message("king", "a")] })),
        ("/turns", json!({ "session_id": "s", "messages": [message("user", "a\u{0}")] })),
        ("/turns", json!({ "session_id": "s", "messages": [message("user", &two_megabytes)] })),
        // One bad message makes the whole request fail.
        (
            "/turns",
            json!({ "session_id": "s", "messages": [message("user", "a"), message("user", &two_megabytes)] }),
        ),
        ("/turns", json!({ "session_id": "s", "messages": vec![message("user", "a"); 1_001] })),
        (
            "/turns",
            json!({ "session_id": "s", "messages": [{ "role": "user", "content": "a", "created_at": "soon" }] }),
        ),
        (
            "/turns",
            json!({ "session_id": "s", "messages": [{ "role": "user", "content": "a", "metadata": [] }] }),
        ),
        ("/turns", json!({ "session_id": "s", "messages": [{ "role": "user", "content": ["a"] }] })),
        ("/search", json!({ "query": "", "user_id": "default" })),
        ("/search", json!({ "query": " \n\t", "user_id": "default" })),
        ("/search", json!({ "query": "x".repeat(10_001), "user_id": "default" })),
        ("/search", json!({ "query": "a", "user_id": "default", "top_k": 0 })),
        ("/search", json!({ "query": "a", "user_id": "default", "top_k": -1 })),
        ("/search", json!({ "query": "a", "user_id": "default", "top_k": 1_000_000_000_000u64 })),
        ("/search", json!({ "query": "a", "user_id": "default", "top_k": "many" })),
        ("/search", json!({ "query": "a", "user_id": "default", "scope": "everywhere" })),
        ("/search", json!({ "query": "a", "user_id": "default", "threshold": 2 })),
        ("/search", json!({ "query": "a", "user_id": "default", "recency_weight": -0.5 })),
        ("/search", json!({ "query": "a", "user_id": "default", "mmr_lambda": "much" })),
        ("/search", json!({ "query": "a", "user_id": "default", "max_tokens": 0 })),
        ("/search", json!({ "query": "a", "user_id": "default", "kinds": ["dream"] })),
        ("/search", json!({ "query": "a", "user_id": "default", "explain": "please" })),
        ("/search", json!({ "query": "a", "user_id": "default", "filters": { "a": { "like": 1 } } })),
        ("/search", json!({ "query": "a", "user_id": "default", "as_of": "yesterday" })),
        ("/sessions/trip/prompt", json!({ "question": "" })),
        ("/sessions/trip/prompt", json!({ "question": two_megabytes })),
        ("/sessions/trip/prompt", json!({ "question": "a", "format": "round" })),
        ("/sessions/trip/prompt", json!({ "question": "a", "max_tokens": 0 })),
        ("/sessions/trip/prompt", json!({ "question": "a", "user_id": "*" })),
        ("/memories", json!({ "text": "", "user_id": "default", "infer": false })),
        ("/memories", json!({ "text": "a\u{0}", "user_id": "default", "infer": false })),
        ("/memories", json!({ "text": two_megabytes, "user_id": "default", "infer": false })),
        ("/memories", json!({ "text": "a", "user_id": "*", "infer": false })),
        ("/v1/chat/completions", json!({ "messages": null })),
        ("/v1/responses", json!({ "input": 5 })),
        ("/v1/responses", json!({ "input": "a", "conversation": 5 })),
        ("/v1/messages", json!({ "messages": "hello" })),
        ("/v1/messages", json!({ "messages": [message("user", "a")], "metadata": { "user_id": "*" } })),
        ("/api/chat", json!({ "messages": "hello" })),
        ("/api/generate", json!({ "prompt": ["hello"] })),
        ("/v1/chat/completions", json!({ "messages": "hello" })),
        ("/v1/chat/completions", json!({ "messages": message("user", "a") })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "user": "*" })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "user": long })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "memory_id": "" })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "memory_id": 7 })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "memory_top_k": 0 })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "memory_top_k": "many" })),
        ("/v1/chat/completions", json!({ "messages": [message("user", "a")], "memory_score_threshold": 2 })),
    ];
    for (path, body) in &cases {
        let shown: String = body.to_string().chars().take(160).collect();
        let answer = victim.client.post(path, body).unwrap();
        assert_refused(&answer, &[400, 413, 422], &format!("POST {path} {shown}"));
    }
    let lone = br#"{"session_id":"s","messages":[{"role":"user","content":"\ud800"}]}"#;
    let answer = victim.client.send("POST", "/turns", &[JSON], lone).unwrap();
    assert_refused(&answer, &[400], "half a character");
    let good = good_body("/turns").to_string();
    for key in ["", "x".repeat(10_000).as_str(), "a\tb"] {
        let headers = [JSON, ("Idempotency-Key", key)];
        let answer = victim.client.send("POST", "/turns", &headers, good.as_bytes()).unwrap();
        assert_refused(&answer, &[400, 431], "a bad idempotency key");
    }
    victim.assert_unchanged("bad values");
}

#[test]
fn unknown_routes_and_methods_are_refused() {
    let mut victim = Victim::new();
    for path in ["/nowhere", "/sessions/trip/nowhere", "/turns/1", "//", "/%2e%2e/%2e%2e/x", "/../../x"] {
        let answer = victim.client.get(path).unwrap();
        assert_refused(&answer, &[400, 404], path);
    }
    for (method, path) in [
        ("DELETE", "/turns"),
        ("PATCH", "/sessions/trip"),
        ("PUT", "/search"),
        ("BREW", "/sessions"),
        ("TRACE", "/v1/chat/completions"),
    ] {
        let answer = victim.client.send(method, path, &[JSON], b"{}").unwrap();
        assert_refused(&answer, &[405], &format!("{method} {path}"));
    }
    victim.assert_unchanged("unknown routes");
}

#[test]
fn odd_session_names_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("odd.db");
    let server = Server::start(&file);
    let mut client = server.client();
    let names = [
        "user:agent:1",
        "../../x",
        "🦀👩‍👩‍👧",
        " ",
        "a/b\\c?d#e&f=g%h",
        ".",
        "..",
        "西湖",
        "'; DROP TABLE turns; --",
        "\"*\"",
    ];
    for name in names {
        let body =
            json!({ "session_id": name, "messages": [{ "role": "user", "content": format!("in {name}") }] });
        let answer = client.post("/turns", &body).unwrap();
        assert_eq!(answer.status, 201, "{name}: {}", answer.text());
        assert_eq!(answer.json()["turns"][0]["seq"], 0, "{name}");
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let session = client.get(&format!("/sessions/{escaped}")).unwrap();
        assert_eq!(session.json()["id"], name, "{}", session.text());
        let turns = client.get(&format!("/sessions/{escaped}/turns")).unwrap();
        assert_eq!(turns.json()["turns"][0]["content"], format!("in {name}"));
    }
    let listed = client.get("/sessions").unwrap().json();
    let listed: BTreeSet<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, BTreeSet::from(names));
    let files: BTreeSet<OsString> =
        directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|file| file.to_string_lossy().starts_with("odd.")), "{files:?}");
}
