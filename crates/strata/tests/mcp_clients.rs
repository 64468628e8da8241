//! MCP with the official clients in Python and TypeScript and with the Inspector's command line, over stdio and streamable HTTP, against the real binary. Some
//! properties are tested on the raw streams.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Server, node_folder, store_url, strata, venv};

#[test]
fn the_official_client_uses_every_tool_over_both_transports() {
    let python = venv().join("bin/python");
    assert!(
        python.is_file(),
        "there is no Python at {}; `cargo xtask check` makes it, or name its virtual environment in `STRATA_TEST_VENV`",
        python.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("agents.db");
    let mut server = Server::start(&store);
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients.py"))
        .arg(env!("CARGO_BIN_EXE_strata"))
        .arg(&store)
        .arg(format!("http://{}", server.address()))
        .output()
        .unwrap();
    server.assert_running();
    let log = server.log();
    assert!(output.status.success(), "the client failed:\n{}\n{log}", support::show(&output));
    assert!(!log.contains("oolong"), "the log holds what was said: {log}");
}

#[test]
fn the_typescript_clients_and_the_inspector_remember_over_both_transports() {
    let folder = node_folder();
    assert!(
        folder.join("node_modules").is_dir(),
        "no packages at {}; `cargo xtask check` installs them, or name a folder in `STRATA_TEST_NODE`",
        folder.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("agents.db");
    let mut server = Server::start(&store);
    let output = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients.mjs"))
        .arg(env!("CARGO_BIN_EXE_strata"))
        .arg(&store)
        .arg(format!("http://{}", server.address()))
        .arg(folder.canonicalize().unwrap())
        .current_dir(directory.path())
        .output()
        .unwrap();
    server.assert_running();
    let said = support::show(&output);
    assert!(output.status.success(), "a client failed:\n{said}\n{}", server.log());
    assert!(!said.contains("unknown format"), "a schema has a format that clients do not know:\n{said}");
}

/// The messages of a client that calls one tool.
fn conversation() -> Vec<Value> {
    let client = json!({"name": "test", "version": "1"});
    let call = json!({"name": "add_memory", "arguments": {"text": "Xanthippe is a cat"}});
    vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered_and_nothing_else_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("agents.db");
    let mut child = strata()
        .args(["mcp", "--store", &store_url(&store), "--log", "trace"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in conversation() {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "strata");
    assert_eq!(answers[1]["result"]["structuredContent"]["results"][0]["event"], "ADD");
    assert_eq!(support::counts(&store)["memories"], 1);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(!log.is_empty(), "logs go to stderr");
    assert!(!log.contains("Xanthippe"), "the log holds what was said: {log}");
}

#[test]
fn a_client_that_says_nothing_leaves_without_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_url(&directory.path().join("agents.db"));
    let output = strata().args(["mcp", "--store", &store]).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{}", support::show(&output));
}

#[cfg(unix)]
#[test]
fn it_stops_when_told_while_its_input_stays_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_url(&directory.path().join("agents.db"));
    let mut child = strata()
        .args(["mcp", "--store", &store])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", conversation()[0]).unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(child.wait().unwrap().success());
    drop(input);
}
