//! The reads of an index in memory: the feed of changes, new vectors, segments and progress.

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{ItemId, MemoryId};
use crate::state::State;
use crate::store::{Change, ChangeSet, Expectation, Forget, Item, Segment, SegmentSize, Store};
use crate::summary::{Summary, SummaryStatus};
use crate::vector::{ItemVector, Vector};

async fn feed(store: &dyn Store, after: u64, limit: u32) -> Vec<(u64, Item)> {
    store.feed(&ann(), after, limit).await.unwrap()
}

async fn contents(store: &dyn Store, after: u64) -> Vec<String> {
    feed(store, after, u32::MAX).await.iter().map(|(_, item)| item.content().to_owned()).collect()
}

async fn revision(store: &dyn Store) -> u64 {
    store.head(&ann()).await.unwrap().revision
}

fn segment(space: &str, first: u64, last: u64) -> Segment {
    Segment { space: space.to_owned(), first, last, bytes: vec![0, 1, 255, first as u8] }
}

async fn put(store: &dyn Store, segment: Segment) {
    let epoch = store.head(&ann()).await.unwrap().epoch;
    apply(store, &ann(), Change::PutSegment { segment, epoch }).await;
}

async fn set_progress(store: &dyn Store, space: &str, revision: u64) {
    apply(store, &ann(), Change::SetProgress { space: space.to_owned(), revision }).await;
}

fn vector(item: ItemId, model: &str, component: f32) -> ItemVector {
    ItemVector { item, model: model.to_owned(), vector: Vector::quantise(&[component, 1.0]) }
}

/// The feed lists the changes after a revision, by revision; there are none after the head.
pub async fn tells_what_changed_after_a_revision(store: &dyn Store) {
    assert!(feed(store, 0, 9).await.is_empty());
    let mut revisions = vec![0];
    append(store, &ann(), "s", &["one", "two"]).await;
    revisions.push(revision(store).await);
    add(store, &ann(), memory("known")).await;
    revisions.push(revision(store).await);
    append(store, &ann(), "t", &["three"]).await;
    revisions.push(revision(store).await);
    for (seen, expected) in
        revisions.iter().zip([&["one", "two", "known", "three"][..], &["known", "three"], &["three"], &[]])
    {
        assert_eq!(contents(store, *seen).await, expected, "after {seen}");
    }
    let told: Vec<u64> = feed(store, 0, 9).await.iter().map(|(revision, _)| *revision).collect();
    assert_eq!(told, [revisions[1], revisions[1], revisions[2], revisions[3]]);
}

/// Each item comes once, as it is now, at the revision of its last change, also if it is hidden or closed.
pub async fn tells_of_each_item_once_as_it_is_now(store: &dyn Store) {
    let turns = append(store, &ann(), "s", &["one", "two"]).await;
    let id = add(store, &ann(), memory("first")).await;
    let after = revision(store).await;
    apply(store, &ann(), Change::HideTurns { ids: vec![turns[0]], hidden: deleted(1) }).await;
    let archive_as = MemoryId(fresh());
    let change = Change::ReviseMemory { id, archive_as, content: "second".to_owned(), metadata: None };
    apply_at(store, &ann(), 2, change).await;
    apply_at(store, &ann(), 3, Change::CloseMemory { id, valid_to: at(3), replaced_by: None }).await;
    assert_eq!(contents(store, after).await, ["one", "first", "second"]);
    let changed = feed(store, after, 9).await;
    assert!(matches!(&changed[0].1, Item::Turn(turn) if turn.hidden == deleted(1)));
    assert!(matches!(&changed[1].1, Item::Memory(memory) if memory.replaced_by == Some(id)));
    assert!(matches!(&changed[2].1, Item::Memory(memory) if memory.valid_to == Some(at(3))));
    assert_eq!(changed[2].0, revision(store).await);
    assert_eq!(contents(store, 0).await, ["two", "one", "first", "second"]);
}

/// A summary appears in the feed when it is completed.
pub async fn tells_of_completed_summaries_only(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    let after = revision(store).await;
    let begun = Summary { status: SummaryStatus::Processing, ..summary("s", 0) };
    apply(store, &ann(), Change::PutSummary(Box::new(begun.clone()))).await;
    assert!(contents(store, after).await.is_empty());
    let done = Summary { status: SummaryStatus::Completed, ..begun };
    apply(store, &ann(), Change::PutSummary(Box::new(done.clone()))).await;
    assert_eq!(feed(store, after, 9).await, [(revision(store).await, Item::Summary(done))]);
}

