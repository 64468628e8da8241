//! Reading a store on a medium that cannot be written.

#![allow(clippy::unwrap_used, reason = "a test's own functions")]

use strata_core::store::conformance::fixture::{ann, at, session, turn};
use strata_core::store::{Change, ChangeSet, TurnQuery};
use strata_core::{ErrorKind, Store};
use strata_store::{SqliteOptions, SqliteStore};

#[tokio::test]
async fn a_store_without_its_log_is_read_where_nothing_can_be_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a?b.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    let said = Change::AppendTurns { session: session("s"), turns: vec![turn("The sluice is closed.")] };
    store.apply(&ann(), ChangeSet::one(at(1), said)).await.unwrap();
    store.close().await.unwrap();
    // A folder in the place of the shared memory: SQLite cannot create it, as on a read-only disk.
    std::fs::create_dir(folder.path().join("a?b.db-shm")).unwrap();
    let options = || SqliteOptions { read_only: true, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options()).unwrap();
    let query = TurnQuery::Range { session: session("s"), after: None, limit: 9 };
    assert_eq!(store.turns(&ann(), &query).await.unwrap()[0].content, "The sluice is closed.");
    let said = Change::AppendTurns { session: session("s"), turns: vec![turn("no")] };
    let refused = store.apply(&ann(), ChangeSet::one(at(2), said)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    store.close().await.unwrap();
    // With a log, something may be missing in the file.
    std::fs::write(folder.path().join("a?b.db-wal"), [1; 64]).unwrap();
    let refused = SqliteStore::open(&path, options()).err().unwrap();
    assert!(refused.message().contains("log"), "{refused}");
}
