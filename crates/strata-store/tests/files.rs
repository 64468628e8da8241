//! What a file may be when it is opened, what several stores do on one file, and copies made while it is written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use strata_core::store::conformance::fixture::{
    ann, append, appending, at, bob, deleted, fresh, job, memory, request, session, turn, words,
};
use strata_core::store::{Change, ChangeSet, CheckDepth, Forget, Page, TurnQuery};
use strata_core::{ErrorKind, MemoryId, Store, TurnId};
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

/// Opens a file that must be refused, says why, and sees that it stayed as it was.
fn refused(path: &Path, options: SqliteOptions) -> (ErrorKind, String) {
    let before = std::fs::read(path).ok();
    let error = SqliteStore::open(path, options).err().expect("the file should be refused");
    assert_eq!(std::fs::read(path).ok(), before);
    let beside: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
        .unwrap_or_default();
    assert!(beside.len() <= 1, "{beside:?}");
    assert!(error.message().contains(&path.parent().unwrap().display().to_string()), "{error}");
    (error.kind(), error.message().to_owned())
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "bread, salt, ".repeat(1_000)).unwrap();
    let (kind, message) = refused(&path, SqliteOptions::default());
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("no SQLite database"), "{message}");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = folder();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
    let (kind, message) = refused(&path, SqliteOptions::default());
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("another program"), "{message}");
}

#[tokio::test]
async fn a_newer_format_is_refused_with_both_versions() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    open(&path).close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    conn.close().unwrap();
    let (kind, message) = refused(&path, SqliteOptions::default());
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("version 99") && message.contains("up to 11"), "{message}");
}

#[test]
fn a_missing_folder_and_a_folder_are_refused() {
    let folder = folder();
    let (kind, message) = refused(&folder.path().join("no/such/strata.db"), SqliteOptions::default());
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("does not exist"), "{message}");

    let error = SqliteStore::open(folder.path(), SqliteOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("is a folder"), "{error}");
}

#[tokio::test]
async fn a_store_opened_for_reading_reads_and_refuses_to_write() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let read_only = SqliteOptions { read_only: true, ..SqliteOptions::default() };
    assert_eq!(refused(&path, read_only.clone()).0, ErrorKind::Unavailable);

    let store = open(&path);
    append(&store, &ann(), "s", &["bread and salt"]).await;
    store.close().await.unwrap();
    let store = SqliteStore::open(&path, read_only).unwrap();
    assert_eq!(store.search(&ann(), &words("salt")).await.unwrap().len(), 1);
    let refused = store.apply(&ann(), ChangeSet::one(at(0), appending("s", vec![turn("no")]))).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(store.check(CheckDepth::Thorough).await.unwrap().problems.is_empty());
}

