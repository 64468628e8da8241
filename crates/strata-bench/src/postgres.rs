//! The PostgreSQL store beside the embedded one: durable appends with one and three processes, batches, recall of a user with
//! 10,000 turns in a small and a large database, bytes on disk, and connections.
//!
//! The server is a throw-away one on this machine with its default memory settings and `fsync` on. Each process is this program
//! again, with connections of its own.

pub(crate) mod process;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use strata_core::Store;
use strata_core::store::{Page, PartQuery};
use strata_core::summary::SummaryPart;
use strata_engine::recall::RecallRequest;
use strata_postgres::test_server::{Database, Durability, Server};
use strata_postgres::{PostgresOptions, PostgresStore};

use crate::corpus::{Corpus, Random};
use crate::fill::{self, MEASURED_TURNS};
use crate::report::{Report, Target, median, p99};
use crate::{Bench, append, cpu, engine, large};

const WRITERS: usize = 64;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let database = bench.runtime.block_on(Server::start(Durability::Durable).empty_database());
    measure_appends(bench, report, &database)?;
    measure_recall(bench, report)?;
    measure_points(bench, report)?;
    drop(database);
    Ok(())
}

/// The points of a user's sessions, as `cargo xtask bench large` asks for them over HTTP.
fn measure_points(bench: &Bench, report: &mut Report) -> Result<()> {
    let sessions = bench.size(100_000, 1_000);
    bench.runtime.block_on(async {
        let database = Server::start(Durability::None).empty_database().await;
        let store = open(&database).await?;
        large::summarise(&store, sessions).await?;
        for (name, part) in [
            ("todos, one a session", SummaryPart::Todos),
            ("decisions, in the ten oldest sessions", SummaryPart::Decisions),
            ("entities, in no session", SummaryPart::Entities),
        ] {
            let query = PartQuery { part, page: Page::first(100) };
            let mut times = Vec::new();
            for _ in 0..9 {
                let began = Instant::now();
                store.summaries_with(&fill::measured_user()?, &query).await?;
                times.push(began.elapsed().as_secs_f64() * 1_000.0);
            }
            let name = format!("{name}, of {sessions}");
            report.add(name, median(&mut times), "ms", Some(Target::AtMost(100.0)));
        }
        store.close().await?;
        Ok(())
    })
}

/// The users of the measured writers, in every store.
const MANY: &str = "64 writers, 8 users";

