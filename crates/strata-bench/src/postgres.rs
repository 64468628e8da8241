//! The PostgreSQL store beside the embedded one: durable appends with one and three pools, batches, recall of a user with 10,000
//! turns in a small and a large database, bytes on disk, and connections.
//!
//! The server is a throw-away one on this machine with its default memory settings and `fsync` on. Several processes are
//! measured as several stores in this process, each with connections of its own.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use strata_core::Store;
use strata_engine::recall::RecallRequest;
use strata_postgres::test_server::{Database, Durability, Server};
use strata_postgres::{PostgresOptions, PostgresStore};

use crate::corpus::{Corpus, Random};
use crate::fill::{self, MEASURED_TURNS};
use crate::report::{Report, Target, median, p99};
use crate::{Bench, append, engine};

const WRITERS: usize = 64;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let database = bench.runtime.block_on(Server::start(Durability::Durable).empty_database());
    measure_appends(bench, report, &database)?;
    measure_recall(bench, report)?;
    drop(database);
    Ok(())
}

/// Durable appends: the embedded store first, then one and three pools on one database.
fn measure_appends(bench: &Bench, report: &mut Report, database: &Database) -> Result<()> {
    let (many, one) = (bench.size(30_000, 1_000), bench.size(3_000, 200));
    let path = bench.stores.fresh("postgres-append");
    let rate = bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        append::rate(&[store], WRITERS, many, 0).await
    })?;
    report.add(format!("embedded store, {WRITERS} writers"), rate, "turns/s", None);
    let runs = [(1, 1, one), (1, WRITERS, many), (3, WRITERS, many)];
    for (round, (pools, writers, turns)) in runs.into_iter().enumerate() {
        let (rate, connections) = bench.runtime.block_on(async {
            let mut stores: Vec<Arc<dyn Store>> = Vec::new();
            let mut held = Vec::new();
            for _ in 0..pools {
                let store = Arc::new(open(database).await?);
                held.push(Arc::clone(&store));
                stores.push(store);
            }
            let rate = append::rate(&stores, writers, turns, 1 + round as u64).await?;
            let connections: usize = held.iter().map(|store| store.connections()).sum();
            for store in &stores {
                store.close().await?;
            }
            anyhow::Ok((rate, connections))
        })?;
        report.add(format!("{pools} processes, {writers} writers"), rate, "turns/s", None);
        report.add(
            format!("{pools} processes, {writers} writers: connections"),
            connections as f64,
            "",
            None,
        );
    }
    Ok(())
}

/// Opens the database as the binary does.
async fn open(database: &Database) -> Result<PostgresStore> {
    let options = PostgresOptions { partitions: PostgresOptions::PARTITIONS, ..database.options() };
    Ok(PostgresStore::open(PostgresOptions { connections: PostgresOptions::CONNECTIONS, ..options }).await?)
}

/// Recall and full-text search of one user in a small and a large database, on a server of their own each.
fn measure_recall(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let sizes = [bench.size(100_000, 11_000), bench.size(1_000_000, 20_000)];
    let questions = bench.size(300, 20);
    let mut medians = Vec::new();
    for turns in sizes {
        let database = bench.runtime.block_on(Server::start(Durability::Durable).empty_database());
        let times = bench.runtime.block_on(recall(&database, turns, questions))?;
        let Times { mut recall, mut search, cold, filled, bytes } = times;
        report.add(format!("batched inserts up to {turns} turns"), filled, "turns/s", None);
        report.add(format!("recall in {turns}, median"), median(&mut recall), "ms", None);
        report.add(format!("recall in {turns}, p99"), p99(&mut recall), "ms", None);
        report.add(format!("recall in {turns}, first of a process"), cold, "ms", None);
        report.add(format!("store's own search in {turns}, median"), median(&mut search), "ms", None);
        report.add(format!("store's own search in {turns}, p99"), p99(&mut search), "ms", None);
        report.add(format!("on disk with {turns}, a turn"), bytes, "bytes", None);
        medians.push(median(&mut recall));
    }
    let user = format!("{MEASURED_TURNS} turns of a user");
    let ratio = medians[1] / medians[0];
    report.add(
        format!("recall, {user}: {} against {}", sizes[1], sizes[0]),
        ratio,
        "x",
        Some(Target::AtMost(1.5)),
    );
    Ok(())
}

struct Times {
    recall: Vec<f64>,
    search: Vec<f64>,
    cold: f64,
    filled: f64,
    bytes: f64,
}

async fn recall(database: &Database, turns: usize, questions: usize) -> Result<Times> {
    eprintln!("  filling a database with {turns} turns");
    let store: Arc<dyn Store> = Arc::new(open(database).await?);
    let start = Instant::now();
    fill::fill(&store, MEASURED_TURNS.min(turns), turns).await?;
    let filled = turns as f64 / start.elapsed().as_secs_f64();
    database.client().await.batch_execute("VACUUM ANALYZE").await?;
    let bytes = store.check(strata_core::store::CheckDepth::Quick).await?.bytes as f64 / turns as f64;
    let engine = engine::over(&store);
    let user = fill::measured_user()?;
    let corpus = Corpus::new();
    let mut random = Random::new(99);
    let mut times = Times { recall: Vec::new(), search: Vec::new(), cold: 0.0, filled, bytes };
    let mut found = 0;
    for question in 0..=questions {
        let text = corpus.question(&mut random);
        let start = Instant::now();
        let recalled = engine.recall.ask(&user, &RecallRequest::new(text.clone())).await?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        found += recalled.items.len();
        if question == 0 {
            times.cold = took;
            continue;
        }
        times.recall.push(took);
        times.search.push(crate::search::ask(&store, &text).await?.0);
    }
    ensure!(found > questions, "the questions find too little ({found} items) to measure anything");
    store.close().await?;
    Ok(times)
}
