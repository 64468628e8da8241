//! Change sets: in order, all or nothing, once per key; and the revision that tells readers about them.

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{ItemId, MemoryId};
use crate::job::JobOutcome;
use crate::memory::MemoryNotes;
use crate::state::State;
use crate::store::{
    Applied, Change, ChangeSet, CheckDepth, Forget, Head, Idempotency, JobQuery, MemorySelect, MetricQuery,
    Page, Store, SummaryQuery,
};
use crate::summary::{Summary, SummaryStatus};
use crate::vector::{ItemVector, Vector};

/// Changes are applied in their order: a later one builds on an earlier one.
pub async fn applies_changes_in_their_order(store: &dyn Store) {
    let (said, known) = (turn("said"), memory("known"));
    let (turn_id, memory_id) = (said.id, known.id);
    let changes = vec![
        appending("s", vec![said]),
        Change::HideTurns { ids: vec![turn_id], hidden: deleted(1) },
        Change::PutSummary(Box::new(summary("s", 0))),
        Change::AddMemory(Box::new(known)),
        Change::CloseMemory { id: memory_id, valid_to: at(1), replaced_by: None },
        appending("gone", vec![turn("short-lived")]),
        Change::Forget(Forget::Session(session("gone"))),
    ];
    let applied = store.apply(&ann(), ChangeSet::new(at(1), changes)).await.unwrap();
    assert_eq!((applied.turns.len(), applied.removed.turns), (2, 1));
    assert_eq!(all_turns(store, &ann(), "s").await[0].hidden, deleted(1));
    assert_eq!(one(store, &ann(), memory_id).await.valid_to, Some(at(1)));
    assert_eq!(store.session(&ann(), &session("gone")).await.unwrap(), None);
}

/// An empty change set succeeds.
pub async fn applies_an_empty_change_set(store: &dyn Store) {
    let applied = store.apply(&ann(), ChangeSet::new(at(0), Vec::new())).await.unwrap();
    assert_eq!(applied, Applied::default());
    let applied = store.apply(&ann(), ChangeSet::one(at(0), Change::PutVectors(Vec::new()))).await.unwrap();
    assert_eq!(applied, Applied::default());
}

/// All readable data of a user.
#[derive(Debug, PartialEq)]
pub(super) struct Everything(Vec<String>);

pub(super) async fn everything(store: &dyn Store) -> Everything {
    let user = ann();
    let sessions = store.sessions(&user, Page::first(100)).await.unwrap();
    let mut all = vec![format!("{:?}", store.head(&user).await.unwrap()), format!("{sessions:?}")];
    for session in &sessions {
        let turns = all_turns(store, &user, session.id.as_str()).await;
        let items: Vec<_> = turns.iter().map(|turn| ItemId::Turn(turn.id)).collect();
        let query =
            SummaryQuery { session: session.id.clone(), strategy: None, status: None, limit: u32::MAX };
        all.push(format!("{turns:?}"));
        all.push(format!("{:?}", vectors_of(store, &user, "model", &items).await));
        all.push(format!("{:?}", store.summaries(&user, &query).await.unwrap()));
    }
    all.push(format!("{:?}", select(store, &user, MemorySelect::All).await));
    let jobs = JobQuery { limit: u32::MAX, ..JobQuery::default() };
    all.push(format!("{:?}", store.jobs(&user, &jobs).await.unwrap()));
    let requests = MetricQuery { limit: u32::MAX, ..MetricQuery::default() };
    all.push(format!("{:?}", store.requests(&user, &requests).await.unwrap()));
    for text in ["said", "known", "new"] {
        all.push(format!("{:?}", found_sorted(store, &user, &words(text)).await));
    }
    Everything(all)
}

/// If one change fails, nothing is applied, whether it is the first, in the middle or the last.
pub async fn a_failing_change_undoes_all_wherever_it_stands(store: &dyn Store) {
    append(store, &ann(), "s", &["said one", "said two"]).await;
    add(store, &ann(), memory("known before")).await;
    let before = everything(store).await;
    for position in 0..=3 {
        let mut changes = vec![
            appending("s", vec![turn("new one")]),
            Change::AddMemory(Box::new(memory("new knowledge"))),
            appending("t", vec![turn("new two"), turn("new three")]),
        ];
        let failing = Change::HideMemory { id: MemoryId(fresh()), hidden: None };
        changes.insert(position, failing);
        let result = store.apply(&ann(), ChangeSet::new(at(9), changes)).await;
        assert_eq!(kind(result), ErrorKind::NotFound);
        assert_eq!(everything(store).await, before, "the failing change stood at {position}");
    }
    let applied = apply(store, &ann(), appending("s", vec![turn("two")])).await;
    assert_eq!(applied.turns[0].seq, 2, "a place was used up");
}

