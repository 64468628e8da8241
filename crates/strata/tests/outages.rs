//! Bad days of the disk and the clock under the real binary: what a client was told is kept, and monitors hear the truth.
//!
//! A library that is preloaded into the process makes writes and syncs fail or wait, and moves its clock (`support/shim.c`).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::outage::{HANG, PATIENCE, await_recorded, chat, readiness, turns};
use support::{Client, Server, Shim, TestStore, Upstream, reply_to};

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
    shim.set(&format!("slow {}", HANG.as_millis()));
    // A commit of the last half second still counts.
    let began = Instant::now();
    while readiness(&mut client) != 503 {
        assert!(began.elapsed() < HANG, "it is not noticed before the disk goes on");
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

#[test]
fn readiness_notices_a_moved_store_before_any_write() {
    for is_deleted in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("strata.db");
        let server = Server::start(&file);
        let mut client = server.client();
        assert_eq!(readiness(&mut client), 200);
        match is_deleted {
            true => fs::remove_file(&file).unwrap(),
            false => fs::rename(&file, folder.path().join("aside.db")).unwrap(),
        }
        // A commit of the last half second still counts.
        let began = Instant::now();
        while readiness(&mut client) != 503 {
            assert!(began.elapsed() < PATIENCE, "it is never noticed:\n{}", server.log());
        }
        assert!(!file.exists(), "nothing is made in its place");
    }
}

/// Every way to ask tells that something was passed over.
#[test]
fn each_answer_from_memory_says_that_a_damaged_item_was_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let server = Server::start(&file);
    let said = |text: &str| json!({"role": "user", "content": text});
    let messages = [said("The walnut tree stands in the yard."), said("The walnut press is in the cellar.")];
    server.client().post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
    server.stop();
    let conn = rusqlite::Connection::open(&file).unwrap();
    let damage = "UPDATE turns SET content = CAST(x'77616c6e757420fffe' AS TEXT) WHERE seq = 1";
    assert_eq!(conn.execute(damage, []).unwrap(), 1);
    drop(conn);

    let upstream = Upstream::start();
    let server = Server::start_with(&file, &[&format!("upstream={}", upstream.url()), "log=warn"]);
    let mut client = server.client();
    let question = "Where is the walnut tree?";
    let found = client.post("/search", &json!({"query": question})).unwrap().json();
    assert_eq!((&found["unreadable"], found["results"].as_array().unwrap().len()), (&json!(1), 1), "{found}");
    let tool = json!({"name": "search_memories", "arguments": {"query": question}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}).to_string();
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let told = client.send("POST", "/mcp", &headers, call.as_bytes()).unwrap();
    assert!(told.text().contains("1 stored items are damaged and were left out"), "{}", told.text());
    let body = json!({"question": question, "format": "chat"});
    let prompt = client.post("/sessions/t/prompt", &body).unwrap();
    assert_eq!(prompt.header("x-strata-memory-unreadable"), Some("1"), "{:?}", prompt.headers);
    let answer = chat(&mut client, "t", question);
    assert_eq!(answer.header("x-strata-memory-unreadable"), Some("1"), "{:?}", answer.headers);
    server.stop();
    let output = support::strata()
        .args(["search", question, "--json", "--store", &support::store_url(&file)])
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["unreadable"], 1, "{}", support::show(&output));
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

/// The clock of a running server jumps a year ahead and back again. What is said afterwards is learned, and corrects what was said
/// under the wrong clock.
#[test]
fn a_clock_that_jumps_under_a_running_server_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let shim = Shim::new(&file);
    let server = Server::start_under(&shim, &file, &["log=warn", "learn.delay_secs=0"]);
    let mut client = server.client();
    let homes = ["Tartu", "Narva", "Viljandi"];
    for (home, clock) in homes.into_iter().zip(["", "clock 31536000\n", ""]) {
        shim.set(clock);
        let messages = json!([{"role": "user", "content": format!("I live in {home}")}]);
        let said = client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
        assert_eq!(said.status, 201, "{}", said.text());
        await_home(&mut client, home, &server);
        await_jobs(&mut client, &server);
    }
    assert_eq!(readiness(&mut client), 200);
}

