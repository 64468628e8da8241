//! Memories: nothing is overwritten, and the statements believed at any moment can be read.

use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{ItemId, MemoryId, SummaryId, TurnId};
use crate::memory::{Memory, MemoryKind, MemoryNotes, TodoState};
use crate::store::{Change, ChangeSet, Expectation, ItemRef, Keep, MemoryQuery, MemorySelect, Page, Store};
use crate::turn::{Hidden, HiddenReason, Metadata};
use crate::vector::{ItemVector, Vector};

fn contents(memories: &[Memory]) -> Vec<&str> {
    memories.iter().map(|memory| memory.content.as_str()).collect()
}

fn learned(content: &str, second: i64) -> Memory {
    Memory { recorded_at: at(second), valid_from: at(second), ..memory(content) }
}

async fn close(store: &dyn Store, second: i64, id: MemoryId, replaced_by: Option<MemoryId>) {
    apply_at(store, &ann(), second, Change::CloseMemory { id, valid_to: at(second), replaced_by }).await;
}

async fn revise(store: &dyn Store, second: i64, id: MemoryId, content: &str) -> MemoryId {
    let archive_as = MemoryId(fresh());
    let change = Change::ReviseMemory { id, archive_as, content: content.to_owned(), metadata: None };
    apply_at(store, &ann(), second, change).await;
    archive_as
}

/// A memory comes back as it was given, closed and hidden ones too.
pub async fn keeps_everything_of_a_memory(store: &dyn Store) {
    for kind in [MemoryKind::Fact, MemoryKind::Preference, MemoryKind::Todo, MemoryKind::Decision] {
        let successor = add(store, &ann(), memory("later")).await;
        let full = Memory {
            session: Some(session("s")),
            agent: Some("planner 🦀".to_owned()),
            kind,
            confidence: 0.62,
            valid_from: at(-86_400),
            valid_to: Some(at(5)),
            recorded_at: at(1),
            replaced_by: Some(successor),
            source_turns: vec![TurnId(fresh()), TurnId(fresh())],
            source_summary: Some(SummaryId(fresh())),
            metadata: object(json!({"from": ["ann", {"n": 1.5}]})),
            hidden: Some(Hidden { reason: HiddenReason::Evicted, at: at(6) }),
            ..memory("喜欢西湖 — likes \"tea\"")
        };
        add(store, &ann(), full.clone()).await;
        assert_eq!(one(store, &ann(), full.id).await, full);
        let plain = memory("");
        add(store, &ann(), plain.clone()).await;
        assert_eq!(one(store, &ann(), plain.id).await, plain);
    }
}

/// An id that exists already is a conflict, and the first statement stays.
pub async fn refuses_an_id_that_exists(store: &dyn Store) {
    let first = memory("first");
    add(store, &ann(), first.clone()).await;
    let second = Memory { content: "second".to_owned(), ..first.clone() };
    assert_eq!(refuse(store, &ann(), Change::AddMemory(Box::new(second))).await, ErrorKind::Conflict);
    assert_eq!(one(store, &ann(), first.id).await, first);
}

/// Current memories come newest `recorded_at` first, without closed and hidden ones.
pub async fn lists_current_memories_newest_first(store: &dyn Store) {
    for (content, second) in [("b", 2), ("d", 4), ("a", 1), ("c", 3)] {
        add(store, &ann(), learned(content, second)).await;
    }
    add(store, &ann(), Memory { valid_to: Some(at(9)), ..learned("closed", 5) }).await;
    add(store, &ann(), Memory { hidden: deleted(9), ..learned("hidden", 6) }).await;
    assert_eq!(contents(&current(store, &ann()).await), ["d", "c", "b", "a"]);
}

/// All memories come newest `recorded_at` first, closed and hidden ones too.
pub async fn lists_all_memories_whatever_their_state(store: &dyn Store) {
    add(store, &ann(), learned("open", 1)).await;
    add(store, &ann(), Memory { valid_to: Some(at(9)), ..learned("closed", 3) }).await;
    add(store, &ann(), Memory { hidden: deleted(9), ..learned("hidden", 2) }).await;
    assert_eq!(contents(&select(store, &ann(), MemorySelect::All).await), ["closed", "hidden", "open"]);
}

