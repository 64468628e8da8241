//! Every format that was ever written can be read: a file of each version, with what it has to say. The files are kept
//! for ever; `examples/make_sample.rs` makes the one of a new version.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::path::Path;

use serde_json::Value;
use strata_core::Store;
use strata_core::store::conformance::fixture::{ann, at};
use strata_core::store::{ChangeSet, CheckDepth, Idempotency};
use strata_store::{SqliteOptions, SqliteStore};

#[path = "samples/reading.rs"]
mod reading;

async fn check(version: u32) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let sample = samples.join(format!("version-{version}.db"));
    let expected: Value =
        serde_json::from_slice(&std::fs::read(sample.with_extension("json")).unwrap()).unwrap();
    // A sample is only ever read: opening one brings it up to date.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("strata.db");
    std::fs::copy(&sample, &copy).unwrap();
    let store = SqliteStore::open(&copy, SqliteOptions::default()).unwrap();
    assert_eq!(reading::reading(&store).await, expected);
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());

    let idempotency = Some(Idempotency { key: "first".to_owned(), fingerprint: u64::MAX - 1 });
    let changes = ChangeSet { at: at(9), idempotency, changes: Vec::new() };
    let applied = store.apply(&ann(), changes).await.unwrap();
    assert!(applied.replayed);
    assert_eq!(applied.turns.len(), 3);
}

#[tokio::test]
async fn version_1_is_read() {
    check(1).await;
}
