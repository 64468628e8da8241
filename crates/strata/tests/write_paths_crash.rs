//! `kill -9` under writes of every kind: memories that are added, edited, deleted, restored and forgotten, states, and sessions
//! that are forgotten. The real binary on a SQLite file and on a vault, six clients over HTTP.
//!
//! Each client has a memory and a session of its own, so it knows what must be stored: all that was acknowledged, in its order,
//! and at most the one write that was under way when the server died. A write that is stored twice shows in the history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use support::{Client, Random, Server};

const ROUNDS: u64 = 4;
const CLIENTS: u64 = 6;
/// The most acknowledgements before a death.
const MOST_ACKNOWLEDGED: u64 = 120;
const SEED: u64 = 20_261_118;

/// What a client has written.
#[derive(Debug, Clone, Default)]
struct Written {
    client: u64,
    number: u64,
    /// The memory, with all its statements in their order.
    memory: Option<String>,
    statements: Vec<String>,
    is_deleted: bool,
    /// The field of the session's state.
    state: Option<u64>,
    /// A memory that was destroyed.
    forgotten: Option<String>,
}

/// A write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Write {
    Add,
    Edit,
    Delete,
    Restore,
    Forget,
    State,
    ForgetSession,
}

impl Written {
    /// The next write: any that fits the memory's condition.
    fn next(&self, random: &mut Random) -> Write {
        if self.memory.is_none() {
            return Write::Add;
        }
        let others = match random.below(12) {
            0 => Some(Write::Forget),
            1..=3 => Some(Write::State),
            4 if self.state.is_some() => Some(Write::ForgetSession),
            _ => None,
        };
        others.unwrap_or_else(|| match (self.is_deleted, random.below(3)) {
            (true, _) => Write::Restore,
            (false, 0) => Write::Delete,
            (false, _) => Write::Edit,
        })
    }

    fn text(&self) -> String {
        format!("client {} keeps {} kites", self.client, self.number)
    }

    fn session(&self) -> String {
        format!("session{}", self.client)
    }

