//! One damaged row stays one damaged row: reads pass over it and count it, the check names it, and a repair puts it aside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::path::Path;

use rusqlite::Connection;
use strata_core::memory::Memory;
use strata_core::metric::RequestMetric;
use strata_core::store::conformance::fixture::{
    add, ann, append, apply, at, bob, enqueue, found, job, key, lease, memory, request, session, summary,
    turn, words,
};
use strata_core::store::{
    Change, ChangeSet, CheckDepth, Forget, Idempotency, Item, MemoryQuery, MemorySelect, Page, Segment,
    TurnQuery,
};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ItemId, Store, Turn};
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

/// A store with a bit of everything; ann's fourth turn will be damaged.
async fn filled(path: &Path) -> SqliteStore {
    let store = open(path);
    let said: Vec<String> =
        (0..9).map(|number| format!("walnut tree number{number} in the garden")).collect();
    append(&store, &ann(), "s", &said.iter().map(String::as_str).collect::<Vec<_>>()).await;
    append(&store, &bob(), "s", &["a walnut of his own"]).await;
    add(&store, &ann(), memory("Grows walnuts")).await;
    add(&store, &ann(), memory("Owns a ladder")).await;
    apply(&store, &ann(), Change::PutSummary(Box::new(summary("s", 1)))).await;
    apply(&store, &ann(), Change::AddRequest(Box::new(request(1)))).await;
    apply(&store, &ann(), Change::AddKey(Box::new(key(1)))).await;
    enqueue(&store, vec![job(Some("s"), 1), job(Some("t"), 2)]).await;
    fill_derived(&store).await;
    store
}

/// What Strata has made of ann's items: a vector, a segment, and how far it has come.
async fn fill_derived(store: &SqliteStore) {
    let item = ItemId::Turn(turns(store, 1).await[0].id);
    let vector =
        ItemVector { item, model: "small".to_owned(), vector: Vector { scale: 1.0, values: vec![3, 4] } };
    apply(store, &ann(), Change::PutVectors(vec![vector])).await;
    let epoch = store.head(&ann()).await.unwrap().epoch;
    let segment = Segment { space: "words".to_owned(), first: 1, last: 2, bytes: vec![7, 8] };
    apply(store, &ann(), Change::PutSegment { segment, epoch }).await;
    apply(store, &ann(), Change::SetProgress { space: "reading".to_owned(), revision: 2 }).await;
}

fn damage(path: &Path, sql: &str) {
    let conn = Connection::open(path).unwrap();
    assert_eq!(conn.execute(sql, []).unwrap(), 1, "{sql}");
}

/// Bytes that are no UTF-8.
const BAD: &str = "CAST(x'77616c6e757420fffe' AS TEXT)";

async fn turns(store: &SqliteStore, limit: u32) -> Vec<Turn> {
    store.turns(&ann(), &TurnQuery::Range { session: session("s"), after: None, limit }).await.unwrap()
}

#[tokio::test]
async fn reads_pass_over_a_damaged_turn_and_say_so() {
    for indexed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = filled(&path).await;
        if indexed {
            store.reindex().await.unwrap();
        }
        damage(&path, &format!("UPDATE turns SET content = {BAD} WHERE user_id = 1 AND seq = 3"));
        assert_eq!(store.unreadable(&ann()), 0);
        let hits = found(&store, &ann(), &words("walnut")).await;
        assert_eq!(hits.iter().filter(|hit| hit.contains("number")).count(), 8, "{hits:?}");
        assert!(store.unreadable(&ann()) > 0);
        assert_eq!(store.unreadable(&bob()), 0);
        // Pages are as long as they were asked for, so nobody takes a short one for the end.
        assert_eq!(turns(&store, 8).await.len(), 8);
        assert_eq!(turns(&store, 8).await[3].seq, 4);
        for limit in [1, 3, 20] {
            let mut after = 0;
            let mut fed = 0;
            loop {
                let batch = store.feed(&ann(), after, limit).await.unwrap();
                let Some((last, _)) = batch.last() else { break };
                after = *last;
                fed += batch.iter().filter(|(_, item)| matches!(item, Item::Turn(_))).count();
            }
            assert_eq!(fed, 8, "in steps of {limit}");
        }
        let recent = TurnQuery::recent(None, 20);
        assert_eq!(store.turns(&ann(), &recent).await.unwrap().len(), 8);
    }
}