/// Durable appends: the embedded store first, then one and three processes on one database, and batches.
fn measure_appends(bench: &Bench, report: &mut Report, database: &Database) -> Result<()> {
    let (many, one) = (bench.size(30_000, 2_000), bench.size(3_000, 200));
    let path = bench.stores.fresh("postgres-append");
    let (embedded, embedded_one) = bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        let rate = append::rate(&[Arc::clone(&store)], WRITERS, many, 0).await?;
        let one = append::rate(&[Arc::clone(&store)], 1, one, 9).await?;
        store.close().await?;
        anyhow::Ok((rate, one))
    })?;
    report.add(format!("embedded store, {MANY}"), embedded, "turns/s", None);
    report.add("embedded store, 1 writer", embedded_one, "turns/s", None);
    // The first process makes the tables.
    bench.runtime.block_on(open(database))?;
    for (round, (processes, writers, turns)) in
        [(1, 1, one), (1, WRITERS, many), (3, WRITERS, many)].into_iter().enumerate()
    {
        let processes_run = process::run(database, processes, writers, turns, 1 + 10 * round as u64)?;
        let name = if writers == 1 { "1 writer" } else { MANY };
        report.add(format!("{processes} processes, {name}"), processes_run.rate, "turns/s", None);
        let held = processes_run.connections as f64;
        report.add(format!("{processes} processes, {name}: connections held"), held, "", None);
        let (strata, server) = (processes_run.strata_cpu, processes_run.server_cpu);
        report.add(
            format!("{processes} processes, {name}: processor time of Strata, a turn"),
            strata,
            "ms",
            None,
        );
        report.add(format!("{processes} processes, {name}: of PostgreSQL, a turn"), server, "ms", None);
        let beside = if writers == 1 { embedded_one } else { embedded };
        report.add(
            format!("{processes} processes, {name}: the embedded store is faster by"),
            beside / processes_run.rate,
            "x",
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
    let path = bench.runtime.block_on(bench.stores.of(sizes[0]))?;
    let mut embedded = bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        let times = ask(&store, questions, None).await?;
        store.close().await?;
        anyhow::Ok(times.recall)
    })?;
    report.add(format!("embedded store, recall in {}, median", sizes[0]), median(&mut embedded), "ms", None);
    report.add(format!("embedded store, recall in {}, p99", sizes[0]), p99(&mut embedded), "ms", None);
    for turns in sizes {
        let database = bench.runtime.block_on(Server::start(Durability::Durable).empty_database());
        let times = bench.runtime.block_on(recall(&database, turns, questions))?;
        let (Times { mut recall, mut search, cold, strata_cpu, server_cpu }, Filled { rate: filled, bytes }) =
            times;
        report.add(format!("batched inserts up to {turns} turns"), filled, "turns/s", None);
        report.add(format!("recall in {turns}, median"), median(&mut recall), "ms", None);
        report.add(format!("recall in {turns}, p99"), p99(&mut recall), "ms", None);
        report.add(format!("recall in {turns}, first of a process"), cold, "ms", None);
        report.add(format!("recall in {turns}, processor time of Strata"), strata_cpu, "ms", None);
        report.add(format!("recall in {turns}, processor time of PostgreSQL"), server_cpu, "ms", None);
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

/// The milliseconds of questions.
struct Times {
    recall: Vec<f64>,
    search: Vec<f64>,
    cold: f64,
    /// The processor time of a recall.
    strata_cpu: f64,
    server_cpu: f64,
}

/// How a database was filled: turns a second, and bytes a turn.
struct Filled {
    rate: f64,
    bytes: f64,
}

async fn recall(database: &Database, turns: usize, questions: usize) -> Result<(Times, Filled)> {
    eprintln!("  filling a database with {turns} turns");
    let store: Arc<dyn Store> = Arc::new(open(database).await?);
    let start = Instant::now();
    fill::fill(&store, MEASURED_TURNS.min(turns), turns).await?;
    let rate = turns as f64 / start.elapsed().as_secs_f64();
    engine::over(&store).maintenance.maintain_all().await?;
    database.client().await.batch_execute("VACUUM ANALYZE").await?;
    let bytes = store.check(strata_core::store::CheckDepth::Quick).await?.bytes as f64 / turns as f64;
    let times = ask(&store, questions, Some(database.server().process())).await?;
    store.close().await?;
    Ok((times, Filled { rate, bytes }))
}

/// Asks questions of the measured user: with recall, and with the store's own text index.
async fn ask(store: &Arc<dyn Store>, questions: usize, server: Option<u32>) -> Result<Times> {
    let engine = engine::over(store);
    let user = fill::measured_user()?;
    let corpus = Corpus::new();
    let mut random = Random::new(99);
    let texts: Vec<String> = (0..=questions).map(|_| corpus.question(&mut random)).collect();
    let mut times =
        Times { recall: Vec::new(), search: Vec::new(), cold: 0.0, strata_cpu: 0.0, server_cpu: 0.0 };
    let mut found = 0;
    let cpu = || -> Result<(f64, f64)> { Ok((cpu::own()?, server.map_or(Ok(0.0), cpu::of_family)?)) };
    let mut before = cpu()?;
    for (question, text) in texts.iter().enumerate() {
        let start = Instant::now();
        let recalled = engine.recall.ask(&user, &RecallRequest::new(text.clone())).await?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        found += recalled.items.len();
        if question == 0 {
            times.cold = took;
            before = cpu()?;
        } else {
            times.recall.push(took);
        }
    }
    let after = cpu()?;
    let a_recall = 1000.0 / questions as f64;
    times.strata_cpu = (after.0 - before.0) * a_recall;
    times.server_cpu = (after.1 - before.1) * a_recall;
    for text in &texts {
        times.search.push(crate::search::ask(store, text).await?.0);
    }
    ensure!(found > questions, "the questions find too little ({found} items) to measure anything");
    Ok(times)
}
