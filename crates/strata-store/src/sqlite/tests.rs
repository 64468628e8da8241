//! Tests that need what is private: the writer's groups, an index that stays behind, a disk that is full.

use std::path::Path;

use rusqlite::{Connection, StatementStatus, params};
use strata_core::store::conformance::fixture::{ann, append, appending, at, found, job, lease, turn, words};
use strata_core::store::{Change, ChangeSet, CheckDepth, Forget, ItemKinds, TextMatch, TextQuery, TurnQuery};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ErrorKind, ItemId, SessionId, Store, Turn, TurnId};
use tempfile::TempDir;

use super::scrub::Step;
use super::watch::FileWatch;
use super::writer::{Indexing, PendingWrite, Thread, Writer};
use super::{SqliteOptions, SqliteStore, connection};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(path: &Path, indexing: Indexing) -> SqliteStore {
    SqliteStore::open_with(path, SqliteOptions::default(), indexing).unwrap()
}

async fn all_indexed(store: &SqliteStore) {
    while store.check(CheckDepth::Quick).await.unwrap().unindexed > 0 {
        tokio::task::yield_now().await;
    }
}

fn question(text: &str) -> TextQuery {
    TextQuery {
        text: text.to_owned(),
        matching: TextMatch::Words,
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        keep: None,
        limit: 10,
    }
}

#[tokio::test]
async fn what_a_crash_left_unindexed_is_found_and_caught_up() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let store = open(&path, Indexing::Off);
    let contents = [
        "we met at the west lake",
        "the lake was frozen, the whole lake",
        "杭州的西湖很美",
        "bread and salt",
    ];
    append(&store, &ann(), "s", &contents).await;
    let before = store.search(&ann(), &question("lake 西湖")).await.unwrap();
    assert_eq!(before.len(), 3);
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().unindexed, 4);
    drop(store);

    let store = open(&path, Indexing::Behind);
    all_indexed(&store).await;
    let health = store.check(CheckDepth::Thorough).await.unwrap();
    assert_eq!((health.unindexed, health.problems), (0, Vec::new()));
    // Indexing changes nothing that can be seen, scores included.
    assert_eq!(store.search(&ann(), &question("lake 西湖")).await.unwrap(), before);
}

