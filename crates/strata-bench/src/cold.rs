//! Small recalls while large users load: one cold user must not stall the others.
//!
//! The store is filled over HTTP by the binary that is measured, so that an older binary can be measured with the same program.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::report::{Report, median, p99};
use crate::server::{Client, Served};

const COLD_USERS: usize = 10;
const SMALL_TURNS: usize = 100;
const ROUNDS: usize = 3;
const EMBEDDER: &str = "words";

/// How long the worker may take to write all segments after the store was filled.
const SETTLING: Duration = Duration::from_secs(20);

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = bench.stores.fresh("cold-users");
    let turns = bench.size(10_000, 1_000);
    fill(bench, &store, turns)?;
    let mut rounds = (0..ROUNDS).map(|_| round(bench, &store)).collect::<Result<Vec<_>>>()?;
    rounds.sort_by(|a, b| median(&mut a.beside.clone()).total_cmp(&median(&mut b.beside.clone())));
    let Round { mut alone, mut beside, elapsed } = rounds.swap_remove(0);
    let users = format!("{COLD_USERS} cold users of {turns} load");
    report.add("a user of 100 items, median", median(&mut alone), "ms", None);
    report.add(format!("the same while {users}, median"), median(&mut beside), "ms", None);
    report.add(format!("the same while {users}, p99"), p99(&mut beside), "ms", None);
    report.add(format!("time until {COLD_USERS} cold users are answered"), elapsed, "ms", None);
    Ok(())
}

/// The milliseconds of small recalls, alone and beside cold users, and how long these took.
struct Round {
    alone: Vec<f64>,
    beside: Vec<f64>,
    elapsed: f64,
}

fn round(bench: &Bench, store: &Path) -> Result<Round> {
    let served = Served::start(&bench.binary, store, EMBEDDER)?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let question = "what did we say about the garden 花园";
    let mut ask = |times: &mut Vec<f64>| -> Result<()> {
        times.push(client.search("small", question)?.0);
        Ok(())
    };
    let mut alone = Vec::new();
    for _ in 0..200 {
        ask(&mut alone)?;
    }
    let alone = alone.split_off(100);
    let mut connected = (0..COLD_USERS).map(|_| served.connect()).collect::<Result<Vec<_>>>()?;
    let (waiting, start) = (AtomicUsize::new(COLD_USERS), Instant::now());
    let mut beside = Vec::new();
    let load = |number: usize, client: &mut Client| -> Result<f64> {
        let answered = client.search(&format!("cold-{number}"), question);
        waiting.fetch_sub(1, Ordering::SeqCst);
        answered.map(|_| start.elapsed().as_secs_f64() * 1000.0)
    };
    std::thread::scope(|scope| {
        let load = &load;
        let clients = connected.iter_mut().enumerate();
        let loading: Vec<_> =
            clients.map(|(number, client)| scope.spawn(move || load(number, client))).collect();
        while waiting.load(Ordering::SeqCst) > 0 {
            ask(&mut beside)?;
        }
        let mut elapsed: f64 = 0.0;
        for one in loading {
            elapsed = elapsed.max(one.join().map_err(|_| anyhow!("a client died"))??);
        }
        Ok(Round { alone, beside, elapsed })
    })
}

fn fill(bench: &Bench, store: &Path, turns: usize) -> Result<()> {
    eprintln!("  filling a store with {COLD_USERS} users of {turns} turns");
    let served = Served::start(&bench.binary, store, EMBEDDER)?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let (corpus, mut random) = (Corpus::new(), Random::new(11));
    for number in 0..COLD_USERS {
        record(&mut client, &corpus, &mut random, &format!("cold-{number}"), turns)?;
    }
    record(&mut client, &corpus, &mut random, "small", SMALL_TURNS)?;
    std::thread::sleep(if bench.quick { SETTLING / 10 } else { SETTLING });
    Ok(())
}

fn record(client: &mut Client, corpus: &Corpus, random: &mut Random, user: &str, turns: usize) -> Result<()> {
    for session in 0..turns / 100 {
        let message = |_| json!({ "role": "user", "content": corpus.turn(random) });
        let messages: Vec<Value> = (0..100).map(message).collect();
        let body = json!({ "user_id": user, "session_id": format!("s{session}"), "messages": messages });
        client.post("/turns", &body)?;
    }
    Ok(())
}