/// The damages, each of one row, and the table that holds it.
fn damages() -> Vec<(&'static str, String)> {
    vec![
        ("turns", format!("UPDATE turns SET content = {BAD} WHERE user_id = 1 AND seq = 3")),
        ("turns", "UPDATE turns SET metadata = '{\"a\":' WHERE user_id = 1 AND seq = 4".to_owned()),
        ("turns", "UPDATE turns SET role = 'wizard' WHERE user_id = 1 AND seq = 5".to_owned()),
        ("memories", format!("UPDATE memories SET content = {BAD} WHERE content LIKE '%ladder%'")),
        ("memories", "UPDATE memories SET source_turns = '[' WHERE content LIKE 'Grows%'".to_owned()),
        ("sessions", "UPDATE sessions SET state = '{' WHERE user_id = 1".to_owned()),
        ("summaries", format!("UPDATE summaries SET text = {BAD}")),
        ("requests", "UPDATE requests SET metric = '{}'".to_owned()),
        ("jobs", "UPDATE jobs SET payload = '{' WHERE session = 's'".to_owned()),
        ("keys", "UPDATE keys SET scopes = 'everything'".to_owned()),
        ("turns", "UPDATE turns SET id = x'07' WHERE user_id = 1 AND seq = 3".to_owned()),
        (
            "turns",
            "UPDATE turns SET created_at = 9223372036854775807 WHERE user_id = 1 AND seq = 3".to_owned(),
        ),
        ("turns", "UPDATE turns SET output_tokens = -2 WHERE user_id = 1 AND seq = 3".to_owned()),
        ("sessions", format!("UPDATE sessions SET name = {BAD} WHERE user_id = 2")),
        ("sessions", "UPDATE sessions SET updated_at = -9223372036854775807 WHERE user_id = 1".to_owned()),
        ("users", format!("UPDATE users SET name = {BAD} WHERE id = 2")),
        ("users", "UPDATE users SET name = 'line' || char(10) WHERE id = 2".to_owned()),
        ("users", "UPDATE users SET revision = -7 WHERE id = 1".to_owned()),
        ("users", "UPDATE users SET vectors = -7, writes = -7, epoch = -7 WHERE id = 1".to_owned()),
        ("vectors", "UPDATE vectors SET components = x''".to_owned()),
        ("vectors", "UPDATE vectors SET item = -3".to_owned()),
        ("segments", "UPDATE segments SET bytes = x''".to_owned()),
        ("segments", format!("UPDATE segments SET space = {BAD}")),
        ("models", format!("UPDATE models SET name = {BAD}")),
        ("progress", format!("UPDATE progress SET space = {BAD} WHERE space = 'reading'")),
        ("progress", "UPDATE progress SET revision = -1 WHERE space = 'reading'".to_owned()),
    ]
}

async fn problems(store: &SqliteStore) -> Vec<String> {
    store.check(CheckDepth::Thorough).await.unwrap().problems
}

#[tokio::test]
async fn every_damaged_row_is_named_and_put_aside() {
    for (table, sql) in damages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = filled(&path).await;
        assert_eq!(problems(&store).await, Vec::<String>::new());
        damage(&path, &sql);
        let named = problems(&store).await;
        assert!(named.iter().any(|problem| problem.contains(&format!("`{table}`"))), "{sql}: {named:?}");
        // Rebuilding the index survives it, before the repair and after it.
        store.reindex().await.unwrap();
        assert_eq!(store.repair(at(50)).await.unwrap(), 1, "{sql}");
        assert_eq!(problems(&store).await, Vec::<String>::new(), "{sql}");
        store.reindex().await.unwrap();
        let kept = store.quarantined().await.unwrap();
        assert_eq!(kept.len(), 1, "{sql}");
        assert_eq!(kept[0].table, table);
        assert_eq!(store.repair(at(51)).await.unwrap(), 0, "a second time there is nothing to do");
        assert_eq!(turns(&store, 20).await.len(), 9, "{sql}: no turn is lost");
        let hits = found(&store, &ann(), &words("number7")).await;
        assert_eq!(hits.len(), 1, "{sql}: {hits:?}");
    }
}