#[tokio::test]
async fn rows_that_take_a_forgotten_ones_number_are_indexed() {
    let folder = folder();
    let store = open(&folder.path().join("strata.db"), Indexing::Behind);
    append(&store, &ann(), "s", &["an apple", "a pear"]).await;
    all_indexed(&store).await;
    let forget = Change::Forget(Forget::Session(SessionId::new("s").unwrap()));
    store.apply(&ann(), ChangeSet::one(at(1), forget)).await.unwrap();
    append(&store, &ann(), "t", &["a plum", "a cherry"]).await;
    assert_eq!(found(&store, &ann(), &words("plum")).await, ["a plum"]);
    all_indexed(&store).await;
    assert_eq!(found(&store, &ann(), &words("cherry")).await, ["a cherry"]);
    assert!(found(&store, &ann(), &words("apple")).await.is_empty());
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_corrected_turn_leaves_nothing_of_its_former_text() {
    let folder = folder();
    let store = open(&folder.path().join("strata.db"), Indexing::Behind);
    let ids = append(&store, &ann(), "s", &["we met at the quarry", "the mill turns"]).await;
    all_indexed(&store).await;
    let vector = Vector { scale: 1.0, values: vec![1, 2] };
    let vectors = ids.iter().map(|id| ItemVector {
        item: ItemId::Turn(*id),
        model: "m".to_owned(),
        vector: vector.clone(),
    });
    store.apply(&ann(), ChangeSet::one(at(1), Change::PutVectors(vectors.collect()))).await.unwrap();
    let (head, session) = (store.head(&ann()).await.unwrap(), SessionId::new("s").unwrap());
    let version = store.session(&ann(), &session).await.unwrap().unwrap().version;
    let query = TurnQuery::Range { session: session.clone(), after: None, limit: 10 };
    let turn = store.turns(&ann(), &query).await.unwrap().remove(0);
    let corrected = Turn { content: "we met at the harbour".to_owned(), token_count: 9, ..turn };
    store.correct_turns(&ann(), at(2), vec![corrected.clone()]).await.unwrap();
    assert_eq!(store.turns(&ann(), &query).await.unwrap()[0], corrected);
    assert_eq!(found(&store, &ann(), &words("harbour")).await, ["we met at the harbour"]);
    assert!(found(&store, &ann(), &words("quarry")).await.is_empty());
    let left = store.vectors_since(&ann(), "m", 0).await.unwrap();
    assert_eq!(left.iter().map(|vector| vector.vector.item).collect::<Vec<_>>(), [ItemId::Turn(ids[1])]);
    // Indexes in memory load it again, and a writer who has read the session reads it again.
    let now = store.head(&ann()).await.unwrap();
    assert!(now.revision > head.revision && now.epoch > head.epoch, "{now:?}");
    assert_ne!(store.session(&ann(), &session).await.unwrap().unwrap().version, version);
    let unknown = Turn { id: TurnId(uuid::Uuid::from_u128(5)), ..corrected };
    let error = store.correct_turns(&ann(), at(3), vec![unknown]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_set_that_fails_goes_alone_out_of_its_group() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let conn = connection::open_writer(&path, &SqliteOptions::default()).unwrap();
    let mut thread = Thread::new(conn, Indexing::Off, FileWatch::blind());
    let double = turn("said once");
    let sets = [
        vec![appending("s", vec![turn("first")])],
        vec![appending("s", vec![turn("lost")]), appending("s", vec![double.clone(), double])],
        vec![appending("s", vec![turn("second")])],
    ];
    let mut answers = Vec::new();
    let group = sets.map(|changes| {
        let (answer, answered) = tokio::sync::oneshot::channel();
        answers.push(answered);
        PendingWrite::Apply { user: ann(), changes: ChangeSet::new(at(0), changes), answer }
    });
    thread.commit_group(group.into());
    let mut results = Vec::new();
    for answer in answers {
        results.push(answer.await.unwrap().map(|applied| applied.turns[0].seq).map_err(|error| error.kind()));
    }
    assert_eq!(results, [Ok(0), Err(ErrorKind::Conflict), Ok(1)]);
    drop(thread);

    let store = open(&path, Indexing::Behind);
    let range = TurnQuery::Range { session: SessionId::new("s").unwrap(), after: None, limit: 10 };
    let turns = store.turns(&ann(), &range).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}

#[tokio::test]
async fn a_lease_rides_in_its_group_and_goes_with_it() {
    let folder = folder();
    let options = SqliteOptions { max_bytes: Some(1 << 20), ..SqliteOptions::default() };
    let conn = connection::open_writer(&folder.path().join("strata.db"), &options).unwrap();
    let mut thread = Thread::new(conn, Indexing::Off, FileWatch::blind());
    let mut group = |said: &str, second: i64| {
        let ((applied, was_applied), (leased, was_leased)) =
            (tokio::sync::oneshot::channel(), tokio::sync::oneshot::channel());
        let changes = vec![
            appending("s", vec![turn(said)]),
            Change::EnqueueJob(Box::new(job(Some(&second.to_string()), second))),
        ];
        let changes = ChangeSet::new(at(second), changes);
        let apply = PendingWrite::Apply { user: ann(), changes, answer: applied };
        let lease = PendingWrite::Lease { request: lease(second, second + 100), answer: leased };
        thread.commit_group(vec![apply, lease]);
        (was_applied, was_leased)
    };
    let (applied, leased) = group("hello", 1);
    applied.await.unwrap().unwrap();
    let found = leased.await.unwrap().unwrap().unwrap();
    assert_eq!((found.session.unwrap().as_str(), found.attempts), ("1", 1));

    // The file is full: what was asked for goes, and with it the job.
    let (applied, leased) = group(&"all work and no play ".repeat(100_000), 2);
    assert_eq!(applied.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(!matches!(leased.await.unwrap(), Ok(Some(_))), "a job was leased that was never asked for");
}

#[test]
fn a_statement_is_planned_once_whatever_is_bound_to_it() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let writer = connection::open_writer(&path, &SqliteOptions::default()).unwrap();
    let reader = connection::open_reader(&path, &SqliteOptions::default()).unwrap();
    // Two that SQLite would plan anew at each use: the one that looks for a waiting job, and any with a bound limit.
    let waiting = "SELECT row, attempts, run_at FROM jobs INDEXED BY jobs_waiting
                   WHERE user_id = ?1 AND session IS ?2 AND kind = ?3 AND status = 'queued' ORDER BY row LIMIT 1";
    let limited = "SELECT row FROM turns WHERE user_id = ?1 AND name IS ?2 LIMIT ?3";
    for conn in [writer, reader] {
        for sql in [waiting, limited] {
            for (user, name, last) in [(1, "a", 7), (2, "b", 8), (3, "c", 9)] {
                let mut select = conn.prepare_cached(sql).unwrap();
                assert!(!select.exists(params![user, name, last]).unwrap());
                assert_eq!(select.get_status(StatementStatus::RePrepare), 0, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_loses_nothing() {
    let folder = folder();
    let options = SqliteOptions { max_bytes: Some(1 << 20), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&folder.path().join("strata.db"), options, Indexing::Off).unwrap();
    let large = "all work and no play ".repeat(5_000);
    let mut written = 0;
    let error = loop {
        match store.apply(&ann(), ChangeSet::one(at(0), appending("s", vec![turn(&large)]))).await {
            Ok(applied) => {
                assert_eq!(applied.turns[0].seq, written);
                written += 1;
            }
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    assert!(error.message().contains("disk is full"), "{error}");
    assert!(written > 2, "{written}");

    let applied =
        store.apply(&ann(), ChangeSet::one(at(0), appending("s", vec![turn("short")]))).await.unwrap();
    assert_eq!(applied.turns[0].seq, written);
    let health = store.check(CheckDepth::Thorough).await.unwrap();
    assert_eq!((health.turns, health.problems), (written + 1, Vec::new()));
}

#[tokio::test]
async fn a_writing_thread_that_is_gone_is_an_error_and_no_hang() {
    let writer = Writer::over(|calls| drop(calls.recv())).unwrap();
    let changes = || ChangeSet::one(at(0), appending("s", vec![turn("anybody there")]));
    // The first call was taken and never answered, the second finds nobody.
    for _ in 0..2 {
        let error = writer.apply(ann(), changes()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("thread has stopped"), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_right_names_its_table_and_row() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let store = open(&path, Indexing::Off);
    append(&store, &ann(), "s", &["one", "two"]).await;
    let vandal = Connection::open(&path).unwrap();
    vandal.execute("UPDATE sessions SET state = '{' WHERE id = 1", []).unwrap();
    let error = store.session(&ann(), &SessionId::new("s").unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    for part in ["row `1`", "table `sessions`", "column `state`"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_thorough_check_names_what_is_wrong() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let store = open(&path, Indexing::Behind);
    append(&store, &ann(), "s", &["one", "two", "three"]).await;
    all_indexed(&store).await;
    let vandal = Connection::open(&path).unwrap();
    vandal
        .execute_batch(
            "DELETE FROM turns WHERE seq = 1;
             INSERT INTO models (name) VALUES ('m');
             INSERT INTO vectors (user_id, model_id, kind, item, revision, scale, components)
                 VALUES (1, 1, 1, 99, 1, 1.0, x'01');",
        )
        .unwrap();
    let problems = store.check(CheckDepth::Thorough).await.unwrap().problems.join("\n");
    for part in
        ["session `s` of user `ann` has a gap", "vector 1 is of no item", "1 items too many", "reindex"]
    {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    store.reindex().await.unwrap();
    let problems = store.check(CheckDepth::Thorough).await.unwrap().problems.join("\n");
    assert!(!problems.contains("reindex"), "{problems}");
    assert_eq!(found(&store, &ann(), &words("three")).await, ["three"]);
}

#[tokio::test]
async fn misspelt_words_are_found_beyond_the_newest() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let store = open(&path, Indexing::Behind);
    let contents = ["a weekend in Strasbourg", "nothing of the kind", "bread and salt"];
    append(&store, &ann(), "s", &contents).await;
    all_indexed(&store).await;
    let conn = connection::open_reader(&path, &SqliteOptions::default()).unwrap();
    let matching = TextMatch::Similar { min_similarity: 0.3 };
    let query = TextQuery { matching, ..question("Strassburg") };
    // Only one item is compared word by word, and it is not the one.
    let hits = super::search::search_comparing(&conn, &ann(), &query, 1).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.item.content()).collect::<Vec<_>>(), [contents[0]]);
    assert_eq!(hits, store.search(&ann(), &query).await.unwrap());
}

#[tokio::test]
async fn an_append_is_flushed_at_its_commit_also_after_indexing() {
    let folder = folder();
    let conn = connection::open_writer(&folder.path().join("strata.db"), &SqliteOptions::default()).unwrap();
    let mut thread = Thread::new(conn, Indexing::Off, FileWatch::blind());
    let level = |thread: &Thread| -> i32 {
        thread.conn.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
    };
    // SQLite's numbers: 1 is `NORMAL`, 2 is `FULL`. The level stays as the last transaction had it.
    for _ in 0..2 {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let changes = ChangeSet::one(at(0), appending("s", vec![turn("hello")]));
        thread.commit_group(vec![PendingWrite::Apply { user: ann(), changes, answer }]);
        answered.await.unwrap().unwrap();
        assert_eq!(level(&thread), 2);
        thread.index(10);
        assert_eq!(level(&thread), 1);
    }
}

#[tokio::test]
async fn scrubbing_may_end_after_any_step() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let store = open(&path, Indexing::Behind);
    for round in 0..40 {
        let said = format!(
            "the zanzibarquux of round{round} {}",
            (0..200).map(|word| format!("w{word}r{round} ")).collect::<String>()
        );
        append(&store, &ann(), if round % 2 == 0 { "s" } else { "kept" }, &[&said]).await;
        if round % 10 == 9 {
            all_indexed(&store).await;
        }
    }
    let forget = Change::Forget(Forget::Session(SessionId::new("s").unwrap()));
    store.apply(&ann(), ChangeSet::one(at(1), forget)).await.unwrap();
    drop(store);

    let mut steps = 0;
    loop {
        let conn = connection::open_writer(&path, &SqliteOptions::default()).unwrap();
        let mut thread = Thread::new(conn, Indexing::Off, FileWatch::blind());
        let step = thread.scrub_step().unwrap();
        drop(thread);
        let store = open(&path, Indexing::Off);
        assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
        assert_eq!(found(&store, &ann(), &words("w7r33")).await.len(), 1);
        assert!(found(&store, &ann(), &words("w7r32")).await.is_empty());
        steps += 1;
        if step == Step::Done {
            break;
        }
    }
    assert!(steps > 1, "one step did it all");
}

#[tokio::test]
async fn pages_that_nothing_uses_are_written_over_in_a_large_file() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let conn = connection::open_writer(&path, &SqliteOptions::default()).unwrap();
    let mut thread = Thread::new(conn, Indexing::Off, FileWatch::blind());
    let secret = "zanzibarquux ".repeat(20_000);
    thread
        .conn
        .execute_batch(&format!("CREATE TABLE t (x); INSERT INTO t VALUES ('{secret}'); DROP TABLE t"))
        .unwrap();
    let unused =
        |conn: &Connection| conn.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(unused(&thread.conn) > 50);
    thread.overwrite_unused().unwrap();
    drop(thread);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(12).any(|window| window == b"zanzibarquux"));
}
