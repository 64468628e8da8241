//! Third-party clients of the providers' APIs, with the real binary: only the URL is changed.
//!
//! `api_clients.py` and `api_clients.mjs` run the clients; the model behind the proxy is scripted and strict. Afterwards the
//! tests check what reached the model and what is in the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::{Apis, Received, Server, api_venv, node_folder};

/// The image that the scripts send.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn python_clients_of_all_apis_chat_with_memory() {
    let python = api_venv().join("bin/python");
    assert!(
        python.is_file(),
        "no Python at {}; `cargo xtask check` makes it, or name a virtual environment in `STRATA_TEST_API_VENV`",
        python.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_clients.py");
    let remembering: &[(&str, &[&str])] = &[
        ("responses", &["asked"]),
        ("anthropic", &["asked"]),
        ("agents", &["asked"]),
        ("litellm", &["openai-asked", "anthropic-asked"]),
        ("pydantic", &["responses-asked", "chat-asked", "anthropic-asked"]),
        ("langchain", &["asked-True", "asked-False"]),
        ("llama-index", &["chat-asked", "responses-asked"]),
        ("instructor", &["asked"]),
        ("ollama", &["asked", "generated"]),
        ("azure", &["asked"]),
    ];
    check(
        |root| Command::new(&python).arg(&script).arg(root).output().unwrap(),
        remembering,
        &[
            ("responses", "tools"),
            ("anthropic", "tools"),
            ("agents", "tools"),
            ("litellm", "openai-tools"),
            ("litellm", "anthropic-tools"),
            ("pydantic", "responses-tools"),
            ("pydantic", "chat-tools"),
            ("pydantic", "anthropic-tools"),
            ("langchain", "tools-True"),
            ("langchain", "tools-False"),
            ("ollama", "tools"),
        ],
        // The clients above, LlamaIndex in two ways, and instructor.
        14,
    );
}

#[test]
fn javascript_clients_of_all_apis_chat_with_memory() {
    let folder = node_folder();
    assert!(
        folder.join("node_modules").is_dir(),
        "no packages at {}; `cargo xtask check` installs them, or name a folder in `STRATA_TEST_NODE`",
        folder.display()
    );
    let folder = folder.canonicalize().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api_clients.mjs");
    let remembering: &[(&str, &[&str])] = &[
        ("js-openai", &["asked", "chat"]),
        ("js-anthropic", &["asked"]),
        ("js-vercel", &["openai-asked", "anthropic-asked", "compatible-asked"]),
        ("js-ollama", &["asked"]),
    ];
    check(
        |root| Command::new("node").arg(&script).arg(root).arg(&folder).output().unwrap(),
        remembering,
        &[
            ("js-openai", "tools"),
            ("js-anthropic", "tools"),
            ("js-vercel", "openai-tools"),
            ("js-vercel", "anthropic-tools"),
            ("js-vercel", "compatible-tools"),
            ("js-ollama", "tools"),
        ],
        6,
    );
}

/// Runs every example of `docs/clients.md` with the real package; only the address is the test's.
#[test]
fn the_examples_of_the_page_run() {
    let page = include_str!("../../../docs/clients.md");
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let server =
        Server::start_with(&directory.path().join("page.db"), &[&setting, "memory_deadline_ms=60000"]);
    let node = node_folder().canonicalize().unwrap();
    let mut ran = 0;
    for (language, program, file) in [
        ("python", api_venv().join("bin/python"), directory.path().join("example.py")),
        ("js", "node".into(), node.join("example.mjs")),
    ] {
        for example in
            page.split(&format!("```{language}\n")).skip(1).filter_map(|rest| rest.split("```").next())
        {
            std::fs::write(&file, example.replace("127.0.0.1:8100", server.address())).unwrap();
            let mut command = Command::new(&program);
            command.env("OPENAI_API_KEY", "sk-test").env("ANTHROPIC_API_KEY", "sk-test");
            command.env("OPENAI_AGENTS_DISABLE_TRACING", "1").env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
            let output = command.arg(&file).output().unwrap();
            assert!(output.status.success(), "{example}\n{}\n{}", support::show(&output), server.log());
            ran += 1;
        }
    }
    std::fs::remove_file(node.join("example.mjs")).unwrap();
    assert!(ran >= 13, "{ran} examples");
    assert!(upstream.received().len() >= ran, "the examples reach the model");
    let mut client = server.client();
    let turns = client.get("/sessions/default/turns?user_id=ada&limit=100").unwrap().json();
    assert!(
        shown(&turns).iter().filter(|turn| turn.contains("What is my canoe called?")).count() >= 8,
        "{turns}"
    );
}

