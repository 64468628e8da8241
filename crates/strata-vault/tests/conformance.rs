//! The vault honours the port's contract: the whole conformance suite, each case in a folder of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

mod support;

use std::sync::Arc;

use strata_core::Store;
use tempfile::TempDir;

async fn vault() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = support::open(folder.path()).await;
    (Arc::new(store), folder)
}

strata_core::conformance_suite!(vault);
