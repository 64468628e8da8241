//! The sample set, end to end: real files, the real write and read path, the reference store.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evals::{EvalClock, Options, Progress, Report, Set, load, run, sets, table};
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::store::InMemoryStore;
use strata_core::{ErrorKind, Result, Store};
use strata_engine::recall::Order;
use strata_engine::{Engine, Limits, Settings};
use uuid::Uuid;

#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1)
    }
}

struct WordCount;

impl TokenCounter for WordCount {
    fn count(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}

fn engine(store: Arc<dyn Store>, clock: &Arc<EvalClock>) -> Engine {
    // Calls of two turns, so that a session takes several.
    let settings =
        Settings { limits: Limits { max_turns_per_call: 2, ..Limits::default() }, ..Settings::default() };
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Engine::new(store, clock, Arc::new(CountingIds::default()), Arc::new(WordCount), settings)
}

async fn run_in(
    store: Arc<dyn Store>,
    set: &Set,
    options: &Options,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let clock = Arc::new(EvalClock::default());
    Box::pin(run(engine(store, &clock), clock, set, options, progress)).await
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

async fn run_set(set: &Set, options: &Options) -> (Report, Vec<Progress>) {
    let mut seen = Vec::new();
    let store = Arc::new(InMemoryStore::new());
    let report = run_in(store, set, options, &mut |progress| seen.push(progress)).await.unwrap();
    (report, seen)
}

/// What each question of an order brought back, by its id.
fn rankings(report: &Report, order: usize) -> HashMap<&str, Vec<&str>> {
    let run = report.orders[order].run.iter();
    run.map(|line| (line.question_id.as_str(), line.ranked.iter().flatten().map(String::as_str).collect()))
        .collect()
}

#[tokio::test]
async fn the_sample_runs_and_scores() {
    let set = load(&samples(), "garden").unwrap();
    let (report, seen) = run_set(&set, &Options::default()).await;
    assert_eq!((report.conversations, report.sessions, report.turns, report.questions), (2, 6, 20, 10));
    assert_eq!(
        report.orders.iter().map(|order| order.order).collect::<Vec<_>>(),
        [Order::Relevance, Order::Served]
    );
    let last = seen.last().unwrap();
    assert_eq!(*last, Progress { turns: 20, all_turns: 20, questions: 10, all_questions: 10 });

    let relevance = &report.orders[0];
    // One question is not scored.
    assert_eq!((relevance.turn.overall.n, relevance.session.overall.n, relevance.run.len()), (9, 9, 10));
    assert_eq!(relevance.turn.categories.keys().collect::<Vec<_>>(), ["fact", "several", "update"]);
    // Any search worth its name finds these by their words.
    assert_eq!(relevance.turn.categories["fact"].metrics["R@10"], 1.0);
    assert_eq!(relevance.session.categories["fact"].metrics["Hit@5"], 1.0);
    assert_eq!(relevance.latency.count, 10);
    // Sessions of 4, 3 and 3, then 3, 3 and 4 turns, two a call.
    assert_eq!(report.ingest.latency.count, 12);

    let text = table(&report);
    assert!(text.contains("| relevance, by turns |") && text.contains("| served, by sessions |"), "{text}");
}

#[tokio::test]
async fn only_sessions_before_the_one_named_are_brought_back() {
    let set = load(&samples(), "garden").unwrap();
    let (report, _) = run_set(&set, &Options { orders: vec![Order::Relevance], ..Options::default() }).await;
    let rankings = rankings(&report, 0);
    // Asked before M3 began: what was said then is not known yet, what was said before is.
    let before = &rankings["garden/5"];
    assert!(before.contains(&"M2:3") && !before.iter().any(|id| id.starts_with("M3")), "{before:?}");
    assert!(rankings["garden/3"].contains(&"M3:1"), "{:?}", rankings["garden/3"]);
    // Nothing of another conversation is seen.
    for (question, ids) in &rankings {
        let own = if set.questions.iter().any(|q| q.question_id == *question && q.conversation_id == "mara") {
            'M'
        } else {
            'L'
        };
        assert!(ids.iter().all(|id| id.starts_with(own)), "{question}: {ids:?}");
    }
}

#[tokio::test]
async fn a_run_file_has_a_line_a_question() {
    let set = load(&samples(), "garden").unwrap();
    let (report, _) = run_set(&set, &Options { orders: vec![Order::Served], ..Options::default() }).await;
    let file = report.orders[0].run_file().unwrap();
    let lines: Vec<serde_json::Value> =
        file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[0]["question_id"], "garden/1");
    assert!(lines[0]["ranked"].as_array().unwrap().iter().all(serde_json::Value::is_string), "{}", lines[0]);
    assert!(lines.iter().all(|line| line["ranked"].as_array().unwrap().len() <= 10));
}

#[tokio::test]
async fn a_store_that_holds_an_earlier_run_is_refused() {
    let set = load(&samples(), "garden").unwrap();
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let options = Options::default();
    run_in(Arc::clone(&store), &set, &options, &mut |_| ()).await.unwrap();
    let error = run_in(store, &set, &options, &mut |_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

/// A folder with a set `own` of the given lines.
fn folder(conversations: &str, questions: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("own.conversations.jsonl"), conversations).unwrap();
    std::fs::write(dir.path().join("own.questions.jsonl"), questions).unwrap();
    dir
}

const CONVERSATION: &str = r#"{"conversation_id":"c","sessions":[{"session_id":"s","turns":[{"turn_id":"t","speaker":"Ann","text":"hello","timestamp":"2024-02-03T04:05:06+01:00"},{"turn_id":"u","speaker":"Bo","text":""}]}]}"#;
const QUESTION: &str =
    r#"{"question_id":"q","conversation_id":"c","question":"hello?","evidence_turns":["t"]}"#;

#[tokio::test]
async fn what_may_be_left_out_is() {
    let dir = folder(CONVERSATION, &format!("\n{QUESTION}\n\n"));
    assert_eq!(sets(dir.path()).unwrap(), ["own"]);
    let set = load(dir.path(), "own").unwrap();
    let question = &set.questions[0];
    assert_eq!((question.category.as_str(), question.scored), ("all", true));
    assert_eq!(question.evidence_sessions.as_deref().unwrap(), ["s"]);
    // The second turn has no time of its own and takes that of the first.
    let time = "2024-02-03T03:05:06Z".parse().unwrap();
    assert_eq!(set.conversations[0].times(), [[Some(time), Some(time)]]);
    let (report, _) = run_set(&set, &Options::default()).await;
    assert_eq!((report.turns, report.orders[0].turn.overall.metrics["R@5"]), (1, 1.0));
}

#[test]
fn compressed_files_are_read() {
    let dir = folder("", QUESTION);
    std::fs::remove_file(dir.path().join("own.conversations.jsonl")).unwrap();
    let file = std::fs::File::create(dir.path().join("own.conversations.jsonl.gz")).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(CONVERSATION.as_bytes()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(load(dir.path(), "own").unwrap().conversations.len(), 1);
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let check = |conversations: &str, questions: &str, expected: &str| {
        let dir = folder(conversations, questions);
        let message = load(dir.path(), "own").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\nexpected {expected}");
    };
    check("{}", QUESTION, "own.conversations.jsonl:1: missing field `conversation_id`");
    check(
        &format!("{CONVERSATION}\n{CONVERSATION}"),
        QUESTION,
        "own.conversations.jsonl:2: conversation `c` appears twice",
    );
    check(
        &CONVERSATION.replace(r#""u""#, r#""t""#),
        QUESTION,
        "own.conversations.jsonl:1: turn `t` appears twice",
    );
    check(
        &CONVERSATION.replace("2024-02-03T", "yesterday "),
        QUESTION,
        "own.conversations.jsonl:1: `yesterday",
    );
    check(CONVERSATION, &format!("\n{QUESTION}\nx"), "own.questions.jsonl:3: expected value at column 1");
    check(
        CONVERSATION,
        &QUESTION.replace(r#"["t"]"#, r#"["x"]"#),
        "own.questions.jsonl:1: turn `x` is not in",
    );
    check(
        CONVERSATION,
        &QUESTION.replace(r#""c""#, r#""d""#),
        "own.questions.jsonl:1: conversation `d` is not in",
    );
    let as_of = QUESTION.replace(r#""evidence"#, r#""as_of_session":"z","evidence"#);
    check(CONVERSATION, &as_of, "own.questions.jsonl:1: session `z` is not in");
    let missing = load(&samples(), "none").unwrap_err();
    assert!(missing.to_string().contains("`garden`"), "{missing}");
}
