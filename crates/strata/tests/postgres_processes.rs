//! Three processes on one database, 32 clients, deaths of processes and of PostgreSQL itself.
//!
//! The clients write to shared and to their own sessions, each request under a key until it is acknowledged. In each round one
//! process is killed with SIGKILL and started again, and in every second round, the first one included, PostgreSQL is stopped
//! without a checkpoint and started again, while the clients go on; each process then has to acknowledge a write before any of
//! them is restarted. At the end an acknowledged turn is there once, at its acknowledged place; sequences have no gaps and no
//! duplicates; and every job has come to its end.
//!
//! `STRATA_TEST_ROUNDS` asks for more rounds; `cargo xtask torture --only "several processes"` runs 20.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strata_postgres::test_server::{self, Database, Durability};
use support::{Client, Random, Server};

const PROCESSES: u64 = 3;
const CLIENTS: u64 = 32;
const ROUNDS: u64 = 4;
/// The number of acknowledgements after which a round's death comes.
const ACKNOWLEDGED_A_ROUND: u64 = 60;
const SEED: u64 = 20_261_117;

/// A job whose worker was killed is taken over after one second.
const SETTINGS: [&str; 5] = [
    "learn.lease_secs=1",
    "learn.retry_secs=1",
    "learn.delay_secs=0",
    "learn.max_attempts=100",
    "postgres.connections=12",
];

/// A turn that a process has acknowledged.
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord)]
struct Acknowledged {
    session: String,
    seq: u64,
    content: String,
}

/// What the clients share.
struct Shared {
    addresses: RwLock<Vec<String>>,
    acknowledged: Mutex<Vec<Acknowledged>>,
    /// The number of acknowledged requests.
    count: Mutex<u64>,
    counted: Condvar,
    /// Answers that are no acknowledgement, by status.
    refused: Mutex<BTreeMap<u16, u64>>,
    over: AtomicBool,
}

#[test]
fn nothing_acknowledged_is_lost_when_processes_and_the_database_die() {
    let rounds = std::env::var_os("STRATA_TEST_ROUNDS")
        .map_or(ROUNDS, |rounds| rounds.to_string_lossy().parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(test_server::Server::start(Durability::Durable).database());
    let folder = tempfile::tempdir().unwrap();
    let mut processes: Vec<Server> =
        (0..PROCESSES).map(|number| start(&database, folder.path(), number)).collect();
    let shared = Arc::new(Shared {
        addresses: RwLock::new(processes.iter().map(|server| server.address().to_owned()).collect()),
        acknowledged: Mutex::default(),
        count: Mutex::new(0),
        counted: Condvar::new(),
        refused: Mutex::default(),
        over: AtomicBool::new(false),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || write(&shared, client))
        })
        .collect();
    let mut random = Random(support::seed(SEED));
    for round in 0..rounds {
        wait_for(&shared, (round + 1) * ACKNOWLEDGED_A_ROUND);
        if round % 2 == 0 {
            database.server().stop_immediately();
            database.server().resume();
            assert_all_answer(&shared, round);
            wait_for(&shared, shared.count() + CLIENTS);
        }
        let victim = random.below(PROCESSES);
        let place = victim as usize;
        let dead = processes.remove(place);
        dead.kill();
        let server = start(&database, folder.path(), victim);
        shared.addresses.write().unwrap()[place] = server.address().to_owned();
        processes.insert(place, server);
    }
    wait_for(&shared, (rounds + 1) * ACKNOWLEDGED_A_ROUND);
    shared.over.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().unwrap());
    processes.iter_mut().for_each(Server::assert_running);
    assert_sessions_are_shared(&shared);
    let turns = verify(&mut processes[0].client(), &shared);
    finish_jobs(&database, &turns);
    drop(processes);
    let output = support::strata().args(["doctor", "--store", &database.address()]).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
}

fn start(database: &Database, folder: &Path, number: u64) -> Server {
    Server::start_on(&database.address(), &folder.join(format!("{number}.log")), &SETTINGS)
}

/// The longest time for anything that this test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

impl Shared {
    fn count(&self) -> u64 {
        *self.count.lock().unwrap()
    }
}

fn wait_for(shared: &Shared, count: u64) {
    let waiting = shared.count.lock().unwrap();
    let (_counted, waited) =
        shared.counted.wait_timeout_while(waiting, PATIENCE, |now| *now < count).unwrap();
    assert!(!waited.timed_out(), "the clients wait for ever: {:?}", shared.refused.lock().unwrap());
}

/// A request, which is repeated under its key until it is acknowledged.
struct Exchange {
    user: String,
    session: String,
    key: String,
}

impl Exchange {
    /// The next one of a client. Four clients share a session, and eight a user; one half of the clients have their own sessions.
    fn of(client: u64, number: u64) -> Self {
        let group = client / 2 % 4;
        let session =
            if client.is_multiple_of(2) { format!("shared{group}") } else { format!("own{client}") };
        Self { user: format!("user{group}"), session, key: format!("c{client}n{number}") }
    }

    fn contents(&self) -> [String; 2] {
        [format!("I like mark{} kites", self.key), format!("noted {}", self.key)]
    }

