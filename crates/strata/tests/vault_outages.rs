//! Bad days of the disk under a vault: the real binary, with faults of the files, of the index, or of both.
//!
//! A vault has two places that may fail by themselves: the files, which are the truth, and the index in `.strata`. What is
//! acknowledged is in the files, which the tests see when they delete the index.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use support::outage::{HANG, PATIENCE, await_recorded, chat, readiness, turns};
use support::{Client, Server, Shim, TestStore, Upstream, reply_to};

/// What may fail, in which part of a vault.
const FAULTS: [(&str, &str); 5] = [
    ("write enospc", ""),
    ("write enospc", "entries"),
    ("write eio", "entries"),
    ("sync eio", "entries"),
    ("sync eio", ".strata"),
];

fn serve(store: &TestStore, shim: &Shim, upstream: &Upstream) -> Server {
    let upstream = format!("upstream={}", upstream.url());
    store.serve_as("strata", &[&upstream, "log=warn"], Some(shim))
}

fn say(client: &mut Client, session: &str, text: &str) -> u16 {
    let messages = json!([{"role": "user", "content": text}]);
    client.post("/turns", &json!({"session_id": session, "messages": messages})).unwrap().status
}

fn await_readiness(client: &mut Client, expected: u16, what: &str) {
    let began = Instant::now();
    while readiness(client) != expected {
        assert!(began.elapsed() < PATIENCE, "{what}: `/readyz` never says {expected}");
    }
}

/// Deletes the index, as anybody may while Strata is stopped.
fn delete_index(store: &TestStore) {
    fs::remove_dir_all(store.path().unwrap().join(".strata")).unwrap();
}

/// Whether a file of a turn holds a text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => is_in_files(&path, text),
        false => fs::read_to_string(path).is_ok_and(|file| file.ends_with(&format!("\n{text}\n"))),
    })
}

fn await_in_files(store: &TestStore, text: &str, server: &Server) {
    let (began, entries) = (Instant::now(), store.path().unwrap().join("entries"));
    while !is_in_files(&entries, text) {
        assert!(began.elapsed() < PATIENCE, "`{text}` is in no file:\n{}", server.log());
    }
}

#[test]
fn chats_of_a_short_outage_are_in_the_files_when_it_is_over() {
    for (fault, part) in FAULTS {
        let (store, upstream) = (TestStore::vault(), Upstream::start());
        let shim = Shim::of_part(&store, part);
        let server = serve(&store, &shim, &upstream);
        let mut client = server.client();
        assert_eq!(chat(&mut client, "s", "before the outage").status, 200);
        await_recorded(&mut client, "s", "before the outage");
        shim.set(fault);
        let what = format!("{fault} of `{part}`");
        let questions: Vec<String> =
            (0..3).map(|number| format!("question {number} during {fault}")).collect();
        for (number, question) in questions.iter().enumerate() {
            assert_eq!(chat(&mut client, &format!("o{number}"), question).status, 200, "a chat never fails");
        }
        await_readiness(&mut client, 503, &what);
        shim.set("");
        for (number, question) in questions.iter().enumerate() {
            await_recorded(&mut client, &format!("o{number}"), question);
            await_in_files(&store, question, &server);
            await_in_files(&store, &reply_to(question), &server);
        }
        await_readiness(&mut client, 200, &what);
        server.kill();
        delete_index(&store);
        let server = store.serve(&["log=warn"]);
        for (number, question) in questions.iter().enumerate() {
            await_recorded(&mut server.client(), &format!("o{number}"), question);
        }
        drop(server);
        store.assert_well();
    }
}

#[test]
fn nothing_is_acknowledged_that_is_in_no_file() {
    let (store, upstream) = (TestStore::vault(), Upstream::start());
    let shim = Shim::of_part(&store, "entries");
    let server = serve(&store, &shim, &upstream);
    let mut client = server.client();
    assert_eq!(say(&mut client, "s", "a plum"), 201);
    for fault in ["write enospc", "sync eio"] {
        shim.set(fault);
        assert_eq!(say(&mut client, "s", &format!("said during {fault}")), 503, "{fault}");
    }
    // What was refused is tried again by itself, and by whoever sends it again.
    shim.set("");
    await_in_files(&store, "said during write enospc", &server);
    await_in_files(&store, "said during sync eio", &server);
    assert_eq!(say(&mut client, "s", "a cherry"), 201);
    server.kill();
    delete_index(&store);
    let server = store.serve(&[]);
    let stored = turns(&mut server.client(), "s");
    let contents: Vec<&str> = stored.iter().filter_map(|turn| turn["content"].as_str()).collect();
    assert_eq!(contents, ["a plum", "said during write enospc", "said during sync eio", "a cherry"]);
}

#[test]
fn readiness_never_hangs_on_a_slow_disk() {
    let (store, upstream) = (TestStore::vault(), Upstream::start());
    let shim = Shim::of_part(&store, "entries");
    let server = serve(&store, &shim, &upstream);
    let mut client = server.client();
    assert_eq!(say(&mut client, "s", "a plum"), 201);
    await_readiness(&mut client, 200, "at first");
    shim.set(&format!("slow {}", HANG.as_millis()));
    let began = Instant::now();
    await_readiness(&mut client, 503, "a disk that hangs");
    assert!(began.elapsed() < HANG, "it is not noticed before the disk goes on");
    shim.set("");
    await_readiness(&mut client, 200, "a disk that hangs no more");
}

#[test]
fn a_vault_that_is_moved_or_loses_its_index_takes_no_writes() {
    let store = TestStore::vault();
    let server = store.serve(&[]);
    let mut client = server.client();
    assert_eq!(say(&mut client, "s", "a plum"), 201);
    let (vault, aside) = (store.path().unwrap(), store.folder().join("aside"));
    fs::rename(vault, &aside).unwrap();
    assert_eq!(say(&mut client, "s", "into nowhere"), 503);
    assert_eq!(readiness(&mut client), 503);
    assert!(!vault.exists(), "nothing is made in its place");
    fs::rename(&aside, vault).unwrap();
    assert_eq!(say(&mut client, "s", "a cherry"), 201);
    await_readiness(&mut client, 200, "a vault that is back");
    delete_index(&store);
    assert_eq!(say(&mut client, "s", "into no index"), 503);
    assert_eq!(readiness(&mut client), 503);
    server.kill();
    let server = store.serve(&[]);
    let stored = turns(&mut server.client(), "s");
    let contents: Vec<&str> = stored.iter().filter_map(|turn| turn["content"].as_str()).collect();
    assert_eq!(contents, ["a plum", "a cherry"]);
}