/// Hidden memories come newest `recorded_at` first, without the others.
pub async fn lists_hidden_memories_newest_first(store: &dyn Store) {
    add(store, &ann(), learned("open", 1)).await;
    add(store, &ann(), Memory { hidden: deleted(9), ..learned("first", 2) }).await;
    add(store, &ann(), Memory { hidden: deleted(9), valid_to: Some(at(9)), ..learned("second", 3) }).await;
    add(store, &bob(), Memory { hidden: deleted(9), ..learned("another's", 4) }).await;
    assert_eq!(contents(&select(store, &ann(), MemorySelect::Hidden).await), ["second", "first"]);
}

/// Ids come in the requested order, in any state; those that do not exist are left out.
pub async fn reads_ids_in_the_order_asked_whatever_their_state(store: &dyn Store) {
    let open = add(store, &ann(), memory("open")).await;
    let closed = add(store, &ann(), Memory { valid_to: Some(at(1)), ..memory("closed") }).await;
    let hidden = add(store, &ann(), Memory { hidden: deleted(1), ..memory("hidden") }).await;
    let asked = MemorySelect::Ids(vec![hidden, MemoryId(fresh()), open, closed]);
    assert_eq!(contents(&select(store, &ann(), asked).await), ["hidden", "open", "closed"]);
}

/// Session, agent and kind select together; a memory without a session matches none.
pub async fn chooses_by_session_agent_and_kind(store: &dyn Store) {
    let bound = |content: &str, second, of: Option<&str>, agent: Option<&str>, kind| Memory {
        session: of.map(session),
        agent: agent.map(str::to_owned),
        kind,
        ..learned(content, second)
    };
    add(store, &ann(), bound("unbound", 1, None, None, MemoryKind::Fact)).await;
    add(store, &ann(), bound("s fact", 2, Some("s"), None, MemoryKind::Fact)).await;
    add(store, &ann(), bound("s todo of p", 3, Some("s"), Some("p"), MemoryKind::Todo)).await;
    add(store, &ann(), bound("t todo of q", 4, Some("t"), Some("q"), MemoryKind::Todo)).await;
    add(store, &ann(), bound("fact of p", 5, None, Some("p"), MemoryKind::Fact)).await;
    for select in [MemorySelect::Current { as_of: None }, MemorySelect::All] {
        for (of, agent, kind, expected) in [
            (Some("s"), None, None, vec!["s todo of p", "s fact"]),
            (None, Some("p"), None, vec!["fact of p", "s todo of p"]),
            (None, None, Some(MemoryKind::Todo), vec!["t todo of q", "s todo of p"]),
            (Some("s"), Some("p"), Some(MemoryKind::Todo), vec!["s todo of p"]),
            (Some("s"), Some("q"), None, vec![]),
            (Some("never"), None, None, vec![]),
        ] {
            let query = MemoryQuery {
                session: of.map(session),
                agent: agent.map(str::to_owned),
                kind,
                ..MemoryQuery::new(select.clone())
            };
            assert_eq!(contents(&store.memories(&ann(), &query).await.unwrap()), expected, "{query:?}");
        }
    }
}

/// Pages cut the chosen list without overlap or gap.
pub async fn pages_through_memories(store: &dyn Store) {
    for number in 0..5 {
        add(store, &ann(), learned(&number.to_string(), number)).await;
        add(store, &ann(), Memory { session: Some(session("s")), ..learned("bound", number) }).await;
    }
    let mut read = Vec::new();
    for offset in [0, 4, 8, 12] {
        let page = Page { offset, limit: 4 };
        let query = MemoryQuery { page, ..MemoryQuery::new(MemorySelect::Current { as_of: None }) };
        read.extend(store.memories(&ann(), &query).await.unwrap().into_iter().map(|memory| memory.id));
    }
    assert_eq!(read.len(), 10);
    read.sort();
    read.dedup();
    assert_eq!(read.len(), 10);
    let page = Page { offset: 1, limit: 2 };
    let query = MemoryQuery { page, session: Some(session("s")), ..MemoryQuery::new(MemorySelect::All) };
    assert_eq!(store.memories(&ann(), &query).await.unwrap().len(), 2);
}

