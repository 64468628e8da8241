//! The pages of the inspector, of a user with 100,000 turns and 50,000 memories: the time at the server, and the bytes sent.
//!
//! The large store is served with words alone, because its vectors would take hours to make. The pages that ask the encoder and the
//! reader are measured over a small store that has its vectors.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use strata_core::memory::{Memory, MemoryKind, MemoryNotes};
use strata_core::metric::{PromptUse, RequestMetric};
use strata_core::scope::Scope;
use strata_core::store::{Change, ChangeSet, Store};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::trace::RetrievalPath;
use strata_core::turn::Metadata;
use strata_core::{MemoryId, RequestId, SessionId, SummaryId};

use crate::Bench;
use crate::corpus::{Corpus, Random};
use crate::fill::{self, measured_user};
use crate::recall::BUILTIN;
use crate::report::{Report, Target, median, p99};
use crate::server::{Client, Served};
use crate::vectors::{builtin, embedded};

/// The items of one change set.
const BATCH: usize = 500;

/// The number of loads of each page that are measured, after some that are not.
const LOADS: usize = 20;

/// The requests whose traces are kept. The newest one is the measured page.
const TRACES: usize = 30;

/// The versions of the measured session's summary, more than its page shows.
const VERSIONS: u64 = 16;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let (turns, memories) = (bench.size(100_000, 2_000), bench.size(50_000, 1_000));
    let requests = bench.size(5_000, 200);
    let store = bench.runtime.block_on(filled(bench, turns, memories, requests))?;
    let served = Served::start_with(&bench.binary, &store, "words", &["learn.reader=off".to_owned()])?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let corpus = Corpus::new();
    let mut random = Random::new(8);
    for _ in 0..TRACES {
        explain(&mut client, &corpus.question(&mut random))?;
    }
    let pages = pages(&mut client)?;
    let mut largest = load_all(&mut client, &pages, report)?;
    drop(served);
    largest = largest.max(measure_networks(bench, report)?);
    report.add("the largest page", largest as f64 / 1e3, "kB", Some(Target::AtMost(100.0)));
    Ok(())
}

/// Asks a question whose request keeps its trace.
fn explain(client: &mut Client, question: &str) -> Result<()> {
    let user = measured_user()?;
    client.post("/search", &json!({ "query": question, "user_id": user.as_str(), "explain": true }))?;
    Ok(())
}

/// The pages that ask the encoder and the reader, over a store that has its vectors. Returns the bytes of the largest one.
fn measure_networks(bench: &mut Bench, report: &mut Report) -> Result<usize> {
    let turns = bench.size(1_000, 200);
    let store = embedded(bench, &builtin()?, turns)?;
    let served = Served::start_with(&bench.binary, &store, BUILTIN, &["learn.reader=builtin".to_owned()])?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    let question = Corpus::new().question(&mut Random::new(9)).replace(' ', "+");
    let statement = "My+sister+moved+to+Porto+in+March+and+works+at+the+aquarium";
    let pages = [
        ("try it, a question, encoder and reader", format!("/inspect/try?q={question}")),
        ("try it, a statement, encoder and reader", format!("/inspect/try?q={statement}")),
        (
            "prompt, a question, encoder and reader",
            format!("/inspect/sessions/session-1/prompt?q={question}"),
        ),
    ];
    let pages = pages.map(|(name, path)| (name, format!("{path}&user=measured")));
    load_all(&mut client, &pages, report)
}

/// Loads each page several times and adds its times to the report. Returns the bytes of the largest page.
fn load_all(client: &mut Client, pages: &[(&str, String)], report: &mut Report) -> Result<usize> {
    let mut largest = 0;
    for (name, path) in pages {
        let mut times = Vec::new();
        for load in 0..LOADS + 3 {
            let (time, bytes) = client.page(path).with_context(|| format!("loading {path}"))?;
            if load >= 3 {
                times.push(time);
                largest = largest.max(bytes);
            }
        }
        report.add(format!("{name}, median"), median(&mut times), "ms", Some(Target::AtMost(50.0)));
        report.add(format!("{name}, p99"), p99(&mut times), "ms", None);
    }
    Ok(largest)
}

/// Every page: its name and its path.
fn pages(client: &mut Client) -> Result<Vec<(&'static str, String)>> {
    let text =
        |value: &serde_json::Value| value.as_str().map(str::to_owned).context("the answer has no such field");
    let user = "user_id=measured";
    let turn = text(&client.get(&format!("/sessions/session-3/turns?limit=1&{user}"))?["turns"][0]["id"])?;
    let memory = client.get(&format!("/memories?limit=1&{user}"))?;
    let (memory, content) = (text(&memory["results"][0]["id"])?, text(&memory["results"][0]["memory"])?);
    let request = text(&client.get(&format!("/requests?limit=1&{user}"))?["requests"][0]["id"])?;
    let word: String = content.split_whitespace().max_by_key(|word| word.len()).unwrap_or("x").to_owned();
    let part: String = word.chars().skip(1).take(5).filter(char::is_ascii_alphanumeric).collect();
    let question = content.split_whitespace().take(6).collect::<Vec<_>>().join("+");
    let page = |name, path: String| {
        let separator = if path.contains('?') { '&' } else { '?' };
        (name, format!("{path}{separator}user=measured"))
    };
    Ok(vec![
        page("overview", "/inspect".to_owned()),
        page("sessions", "/inspect/sessions".to_owned()),
        page("sessions, page 20", "/inspect/sessions?page=20".to_owned()),
        page("session", "/inspect/sessions/session-3".to_owned()),
        page("state", "/inspect/sessions/session-3/state".to_owned()),
        page("summaries", "/inspect/sessions/session-3/summaries".to_owned()),
        page("prompt", "/inspect/sessions/session-3/prompt".to_owned()),
        page("prompt, a question", format!("/inspect/sessions/session-3/prompt?q={question}")),
        page("turn", format!("/inspect/turns/{turn}")),
        page("memories", "/inspect/memories".to_owned()),
        page("memories, the last", "/inspect/memories?after=4960".to_owned()),
        page("memories, past", "/inspect/memories?state=past".to_owned()),
        page("memories, a word", format!("/inspect/memories?q={word}")),
        page("memories, a part of a word", format!("/inspect/memories?q={part}")),
        page("memory", format!("/inspect/memories/{memory}")),
        page("requests", "/inspect/requests".to_owned()),
        page("request", format!("/inspect/requests/{request}")),
        page("try it", "/inspect/try".to_owned()),
        page("try it, a question", format!("/inspect/try?q={question}")),
        page("report", "/inspect/report".to_owned()),
        page("report, 90 days", "/inspect/report?days=90".to_owned()),
    ])
}

