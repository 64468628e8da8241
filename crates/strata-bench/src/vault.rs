//! The vault beside the embedded store: durable turns, recall, the way from a saved file to recall, and building the index.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::CheckDepth;
use strata_core::{Store, UserId};
use strata_engine::Engine;
use strata_engine::recall::RecallRequest;
use strata_vault::{VaultOptions, VaultStore};
use uuid::Uuid;

use crate::corpus::{Corpus, Random};
use crate::recall::questions;
use crate::report::{Report, Target, median};
use crate::{Bench, append, engine, fill};

const WRITERS: usize = 64;
const ROUNDS: usize = 3;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    measure_appends(bench, report)?;
    measure_saved_files(bench, report)?;
    measure_idle(bench, report)?;
    measure_recall(bench, report)?;
    measure_rebuild(bench, report)
}

/// The machine's clock, which the times of files are compared with.
struct Now;

impl Clock for Now {
    #[allow(clippy::disallowed_methods, reason = "the times of real files")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Ids that count up.
struct Count(AtomicU64);

impl IdSource for Count {
    fn next(&self) -> Uuid {
        Uuid::from_u64_pair(9 << 12, 1 << 63 | self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn options() -> VaultOptions {
    VaultOptions::new(Arc::new(Now), Arc::new(Count(AtomicU64::new(1))))
}

fn fresh(bench: &Bench, name: &str) -> PathBuf {
    bench.stores.fresh(name).with_extension("vault")
}

fn measure_appends(bench: &Bench, report: &mut Report) -> Result<()> {
    let (turns, few) = (bench.size(6_000, 640), bench.size(600, 100));
    let (mut embedded, mut vault, mut single) = (Vec::new(), Vec::new(), Vec::new());
    // The rounds alternate, so that a slow minute of the machine affects both.
    for round in 0..ROUNDS {
        let path = bench.stores.fresh(&format!("vault-beside-{round}"));
        let store = bench.runtime.block_on(fill::open(&path))?;
        embedded.push(bench.runtime.block_on(append::rate(&[Arc::clone(&store)], WRITERS, turns, 0))?);
        bench.runtime.block_on(store.close())?;
        let path = fresh(bench, &format!("append-{round}"));
        let store: Arc<dyn Store> = Arc::new(bench.runtime.block_on(VaultStore::open(&path, options()))?);
        vault.push(bench.runtime.block_on(append::rate(&[Arc::clone(&store)], WRITERS, turns, 1))?);
        single.push(bench.runtime.block_on(append::rate(&[Arc::clone(&store)], 1, few, 2))?);
        bench.runtime.block_on(store.close())?;
    }
    let (embedded, vault) = (median(&mut embedded), median(&mut vault));
    report.add(format!("{WRITERS} writers, embedded store"), embedded, "turns/s", None);
    report.add(format!("{WRITERS} writers, vault"), vault, "turns/s", None);
    report.add(format!("{WRITERS} writers, vault against embedded"), vault / embedded, "x", None);
    report.add("one caller, vault", median(&mut single), "turns/s", None);
    Ok(())
}

/// Writes `count` facts as a person would.
fn write_facts(root: &Path, count: usize) -> Result<()> {
    let corpus = Corpus::new();
    let mut random = Random::new(11);
    for number in 0..count {
        let folder = root.join(format!("entries/topic-{}/facts", number % 100));
        if number < 100 {
            fs::create_dir_all(&folder)?;
        }
        let mut text = String::new();
        writeln!(text, "---\nid: {}\nrole: memory", fill::id(77, number as u64))?;
        writeln!(text, "conversation_id: topic-{}\ncreated_at: \"2026-01-01T00:00:00Z\"\n---", number % 100)?;
        writeln!(text, "{}", corpus.turn(&mut random))?;
        fs::write(folder.join(format!("{number}.md")), text)?;
    }
    Ok(())
}

/// From saving a file to recall finding it, with a watcher.
fn measure_saved_files(bench: &Bench, report: &mut Report) -> Result<()> {
    let root = fresh(bench, "saved");
    write_facts(&root, bench.size(2_000, 200))?;
    let watching = VaultOptions { watch: true, ..options() };
    let store: Arc<dyn Store> = Arc::new(bench.runtime.block_on(VaultStore::open(&root, watching))?);
    let engine = engine::over(&store);
    let user = UserId::default();
    let mut times = Vec::new();
    for number in 0..bench.size(40, 8) {
        let word = format!("zebrafish{number}");
        let path = root.join(format!("entries/topic-{}/facts/saved-{number}.md", number % 100));
        let start = Instant::now();
        fs::write(path, format!("The {word} swims in the north basin.\n"))?;
        while !bench.runtime.block_on(is_found(&engine, &user, &word))? {
            ensure!(start.elapsed() < Duration::from_secs(30), "a saved file was not found");
            std::thread::sleep(Duration::from_millis(5));
        }
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    bench.runtime.block_on(store.close())?;
    report.add("from a saved file to recall, median", median(&mut times), "ms", Some(Target::AtMost(300.0)));
    Ok(())
}

async fn is_found(engine: &Engine, user: &UserId, word: &str) -> Result<bool> {
    let request = RecallRequest::new(format!("where does {word} swim"));
    let found = engine.recall.ask(user, &request).await?;
    Ok(found.items.iter().any(|item| item.item.content().contains(word)))
}

/// The costs of a watcher while nothing happens.
fn measure_idle(bench: &Bench, report: &mut Report) -> Result<()> {
    let root = fresh(bench, "idle");
    write_facts(&root, bench.size(10_000, 500))?;
    let watching = VaultOptions { watch: true, ..options() };
    let store = bench.runtime.block_on(VaultStore::open(&root, watching))?;
    std::thread::sleep(Duration::from_secs(2));
    let (before, start) = (cpu_millis()?, Instant::now());
    std::thread::sleep(Duration::from_secs(bench.size(10, 2) as u64));
    let cost = (cpu_millis()? - before) / start.elapsed().as_secs_f64();
    bench.runtime.block_on(store.close())?;
    report.add("idle watcher, processor time", cost, "ms/s", None);
    Ok(())
}

/// The processor time of this process.
fn cpu_millis() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    // Linux counts a hundred ticks a second.
    Ok((ticks(11) + ticks(12)) * 10.0)
}

/// The same questions over the same items in both stores.
fn measure_recall(bench: &Bench, report: &mut Report) -> Result<()> {
    let items = bench.size(10_000, 1_000);
    let sqlite = bench.runtime.block_on(fill::open(&bench.stores.fresh("vault-recall")))?;
    let vault = VaultStore::open(fresh(bench, "recall"), options());
    let vault: Arc<dyn Store> = Arc::new(bench.runtime.block_on(vault)?);
    let questions = questions(bench.size(300, 40), 41);
    for store in [&sqlite, &vault] {
        bench.runtime.block_on(fill::fill(store, items, items))?;
        bench.runtime.block_on(fill::wait_for_index(store))?;
    }
    let engines = [&sqlite, &vault].map(engine::over);
    let mut medians = [Vec::new(), Vec::new()];
    // The first round loads the indexes. The others begin with each store in turn, so that both meet the same machine.
    for round in 0..=2 * ROUNDS {
        for place in [round % 2, (round + 1) % 2] {
            let time = median_time(bench, &engines[place], &questions)?;
            if round > 0 {
                medians[place].push(time);
            }
        }
    }
    // Other work of the machine can only add time.
    let [embedded, vault_time] = medians.map(|times| times.into_iter().fold(f64::MAX, f64::min));
    report.add(format!("recall, {items} items, embedded store"), embedded, "ms", None);
    report.add(format!("recall, {items} items, vault"), vault_time, "ms", None);
    report.add("recall, vault against embedded", vault_time / embedded, "x", Some(Target::AtMost(1.2)));
    bench.runtime.block_on(sqlite.close())?;
    bench.runtime.block_on(vault.close())?;
    Ok(())
}

/// The median time of an answer, in milliseconds.
fn median_time(bench: &Bench, engine: &Engine, questions: &[String]) -> Result<f64> {
    let user = fill::measured_user()?;
    let mut times = Vec::with_capacity(questions.len());
    for question in questions {
        let start = Instant::now();
        bench.runtime.block_on(engine.recall.ask(&user, &RecallRequest::new(question)))?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(&mut times))
}

/// Building the index from many files.
fn measure_rebuild(bench: &Bench, report: &mut Report) -> Result<()> {
    let files = bench.size(100_000, 2_000);
    let root = fresh(bench, "rebuild");
    write_facts(&root, files)?;
    let bar = ProgressBar::new(files as u64)
        .with_style(ProgressStyle::with_template("  {bar:40} {pos}/{len} files {per_sec} {eta}")?);
    let shown = bar.clone();
    let progress = move |done: usize, _: usize| shown.set_position(done as u64);
    let start = Instant::now();
    let options = VaultOptions { progress: Some(Arc::new(progress)), ..options() };
    let store = bench.runtime.block_on(VaultStore::open(&root, options))?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let health = bench.runtime.block_on(store.check(CheckDepth::Quick))?;
    ensure!(health.memories == files as u64, "{} of {files} files are in the index", health.memories);
    bench.runtime.block_on(store.close())?;
    report.add(format!("building the index of {files} files"), files as f64 / seconds, "files/s", None);
    let start = Instant::now();
    let store = bench.runtime.block_on(VaultStore::open(&root, self::options()))?;
    report.add(format!("opening {files} files again"), start.elapsed().as_secs_f64() * 1000.0, "ms", None);
    bench.runtime.block_on(store.close())?;
    fs::remove_dir_all(root)?;
    Ok(())
}
