//! The PostgreSQL store beside the embedded one, in turn: durable appends with one and three processes, batches, recall of a user
//! with 10,000 turns in a small and a large store, bytes on disk, and connections.
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

use process::{Load, Users};

use crate::corpus::{Corpus, Random};
use crate::fill::{self, MEASURED_TURNS};
use crate::report::{Report, Target, median, p99};
use crate::{Bench, append, cpu, engine, large};

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

/// Durable appends with one and three processes on one database, each beside the embedded store, which is measured just before.
fn measure_appends(bench: &Bench, report: &mut Report, database: &Database) -> Result<()> {
    let (many, few) = (bench.size(30_000, 2_000), bench.size(3_000, 200));
    // The first process makes the tables.
    bench.runtime.block_on(open(database))?;
    let cases = [
        ("1 process, 1 writer", Load { processes: 1, writers: 1, turns: few, users: Users::Same }),
        (
            "1 process, 64 writers, 8 users",
            Load { processes: 1, writers: 64, turns: many, users: Users::Same },
        ),
        (
            "3 processes, 64 writers, the same 8 users",
            Load { processes: 3, writers: 64, turns: many, users: Users::Same },
        ),
        (
            "3 processes, 64 writers, 8 users each",
            Load { processes: 3, writers: 64, turns: many, users: Users::Own },
        ),
    ];
    for (case, (name, load)) in cases.into_iter().enumerate() {
        let embedded = append_embedded(bench, load, case)?;
        report.add(format!("embedded store, {name}"), embedded, "turns/s", None);
        let run = process::run(database, load, 1 + 10 * case as u64)?;
        report.add(name, run.rate, "turns/s", None);
        report.add(format!("{name}: the embedded store is faster by"), embedded / run.rate, "x", None);
        report.add(format!("{name}: connections held"), run.connections as f64, "", None);
        report.add(format!("{name}: processor time of Strata, a turn"), run.strata_cpu, "ms", None);
        report.add(format!("{name}: processor time of PostgreSQL, a turn"), run.server_cpu, "ms", None);
    }
    Ok(())
}

/// The turns a second of as many writers on a new embedded store.
fn append_embedded(bench: &Bench, load: Load, case: usize) -> Result<f64> {
    let path = bench.stores.fresh(&format!("postgres-append-{case}"));
    bench.runtime.block_on(async {
        let store = fill::open(&path).await?;
        let rate = append::rate(&[Arc::clone(&store)], load.writers, load.turns, 0).await?;
        store.close().await?;
        Ok(rate)
    })
}

/// Opens the database as the binary does.
async fn open(database: &Database) -> Result<PostgresStore> {
    let options = PostgresOptions { partitions: PostgresOptions::PARTITIONS, ..database.options() };
    Ok(PostgresStore::open(PostgresOptions { connections: PostgresOptions::CONNECTIONS, ..options }).await?)
}

/// In how many rounds the questions are asked, of the one store and of the other in turn.
const ROUNDS: usize = 3;

/// Inserts, recall and full-text search of one user in a small and a large store of both kinds.
fn measure_recall(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes = [bench.size(100_000, 11_000), bench.size(1_000_000, 20_000)];
    let mut medians = Vec::new();
    for turns in sizes {
        medians.push(bench.runtime.block_on(measure_size(bench, report, turns))?);
    }
    report.add(
        format!("recall, {MEASURED_TURNS} turns of a user: {} against {}", sizes[1], sizes[0]),
        medians[1] / medians[0],
        "x",
        Some(Target::AtMost(1.5)),
    );
    Ok(())
}

/// Measures both stores with as many turns. Returns the median of a recall on PostgreSQL.
async fn measure_size(bench: &Bench, report: &mut Report, turns: usize) -> Result<f64> {
    let embedded = fill::open(&bench.stores.fresh(&format!("postgres-recall-{turns}"))).await?;
    let rate = fill_with(&embedded, turns).await?;
    report.add(format!("embedded store, batched inserts up to {turns} turns"), rate, "turns/s", None);
    fill::wait_for_index(&embedded).await?;
    let database = Server::start(Durability::Durable).empty_database().await;
    let store: Arc<dyn Store> = Arc::new(open(&database).await?);
    let rate = fill_with(&store, turns).await?;
    report.add(format!("batched inserts up to {turns} turns"), rate, "turns/s", None);
    database.client().await.batch_execute("VACUUM ANALYZE").await?;
    report_bytes(report, &database, turns).await?;
    let (mut beside, mut own) = (Times::default(), Times::default());
    let questions = bench.size(300, 21) / ROUNDS;
    for round in 0..ROUNDS {
        ask(&embedded, round, questions, None, &mut beside).await?;
        ask(&store, round, questions, Some(database.server().process()), &mut own).await?;
    }
    beside.report(report, "embedded store, ", turns);
    let recalled = own.report(report, "", turns);
    embedded.close().await?;
    store.close().await?;
    Ok(recalled)
}