/// Only memories that pass a query's test are returned, and pages are cut from them.
pub async fn keeps_memories_that_pass_the_test(store: &dyn Store) {
    for number in 0..6 {
        add(store, &ann(), learned(&number.to_string(), number)).await;
    }
    let is_even = |item: ItemRef<'_>| match item {
        ItemRef::Memory(memory) => memory.content.parse::<u32>().unwrap_or(1) % 2 == 0,
        ItemRef::Turn(_) => false,
    };
    let query = MemoryQuery { keep: Some(Keep::new(is_even)), ..MemoryQuery::new(MemorySelect::All) };
    assert_eq!(contents(&store.memories(&ann(), &query).await.unwrap()), ["4", "2", "0"]);
    let query = MemoryQuery { page: Page { offset: 1, limit: 1 }, ..query };
    assert_eq!(contents(&store.memories(&ann(), &query).await.unwrap()), ["2"]);
}

/// A revised memory has its new statement under its old id and no sources. The old statement stays as a closed memory
/// with its sources, replaced by the revised one.
pub async fn revising_keeps_the_id_and_the_old_statement(store: &dyn Store) {
    let first = Memory {
        session: Some(session("s")),
        kind: MemoryKind::Preference,
        confidence: 0.5,
        source_turns: vec![TurnId(fresh())],
        metadata: object(json!({"kept": true})),
        ..learned("likes tea", 1)
    };
    add(store, &ann(), first.clone()).await;
    let archived = revise(store, 10, first.id, "likes coffee").await;
    let expected = Memory {
        content: "likes coffee".to_owned(),
        valid_from: at(10),
        recorded_at: at(10),
        source_turns: Vec::new(),
        notes: MemoryNotes { first_recorded_at: Some(at(1)), ..MemoryNotes::default() },
        ..first.clone()
    };
    assert_eq!(one(store, &ann(), first.id).await, expected);
    let expected =
        Memory { id: archived, valid_to: Some(at(10)), replaced_by: Some(first.id), ..first.clone() };
    assert_eq!(one(store, &ann(), archived).await, expected);
    assert_eq!(contents(&current(store, &ann()).await), ["likes coffee"]);
}

/// A revision that changes only the metadata keeps the sources.
pub async fn revising_metadata_alone_keeps_the_sources(store: &dyn Store) {
    let said = Memory { source_turns: vec![TurnId(fresh())], ..memory("likes tea") };
    let id = add(store, &ann(), said.clone()).await;
    revise(store, 1, id, "likes tea").await;
    assert_eq!(one(store, &ann(), id).await.source_turns, said.source_turns);
}

/// New metadata replaces the old; without it the old stays.
pub async fn revising_replaces_metadata_only_if_given(store: &dyn Store) {
    let id = add(store, &ann(), Memory { metadata: object(json!({"a": 1, "b": 2})), ..memory("one") }).await;
    revise(store, 1, id, "two").await;
    assert_eq!(one(store, &ann(), id).await.metadata, object(json!({"a": 1, "b": 2})));
    let archive_as = MemoryId(fresh());
    let metadata = Some(object(json!({"c": 3})));
    apply_at(
        store,
        &ann(),
        2,
        Change::ReviseMemory { id, archive_as, content: "three".to_owned(), metadata },
    )
    .await;
    assert_eq!(one(store, &ann(), id).await.metadata, object(json!({"c": 3})));
    assert_eq!(one(store, &ann(), archive_as).await.metadata, object(json!({"a": 1, "b": 2})));
}

/// The id for the old statement must be new.
pub async fn revising_refuses_an_archive_id_that_exists(store: &dyn Store) {
    let id = add(store, &ann(), memory("one")).await;
    let other = add(store, &ann(), memory("other")).await;
    for archive_as in [other, id] {
        let change = Change::ReviseMemory { id, archive_as, content: "two".to_owned(), metadata: None };
        assert_eq!(refuse(store, &ann(), change).await, ErrorKind::Conflict);
    }
    assert_eq!(one(store, &ann(), id).await.content, "one");
    assert_eq!(one(store, &ann(), other).await.content, "other");
}

/// The vectors of the old statement are removed.
pub async fn revising_drops_the_old_statements_vectors(store: &dyn Store) {
    let id = add(store, &ann(), memory("one")).await;
    let item = ItemId::Memory(id);
    let vector = ItemVector { item, model: "model".to_owned(), vector: Vector::quantise(&[1.0]) };
    apply(store, &ann(), Change::PutVectors(vec![vector])).await;
    revise(store, 1, id, "two").await;
    assert!(vectors_of(store, &ann(), "model", &[item]).await.is_empty());
}