/// Each kind of change is undone if a later change fails.
pub async fn a_failing_change_undoes_every_kind_of_change(store: &dyn Store) {
    let ids = append(store, &ann(), "s", &["said one", "said two"]).await;
    let known = add(store, &ann(), memory("known before")).await;
    let stored = summary("s", 0);
    apply(store, &ann(), Change::PutSummary(Box::new(stored.clone()))).await;
    let item = ItemId::Turn(ids[0]);
    let vector =
        |value| ItemVector { item, model: "model".to_owned(), vector: Vector::quantise(&[value, 1.0]) };
    apply(store, &ann(), Change::PutVectors(vec![vector(0.0)])).await;
    apply(store, &ann(), Change::AddRequest(Box::new(request(1)))).await;
    enqueue(store, vec![job(Some("s"), 0), job(Some("t"), 50)]).await;
    let leased = store.lease_job(&lease(1, 2)).await.unwrap().unwrap();
    let before = everything(store).await;
    let moved = Summary { text: "new".to_owned(), status: SummaryStatus::Failed, ..stored };
    let done =
        Change::FinishJob { id: leased.id, lease: leased.lease.unwrap().id, outcome: JobOutcome::done() };
    for change in [
        appending("s", vec![turn("new")]),
        Change::HideTurns { ids: ids.clone(), hidden: deleted(1) },
        Change::PutState { session: session("s"), state: Box::new(State::default()) },
        Change::PutState { session: session("new"), state: Box::new(State::default()) },
        Change::PutSummary(Box::new(moved)),
        Change::PutSummary(Box::new(Summary { status: SummaryStatus::Processing, ..summary("s", 1) })),
        Change::AddMemory(Box::new(memory("new"))),
        Change::ReviseMemory {
            id: known,
            archive_as: MemoryId(fresh()),
            content: "new".to_owned(),
            metadata: None,
        },
        Change::CloseMemory { id: known, valid_to: at(1), replaced_by: None },
        Change::HideMemory { id: known, hidden: deleted(1) },
        Change::NoteMemory {
            id: known,
            notes: MemoryNotes { restored_at: Some(at(1)), ..MemoryNotes::default() },
        },
        Change::ConfirmMemory { id: known, turns: ids.clone() },
        Change::PutVectors(vec![vector(1.0)]),
        Change::EnqueueJob(Box::new(job(None, 3))),
        Change::EnqueueOnce(Box::new(job(None, 3))),
        Change::EnqueueOnce(Box::new(job(Some("t"), 3))),
        done,
        Change::AddRequest(Box::new(request(2))),
        Change::PruneRequests { before: at(99) },
        Change::PruneIdempotency { before: at(99) },
        Change::Forget(Forget::Session(session("s"))),
        Change::Forget(Forget::Memory(known)),
        Change::Forget(Forget::Memories),
        Change::Forget(Forget::User),
    ] {
        let shown = format!("{change:?}");
        let failing = Change::HideMemory { id: MemoryId(fresh()), hidden: None };
        let result = store.apply(&ann(), ChangeSet::new(at(9), vec![change, failing])).await;
        assert_eq!(kind(result), ErrorKind::NotFound, "{shown}");
        assert_eq!(everything(store).await, before, "{shown}");
    }
    let health = store.check(CheckDepth::Thorough).await.unwrap();
    assert_eq!(health.problems, Vec::<String>::new());
}

fn keyed(key: &str, fingerprint: u64, changes: Vec<Change>) -> ChangeSet {
    let idempotency = Some(Idempotency { key: key.to_owned(), fingerprint });
    ChangeSet { idempotency, ..ChangeSet::new(at(0), changes) }
}

/// With a known key nothing is applied; the first answer is returned again, marked as replayed.
pub async fn replays_the_first_answer_for_a_known_key(store: &dyn Store) {
    let changes = vec![appending("s", vec![turn("one"), turn("two")])];
    let first = store.apply(&ann(), keyed("key 🦀", u64::MAX, changes)).await.unwrap();
    assert!(!first.replayed);
    append(store, &ann(), "s", &["three"]).await;
    let head = store.head(&ann()).await.unwrap();
    for _ in 0..2 {
        // The client's second attempt makes new ids.
        let changes = vec![appending("s", vec![turn("one"), turn("two")])];
        let again = store.apply(&ann(), keyed("key 🦀", u64::MAX, changes)).await.unwrap();
        assert_eq!(again, Applied { replayed: true, ..first.clone() });
    }
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 3);
    assert_eq!(store.head(&ann()).await.unwrap(), head);
}