/// Fills a store, and returns the turns a second. Afterwards all segments are written.
async fn fill_with(store: &Arc<dyn Store>, turns: usize) -> Result<f64> {
    eprintln!("  filling a store with {turns} turns");
    let start = Instant::now();
    fill::fill(store, MEASURED_TURNS.min(turns), turns).await?;
    let rate = turns as f64 / start.elapsed().as_secs_f64();
    engine::over(store).maintenance.maintain_all().await?;
    Ok(rate)
}

/// The bytes of a turn on disk, with the indexes of trigrams and without them.
async fn report_bytes(report: &mut Report, database: &Database, turns: usize) -> Result<()> {
    let sql = "SELECT pg_database_size(current_database()), (
                   SELECT sum(pg_relation_size(relid))::bigint FROM (
                       SELECT relid FROM pg_partition_tree('turns_trigrams')
                       UNION ALL SELECT relid FROM pg_partition_tree('memories_trigrams')) AS trigrams)";
    let row = database.client().await.query_one(sql, &[]).await?;
    let (all, trigrams): (i64, i64) = (row.get(0), row.get(1));
    let a_turn = |bytes: i64| bytes as f64 / turns as f64;
    report.add(format!("on disk with {turns}, a turn"), a_turn(all), "bytes", None);
    let without = a_turn(all - trigrams);
    report.add(format!("on disk with {turns}, a turn without trigrams"), without, "bytes", None);
    Ok(())
}

/// The milliseconds of questions, and of processor time of a recall in each round.
#[derive(Default)]
struct Times {
    recall: Vec<f64>,
    search: Vec<f64>,
    cold: Vec<f64>,
    strata_cpu: Vec<f64>,
    server_cpu: Vec<f64>,
}

impl Times {
    /// Reports the times in a store of `turns` turns, and returns the median of a recall.
    fn report(&mut self, report: &mut Report, store: &str, turns: usize) -> f64 {
        let mut add = |what: String, value: f64| report.add(format!("{store}{what}"), value, "ms", None);
        let recalled = median(&mut self.recall);
        add(format!("recall in {turns}, median"), recalled);
        add(format!("recall in {turns}, p99"), p99(&mut self.recall));
        add(format!("recall in {turns}, first of a process"), median(&mut self.cold));
        add(format!("recall in {turns}, processor time of Strata"), median(&mut self.strata_cpu));
        add(format!("recall in {turns}, processor time of PostgreSQL"), median(&mut self.server_cpu));
        add(format!("store's own search in {turns}, median"), median(&mut self.search));
        add(format!("store's own search in {turns}, p99"), p99(&mut self.search));
        recalled
    }
}

/// Asks questions of the measured user: with recall, and with the store's own text index.
async fn ask(
    store: &Arc<dyn Store>,
    round: usize,
    questions: usize,
    server: Option<u32>,
    times: &mut Times,
) -> Result<()> {
    let engine = engine::over(store);
    let user = fill::measured_user()?;
    let corpus = Corpus::new();
    let mut random = Random::new(99 + round as u64);
    let texts: Vec<String> = (0..=questions).map(|_| corpus.question(&mut random)).collect();
    let mut found = 0;
    let cpu = || -> Result<(f64, f64)> { Ok((cpu::own()?, server.map_or(Ok(0.0), cpu::of_family)?)) };
    let mut before = cpu()?;
    for (question, text) in texts.iter().enumerate() {
        let start = Instant::now();
        let recalled = engine.recall.ask(&user, &RecallRequest::new(text.clone())).await?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        found += recalled.items.len();
        if question == 0 {
            times.cold.push(took);
            before = cpu()?;
        } else {
            times.recall.push(took);
        }
    }
    let after = cpu()?;
    let a_recall = 1000.0 / questions as f64;
    times.strata_cpu.push((after.0 - before.0) * a_recall);
    times.server_cpu.push((after.1 - before.1) * a_recall);
    for text in &texts {
        times.search.push(crate::search::ask(store, text).await?.0);
    }
    ensure!(found > questions, "the questions find too little ({found} items) to measure anything");
    Ok(())
}
