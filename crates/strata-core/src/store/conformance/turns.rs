//! Turns: appended in order, read back as they were, hidden and restored.

use jiff::Timestamp;
use serde_json::json;

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::TurnId;
use crate::store::{AppendedTurn, Change, ChangeSet, ItemRef, Keep, Store, TurnQuery};
use crate::turn::{Follows, Hidden, HiddenReason, Metadata, NewTurn, Owner, Role, TurnNotes, Usage};

/// Appended turns are numbered from 0 in the order given, and the answer lists the numbers.
pub async fn numbers_turns_from_zero_in_the_order_given(store: &dyn Store) {
    let turns: Vec<NewTurn> = ["one", "two", "three"].map(turn).into();
    let expected: Vec<_> =
        turns.iter().zip(0..).map(|(turn, seq)| AppendedTurn { id: turn.id, seq }).collect();
    let applied = apply(store, &ann(), appending("s", turns)).await;
    assert_eq!(applied.turns, expected);
    let read = all_turns(store, &ann(), "s").await;
    let read: Vec<_> = read.iter().map(|turn| (turn.seq, turn.content.as_str())).collect();
    assert_eq!(read, [(0, "one"), (1, "two"), (2, "three")]);
}

/// Appended turns are numbered from the session's next `seq`.
pub async fn goes_on_numbering_after_the_last_turn(store: &dyn Store) {
    append(store, &ann(), "s", &["one", "two"]).await;
    let applied = apply(store, &ann(), appending("s", vec![turn("three"), turn("four")])).await;
    assert_eq!(applied.turns.iter().map(|turn| turn.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(store.session(&ann(), &session("s")).await.unwrap().unwrap().turn_count, 4);
}

/// Each session is numbered separately.
pub async fn numbers_each_session_by_itself(store: &dyn Store) {
    append(store, &ann(), "a", &["one", "two"]).await;
    let applied = apply(store, &ann(), appending("b", vec![turn("one")])).await;
    assert_eq!(applied.turns[0].seq, 0);
    let applied = apply(store, &bob(), appending("a", vec![turn("one")])).await;
    assert_eq!(applied.turns[0].seq, 0);
}

/// Several appends in one change set continue the numbers, and the answer lists all turns in order.
pub async fn numbers_on_within_one_change_set(store: &dyn Store) {
    let changes = vec![
        appending("a", vec![turn("a0"), turn("a1")]),
        appending("b", vec![turn("b0")]),
        appending("a", vec![turn("a2")]),
    ];
    let applied = store.apply(&ann(), ChangeSet::new(at(0), changes)).await.unwrap();
    assert_eq!(applied.turns.iter().map(|turn| turn.seq).collect::<Vec<_>>(), [0, 1, 0, 2]);
    assert_eq!(all_turns(store, &ann(), "a").await.len(), 3);
}

/// A turn comes back as it was given.
pub async fn keeps_everything_of_a_turn(store: &dyn Store) {
    for role in [Role::User, Role::Assistant, Role::System, Role::Tool] {
        for (reason, name) in [
            (Some(HiddenReason::Error), Some("Ann")),
            (Some(HiddenReason::Abandoned), None),
            (Some(HiddenReason::Evicted), Some("安")),
            (Some(HiddenReason::Deleted), Some("")),
            (None, None),
        ] {
            let new = NewTurn {
                role,
                name: name.map(str::to_owned),
                token_count: u32::MAX,
                metadata: object(json!({"channel": "web"})),
                hidden: reason.map(|reason| Hidden { reason, at: at(7) }),
                ..turn("line one\nline two\t\"quoted\" — 你好 🦀")
            };
            append_turns(store, &ann(), "s", vec![new.clone()]).await;
            let read = store.turns(&ann(), &TurnQuery::Ids(vec![new.id])).await.unwrap();
            let seq = read[0].seq;
            assert_eq!(read, [new.at(session("s"), seq)]);
        }
    }
}

/// Content may be empty, and as large as the engine allows.
pub async fn keeps_large_and_empty_content(store: &dyn Store) {
    let large = "0123456789abcdef 你好\n".repeat(50_000);
    append(store, &ann(), "s", &["", &large, " \n"]).await;
    let read = all_turns(store, &ann(), "s").await;
    let read: Vec<_> = read.into_iter().map(|turn| turn.content).collect();
    assert!(read == ["", &large, " \n"], "content was changed");
}

/// Times are kept to the microsecond, even far from now.
pub async fn keeps_times_to_the_microsecond(store: &dyn Store) {
    for micros in [1_700_000_000_123_456, 1, 0, -1, -62_135_596_800_000_000, 253_402_207_199_999_999] {
        let created_at = Timestamp::from_microsecond(micros).unwrap();
        let new = NewTurn { created_at, ..turn("then") };
        let applied =
            store.apply(&ann(), ChangeSet::one(created_at, appending("s", vec![new.clone()]))).await;
        applied.unwrap();
        let read = store.turns(&ann(), &TurnQuery::Ids(vec![new.id])).await.unwrap();
        assert_eq!(read[0].created_at, created_at, "{micros}");
    }
}

/// Metadata comes back as the client wrote it: the order of its keys, its numbers, its escapes. Keys with the names of
/// Strata's notes belong to the client too, and leave the notes empty.
pub async fn keeps_the_text_of_metadata(store: &dyn Store) {
    for text in [
        r#"{"z":1,"a":{"y":[],"b":1.0},"m":1e2}"#,
        r#"{"big":123456789012345678901234567890,"text":"\\u0000 \u4f60","same":1,"same":2}"#,
        r#"{"interrupted":true,"follows":7,"tool_calls":[{"id":"a"}],"agent_id":"x","usage":{},"high_value":true}"#,
    ] {
        let new = NewTurn { metadata: Metadata::from_text(text).unwrap(), ..turn("attached") };
        append_turns(store, &ann(), "s", vec![new.clone()]).await;
        let read = store.turns(&ann(), &TurnQuery::Ids(vec![new.id])).await.unwrap();
        assert_eq!(read[0].metadata.as_text(), text);
        assert_eq!(read[0].notes, TurnNotes::default());
    }
}

/// All notes about a turn are kept, apart from its metadata.
pub async fn keeps_what_is_noted_about_a_turn(store: &dyn Store) {
    let none = TurnNotes::default();
    let full = TurnNotes {
        follows: Follows::Turn(u64::from(u32::MAX)),
        interrupted: true,
        truncated: true,
        tool_calls: vec![json!({"id": "c1", "name": "f", "arguments": "{\"a\":1}"}), json!({})],
        tool_call_id: Some("c0".to_owned()),
        failed: Some(true),
        usage: Usage { input: Some(u32::MAX), output: Some(0) },
        high_value: true,
        owner: Owner {
            agent: Some("cook".to_owned()),
            in_session: true,
            apart: true,
            metadata: Metadata::from_text(r#"{"b":1,"a":2}"#).unwrap(),
        },
    };
    let failed = |failed| TurnNotes { failed, ..none.clone() };
    let output = Usage { input: None, output: Some(3) };
    for notes in [
        full.clone(),
        TurnNotes { follows: Follows::Nothing, usage: output, ..none.clone() },
        TurnNotes { follows: Follows::Turn(0), ..none.clone() },
        failed(Some(false)),
        failed(None),
    ] {
        let new = NewTurn { notes: notes.clone(), ..turn("noted") };
        append_turns(store, &ann(), "s", vec![new.clone()]).await;
        let read = store.turns(&ann(), &TurnQuery::Ids(vec![new.id])).await.unwrap();
        assert_eq!((&read[0].notes, &read[0].metadata), (&notes, &Metadata::new()));
    }
}

/// Metadata is any JSON object, stored unchanged.
pub async fn keeps_any_metadata(store: &dyn Store) {
    for value in [
        json!({}),
        json!({"": null, "a.b": [1, -2, 3.5, true, {"deep": [[], {}]}]}),
        json!({"max": u64::MAX, "min": i64::MIN, "tiny": 1e-300, "text": "\u{1}\"\\ 你好 🦀"}),
        json!({"created_at": "not ours", "$schema": 1, "z": 1, "a": 2}),
    ] {
        let new = NewTurn { metadata: object(value), ..turn("attached") };
        append_turns(store, &ann(), "s", vec![new.clone()]).await;
        let read = store.turns(&ann(), &TurnQuery::Ids(vec![new.id])).await.unwrap();
        assert_eq!(read[0].metadata, new.metadata);
    }
}

/// An id that exists already is a conflict, and nothing is appended.
pub async fn refuses_an_id_that_exists(store: &dyn Store) {
    let first = turn("one");
    append_turns(store, &ann(), "s", vec![first.clone()]).await;
    for name in ["s", "other"] {
        let again = NewTurn { id: first.id, ..turn("two") };
        let change = appending(name, vec![turn("zero"), again]);
        assert_eq!(refuse(store, &ann(), change).await, ErrorKind::Conflict);
    }
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 1);
    assert_eq!(store.session(&ann(), &session("other")).await.unwrap(), None);
}

/// The same id twice in one call is a conflict too.
pub async fn refuses_an_id_twice_in_one_call(store: &dyn Store) {
    let first = turn("one");
    let second = NewTurn { id: first.id, ..turn("two") };
    assert_eq!(refuse(store, &ann(), appending("s", vec![first, second])).await, ErrorKind::Conflict);
    assert!(all_turns(store, &ann(), "s").await.is_empty());
}

/// A range comes by ascending `seq`, after the given one, up to the limit, hidden turns included.
pub async fn reads_a_range_by_seq(store: &dyn Store) {
    let turns = (0..10).map(|number| NewTurn { created_at: at(-number), ..turn("said") }).collect();
    let ids = append_turns(store, &ann(), "s", turns).await;
    append(store, &ann(), "t", &["elsewhere"]).await;
    apply(store, &ann(), Change::HideTurns { ids: vec![ids[4]], hidden: deleted(0) }).await;
    for (after, limit, expected) in [
        (None, 3, vec![0, 1, 2]),
        (Some(0), 2, vec![1, 2]),
        (Some(2), 3, vec![3, 4, 5]),
        (Some(7), u32::MAX, vec![8, 9]),
        (Some(9), 5, vec![]),
        (Some(u64::MAX), 5, vec![]),
        (None, 0, vec![]),
    ] {
        let query = TurnQuery::Range { session: session("s"), after, limit };
        let read = store.turns(&ann(), &query).await.unwrap();
        assert_eq!(read.iter().map(|turn| turn.seq).collect::<Vec<_>>(), expected, "{after:?} {limit}");
    }
    let query = TurnQuery::Range { session: session("never"), after: None, limit: 5 };
    assert!(store.turns(&ann(), &query).await.unwrap().is_empty());
}

/// Ids come in the requested order, hidden turns included; those that do not exist are left out.
pub async fn reads_ids_in_the_order_asked(store: &dyn Store) {
    let a = append(store, &ann(), "a", &["a0", "a1"]).await;
    let b = append(store, &ann(), "b", &["b0"]).await;
    apply(store, &ann(), Change::HideTurns { ids: vec![a[0]], hidden: deleted(0) }).await;
    let asked = vec![b[0], TurnId(fresh()), a[1], a[0]];
    let read = store.turns(&ann(), &TurnQuery::Ids(asked)).await.unwrap();
    assert_eq!(read.iter().map(|turn| turn.id).collect::<Vec<_>>(), [b[0], a[1], a[0]]);
    assert!(store.turns(&ann(), &TurnQuery::Ids(Vec::new())).await.unwrap().is_empty());
    // There are more ids than an SQL statement takes parameters.
    let many = (0..40_000).map(|_| TurnId(fresh())).chain([a[1]]).collect();
    assert_eq!(store.turns(&ann(), &TurnQuery::Ids(many)).await.unwrap().len(), 1);
}

/// Recent turns come newest first by `created_at`, of one session or of all, said no later than the given moment.
pub async fn reads_the_recent_newest_first(store: &dyn Store) {
    let said = |content: &str, second| NewTurn { created_at: at(second), ..turn(content) };
    append_turns(store, &ann(), "a", vec![said("a30", 30), said("a10", 10)]).await;
    append_turns(store, &ann(), "b", vec![said("b20", 20), said("b40", 40)]).await;
    for (name, as_of, limit, expected) in [
        (None, None, 10, vec!["b40", "a30", "b20", "a10"]),
        (None, None, 2, vec!["b40", "a30"]),
        (None, Some(30), 10, vec!["a30", "b20", "a10"]),
        (Some("a"), None, 10, vec!["a30", "a10"]),
        (Some("b"), Some(39), 10, vec!["b20"]),
        (Some("never"), None, 10, vec![]),
        (None, None, 0, vec![]),
    ] {
        let query = TurnQuery::Recent { session: name.map(session), as_of: as_of.map(at), keep: None, limit };
        let read = store.turns(&ann(), &query).await.unwrap();
        assert_eq!(read.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

/// Of turns with the same time in a session, the one with the greater `seq` is newer.
pub async fn reads_recent_turns_of_the_same_moment_by_seq(store: &dyn Store) {
    append(store, &ann(), "s", &["zero", "one", "two", "three"]).await;
    let query = TurnQuery::recent(Some(session("s")), 3);
    let read = store.turns(&ann(), &query).await.unwrap();
    assert_eq!(read.iter().map(|turn| turn.seq).collect::<Vec<_>>(), [3, 2, 1]);
}

/// Recent turns leave hidden ones out; the limit counts those that remain.
pub async fn leaves_hidden_turns_out_of_recent_only(store: &dyn Store) {
    let error = Some(Hidden { reason: HiddenReason::Error, at: at(0) });
    let failed = NewTurn { hidden: error, created_at: at(9), ..turn("failed") };
    let ids = append_turns(store, &ann(), "s", vec![turn("one"), turn("two"), failed]).await;
    let recent = TurnQuery::recent(None, 2);
    let read = store.turns(&ann(), &recent).await.unwrap();
    assert_eq!(read.iter().map(|turn| turn.id).collect::<Vec<_>>(), [ids[1], ids[0]]);
    assert_eq!(all_turns(store, &ann(), "s").await.len(), 3);
}

/// Recent turns that fail a query's test are passed over, and the limit counts those that remain.
pub async fn keeps_recent_turns_that_pass_the_test(store: &dyn Store) {
    append(store, &ann(), "s", &["tea", "milk", "tea again", "milk again"]).await;
    let is_tea = |item: ItemRef<'_>| matches!(item, ItemRef::Turn(turn) if turn.content.starts_with("tea"));
    for (limit, expected) in [(9, vec!["tea again", "tea"]), (1, vec!["tea again"]), (0, vec![])] {
        let keep = Some(Keep::new(is_tea));
        let query = TurnQuery::Recent { session: None, as_of: None, keep, limit };
        let read = store.turns(&ann(), &query).await.unwrap();
        assert_eq!(read.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), expected);
    }
}

/// The hidden turns of a session come by `seq`, after the given one; the limit counts hidden ones only.
pub async fn reads_the_hidden_turns_of_a_session(store: &dyn Store) {
    let ids = append(store, &ann(), "s", &["zero", "one", "two", "three", "four"]).await;
    append(store, &ann(), "t", &["another session's"]).await;
    let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: at(5) });
    let gone = vec![ids[4], ids[1], ids[3]];
    apply(store, &ann(), Change::HideTurns { ids: gone, hidden }).await;
    for (after, limit, expected) in [
        (None, 9, vec![1, 3, 4]),
        (None, 2, vec![1, 3]),
        (Some(1), 9, vec![3, 4]),
        (Some(u64::MAX), 9, vec![]),
    ] {
        let query = TurnQuery::Hidden { session: session("s"), after, limit };
        let read = store.turns(&ann(), &query).await.unwrap();
        assert_eq!(read.iter().map(|turn| turn.seq).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

/// Hiding marks turns and changes nothing else of them; with `None` they come back as they were.
pub async fn hides_and_restores_turns(store: &dyn Store) {
    let ids = append(store, &ann(), "s", &["one", "two", "three"]).await;
    let before = all_turns(store, &ann(), "s").await;
    let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: at(5) });
    apply(store, &ann(), Change::HideTurns { ids: vec![ids[2], ids[0]], hidden }).await;
    let marks = all_turns(store, &ann(), "s").await;
    assert_eq!(marks.iter().map(|turn| turn.hidden).collect::<Vec<_>>(), [hidden, None, hidden]);
    apply(store, &ann(), Change::HideTurns { ids, hidden: None }).await;
    assert_eq!(all_turns(store, &ann(), "s").await, before);
}

/// A turn that does not exist cannot be hidden, and the other turns of the change stay visible.
pub async fn refuses_to_hide_an_unknown_turn(store: &dyn Store) {
    let ids = append(store, &ann(), "s", &["one"]).await;
    let change = Change::HideTurns { ids: vec![ids[0], TurnId(fresh())], hidden: deleted(1) };
    assert_eq!(refuse(store, &ann(), change).await, ErrorKind::NotFound);
    assert_eq!(all_turns(store, &ann(), "s").await[0].hidden, None);
}
