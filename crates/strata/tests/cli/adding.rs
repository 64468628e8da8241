//! Statements that are added by hand are reconciled by the reader, whichever way they come in: what changes is replaced with its
//! history, what is known is confirmed, and a search finds what holds.
#![cfg(not(feature = "lite"))]

use serde_json::{Value, json};

use crate::harness::{Machine, Server};

const READER: [&str; 2] = ["--setting", "learn.reader=builtin"];

/// What holds first, what takes its place, and the question about it.
const CHANGES: [[&str; 3]; 2] = [
    ["Ylva lives in Skagen", "Ylva lives in Ribe now", "where does Ylva live?"],
    ["阿岚住在大理", "阿岚现在住在丽江", "阿岚住在哪里？"],
];

fn command(machine: &Machine, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(READER).chain(["--json"]).collect();
    machine.run(&args).json()
}

fn post(server: &Server, path: &str, body: &Value) -> Value {
    let (status, answer) = server.http("POST", path, &body.to_string());
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// Calls a tool over MCP.
fn call(server: &Server, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let accept = "Accept: application/json, text/event-stream\r\n";
    let (status, answer) = server.http_with("POST", "/mcp", accept, &message.to_string());
    assert_eq!(status, 200, "{tool}: {answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let result = answer["result"].clone();
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"].clone()
}

/// The texts of a list of memories or results.
fn texts(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().unwrap_or_else(|| panic!("{list}"));
    results.iter().map(|entry| entry["memory"].as_str().unwrap()).collect()
}

/// Checks what holds and what a search finds after a change was added twice.
fn check(listed: &Value, found: &Value, change: &[&str; 3]) {
    assert_eq!(texts(listed), [change[1]], "only the new statement holds");
    assert_eq!(texts(found).first(), Some(&change[1]), "the search finds what holds first: {found}");
}

#[test]
fn the_command_line_reconciles_what_is_added() {
    for change in &CHANGES {
        let machine = Machine::new();
        for text in [change[0], change[1], change[1]] {
            command(&machine, &["add", text]);
        }
        let listed = command(&machine, &["memories", "list"]);
        check(&listed, &command(&machine, &["search", change[2]]), change);
        let id = listed["results"][0]["id"].as_str().unwrap();
        let history = machine.run(&["memories", "history", id]).ok();
        assert!(history.contains(change[0]), "the history names the old statement: {history}");
        command(&machine, &["add", change[0], "--verbatim"]);
        assert_eq!(texts(&command(&machine, &["memories", "list"])).len(), 2, "as it is");
    }
}

#[test]
fn http_mcp_and_mem0_reconcile_what_is_added() {
    let machine = Machine::new();
    let server = machine.serve(&READER);
    for (number, change) in CHANGES.iter().enumerate() {
        let user = |way: &str| format!("{way}-{number}");
        let (http, mcp, mem0) = (user("http"), user("mcp"), user("mem0"));
        for text in [change[0], change[1], change[1]] {
            post(&server, "/memories", &json!({ "text": text, "user_id": http }));
            call(&server, "add_memory", &json!({ "text": text, "user_id": mcp }));
            let messages = json!([{ "role": "user", "content": text }]);
            post(&server, "/v3/memories/add/", &json!({ "messages": messages, "user_id": mem0 }));
        }
        for user in [&http, &mcp, &mem0] {
            let (_, listed) = server.http("GET", &format!("/memories?user_id={user}"), "");
            let found = post(&server, "/search", &json!({ "query": change[2], "user_id": user }));
            check(&serde_json::from_str(&listed).unwrap(), &found, change);
        }
        let found = call(&server, "search_memories", &json!({ "query": change[2], "user_id": mcp }));
        assert_eq!(texts(&found).first(), Some(&change[1]), "{found}");
        let filters = json!({ "user_id": mem0 });
        let found = post(&server, "/v3/memories/search/", &json!({ "query": change[2], "filters": filters }));
        assert_eq!(texts(&found).first(), Some(&change[1]), "{found}");
        post(&server, "/memories", &json!({ "text": change[0], "user_id": http, "infer": false }));
        let (_, listed) = server.http("GET", &format!("/memories?user_id={http}"), "");
        assert_eq!(texts(&serde_json::from_str(&listed).unwrap()).len(), 2, "as it is");
    }
}

#[test]
fn turns_wait_to_be_read_only_until_they_are_read() {
    let machine = Machine::new();
    machine.run(&["add", "--infer", "hm, so so"]).ok();
    let listed = machine.run(&["memories", "list"]);
    assert_eq!(listed.stderr.trim(), "no memories match");
    machine.record("s", &["Our kayak is yellow."]);
    assert!(machine.run(&["memories", "list"]).stderr.contains("turns wait to be read"));
}