/// The changes of one revision are never split, so the answer may exceed the limit; the next read continues after it.
pub async fn never_cuts_a_revision_in_two(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    append(store, &ann(), "s", &["two", "three", "four"]).await;
    let changes = vec![appending("t", vec![turn("five")]), Change::AddMemory(Box::new(memory("six")))];
    store.apply(&ann(), ChangeSet::new(at(0), changes)).await.unwrap();
    for limit in 1..=6 {
        let mut after = 0;
        let mut read = Vec::new();
        loop {
            let part = feed(store, after, limit).await;
            let Some((last, _)) = part.last() else { break };
            assert!(part.is_sorted_by_key(|(revision, _)| *revision));
            after = *last;
            read.extend(part.iter().map(|(_, item)| item.content().to_owned()));
        }
        assert_eq!(read, ["one", "two", "three", "four", "five", "six"], "{limit} at a time");
        assert_eq!(after, revision(store).await);
    }
    for (limit, count) in [(1, 1), (2, 4), (4, 4), (5, 6)] {
        assert_eq!(feed(store, 0, limit).await.len(), count, "a limit of {limit}");
    }
}

/// Destroyed items are not in the feed.
pub async fn does_not_tell_of_what_was_destroyed(store: &dyn Store) {
    append(store, &ann(), "gone", &["gone one"]).await;
    append(store, &ann(), "kept", &["kept one"]).await;
    let id = add(store, &ann(), memory("gone too")).await;
    apply(store, &ann(), Change::Forget(Forget::Session(session("gone")))).await;
    apply(store, &ann(), Change::Forget(Forget::Memory(id))).await;
    assert_eq!(contents(store, 0).await, ["kept one"]);
    apply(store, &ann(), Change::Forget(Forget::User)).await;
    assert!(contents(store, 0).await.is_empty());
    let after = revision(store).await;
    append(store, &ann(), "s", &["back"]).await;
    assert_eq!(contents(store, after).await, ["back"]);
}

/// A change that recall cannot see raises no revision, so a reader of the feed does not wait for it.
pub async fn does_not_count_what_recall_cannot_see(store: &dyn Store) {
    let item = ItemId::Turn(append(store, &ann(), "s", &["one"]).await[0]);
    let before = revision(store).await;
    let begun = Summary { status: SummaryStatus::Processing, ..summary("s", 0) };
    for change in [
        Change::PutVectors(vec![vector(item, "model", 1.0)]),
        Change::PutState { session: session("s"), state: Box::new(State::default()) },
        Change::PutSummary(Box::new(begun)),
        Change::PutSegment { segment: segment("space", 1, 1), epoch: 0 },
        Change::PutSegment { segment: segment("space", 2, 2), epoch: 0 },
        Change::MergeSegments { segment: segment("space", 1, 2), epoch: 0 },
        Change::DropSegments { space: "space".to_owned() },
        Change::SetProgress { space: "other".to_owned(), revision: 1 },
        Change::EnqueueJob(Box::new(job(None, 0))),
        Change::AddRequest(Box::new(request(0))),
        Change::PruneRequests { before: at(9) },
        Change::PruneIdempotency { before: at(9) },
    ] {
        let shown = format!("{change:?}");
        apply(store, &ann(), change).await;
        assert_eq!(revision(store).await, before, "{shown}");
    }
}

/// Vectors have a counter of their own. The vectors of a model that were stored after it come oldest first, each as it
/// is now.
pub async fn counts_vectors_by_themselves(store: &dyn Store) {
    let ids = append(store, &ann(), "s", &["one", "two", "three"]).await;
    let items: Vec<ItemId> = ids.into_iter().map(ItemId::Turn).collect();
    let mut counts = vec![store.head(&ann()).await.unwrap().vectors];
    assert_eq!(counts, [0]);
    for vectors in [
        vec![vector(items[2], "model", 1.0), vector(items[0], "model", 1.0)],
        vec![vector(items[1], "model", 1.0), vector(items[1], "other", 1.0)],
        vec![vector(items[0], "model", 2.0)],
    ] {
        apply(store, &ann(), Change::PutVectors(vectors)).await;
        counts.push(store.head(&ann()).await.unwrap().vectors);
    }
    assert!(counts.is_sorted_by(|a, b| a < b));
    for (after, expected) in counts.iter().zip([
        vec![items[2], items[1], items[0]],
        vec![items[1], items[0]],
        vec![items[0]],
        vec![],
    ]) {
        let stored = store.vectors_since(&ann(), "model", *after).await.unwrap();
        assert_eq!(stored.iter().map(|stored| stored.vector.item).collect::<Vec<_>>(), expected);
        assert!(stored.is_sorted_by_key(|stored| stored.revision));
        assert!(stored.iter().all(|stored| stored.revision > *after));
    }
    let last = store.vectors_since(&ann(), "model", counts[2]).await.unwrap();
    assert_eq!(last[0].vector, vector(items[0], "model", 2.0));
    assert_eq!(store.vectors_since(&ann(), "other", 0).await.unwrap().len(), 1);
    assert!(store.vectors_since(&ann(), "never", 0).await.unwrap().is_empty());
}