#[allow(clippy::disallowed_methods, reason = "the charts and the report show the last days")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// A store with the turns, memories and requests of one user, at rest and closed.
async fn filled(bench: &Bench, turns: usize, memories: usize, requests: usize) -> Result<PathBuf> {
    eprintln!("  filling a store with {turns} turns and {memories} memories");
    let path = bench.stores.fresh("inspector");
    let store = fill::open(&path).await?;
    fill::fill(&store, turns, turns).await?;
    let now = now();
    let mut random = Random::new(5);
    let corpus = Corpus::new();
    let new = |number: usize, random: &mut Random| {
        Change::AddMemory(Box::new(memory(number, corpus.turn(random), now)))
    };
    write(&store, now, memories, |number| new(number, &mut random)).await?;
    let mut random = Random::new(6);
    let mut questions = Random::new(7);
    write(&store, now, requests, |number| {
        Change::AddRequest(Box::new(request(number, corpus.question(&mut questions), &mut random, now)))
    })
    .await?;
    let session = SessionId::new("session-3")?;
    write(&store, now, VERSIONS as usize, |number| {
        Change::PutSummary(Box::new(summary(
            &session,
            number as u64,
            corpus.long_question(&mut questions),
            now,
        )))
    })
    .await?;
    fill::wait_for_index(&store).await?;
    store.close().await?;
    Ok(path)
}

async fn write(
    store: &Arc<dyn Store>,
    now: Timestamp,
    count: usize,
    mut change: impl FnMut(usize) -> Change,
) -> Result<()> {
    for first in (0..count).step_by(BATCH) {
        let changes = (first..count.min(first + BATCH)).map(&mut change).collect();
        store.apply(&measured_user()?, ChangeSet::new(now, changes)).await?;
    }
    Ok(())
}

/// A version of the summary of the measured session.
fn summary(session: &SessionId, number: u64, said: String, now: Timestamp) -> Summary {
    let id = |number: u64| SummaryId(fill::id(11, number).0);
    let at = now - SignedDuration::from_mins(60 * (VERSIONS - number) as i64);
    Summary {
        id: id(number),
        session: session.clone(),
        strategy: Strategy::Window,
        level: 0,
        start_seq: 0,
        end_seq: number * 6 + 5,
        base_id: number.checked_sub(1).map(id),
        status: SummaryStatus::Completed,
        // Most of the text stays from version to version, as in a real chain.
        text: format!(
            "{}\nVersion {number}: {said}",
            "They spoke about the harbour, the boats and the tides. ".repeat(40)
        ),
        structured: None,
        input_tokens: 900,
        output_tokens: 200,
        generation_ms: Some(1_500),
        created_at: at,
        updated_at: at,
    }
}

/// A memory of the last thirty days; every tenth is closed.
fn memory(number: usize, content: String, now: Timestamp) -> Memory {
    let kinds = [MemoryKind::Fact, MemoryKind::Preference, MemoryKind::Todo, MemoryKind::Event];
    let recorded_at = now - SignedDuration::from_secs(number as i64 * 50);
    Memory {
        id: MemoryId(fill::id(9, number as u64).0),
        session: None,
        agent: None,
        kind: kinds[number % kinds.len()],
        content,
        confidence: 0.9,
        valid_from: recorded_at,
        valid_to: number.is_multiple_of(10).then_some(now),
        recorded_at,
        replaced_by: None,
        source_turns: vec![fill::id(0, number as u64)],
        source_summary: None,
        metadata: Metadata::new(),
        notes: MemoryNotes::default(),
        hidden: None,
    }
}

/// A request of the last six days.
fn request(number: usize, query: String, random: &mut Random, now: Timestamp) -> RequestMetric {
    RequestMetric {
        id: RequestId(fill::id(10, number as u64).0),
        session: None,
        created_at: now - SignedDuration::from_secs(number as i64 * 100),
        query,
        fts_hits: (random.next() % 9) as u32,
        trgm_hits: 0,
        vector_hits: 0,
        used_fallback: random.next().is_multiple_of(8),
        retrieval_path: RetrievalPath::Fts,
        scope: Scope::User,
        scope_used: Scope::User,
        expansion: None,
        context_items: (random.next() % 6) as u32,
        estimated_tokens: (random.next() % 900) as u32,
        truncated: random.next().is_multiple_of(5),
        latency_retrieval_us: random.next() % 9_000,
        latency_llm_us: Some(random.next() % 2_000_000),
        error_stage: None,
        late: None,
        unasked: false,
        prompt: PromptUse {
            raw_tokens: Some(9_000),
            input_tokens: Some(1_500),
            output_tokens: Some(90),
            stable_share: Some(0.8),
        },
        feedback: Vec::new(),
        trace: None,
    }
}