    /// Sends it to a process once, and returns whether it was acknowledged.
    fn send(&self, shared: &Shared, address: &str) -> bool {
        let contents = self.contents();
        let body = json!({
            "user_id": self.user, "session_id": self.session,
            "messages": [{ "role": "user", "content": contents[0] }, { "role": "assistant", "content": contents[1] }],
        });
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", self.key.as_str())];
        // The process is dead.
        let Ok(answer) = Client::new(address).send("POST", "/turns", &headers, body.to_string().as_bytes())
        else {
            thread::yield_now();
            return false;
        };
        if answer.status != 201 && answer.status != 200 {
            // PostgreSQL is away for longer than a request waits; the same process answers later.
            assert!(answer.status == 503 || answer.status == 504, "{} {}", answer.status, answer.text());
            *shared.refused.lock().unwrap().entry(answer.status).or_default() += 1;
            return false;
        }
        let turns = answer.json()["turns"].as_array().unwrap().clone();
        let session = format!("{}/{}", self.user, self.session);
        let acknowledged = |(turn, content): (&Value, String)| Acknowledged {
            session: session.clone(),
            seq: turn["seq"].as_u64().unwrap(),
            content,
        };
        let turns = turns.iter().zip(contents).map(acknowledged);
        shared.acknowledged.lock().unwrap().extend(turns);
        *shared.count.lock().unwrap() += 1;
        shared.counted.notify_all();
        true
    }
}

/// One client: its requests go to any process.
fn write(shared: &Shared, client: u64) {
    let mut random = Random(SEED ^ (client << 16));
    for number in 0u64.. {
        let exchange = Exchange::of(client, number);
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        let mut any = || shared.addresses.read().unwrap()[random.below(PROCESSES) as usize].clone();
        while !exchange.send(shared, &any()) {}
    }
}

/// Each process acknowledges a write after PostgreSQL has come back, without a restart.
fn assert_all_answer(shared: &Shared, round: u64) {
    let addresses = shared.addresses.read().unwrap().clone();
    for (place, address) in addresses.iter().enumerate() {
        let key = format!("w{place}n{round}");
        let exchange = Exchange { user: "user0".to_owned(), session: format!("watch{place}"), key };
        let began = Instant::now();
        while !exchange.send(shared, address) {
            assert!(began.elapsed() < PATIENCE, "process {place} does not recover");
        }
    }
}

/// Several clients have written to each shared session.
fn assert_sessions_are_shared(shared: &Shared) {
    let mut writers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for turn in shared.acknowledged.lock().unwrap().iter() {
        let client = turn.content.strip_prefix("noted ").and_then(|key| key.split_once('n'));
        let Some((client, _)) = client.filter(|_| turn.session.contains("/shared")) else { continue };
        writers.entry(turn.session.clone()).or_default().insert(client.to_owned());
    }
    assert_eq!(writers.len(), 4, "{writers:?}");
    assert!(writers.values().all(|clients| clients.len() > 1), "{writers:?}");
}

/// Every session has exactly the acknowledged turns and no others, each at its place, without gaps or duplicates. A request that
/// was repeated has one answer, so nothing unacknowledged is left when all clients have ended. Returns the turns of each session.
fn verify(client: &mut Client, shared: &Shared) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut told: BTreeMap<String, BTreeSet<Acknowledged>> = BTreeMap::new();
    for turn in shared.acknowledged.lock().unwrap().iter() {
        assert!(told.entry(turn.session.clone()).or_default().insert(turn.clone()), "told twice: {turn:?}");
    }
    for (session, told) in told {
        let (user, name) = session.split_once('/').unwrap();
        let mut stored = BTreeSet::new();
        loop {
            let after = stored.len().checked_sub(1).map(|seq| format!("&after={seq}")).unwrap_or_default();
            let path = format!("/sessions/{name}/turns?user_id={user}&limit=500{after}");
            let answer = client.get(&path).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let page = answer.json()["turns"].as_array().unwrap().clone();
            if page.is_empty() {
                break;
            }
            for turn in &page {
                let seq = turn["seq"].as_u64().unwrap();
                assert_eq!(seq, stored.len() as u64, "session `{session}` has a gap or a duplicate");
                let content = turn["content"].as_str().unwrap().to_owned();
                stored.insert(Acknowledged { session: session.clone(), seq, content });
            }
        }
        assert_eq!(stored, told, "session `{session}`");
        counts.insert(session, stored.len() as u64);
    }
    counts
}

/// All jobs come to their end, and each turn was learned from once, whichever process did it.
fn finish_jobs(database: &Database, turns: &BTreeMap<String, u64>) {
    let (mut progress, mut fewest) = (Instant::now(), usize::MAX);
    loop {
        let open = ["queued", "leased"].iter().map(|status| jobs(database, status).len()).sum::<usize>();
        if open == 0 {
            break;
        }
        if open < fewest {
            (progress, fewest) = (Instant::now(), open);
        }
        assert!(progress.elapsed() < PATIENCE, "{open} jobs never come to their end");
    }
    assert!(jobs(database, "dead").is_empty());
    let done = jobs(database, "done");
    for (session, count) in turns {
        let (user, name) = session.split_once('/').unwrap();
        let of_session =
            |job: &&Value| job["kind"] == "extract" && job["user_id"] == user && job["session_id"] == name;
        let mut ranges: Vec<(u64, u64)> = done
            .iter()
            .filter(of_session)
            .filter_map(|job| job["result"]["turns"].as_array())
            .map(|range| (range[0].as_u64().unwrap(), range[1].as_u64().unwrap()))
            .collect();
        ranges.sort_unstable();
        let mut reached = 0;
        for (from, to) in ranges {
            assert_eq!(from, reached, "turns of `{session}` were read twice or passed over");
            reached = to;
        }
        assert_eq!(reached, *count, "not all turns of `{session}` were read");
    }
}

fn jobs(database: &Database, status: &str) -> Vec<Value> {
    let address = database.address();
    let args = [
        "jobs",
        "list",
        "--all-users",
        "--limit",
        "10000",
        "--status",
        status,
        "--json",
        "--store",
        &address,
    ];
    let output = support::strata().args(args).output().unwrap();
    assert!(output.status.success(), "{}", support::show(&output));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    list["jobs"].as_array().unwrap().clone()
}
