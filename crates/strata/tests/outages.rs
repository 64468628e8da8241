//! Bad days of the disk and the clock under the real binary: what a client was told is kept, and monitors hear the truth.
//!
//! A library that is preloaded into the process makes writes and syncs fail or wait, and moves its clock (`support/shim.c`).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::outage::{PATIENCE, await_recorded, chat, readiness, turns};
use support::{Client, Server, Shim, Upstream, reply_to};

fn start(shim: &Shim, file: &Path, upstream: &Upstream) -> Server {
    let upstream = format!("upstream={}", upstream.url());
    Server::start_under(shim, file, &[&upstream, "log=warn"])
}

/// Waits until this many chats are kept in files beside the store.
fn await_kept(store: &Path, count: usize, server: &Server) {
    let spill = store.with_file_name("strata.db-spill");
    // A file that is still being written has another ending, and is no chat yet.
    let is_chat = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|ending| ending == "json");
    let kept = || fs::read_dir(&spill).map_or(0, |entries| entries.flatten().filter(is_chat).count());
    let began = Instant::now();
    while kept() != count {
        assert!(began.elapsed() < PATIENCE, "{} chats are kept:\n{}", kept(), server.log());
    }
}

#[test]
fn chats_of_a_short_outage_are_recorded_when_it_is_over() {
    for fault in ["write enospc", "write eio", "sync eio"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("strata.db");
        let (shim, upstream) = (Shim::new(&file), Upstream::start());
        let server = start(&shim, &file, &upstream);
        let mut client = server.client();
        assert_eq!(chat(&mut client, "s", "before the outage").status, 200);
        await_recorded(&mut client, "s", "before the outage");
        assert_eq!(readiness(&mut client), 200);
        shim.set(fault);
        let questions: Vec<String> =
            (0..4).map(|number| format!("question {number} during {fault}")).collect();
        for (number, question) in questions.iter().enumerate() {
            assert_eq!(chat(&mut client, &format!("o{number}"), question).status, 200, "a chat never fails");
        }
        assert_eq!(readiness(&mut client), 503, "{fault}");
        shim.set("");
        for (number, question) in questions.iter().enumerate() {
            await_recorded(&mut client, &format!("o{number}"), question);
        }
        assert_eq!(readiness(&mut client), 200, "{fault}");
        server.stop();
    }
}

#[test]
fn a_chat_that_could_not_be_recorded_survives_the_death_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    // Only the log of the store fails, so that there is a place beside it.
    let (shim, upstream) = (Shim::new(&folder.path().join("strata.db-wal")), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    chat(&mut client, "s", "before the outage");
    await_recorded(&mut client, "s", "before the outage");
    shim.set("write eio");
    let question = "is this kept";
    assert_eq!(chat(&mut client, "t", question).status, 200);
    await_kept(&file, 1, &server);
    server.kill();
    shim.set("");
    let server = start(&shim, &file, &upstream);
    await_recorded(&mut server.client(), "t", question);
    await_kept(&file, 0, &server);
}

#[test]
fn a_chat_whose_client_closes_its_half_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start();
    let server =
        Server::start_with(&folder.path().join("strata.db"), &[&format!("upstream={}", upstream.url())]);
    for stream in [false, true] {
        let question = format!("half closed, {stream}");
        let said = json!([{"role": "user", "content": question}]);
        let body = json!({"model": "m", "memory_id": "h", "stream": stream, "messages": said}).to_string();
        let mut connection = TcpStream::connect(server.address()).unwrap();
        write!(
            connection,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        await_recorded(&mut server.client(), "h", &question);
    }
}

/// The next chat of a growing conversation, as a stateless client sends it. Adds question and reply to `said`.
fn go_on(client: &mut Client, session: &str, said: &mut Vec<Value>, question: &str, reply: &str) -> String {
    said.push(json!({"role": "user", "content": question}));
    let body = json!({"model": "m", "memory_id": session, "messages": said});
    let answer = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(answer.status, 200, "a chat never fails");
    said.push(json!({"role": "assistant", "content": reply}));
    answer.header("x-strata-memory-recorded").unwrap_or_default().to_owned()
}

/// Waits until the session is the conversation: each message once, in order, and none abandoned.
fn await_conversation(client: &mut Client, session: &str, said: &[Value], server: &Server) {
    let began = Instant::now();
    let wanted: Vec<&str> = said.iter().filter_map(|message| message["content"].as_str()).collect();
    loop {
        let turns = turns(client, session);
        let stored: Vec<&str> = turns.iter().filter_map(|turn| turn["content"].as_str()).collect();
        if stored == wanted {
            assert!(turns.iter().all(|turn| turn["hidden"].is_null()), "{turns:#?}");
            return;
        }
        assert!(stored.len() <= wanted.len() && began.elapsed() < PATIENCE, "{turns:#?}\n{}", server.log());
    }
}

