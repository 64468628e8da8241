//! Isolation: a user neither sees nor changes data of another user.

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{ItemId, JobId, LeaseId, MemoryId, RequestId, TurnId, UserId};
use crate::job::{Job, JobOutcome};
use crate::memory::Memory;
use crate::store::{
    Change, ChangeSet, Forget, Growth, Head, JobQuery, MemoryQuery, MemorySelect, MetricQuery, Page, Removed,
    Segment, Store, SummaryQuery, TurnQuery,
};
use crate::turn::NewTurn;
use crate::vector::{ItemVector, Vector};

/// The ids of ann's data of each kind.
struct Anns {
    turn: TurnId,
    memory: MemoryId,
    job: JobId,
    lease: LeaseId,
    request: RequestId,
}

async fn fill(store: &dyn Store) -> Anns {
    let turn = append(store, &ann(), "s", &["ann lives in Hangzhou 西湖"]).await[0];
    let memory = add(store, &ann(), memory("ann's secret is Hangzhou")).await;
    let asked = request(1);
    let request = asked.id;
    apply(store, &ann(), Change::PutSummary(Box::new(summary("s", 0)))).await;
    apply(store, &ann(), Change::AddRequest(Box::new(asked))).await;
    apply(store, &ann(), Change::PutVectors(vec![vector(ItemId::Turn(turn))])).await;
    let segment = Segment { space: "space".to_owned(), first: 1, last: 2, bytes: vec![0, 255] };
    apply(store, &ann(), Change::PutSegment { segment, epoch: 0 }).await;
    enqueue(store, vec![job(Some("s"), 0)]).await;
    let leased = store.lease_job(&lease(1, 100)).await.unwrap().unwrap();
    Anns { turn, memory, job: leased.id, lease: leased.lease.unwrap().id, request }
}

fn vector(item: ItemId) -> ItemVector {
    ItemVector { item, model: "model".to_owned(), vector: Vector::quantise(&[1.0, 2.0]) }
}

/// The number of reads in [`seen_by`].
const READS: usize = 27;