/// Segments come by the revisions they cover, for one space, as they were stored; they advance the progress.
pub async fn keeps_segments_in_order(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    assert!(store.segments(&ann(), "a", 0).await.unwrap().is_empty());
    let large = Segment { bytes: (0..1_000_000_u32).map(|n| n as u8).collect(), ..segment("a", 3, 12) };
    for segment in [segment("a", 1, 2), segment("b", 1, 99), large.clone(), segment("a", 13, 13)] {
        put(store, segment).await;
    }
    assert_eq!(
        store.segments(&ann(), "a", 0).await.unwrap(),
        [segment("a", 1, 2), large, segment("a", 13, 13)]
    );
    assert_eq!(store.segments(&ann(), "b", 0).await.unwrap(), [segment("b", 1, 99)]);
    assert_eq!(store.progress(&ann(), "a").await.unwrap(), 13);
    assert_eq!(store.progress(&ann(), "b").await.unwrap(), 99);
}

/// A segment that does not begin right after the progress of its space is a conflict.
pub async fn refuses_a_segment_that_does_not_follow(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    put(store, segment("a", 1, 5)).await;
    for (first, last) in [(1, 5), (5, 9), (7, 9), (0, 3)] {
        let change = Change::PutSegment { segment: segment("a", first, last), epoch: 0 };
        assert_eq!(refuse(store, &ann(), change).await, ErrorKind::Conflict, "{first} to {last}");
    }
    let stale = Change::PutSegment { segment: segment("a", 6, 9), epoch: 1 };
    assert_eq!(refuse(store, &ann(), stale).await, ErrorKind::Conflict, "made in another epoch");
    assert_eq!(store.segments(&ann(), "a", 0).await.unwrap().len(), 1);
    assert_eq!(store.progress(&ann(), "a").await.unwrap(), 5);
}

/// A read returns the segments that begin at a revision or later, or the sizes of all segments without their content.
pub async fn tells_of_segments_without_reading_all(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    assert!(store.segment_sizes(&ann(), "a").await.unwrap().is_empty());
    let large = Segment { bytes: vec![7; 100_000], ..segment("a", 3, 12) };
    for segment in [segment("a", 1, 2), large.clone(), segment("b", 1, 99), segment("a", 13, 13)] {
        put(store, segment).await;
    }
    assert_eq!(store.segments(&ann(), "a", 3).await.unwrap(), [large, segment("a", 13, 13)]);
    assert_eq!(store.segments(&ann(), "a", 4).await.unwrap(), [segment("a", 13, 13)]);
    assert!(store.segments(&ann(), "a", 14).await.unwrap().is_empty());
    let size = |(first, last, bytes)| SegmentSize { first, last, bytes };
    assert_eq!(
        store.segment_sizes(&ann(), "a").await.unwrap(),
        [(1, 2, 4), (3, 12, 100_000), (13, 13, 4)].map(size)
    );
}

/// A merged segment replaces those that cover its revisions; progress and other spaces stay.
pub async fn merges_segments_that_follow_each_other(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    for (first, last) in [(1, 2), (3, 5), (6, 9), (10, 12)] {
        put(store, segment("a", first, last)).await;
        put(store, segment("b", first, last)).await;
    }
    let merge = |first, last, epoch| Change::MergeSegments { segment: segment("a", first, last), epoch };
    for (first, last) in [(3, 5), (3, 8), (2, 9), (4, 9), (3, 13), (10, 20), (1, 1)] {
        assert_eq!(
            refuse(store, &ann(), merge(first, last, 0)).await,
            ErrorKind::Conflict,
            "{first} to {last}"
        );
    }
    assert_eq!(refuse(store, &ann(), merge(3, 9, 1)).await, ErrorKind::Conflict, "made in another epoch");
    assert_eq!(store.segments(&ann(), "a", 0).await.unwrap().len(), 4);
    apply(store, &ann(), merge(3, 9, 0)).await;
    let merged = [segment("a", 1, 2), segment("a", 3, 9), segment("a", 10, 12)];
    assert_eq!(store.segments(&ann(), "a", 0).await.unwrap(), merged);
    assert_eq!(refuse(store, &ann(), merge(3, 9, 0)).await, ErrorKind::Conflict, "another worker was faster");
    assert_eq!(store.segments(&ann(), "b", 0).await.unwrap().len(), 4);
    assert_eq!(store.progress(&ann(), "a").await.unwrap(), 12);
    put(store, segment("a", 13, 14)).await;
    apply(store, &ann(), merge(1, 14, 0)).await;
    assert_eq!(store.segments(&ann(), "a", 0).await.unwrap(), [segment("a", 1, 14)]);
}

