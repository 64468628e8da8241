//! `kill -9` while sessions are compacted and summary trees are built: the real binary on a store of each kind, four
//! sessions over HTTP, alternately without a model and with one that never answers. In the last round the model refuses, and rules take its place.
//!
//! At the end, each acknowledged turn is stored once and in its place, every job has finished, and no summary exists twice: no
//! two versions are built on the same one, and the chunks of a tree neither overlap nor leave a gap. `compact` jobs have compacted,
//! and no history is longer than its limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::model::{Model, Mood};
use support::{Client, Random, TestStore, on_each_store};

const ROUNDS: u64 = 6;
const SESSIONS: u64 = 4;
/// The most acknowledgements before a death.
const MOST_ACKNOWLEDGED: u64 = 24;
const SEED: u64 = 20_261_119;
/// The words of a message: three exchanges fill a chunk of a tree (3,000 tokens).
const WORDS: u64 = 500;

/// Every few turns are compacted.
const SETTINGS: [&str; 5] = [
    "learn.retry_secs=1",
    "learn.delay_secs=0",
    "learn.reader=off",
    "context.max_recent_history=8",
    "context.keep_recent_history=4",
];

/// A job may be tried as often as this test kills. Those of a killed server are free after one second.
const PATIENT: [&str; 2] = ["learn.max_attempts=100", "learn.lease_secs=1"];
/// Rules take a model's place in the last attempt, so that a job outlives a kill in any attempt before it. No lease ends on a busy
/// machine.
const IMPATIENT: [&str; 2] = ["learn.max_attempts=4", "learn.lease_secs=10"];

/// The exchanges of a session that were acknowledged.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    session: u64,
    exchanges: u64,
}

impl Recorded {
    fn name(self) -> String {
        format!("talk{}", self.session)
    }

    /// The text of a turn: a line with its number, and many words.
    fn text(self, turn: u64) -> String {
        let words = (0..WORDS).map(|word| format!("w{}", (word * 7 + turn * 13) % 997));
        format!("Turn {turn} of {}. {}", self.name(), words.collect::<Vec<_>>().join(" "))
    }

    /// Records an exchange. The error is that of a connection that was cut.
    fn record(self, client: &mut Client) -> std::io::Result<()> {
        let first = self.exchanges * 2;
        let body = json!({
            "user_id": "ada", "session_id": self.name(),
            "messages": [
                { "role": "user", "content": self.text(first) },
                { "role": "assistant", "content": self.text(first + 1) },
            ],
        });
        let answer = client.post("/turns", &body)?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Ok(())
    }

    /// Compacts the session. A conflict with a job that compacts it too is no error.
    fn compact(self, client: &mut Client) -> std::io::Result<()> {
        let path = format!("/sessions/{}/compact?user_id=ada", self.name());
        let answer = client.post(&path, &json!({}))?;
        assert!([200, 409].contains(&answer.status), "{}", answer.text());
        Ok(())
    }
}

/// The work of a client until the server dies.
fn work_until_cut(mut recorded: Recorded, mut client: Client, told: &mpsc::Sender<()>) -> Recorded {
    loop {
        if recorded.record(&mut client).is_err() {
            return recorded;
        }
        recorded.exchanges += 1;
        let _ = told.send(());
        if recorded.exchanges.is_multiple_of(2) && recorded.compact(&mut client).is_err() {
            return recorded;
        }
    }
}

on_each_store!(compactions_and_trees_survive_kills, compact_and_die);

fn compact_and_die(store: &TestStore) {
    let model = Model::start();
    let with_model = model.setting();
    model.set(Mood::Silent);
    let mut random = Random(support::seed(SEED));
    let mut all: Vec<Recorded> = (0..SESSIONS).map(|session| Recorded { session, exchanges: 0 }).collect();
    for round in 0..store.rounds(ROUNDS) {
        let mut settings = [&SETTINGS[..], &PATIENT].concat();
        let is_asked = round % 2 == 1;
        if is_asked {
            settings.push(&with_model);
        }
        let asked = model.requests();
        all = kill_in_the_midst(store, &settings, all, 1 + random.below(MOST_ACKNOWLEDGED), || {
            // The server dies during a call to the model.
            if is_asked {
                model.wait_for(asked + 1);
            }
        });
    }
    finish(store, &PATIENT);
    // A refusal is retried after a pause that doubles, so the model refuses in the last round only.
    model.set(Mood::Unwilling);
    let impatient = [&IMPATIENT[..], &[&with_model]].concat();
    let refused = [&SETTINGS[..], &impatient].concat();
    let asked = model.requests();
    all = kill_in_the_midst(store, &refused, all, MOST_ACKNOWLEDGED, || model.wait_for(asked + 1));
    finish(store, &impatient);
    let built: Vec<Built> = all.iter().map(|recorded| summaries_are_single(store, *recorded)).collect();
    assert!(built.iter().any(|one| one.chunks > 0), "the test has built no tree");
    assert!(built.iter().any(|one| one.rolling > 0), "the test has compacted nothing");
    assert!(built.iter().any(|one| one.fallbacks > 0), "rules have never taken the model's place in a tree");
    all.iter().for_each(|recorded| history_is_short(store, *recorded));
    let done = run(store, &["jobs", "list", "--all-users", "--limit", "100000", "--status", "done"], &[]);
    let compacted = |job: &Value| job["kind"] == "compact" && job["result"]["compacted"] == true;
    assert!(done["jobs"].as_array().unwrap().iter().any(compacted), "no job has compacted anything");
    store.assert_well();
}

