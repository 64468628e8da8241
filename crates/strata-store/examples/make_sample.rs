//! Makes the sample of the format that this program writes: `cargo run -p strata-store --example make_sample`.
//!
//! Run it once for each new version of the format, and commit its output. A sample that exists is never made again: it
//! shows the format of its time.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a person, on data of its own")]

use std::path::Path;

use strata_core::job::JobStatus;
use strata_core::key::{ApiKey, KeyLimits, Scopes};
use strata_core::memory::{MemoryNotes, TodoState};
use strata_core::scope::RecallScope;
use strata_core::store::conformance::fixture::{
    ann, appending, at, bob, deleted, job, key, memory, object, request, session, summary, turn,
};
use strata_core::store::{Change, ChangeSet, CheckDepth, Idempotency};
use strata_core::turn::{Follows, Owner, TurnNotes, Usage};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ItemId, MemoryId, Role, Store, UserId};
use strata_store::{SqliteOptions, SqliteStore};

#[path = "../tests/samples/reading.rs"]
mod reading;

#[tokio::main]
async fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let new = folder.join("new.db");
    let store = SqliteStore::open(&new, SqliteOptions::default()).unwrap();
    fill(&store).await;
    let health = loop {
        let health = store.check(CheckDepth::Thorough).await.unwrap();
        if health.unindexed == 0 {
            break health;
        }
    };
    assert!(health.problems.is_empty(), "{:?}", health.problems);
    let reading = serde_json::to_string_pretty(&reading::reading(&store).await).unwrap();
    store.close().await.unwrap();
    let sample = folder.join(format!("version-{}.db", health.format_version));
    assert!(!sample.exists(), "{} exists already", sample.display());
    std::fs::rename(&new, &sample).unwrap();
    std::fs::write(sample.with_extension("json"), reading + "\n").unwrap();
    println!("{}", sample.display());
}

/// Something in every table and every optional column.
async fn fill(store: &SqliteStore) {
    let mut said = turn("we met at the lake, the frozen lake");
    said.name = Some("Ann".to_owned());
    said.metadata = object(serde_json::json!({"client": "sample", "nested": {"list": [1, null, "西湖"]}}));
    let mut failed = turn("the model did not answer");
    failed.role = Role::Assistant;
    failed.hidden = deleted(2);
    failed.notes = TurnNotes {
        follows: Follows::Turn(0),
        interrupted: true,
        truncated: true,
        tool_calls: vec![serde_json::json!({"id": "c1"})],
        tool_call_id: Some("c0".to_owned()),
        failed: Some(true),
        usage: Usage { input: Some(9), output: Some(2) },
        high_value: true,
        owner: Owner {
            agent: Some("guide".to_owned()),
            in_session: true,
            apart: false,
            metadata: said.metadata.clone(),
        },
    };
    let mut bound = memory("杭州的西湖很美");
    bound.session = Some(session("walks"));
    bound.agent = Some("guide".to_owned());
    bound.source_turns = vec![said.id];
    bound.metadata = object(serde_json::json!({"seen": true}));
    bound.notes = MemoryNotes {
        todo: Some(TodoState::Done),
        restored_at: Some(at(3)),
        first_recorded_at: Some(at(1)),
        ..MemoryNotes::default()
    };
    let mut whole = summary("walks", 1);
    whole.structured = Some(serde_json::json!({"facts": ["there is a lake"]}));
    whole.generation_ms = Some(12);
    bound.source_summary = Some(whole.id);
    let mut finished = job(Some("walks"), 7);
    finished.status = JobStatus::Done;
    finished.result = Some(serde_json::json!({"memories": 1}));
    let mut limited = key(1);
    limited.name = Some("网关".to_owned());
    limited.expires_at = Some(at(99));
    limited.revoked_at = Some(at(9));
    limited.limits = KeyLimits { per_minute: Some(60), concurrent: Some(4) };
    limited.recall_scope = Some(RecallScope::Session);
    let vector = |item| ItemVector {
        item,
        model: "static-1".to_owned(),
        vector: Vector::quantise(&[0.5, -0.25, 0.125, 0.0]),
    };
    let state =
        serde_json::from_value(serde_json::json!({"diagnostic": {"status": "investigating"}, "own": 1}));
    let changes = vec![
        Change::PutVectors(Vec::new()),
        appending("walks", vec![said.clone(), failed]),
        appending("../../🦀", vec![turn("bread and salt")]),
        Change::PutState { session: session("walks"), state: Box::new(state.unwrap()) },
        Change::PutSummary(Box::new(whole)),
        Change::AddMemory(Box::new(bound.clone())),
        Change::PutVectors(vec![vector(ItemId::Turn(said.id)), vector(ItemId::Memory(bound.id))]),
        Change::EnqueueJob(Box::new(finished)),
        Change::AddRequest(Box::new(request(8))),
        Change::AddKey(Box::new(limited)),
    ];
    let idempotency = Some(Idempotency { key: "first".to_owned(), fingerprint: u64::MAX - 1 });
    store.apply(&ann(), ChangeSet { idempotency, ..ChangeSet::new(at(0), changes) }).await.unwrap();
    let revised = memory("lives by the lake");
    let archive_as = MemoryId(turn("").id.0);
    let id = revised.id;
    let content = "lives by another lake".to_owned();
    let changes = vec![
        Change::AddMemory(Box::new(revised)),
        Change::ReviseMemory { id, archive_as, content, metadata: None },
    ];
    store.apply(&bob(), ChangeSet::new(at(5), changes)).await.unwrap();
    let unbound = ApiKey { user: UserId::global(), scopes: Scopes::ALL, ..key(2) };
    store.apply(&UserId::global(), ChangeSet::one(at(6), Change::AddKey(Box::new(unbound)))).await.unwrap();
}
