//! Forgetting: data is destroyed together with everything that is derived from it alone, and counted.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{ItemId, MemoryId, TurnId};
use crate::memory::Memory;
use crate::metric::RequestMetric;
use crate::state::State;
use crate::store::{
    Applied, Change, ChangeSet, Forget, Idempotency, JobQuery, KeyQuery, MemorySelect, MetricQuery, Page,
    Removed, SESSION_PURPOSES, Segment, Store, SummaryQuery, TurnQuery, session_space,
};
use crate::vector::{ItemVector, Vector};

async fn forget(store: &dyn Store, what: Forget) -> Removed {
    apply(store, &ann(), Change::Forget(what)).await.removed
}

fn bound(content: &str, to: &str) -> Memory {
    Memory { session: Some(session(to)), ..memory(content) }
}

async fn embed(store: &dyn Store, items: &[ItemId]) {
    let vectors = items.iter().map(|item| ItemVector {
        item: *item,
        model: "model".to_owned(),
        vector: Vector::quantise(&[1.0]),
    });
    apply(store, &ann(), Change::PutVectors(vectors.collect())).await;
}

/// A session is destroyed with its turns, state, summaries, jobs, request rows, vectors and the memories bound to it.
pub async fn destroys_a_session_with_all_that_hangs_on_it(store: &dyn Store) {
    let gone = append(store, &ann(), "gone", &["gone one", "gone two"]).await;
    let kept = append(store, &ann(), "kept", &["kept one"]).await;
    let put = Change::PutState { session: session("gone"), state: Box::new(State::default()) };
    apply(store, &ann(), put).await;
    let (gone_summary, kept_summary) = (summary("gone", 1), summary("kept", 1));
    let items = [
        ItemId::Turn(gone[0]),
        ItemId::Summary(gone_summary.id),
        ItemId::Memory(add(store, &ann(), bound("gone knowledge", "gone")).await),
    ];
    let kept_items = [
        ItemId::Turn(kept[0]),
        ItemId::Summary(kept_summary.id),
        ItemId::Memory(add(store, &ann(), bound("kept knowledge", "kept")).await),
        ItemId::Memory(add(store, &ann(), memory("kept unbound")).await),
    ];
    for summary in [gone_summary, kept_summary] {
        apply(store, &ann(), Change::PutSummary(Box::new(summary))).await;
    }
    embed(store, &items).await;
    embed(store, &kept_items).await;
    enqueue(store, vec![job(Some("gone"), 0), job(Some("kept"), 50), job(None, 60)]).await;
    let leased = store.lease_job(&lease(1, 99)).await.unwrap().unwrap();
    assert_eq!(leased.session, Some(session("gone")));
    for name in ["gone", "kept"] {
        let asked = RequestMetric { session: Some(session(name)), ..request(1) };
        apply(store, &ann(), Change::AddRequest(Box::new(asked))).await;
    }

    let removed = forget(store, Forget::Session(session("gone"))).await;
    assert_eq!(removed, Removed { sessions: 1, turns: 2, memories: 1, summaries: 1 });
    assert_eq!(store.session(&ann(), &session("gone")).await.unwrap(), None);
    assert!(all_turns(store, &ann(), "gone").await.is_empty());
    assert!(store.turns(&ann(), &TurnQuery::Ids(gone)).await.unwrap().is_empty());
    let summaries = SummaryQuery { session: session("gone"), strategy: None, status: None, limit: 9 };
    assert!(store.summaries(&ann(), &summaries).await.unwrap().is_empty());
    assert!(found(store, &ann(), &words("gone")).await.is_empty());
    assert!(found(store, &ann(), &similar("gone", 0.9)).await.is_empty());
    assert!(vectors_of(store, &ann(), "model", &items).await.is_empty());
    let jobs = store.jobs(&ann(), &JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.session.clone()).collect::<Vec<_>>(), [None, Some(session("kept"))]);
    let requests = store.requests(&ann(), &MetricQuery { limit: 9, ..MetricQuery::default() }).await.unwrap();
    assert_eq!(requests.iter().map(|row| row.session.clone()).collect::<Vec<_>>(), [Some(session("kept"))]);

    assert_eq!(all_turns(store, &ann(), "kept").await.len(), 1);
    assert_eq!(select(store, &ann(), MemorySelect::All).await.len(), 2);
    assert_eq!(vectors_of(store, &ann(), "model", &kept_items).await.len(), 4);
    assert_eq!(found(store, &ann(), &words("kept")).await.len(), 3);
}

