//! The SQLite store honours the port's contract: the whole conformance suite, each case on a file of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::sync::Arc;

use strata_core::Store;
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

async fn sqlite() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("strata.db"), SqliteOptions::default()).unwrap();
    (Arc::new(store), folder)
}

strata_core::conformance_suite!(sqlite);
