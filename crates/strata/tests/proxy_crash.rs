//! `kill -9` in the middle of chats loses nothing that a client saw the end of: the real binary between real clients and a
//! scripted model, death upon death.
//!
//! After the last one the same file is served again and read back whole. A reply whose end somebody received is recorded as it
//! was said. Of every other one whose beginning was passed on, the question is recorded, and either the reply or that it
//! was interrupted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Random, Server, Upstream, reply_to};

const ROUNDS: u64 = 12;
const CLIENTS: u64 = 6;
/// The most ends that clients receive before a death.
const MOST_RECEIVED: u64 = 40;
const SEED: u64 = 20_261_116;
/// So many seconds after its death nobody waits for a process any more; then its replies are marked.
const LEASE_SECS: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client sent and what it got.
#[derive(Debug)]
struct Chat {
    session: String,
    question: String,
    /// Anything of the answer at all.
    has_begun: bool,
    /// All of it.
    has_ended: bool,
}

#[test]
fn what_a_client_saw_the_end_of_is_recorded_and_the_rest_is_marked() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.db");
    let upstream = Upstream::start();
    let mut random = Random(SEED);
    let mut chats = Vec::new();
    for round in 0..ROUNDS {
        let server = start(&file, &upstream);
        let deadly = 1 + random.below(MOST_RECEIVED);
        chats.extend(run_until_killed(server, round, deadly));
    }
    let server = start(&file, &upstream);
    let ended = chats.iter().filter(|chat| chat.has_ended).count();
    let cut = chats.iter().filter(|chat| chat.has_begun && !chat.has_ended).count();
    assert!(ended as u64 > ROUNDS && cut > 0, "{ended} ends and {cut} cuts prove little");
    await_the_awaited(&server);
    let wrong: Vec<String> =
        sessions(&server, &chats).into_iter().flat_map(|(of, turns)| check(&of, &turns)).collect();
    assert!(wrong.is_empty(), "{} of {} chats:\n{}", wrong.len(), chats.len(), wrong.join("\n"));
}

/// Asks until no reply is awaited any more. Nobody chats now, so those that are belong to the dead.
fn await_the_awaited(server: &Server) {
    let (began, mut client) = (Instant::now(), server.client());
    loop {
        let mut is_awaited = |status: &str| {
            let jobs = client.get(&format!("/jobs?status={status}&limit=1000")).unwrap().json();
            jobs["jobs"].as_array().unwrap().iter().any(|job| job["kind"] == "reply")
        };
        if !is_awaited("leased") && !is_awaited("queued") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "some replies are awaited for ever:\n{}", server.log());
    }
}

fn start(file: &Path, upstream: &Upstream) -> Server {
    // A loaded machine may take longer to write than a chat should wait: here it waits.
    let upstream = format!("upstream={}", upstream.url());
    let lease = format!("learn.lease_secs={LEASE_SECS}");
    Server::start_with(file, &[&upstream, &lease, "memory_deadline_ms=60000", "log=warn"])
}

fn run_until_killed(server: Server, round: u64, deadly: u64) -> Vec<Chat> {
    let (received, receiving) = mpsc::channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (address, received) = (server.address().to_owned(), received.clone());
            thread::spawn(move || chat_until_cut(&address, &received, round, client))
        })
        .collect();
    drop(received);
    assert_eq!(receiving.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
    server.kill();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

/// Chats in a session of its own, with all of the history each time, until the server is gone.
fn chat_until_cut(address: &str, received: &mpsc::Sender<()>, round: u64, client: u64) -> Vec<Chat> {
    let session = format!("session {client} of round {round}");
    let mut history: Vec<Value> = Vec::new();
    let mut chats = Vec::new();
    for number in 0.. {
        let question = format!("question {number} of {session} with some words to stream");
        history.push(json!({"role": "user", "content": question}));
        let is_stream = !(number + client).is_multiple_of(3);
        let body = json!({"model": "m", "messages": history, "stream": is_stream, "memory_id": session});
        let bytes = exchange(address, &body.to_string()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let has_ended = match is_stream {
            true => text.ends_with("0\r\n\r\n") && text.contains("data: [DONE]"),
            false => text
                .split_once("\r\n\r\n")
                .is_some_and(|(_, body)| serde_json::from_str::<Value>(body).is_ok()),
        };
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 200"), "{text}");
        chats.push(Chat {
            session: session.clone(),
            question: question.clone(),
            has_begun: !text.is_empty(),
            has_ended,
        });
        if !has_ended || received.send(()).is_err() {
            return chats;
        }
        history.push(json!({"role": "assistant", "content": reply_to(&question)}));
    }
    chats
}

/// What comes back until the connection ends, in whichever way.
fn exchange(address: &str, body: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    // A reset ends it as well.
    while let Ok(count) = stream.read(&mut buffer)
        && count > 0
    {
        bytes.extend_from_slice(&buffer[..count]);
    }
    Ok(bytes)
}

/// The chats of each session with what is stored of it.
fn sessions<'a>(server: &Server, chats: &'a [Chat]) -> Vec<(Vec<&'a Chat>, Vec<Value>)> {
    let mut client = server.client();
    let mut names: Vec<&str> = chats.iter().map(|chat| chat.session.as_str()).collect();
    names.dedup();
    let of = |name: &str| {
        let path = format!("/sessions/{}/turns?limit=1000", name.replace(' ', "%20"));
        let turns = client.get(&path).unwrap().json()["turns"].as_array().cloned().unwrap_or_default();
        (chats.iter().filter(|chat| chat.session == name).collect(), turns)
    };
    names.into_iter().map(of).collect()
}

/// What is not as it should be.
fn check(chats: &[&Chat], turns: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Chat { question, has_begun, has_ended, .. } in chats {
        let asked: Vec<&Value> = turns.iter().filter(|turn| turn["content"] == **question).collect();
        if asked.len() > 1 {
            wrong.push(format!("`{question}` is stored {} times", asked.len()));
        }
        let Some(asked) = asked.first() else {
            if *has_begun {
                wrong.push(format!("`{question}` was answered and is not recorded"));
            }
            continue;
        };
        let replies = turns.iter().filter(|turn| turn["follows"] == asked["seq"]);
        let replies: Vec<&Value> = replies.filter(|turn| turn["role"] == "assistant").collect();
        let is_whole =
            |turn: &&&Value| turn["content"] == reply_to(question) && turn["interrupted"].is_null();
        let is_marked = |turn: &&&Value| turn["interrupted"] == true;
        let whole = replies.iter().filter(is_whole).count();
        let marked = replies.iter().filter(is_marked).count();
        let is_right = if *has_ended { whole == 1 && marked == 0 } else { whole + marked == 1 };
        if !is_right {
            wrong.push(format!("`{question}` (ended: {has_ended}) has the replies {replies:?}"));
        }
    }
    wrong
}
