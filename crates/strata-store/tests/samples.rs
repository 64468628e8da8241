//! The formats of the store can be read: there are files of the versions, with their expected readings. Version 7 (one
//! column of keys) and version 10 (two indexes) have none. The files are kept for ever; `examples/make_sample.rs` makes the file of a new version.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's own functions")]

use std::path::Path;

use serde_json::{Value, json};
use strata_core::store::conformance::fixture::{ann, at, session, summary, user};
use strata_core::store::{
    Change, ChangeSet, CheckDepth, Expectation, Idempotency, MemoryQuery, MemorySelect, Page, PartQuery,
    TurnQuery,
};
use strata_core::summary::{Strategy, Summary, SummaryPart};
use strata_core::{ErrorKind, Memory, Store};
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

#[path = "samples/reading.rs"]
mod reading;

/// Everything that was written is there, unchanged. A later version may know more: new fields do not matter, but lists and
/// values have to be the same.
fn assert_still_says(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, then) in then {
                let now = now.get(name).unwrap_or_else(|| panic!("{place}: `{name}` is gone"));
                assert_still_says(now, then, &format!("{place}.{name}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{place}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                assert_still_says(now, then, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{place}"),
    }
}

/// Opens a copy of a sample, and gives the expected reading. A sample is only ever read: opening brings a file up to date.
fn open(name: &str, folder: &TempDir) -> (SqliteStore, Value) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let sample = samples.join(format!("{name}.db"));
    let expected = serde_json::from_slice(&std::fs::read(sample.with_extension("json")).unwrap()).unwrap();
    let copy = folder.path().join("strata.db");
    std::fs::copy(&sample, &copy).unwrap();
    (SqliteStore::open(&copy, SqliteOptions::default()).unwrap(), expected)
}

async fn check(version: u32) {
    let folder = tempfile::tempdir().unwrap();
    let (store, expected) = open(&format!("version-{version}"), &folder);
    assert_still_says(&reading::reading(&store).await, &expected, "the sample");
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());

    let idempotency = Some(Idempotency { key: "first".to_owned(), fingerprint: u64::MAX - 1 });
    let changes = ChangeSet { idempotency, ..ChangeSet::new(at(9), Vec::new()) };
    let applied = store.apply(&ann(), changes).await.unwrap();
    assert!(applied.replayed);
    assert_eq!(applied.turns.len(), 3);

    // Also a session of a format without versions has one, and a writer that read it can expect it.
    let walks = store.session(&ann(), &session("walks")).await.unwrap().unwrap();
    assert!(walks.version > 0);
    let writing = || {
        let put = Change::PutState { session: walks.id.clone(), state: Box::new(walks.state.clone()) };
        ChangeSet::one(at(9), put).expecting(Expectation::unchanged(&walks))
    };
    store.apply(&ann(), writing()).await.unwrap();
    assert_eq!(store.apply(&ann(), writing()).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn version_1_is_read() {
    check(1).await;
}

#[tokio::test]
async fn version_2_is_read() {
    check(2).await;
}

#[tokio::test]
async fn version_3_is_read() {
    check(3).await;
}

#[tokio::test]
async fn version_4_is_read() {
    check(4).await;
}

#[tokio::test]
async fn version_5_is_read() {
    check(5).await;
}

#[tokio::test]
async fn version_6_is_read() {
    check(6).await;
}

#[tokio::test]
async fn version_8_is_read() {
    check(8).await;
}

#[tokio::test]
async fn version_9_is_read() {
    check(9).await;
}

#[tokio::test]
async fn version_11_is_read() {
    check(11).await;
}

/// Since version 9, sessions know the parts of their current summaries.
#[tokio::test]
async fn the_summaries_of_version_8_are_found_by_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open("version-8", &folder);
    let summarised = Summary {
        strategy: Strategy::Window,
        structured: Some(json!({"todos": ["x"]})),
        ..summary("walks", 99)
    };
    store.apply(&ann(), ChangeSet::one(at(9), Change::PutSummary(Box::new(summarised)))).await.unwrap();
    let query = PartQuery { part: SummaryPart::Todos, page: Page::first(9) };
    assert_eq!(store.summaries_with(&ann(), &query).await.unwrap().len(), 1);
}

/// Until version 5, Strata wrote its notes into the metadata of turns and memories. They move out; values of a client's
/// own stay.
#[tokio::test]
async fn what_version_4_noted_in_metadata_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (store, expected) = open("version-4-notes", &folder);
    let range = TurnQuery::Range { session: session("notes"), after: None, limit: 100 };
    let turns = store.turns(&user("default"), &range).await.unwrap();
    let query = MemoryQuery::new(MemorySelect::All);
    let mut memories: Vec<Memory> = store.memories(&user("default"), &query).await.unwrap();
    memories.sort_by(|one, other| one.content.cmp(&other.content));
    assert_still_says(&json!({ "turns": turns, "memories": memories }), &expected, "the sample");
    for (turn, expected) in turns.iter().zip(expected["turns"].as_array().unwrap()) {
        assert_eq!(json!(turn.metadata), expected["metadata"], "{}", turn.content);
    }
    for (memory, expected) in memories.iter().zip(expected["memories"].as_array().unwrap()) {
        assert_eq!(json!(memory.metadata), expected["metadata"], "{}", memory.content);
    }
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}
