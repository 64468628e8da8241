//! The SQLite store honours the port's contract: the whole conformance suite, each case on a file of its own. The suite is run as
//! `docs/backend.md` says; its example stands here word for word, between two marks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::future::{Ready, ready};
use std::path::Path;
use std::sync::Arc;

use strata_core::Store;
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// The backend, as the page calls it.
struct MyStore;

impl MyStore {
    fn open(folder: &Path) -> Ready<strata_core::Result<SqliteStore>> {
        ready(SqliteStore::open(folder.join("strata.db"), SqliteOptions::default()))
    }
}

// begin
async fn my_store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Arc::new(MyStore::open(folder.path()).await.unwrap()), folder)
}

strata_core::conformance_suite!(my_store);
// end

#[test]
fn the_example_of_the_page_stands_here() {
    let page = include_str!("../../../docs/backend.md");
    let block = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let here =
        include_str!("conformance.rs").split("// begin\n").nth(1).unwrap().split("// end").next().unwrap();
    let words = |code: &'static str| code.split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(block), words(here));
}