/// Waits until the user is known to live in this town, and in no other.
fn await_home(client: &mut Client, home: &str, server: &Server) {
    let began = Instant::now();
    loop {
        let listed = client.get("/memories?limit=100").unwrap().json();
        let results = listed["results"].as_array().cloned().unwrap_or_default();
        let homes: Vec<&str> = results.iter().filter_map(|result| result["memory"].as_str()).collect();
        if homes.len() == 1 && homes[0].contains(home) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{home}: {homes:?}\n{}", server.log());
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

/// How often each thread of a process has waited: its voluntary context switches.
fn wake_ups(process: u32) -> BTreeMap<String, u64> {
    let mut woken = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        // A thread may end in between.
        let Ok(name) = fs::read_to_string(task.path().join("comm")) else { continue };
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        *woken.entry(name.trim().to_owned()).or_default() += count.trim().parse::<u64>().unwrap();
    }
    woken
}

/// Lets time pass: what is measured is a server to which nothing happens.
fn pass(time: Duration) {
    let (_sender, nothing) = mpsc::channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// The time in which the wake-ups of an idle server are counted.
const IDLE: Duration = Duration::from_secs(5);
/// One thread serves all tasks, and wakes once a second. The rest is room for what else a machine makes a thread wait for.
const WAKES_A_SECOND: u64 = 2;

/// Waits until a server to which nothing happens wakes as seldom as it should, and never its writers.
fn await_rest(server: &Server) {
    let began = Instant::now();
    loop {
        let before = wake_ups(server.id());
        pass(IDLE);
        let after = wake_ups(server.id());
        let woken = |name: &String| after[name].saturating_sub(before.get(name).copied().unwrap_or(0));
        let all: u64 = after.keys().map(woken).sum();
        let of_writers: u64 = after.keys().filter(|name| name.contains("writer")).map(woken).sum();
        if of_writers == 0 && all <= IDLE.as_secs() * WAKES_A_SECOND {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "in {IDLE:?}: {before:?}, then {after:?}");
    }
}

#[test]
fn an_idle_server_wakes_with_its_pulse_alone_and_its_writer_never() {
    for store in [TestStore::sqlite(), TestStore::vault()] {
        let server = store.serve(&[]);
        let mut client = server.client();
        let messages = json!([{"role": "user", "content": "My sister Wanda lives in Tartu."}]);
        client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
        // Learning, indexing and the mark in the file end first.
        await_rest(&server);
    }
}

/// Records a sentence in each of two sessions of an idle server.
fn say_in_two_sessions(client: &mut Client) {
    for session in ["kept", "gone"] {
        let content = format!("the {session}zanzibarquux is in the cellar");
        let messages = json!([{"role": "user", "content": content}]);
        client.post("/turns", &json!({"session_id": session, "messages": messages})).unwrap();
    }
}

/// The files of a store that hold a word.
fn holding(folder: &Path, word: &str) -> Vec<std::ffi::OsString> {
    let files = fs::read_dir(folder).unwrap().flatten().filter(|file| file.file_name() != "strata.log");
    let is_in = |file: &fs::DirEntry| {
        let bytes = fs::read(file.path()).unwrap_or_default();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    files.filter(is_in).map(|file| file.file_name()).collect()
}

/// Waits until no file holds a word; the promise is two seconds.
fn await_gone(folder: &Path, word: &str) {
    let began = Instant::now();
    loop {
        let files = holding(folder, word);
        if files.is_empty() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(2), "`{word}` is still in {files:?}");
    }
}

#[test]
fn the_words_of_a_forgotten_session_leave_the_files_of_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("strata.db"));
    let mut client = server.client();
    say_in_two_sessions(&mut client);
    assert!(!holding(folder.path(), "gonezanzibar").is_empty(), "it was never there");
    assert_eq!(client.send("DELETE", "/sessions/gone", &[], b"").unwrap().status, 200);
    await_gone(folder.path(), "gonezanzibar");
    assert!(!holding(folder.path(), "keptzanzibar").is_empty(), "the other session stays");
}

#[test]
fn forgotten_words_leave_the_files_of_an_idle_server_within_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("strata.db"));
    let mut client = server.client();
    say_in_two_sessions(&mut client);
    client.post("/search", &json!({"query": "gonezanzibarquux"})).unwrap();
    assert_eq!(client.send("DELETE", "/sessions/gone", &[], b"").unwrap().status, 200);
    // The row of the search names no session, so it stays until the user is forgotten.
    assert_eq!(client.send("DELETE", "/users/default", &[], b"").unwrap().status, 200);
    await_gone(folder.path(), "zanzibarquux");
}

#[test]
fn the_log_tells_neither_what_was_said_nor_who_was_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("strata.db");
    let upstream = Upstream::start();
    let upstream = format!("upstream={}", upstream.url());
    let server = Server::start_with(&file, &[&upstream, "log=debug"]);
    let mut client = server.client();
    let question = "where is the zanzibarquux";
    let headers = [("Content-Type", "application/json"), ("X-Strata-User", "wandazanzibar")];
    let said = json!([{"role": "user", "content": question}]);
    let body = json!({"model": "m", "memory_id": "gonezanzibar", "messages": said}).to_string();
    let answer = client.send("POST", "/v1/chat/completions", &headers, body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    for path in ["/sessions/gonezanzibar?user_id=wandazanzibar", "/users/wandazanzibar"] {
        assert_eq!(client.send("DELETE", path, &[], b"").unwrap().status, 200, "{path}");
    }
    server.stop();
    let log = fs::read_to_string(folder.path().join("strata.log")).unwrap();
    assert!(!log.is_empty() && !log.contains("zanzibar"), "{log}");
}
