//! `kill -9` under writes of every kind: the real binary on a store of each kind, six clients over HTTP.
//!
//! [`memories`] has clients of one user, each with a memory and a session of its own; [`person`] has clients that are users of
//! their own and come through the other doors. [`jobs`] puts jobs back into the queue, and [`commands`] kills commands instead of a server. So each client knows what must be stored: all that was acknowledged, in its
//! order, and at most the one write that was under way when the server died. A write that is stored twice shows in the history,
//! or in the list. [`routes`] sees to it that no route that writes is left out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod commands;
mod jobs;
mod memories;
mod person;
mod routes;
#[path = "../support/mod.rs"]
mod support;

use std::sync::mpsc;
use std::thread;

use memories::Written;
use person::Person;
use serde_json::Value;
use support::{Client, Random, TestStore, on_each_store};

const ROUNDS: u64 = 4;
const CLIENTS: u64 = 6;
/// The most acknowledgements before a death.
const MOST_ACKNOWLEDGED: u64 = 120;
const SEED: u64 = 20_261_118;

on_each_store!(every_kind_of_write_survives_kills, run::<Written>);
on_each_store!(writes_through_the_other_doors_survive_kills, run::<Person>);

/// What one client has written, and what it expects to be stored.
trait Ledger: Clone + std::fmt::Debug + Send + 'static {
    type Write: Copy + std::fmt::Debug + Send;

    fn of(client: u64) -> Self;

    fn client(&self) -> u64;

    /// Whether a client that gets no answer sends this write again. It may have been done in part.
    fn is_repeated(_write: Self::Write) -> bool {
        false
    }

    /// The next write: any that fits what is stored.
    fn next(&mut self, random: &mut Random) -> Self::Write;

    /// Sends a write. The error is that of a connection that was cut.
    fn send(&self, write: Self::Write, client: &mut Client) -> std::io::Result<Value>;

    /// What is stored once a write has succeeded. Only the answer tells the id of a new item.
    fn after(&self, write: Self::Write, answer: Option<&Value>) -> Self;

    /// The differences between this and what is stored; empty if there are none.
    fn differences(&self, client: &mut Client) -> String;
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
    if L::is_repeated(pending) {
        let answer = written.send(pending, client).unwrap();
        let done = written.after(pending, Some(&answer));
        assert_eq!(done.differences(client), "", "round {round}: {pending:?} of {written:?}, sent again");
        return done;
    }
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

fn run<L: Ledger>(store: &TestStore) {
    let mut random = Random(support::seed(SEED));
    let mut all: Vec<L> = (0..CLIENTS).map(L::of).collect();
    for round in 0..store.rounds(ROUNDS) {
        all = kill_in_the_midst(store, all, round, 1 + random.below(MOST_ACKNOWLEDGED));
    }
    store.assert_well();
}

/// Lets the clients write until `deadly` writes are acknowledged, kills the server and compares what is stored.
fn kill_in_the_midst<L: Ledger>(store: &TestStore, all: Vec<L>, round: u64, deadly: u64) -> Vec<L> {
    let server = store.serve(&[]);
    let (told, heard) = mpsc::channel();
    let clients: Vec<_> = all
        .into_iter()
        .map(|written| {
            let (client, told) = (server.client(), told.clone());
            thread::spawn(move || write_until_cut(written, client, round, &told))
        })
        .collect();
    drop(told);
    assert_eq!(heard.iter().take(deadly as usize).count() as u64, deadly, "{}", server.log());
    server.kill();
    let server = store.serve(&[]);
    let mut client = server.client();
    let cut = clients.into_iter().map(|client| client.join().unwrap());
    cut.map(|(written, pending)| settle(&mut client, &written, pending, round)).collect()
}