#[tokio::test]
async fn a_write_waits_for_another_process_and_then_says_so() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let options = SqliteOptions { busy_timeout: std::time::Duration::ZERO, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    append(&store, &ann(), "s", &["one"]).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let changes = || ChangeSet::one(at(0), appending("s", vec![turn("two")]));
    let error = store.apply(&ann(), changes()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    let problems = store.check(CheckDepth::Quick).await.unwrap().problems;
    assert!(problems[0].contains("locked by another process"), "{problems:?}");
    other.execute_batch("ROLLBACK").unwrap();
    // The background index may hold the lock for a moment of its own, in this store only: writes wait behind it.
    assert_eq!(store.apply(&ann(), changes()).await.unwrap().turns[0].seq, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owners_alone_and_an_old_ones_mode_stays() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    let path = folder.path().join("strata.db");
    let store = open(&path);
    append(&store, &ann(), "s", &["bread and salt"]).await;
    store.backup(folder.path().join("copy.db")).await.unwrap();
    for name in ["strata.db", "strata.db-wal", "strata.db-shm", "copy.db"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    store.close().await.unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    open(&path).close().await.unwrap();
    assert_eq!(mode("strata.db"), 0o640);
}

#[test]
fn many_may_make_the_same_file_at_once() {
    for _ in 0..20 {
        let folder = folder();
        let path = folder.path().join("new.db");
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    open(&path);
                });
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_file_number_one_session_without_gaps() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let stores = [Arc::new(open(&path)), Arc::new(open(&path))];
    let writers: Vec<_> = (0..8)
        .map(|writer: usize| {
            let store = Arc::clone(&stores[writer % 2]);
            tokio::spawn(async move {
                for round in 0..25 {
                    append(&*store, &ann(), "s", &[&format!("w{writer}r{round} hello")]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let range = TurnQuery::Range { session: session("s"), after: None, limit: 1_000 };
    let turns = stores[0].turns(&ann(), &range).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.seq).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    for (here, there) in [(0, 1), (1, 0)] {
        append(&*stores[here], &ann(), "s", &[&format!("marker{here}x")]).await;
        let hits = stores[there].search(&ann(), &words(&format!("marker{here}x"))).await.unwrap();
        assert_eq!(hits.len(), 1);
    }
    assert!(stores[1].check(CheckDepth::Thorough).await.unwrap().problems.is_empty());
}

#[tokio::test]
async fn a_user_forgotten_by_one_store_begins_anew_in_the_other() {
    let folder = folder();
    let path = folder.path().join("strata.db");
    let (one, two) = (open(&path), open(&path));
    append(&one, &ann(), "s", &["mine"]).await;
    two.apply(&ann(), ChangeSet::one(at(1), Change::Forget(Forget::User))).await.unwrap();
    append(&two, &bob(), "s", &["his"]).await;
    append(&one, &ann(), "s", &["mine again"]).await;
    assert_eq!(two.session(&ann(), &session("s")).await.unwrap().unwrap().turn_count, 1);
    assert_eq!(one.session(&bob(), &session("s")).await.unwrap().unwrap().turn_count, 1);
    assert_eq!(one.users(Page::first(9)).await.unwrap(), [ann(), bob()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_is_whole_while_others_write() {
    let folder = folder();
    let store = Arc::new(open(&folder.path().join("strata.db")));
    append(&*store, &ann(), "s", &["bread and salt"]).await;
    let writing = Arc::clone(&store);
    let writer = tokio::spawn(async move {
        for round in 0..200 {
            append(&*writing, &ann(), "s", &[&format!("round {round} one"), "and two"]).await;
        }
    });
    let target = folder.path().join("copy.db");
    store.backup(&target).await.unwrap();
    writer.await.unwrap();

    let again = store.backup(&target).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    let nowhere = store.backup(folder.path().join("no/such/copy.db")).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Unavailable);

    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("partial")), "{names:?}");
    let copy = open(&target);
    let health = copy.check(CheckDepth::Thorough).await.unwrap();
    assert_eq!(health.problems, Vec::<String>::new());
    assert_eq!(health.turns % 2, 1, "a change set of two turns was cut in two");
    assert_eq!(copy.search(&ann(), &words("salt")).await.unwrap().len(), 1);
}

/// Everything in the file but the text index, which may follow at any time.
fn everything(path: &Path) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let mut rows = Vec::new();
    for table in [
        "users",
        "sessions",
        "turns",
        "summaries",
        "memories",
        "models",
        "vectors",
        "jobs",
        "requests",
        "idempotency",
    ] {
        let columns = if table == "users" { "id, name, revision, epoch" } else { "*" };
        let mut select = conn.prepare(&format!("SELECT {columns} FROM {table}")).unwrap();
        let width = select.column_count();
        let mut found = select.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<Value> = (0..width).map(|column| row.get(column).unwrap()).collect();
            rows.push(format!("{table}: {values:?}"));
        }
    }
    rows
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        "[a-c]".prop_map(|name| appending(&name, vec![turn("hello"), turn("world")])),
        "[a-c]".prop_map(|name| Change::PutState { session: session(&name), state: Box::default() }),
        Just(()).prop_map(|()| Change::AddMemory(Box::new(memory("likes tea")))),
        Just(()).prop_map(|()| Change::EnqueueJob(Box::new(job(Some("a"), 5)))),
        Just(()).prop_map(|()| Change::AddRequest(Box::new(request(3)))),
        Just(()).prop_map(|()| Change::PruneRequests { before: at(100) }),
        Just(()).prop_map(|()| Change::PruneIdempotency { before: at(100) }),
        Just(()).prop_map(|()| Change::Forget(Forget::Memories)),
        Just(()).prop_map(|()| Change::Forget(Forget::User)),
    ]
}

fn failing_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(()).prop_map(|()| Change::HideTurns { ids: vec![TurnId(fresh())], hidden: deleted(1) }),
        Just(()).prop_map(|()| Change::HideMemory { id: MemoryId(fresh()), hidden: None }),
        Just(()).prop_map(|()| Change::Forget(Forget::Session(session("never")))),
        Just(()).prop_map(|()| {
            let twice = turn("twice");
            appending("a", vec![twice.clone(), twice])
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_change_set_that_fails_leaves_nothing(
        before in prop::collection::vec(any_change(), 0..4),
        good in prop::collection::vec(any_change(), 0..5),
        bad in failing_change(),
        place in any::<prop::sample::Index>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = folder();
            let path = folder.path().join("strata.db");
            let store = open(&path);
            store.apply(&ann(), ChangeSet::new(at(0), before)).await.unwrap();
            let expected = everything(&path);
            let mut changes = good;
            changes.insert(place.index(changes.len() + 1), bad);
            for user in [ann(), bob()] {
                // Of the job that names ann, bob is refused for another reason: it fails all the same.
                prop_assert!(store.apply(&user, ChangeSet::new(at(1), changes.clone())).await.is_err());
                prop_assert_eq!(everything(&path), expected.clone());
            }
            Ok(())
        })?;
    }
}