/// What the text index knows about itself begins anew with `strata reindex`, so the repair is tried without it.
#[tokio::test]
async fn damaged_counts_of_the_text_index_are_put_aside_and_the_index_begins_anew() {
    for (table, sql) in [
        ("indexed", "UPDATE indexed SET upto = -1 WHERE kind = 0"),
        ("users", "UPDATE users SET indexed_items = -9 WHERE id = 1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = filled(&path).await;
        store.reindex().await.unwrap();
        damage(&path, sql);
        let named = problems(&store).await;
        assert!(named.iter().any(|problem| problem.contains(&format!("`{table}`"))), "{sql}: {named:?}");
        assert_eq!(store.repair(at(50)).await.unwrap(), 1, "{sql}");
        store.reindex().await.unwrap();
        assert_eq!(problems(&store).await, Vec::<String>::new(), "{sql}");
        assert_eq!(store.quarantined().await.unwrap()[0].table, table);
        assert_eq!(found(&store, &ann(), &words("number7")).await.len(), 1, "{sql}");
    }
}

#[tokio::test]
async fn a_damaged_row_in_quarantine_is_named_and_put_aside_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    damage(&path, "UPDATE requests SET metric = '{}'");
    assert_eq!(store.repair(at(50)).await.unwrap(), 1);
    damage(&path, &format!("UPDATE quarantine SET content = {BAD}"));
    let named = problems(&store).await;
    assert!(named.iter().any(|problem| problem.contains("`quarantine`")), "{named:?}");
    assert_eq!(store.repair(at(51)).await.unwrap(), 1);
    assert_eq!(problems(&store).await, Vec::<String>::new());
    let kept = store.quarantined().await.unwrap();
    assert_eq!(kept[0].content["content"]["hex"], "77616c6e757420fffe");
}

#[tokio::test]
async fn a_name_that_cannot_be_read_becomes_one_that_no_other_user_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    // What is valid of the damaged name is the name of another user.
    damage(&path, "UPDATE users SET name = 'ann' || char(7) WHERE id = 2");
    assert_eq!(store.repair(at(50)).await.unwrap(), 1);
    let names: Vec<String> =
        store.users(Page::first(9)).await.unwrap().iter().map(|user| user.as_str().to_owned()).collect();
    assert_eq!(names, ["ann", "ann-2"]);
    assert_eq!(turns(&store, 20).await.len(), 9);
}

#[tokio::test]
async fn the_bytes_of_a_damaged_text_are_kept_and_what_is_valid_of_it_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    damage(&path, &format!("UPDATE turns SET content = {BAD} WHERE user_id = 1 AND seq = 3"));
    store.repair(at(50)).await.unwrap();
    assert_eq!(store.quarantined().await.unwrap()[0].content["content"]["hex"], "77616c6e757420fffe");
    let turn = turns(&store, 20).await.remove(3);
    assert!(turn.content.starts_with("walnut "), "{}", turn.content);
    assert!(turn.hidden.is_some(), "it is out of recall");
    // What is forgotten is forgotten in quarantine, too.
    apply(&store, &ann(), Change::Forget(Forget::Session(session("s")))).await;
    assert!(store.quarantined().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_damaged_memory_does_not_stop_forgetting_and_a_damaged_job_no_other() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    damage(&path, "UPDATE memories SET source_turns = '[' WHERE content LIKE 'Grows%'");
    damage(&path, "UPDATE jobs SET payload = '{' WHERE session = 's'");
    let leased = store.lease_job(&lease(9, 10)).await.unwrap().expect("the other job is due");
    assert_eq!(leased.session.unwrap().as_str(), "t");
    apply(&store, &ann(), Change::Forget(Forget::Session(session("s")))).await;
    let all = MemoryQuery::new(MemorySelect::All);
    assert_eq!(store.memories(&ann(), &all).await.unwrap().len(), 1);
    assert!(store.sessions(&ann(), Page::first(9)).await.unwrap().is_empty());
}