    /// Sends a write. The error is that of a connection that was cut.
    fn send(&self, write: Write, client: &mut Client) -> std::io::Result<Value> {
        let json = [("Content-Type", "application/json"), ("X-Strata-User", "ada")];
        let memory = format!("/memories/{}", self.memory.as_deref().unwrap_or_default());
        let state = format!("/sessions/{}/state", self.session());
        let (method, path, body) = match write {
            Write::Add => ("POST", "/memories".to_owned(), json!({ "text": self.text(), "infer": false })),
            Write::Edit => ("PUT", memory, json!({ "text": self.text() })),
            Write::Delete => ("DELETE", memory, Value::Null),
            Write::Restore => ("POST", memory + "/restore", Value::Null),
            Write::Forget => ("DELETE", memory + "?forget=true", Value::Null),
            Write::State => ("PUT", state, json!({ "number": self.number })),
            Write::ForgetSession => ("DELETE", format!("/sessions/{}", self.session()), Value::Null),
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = client.send(method, &path, &json, body.as_bytes())?;
        assert!((200..300).contains(&answer.status), "{write:?}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }

    /// What is stored once a write has succeeded. Only the answer tells the id of a new memory.
    fn after(&self, write: Write, answer: Option<&Value>) -> Self {
        let mut after = self.clone();
        match write {
            Write::Add => {
                let id = answer.and_then(|answer| answer["results"][0]["id"].as_str());
                after.memory = id.map(str::to_owned);
                after.statements = vec![self.text()];
                after.is_deleted = false;
            }
            Write::Edit => after.statements.push(self.text()),
            Write::Delete => after.is_deleted = true,
            Write::Restore => after.is_deleted = false,
            Write::Forget => {
                after.forgotten = after.memory.take();
                after.statements.clear();
                after.is_deleted = false;
            }
            Write::State => after.state = Some(self.number),
            Write::ForgetSession => after.state = None,
        }
        after
    }

    /// The differences between this and what is stored; empty if there are none.
    fn differences(&self, client: &mut Client) -> String {
        let mut differences = String::new();
        let mut check = |what: &str, found: Value, expected: Value| {
            if found != expected {
                differences.push_str(&format!("{what} is {found}, not {expected}; "));
            }
        };
        if let Some(memory) = &self.memory {
            let history = client.get(&format!("/memories/{memory}/history?user_id=ada")).unwrap().json();
            let steps = history.as_array().or(history["results"].as_array()).cloned().unwrap_or_default();
            let said = |event: &str| -> Vec<Value> {
                let of_kind = steps.iter().filter(|step| event.split(' ').any(|one| step["event"] == one));
                of_kind.map(|step| step["new_memory"].clone()).collect()
            };
            check("the history", said("ADD UPDATE").into(), json!(self.statements));
            let shown = client.get(&format!("/memories/{memory}?user_id=ada")).unwrap();
            let is_deleted = shown.status == 404 && shown.text().contains("was deleted");
            check("deleted", is_deleted.into(), self.is_deleted.into());
        }
        if let Some(forgotten) = &self.forgotten {
            let gone = client.get(&format!("/memories/{forgotten}?user_id=ada")).unwrap().status;
            check("the status of a forgotten memory", gone.into(), 404.into());
        }
        let state = client.get(&format!("/sessions/{}/state?user_id=ada", self.session())).unwrap();
        check("the state", state.json()["number"].clone(), json!(self.state));
        differences
    }
}

/// The work of a client in one round: what was acknowledged, and the write that was not.
fn write_until_cut(
    mut written: Written,
    client: Client,
    round: u64,
    told: &mpsc::Sender<()>,
) -> (Written, Write) {
    let mut client = client;
    let mut random = Random(support::seed(SEED) ^ (round << 8) ^ written.client);
    loop {
        written.number += 1;
        let write = written.next(&mut random);
        match written.send(write, &mut client) {
            Ok(answer) => written = written.after(write, Some(&answer)),
            Err(_) => return (written, write),
        }
        let _ = told.send(());
    }
}

/// Compares a client's knowledge with the store, and takes the write that was under way for done or not.
fn settle(client: &mut Client, written: &Written, pending: Write, round: u64) -> Written {
    let without = written.differences(client);
    if without.is_empty() {
        return written.clone();
    }
    // The id of a memory that was added without an answer is not known.
    let done = written.after(pending, None);
    let with = done.differences(client);
    assert!(with.is_empty(), "round {round}: {pending:?} of {written:?}: {without}with it: {with}");
    done
}

fn run(start: impl Fn() -> Server) {
    let mut random = Random(support::seed(SEED));
    let mut all: Vec<Written> = (0..CLIENTS).map(|client| Written { client, ..Written::default() }).collect();
    for round in 0..support::rounds(ROUNDS) {
        let server = start();
        let deadly = 1 + random.below(MOST_ACKNOWLEDGED);
        let (told, heard) = mpsc::channel();
        let clients: Vec<_> = std::mem::take(&mut all)
            .into_iter()
            .map(|written| {
                let (client, told) = (server.client(), told.clone());
                thread::spawn(move || write_until_cut(written, client, round, &told))
            })
            .collect();
        drop(told);
        assert_eq!(heard.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
        server.kill();
        let server = start();
        let mut client = server.client();
        for joined in clients {
            let (written, pending) = joined.join().unwrap();
            all.push(settle(&mut client, &written, pending, round));
        }
    }
}

#[test]
fn every_kind_of_write_survives_kills_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("writes.db");
    run(|| Server::start(&file));
    doctor(&support::store_url(&file));
}

#[test]
fn every_kind_of_write_survives_kills_on_a_vault() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("vault:{}", directory.path().join("vault").display());
    let log = directory.path().join("vault.log");
    run(|| Server::start_on(&store, &log, &[]));
    doctor(&store);
    let index = directory.path().join("vault");
    assert!(Path::new(&index).is_dir());
}

fn doctor(store: &str) {
    let output = support::strata().args(["doctor", "--store", store]).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
}