#[test]
fn a_conversation_that_goes_on_through_an_outage_is_recorded_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let (shim, upstream) = (Shim::new(&file), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    let mut said: Vec<Vec<Value>> = vec![Vec::new(); 4];
    let talk = |client: &mut Client, said: &mut [Vec<Value>], part: &str| {
        for (number, said) in said.iter_mut().enumerate() {
            for step in 0..3 {
                let question = format!("{part} {step}");
                let recorded = go_on(client, &format!("c{number}"), said, &question, &reply_to(&question));
                assert!(recorded != "true" || part != "during", "{part}: {recorded}");
            }
        }
    };
    talk(&mut client, &mut said[..2], "before");
    shim.set("write enospc");
    talk(&mut client, &mut said, "during");
    shim.set("");
    for (number, said) in said.iter().enumerate() {
        await_conversation(&mut client, &format!("c{number}"), said, &server);
    }
    talk(&mut client, &mut said, "after");
    for (number, said) in said.iter().enumerate() {
        await_conversation(&mut client, &format!("c{number}"), said, &server);
    }
}

#[test]
fn chats_with_equal_replies_survive_the_death_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let (shim, upstream) = (Shim::new(&folder.path().join("strata.db-wal")), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    let mut said = Vec::new();
    go_on(&mut client, "s", &mut said, "say fine", "fine");
    await_conversation(&mut client, "s", &said, &server);
    shim.set("write eio");
    for _ in 0..2 {
        assert_eq!(go_on(&mut client, "s", &mut said, "say fine", "fine"), "later");
    }
    await_kept(&file, 2, &server);
    server.kill();
    shim.set("");
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    await_conversation(&mut client, "s", &said, &server);
    await_kept(&file, 0, &server);
    go_on(&mut client, "s", &mut said, "say fine", "fine");
    await_conversation(&mut client, "s", &said, &server);
}

#[test]
fn a_kept_chat_of_a_forgotten_user_or_session_is_never_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let (shim, upstream) = (Shim::new(&folder.path().join("strata.db-wal")), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    chat(&mut client, "s", "before the outage");
    await_recorded(&mut client, "s", "before the outage");
    shim.set("write eio");
    chat(&mut client, "t", "a secret of the session");
    await_kept(&file, 1, &server);
    // The store cannot forget it now, and has nothing of it.
    let _ = client.send("DELETE", "/sessions/t", &[], b"").unwrap();
    await_kept(&file, 0, &server);
    chat(&mut client, "s", "a secret of the user");
    await_kept(&file, 1, &server);
    shim.set("");
    server.kill();
    // A server that dies while it writes a file leaves a part of it.
    let spill = folder.path().join("strata.db-spill");
    fs::write(spill.join("half.partial"), "a secret of the user").unwrap();
    let forget = support::strata()
        .args(["--store", &support::store_url(&file), "users", "forget", "default", "--yes"])
        .output()
        .unwrap();
    assert!(forget.status.success(), "{}", support::show(&forget));
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0);
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    for session in ["s", "t"] {
        assert_eq!(turns(&mut client, session), Vec::<Value>::new(), "{session}");
    }
}

#[test]
fn chats_are_kept_while_the_file_of_the_store_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let (shim, upstream) = (Shim::new(&file), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    let mut said = Vec::new();
    go_on(&mut client, "s", &mut said, "one", &reply_to("one"));
    await_conversation(&mut client, "s", &said, &server);
    let aside = folder.path().join("aside.db");
    fs::rename(&file, &aside).unwrap();
    for question in ["two", "three"] {
        assert_eq!(go_on(&mut client, "s", &mut said, question, &reply_to(question)), "later");
    }
    await_kept(&file, 2, &server);
    fs::rename(&aside, &file).unwrap();
    await_conversation(&mut client, "s", &said, &server);
    await_kept(&file, 0, &server);
}

#[test]
fn readiness_never_hangs_on_a_slow_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let (shim, upstream) = (Shim::new(&file), Upstream::start());
    let server = start(&shim, &file, &upstream);
    let mut client = server.client();
    assert_eq!(readiness(&mut client), 200);
    shim.set("slow 8000");
    // A commit of the last half second still counts.
    let began = Instant::now();
    while readiness(&mut client) != 503 {
        assert!(began.elapsed() < PATIENCE, "a disk that hangs is never noticed");
    }
    shim.set("");
    let began = Instant::now();
    while readiness(&mut client) != 200 {
        assert!(began.elapsed() < PATIENCE, "the server is never ready again");
    }
}

