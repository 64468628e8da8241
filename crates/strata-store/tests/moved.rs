//! The file under an open store: moved, deleted, replaced or overwritten, it takes no more writes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use strata_core::store::conformance::fixture::{ann, append, appending, at, found, turn, words};
use strata_core::store::{ChangeSet, CheckDepth};
use strata_core::{ErrorKind, Store};
use strata_store::{SqliteOptions, SqliteStore};

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

async fn say(store: &SqliteStore, text: &str) -> Result<(), strata_core::Error> {
    store.apply(&ann(), ChangeSet::one(at(5), appending("s", vec![turn(text)]))).await.map(drop)
}

/// The store refuses a write, says which file is concerned, and does not call itself well.
async fn refuses(store: &SqliteStore, file: &str) {
    let refused = say(store, "into nowhere").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.message().contains(file), "{refused}");
    let told = match store.check(CheckDepth::Quick).await {
        Ok(health) => health.problems.join("; "),
        Err(error) => error.to_string(),
    };
    assert!(told.contains(file), "{told}");
}

/// Waits until the process has left its mark in the file itself, which it does when it has been open for a while. An immutable
/// connection takes no lock and reads no log, so it neither holds up the writer's checkpoint nor sees the mark before it.
async fn marked(path: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let address = format!("file:{}?immutable=1", path.display());
    let count = || {
        let conn = Connection::open_with_flags(&address, flags)?;
        conn.query_row("SELECT count(*) FROM openings", [], |row| row.get::<_, i64>(0))
    };
    while count().unwrap_or(0) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_moved_file_takes_no_writes_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("strata.db"), folder.path().join("aside.db"));
    let store = open(&path);
    append(&store, &ann(), "s", &["a plum"]).await;
    fs::rename(&path, &aside).unwrap();
    refuses(&store, "strata.db").await;
    fs::rename(&aside, &path).unwrap();
    say(&store, "a cherry").await.unwrap();
    assert_eq!(store.check(CheckDepth::Quick).await.unwrap().problems, Vec::<String>::new());
    store.close().await.unwrap();
    assert_eq!(found(&open(&path), &ann(), &words("cherry")).await, ["a cherry"]);
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_deleted_file_or_log() {
    for file in ["strata.db", "strata.db-wal", "strata.db-shm"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = open(&path);
        append(&store, &ann(), "s", &["a plum"]).await;
        fs::remove_file(folder.path().join(file)).unwrap();
        refuses(&store, file).await;
    }
}

#[tokio::test]
async fn a_file_in_the_place_of_the_store_takes_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("strata.db"), folder.path().join("other.db"));
    let store = open(&path);
    append(&store, &ann(), "s", &["a plum"]).await;
    let replacement = open(&other);
    append(&replacement, &ann(), "s", &["a quince"]).await;
    replacement.close().await.unwrap();
    fs::rename(&other, &path).unwrap();
    refuses(&store, "strata.db").await;
}

#[tokio::test]
async fn a_copy_that_is_restored_over_the_file_is_noticed_and_stays_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let copy: PathBuf = folder.path().join("copy.db");
    let store = open(&path);
    append(&store, &ann(), "s", &["a plum"]).await;
    marked(&path).await;
    store.backup(&copy).await.unwrap();
    for number in 0..50 {
        append(&store, &ann(), "s", &[&format!("a cherry of number{number}")]).await;
    }
    // The same file with other content, as `cp copy.db strata.db` leaves it.
    fs::write(&path, fs::read(&copy).unwrap()).unwrap();
    refuses(&store, "strata.db").await;
    let _ = store.close().await;
    drop(store);
    let restored = open(&path);
    assert_eq!(found(&restored, &ann(), &words("plum")).await, ["a plum"]);
    assert!(found(&restored, &ann(), &words("cherry")).await.is_empty());
    assert_eq!(restored.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn other_processes_may_write_and_empty_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = open(&path);
    append(&store, &ann(), "s", &["a plum"]).await;
    marked(&path).await;
    for round in 0..10 {
        let other = open(&path);
        say(&other, &format!("a word of round{round}")).await.unwrap();
        other.close().await.unwrap();
        say(&store, "and one of mine").await.unwrap();
        assert_eq!(store.check(CheckDepth::Quick).await.unwrap().problems, Vec::<String>::new());
    }
    store.close().await.unwrap();
    assert_eq!(open(&path).check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}
