//! `kill -9` while Strata learns: the real binary on a store of each kind, three users over HTTP, twenty deaths on SQLite and fewer
//! on the others, alternately with the rules and during a call to a model.
//!
//! At the end, every job has finished. Strata has learned from each turn exactly once: the ranges that the jobs report cover each
//! session without a gap or an overlap. No memory exists twice and none is lost. Every replaced memory leads to its replacement,
//! and every summary to the summary that it was built on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use support::model::{Model, Mood};
use support::{Random, Server, TestStore, made_up_word, on_each_store};

const ROUNDS: u64 = 20;
const USERS: u64 = 3;
const SEED: u64 = 20_261_116;

/// A job whose worker was killed is taken over after one second. It may be retried as often as this test kills.
const SETTINGS: [&str; 4] =
    ["learn.lease_secs=1", "learn.retry_secs=1", "learn.delay_secs=0", "learn.max_attempts=100"];

/// As in [`SETTINGS`].
const LEASE: Duration = Duration::from_secs(1);

on_each_store!(every_job_comes_to_its_end_when_the_server_is_killed, learn_and_die);

fn learn_and_die(store: &TestStore) {
    let model = Model::start();
    let with_model = model.setting();
    let mut random = Random(support::seed(SEED));
    let mut said = 0;
    for round in 0..store.rounds(ROUNDS) {
        let mut settings = SETTINGS.to_vec();
        // Whether the server dies during a call to the model, or at any moment.
        let is_asked = round % 2 == 1;
        if is_asked {
            settings.push(&with_model);
            model.set(Mood::Silent);
        }
        let asked_before = model.requests();
        let server = store.serve(&settings);
        let exchanges = 1 + random.below(12);
        for _ in 0..exchanges {
            speak(&server, random.below(USERS), said);
            said += 1;
        }
        if is_asked {
            model.wait_for(asked_before + 1);
        }
        server.kill();
        model.set(Mood::Helpful);
    }
    let server = store.serve(&SETTINGS);
    await_no_ended_lease(&server);
    server.kill();
    finish(store);
    for user in 0..USERS {
        verify(store, &format!("user{user}"));
    }
    store.assert_well();
}

