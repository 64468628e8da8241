//! Bad input gets a clear error and changes nothing: every route of the OpenAPI document, and every command.
//!
//! The routes come from the running server's own document, so that a new one is attacked without anybody remembering it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use support::{Answer, Client, Framing, Server, Upstream};

const HUNDRED_MEGABYTES: u64 = 100 * 1024 * 1024;
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A served store with something in it, and how it looked then.
struct Victim {
    // Before the directory: the server must be gone when its files go.
    server: Server,
    client: Client,
    /// The model behind it, which nothing bad may reach.
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
        // What is learned in the background would change the store too.
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

    /// The path of an operation with real names in it, so that only what a case spoils is wrong.
    fn path(&self, template: &str) -> String {
        let name = if template.starts_with("/memories") { &self.memory } else { "trip" };
        template.replace("{id}", name)
    }
}

/// All that a client can see of the store, and what the file itself counts.
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
    let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
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

/// A body that the operation takes as it is.
fn good_body(template: &str) -> Value {
    match template {
        "/turns" => json!({ "session_id": "trip", "messages": [{ "role": "user", "content": "hello" }] }),
        "/search" => json!({ "query": "Lisbon", "user_id": "default" }),
        "/memories" => json!({ "text": "likes coffee", "user_id": "default", "infer": false }),
        "/memories/{id}" => json!({ "text": "likes coffee" }),
        "/sessions/{id}/prompt" => json!({ "question": "where do I live?" }),
        "/sessions/{id}/context" => json!({ "session_id": "trip", "facts": ["likes tea"] }),
        "/sessions/{id}/state" => json!({ "diagnostic": { "device_ip": "10.0.0.7" } }),
        "/v1/chat/completions" => {
            json!({ "memory_id": "trip", "messages": [{ "role": "user", "content": "hello" }] })
        }
        other => panic!("`{other}` is new: give this test a body that it takes"),
    }
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
        // These two are the client's documents: fields of its own are kept, and a state may be empty.
        let is_context = operation.template == "/sessions/{id}/context";
        let is_state = operation.template == "/sessions/{id}/state";
        // A chat goes on to the upstream byte for byte: what its other fields and its media type are worth is said there.
        let is_chat = operation.template == "/v1/chat/completions";
        for (what, body) in bodies {
            let is_taken = match what {
                "an unknown field" => is_context || is_state || is_chat,
                "an empty object" => is_state,
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
            // A connection that carried this is not used again.
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
        // Operations and bodies do not read a query, and a chat's is the upstream's; everything that reads one reads it
        // strictly.
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
fn every_route_refuses_a_name_that_cannot_be() {
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
            // A session's name may be odd, and these make a session where there is none.
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
fn values_that_cannot_be_are_refused() {
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
        // One bad message takes the good one with it.
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
fn odd_names_of_sessions_are_names_like_others() {
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

fn run(file: &Path, arguments: &[OsString], input: &[u8]) -> Output {
    let mut command = support::strata();
    command.current_dir(file.parent().unwrap()).args(arguments);
    if !arguments.iter().any(|argument| argument == "--store") {
        command.args(["--store", &support::store_url(file)]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn assert_fails(output: &Output, what: &str) {
    let shown = support::show(output);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{what}: {shown}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("error:") && !errors.contains("panicked"), "{what}: {shown}");
    // What was typed may be quoted back once.
    assert!(errors.len() < 12_000, "{what}: the error should be short, not {} bytes", errors.len());
}

#[test]
fn every_command_refuses_bad_input() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("commands.db");
    let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
    let setup =
        run(&file, &words(&["record", "--session", "trip"]), b"{\"role\":\"user\",\"content\":\"hello\"}\n");
    assert!(setup.status.success(), "{}", support::show(&setup));
    let before = support::counts(&file);
    assert_eq!(before["turns"], 1, "{before}");

    let long = "x".repeat(10_000);
    let commands: &[&[&str]] = &[
        &["nonsense"],
        &["--nonsense"],
        &["chat", "--user", "*"],
        &["chat", "--session", &long],
        &["chat", "--upstream", "api.openai.com"],
        &["chat", "--store", "nonsense"],
        &["search"],
        &["search", ""],
        &["search", "a", "--limit", "0"],
        &["search", "a", "--limit=-1"],
        &["search", "a", "--limit", "many"],
        &["search", "a", "--limit", "99999999999999"],
        &["search", "a", "--scope", "everywhere"],
        &["search", "a", "--scope", "session"],
        &["search", "a", "--as-of", "yesterday"],
        &["search", "a", "--user", ""],
        &["search", "a", "--user", "*"],
        &["search", "a", "--session", &long],
        &["search", "a", "--store", "nonsense"],
        &["search", "a", "--store", "mysql://host/db"],
        &["search", "a", "--store", "sqlite:no/such/directory/x.db"],
        &["search", "a", "--config", "no-such-file.toml"],
        &["search", "a", "--setting", "default_top_kk=3"],
        &["search", "a", "--setting", "default_top_k=minus one"],
        &["search", "a", "--setting", "default_top_k"],
        &["search", "a", "--embedder", "nonsense"],
        &["search", "a", "--embedder", "onnx:no/such/directory"],
        &["explain"],
        &["explain", "not-an-id"],
        &["explain", "00000000-0000-7000-8000-000000000000"],
        &["explain", "00000000-0000-7000-8000-000000000000", "--item", "not-an-id"],
        &["prompt"],
        &["prompt", "a"],
        &["prompt", "", "--session", "trip"],
        &["prompt", "a", "--session", &long],
        &["prompt", "a", "--session", "trip", "--format", "round"],
        &["prompt", "a", "--session", "trip", "--max-tokens", "0"],
        &["prompt", "a", "--session", "trip", "--max-tokens=-1"],
        &["prompt", "a", "--session", "trip", "--setting", "prompt.enrichment=x"],
        &["prompt", "a", "--session", "trip", "--setting", "prompt.max_token=5"],
        &["context"],
        &["context", "nowhere"],
        &["context", "nowhere", "--compact"],
        &["context", "trip", "--write", "no-such-file.json"],
        &["context", "trip", "--write", "-"],
        &["state"],
        &["state", "show", "nowhere"],
        &["state", "set", "trip"],
        &["state", "set", "trip", "-"],
        &["state", "set", "trip", "no-such-file.json"],
        &["import"],
        &["import", "nonsense", "x"],
        &["import", "sqlite"],
        &["import", "sqlite", "no-such-file.db"],
        &["sessions", "show", "nowhere", "--summaries"],
        &["sessions", "points"],
        &["sessions", "points", "rumours"],
        &["sessions", "points", "todos", "--session", "nowhere"],
        &["models"],
        &["models", "pull", "../../x", "--from", "http://127.0.0.1:1/m"],
        &["models", "pull", "nobody-knows-this"],
        &["models", "pull", "x", "--from", "file:///etc"],
        &["models", "pull", "x", "--from", "http://127.0.0.1:1/m", "--sha256", "abc"],
        &["models", "use", "../../x"],
        &["models", "use", "nobody-has-this"],
        &["models", "use", "onnx:no/such/directory"],
        &["models", "use", "ftp://host#model"],
        &["add"],
        &["add", ""],
        &["add", "a", "--kind", "rumour"],
        &["add", "a", "--session", &long],
        &["record", "--user", &long],
        &["sessions", "nonsense"],
        &["sessions", "show", "nowhere"],
        &["sessions", "show", &long],
        &["sessions", "delete", "nowhere", "--yes"],
        &["sessions", "list", "--limit=-1"],
        &["memories", "show", "not-an-id"],
        &["memories", "history", "00000000-0000-7000-8000-000000000000"],
        &["memories", "forget", "00000000-0000-7000-8000-000000000000", "--yes"],
        &["memories", "edit", "00000000-0000-7000-8000-000000000000", "x"],
        &["jobs"],
        &["jobs", "list", "--status", "lost"],
        &["jobs", "list", "--limit=-1"],
        &["jobs", "list", "--user", "ada", "--all-users"],
        &["jobs", "show", "not-an-id"],
        &["jobs", "retry", "00000000-0000-7000-8000-000000000000"],
        &["learn", "nonsense"],
        &["learn", "--store", "sqlite:no/such/file.db"],
        &["learn", "--setting", "learn.model=nonsense"],
        &["learn", "--setting", "openai_base_url=nonsense"],
        &["backup"],
        &["backup", "no/such/directory/copy.db"],
        &["doctor", "--store", "sqlite:"],
        &["serve", "--listen", "nonsense"],
        &["serve", "--upstream", "nonsense"],
        &["serve", "--setting", "memory_deadline_ms=0"],
        &["serve", "--listen", "0.0.0.0:0"],
    ];
    for line in commands {
        let shown: String = line.join(" ").chars().take(80).collect();
        assert_fails(&run(&file, &words(line), b""), &shown);
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt as _;
        let line = vec![OsString::from("add"), OsString::from_vec(b"caf\xe9".to_vec())];
        assert_fails(&run(&file, &line, b""), "an argument that is not UTF-8");
    }
    let two_megabytes = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(2 * 1024 * 1024));
    let inputs: &[&[u8]] = &[
        b"{\n",
        b"[]\n",
        b"hello\n",
        b"{\"role\":\"user\",\"content\":\"caf\xe9\"}\n",
        b"{\"role\":\"king\",\"content\":\"a\"}\n",
        b"{\"role\":\"user\"}\n",
        b"{\"role\":\"user\",\"content\":\"a\",\"nonsense\":1}\n",
        b"{\"role\":\"user\",\"content\":\"a\\u0000\"}\n",
        b"{\"role\":\"user\",\"content\":\"a\",\"created_at\":\"soon\"}\n",
        two_megabytes.as_bytes(),
    ];
    for input in inputs {
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]).into_owned();
        assert_fails(&run(&file, &words(&["record", "--session", "trip"]), input), &shown);
    }
    assert_eq!(support::counts(&file), before);
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letter.db");
    let letter = b"Dear Ada, this is a letter and no database.\n".repeat(200);
    std::fs::write(&file, &letter).unwrap();
    for line in [&["doctor"][..], &["search", "a"], &["add", "a"], &["serve", "--listen", "127.0.0.1:0"]] {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_fails(&run(&file, &line, b""), &format!("{line:?}"));
        assert_eq!(std::fs::read(&file).unwrap(), letter, "{line:?} changed a file that is not ours");
    }
}