#[tokio::test]
async fn forgetting_reaches_what_was_put_aside() {
    let damages = [
        "UPDATE memories SET metadata = '{' WHERE content LIKE 'Bound%'",
        "UPDATE memories SET metadata = '{' WHERE content LIKE 'Said%'",
        "UPDATE jobs SET payload = '{' WHERE session = 's'",
        "UPDATE requests SET metric = '{}' WHERE session = 's'",
    ];
    for forgets_session in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = filled(&path).await;
        let said = turns(&store, 1).await[0].id;
        let bound = Memory { session: Some(session("s")), ..memory("Bound to the session") };
        let stated = Memory { source_turns: vec![said], ..memory("Said in the session") };
        let ids = [bound.id, stated.id];
        add(&store, &ann(), bound).await;
        add(&store, &ann(), stated).await;
        let asked = RequestMetric { session: Some(session("s")), ..request(2) };
        apply(&store, &ann(), Change::AddRequest(Box::new(asked))).await;
        for sql in damages {
            damage(&path, sql);
        }
        damage(&path, "UPDATE memories SET metadata = '{' WHERE content LIKE '%ladder%'");
        assert_eq!(store.repair(at(50)).await.unwrap(), 5);
        if forgets_session {
            apply(&store, &ann(), Change::Forget(Forget::Session(session("s")))).await;
        } else {
            for id in ids {
                apply(&store, &ann(), Change::Forget(Forget::Memory(id))).await;
            }
        }
        let left = store.quarantined().await.unwrap();
        let mut left: Vec<&str> = left.iter().map(|row| row.table.as_str()).collect();
        left.sort_unstable();
        let wanted: &[&str] = if forgets_session { &["memories"] } else { &["jobs", "memories", "requests"] };
        assert_eq!(left, wanted);
    }
}

#[tokio::test]
async fn a_former_statement_that_was_put_aside_is_forgotten_with_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    let former = add(&store, &ann(), memory("Keeps two parrots")).await;
    let id = add(&store, &ann(), memory("Keeps three parrots")).await;
    let close = Change::CloseMemory { id: former, valid_to: at(9), replaced_by: Some(id) };
    apply(&store, &ann(), close).await;
    damage(&path, "UPDATE memories SET metadata = '{' WHERE content LIKE '%two parrots'");
    assert_eq!(store.repair(at(50)).await.unwrap(), 1);
    let applied = apply(&store, &ann(), Change::Forget(Forget::Memory(id))).await;
    assert_eq!(applied.removed.memories, 2);
    assert!(store.quarantined().await.unwrap().is_empty());
}

#[tokio::test]
async fn one_damaged_answer_leaves_the_other_answers_of_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    for key in ["first", "second", "third"] {
        let turns = Change::AppendTurns { session: session("s"), turns: vec![turn(key)] };
        let set = ChangeSet {
            idempotency: Some(Idempotency { key: key.to_owned(), fingerprint: 1 }),
            ..ChangeSet::one(at(9), turns)
        };
        store.apply(&ann(), set).await.unwrap();
    }
    damage(&path, "UPDATE idempotency SET answer = '{' WHERE key = 'second'");
    assert_eq!(store.repair(at(50)).await.unwrap(), 1);
    let kept = store.quarantined().await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].content["key"], "second");
    let conn = Connection::open(&path).unwrap();
    let left: i64 = conn.query_row("SELECT count(*) FROM idempotency", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 2);
}