/// Closing ends a memory's validity, names its replacement and changes nothing else.
pub async fn closing_ends_validity_and_names_the_successor(store: &dyn Store) {
    let old = learned("lives in Berlin", 1);
    let new = learned("lives in Hangzhou", 5);
    add(store, &ann(), old.clone()).await;
    let changes = vec![
        Change::AddMemory(Box::new(new.clone())),
        Change::CloseMemory { id: old.id, valid_to: at(4), replaced_by: Some(new.id) },
    ];
    store.apply(&ann(), ChangeSet::new(at(5), changes)).await.unwrap();
    let closed = Memory { valid_to: Some(at(4)), replaced_by: Some(new.id), ..old.clone() };
    assert_eq!(one(store, &ann(), old.id).await, closed);
    assert_eq!(current(store, &ann()).await, [new]);
    let dropped = add(store, &ann(), memory("wants a dog")).await;
    close(store, 6, dropped, None).await;
    let dropped = one(store, &ann(), dropped).await;
    assert_eq!((dropped.valid_to, dropped.replaced_by), (Some(at(6)), None));
}

/// The replacement of a memory must exist.
pub async fn closing_refuses_an_unknown_successor(store: &dyn Store) {
    let id = add(store, &ann(), memory("one")).await;
    let change = Change::CloseMemory { id, valid_to: at(1), replaced_by: Some(MemoryId(fresh())) };
    assert_eq!(refuse(store, &ann(), change).await, ErrorKind::NotFound);
    assert_eq!(one(store, &ann(), id).await.valid_to, None);
}

/// A memory is believed at a moment if it was known by then, not yet closed and not yet hidden.
pub async fn answers_what_was_believed_then(store: &dyn Store) {
    let home = add(store, &ann(), learned("lives in Berlin", 10)).await;
    let tea = add(store, &ann(), learned("likes tea", 20)).await;
    revise(store, 30, home, "lives in Hangzhou").await;
    close(store, 40, tea, None).await;
    apply_at(store, &ann(), 50, Change::HideMemory { id: home, hidden: deleted(50) }).await;
    for (second, expected) in [
        (9, vec![]),
        (10, vec!["lives in Berlin"]),
        (20, vec!["likes tea", "lives in Berlin"]),
        (29, vec!["likes tea", "lives in Berlin"]),
        (30, vec!["lives in Hangzhou", "likes tea"]),
        (40, vec!["lives in Hangzhou"]),
        (49, vec!["lives in Hangzhou"]),
        (50, vec![]),
    ] {
        let then = MemorySelect::Current { as_of: Some(at(second)) };
        assert_eq!(contents(&select(store, &ann(), then).await), expected, "at {second}");
    }
    assert!(current(store, &ann()).await.is_empty());
}

/// Hiding marks a memory and changes nothing else of it; with `None` it comes back as it was.
pub async fn hides_and_restores_a_memory(store: &dyn Store) {
    let known = memory("known");
    add(store, &ann(), known.clone()).await;
    apply(store, &ann(), Change::HideMemory { id: known.id, hidden: deleted(3) }).await;
    assert_eq!(one(store, &ann(), known.id).await, Memory { hidden: deleted(3), ..known.clone() });
    assert!(current(store, &ann()).await.is_empty());
    apply(store, &ann(), Change::HideMemory { id: known.id, hidden: None }).await;
    assert_eq!(current(store, &ann()).await, [known]);
}

/// A memory's history contains all its statements, oldest first, whichever revision is requested.
pub async fn shows_the_history_of_revisions(store: &dyn Store) {
    let id = add(store, &ann(), learned("one", 1)).await;
    let first = revise(store, 2, id, "two").await;
    let second = revise(store, 3, id, "three").await;
    add(store, &ann(), memory("unrelated")).await;
    let history = select(store, &ann(), MemorySelect::History(id)).await;
    assert_eq!(contents(&history), ["one", "two", "three"]);
    assert_eq!(history.iter().map(|memory| memory.id).collect::<Vec<_>>(), [first, second, id]);
    for (asked, statement) in [(first, "one"), (second, "two")] {
        let history = select(store, &ann(), MemorySelect::History(asked)).await;
        assert_eq!(contents(&history), [statement, "three"]);
    }
}

