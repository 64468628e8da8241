//! Expectations: checked together before the first change, by versions that are never used twice.

use super::change_sets::everything;
use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::UserId;
use crate::state::State;
use crate::store::{Applied, Change, ChangeSet, Expectation, Forget, Idempotency, Store};

async fn version(store: &dyn Store, user: &UserId, of: &str) -> u64 {
    store.session(user, &session(of)).await.unwrap().map_or(0, |session| session.version)
}

fn at_version(of: &str, version: u64) -> Expectation {
    Expectation::Session { id: session(of), version }
}

fn at_progress(revision: u64) -> Expectation {
    Expectation::Progress { space: "space".to_owned(), revision }
}

fn progressing(revision: u64) -> Change {
    Change::SetProgress { space: "space".to_owned(), revision }
}

fn putting(to: &str) -> Change {
    Change::PutState { session: session(to), state: Box::new(State::default()) }
}

/// A write to session `s` that expects `version`.
fn writing(version: u64) -> ChangeSet {
    let changes = vec![appending("s", vec![turn("said")]), putting("s")];
    ChangeSet::new(at(1), changes).expecting(at_version("s", version))
}

/// Applies changes that must fail because another writer was faster.
async fn refuse_stale(store: &dyn Store, user: &UserId, changes: ChangeSet) {
    let error = store.apply(user, changes).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
}

/// Changes that expect a session's version are applied if the session has it; otherwise none of them is.
pub async fn expects_the_session_that_was_read(store: &dyn Store) {
    store.apply(&ann(), writing(0)).await.unwrap();
    let first = version(store, &ann(), "s").await;
    store.apply(&ann(), writing(first)).await.unwrap();
    let second = version(store, &ann(), "s").await;
    for stale in [first, second + 1, 0, u64::MAX] {
        refuse_stale(store, &ann(), writing(stale)).await;
    }
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap().unwrap().turn_count, 2);
    assert_eq!(version(store, &ann(), "s").await, second);
}

/// A session has version 0 if and only if it does not exist.
pub async fn expects_a_session_that_does_not_exist(store: &dyn Store) {
    refuse_stale(store, &ann(), writing(1)).await;
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap(), None);
    apply(store, &ann(), putting("s")).await;
    assert!(version(store, &ann(), "s").await > 0, "also without a turn and with the default state");
    refuse_stale(store, &ann(), writing(0)).await;
}

/// Another user's session of the same name does not exist for this user, in any version.
pub async fn does_not_see_another_users_version(store: &dyn Store) {
    store.apply(&ann(), writing(0)).await.unwrap();
    let anns = version(store, &ann(), "s").await;
    refuse_stale(store, &bob(), writing(anns)).await;
    store.apply(&bob(), writing(0)).await.unwrap();
    assert_eq!(version(store, &ann(), "s").await, anns);
}

/// The version rises with each change set that appends turns or replaces the state, even by an equal state.
pub async fn raises_the_version_with_each_write(store: &dyn Store) {
    let mut last = 0;
    for change in [appending("s", vec![turn("one")]), putting("s"), putting("s"), appending("s", vec![])] {
        let shown = format!("{change:?}");
        apply(store, &ann(), change).await;
        let now = version(store, &ann(), "s").await;
        assert!(now > last, "{shown}");
        last = now;
    }
    let listed = store.sessions(&ann(), crate::store::Page::first(1)).await.unwrap();
    assert_eq!(listed[0].version, last);
}

/// No other change raises a session's version, including changes to another session and changes that fail.
pub async fn leaves_the_version_alone_otherwise(store: &dyn Store) {
    let said = append(store, &ann(), "s", &["one"]).await;
    let before = version(store, &ann(), "s").await;
    for change in [
        Change::HideTurns { ids: said, hidden: deleted(1) },
        Change::PutSummary(Box::new(summary("s", 0))),
        Change::AddMemory(Box::new(memory("known"))),
        Change::EnqueueJob(Box::new(job(Some("s"), 0))),
        progressing(3),
        appending("other", vec![turn("two")]),
        Change::Forget(Forget::Memories),
    ] {
        apply(store, &ann(), change).await;
    }
    let failing = vec![putting("s"), Change::Forget(Forget::Session(session("unknown")))];
    store.apply(&ann(), ChangeSet::new(at(1), failing)).await.unwrap_err();
    assert_eq!(version(store, &ann(), "s").await, before);
    store.apply(&ann(), writing(before)).await.unwrap();
}

