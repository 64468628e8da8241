//! The memory of the real binary is bounded: what a large chat adds to it, as the system counts it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use support::Server;

const MIB: usize = 1024 * 1024;

/// The size of a chat's body: a little less than the largest.
const BODY: usize = 60 * MIB;

/// What a chat may add, in tenths of its body.
const MOST_TENTHS: usize = 25;

/// A model that reads its requests and keeps nothing of them.
fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while reader.read_line(&mut head).ok()? > 2 {}
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
        })?;
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).ok()?;
        let message = json!({ "role": "assistant", "content": "read" });
        let body =
            json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length";
        write!(writer, "{head}: {}\r\n\r\n{body}", body.len()).ok()?;
    }
}

/// A value of the process in bytes, as the system counts it.
fn memory(server: &Server, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Sends a chat and waits for its answer, however long that takes.
fn chat(server: &Server, messages: &Value) {
    let body = json!({ "model": "m", "memory_id": "large", "messages": messages }).to_string();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Strata-User: ann\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_chat_of_60_mb_adds_at_most_two_and_a_half_times_its_size() {
    let directory = tempfile::tempdir().unwrap();
    let upstream = format!("upstream=http://{}/v1", model());
    let sentence = "It rained on the harbour, and the nets \\\"dried\\\" slowly.\n";
    let said = |bytes: usize| sentence.repeat(bytes / (sentence.len() + 4));
    let many: Vec<Value> = (0..600)
        .map(|number| {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("{number} {}", said(BODY / 610)) })
        })
        .chain([json!({ "role": "user", "content": "what dried" })])
        .collect();
    let image = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{}", "A".repeat(BODY - MIB)) } });
    let text = json!({ "type": "text", "text": "what is this" });
    for (name, messages) in [
        ("one long text", json!([{ "role": "user", "content": said(BODY - MIB) }])),
        ("many messages", Value::from(many)),
        ("an image", json!([{ "role": "user", "content": [text, image] }])),
    ] {
        // A process of its own, so that one chat does not use what another has left.
        let file = directory.path().join(format!("{name}.db"));
        let server = Server::start_with(
            &file,
            &[&upstream, "body_timeout_secs=600", "learn.enabled=false", "embedder=words", "log=warn"],
        );
        chat(&server, &json!([{ "role": "user", "content": "hello, it rains" }]));
        let before = memory(&server, "VmRSS:");
        chat(&server, &messages);
        let added = memory(&server, "VmHWM:").saturating_sub(before);
        let tenths = added * 10 / BODY;
        assert!(tenths <= MOST_TENTHS, "{name} adds {} MiB, {tenths} tenths of its body", added / MIB);
    }
}

/// The turns of the filtered search, and the bytes of the metadata of each. `STRATA_TEST_TURNS` asks for more turns.
const TURNS: usize = 800;
const METADATA: usize = 48 * 1024;

/// What a filtered search may add: little more than a page of its items, and not the items that it looks at.
const MOST_FOR_A_SEARCH: usize = 40 * MIB;

/// Makes the system count the peak of a process anew.
fn forget_peak(server: &Server) {
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
}

#[test]
fn a_filtered_search_over_much_metadata_adds_little() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("filtered.db");
    let turns = std::env::var_os("STRATA_TEST_TURNS")
        .map_or(TURNS, |turns| turns.to_string_lossy().parse().expect("a number of turns"));
    let settings = ["learn.enabled=false", "embedder=words", "log=warn", "request_timeout_secs=600"];
    let server = Server::start_with(&file, &settings);
    let mut client = server.client();
    for first in (0..turns).step_by(100) {
        let message = |number: usize| {
            let metadata = json!({ "number": number, "filler": "x".repeat(METADATA) });
            let content = format!("the harbour has {number} boats");
            json!({ "role": "user", "content": content, "metadata": metadata })
        };
        let messages: Vec<Value> = (first..turns.min(first + 100)).map(message).collect();
        let body = json!({ "user_id": "ann", "session_id": "s", "messages": messages });
        assert_eq!(client.post("/turns", &body).unwrap().status, 201);
    }
    server.stop();
    // By the index in memory, and by the store's own.
    for index in ["index_max_items=100000000", "index_max_items=10"] {
        let server = Server::start_with(&file, &[&settings[..], &[index]].concat());
        let mut client = server.client();
        let mut search = |query: &str, filters: Value| {
            let body = json!({ "user_id": "ann", "query": query, "filters": filters, "top_k": 5 });
            let answer = client.post("/search", &body).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()["results"].as_array().unwrap().len()
        };
        search("harbour", json!({}));
        for (query, filters, found) in [
            ("which boats are in the harbour", json!({ "number": 7 }), 1),
            ("which boats are in the harbour", json!({ "number": { "gt": -1 } }), 5),
            ("which boats are in the harbour", json!({ "number": -1 }), 0),
        ] {
            forget_peak(&server);
            let before = memory(&server, "VmRSS:");
            assert_eq!(search(query, filters.clone()), found, "{index} {query} {filters}");
            let added = memory(&server, "VmHWM:").saturating_sub(before);
            assert!(
                added <= MOST_FOR_A_SEARCH,
                "{index}: {query} {filters} adds {} MiB over {} MiB of metadata",
                added / MIB,
                turns * METADATA / MIB
            );
            println!("{index} {query} {filters}: {} MiB", added / MIB);
        }
    }
}