/// Checks that the history of a session is not longer than its limit, and that it ends with the last turn.
fn history_is_short(store: &TestStore, recorded: Recorded) {
    if recorded.exchanges == 0 {
        return;
    }
    let output = store.command(&["context", &recorded.name(), "--user", "ada"]).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
    let context: Value = serde_json::from_slice(&output.stdout).unwrap();
    let history = context["recent_history"].as_array().unwrap();
    assert!(history.len() <= 8, "{} of {}", history.len(), recorded.name());
    let last = recorded.text(2 * recorded.exchanges - 1);
    assert!(history.last().unwrap().to_string().contains(&last), "{}", recorded.name());
}

/// Starts a server, lets the clients work, and kills it after `deadly` acknowledgements. `wait` may wait for more.
fn kill_in_the_midst(
    store: &TestStore,
    settings: &[&str],
    all: Vec<Recorded>,
    deadly: u64,
    wait: impl FnOnce(),
) -> Vec<Recorded> {
    let server = store.serve(settings);
    let (told, heard) = mpsc::channel();
    let clients: Vec<_> = all
        .into_iter()
        .map(|recorded| {
            let (client, told) = (server.client(), told.clone());
            thread::spawn(move || work_until_cut(recorded, client, &told))
        })
        .collect();
    drop(told);
    assert_eq!(heard.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
    wait();
    server.kill();
    clients.into_iter().map(|client| settle(store, client.join().unwrap())).collect()
}

/// Compares a session with what was acknowledged. The exchange that was under way is stored whole or not at all.
fn settle(store: &TestStore, recorded: Recorded) -> Recorded {
    let name = recorded.name();
    let show = ["sessions", "show", &name, "--limit", "100000", "--json", "--user", "ada"];
    let output = store.command(&show).output().unwrap();
    if !output.status.success() {
        assert_eq!(recorded.exchanges, 0, "{}", support::show(&output));
        return recorded;
    }
    let session: Value = serde_json::from_slice(&output.stdout).unwrap();
    let turns = session["turns"].as_array().unwrap();
    let stored = turns.len() as u64 / 2;
    assert!(
        turns.len().is_multiple_of(2) && (recorded.exchanges..=recorded.exchanges + 1).contains(&stored),
        "{name}"
    );
    for (number, turn) in turns.iter().enumerate() {
        assert_eq!(turn["content"], recorded.text(number as u64), "turn {number} of {name}");
    }
    Recorded { exchanges: stored, ..recorded }
}

fn run(store: &TestStore, args: &[&str], settings: &[&str]) -> Value {
    let mut command = store.command(args);
    let output = command
        .arg("--json")
        .args(SETTINGS.iter().chain(settings).flat_map(|setting| ["--setting", setting]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", support::show(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs jobs until none waits, except for windows' summaries that nobody has begun: a window rests for two minutes after each.
fn finish(store: &TestStore, settings: &[&str]) {
    let patience = Instant::now();
    loop {
        run(store, &["learn"], settings);
        let waiting = |status| {
            let jobs =
                run(store, &["jobs", "list", "--all-users", "--limit", "10000", "--status", status], &[]);
            jobs["jobs"].as_array().unwrap().clone()
        };
        let mut left = [waiting("queued"), waiting("leased")].concat();
        left.retain(|job| job["kind"] != "summarise" || job["attempts"] != 0);
        if left.is_empty() {
            return;
        }
        assert!(patience.elapsed() < Duration::from_secs(120), "jobs that never come to their end: {left:?}");
    }
}

/// The summaries of a session by their kinds.
#[derive(Debug, Default)]
struct Built {
    rolling: usize,
    /// The chunks of the tree.
    chunks: usize,
    /// The summaries of the tree that rules have made in a model's place.
    fallbacks: usize,
}

/// Checks that no summary of a session exists twice.
fn summaries_are_single(store: &TestStore, recorded: Recorded) -> Built {
    let shown = run(
        store,
        &["sessions", "show", &recorded.name(), "--summaries", "--limit", "100000", "--user", "ada"],
        &[],
    );
    let summaries = shown["summaries"].as_array().unwrap();
    let mut bases: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    let mut chunks: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut built = Built::default();
    for summary in summaries {
        assert_ne!(summary["status"], "processing", "nobody works on it any more: {summary}");
        let strategy = summary["strategy"].as_str().unwrap();
        if let Some(base) = summary["base_id"].as_str() {
            let other = bases.insert((strategy, base), summary);
            assert!(other.is_none(), "built on the same version: {summary} and {other:?}");
        }
        let is_tree = strategy == "tree";
        built.rolling += usize::from(strategy == "rolling");
        built.fallbacks += usize::from(is_tree && summary["structured"]["without_model"].is_string());
        if is_tree && summary["level"] == 1 {
            let seq = |field: &str| summary[field].as_u64().unwrap();
            chunks.insert((seq("start_seq"), seq("end_seq")));
            built.chunks += 1;
        }
    }
    assert_eq!(chunks.len(), built.chunks, "a chunk was summarised twice: {chunks:?}");
    let mut reached = 0;
    for (start, end) in &chunks {
        assert_eq!(*start, reached, "chunks overlap or leave a gap: {chunks:?}");
        reached = end + 1;
    }
    built
}