/// A session of the same name begins at 0 again, without any data of the former one; the ids of its turns are free.
pub async fn begins_a_forgotten_session_anew(store: &dyn Store) {
    let first = turn("former words");
    append_turns(store, &ann(), "s", vec![first.clone(), turn("two")]).await;
    forget(store, Forget::Session(session("s"))).await;
    let again = crate::turn::NewTurn { content: "new words".to_owned(), ..first.clone() };
    let applied = apply_at(store, &ann(), 9, appending("s", vec![again])).await;
    assert_eq!(applied.turns[0].seq, 0);
    let read = store.session(&ann(), &session("s")).await.unwrap().unwrap();
    assert_eq!((read.turn_count, read.created_at), (1, at(9)));
    assert_eq!(found(store, &ann(), &words("words former")).await, ["new words"]);
}

/// A memory is destroyed with all former statements that it replaced, directly or through others.
pub async fn destroys_a_memory_with_its_former_statements(store: &dyn Store) {
    let oldest = add(store, &ann(), memory("oldest")).await;
    let id = add(store, &ann(), memory("second")).await;
    apply(store, &ann(), Change::CloseMemory { id: oldest, valid_to: at(1), replaced_by: Some(id) }).await;
    let archive_as = MemoryId(fresh());
    let change = Change::ReviseMemory { id, archive_as, content: "third".to_owned(), metadata: None };
    apply_at(store, &ann(), 2, change).await;
    let other = add(store, &ann(), memory("other")).await;
    let items = [ItemId::Memory(oldest), ItemId::Memory(id), ItemId::Memory(archive_as)];
    embed(store, &items).await;
    let removed = forget(store, Forget::Memory(id)).await;
    assert_eq!(removed, Removed { memories: 3, ..Removed::default() });
    let left = select(store, &ann(), MemorySelect::All).await;
    assert_eq!(left.iter().map(|memory| memory.id).collect::<Vec<_>>(), [other]);
    assert!(vectors_of(store, &ann(), "model", &items).await.is_empty());
}

/// The memory that replaced a forgotten one stays, and so do unrelated memories.
pub async fn leaves_what_replaced_a_forgotten_memory(store: &dyn Store) {
    let old = add(store, &ann(), memory("old")).await;
    let beside = add(store, &ann(), memory("beside")).await;
    let new = add(store, &ann(), memory("new")).await;
    for id in [old, beside] {
        apply(store, &ann(), Change::CloseMemory { id, valid_to: at(1), replaced_by: Some(new) }).await;
    }
    assert_eq!(forget(store, Forget::Memory(old)).await.memories, 1);
    let history = select(store, &ann(), MemorySelect::History(new)).await;
    assert_eq!(history.iter().map(|memory| memory.id).collect::<Vec<_>>(), [beside, new]);
}

/// All memories are destroyed, in any state and of any session; turns and sessions stay.
pub async fn destroys_all_memories_and_leaves_turns(store: &dyn Store) {
    append(store, &ann(), "s", &["tea was mentioned"]).await;
    apply(store, &ann(), Change::PutSummary(Box::new(summary("s", 0)))).await;
    add(store, &ann(), bound("likes tea", "s")).await;
    add(store, &ann(), Memory { valid_to: Some(at(1)), ..memory("closed tea") }).await;
    add(store, &ann(), Memory { hidden: deleted(1), ..memory("hidden tea") }).await;
    let removed = forget(store, Forget::Memories).await;
    assert_eq!(removed, Removed { memories: 3, ..Removed::default() });
    assert!(select(store, &ann(), MemorySelect::All).await.is_empty());
    assert_eq!(found(store, &ann(), &words("tea")).await, ["tea was mentioned"]);
}

