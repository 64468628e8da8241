//! Recall with its real parts: the built-in lexicon, a SQLite file, ONNX models and an endpoint that stops answering.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evals::{EvalClock, Options};
use strata::{SystemIds, open_sqlite};
use strata_core::metric::ErrorStage;
use strata_core::ports::{Clock, Embedder};
use strata_core::store::{Change, ChangeSet, Segment};
use strata_core::trace::RetrievalPath;
use strata_core::turn::NewMessage;
use strata_core::{Role, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::recall::{Order, RecallRequest, Recalled};
use strata_engine::{NewMemory, Settings};
use strata_models::onnx::{OnnxEncoder, OnnxReranker};
use strata_models::remote::RemoteEmbedder;
use strata_models::{BuiltinLexicon, Tokenizer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../strata-models/tests/data").join(name)
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/samples")
}

/// A new engine over the file, as another process would open it.
async fn open(directory: &TempDir, clock: &Arc<EvalClock>) -> Engine {
    let store = open_sqlite(&directory.path().join("strata.db")).await.unwrap();
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let settings = Settings::default();
    Engine::new(Arc::new(store), clock, Arc::new(SystemIds::new()), Arc::new(Tokenizer::default()), settings)
        .with_lexicon(Arc::new(BuiltinLexicon::new()))
}

async fn fresh() -> (TempDir, Arc<EvalClock>, Engine) {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(EvalClock::new("2024-06-01T12:00:00Z".parse().unwrap()));
    let engine = open(&directory, &clock).await;
    (directory, clock, engine)
}

fn ann() -> UserId {
    UserId::new("ann").unwrap()
}

async fn say(engine: &Engine, session: &str, texts: &[&str]) {
    let messages = texts.iter().map(|text| NewMessage::new(Role::User, *text)).collect();
    engine.recording.record(&ann(), &SessionId::new(session).unwrap(), messages, None).await.unwrap();
}

async fn ask(engine: &Engine, query: &str) -> Recalled {
    engine.recall.ask(&ann(), &RecallRequest::new(query)).await.unwrap()
}

fn contents(recalled: &Recalled) -> Vec<&str> {
    recalled.items.iter().map(|found| found.item.content()).collect()
}

/// A question in one language finds turns in the other language, in both directions.
///
/// The thresholds are below the measured values (`docs/recall.md`) by about the width of the confidence interval. BM25 alone
/// recalls 2.9 % here.
#[tokio::test]
async fn a_question_in_one_language_finds_what_was_said_in_the_other() {
    let (_directory, clock, engine) = fresh().await;
    let set = evals::load(&samples(), "crosslang").unwrap();
    let options = Options { orders: vec![Order::Relevance], ..Options::default() };
    let report = Box::pin(evals::run(engine, clock, &set, &options, &mut |_| ())).await.unwrap();
    let turn = &report.orders[0].turn;
    let recall = |row: &evals::Row| row.metrics["R@10"] * 100.0;
    assert_eq!(turn.overall.n, 175);
    assert!(recall(&turn.overall) >= 75.0, "{}", recall(&turn.overall));
    assert!(recall(&turn.categories["literal"]) >= 95.0, "{}", recall(&turn.categories["literal"]));
    // Each direction separately.
    for (language, conversation) in [("English", "zh"), ("Chinese", "en")] {
        let asked = set.questions.iter().zip(&report.orders[0].run);
        let asked = asked.filter(|(question, _)| question.conversation_id == conversation);
        let hits: Vec<bool> = asked
            .map(|(question, line)| {
                line.ranked.iter().take(10).flatten().any(|id| question.evidence_turns.contains(id))
            })
            .collect();
        let share = hits.iter().filter(|hit| **hit).count() * 100 / hits.len();
        assert!(share >= 70, "questions in {language}: {share} of 100");
    }
}

#[tokio::test]
async fn words_are_found_by_meaning_and_in_both_scripts() {
    let (_directory, _, engine) = fresh().await;
    say(&engine, "a", &["We adopted a puppy from the shelter", "咖啡要加牛奶", "我在杭州的西湖邊散步"]).await;
    for (query, expected) in [
        ("Which dog did we get?", "We adopted a puppy from the shelter"),
        ("how do I take my coffee", "咖啡要加牛奶"),
        ("我们养了什么小狗", "We adopted a puppy from the shelter"),
        ("在西湖边做什么", "我在杭州的西湖邊散步"),
    ] {
        // Words of like meaning rank an item first, and alone they are no proof that it answers.
        let asked = RecallRequest { score_threshold: Some(0.0), ..RecallRequest::new(query) };
        let recalled = engine.recall.ask(&ann(), &asked).await.unwrap();
        assert_eq!(contents(&recalled)[0], expected, "{query}");
    }
}

#[tokio::test]
async fn two_processes_over_one_file_see_each_others_writes() {
    let (directory, clock, first) = fresh().await;
    let second = open(&directory, &clock).await;
    say(&first, "a", &["The boat is called Albatross"]).await;
    assert_eq!(contents(&ask(&second, "boat").await), ["The boat is called Albatross"]);
    say(&second, "b", &["The boat leaves at seven"]).await;
    assert_eq!(ask(&first, "boat").await.items.len(), 2);
    first.sessions.delete(&ann(), &SessionId::new("b").unwrap()).await.unwrap();
    assert_eq!(contents(&ask(&second, "boat").await), ["The boat is called Albatross"]);
    // The vectors of one process serve the other.
    let encoder = || Arc::new(OnnxEncoder::open(model("tiny-encoder")).unwrap()) as Arc<dyn Embedder>;
    let (first, second) = (first.with_embedder(encoder()), second.with_embedder(encoder()));
    first.maintenance.maintain_all().await.unwrap();
    assert_eq!(ask(&second, "boat").await.vector_hits, 1);
}

#[tokio::test]
async fn a_cold_index_comes_from_segments_of_the_file() {
    let (directory, clock, engine) = fresh().await;
    let texts: Vec<String> = (0..300)
        .map(|number| format!("note {number}: the {} boat", ["red", "blue", "old"][number % 3]))
        .collect();
    say(&engine, "a", &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    say(&engine, "b", &["The boat is called Albatross"]).await;
    engine.maintenance.maintain_all().await.unwrap();
    let store = Arc::clone(engine.store());
    let space = strata_engine::index::SEGMENT_SPACE;
    let segments = store.segments(&ann(), space, 0).await.unwrap();
    assert_eq!(segments.len(), 1);
    let query =
        RecallRequest { order: Order::Relevance, limit: Some(20), ..RecallRequest::new("old boat 7") };
    let expected = engine.recall.ask(&ann(), &query).await.unwrap().items;
    let loaded = open(&directory, &clock).await.recall.ask(&ann(), &query).await.unwrap().items;
    assert_eq!(loaded, expected);
    // A damaged vector is ignored.
    let first = segments[0].last + 1;
    let last = store.head(&ann()).await.unwrap().revision;
    let damaged = Segment { first, last, bytes: segments[0].bytes[..100].to_vec(), ..segments[0].clone() };
    store
        .apply(&ann(), ChangeSet::one(engine.now(), Change::PutSegment { segment: damaged, epoch: 0 }))
        .await
        .unwrap();
    let loaded = open(&directory, &clock).await.recall.ask(&ann(), &query).await.unwrap().items;
    assert_eq!(loaded, expected);
}

#[tokio::test]
async fn an_onnx_encoder_compares_what_it_has_embedded() {
    let (_directory, _, engine) = fresh().await;
    let encoder = Arc::new(OnnxEncoder::open(model("tiny-encoder")).unwrap());
    let engine = engine.with_embedder(Arc::clone(&encoder) as Arc<dyn Embedder>);
    say(&engine, "a", &["the cat drinks tea"]).await;
    say(&engine, "b", &["the dog lives in berlin"]).await;
    assert!(!encoder.is_loaded(), "nothing is asked or embedded yet");
    let before = ask(&engine, "cat tea").await;
    assert_eq!(
        (before.vector_hits, before.error_stage),
        (2, None),
        "what was said just now is embedded at once"
    );
    engine.maintenance.maintain_all().await.unwrap();
    let after = engine
        .recall
        .ask(&ann(), &RecallRequest { explain: true, ..RecallRequest::new("cat tea") })
        .await
        .unwrap();
    assert_eq!((after.vector_hits, contents(&after)[0]), (2, "the cat drinks tea"));
    let candidates = after.trace.unwrap().candidates;
    assert!(candidates[0].encoder > candidates[1].encoder, "{candidates:?}");
    let row = engine.requests.get(&ann(), after.request_id).await.unwrap();
    assert_eq!((row.vector_hits, row.retrieval_path), (2, RetrievalPath::Fts));
}

#[tokio::test]
async fn an_onnx_cross_encoder_judges_the_candidates() {
    let (_directory, _, engine) = fresh().await;
    say(&engine, "a", &["the dog lives in paris"]).await;
    say(&engine, "b", &["the user likes tea"]).await;
    say(&engine, "c", &["coffee"]).await;
    let engine = engine.with_reranker(Arc::new(OnnxReranker::open(model("tiny-reranker")).unwrap()));
    let request = RecallRequest { score_threshold: Some(0.0), ..RecallRequest::new("user likes coffee?") };
    let reranked = RecallRequest { rerank: Some(true), ..request.clone() };
    let plain = engine.recall.ask(&ann(), &request).await.unwrap();
    let recalled = engine.recall.ask(&ann(), &reranked).await.unwrap();
    // The logits are three for each shared word, minus two: 4, 1 and -2.
    assert_eq!(contents(&recalled)[..2], ["the user likes tea", "coffee"]);
    let score = |of: &Recalled| {
        let tea = of.items.iter().find(|found| found.item.content() == "the user likes tea");
        tea.map(|found| found.score)
    };
    assert_eq!(score(&recalled), score(&plain), "the probability stays");
    assert_eq!(recalled.error_stage, None);
}

#[tokio::test]
async fn a_cross_encoder_that_cannot_be_read_is_done_without() {
    let (directory, _, engine) = fresh().await;
    say(&engine, "a", &["The boat is called Albatross"]).await;
    std::fs::write(directory.path().join("model.onnx"), b"no model").unwrap();
    let engine = engine.with_reranker(Arc::new(OnnxReranker::open(directory.path()).unwrap()));
    say(&engine, "b", &["The boat needs paint"]).await;
    let request = RecallRequest { rerank: Some(true), ..RecallRequest::new("boat called") };
    let recalled = engine.recall.ask(&ann(), &request).await.unwrap();
    assert_eq!(contents(&recalled)[0], "The boat is called Albatross");
    let row = engine.requests.get(&ann(), recalled.request_id).await.unwrap();
    assert_eq!(row.error_stage, Some(ErrorStage::Retrieval));
}

/// Reads one HTTP request to its end.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await.unwrap_or(0);
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        if read == 0 || body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
            return body.to_owned();
        }
    }
}

