//! The PostgreSQL store honours the port's contract: the whole conformance suite, each case in a database of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::sync::Arc;

use strata_core::Store;
use strata_postgres::test_server::{Database, database};

async fn postgres() -> (Arc<dyn Store>, Database) {
    let database = database().await;
    let store = Arc::new(database.open().await);
    (store, database)
}

strata_core::conformance_suite!(postgres);