/// An unused space is removed with its progress; other spaces, and those of other users, stay.
pub async fn drops_the_segments_of_a_space(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    append(store, &bob(), "s", &["one"]).await;
    for space in ["a", "b"] {
        put(store, segment(space, 1, 2)).await;
    }
    apply(store, &bob(), Change::PutSegment { segment: segment("a", 1, 2), epoch: 0 }).await;
    for _ in 0..2 {
        apply(store, &ann(), Change::DropSegments { space: "a".to_owned() }).await;
        assert!(store.segments(&ann(), "a", 0).await.unwrap().is_empty());
        assert_eq!(store.progress(&ann(), "a").await.unwrap(), 0);
    }
    assert_eq!(store.segments(&ann(), "b", 0).await.unwrap().len(), 1);
    assert_eq!(store.progress(&ann(), "b").await.unwrap(), 2);
    assert_eq!(store.segments(&bob(), "a", 0).await.unwrap().len(), 1);
    put(store, segment("a", 1, 1)).await;
}

/// Destroying anything of the user destroys all segments, and their spaces begin anew; other progress stays.
pub async fn destroying_anything_destroys_all_segments(store: &dyn Store) {
    for what in [Forget::Memories, Forget::Session(session("s"))] {
        append(store, &ann(), "s", &["one"]).await;
        add(store, &ann(), memory("known")).await;
        put(store, segment("a", 1, 2)).await;
        put(store, segment("b", 1, 2)).await;
        set_progress(store, "model", 2).await;
        apply(store, &ann(), Change::Forget(what)).await;
        for space in ["a", "b"] {
            assert!(store.segments(&ann(), space, 0).await.unwrap().is_empty());
            assert_eq!(store.progress(&ann(), space).await.unwrap(), 0);
        }
        assert_eq!(store.progress(&ann(), "model").await.unwrap(), 2);
    }
    apply(store, &ann(), Change::Forget(Forget::User)).await;
    assert_eq!(store.progress(&ann(), "model").await.unwrap(), 0);
}

/// Each space has its own progress, which begins at 0.
pub async fn keeps_progress_a_space(store: &dyn Store) {
    append(store, &ann(), "s", &["one"]).await;
    assert_eq!(store.progress(&ann(), "a").await.unwrap(), 0);
    set_progress(store, "a", 7).await;
    set_progress(store, "a", 9).await;
    assert_eq!(store.progress(&ann(), "a").await.unwrap(), 9);
    assert_eq!(store.progress(&ann(), "A").await.unwrap(), 0);
}

/// Users that are more than the gap behind in a space come furthest behind first. Other and forgotten users do not
/// appear.
pub async fn names_users_that_are_behind(store: &dyn Store) {
    for (name, writes) in [("two", 2), ("five", 5), ("nine", 9), ("gone", 20)] {
        for _ in 0..writes {
            append(store, &user(name), "s", &["one"]).await;
        }
    }
    apply(store, &user("gone"), Change::Forget(Forget::User)).await;
    let behind = async |gap, limit| {
        let users = store.behind("space", gap, limit).await.unwrap();
        users.iter().map(|user| user.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(behind(0, 9).await, ["nine", "five", "two"]);
    assert_eq!(behind(0, 2).await, ["nine", "five"]);
    assert_eq!(behind(4, 9).await, ["nine", "five"]);
    assert_eq!(behind(5, 9).await, ["nine"]);
    let done = store.head(&user("nine")).await.unwrap().revision;
    apply(store, &user("nine"), Change::SetProgress { space: "space".to_owned(), revision: done }).await;
    assert_eq!(behind(0, 9).await, ["five", "two"]);
}

/// Changes that expect a space's progress are applied only if it has not changed since it was read; otherwise they fail
/// with a retryable conflict.
pub async fn expects_the_progress_that_was_read(store: &dyn Store) {
    let going_on = |from, to| {
        let space = "space".to_owned();
        let expectation = Expectation::Progress { space: space.clone(), revision: from };
        ChangeSet::one(at(0), Change::SetProgress { space, revision: to }).expecting(expectation)
    };
    store.apply(&ann(), going_on(0, 3)).await.unwrap();
    let error = store.apply(&ann(), going_on(0, 9)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
    store.apply(&ann(), going_on(3, 4)).await.unwrap();
    store.apply(&bob(), going_on(0, 1)).await.unwrap();
    assert_eq!(store.progress(&ann(), "space").await.unwrap(), 4);
}