/// A session that is created again after it was forgotten, alone or with its user, has a new version.
pub async fn never_uses_a_version_again(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    for _ in 0..5 {
        apply(store, &ann(), putting("s")).await;
    }
    let mut last = version(store, &ann(), "s").await;
    for forget in [Forget::Session(session("s")), Forget::User] {
        apply(store, &ann(), Change::Forget(forget)).await;
        assert_eq!(version(store, &ann(), "s").await, 0);
        apply(store, &ann(), putting("s")).await;
        let now = version(store, &ann(), "s").await;
        assert!(now > last);
        last = now;
    }
}

/// All expectations are checked before the first change: the changes of a set neither break nor fulfil its own
/// expectations.
pub async fn checks_expectations_before_the_changes(store: &dyn Store) {
    add(store, &ann(), memory("known")).await;
    let head = store.head(&ann()).await.unwrap();
    let changes = vec![
        Change::AddMemory(Box::new(memory("learned"))),
        progressing(3),
        appending("s", vec![turn("one")]),
        putting("s"),
    ];
    let mut set = ChangeSet::new(at(1), changes);
    set.expect = vec![at_version("s", 0), at_progress(0), Expectation::memories_since(head)];
    store.apply(&ann(), set).await.unwrap();
    let made_true = ChangeSet::one(at(1), progressing(9)).expecting(at_progress(9));
    refuse_stale(store, &ann(), made_true).await;
    assert_eq!(store.progress(&ann(), "space").await.unwrap(), 3);
}

/// If one expectation does not hold, of any kind and at any place among others that do, nothing is applied.
pub async fn one_broken_expectation_applies_nothing(store: &dyn Store) {
    let stale = store.head(&ann()).await.unwrap();
    append(store, &ann(), "s", &["said"]).await;
    add(store, &ann(), memory("known")).await;
    apply(store, &ann(), progressing(3)).await;
    let now = store.head(&ann()).await.unwrap();
    let good = vec![
        at_version("s", version(store, &ann(), "s").await),
        Expectation::memories_since(now),
        at_progress(3),
    ];
    let before = everything(store).await;
    for broken in [at_version("s", 0), Expectation::memories_since(stale), at_progress(2)] {
        for position in 0..=good.len() {
            let changes = vec![appending("s", vec![turn("new")]), progressing(4)];
            let mut set = ChangeSet::new(at(9), changes);
            set.expect = [&good[..position], std::slice::from_ref(&broken), &good[position..]].concat();
            refuse_stale(store, &ann(), set).await;
            assert_eq!(everything(store).await, before, "{broken:?} at {position}");
        }
    }
    assert_eq!(store.progress(&ann(), "space").await.unwrap(), 3);
    let set = ChangeSet { expect: good, ..ChangeSet::one(at(9), progressing(4)) };
    store.apply(&ann(), set).await.unwrap();
}

/// Expectations without changes are checked and change nothing.
pub async fn checks_expectations_without_changes(store: &dyn Store) {
    let only = |version| ChangeSet::new(at(1), Vec::new()).expecting(at_version("s", version));
    assert_eq!(store.apply(&ann(), only(0)).await.unwrap(), Applied::default());
    refuse_stale(store, &ann(), only(1)).await;
    assert!(store.users(crate::store::Page::first(1)).await.unwrap().is_empty());
}

/// A call that is repeated under its idempotency key gets its first answer, even if its expectations no longer hold.
pub async fn replays_without_checking_expectations(store: &dyn Store) {
    let idempotency = Some(Idempotency { key: "key".to_owned(), fingerprint: 1 });
    let set = ChangeSet { idempotency, ..writing(0) };
    let first = store.apply(&ann(), set.clone()).await.unwrap();
    let again = store.apply(&ann(), set).await.unwrap();
    assert_eq!(again, Applied { replayed: true, ..first });
}
