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
use std::process::{Command, Stdio};

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

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// With its length.
    Plain,
    /// In chunks, so that nobody knows its length before it ends.
    Chunked,
    /// Compressed, with its length.
    Packed,
    /// Compressed and in chunks.
    PackedInChunks,
}

/// A body as `gzip` compresses it.
fn gzip(body: &[u8]) -> Vec<u8> {
    let mut gzip =
        Command::new("gzip").arg("-1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut packed) = (gzip.stdin.take().unwrap(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(body).unwrap());
        gzip.stdout.take().unwrap().read_to_end(&mut packed).unwrap();
    });
    assert!(gzip.wait().unwrap().success());
    packed
}

/// Sends a chat to one of the APIs and waits for its answer, however long that takes.
fn chat(server: &Server, path: &str, sending: Sending, messages: &Value) {
    let body =
        json!({ "model": "m", "max_tokens": 9, "memory_id": "large", "messages": messages }).to_string();
    let body = match sending {
        Sending::Plain | Sending::Chunked => body.into_bytes(),
        Sending::Packed | Sending::PackedInChunks => gzip(body.as_bytes()),
    };
    let encoding = match sending {
        Sending::Plain | Sending::Chunked => "",
        Sending::Packed | Sending::PackedInChunks => "Content-Encoding: gzip\r\n",
    };
    let framing = match sending {
        Sending::Plain | Sending::Packed => format!("Content-Length: {}", body.len()),
        Sending::Chunked | Sending::PackedInChunks => "Transfer-Encoding: chunked".to_owned(),
    };
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Strata-User: ann\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{encoding}{framing}\r\n\r\n"
    )
    .unwrap();
    match sending {
        Sending::Plain | Sending::Packed => stream.write_all(&body).unwrap(),
        Sending::Chunked | Sending::PackedInChunks => {
            for piece in body.chunks(MIB) {
                write!(stream, "{:x}\r\n", piece.len()).unwrap();
                stream.write_all(piece).unwrap();
                stream.write_all(b"\r\n").unwrap();
            }
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Letters of base64 that hardly shrink further when they are packed.
fn letters(count: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..count).map(letter).collect()
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
    let image = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{}", letters(BODY - MIB)) } });
    let text = json!({ "type": "text", "text": "what is this" });
    let image = json!([{ "role": "user", "content": [text, image] }]);
    let long = json!([{ "role": "user", "content": said(BODY - MIB) }]);
    let many = Value::from(many);
    let (completions, others) = ("/v1/chat/completions", "/v1/messages");
    for (name, path, sending, messages) in [
        ("one long text", completions, Sending::Plain, &long),
        ("many messages", completions, Sending::Plain, &many),
        ("an image", completions, Sending::Plain, &image),
        ("many messages in chunks", completions, Sending::Chunked, &many),
        ("an image in chunks", others, Sending::Chunked, &image),
        ("a packed text", completions, Sending::Packed, &long),
        ("a packed image in chunks", others, Sending::PackedInChunks, &image),
    ] {
        // A process of its own, so that one chat does not use what another has left.
        let file = directory.path().join(format!("{name}.db"));
        let server = Server::start_with(
            &file,
            &[&upstream, "body_timeout_secs=600", "learn.enabled=false", "embedder=words", "log=warn"],
        );
        chat(&server, path, Sending::Plain, &json!([{ "role": "user", "content": "hello, it rains" }]));
        let before = memory(&server, "VmRSS:");
        chat(&server, path, sending, messages);
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
