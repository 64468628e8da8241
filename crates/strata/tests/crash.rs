//! `kill -9` at any moment loses no acknowledged turn: the real binary on a store of each kind, eight clients over HTTP, twenty
//! deaths on SQLite and fewer on the others.
//!
//! After each death the same store is served again and read completely. An acknowledged turn must be there once, at its
//! acknowledged place. A turn that was not acknowledged may be there, once. Sequences have no gaps and no duplicates. A search
//! finds the newest turns at once, although they may be missing in the text index.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use support::{Client, Random, Server, TestStore, on_each_store};

const ROUNDS: u64 = 20;
const CLIENTS: u64 = 8;
/// The maximum number of acknowledgements before a death. Some rounds die within their first commits, some after hundreds.
const MOST_ACKNOWLEDGED: u64 = 300;
const SEED: u64 = 20_261_115;

/// A request that is repeated under its key until it is acknowledged.
#[derive(Clone)]
struct Request {
    key: String,
    session: String,
    contents: Vec<String>,
}

/// A turn that the server has acknowledged.
#[derive(Debug, Clone, PartialEq)]
struct Acknowledged {
    session: String,
    seq: u64,
    id: String,
    content: String,
}

/// The clients' knowledge over all rounds.
#[derive(Default)]
struct Known {
    acknowledged: Vec<Acknowledged>,
    sent: BTreeSet<String>,
    /// The request that each client was waiting for when the server died.
    pending: BTreeMap<u64, Request>,
}

on_each_store!(no_acknowledged_turn_is_lost_when_the_server_is_killed, run);

fn run(store: &TestStore) {
    let mut random = Random(support::seed(SEED));
    let mut known = Known::default();
    let rounds = store.rounds(ROUNDS);
    for round in 0..rounds {
        let server = store.serve(&[]);
        verify(&server, &known, round);
        let deadly = 1 + random.below(MOST_ACKNOWLEDGED);
        run_until_killed(server, &mut known, round, deadly);
    }
    let server = store.serve(&[]);
    verify(&server, &known, rounds);
    search_for_all(&server, &known);
    server.kill();
    store.assert_well();
    assert!(
        known.acknowledged.len() as u64 > rounds * 10 || rounds < ROUNDS,
        "{} turns prove little",
        known.acknowledged.len()
    );
}

/// Lets the clients append until `deadly` requests are acknowledged, and kills the server while they continue.
fn run_until_killed(server: Server, known: &mut Known, round: u64, deadly: u64) {
    let (acknowledge, acknowledgements) = mpsc::channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (connection, acknowledge) = (server.client(), acknowledge.clone());
            let pending = known.pending.remove(&client);
            thread::spawn(move || append_until_cut(connection, &acknowledge, round, client, pending))
        })
        .collect();
    drop(acknowledge);
    let counted = acknowledgements.iter().take(deadly as usize).count() as u64;
    assert_eq!(counted, deadly, "the clients stopped before the server was killed:\n{}", server.log());
    server.kill();
    for (client, joined) in clients.into_iter().enumerate() {
        let Outcome { acknowledged, sent, pending } = joined.join().unwrap();
        known.acknowledged.extend(acknowledged);
        known.sent.extend(sent);
        known.pending.insert(client as u64, pending);
    }
}

/// The work of one client in one round.
struct Outcome {
    acknowledged: Vec<Acknowledged>,
    sent: Vec<String>,
    pending: Request,
}

fn append_until_cut(
    mut connection: Client,
    acknowledge: &mpsc::Sender<()>,
    round: u64,
    client: u64,
    mut pending: Option<Request>,
) -> Outcome {
    let mut random = Random(support::seed(SEED) ^ (round << 8) ^ client);
    let (mut acknowledged, mut sent) = (Vec::new(), Vec::new());
    for number in 0u64.. {
        let request = pending.take().unwrap_or_else(|| new_request(&mut random, round, client, number));
        sent.extend(request.contents.iter().cloned());
        match send(&mut connection, &request) {
            Ok(turns) => acknowledged.extend(turns),
            // The server is dead, and it is unknown whether it stored this request.
            Err(_) => return Outcome { acknowledged, sent, pending: request },
        }
        let _ = acknowledge.send(());
    }
    unreachable!("a client goes on until the server is killed")
}

