//! `kill -9` of commands while they write: `chat`, `import`, `reindex` and `doctor --repair`.
//!
//! A command is killed once it has written so many bytes, to files or to a database, of those that it writes if it is left alone. So it
//! dies at another step of its work each time, on a fast machine and on a slow one.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::outage::turns;
use crate::support::{self, Client, Random, TestStore, Upstream, on_each_store, reply_to, show};

const ROUNDS: u64 = 6;
const SEED: u64 = 20_261_120;
/// The bytes that a running process has written.
fn written(child: &Child) -> u64 {
    let told = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    let number = told.lines().find_map(|line| line.strip_prefix("wchar: "));
    number.map_or(0, |number| number.trim().parse().unwrap())
}

/// Starts a command and kills it once it has written so many bytes, unless it ends before.
fn kill_after(command: &mut Command, bytes: u64) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if written(&child) >= bytes {
            return support::kill(child);
        }
        thread::yield_now();
    }
}

/// Runs a command to its end, and returns about how many bytes it has written.
fn bytes_of(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut bytes = 1;
    while child.try_wait().unwrap().is_none() {
        bytes = bytes.max(written(&child));
        thread::yield_now();
    }
    bytes
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
}

/// Records turns that all have the word `lantern`, and a word of their own.
fn fill(store: &TestStore, count: u64) {
    let server = store.serve(&["learn.enabled=false"]);
    let mut client = server.client();
    for part in 0..count / 50 {
        let said =
            |number: u64| json!({"role": "user", "content": format!("lantern lamp{}", part * 50 + number)});
        let messages: Vec<Value> = (0..50).map(said).collect();
        let answer = client.post("/turns", &json!({"session_id": "s", "messages": messages})).unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    server.stop();
}

#[test]
fn a_killed_reindex_loses_no_turn_and_is_finished_by_the_next() {
    let store = TestStore::sqlite();
    fill(&store, 400);
    let mut random = Random(support::seed(SEED));
    let most = bytes_of(&mut store.command(&["reindex"]));
    for _ in 0..store.rounds(ROUNDS) {
        kill_after(&mut store.command(&["reindex"]), random.below(most));
        store.assert_well();
    }
    finish(&mut store.command(&["reindex"]));
    store.assert_well();
    let server = store.serve(&[]);
    let mut client = server.client();
    assert_eq!(turns(&mut client, "s").len(), 400);
    for number in [0, 199, 399] {
        let found =
            client.post("/search", &json!({"query": format!("lamp{number}"), "limit": 1})).unwrap().json();
        assert_eq!(found["results"][0]["memory"], format!("lantern lamp{number}"), "{found}");
    }
}

/// The rows that were put aside, as `doctor --quarantine` prints them.
fn quarantined(store: &TestStore) -> usize {
    let output = store.command(&["doctor", "--quarantine"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().filter(|line| line.starts_with('{')).count()
}

#[test]
fn a_killed_repair_has_put_aside_every_damaged_row_or_none() {
    let store = TestStore::sqlite();
    fill(&store, 400);
    let mut random = Random(support::seed(SEED));
    let mut aside = 0;
    let mut most = 1;
    for round in 0..=store.rounds(ROUNDS) {
        let conn = Connection::open(store.path().unwrap()).unwrap();
        let damage = "UPDATE turns SET metadata = '{' WHERE seq % 7 = ?1 % 7 AND hidden_at IS NULL";
        let damaged = conn.execute(damage, [round as i64]).unwrap();
        drop(conn);
        match round {
            0 => most = bytes_of(&mut store.command(&["doctor", "--repair"])),
            _ => kill_after(&mut store.command(&["doctor", "--repair"]), random.below(most)),
        }
        let now = quarantined(&store);
        assert!([aside, aside + damaged].contains(&now), "{now} rows are aside, of {aside} and {damaged}");
        finish(&mut store.command(&["doctor", "--repair"]));
        aside += damaged;
        assert_eq!(quarantined(&store), aside);
    }
    store.assert_well();
    let conn = Connection::open(store.path().unwrap()).unwrap();
    let turns: i64 = conn.query_row("SELECT count(*) FROM turns", [], |row| row.get(0)).unwrap();
    assert_eq!(turns, 400);
}

on_each_store!(a_killed_import_is_finished_by_the_next, import_and_die);

const CONVERSATIONS: u64 = 12;
const MESSAGES: u64 = 10;

fn import_and_die(store: &TestStore) {
    let file = store.folder().join("talks.jsonl");
    let said = |number: u64| json!({"role": "user", "content": format!("said {number}")});
    let talk = |number: u64| {
        let messages: Vec<Value> = (0..MESSAGES).map(said).collect();
        json!({"session_id": format!("talk{number}"), "messages": messages}).to_string() + "\n"
    };
    fs::write(&file, (0..CONVERSATIONS).map(talk).collect::<String>()).unwrap();
    let mut random = Random(support::seed(SEED));
    let most = bytes_of(&mut store.command(&["import", file.to_str().unwrap(), "--prefix", "first-"]));
    for round in 0..store.rounds(ROUNDS) {
        let prefix = format!("r{round}-");
        let import = || store.command(&["import", file.to_str().unwrap(), "--prefix", &prefix]);
        kill_after(&mut import(), random.below(most));
        check_imported(store, &prefix, |stored| stored == 0 || stored == MESSAGES);
        finish(&mut import());
        check_imported(store, &prefix, |stored| stored == MESSAGES);
    }
    store.assert_well();
}

/// Checks the number of turns of each session, and that they are those of the file.
fn check_imported(store: &TestStore, prefix: &str, expected: impl Fn(u64) -> bool) {
    let server = store.serve(&["learn.enabled=false"]);
    let mut client = server.client();
    for number in 0..CONVERSATIONS {
        let session = format!("{prefix}talk{number}");
        let turns = turns(&mut client, &session);
        let contents: Vec<&str> = turns.iter().filter_map(|turn| turn["content"].as_str()).collect();
        let wanted: Vec<String> = (0..turns.len()).map(|number| format!("said {number}")).collect();
        assert!(expected(turns.len() as u64) && contents == wanted, "{session}: {contents:?}");
    }
    server.stop();
}

on_each_store!(a_killed_chat_has_recorded_what_was_answered, talk_and_die);

/// Exchanges of a chat in the terminal. When a question is answered, the exchange before it is recorded.
fn talk_and_die(store: &TestStore) {
    let upstream = Upstream::start();
    let url = upstream.url();
    let mut random = Random(support::seed(SEED));
    let (mut recorded, mut begun) = (Vec::new(), Vec::new());
    for round in 0..store.rounds(ROUNDS) {
        let mut child = store
            .command(&["chat", "--session", "c", "--upstream", &url, "--model", "m"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered = Vec::new();
        for number in 0..=random.below(4) {
            let question = format!("lantern {round} {number}");
            writeln!(input, "{question}").unwrap();
            let reply = reply_to(&question);
            assert!(lines.any(|line| line.unwrap().contains(&reply)), "the chat ended");
            answered.push(question);
        }
        let last = format!("lantern {round} last");
        writeln!(input, "{last}").unwrap();
        support::kill(child);
        begun.extend(answered.pop());
        begun.push(last);
        recorded.append(&mut answered);
    }
    let server = store.serve(&[]);
    check_talk(&mut server.client(), &recorded, &begun);
    server.stop();
    store.assert_well();
}

fn check_talk(client: &mut Client, recorded: &[String], begun: &[String]) {
    let turns = turns(client, "c");
    let count = |text: &str| turns.iter().filter(|turn| turn["content"] == text).count();
    for question in recorded {
        assert_eq!((count(question), count(&reply_to(question))), (1, 1), "`{question}`: {turns:#?}");
    }
    for question in begun {
        let (asked, replied) = (count(question), count(&reply_to(question)));
        assert!(replied <= asked && asked <= 1, "`{question}`: {asked}, {replied}: {turns:#?}");
    }
}
