//! What a user's first day costs: the memory of a server that records a thousand turns and answers ten thousand searches, the
//! first search after a long session was learned, a search on the command line, and searches of stores with a few messages,
//! which the reader reads where the scores leave a doubt.
//!
//! Each figure stands beside its limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use strata_core::store::Store;

use crate::corpus::{Corpus, Random};
use crate::reading::learn_session;
use crate::recall::{BUILTIN, WORDS, questions, settled_megabytes};
use crate::report::{Report, Target, median, p99};
use crate::server::{Client, Served};
use crate::{Bench, engine, fill};

/// The user of all measurements.
const USER: &str = "measured";

/// The stores with a few messages, and their questions.
const SMALL_STORES: &str = "evals/small-stores/small";

/// The most turns in one request.
const BATCH: usize = 100;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    memory(bench, report, WORDS, &["learn.reader=off".to_owned()], 90.0)?;
    memory(bench, report, BUILTIN, &[], 200.0)?;
    first_search(bench, report)?;
    command_line(bench, report)?;
    small_stores(bench, report)
}

/// The memory of a server after it has recorded turns and answered searches.
fn memory(
    bench: &mut Bench,
    report: &mut Report,
    embedder: &str,
    settings: &[String],
    most: f64,
) -> Result<()> {
    let (turns, searches) = (bench.size(1_000, 100), bench.size(10_000, 100));
    let store = bench.stores.fresh(&format!("costs-{embedder}"));
    let served = Served::start_with(&bench.binary, &store, embedder, settings)?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    record(&mut client, turns)?;
    for question in questions(searches, 41) {
        client.search(USER, &question)?;
    }
    let name = format!("memory after {turns} turns and {searches} searches, {embedder}");
    report.add(name, settled_megabytes(&served)?, "MB", Some(Target::AtMost(most)));
    Ok(())
}

/// Records turns of both speakers.
fn record(client: &mut Client, turns: usize) -> Result<()> {
    let corpus = Corpus::new();
    let mut random = Random::new(43);
    for from in (0..turns).step_by(BATCH) {
        let messages: Vec<Value> = (from..turns.min(from + BATCH))
            .map(|place| {
                let role = if place % 2 == 0 { "user" } else { "assistant" };
                json!({ "role": role, "content": corpus.turn(&mut random) })
            })
            .collect();
        client.post("/turns", &json!({ "user_id": USER, "session_id": "day", "messages": messages }))?;
    }
    Ok(())
}

/// The first search of a server on a store in which a long session was learned.
fn first_search(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let turns = bench.size(50_000, 500);
    let store = bench.stores.fresh("costs-learned");
    bench.runtime.block_on(async {
        learn_session(&store, turns).await?;
        analyse(&store).await
    })?;
    for embedder in [WORDS, BUILTIN] {
        let served = Served::start(&bench.binary, &store, embedder)?;
        served.wait_until_ready()?;
        let mut client = served.connect()?;
        let (first, _) = client.search(USER, "what did we say about the garden 花园")?;
        let name = format!("first search after {turns} turns were learned, {embedder}");
        report.add(name, first, "ms", Some(Target::AtMost(300.0)));
    }
    Ok(())
}

/// Writes the segments of what was learned, as a server and every command do before they end.
async fn analyse(path: &Path) -> Result<()> {
    let store: Arc<dyn Store> = fill::open(path).await?;
    let engine = engine::over(&store);
    while engine.maintenance.write_segments().await? {}
    drop(engine);
    store.close().await?;
    Ok(())
}

/// A search by a process of its own.
fn command_line(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let store = bench.stores.fresh("costs-command");
    {
        let served = Served::start(&bench.binary, &store, WORDS)?;
        served.wait_until_ready()?;
        record(&mut served.connect()?, bench.size(1_000, 100))?;
    }
    let asked = questions(bench.size(20, 2), 47);
    for embedder in [WORDS, BUILTIN] {
        let times = asked.iter().map(|question| search(&bench.binary, &store, embedder, question));
        let mut times = times.collect::<Result<Vec<f64>>>()?;
        let name = format!("`strata search`, {embedder}, median");
        report.add(name, median(&mut times), "ms", Some(Target::AtMost(100.0)));
    }
    Ok(())
}

/// The milliseconds of `strata search` from its start to its end.
fn search(binary: &Path, store: &Path, embedder: &str, question: &str) -> Result<f64> {
    let start = Instant::now();
    let status = Command::new(binary)
        .args(["search", question, "--user", USER, "--store"])
        .arg(format!("sqlite:{}", store.display()))
        .env("STRATA_EMBEDDER", embedder)
        .env_remove("STRATA_BENCH_ENCODER")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("starting a search")?;
    ensure!(status.success(), "the search for `{question}` failed");
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

/// Searches of stores with a few messages, with the second look and without.
fn small_stores(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let conversations = lines(&format!("{SMALL_STORES}.conversations.jsonl"))?;
    let asked = lines(&format!("{SMALL_STORES}.questions.jsonl"))?;
    for (name, setting) in [("with a second look", "true"), ("without one", "false")] {
        let store: PathBuf = bench.stores.fresh(&format!("costs-small-{setting}"));
        let settings = [format!("recall.second_look={setting}")];
        let served = Served::start_with(&bench.binary, &store, BUILTIN, &settings)?;
        served.wait_until_ready()?;
        let mut client = served.connect()?;
        for conversation in &conversations {
            tell(&mut client, conversation)?;
        }
        let ask = |client: &mut Client, question: &Value| {
            let (user, query) = (text(question, "conversation_id")?, text(question, "question")?);
            Ok(client.search(user, query)?.0)
        };
        // The first questions load the networks and wait for the embedding.
        for question in &asked {
            ask(&mut client, question)?;
        }
        let times = asked.iter().take(bench.size(usize::MAX, 8)).map(|question| ask(&mut client, question));
        let mut times = times.collect::<Result<Vec<f64>>>()?;
        report.add(format!("a store of a few messages, {name}, median"), median(&mut times), "ms", None);
        report.add(format!("a store of a few messages, {name}, p99"), p99(&mut times), "ms", None);
    }
    Ok(())
}

/// Records a conversation as the turns of a user of its name.
fn tell(client: &mut Client, conversation: &Value) -> Result<()> {
    let user = text(conversation, "conversation_id")?;
    let sessions = conversation["sessions"].as_array().context("a conversation has no sessions")?;
    let turns = sessions.iter().filter_map(|session| session["turns"].as_array()).flatten();
    let messages = turns.map(|turn| Ok(json!({ "role": "user", "content": text(turn, "text")? })));
    let messages = messages.collect::<Result<Vec<Value>>>()?;
    client.post("/turns", &json!({ "user_id": user, "messages": messages }))?;
    Ok(())
}

fn lines(path: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("reading {path}"))).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name].as_str().with_context(|| format!("`{name}` is missing in {value}"))
}
