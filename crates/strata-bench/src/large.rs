//! A user with much of everything: the points of 100,000 sessions, and the memory of a filtered search over 100,000 turns with
//! large metadata.

use std::path::PathBuf;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use strata_core::store::{Change, ChangeSet};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::turn::{NewTurn, Role};
use strata_core::{SessionId, Store, SummaryId, TurnId};
use uuid::Uuid;

use crate::Bench;
use crate::fill::{self, measured_user};
use crate::report::{Report, Target, median};
use crate::server::Served;

/// The sessions or turns of one change set.
const BATCH: usize = 200;

/// How often each question is asked.
const TIMES: usize = 9;

/// The bytes of a turn's metadata: 2.4 GB in all, if they were loaded together.
const METADATA_BYTES: usize = 24 * 1024;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    points(bench, report)?;
    filtered(bench, report)
}

/// `GET /summaries` over all of the user's sessions.
fn points(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let sessions = bench.size(100_000, 1_000);
    let store = bench.runtime.block_on(summarised(bench, sessions))?;
    let served = Served::start(&bench.binary, &store, "words")?;
    served.wait_until_ready()?;
    let mut client = served.connect()?;
    for (name, part) in [
        ("todos, one a session", "todos"),
        ("decisions, in the ten oldest sessions", "decisions"),
        ("entities, in no session", "entities"),
        ("facts, the same in all sessions", "facts"),
    ] {
        let path = format!("/summaries?part={part}&user_id=measured&limit=100");
        let mut times = Vec::new();
        for _ in 0..TIMES {
            times.push(client.page(&path).with_context(|| format!("asking for {path}"))?.0);
        }
        let name = format!("{name}, of {sessions}");
        report.add(name, median(&mut times), "ms", Some(Target::AtMost(100.0)));
    }
    Ok(())
}

async fn summarised(bench: &Bench, sessions: usize) -> Result<PathBuf> {
    eprintln!("  filling a store with {sessions} sessions");
    let path = bench.stores.fresh("summarised");
    let store = fill::open(&path).await?;
    summarise(store.as_ref(), sessions).await?;
    fill::wait_for_index(&store).await?;
    store.close().await?;
    Ok(path)
}

/// Gives the measured user sessions, each with a turn and a summary.
pub(crate) async fn summarise(store: &dyn Store, sessions: usize) -> Result<()> {
    for first in (0..sessions).step_by(BATCH) {
        let numbers = first..sessions.min(first + BATCH);
        let at = Timestamp::from_second(1_700_000_000 + first as i64)?;
        let mut changes = Vec::new();
        for number in numbers {
            let session = SessionId::new(format!("session-{number}"))?;
            changes.push(Change::AppendTurns {
                session: session.clone(),
                turns: vec![turn(number, "we met at the harbour", at, Map::new())],
            });
            changes.push(Change::PutSummary(Box::new(summary(number, session, at))));
        }
        store.apply(&measured_user()?, ChangeSet::new(at, changes)).await?;
    }
    Ok(())
}

fn summary(number: usize, session: SessionId, at: Timestamp) -> Summary {
    let decisions: &[&str] = if number < 10 { &["We meet on Monday"] } else { &[] };
    let structured = json!({
        "todos": [{ "text": format!("Call number {number}"), "seq": 0 }],
        "facts": ["Ann lives in Porto"],
        "decisions": decisions,
        "entities": [],
    });
    Summary {
        id: SummaryId(Uuid::from_u128(number as u128 + 1)),
        session,
        strategy: Strategy::Window,
        level: 0,
        start_seq: 0,
        end_seq: 0,
        base_id: None,
        status: SummaryStatus::Completed,
        text: "They met at the harbour and spoke about what is to be done.".to_owned(),
        structured: Some(structured),
        input_tokens: 10,
        output_tokens: 10,
        generation_ms: None,
        created_at: at,
        updated_at: at,
    }
}

fn turn(number: usize, content: &str, at: Timestamp, metadata: Map<String, Value>) -> NewTurn {
    NewTurn {
        id: TurnId(Uuid::from_u128(number as u128 + 1)),
        role: Role::User,
        name: None,
        content: content.to_owned(),
        created_at: at + SignedDuration::from_micros(number as i64),
        token_count: 5,
        metadata: metadata.into(),
        notes: Default::default(),
        hidden: None,
    }
}

/// The memory that a filtered search adds, by the index in memory and by the store's own.
fn filtered(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let turns = bench.size(100_000, 2_000);
    let store = bench.runtime.block_on(described(bench, turns))?;
    for (name, setting) in
        [("index in memory", "index_max_items=100000000"), ("the store's index", "index_max_items=10")]
    {
        let served = Served::start_with(&bench.binary, &store, "words", &[setting.to_owned()])?;
        served.wait_until_ready()?;
        let mut client = served.connect()?;
        client.search("measured", "which boats are in the harbour")?;
        let before = served.forget_peak()?;
        let body = json!({
            "user_id": "measured", "query": "which boats are in the harbour", "filters": { "number": 7 }, "top_k": 5,
        });
        let (time, _) = client.post("/search", &body)?;
        report.add(format!("filtered search, {turns} turns, {name}"), time, "ms", None);
        let added = served.peak_megabytes()? - before;
        report.add(format!("memory that it adds, {name}"), added, "MB", Some(Target::AtMost(100.0)));
    }
    Ok(())
}

async fn described(bench: &Bench, turns: usize) -> Result<PathBuf> {
    eprintln!("  filling a store with {turns} turns with {METADATA_BYTES} bytes of metadata each");
    let path = bench.stores.fresh("described");
    let store = fill::open(&path).await?;
    let filler = "x".repeat(METADATA_BYTES);
    for first in (0..turns).step_by(BATCH) {
        let at = Timestamp::from_second(1_700_000_000 + first as i64)?;
        let said = (first..turns.min(first + BATCH)).map(|number| {
            let metadata = Map::from_iter([
                ("number".to_owned(), number.into()),
                ("filler".to_owned(), filler.as_str().into()),
            ]);
            turn(number, &format!("the harbour has {number} boats"), at, metadata)
        });
        let session = SessionId::new(format!("session-{}", first / 1_000))?;
        let change = Change::AppendTurns { session, turns: said.collect() };
        store.apply(&measured_user()?, ChangeSet::one(at, change)).await?;
    }
    fill::wait_for_index(&store).await?;
    store.close().await?;
    Ok(path)
}