#[test]
fn a_moved_store_takes_no_writes_and_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let server = Server::start(&file);
    let mut client = server.client();
    let say = |client: &mut Client, text: &str| {
        let messages = json!([{"role": "user", "content": text}]);
        client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap()
    };
    assert_eq!(say(&mut client, "a plum").status, 201);
    let aside = folder.path().join("aside.db");
    fs::rename(&file, &aside).unwrap();
    let refused = say(&mut client, "into nowhere");
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("strata.db"), "{}", refused.text());
    assert_eq!(readiness(&mut client), 503);
    fs::rename(&aside, &file).unwrap();
    assert_eq!(say(&mut client, "a cherry").status, 201);
    assert_eq!(readiness(&mut client), 200);
    assert_eq!(turns(&mut client, "s").len(), 2);
}

/// How far a clock was ahead, in seconds: a year, and almost to the end of what can be written as a time.
const AHEAD: [u64; 2] = [31_536_000, 7_900 * 31_556_952];

#[test]
fn jobs_of_a_clock_that_was_ahead_are_done_under_the_right_one() {
    for seconds in AHEAD {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("strata.db");
        let shim = Shim::new(&file);
        shim.set(&format!("clock {seconds}\n"));
        let server = Server::start_under(&shim, &file, &["log=warn", "learn.delay_secs=3600"]);
        let mut client = server.client();
        let messages = json!([{"role": "user", "content": "My sister Wanda lives in Tartu."}]);
        client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
        server.kill();
        shim.set("");
        let server = Server::start_under(&shim, &file, &["log=warn"]);
        await_jobs(&mut server.client(), &server);
    }
}

/// Waits until there are jobs and all are done.
fn await_jobs(client: &mut Client, server: &Server) {
    let began = Instant::now();
    loop {
        let jobs = client.get("/jobs?limit=100").unwrap().json();
        let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
        if !jobs.is_empty() && jobs.iter().all(|job| job["status"] == "done") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "jobs are left: {jobs:?}\n{}", server.log());
    }
}

/// The voluntary context switches of the writing thread: how often it has waited.
fn wake_ups(process: u32, thread: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let of_thread = |folder: &fs::DirEntry| {
        fs::read_to_string(folder.path().join("comm")).is_ok_and(|name| name.trim() == thread)
    };
    let status = tasks.filter(of_thread).map(|task| fs::read_to_string(task.path().join("status")).unwrap());
    let count = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    status.map(count).sum()
}

/// Lets time pass: what is measured is a server to which nothing happens.
fn pass(time: Duration) {
    let (_sender, nothing) = mpsc::channel::<()>();
    let _ = nothing.recv_timeout(time);
}

#[test]
fn an_idle_server_does_not_wake_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("strata.db"));
    let mut client = server.client();
    let messages = json!([{"role": "user", "content": "My sister Wanda lives in Tartu."}]);
    client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
    // Learning, indexing and the mark in the file end first.
    let began = Instant::now();
    let idle = Duration::from_secs(5);
    loop {
        let before = wake_ups(server.id(), "strata-writer");
        pass(idle);
        let woken = wake_ups(server.id(), "strata-writer") - before;
        if woken <= idle.as_secs() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "the writer of an idle server woke {woken} times in {idle:?}");
    }
}

#[test]
fn forgotten_words_leave_the_files_of_an_idle_server_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("strata.db"));
    let mut client = server.client();
    for session in ["kept", "gone"] {
        let content = format!("the {session}zanzibarquux is in the cellar");
        let messages = json!([{"role": "user", "content": content}]);
        client.post("/turns", &json!({"session_id": session, "messages": messages})).unwrap();
    }
    client.post("/search", &json!({"query": "gonezanzibarquux"})).unwrap();
    let holding = |word: &str| {
        let files = fs::read_dir(folder.path()).unwrap().flatten();
        let files = files.filter(|file| file.file_name() != "strata.log");
        let is_in = |file: &fs::DirEntry| {
            let bytes = fs::read(file.path()).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        };
        files.filter(is_in).map(|file| file.file_name()).collect::<Vec<_>>()
    };
    assert!(!holding("gonezanzibar").is_empty(), "it was never there");
    assert_eq!(client.send("DELETE", "/sessions/gone", &[], b"").unwrap().status, 200);
    // The row of the search names no session, so it stays until the user is forgotten.
    assert_eq!(client.send("DELETE", "/users/default", &[], b"").unwrap().status, 200);
    let began = Instant::now();
    while !holding("zanzibarquux").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(2), "still in {:?}", holding("zanzibarquux"));
    }
}