/// Clients that name no user share the memories of `default`: the log says so once, and so does the doctor.
#[test]
fn clients_that_share_the_default_user_are_warned_about() {
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let file = directory.path().join("shared.db");
    let server = Server::start_with(&file, &[&setting]);
    let chat = |agent: &str, body: Value| {
        let headers = [("Content-Type", "application/json"), ("User-Agent", agent)];
        let path = "/v1/chat/completions";
        let answer = server.client().send("POST", path, &headers, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let unnamed = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    let mut named = unnamed.clone();
    named["user"] = json!("ada");
    let warnings = || server.log().matches("several clients name no user").count();
    let doctor = || {
        let output =
            support::strata().args(["doctor", "--store", &support::store_url(&file)]).output().unwrap();
        support::show(&output)
    };
    chat("one/1", unnamed.clone());
    chat("one/1", unnamed.clone());
    chat("two/1", named);
    assert_eq!(warnings(), 0, "one client, and one that names its user:\n{}", server.log());
    assert!(!doctor().contains("clients name no user"), "{}", doctor());
    for agent in ["two/1", "two/1", "three/1", "one/1"] {
        chat(agent, unnamed.clone());
    }
    assert_eq!(warnings(), 1, "{}", server.log());
    assert!(server.log().contains("proxy.user_headers"), "the warning says what to do:\n{}", server.log());
    server.stop();
    assert!(doctor().contains("3 clients name no user"), "{}", doctor());
}

/// Runs a script against a server, and checks that each user was reminded in these sessions of what it said in another,
/// that its calls of tools are recorded once, that so many images arrive as they were sent, and that nothing which was
/// injected is recorded or learned.
fn check(
    run: impl Fn(&str) -> std::process::Output,
    remembering: &[(&str, &[&str])],
    with_tools: &[(&str, &str)],
    images: usize,
) {
    let directory = tempfile::tempdir().unwrap();
    let upstream = Apis::start();
    let setting = format!("upstream={}", upstream.url());
    let file = directory.path().join("clients.db");
    let mut server = Server::start_with(&file, &[&setting, "memory_deadline_ms=60000"]);
    let output = run(&format!("http://{}", server.address()));
    server.assert_running();
    assert!(output.status.success(), "{}\n{}", support::show(&output), server.log());
    server.stop();

    let reminded = upstream
        .received()
        .iter()
        .filter(|request| {
            let text = request.body.to_string();
            text.contains("what is my canoe called")
                && text.contains("<strata_memory>")
                && text.contains("Heron")
        })
        .count();
    let expected: usize = remembering.iter().map(|(_, sessions)| sessions.len()).sum();
    assert!(reminded >= expected, "{reminded} of {expected} questions were asked with memory");
    let is_image = |request: &&Received| request.body.to_string().contains(PIXEL);
    let received = upstream.received();
    assert_eq!(received.iter().filter(is_image).count(), images, "images that arrive as they were sent");
    for request in received {
        assert!(!request.head.to_lowercase().contains("x-strata"), "{}", request.head);
    }

    let learned = support::strata().args(["learn", "--store", &support::store_url(&file)]).output().unwrap();
    assert!(learned.status.success(), "{}", support::show(&learned));

    let server = Server::start(&file);
    let mut client = server.client();
    for (user, sessions) in remembering {
        if *user == "responses" {
            let turns = client.get("/sessions/background/turns?user_id=responses").unwrap().json();
            let expected = ["user: take your time", "assistant: reply to take your time"];
            assert_eq!(shown(&turns), expected, "a reply that is fetched later is recorded once");
        }
        for session in *sessions {
            let turns = client.get(&format!("/sessions/{session}/turns?user_id={user}")).unwrap().json();
            let turns = shown(&turns);
            assert!(
                turns.contains(&"user: what is my canoe called".to_owned()),
                "{user} {session}: {turns:?}"
            );
            assert!(
                turns.contains(&"assistant: reply to what is my canoe called".to_owned()),
                "{user} {session}: {turns:?}"
            );
        }
        let memories = client.get(&format!("/memories?user_id={user}")).unwrap().json().to_string();
        assert!(memories.contains("Heron"), "something was learned of {user}: {memories}");
        assert!(
            !memories.contains("strata_memory") && !memories.contains("Remembered by Strata"),
            "{user}: {memories}"
        );
    }
    for (user, session) in with_tools {
        let turns = client.get(&format!("/sessions/{session}/turns?user_id={user}")).unwrap().json();
        let expected =
            ["user: call weather", "assistant: ", "tool: sunny", "assistant: reply to call weather"];
        assert_eq!(shown(&turns), expected, "{user} {session}");
    }
}

fn shown(turns: &Value) -> Vec<String> {
    let turns = turns["turns"].as_array().unwrap_or_else(|| panic!("{turns}"));
    let shown = |turn: &Value| {
        let content = turn["content"].as_str().unwrap();
        assert!(!content.contains("strata_memory"), "{content}");
        format!("{}: {content}", turn["role"].as_str().unwrap())
    };
    turns.iter().map(shown).collect()
}