/// No data of a forgotten user is left, idempotency keys of earlier writes included, and the user is no longer listed.
pub async fn destroys_a_user(store: &dyn Store) {
    let key = Some(Idempotency { key: "key".to_owned(), fingerprint: 1 });
    let keyed = |turns| {
        let changes = ChangeSet::one(at(0), appending("s", turns));
        ChangeSet { idempotency: key.clone(), ..changes }
    };
    store.apply(&ann(), keyed(vec![turn("one"), turn("two")])).await.unwrap();
    let three = ItemId::Turn(append(store, &ann(), "t", &["three"]).await[0]);
    apply(store, &ann(), Change::PutSummary(Box::new(summary("s", 1)))).await;
    let known = ItemId::Memory(add(store, &ann(), memory("known")).await);
    embed(store, &[three, known]).await;
    let traced = RequestMetric { trace: Some(json!({ "question": "known" })), ..request(1) };
    apply(store, &ann(), Change::AddRequest(Box::new(traced))).await;
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let mut state = State::default();
    state.observed.turns = 1;
    apply(store, &ann(), Change::PutState { session: session("s"), state: Box::new(state) }).await;
    apply(store, &ann(), Change::AddKey(Box::new(super::fixture::key(1)))).await;
    apply(store, &ann(), Change::SetProgress { space: "space".to_owned(), revision: 2 }).await;
    let head = store.head(&ann()).await.unwrap();
    let segment = Segment { space: "words".to_owned(), first: 1, last: 2, bytes: vec![7] };
    apply(store, &ann(), Change::PutSegment { segment, epoch: head.epoch }).await;

    let removed = forget(store, Forget::User).await;
    assert_eq!(removed, Removed { sessions: 2, turns: 3, memories: 1, summaries: 1 });
    assert_eq!(store.progress(&ann(), "space").await.unwrap(), 0);
    assert_eq!(store.progress(&ann(), "words").await.unwrap(), 0);
    assert!(store.segments(&ann(), "words", 0).await.unwrap().is_empty());
    let keys = KeyQuery { id: None, user: None, revoked: true, page: Page::first(9) };
    assert!(store.keys(&keys).await.unwrap().is_empty());
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap(), None);
    assert!(store.users(Page::first(9)).await.unwrap().is_empty());
    assert!(store.sessions(&ann(), Page::first(9)).await.unwrap().is_empty());
    assert!(select(store, &ann(), MemorySelect::All).await.is_empty());
    assert!(found(store, &ann(), &words("one two three known")).await.is_empty());
    assert!(store.jobs(&ann(), &JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap().is_empty());
    let requests = MetricQuery { limit: 9, ..MetricQuery::default() };
    assert!(store.requests(&ann(), &requests).await.unwrap().is_empty());
    assert_eq!(store.lease_job(&lease(9, 10)).await.unwrap(), None);
    assert!(store.vectors_since(&ann(), "model", 0).await.unwrap().is_empty());

    let applied = store.apply(&ann(), keyed(vec![turn("anew")])).await.unwrap();
    assert!(!applied.replayed);
    assert_eq!(applied.turns[0].seq, 0);
}

/// A session that has only memories bound to it can be forgotten too.
pub async fn forgets_a_session_that_has_only_memories(store: &dyn Store) {
    add(store, &ann(), bound("early", "s")).await;
    let removed = forget(store, Forget::Session(session("s"))).await;
    assert_eq!(removed, Removed { memories: 1, ..Removed::default() });
}

/// A session or memory that does not exist cannot be forgotten.
pub async fn refuses_to_forget_what_is_unknown(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    for what in [Forget::Session(session("never")), Forget::Memory(MemoryId(fresh()))] {
        assert_eq!(refuse(store, &ann(), Change::Forget(what)).await, ErrorKind::NotFound);
    }
}

/// Forgetting all memories or the user removes nothing if there is nothing.
pub async fn forgets_nothing_where_there_is_nothing(store: &dyn Store) {
    for what in [Forget::Memories, Forget::User] {
        assert_eq!(apply(store, &ann(), Change::Forget(what)).await, Applied::default());
    }
    assert!(store.users(Page::first(9)).await.unwrap().is_empty());
}

