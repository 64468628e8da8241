//! A whole store is moved into another one, and what differs afterwards is found.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use strata_core::job::JobOutcome;
use strata_core::store::conformance::fixture::{
    add, ann, append, apply, at, deleted, job, key, lease, memory, summary,
};
use strata_core::store::{Change, ChangeSet, InMemoryStore, MemoryQuery, MemorySelect};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ErrorKind, ItemId, Store, TurnId};
use strata_import::{Keys, transfer};

const MODEL: &str = "model";

fn vector(turn: TurnId, components: &[f32]) -> ItemVector {
    ItemVector { item: ItemId::Turn(turn), model: MODEL.to_owned(), vector: Vector::quantise(components) }
}

async fn moved(from: &dyn Store, to: &dyn Store) -> strata_core::Result<(u64, u64)> {
    let moved = transfer(from, to, &[MODEL.to_owned()], Keys::Copy, |_, _| ()).await?;
    Ok((moved.vectors, moved.keys))
}

#[tokio::test]
async fn vectors_and_keys_are_compared_too() {
    let (from, to) = (InMemoryStore::new(), InMemoryStore::new());
    let turns = append(&from, &ann(), "s", &["the kiln is hot", "the glaze is blue", "it is late"]).await;
    add(&from, &ann(), memory("the user fires clay")).await;
    let vectors = vec![vector(turns[0], &[1.0, 0.5]), vector(turns[1], &[0.2, 1.0])];
    apply(&from, &ann(), Change::PutVectors(vectors.clone())).await;
    let kept = key(3);
    apply(&from, &ann(), Change::AddKey(Box::new(kept.clone()))).await;
    assert_eq!(moved(&from, &to).await.unwrap(), (2, 1));

    // A vector that was made anew in the target is the source's again after the next run.
    apply(&to, &ann(), Change::PutVectors(vec![vector(turns[1], &[-1.0, 0.1])])).await;
    assert_eq!(moved(&from, &to).await.unwrap(), (2, 1));
    let mut stored: Vec<ItemVector> =
        to.vectors_since(&ann(), MODEL, 0).await.unwrap().into_iter().map(|stored| stored.vector).collect();
    stored.sort_by_key(|stored| vectors.iter().position(|vector| vector.item == stored.item));
    assert_eq!(stored, vectors);

    // One that only the target has, and a key that was revoked there, are no copies.
    apply(&to, &ann(), Change::PutVectors(vec![vector(turns[2], &[1.0, 1.0])])).await;
    let error = moved(&from, &to).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("vectors"), "{error}");

    let to = InMemoryStore::new();
    moved(&from, &to).await.unwrap();
    to.apply(&ann(), ChangeSet::one(at(9), Change::RevokeKey { id: kept.id })).await.unwrap();
    let error = moved(&from, &to).await.unwrap_err();
    assert!(error.message().contains(&kept.id.to_string()), "{error}");
}

#[tokio::test]
async fn vectors_of_other_models_are_left_out() {
    let (from, to) = (InMemoryStore::new(), InMemoryStore::new());
    let turns = append(&from, &ann(), "s", &["the glaze is green"]).await;
    let other = ItemVector { model: "another".to_owned(), ..vector(turns[0], &[0.1, 1.0]) };
    apply(&from, &ann(), Change::PutVectors(vec![vector(turns[0], &[1.0, 0.1]), other])).await;
    assert_eq!(moved(&from, &to).await.unwrap(), (1, 0));
    assert!(to.vectors_since(&ann(), "another", 0).await.unwrap().is_empty());
}

/// Copies a store of one turn, memory, summary and job, lets `change` alter the copy, and expects that the next run says what
/// differs, although there are as many of each.
async fn check_found(differs: &str, change: impl AsyncFn(&InMemoryStore, TurnId)) {
    let (from, to) = (InMemoryStore::new(), InMemoryStore::new());
    let turns = append(&from, &ann(), "s", &["the kiln is cold"]).await;
    add(&from, &ann(), memory("the user fires bricks")).await;
    apply(&from, &ann(), Change::PutSummary(Box::new(summary("s", 1)))).await;
    let waiting = strata_core::job::Job { user: ann(), ..job(Some("s"), 0) };
    apply(&from, &ann(), Change::EnqueueJob(Box::new(waiting))).await;
    moved(&from, &to).await.unwrap();
    change(&to, turns[0]).await;
    let error = moved(&from, &to).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains(&format!("the {differs} of user `ann` differ")), "{error}");
}

#[tokio::test]
async fn a_copy_that_was_altered_is_found_by_its_digest() {
    check_found("turns", async |to, turn| {
        apply(to, &ann(), Change::HideTurns { ids: vec![turn], hidden: deleted(3) }).await;
    })
    .await;
    check_found("memories", async |to, _| {
        let all = to.memories(&ann(), &MemoryQuery::new(MemorySelect::All)).await.unwrap();
        apply(to, &ann(), Change::HideMemory { id: all[0].id, hidden: deleted(3) }).await;
    })
    .await;
    check_found("summaries", async |to, _| {
        let query = strata_core::store::SummaryQuery {
            session: strata_core::store::conformance::fixture::session("s"),
            strategy: None,
            status: None,
            limit: 9,
        };
        let mut altered = to.summaries(&ann(), &query).await.unwrap().remove(0);
        altered.text.push_str(" and more");
        apply(to, &ann(), Change::PutSummary(Box::new(altered))).await;
    })
    .await;
    check_found("jobs", async |to, _| {
        let leased = to.lease_job(&lease(1, 99)).await.unwrap().unwrap();
        let lease = leased.lease.clone().unwrap().id;
        apply(to, &ann(), Change::FinishJob { id: leased.id, lease, outcome: JobOutcome::done() }).await;
    })
    .await;
}
