//! `kill -9` under writes of every kind: memories that are added, edited, deleted, restored and forgotten, states, and sessions
//! that are forgotten. The real binary on a SQLite file and on a vault, six clients over HTTP.
//!
//! A second set of clients forgets its user, writes working contexts, complains about searches, and adds memories as mem0's
//! client does and through MCP.
//!
//! Each client has a memory and a session of its own, so it knows what must be stored: all that was acknowledged, in its order,
//! and at most the one write that was under way when the server died. A write that is stored twice shows in the history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
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

/// What one client has written, and what it expects to be stored.
trait Ledger: Clone + std::fmt::Debug + Send + 'static {
    type Write: Copy + std::fmt::Debug + Send;

    fn of(client: u64) -> Self;

    fn client(&self) -> u64;

    /// The next write: any that fits what is stored.
    fn next(&mut self, random: &mut Random) -> Self::Write;

    /// Sends a write. The error is that of a connection that was cut.
    fn send(&self, write: Self::Write, client: &mut Client) -> std::io::Result<Value>;

    /// What is stored once a write has succeeded. Only the answer tells the id of a new item.
    fn after(&self, write: Self::Write, answer: Option<&Value>) -> Self;

    /// The differences between this and what is stored; empty if there are none.
    fn differences(&self, client: &mut Client) -> String;
}

impl Written {
    fn text(&self) -> String {
        format!("client {} keeps {} kites", self.client, self.number)
    }

    fn session(&self) -> String {
        format!("session{}", self.client)
    }
}

impl Ledger for Written {
    type Write = Write;