/// A history contains all that the memory replaced, itself, and all that replaced it, without other branches.
pub async fn shows_the_history_of_replacements(store: &dyn Store) {
    let mut ids = Vec::new();
    for (content, second) in [("a", 1), ("b", 2), ("both", 3), ("then", 4), ("now", 5), ("unrelated", 6)] {
        ids.push(add(store, &ann(), learned(content, second)).await);
    }
    let [a, b, both, then, now, unrelated] = ids[..] else { panic!("six were added") };
    for (old, new) in [(a, both), (b, both), (both, then), (then, now)] {
        close(store, 9, old, Some(new)).await;
    }
    apply(store, &ann(), Change::HideMemory { id: then, hidden: deleted(9) }).await;
    for (asked, expected) in [
        (a, vec!["a", "both", "then", "now"]),
        (both, vec!["a", "b", "both", "then", "now"]),
        (now, vec!["a", "b", "both", "then", "now"]),
        (unrelated, vec!["unrelated"]),
    ] {
        assert_eq!(contents(&select(store, &ann(), MemorySelect::History(asked)).await), expected);
    }
}

/// Memories that replace each other in a circle have a history too.
pub async fn ends_the_history_of_memories_that_replace_each_other(store: &dyn Store) {
    let tea = add(store, &ann(), learned("tea", 1)).await;
    let coffee = add(store, &ann(), learned("coffee", 2)).await;
    close(store, 3, tea, Some(coffee)).await;
    close(store, 4, coffee, Some(tea)).await;
    close(store, 5, add(store, &ann(), learned("water", 3)).await, Some(tea)).await;
    let history = select(store, &ann(), MemorySelect::History(coffee)).await;
    assert_eq!(contents(&history), ["tea", "coffee", "water"]);
}

/// An id that does not exist has no history.
pub async fn has_no_history_of_an_unknown_memory(store: &dyn Store) {
    add(store, &ann(), memory("known")).await;
    assert!(select(store, &ann(), MemorySelect::History(MemoryId(fresh()))).await.is_empty());
}

/// A memory that does not exist cannot be changed.
pub async fn refuses_changes_of_an_unknown_memory(store: &dyn Store) {
    let id = MemoryId(fresh());
    for change in [
        Change::ReviseMemory { id, archive_as: MemoryId(fresh()), content: "new".to_owned(), metadata: None },
        Change::CloseMemory { id, valid_to: at(1), replaced_by: None },
        Change::HideMemory { id, hidden: deleted(1) },
        Change::HideMemory { id, hidden: None },
    ] {
        assert_eq!(refuse(store, &ann(), change).await, ErrorKind::NotFound);
    }
    assert!(select(store, &ann(), MemorySelect::All).await.is_empty());
}

/// A memory may be bound to a session without turns, and does not create it.
pub async fn takes_a_memory_of_a_session_without_turns(store: &dyn Store) {
    let id = add(store, &ann(), Memory { session: Some(session("s")), ..memory("early") }).await;
    assert_eq!(one(store, &ann(), id).await.session, Some(session("s")));
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap(), None);
}

/// A note sets the notes that it names. The other notes, the metadata and everything else stay.
pub async fn notes_something_about_a_memory(store: &dyn Store) {
    let known = Memory { metadata: object(json!({"todo": "open", "b": [2]})), ..memory("known") };
    add(store, &ann(), known.clone()).await;
    let none = MemoryNotes::default();
    let note = |notes| Change::NoteMemory { id: known.id, notes };
    apply(store, &ann(), note(MemoryNotes { todo: Some(TodoState::Done), ..none })).await;
    apply(store, &ann(), note(MemoryNotes { restored_at: Some(at(3)), ..none })).await;
    apply(store, &ann(), note(none)).await;
    let notes = MemoryNotes { todo: Some(TodoState::Done), restored_at: Some(at(3)), ..none };
    assert_eq!(one(store, &ann(), known.id).await, Memory { notes, ..known.clone() });
    apply(store, &ann(), note(MemoryNotes { todo: Some(TodoState::Dropped), ..none })).await;
    let notes = MemoryNotes { todo: Some(TodoState::Dropped), ..notes };
    assert_eq!(one(store, &ann(), known.id).await, Memory { notes, ..known.clone() });
    assert_eq!(refuse(store, &bob(), note(none)).await, ErrorKind::NotFound);
}

/// Metadata that looks like Strata's notes is a client's: it comes back as it is, and the notes stay empty.
pub async fn keeps_notes_and_a_memorys_metadata_apart(store: &dyn Store) {
    let text = r#"{"todo":"done","restored_at":"2026-01-01T00:00:00Z","first_recorded_at":"x","agent_id":"a","b":1.0}"#;
    let attached =
        Memory { kind: MemoryKind::Todo, metadata: Metadata::from_text(text).unwrap(), ..memory("buy milk") };
    add(store, &ann(), attached.clone()).await;
    let read = one(store, &ann(), attached.id).await;
    assert_eq!(read, attached);
    assert_eq!(read.metadata.as_text(), text);
    assert_eq!((read.todo(), read.is_edited()), (Some(TodoState::Open), false));
}