/// One exchange: a preference, or a new home.
fn speak(server: &Server, user: u64, number: u64) {
    let content = match number % 4 {
        3 => format!("I live in {}", made_up_word("Ma", number)),
        _ => format!("I like {}", made_up_word("za", number)),
    };
    let body = json!({
        "user_id": format!("user{user}"), "session_id": "talk",
        "messages": [{ "role": "user", "content": content }, { "role": "assistant", "content": "I see." }],
    });
    let answer = server.client().post("/turns", &body).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn run(store: &TestStore, args: &[&str]) -> Value {
    let mut command = store.command(args);
    let output = command
        .arg("--json")
        .args(SETTINGS.iter().flat_map(|setting| ["--setting", setting]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", support::show(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().unwrap()
}

/// The ends of the leases under which jobs are held.
fn lease_ends(server: &Server) -> Vec<Timestamp> {
    let listed = |user| format!("/jobs?status=leased&limit=1000&user_id=user{user}");
    let listed = (0..USERS).map(|user| server.client().get(&listed(user)).unwrap().json());
    let ends = listed.flat_map(|jobs| {
        list(&jobs, "jobs")
            .iter()
            .map(|job| job["leased_until"].as_str().unwrap().parse().unwrap())
            .collect::<Vec<_>>()
    });
    ends.collect()
}

/// Waits until the server has taken over, or ended, each job that a killed one has held. No lease reaches further than its setting.
#[allow(clippy::disallowed_methods, reason = "the server's leases are of the wall clock")]
fn await_no_ended_lease(server: &Server) {
    let (patience, held) = (Instant::now(), lease_ends(server));
    loop {
        let ends = lease_ends(server);
        let now = Timestamp::now();
        assert!(ends.iter().all(|end| *end <= now + LEASE), "{ends:?} at {now}");
        if !ends.iter().any(|end| held.contains(end)) {
            return;
        }
        assert!(patience.elapsed() < Duration::from_secs(120), "held past their leases: {ends:?} at {now}");
    }
}

/// Runs jobs until none waits. The jobs of a killed server are free after one second.
fn finish(store: &TestStore) {
    let patience = Instant::now();
    loop {
        run(store, &["learn"]);
        let waiting = |status| {
            let jobs = run(store, &["jobs", "list", "--all-users", "--limit", "10000", "--status", status]);
            list(&jobs, "jobs").len()
        };
        if waiting("queued") + waiting("leased") == 0 {
            return;
        }
        assert!(patience.elapsed() < Duration::from_secs(120), "some jobs never come to their end");
    }
}

fn verify(store: &TestStore, user: &str) {
    let session = run(store, &["sessions", "show", "talk", "--limit", "100000", "--user", user]);
    let turns = list(&session, "turns");
    let jobs = run(store, &["jobs", "list", "--limit", "100000", "--user", user]);
    read_once(list(&jobs, "jobs"), "extract", turns.len() as u64);
    // Without a reader, no sentence is judged for the state.
    if list(&jobs, "jobs").iter().any(|job| job["kind"] == "state") {
        read_once(list(&jobs, "jobs"), "state", turns.len() as u64);
    }

    let memories = run(store, &["memories", "list", "--all", "--limit", "100000", "--user", user]);
    let memories = list(&memories, "results");
    let texts: Vec<&str> = memories.iter().map(|memory| memory["memory"].as_str().unwrap()).collect();
    let mut homes = Vec::new();
    for turn in turns.iter().filter(|turn| turn["role"] == "user") {
        let word = turn["content"].as_str().unwrap().rsplit(' ').next().unwrap();
        let said: Vec<&&str> = texts.iter().filter(|text| text.contains(word)).collect();
        assert_eq!(said.len(), 1, "{user}: `{word}` should be remembered once: {said:?}");
        if word.starts_with("Ma") {
            homes.push(word);
        }
    }
    let current = |memory: &&Value| memory["valid_to"].is_null() && memory["hidden"].is_null();
    let at_home: Vec<&str> = memories
        .iter()
        .filter(current)
        .map(|memory| memory["memory"].as_str().unwrap())
        .filter(|text| text.contains(" Ma"))
        .collect();
    assert_eq!(at_home.len(), homes.len().min(1), "{user} lives in one place: {at_home:?}");
    assert!(
        at_home.iter().zip(homes.last()).all(|(text, home)| text.contains(home)),
        "{at_home:?} {homes:?}"
    );
    chains_are_whole(memories);
    summaries_are_whole(store, user);
}

/// Checks that the jobs of a kind have read each turn of the session once.
fn read_once(jobs: &[Value], kind: &str, turn_count: u64) {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for job in jobs {
        assert_eq!(job["status"], "done", "{job}");
        if let Some(range) = job["result"]["turns"].as_array().filter(|_| job["kind"] == kind) {
            ranges.push((range[0].as_u64().unwrap(), range[1].as_u64().unwrap()));
        }
    }
    ranges.sort_unstable();
    let mut reached = 0;
    for (from, to) in ranges {
        assert_eq!(from, reached, "turns were read twice or passed over");
        reached = to;
    }
    assert_eq!(reached, turn_count, "not all turns were read");
}

/// Checks that every replaced memory leads to a current one.
fn chains_are_whole(memories: &[Value]) {
    let by_id: BTreeMap<&str, &Value> =
        memories.iter().map(|memory| (memory["id"].as_str().unwrap(), memory)).collect();
    assert_eq!(by_id.len(), memories.len());
    for memory in memories {
        let mut seen = BTreeSet::new();
        let mut at = memory;
        while let Some(next) = at["replaced_by"].as_str() {
            assert!(at["valid_to"].is_string(), "replaced and still believed: {at}");
            assert!(seen.insert(next), "the chain goes round: {memory}");
            at = by_id.get(next).unwrap_or_else(|| panic!("`{next}` is gone, which replaced {at}"));
        }
        assert!(at["valid_to"].is_null(), "ended, and nothing took its place: {at}");
    }
}

fn summaries_are_whole(store: &TestStore, user: &str) {
    let session = run(store, &["sessions", "show", "talk", "--summaries", "--user", user]);
    let summaries = list(&session, "summaries");
    let ids: BTreeSet<&str> = summaries.iter().map(|summary| summary["id"].as_str().unwrap()).collect();
    for summary in summaries {
        assert_ne!(summary["status"], "processing", "nobody works on it any more: {summary}");
        if let Some(base) = summary["base_id"].as_str() {
            assert!(ids.contains(base), "`{base}` is gone, on which this was built: {summary}");
        }
    }
}