/// The same key with another fingerprint is a conflict and applies nothing.
pub async fn refuses_a_known_key_with_another_fingerprint(store: &dyn Store) {
    store.apply(&ann(), keyed("key", 1, vec![appending("s", vec![turn("one")])])).await.unwrap();
    let result = store.apply(&ann(), keyed("key", 2, vec![appending("s", vec![turn("two")])])).await;
    assert_eq!(kind(result), ErrorKind::Conflict);
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 1);
    store.apply(&ann(), keyed("Key", 2, vec![appending("s", vec![turn("two")])])).await.unwrap();
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 2);
}

/// Answers from before the moment are removed, so that their keys can be used again; others stay, and so do other
/// users'.
pub async fn prunes_old_answers(store: &dyn Store) {
    let writing = |second, fingerprint| {
        let changes = vec![appending("s", vec![turn("one")])];
        ChangeSet { at: at(second), ..keyed(&format!("key {second}"), fingerprint, changes) }
    };
    for (user, second) in [(ann(), 1), (ann(), 2), (bob(), 1)] {
        store.apply(&user, writing(second, 1)).await.unwrap();
    }
    apply(store, &ann(), Change::PruneIdempotency { before: at(2) }).await;
    assert!(!store.apply(&ann(), writing(1, 7)).await.unwrap().replayed, "another request under the old key");
    assert!(store.apply(&ann(), writing(2, 1)).await.unwrap().replayed);
    assert!(store.apply(&bob(), writing(1, 1)).await.unwrap().replayed);
}

/// A change set that failed leaves no trace: its key can be used again.
pub async fn a_failed_change_set_does_not_use_its_key_up(store: &dyn Store) {
    let failing = Change::HideMemory { id: MemoryId(fresh()), hidden: None };
    let changes = vec![appending("s", vec![turn("one")]), failing];
    assert_eq!(kind(store.apply(&ann(), keyed("key", 1, changes)).await), ErrorKind::NotFound);
    let applied =
        store.apply(&ann(), keyed("key", 2, vec![appending("s", vec![turn("one")])])).await.unwrap();
    assert!(!applied.replayed);
    assert_eq!(applied.turns[0].seq, 0);
}

/// Two users may use the same key.
pub async fn keys_belong_to_their_user(store: &dyn Store) {
    store.apply(&ann(), keyed("key", 1, vec![appending("s", vec![turn("one")])])).await.unwrap();
    let applied =
        store.apply(&bob(), keyed("key", 2, vec![appending("s", vec![turn("one")])])).await.unwrap();
    assert!(!applied.replayed);
}

/// Each change set that changes what recall can see raises the user's revision by at least one.
pub async fn raises_the_revision_with_what_recall_can_see(store: &dyn Store) {
    let (said, known) = (turn("said"), memory("known"));
    let (turn_id, memory_id) = (said.id, known.id);
    let mut last = store.head(&ann()).await.unwrap();
    assert_eq!(last, Head::default());
    for change in [
        appending("s", vec![said]),
        Change::HideTurns { ids: vec![turn_id], hidden: deleted(1) },
        Change::HideTurns { ids: vec![turn_id], hidden: None },
        Change::PutSummary(Box::new(summary("s", 0))),
        Change::AddMemory(Box::new(known)),
        Change::ReviseMemory {
            id: memory_id,
            archive_as: MemoryId(fresh()),
            content: "known better".to_owned(),
            metadata: None,
        },
        Change::HideMemory { id: memory_id, hidden: deleted(1) },
        Change::HideMemory { id: memory_id, hidden: None },
        Change::CloseMemory { id: memory_id, valid_to: at(1), replaced_by: None },
        Change::Forget(Forget::Memory(memory_id)),
        Change::Forget(Forget::Session(session("s"))),
    ] {
        let shown = format!("{change:?}");
        apply(store, &ann(), change).await;
        let head = store.head(&ann()).await.unwrap();
        assert!(head.revision > last.revision, "{shown}");
        last = head;
    }
    append(store, &bob(), "s", &["said"]).await;
    assert_eq!(store.head(&ann()).await.unwrap(), last, "another user's write counts for nothing here");
}

/// A user that does not exist has a head of zeros, even after a change set that failed.
pub async fn leaves_the_head_of_an_unknown_user_at_zero(store: &dyn Store) {
    let failing = Change::HideMemory { id: MemoryId(fresh()), hidden: None };
    let changes = ChangeSet::new(at(0), vec![appending("s", vec![turn("one")]), failing]);
    assert_eq!(kind(store.apply(&ann(), changes).await), ErrorKind::NotFound);
    assert_eq!(store.head(&ann()).await.unwrap(), Head::default());
    assert!(store.users(Page::first(10)).await.unwrap().is_empty());
}