/// An endpoint that embeds one call and then does what `later` says: nothing at all, or vectors of that length.
async fn endpoint(later: Option<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = AtomicUsize::new(0);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let request: serde_json::Value = serde_json::from_str(&read_request(&mut stream).await).unwrap();
            let dimension = match (calls.fetch_add(1, Ordering::SeqCst), later) {
                (0, _) => 4,
                (_, Some(dimension)) => dimension,
                // It keeps the connection open and does not answer.
                (_, None) => {
                    open.push(stream);
                    continue;
                }
            };
            let texts = request["input"].as_array().unwrap().len();
            let data: Vec<_> = (0..texts)
                .map(|index| serde_json::json!({ "index": index, "embedding": vec![0.5; dimension] }))
                .collect();
            let body = serde_json::json!({ "data": data }).to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn an_endpoint_that_hangs_or_changes_its_dimension_costs_no_answer() {
    for later in [None, Some(5)] {
        let (_directory, _, engine) = fresh().await;
        let url = endpoint(later).await;
        let remote = RemoteEmbedder::new(&url, "small", None, Duration::from_millis(100)).unwrap();
        let engine = engine.with_embedder(Arc::new(remote));
        say(&engine, "a", &["The boat is called Albatross"]).await;
        engine.memories.add(&ann(), vec![NewMemory::new("the boat is blue")]).await.unwrap();
        engine.maintenance.maintain_all().await.unwrap();
        let recalled = ask(&engine, "boat").await;
        assert_eq!((recalled.items.len(), recalled.vector_hits), (2, 0), "{later:?}");
        let row = engine.requests.get(&ann(), recalled.request_id).await.unwrap();
        assert_eq!(row.error_stage, Some(ErrorStage::Embedding), "{later:?}");
        // Items that cannot be embedded now wait, and are found anyway.
        engine.memories.add(&ann(), vec![NewMemory::new("the boat has a sail")]).await.unwrap();
        assert!(engine.maintenance.maintain_all().await.is_err());
        assert_eq!(ask(&engine, "boat").await.items.len(), 3);
    }
}
