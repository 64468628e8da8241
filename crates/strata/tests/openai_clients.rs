//! Third-party clients of the proxy, with the real binary: the Python packages of OpenAI and LangChain.
//!
//! `openai_clients.py` runs the clients; the model behind the proxy is scripted. Afterwards the test checks the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Server, Upstream};

#[test]
fn openais_and_langchains_packages_chat_with_memory() {
    let python = venv().join("bin/python");
    assert!(
        python.is_file(),
        "no Python at {}; `cargo xtask check` makes it, or name a virtual environment in `STRATA_TEST_VENV`",
        python.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let upstream = Upstream::start();
    let setting = format!("upstream={}", upstream.url());
    let file = directory.path().join("clients.db");
    let mut server = Server::start_with(&file, &[&setting, "memory_deadline_ms=60000"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai_clients.py");
    let output = Command::new(python)
        .arg(script)
        .arg(format!("http://{}/v1", server.address()))
        .current_dir(directory.path())
        .env("LANGSMITH_TRACING", "false")
        .output()
        .unwrap();
    server.assert_running();
    assert!(output.status.success(), "{}", support::show(&output));

    // Each question about the canoe was asked in a conversation of its own, and the cat was known from another one.
    let asked_with = |question: &str, known: &str| {
        let received = upstream.received();
        let is_asked = |body: &Value| {
            let sent = body["messages"].as_array().and_then(|all| all.last()).map(Value::to_string);
            sent.is_some_and(|sent| {
                let (block, rest) = sent.split_once("</strata_memory>").unwrap_or_default();
                rest.contains(question) && block.contains(known)
            })
        };
        received.iter().filter(|request| is_asked(&request.body)).count()
    };
    assert_eq!(asked_with("what is my cat called", "Miso"), 1);
    assert_eq!(asked_with("what is my canoe called", "Heron"), 4);

    // The server records in the background that a client has disconnected. After it has stopped, everything is recorded.
    server.stop();
    let learned = support::strata().args(["learn", "--store", &support::store_url(&file)]).output().unwrap();
    assert!(learned.status.success(), "{}", support::show(&learned));
    let server = Server::start(&file);
    let mut client = server.client();
    let mut turns = |session: &str| {
        let answer = client.get(&format!("/sessions/{session}/turns?user_id=ada")).unwrap().json();
        let turns = answer["turns"].as_array().unwrap_or_else(|| panic!("{session}: {answer}")).clone();
        let shown = |turn: &Value| {
            format!("{}: {}", turn["role"].as_str().unwrap(), turn["content"].as_str().unwrap())
        };
        (turns.iter().map(shown).collect::<Vec<_>>(), turns)
    };
    for session in ["asked", "asked-streamed", "asked-chain", "asked-chain-streamed"] {
        let (asked, _) = turns(session);
        let expected = ["user: what is my canoe called", "assistant: reply to what is my canoe called"];
        assert_eq!(asked, expected, "{session}: the block is not recorded");
    }
    let (plain, _) = turns("plain");
    assert_eq!(plain, ["user: my cat is called Miso", "assistant: reply to my cat is called Miso"]);
    let (streamed, all) = turns("streamed");
    assert_eq!(streamed, ["user: say one two three", "assistant: one two three"]);
    assert_eq!(all[1]["metadata"]["finish_reason"], "stop");
    let (tools, all) = turns("tools");
    assert_eq!(
        tools,
        ["user: call weather", "assistant: ", "tool: sunny", "assistant: reply to call weather"]
    );
    let call = json!([{"id": "call_1", "name": "weather", "arguments": "{\"place\":\"Lisbon\"}"}]);
    assert_eq!(all[1]["tool_calls"], call);
    let (image, all) = turns("image");
    assert_eq!(image[0], "user: what is this");
    assert_eq!(all[0]["metadata"]["parts"], json!(["image_url"]));
    let (retried, _) = turns("retried");
    let expected = [
        "user: fail once please",
        "assistant: The model failed with status 500: once",
        "assistant: reply to fail once please",
    ];
    assert_eq!(retried, expected, "a retry stores the question once");
    let (left, all) = turns("left");
    assert_eq!(left, ["user: hang on please", "assistant: reply "]);
    assert_eq!(all[1]["interrupted"], true);
    let (chain, _) = turns("chain");
    assert_eq!(chain.len(), 4, "{chain:?}");

    let memories = client.get("/memories?user_id=ada&limit=1000").unwrap().json().to_string();
    assert!(memories.contains("Heron"), "something is learned: {memories}");
    assert!(!memories.contains("strata_memory") && !memories.contains("Remembered by Strata"), "{memories}");

    // The proxy's own fields are not forwarded to the model; only the recalled context is added before the questions.
    for request in upstream.received() {
        assert!(!request.head.to_lowercase().contains("x-strata"), "{}", request.head);
        assert!(request.head.contains("Bearer sk-test"), "{}", request.head);
        let text = request.body.to_string();
        assert!(!text.contains("memory_id") && !text.contains("memory_top_k"), "{text}");
    }
}

fn venv() -> PathBuf {
    match std::env::var_os("STRATA_TEST_VENV") {
        Some(path) => path.into(),
        None => [env!("CARGO_MANIFEST_DIR"), "../../target/venv"].iter().collect(),
    }
}