    fn of(client: u64) -> Self {
        Self { client, ..Self::default() }
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn next(&mut self, random: &mut Random) -> Write {
        self.number += 1;
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
fn write_until_cut<L: Ledger>(
    mut written: L,
    client: Client,
    round: u64,
    told: &mpsc::Sender<()>,
) -> (L, L::Write) {
    let mut client = client;
    let mut random = Random(support::seed(SEED) ^ (round << 8) ^ written.client());
    loop {
        let write = written.next(&mut random);
        match written.send(write, &mut client) {
            Ok(answer) => written = written.after(write, Some(&answer)),
            Err(_) => return (written, write),
        }
        let _ = told.send(());
    }
}

/// Compares a client's knowledge with the store, and takes the write that was under way for done or not.
fn settle<L: Ledger>(client: &mut Client, written: &L, pending: L::Write, round: u64) -> L {
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

fn run<L: Ledger>(start: impl Fn() -> Server) {
    let mut random = Random(support::seed(SEED));
    let mut all: Vec<L> = (0..CLIENTS).map(L::of).collect();
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

/// What a client has written as a user of its own, through the other doors.
#[derive(Debug, Clone, Default)]
struct Person {
    client: u64,
    number: u64,
    /// Through the client of mem0 and through MCP.
    memories: BTreeSet<String>,
    /// The place in the session's working context.
    context: Option<String>,
    /// A request, and how often its user has complained about it.
    asked: Option<(String, u64)>,
}

#[derive(Debug, Clone, Copy)]
enum PersonWrite {
    Mem0,
    Mcp,
    Context,
    Ask,
    Complain,
    ForgetUser,
}

impl Person {
    fn user(&self) -> String {
        format!("person{}", self.client)
    }

    fn text(&self) -> String {
        format!("person {} has {} lanterns", self.client, self.number)
    }

    fn place(&self) -> String {
        format!("place {}", self.number)
    }
}

impl Ledger for Person {
    type Write = PersonWrite;

    fn of(client: u64) -> Self {
        Self { client, ..Self::default() }
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn next(&mut self, random: &mut Random) -> PersonWrite {
        self.number += 1;
        match (random.below(10), &self.asked) {
            (0..=2, _) => PersonWrite::Mem0,
            (3..=4, _) => PersonWrite::Mcp,
            (5..=6, _) => PersonWrite::Context,
            (7..=8, None) => PersonWrite::Ask,
            (7..=8, Some(_)) => PersonWrite::Complain,
            _ if self.memories.is_empty() => PersonWrite::Mem0,
            _ => PersonWrite::ForgetUser,
        }
    }

    fn send(&self, write: PersonWrite, client: &mut Client) -> std::io::Result<Value> {
        let (user, text) = (self.user(), self.text());
        let asked = self.asked.as_ref().map_or("", |(id, _)| id.as_str());
        let said = json!([{ "role": "user", "content": text }]);
        let tool = json!({ "name": "add_memory", "arguments": { "text": text, "user_id": user } });
        let (method, path, body) = match write {
            PersonWrite::Mem0 => {
                ("POST", "/memories".to_owned(), json!({ "messages": said, "user_id": user, "infer": false }))
            }
            PersonWrite::Mcp => {
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool });
                ("POST", "/mcp".to_owned(), call)
            }
            PersonWrite::Context => {
                let path = format!("/sessions/s/context?user_id={user}");
                // The rest of the document stays as it is.
                let read = client.get(&path)?;
                let mut document =
                    if read.status == 200 { read.json() } else { json!({ "session_id": "s" }) };
                document["last_known_environment"]["workspace"] = json!(self.place());
                ("PUT", path, document)
            }
            PersonWrite::Ask => ("POST", "/search".to_owned(), json!({ "query": text, "user_id": user })),
            PersonWrite::Complain => {
                let body = json!({ "text": format!("complaint {}", self.number), "user_id": user });
                ("POST", format!("/requests/{asked}/feedback"), body)
            }
            PersonWrite::ForgetUser => ("DELETE", format!("/users/{user}"), Value::Null),
        };
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("If-Match", "*"),
        ];
        let headers = if matches!(write, PersonWrite::Context) { &headers[..] } else { &headers[..2] };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = client.send(method, &path, headers, body.as_bytes())?;
        if let (PersonWrite::Complain, Some((_, complaints))) = (write, &self.asked) {
            while answer.status == 503 && answer.text().contains("still being written") {
                answer = client.send(method, &path, headers, body.as_bytes())?;
            }
            // The row of a question is written in the background, so a kill may have lost it.
            if answer.status == 404 && *complaints == 0 {
                return Ok(Value::Null);
            }
        }
        assert!((200..300).contains(&answer.status), "{write:?}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }

    fn after(&self, write: PersonWrite, answer: Option<&Value>) -> Self {
        let mut after = self.clone();
        match write {
            PersonWrite::Mem0 | PersonWrite::Mcp => drop(after.memories.insert(self.text())),
            PersonWrite::Context => after.context = Some(self.place()),
            PersonWrite::Ask => {
                let id = answer.and_then(|answer| answer["request_id"].as_str());
                after.asked = id.map(|id| (id.to_owned(), 0));
            }
            PersonWrite::Complain if answer == Some(&Value::Null) => after.asked = None,
            PersonWrite::Complain => {
                after.asked = after.asked.map(|(id, complaints)| (id, complaints + 1));
            }
            PersonWrite::ForgetUser => {
                (after.memories, after.context, after.asked) = (BTreeSet::new(), None, None);
            }
        }
        after
    }

    fn differences(&self, client: &mut Client) -> String {
        let mut differences = String::new();
        let mut check = |what: &str, found: Value, expected: Value| {
            if found != expected {
                differences.push_str(&format!("{what}: {found}, not {expected}; "));
            }
        };
        let user = self.user();
        let listed = client.get(&format!("/memories?user_id={user}&limit=1000")).unwrap().json();
        let results = listed["results"].as_array().cloned().unwrap_or_default();
        let mut texts: Vec<&str> = results.iter().filter_map(|result| result["memory"].as_str()).collect();
        texts.sort_unstable();
        check("the memories", json!(texts), json!(self.memories));
        let context = client.get(&format!("/sessions/s/context?user_id={user}")).unwrap();
        let place = context.json()["last_known_environment"]["workspace"].as_str().map(str::to_owned);
        check(
            "the context",
            json!(place.unwrap_or_default()),
            json!(self.context.clone().unwrap_or_default()),
        );
        // A complaint is durable, and so is its request then.
        if let Some((id, complaints)) = self.asked.as_ref().filter(|(_, complaints)| *complaints > 0) {
            let row = client.get(&format!("/requests/{id}?user_id={user}")).unwrap();
            let found =
                if row.status == 200 { row.json()["feedback"].as_array().map(Vec::len) } else { None };
            check("the complaints", json!(found), json!(complaints));
        }
        differences
    }
}

#[test]
fn writes_through_the_other_doors_survive_kills_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("doors.db");
    run::<Person>(|| Server::start(&file));
    doctor(&support::store_url(&file));
}

#[test]
fn every_kind_of_write_survives_kills_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("writes.db");
    run::<Written>(|| Server::start(&file));
    doctor(&support::store_url(&file));
}

#[test]
fn every_kind_of_write_survives_kills_on_a_vault() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("vault:{}", directory.path().join("vault").display());
    let log = directory.path().join("vault.log");
    run::<Written>(|| Server::start_on(&store, &log, &[]));
    doctor(&store);
    let index = directory.path().join("vault");
    assert!(Path::new(&index).is_dir());
}

fn doctor(store: &str) {
    let output = support::strata().args(["doctor", "--store", store]).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
}
