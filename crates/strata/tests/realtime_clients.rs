//! OpenAI's own clients over WebSockets, with the real binary: what was said in a realtime conversation and in Responses is
//! recorded and recalled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Server, api_venv};

#[test]
fn what_was_said_over_a_websocket_is_recorded_and_recalled() {
    let python = api_venv().join("bin/python");
    assert!(
        python.is_file(),
        "no Python at {}; `cargo xtask check` makes it, or name a virtual environment in `STRATA_TEST_API_VENV`",
        python.display()
    );
    let mut script = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/realtime_clients.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(script.stdout.take().unwrap());
    let mut port = String::new();
    said.read_line(&mut port).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let setting = format!("upstream=http://127.0.0.1:{}/v1", port.trim());
    let mut server =
        Server::start_with(&directory.path().join("realtime.db"), &[&setting, "memory_deadline_ms=60000"]);
    writeln!(script.stdin.take().unwrap(), "http://{}", server.address()).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(script.wait().unwrap().success(), "{rest}\n{}", server.log());
    server.assert_running();

    let mut client = server.client();
    let mut turns = |session: &str| {
        let path = format!("/sessions/{session}/turns?user_id=ada");
        let turns = client.get(&path).unwrap().json();
        let shown = |turn: &Value| {
            format!("{}: {}", turn["role"].as_str().unwrap(), turn["content"].as_str().unwrap())
        };
        turns["turns"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    let expected = [
        "user: my canoe is called Heron",
        "assistant: reply to my canoe is called Heron",
        "user: it is green",
        "assistant: reply to it is green",
    ];
    assert_eq!(turns("responses"), expected);
    let expected = [
        "user: My paddle is made of ash.",
        "assistant: Noted.",
        "user: Where does my canoe lie?",
        "assistant: It lies in Lisbon.",
    ];
    assert_eq!(turns("realtime"), expected);
    let asked = json!({"user_id": "ada", "query": "what is my paddle made of?"});
    let found = client.post("/search", &asked).unwrap();
    assert!(found.text().contains("made of ash"), "{}", found.text());
}