/// One to three turns. Two clients share a session, so that its sequence is contended.
fn new_request(random: &mut Random, round: u64, client: u64, number: u64) -> Request {
    let key = format!("r{round}c{client}n{number}");
    let turns = 1 + random.below(3);
    let contents =
        (0..turns).map(|turn| format!("the kite flew over mark{key}t{turn} and 西湖 again")).collect();
    Request { session: format!("user:agent:{}", client / 2), key, contents }
}

fn send(connection: &mut Client, request: &Request) -> std::io::Result<Vec<Acknowledged>> {
    let messages: Vec<Value> =
        request.contents.iter().map(|content| json!({ "role": "user", "content": content })).collect();
    let body = json!({ "user_id": "ada", "session_id": request.session, "messages": messages }).to_string();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", request.key.as_str())];
    let answer = connection.send("POST", "/turns", &headers, body.as_bytes())?;
    assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.text());
    let turns = answer.json()["turns"].as_array().expect("the answer lists turns").clone();
    assert_eq!(turns.len(), request.contents.len());
    let place = |turn: &Value, content: &String| Acknowledged {
        session: request.session.clone(),
        seq: turn["seq"].as_u64().expect("a turn has a seq"),
        id: turn["id"].as_str().expect("a turn has an id").to_owned(),
        content: content.clone(),
    };
    Ok(turns.iter().zip(&request.contents).map(|(turn, content)| place(turn, content)).collect())
}

/// Reads all data and compares it with the clients' knowledge.
fn verify(server: &Server, known: &Known, round: u64) {
    let mut client = server.client();
    let mut stored: BTreeMap<(String, u64), Acknowledged> = BTreeMap::new();
    let mut contents = BTreeSet::new();
    let sessions: BTreeSet<&String> = known.acknowledged.iter().map(|turn| &turn.session).collect();
    for session in sessions {
        for (place, turn) in read_session(&mut client, session).into_iter().enumerate() {
            assert_eq!(turn.seq, place as u64, "round {round}: session `{session}` has a gap or a double");
            assert!(contents.insert(turn.content.clone()), "round {round}: stored twice: {turn:?}");
            assert!(known.sent.contains(&turn.content), "round {round}: nobody sent {turn:?}");
            stored.insert((turn.session.clone(), turn.seq), turn);
        }
    }
    for turn in &known.acknowledged {
        let found = stored.get(&(turn.session.clone(), turn.seq));
        assert_eq!(found, Some(turn), "round {round}: an acknowledged turn is lost or moved");
    }
    for turn in known.acknowledged.iter().rev().take(10) {
        assert_found(&mut client, turn, round);
    }
}

fn read_session(client: &mut Client, session: &str) -> Vec<Acknowledged> {
    let path = format!("/sessions/{}/turns?user_id=ada&limit=500", session.replace(':', "%3A"));
    let mut turns: Vec<Acknowledged> = Vec::new();
    loop {
        let after = turns.last().map(|turn| format!("&after={}", turn.seq)).unwrap_or_default();
        let answer = client.get(&(path.clone() + &after)).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.json()["turns"].as_array().unwrap().clone();
        if page.is_empty() {
            return turns;
        }
        turns.extend(page.iter().map(|turn| Acknowledged {
            session: session.to_owned(),
            seq: turn["seq"].as_u64().unwrap(),
            id: turn["id"].as_str().unwrap().to_owned(),
            content: turn["content"].as_str().unwrap().to_owned(),
        }));
    }
}

fn assert_found(client: &mut Client, turn: &Acknowledged, round: u64) {
    let mark = turn.content.split(' ').find(|word| word.starts_with("mark")).unwrap();
    let answer = client.post("/search", &json!({ "query": mark, "user_id": "ada", "top_k": 1 })).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let results = answer.json()["results"].clone();
    assert_eq!(
        results[0]["memory"],
        json!(turn.content),
        "round {round}: search for `{mark}` gives {results}"
    );
}

fn search_for_all(server: &Server, known: &Known) {
    let mut client = server.client();
    known.acknowledged.iter().for_each(|turn| assert_found(&mut client, turn, ROUNDS));
}