/// A revision keeps the notes and notes when the first statement was recorded, however often it is revised.
pub async fn revising_notes_when_the_first_statement_was_recorded(store: &dyn Store) {
    let notes =
        MemoryNotes { todo: Some(TodoState::Dropped), restored_at: Some(at(4)), ..MemoryNotes::default() };
    let first = Memory { kind: MemoryKind::Todo, recorded_at: at(1), notes, ..memory("one") };
    let id = add(store, &ann(), first).await;
    for (second, content) in [(7, "two"), (9, "three")] {
        let archive_as = MemoryId(fresh());
        let change = Change::ReviseMemory { id, archive_as, content: content.to_owned(), metadata: None };
        store.apply(&ann(), ChangeSet::one(at(second), change)).await.unwrap();
        let read = one(store, &ann(), id).await;
        assert_eq!(read.notes, MemoryNotes { first_recorded_at: Some(at(1)), ..notes });
        assert_eq!((read.first_recorded_at(), read.recorded_at), (at(1), at(second)));
        let former = one(store, &ann(), archive_as).await;
        assert_eq!(former.is_edited(), content == "three");
    }
}

/// Turns that say the same are added to a memory's sources, each once and up to a limit. A memory without sources gets
/// none. Nothing else changes.
pub async fn confirms_a_memory_by_further_turns(store: &dyn Store) {
    let turns: Vec<TurnId> = (0..40).map(|_| TurnId(fresh())).collect();
    let said = Memory { source_turns: turns[..2].to_vec(), ..memory("said") };
    add(store, &ann(), said.clone()).await;
    let confirm = |id, turns: &[TurnId]| Change::ConfirmMemory { id, turns: turns.to_vec() };
    apply(store, &ann(), confirm(said.id, &turns[1..4])).await;
    let confirmed = Memory { source_turns: turns[..4].to_vec(), ..said.clone() };
    assert_eq!(one(store, &ann(), said.id).await, confirmed);
    apply(store, &ann(), confirm(said.id, &turns)).await;
    assert_eq!(one(store, &ann(), said.id).await.source_turns, turns[..16]);
    let by_hand = memory("by hand");
    add(store, &ann(), by_hand.clone()).await;
    apply(store, &ann(), confirm(by_hand.id, &turns)).await;
    assert_eq!(one(store, &ann(), by_hand.id).await, by_hand);
    assert_eq!(refuse(store, &bob(), confirm(said.id, &turns)).await, ErrorKind::NotFound);
}

/// Changes that expect unchanged memories fail with a retryable conflict if a memory was changed or anything was
/// destroyed since they were read. Turns and other users do not matter.
pub async fn expects_the_memories_that_were_read(store: &dyn Store) {
    let id = add(store, &ann(), memory("known")).await;
    let head = store.head(&ann()).await.unwrap();
    let expecting = |head: crate::store::Head| {
        ChangeSet::one(at(1), Change::AddMemory(Box::new(memory("learned"))))
            .expecting(Expectation::memories_since(head))
    };
    append(store, &ann(), "s", &["said"]).await;
    add(store, &bob(), memory("bob's")).await;
    store.apply(&ann(), expecting(head)).await.unwrap();
    let error = store.apply(&ann(), expecting(head)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));

    for change in [
        Change::HideMemory { id, hidden: deleted(1) },
        Change::CloseMemory { id, valid_to: at(1), replaced_by: None },
        Change::NoteMemory { id, notes: MemoryNotes { restored_at: Some(at(1)), ..MemoryNotes::default() } },
        Change::ConfirmMemory { id, turns: vec![TurnId(fresh())] },
        Change::Forget(crate::store::Forget::Memory(id)),
    ] {
        let head = store.head(&ann()).await.unwrap();
        apply(store, &ann(), change).await;
        assert_eq!(kind(store.apply(&ann(), expecting(head)).await), ErrorKind::Conflict);
    }
    assert_eq!(current(store, &ann()).await.len(), 1);
    // A user without data has nothing that could have changed.
    store.apply(&user("new"), expecting(crate::store::Head::default())).await.unwrap();
}