/// All of ann's data that a user sees, by every read that names a user.
async fn seen_by(store: &dyn Store, user: &UserId, anns: &Anns) -> Vec<String> {
    let mut seen = Vec::new();
    let mut see = |what: &str, count: usize| {
        if count > 0 {
            seen.push(what.to_owned());
        }
    };
    see("head", usize::from(store.head(user).await.unwrap() != Head::default()));
    see("session", usize::from(store.session(user, &session("s")).await.unwrap().is_some()));
    see("growth", usize::from(store.growth(user, at(0)).await.unwrap() != Growth::default()));
    see("sessions", store.sessions(user, Page::first(9)).await.unwrap().len());
    see("range", all_turns(store, user, "s").await.len());
    see("ids", store.turns(user, &TurnQuery::Ids(vec![anns.turn])).await.unwrap().len());
    let recent = TurnQuery::recent(None, 9);
    see("recent", store.turns(user, &recent).await.unwrap().len());
    let recent = TurnQuery::recent(Some(session("s")), 9);
    see("recent of session", store.turns(user, &recent).await.unwrap().len());
    for select in [
        MemorySelect::All,
        MemorySelect::Current { as_of: None },
        MemorySelect::Current { as_of: Some(at(99)) },
        MemorySelect::Ids(vec![anns.memory]),
        MemorySelect::History(anns.memory),
    ] {
        see(&format!("{select:?}"), store.memories(user, &MemoryQuery::new(select)).await.unwrap().len());
    }
    let summaries = SummaryQuery { session: session("s"), strategy: None, status: None, limit: 9 };
    see("summaries", store.summaries(user, &summaries).await.unwrap().len());
    for query in [words("Hangzhou"), words("西湖"), similar("angzho", 0.1), similar("Hangshou", 0.1)] {
        see(&format!("{query:?}"), store.search(user, &query).await.unwrap().len());
    }
    see("feed", store.feed(user, 0, 9).await.unwrap().len());
    see("vectors_since", store.vectors_since(user, "model", 0).await.unwrap().len());
    see("segments", store.segments(user, "space", 0).await.unwrap().len());
    see("segment sizes", store.segment_sizes(user, "space").await.unwrap().len());
    see("progress", usize::from(store.progress(user, "space").await.unwrap() > 0));
    see("jobs", store.jobs(user, &JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap().len());
    let job = JobQuery { id: Some(anns.job), limit: 9, ..JobQuery::default() };
    see("job", store.jobs(user, &job).await.unwrap().len());
    let requests = MetricQuery { limit: 9, ..MetricQuery::default() };
    see("requests", store.requests(user, &requests).await.unwrap().len());
    let request = MetricQuery { id: Some(anns.request), limit: 9, ..MetricQuery::default() };
    see("request", store.requests(user, &request).await.unwrap().len());
    seen
}

/// No read of one user returns data of another, by list, by id or by search.
pub async fn no_read_sees_another_user(store: &dyn Store) {
    let anns = fill(store).await;
    assert_eq!(seen_by(store, &ann(), &anns).await.len(), READS, "ann herself sees her data");
    for other in [bob(), user("an"), user("ann "), user("Ann"), user("ann%"), user("_nn"), UserId::global()] {
        assert_eq!(seen_by(store, &other, &anns).await, Vec::<String>::new(), "{other}");
    }
    append(store, &bob(), "s", &["bob lives in Berlin"]).await;
    assert_eq!(all_turns(store, &bob(), "s").await.len(), 1);
    assert!(found(store, &bob(), &words("Hangzhou")).await.is_empty());
}

/// An id of another user is as unknown as one that never existed: no change reaches it.
pub async fn no_change_reaches_another_user(store: &dyn Store) {
    let anns = fill(store).await;
    let own = add(store, &bob(), memory("bob's own")).await;
    let revised = Change::ReviseMemory {
        id: anns.memory,
        archive_as: MemoryId(fresh()),
        content: "stolen".to_owned(),
        metadata: None,
    };
    let finished = Change::FinishJob { id: anns.job, lease: anns.lease, outcome: JobOutcome::done() };
    for change in [
        Change::HideTurns { ids: vec![anns.turn], hidden: deleted(1) },
        revised,
        Change::CloseMemory { id: anns.memory, valid_to: at(1), replaced_by: None },
        Change::CloseMemory { id: own, valid_to: at(1), replaced_by: Some(anns.memory) },
        Change::HideMemory { id: anns.memory, hidden: deleted(1) },
        finished,
        Change::RetryJob { id: anns.job },
        Change::PutSummary(Box::new(summary("s", 0))),
        Change::Forget(Forget::Session(session("s"))),
        Change::Forget(Forget::Memory(anns.memory)),
    ] {
        let shown = format!("{change:?}");
        assert_eq!(refuse(store, &bob(), change).await, ErrorKind::NotFound, "{shown}");
    }
    let before = all_turns(store, &ann(), "s").await;
    apply(store, &bob(), Change::PutVectors(vec![vector(ItemId::Turn(anns.turn))])).await;
    assert!(vectors_of(store, &bob(), "model", &[ItemId::Turn(anns.turn)]).await.is_empty());
    apply(store, &bob(), Change::PruneRequests { before: at(99) }).await;
    apply(store, &bob(), Change::SetProgress { space: "space".to_owned(), revision: 9 }).await;
    apply(store, &bob(), Change::Forget(Forget::Memories)).await;
    apply(store, &bob(), appending("s", vec![turn("bob's")])).await;
    assert_eq!(all_turns(store, &ann(), "s").await, before);
    assert_eq!(seen_by(store, &ann(), &anns).await.len(), READS);
    assert_eq!(one(store, &ann(), anns.memory).await.content, "ann's secret is Hangzhou");
}

/// Ids are unique per user only, so that a conflict reveals nothing about another user's data.
pub async fn the_same_ids_may_exist_for_two_users(store: &dyn Store) {
    let said = turn("ann's words");
    let known = memory("ann's knowledge");
    append_turns(store, &ann(), "s", vec![said.clone()]).await;
    add(store, &ann(), known.clone()).await;
    let bobs = NewTurn { content: "bob's words".to_owned(), ..said.clone() };
    append_turns(store, &bob(), "s", vec![bobs]).await;
    let bobs = Memory { content: "bob's knowledge".to_owned(), ..known.clone() };
    add(store, &bob(), bobs).await;
    for (user, name) in [(ann(), "ann"), (bob(), "bob")] {
        let read = store.turns(&user, &TurnQuery::Ids(vec![said.id])).await.unwrap();
        assert_eq!(read[0].content, format!("{name}'s words"));
        assert_eq!(one(store, &user, known.id).await.content, format!("{name}'s knowledge"));
        assert_eq!(found(store, &user, &words("words")).await, [format!("{name}'s words")]);
    }
    apply(store, &bob(), Change::Forget(Forget::User)).await;
    assert_eq!(one(store, &ann(), known.id).await.content, "ann's knowledge");
    assert_eq!(found(store, &ann(), &words("words")).await, ["ann's words"]);
}

/// The owner of a memory can be found by its id alone. The shared bucket is never the owner, and a destroyed memory has
/// none.
pub async fn names_the_owner_of_a_memory(store: &dyn Store) {
    let (known, shared) = (memory("known"), memory("shared"));
    let (id, global) = (known.id, UserId::global());
    add(store, &global, Memory { id, ..shared.clone() }).await;
    add(store, &global, shared.clone()).await;
    for id in [id, shared.id, MemoryId(fresh())] {
        assert_eq!(store.owner_of(id).await.unwrap(), None);
    }
    add(store, &bob(), known.clone()).await;
    apply(store, &bob(), Change::HideMemory { id, hidden: deleted(1) }).await;
    assert_eq!(store.owner_of(id).await.unwrap(), Some(bob()), "whatever its state");
    add(store, &ann(), known).await;
    assert_eq!(store.owner_of(id).await.unwrap(), Some(ann()), "the first by name");
    apply(store, &ann(), Change::Forget(Forget::Memory(id))).await;
    assert_eq!(store.owner_of(id).await.unwrap(), Some(bob()));
    apply(store, &bob(), Change::Forget(Forget::User)).await;
    assert_eq!(store.owner_of(id).await.unwrap(), None);
}

/// Forgetting one user destroys no data of another.
pub async fn forgetting_a_user_leaves_others_alone(store: &dyn Store) {
    let anns = fill(store).await;
    append(store, &bob(), "s", &["bob's"]).await;
    add(store, &bob(), memory("bob's")).await;
    let applied = apply(store, &bob(), Change::Forget(Forget::User)).await;
    assert_eq!(applied.removed, Removed { sessions: 1, turns: 1, memories: 1, summaries: 0 });
    assert_eq!(seen_by(store, &ann(), &anns).await.len(), READS);
}

/// A job names its user; a job that names another user is an error.
pub async fn refuses_a_job_for_another_user(store: &dyn Store) {
    let result = store
        .apply(
            &bob(),
            ChangeSet::one(at(0), Change::EnqueueJob(Box::new(Job { user: ann(), ..job(None, 0) }))),
        )
        .await;
    assert_eq!(kind(result), ErrorKind::Invalid);
    assert_eq!(store.lease_job(&lease(9, 10)).await.unwrap(), None);
}

/// The bucket that all users share is stored and read like a user's data.
pub async fn the_shared_bucket_is_a_user_like_any_other(store: &dyn Store) {
    let global = UserId::global();
    append(store, &global, "s", &["shared words"]).await;
    add(store, &global, memory("shared knowledge")).await;
    assert_eq!(found_sorted(store, &global, &words("shared")).await, ["shared knowledge", "shared words"]);
    assert!(found(store, &ann(), &words("shared")).await.is_empty());
    let star = user("**");
    assert!(found(store, &star, &words("shared")).await.is_empty());
}