/// The epoch rises when data is destroyed and continues to rise for a user who comes back; otherwise it stays.
pub async fn raises_the_epoch(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    append(store, &ann(), "t", &["one"]).await;
    let id = add(store, &ann(), memory("one")).await;
    add(store, &ann(), memory("two")).await;
    apply(store, &ann(), Change::HideMemory { id, hidden: deleted(1) }).await;
    assert_eq!(store.head(&ann()).await.unwrap().epoch, 0);
    let mut last = 0;
    for what in [Forget::Memory(id), Forget::Memories, Forget::Session(session("s")), Forget::User] {
        let before = store.head(&ann()).await.unwrap();
        forget(store, what.clone()).await;
        let head = store.head(&ann()).await.unwrap();
        assert!(head.epoch > last && head.revision > before.revision, "{what:?}");
        last = head.epoch;
    }
    append(store, &ann(), "s", &["back"]).await;
    assert_eq!(store.head(&ann()).await.unwrap().epoch, last);
}

/// One change set that destroys several things answers with their sum.
pub async fn adds_up_what_one_change_set_destroyed(store: &dyn Store) {
    append(store, &ann(), "s", &["one", "two"]).await;
    append(store, &ann(), "t", &["one"]).await;
    add(store, &ann(), memory("one")).await;
    let changes = vec![
        Change::Forget(Forget::Session(session("s"))),
        Change::Forget(Forget::Memories),
        Change::Forget(Forget::Session(session("t"))),
    ];
    let applied = store.apply(&ann(), ChangeSet::new(at(0), changes)).await.unwrap();
    assert_eq!(applied.removed, Removed { sessions: 2, turns: 3, memories: 1, summaries: 0 });
}

/// Forgetting a session also destroys the memories that only its turns state, of any session, and the progress of its
/// own spaces.
pub async fn destroys_what_only_a_session_says(store: &dyn Store) {
    let gone = append(store, &ann(), "gone", &["one", "two"]).await;
    let kept = append(store, &ann(), "kept", &["three"]).await;
    let said = |content: &str, turns: Vec<TurnId>| Memory { source_turns: turns, ..memory(content) };
    add(store, &ann(), said("only here", gone.clone())).await;
    let elsewhere = Memory { session: Some(session("kept")), ..said("bound elsewhere", vec![gone[1]]) };
    add(store, &ann(), elsewhere).await;
    add(store, &ann(), said("in both", vec![gone[0], kept[0]])).await;
    add(store, &ann(), said("only there", kept.clone())).await;
    add(store, &ann(), said("of unknown turns", vec![TurnId(fresh())])).await;
    add(store, &ann(), memory("by hand")).await;
    for purpose in SESSION_PURPOSES {
        for name in ["gone", "kept"] {
            let space = session_space(purpose, &session(name));
            apply(store, &ann(), Change::SetProgress { space, revision: 7 }).await;
        }
    }
    let removed = forget(store, Forget::Session(session("gone"))).await;
    assert_eq!(removed, Removed { sessions: 1, turns: 2, memories: 2, summaries: 0 });
    let mut left: Vec<String> =
        select(store, &ann(), MemorySelect::All).await.into_iter().map(|memory| memory.content).collect();
    left.sort();
    assert_eq!(left, ["by hand", "in both", "of unknown turns", "only there"]);
    assert!(found(store, &ann(), &words("here elsewhere")).await.is_empty());
    // A memory that both sessions state has lost one of its sources.
    let again = append(store, &ann(), "again", &["three"]).await;
    let both = select(store, &ann(), MemorySelect::All).await;
    let both = both.iter().find(|memory| memory.content == "in both").unwrap().id;
    apply(store, &ann(), Change::ConfirmMemory { id: both, turns: again }).await;
    assert_eq!(forget(store, Forget::Session(session("again"))).await.memories, 0);
    for purpose in SESSION_PURPOSES {
        let left = [("gone", 0), ("kept", 7)];
        for (name, expected) in left {
            let space = session_space(purpose, &session(name));
            assert_eq!(store.progress(&ann(), &space).await.unwrap(), expected, "{space}");
        }
    }
    assert_eq!(forget(store, Forget::Session(session("kept"))).await.memories, 2);
    let left = select(store, &ann(), MemorySelect::All).await;
    assert_eq!(left.len(), 2, "{left:?}");
}
