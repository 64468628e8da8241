//! The ports of an engine whose time the tests set.

#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use strata_core::Store;
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::store::conformance::fixture::fresh;
use strata_engine::{Engine, Settings};

/// A clock that goes on by `step` with each look, ids that count, a token a word.
#[derive(Default)]
pub(crate) struct Ports {
    /// Microseconds since the beginning of the test.
    pub(crate) now: AtomicI64,
    /// By how many the clock goes on with each look.
    pub(crate) step: i64,
}

impl Ports {
    /// Lets time pass.
    pub(crate) fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// An engine over a store.
    pub(crate) fn engine(self: &Arc<Self>, store: Arc<dyn Store>) -> Engine {
        Engine::new(store, self.clone(), self.clone(), self.clone(), Settings::default())
    }
}

impl Clock for Ports {
    fn now(&self) -> Timestamp {
        let now = self.now.fetch_add(self.step, Ordering::SeqCst);
        Timestamp::from_microsecond(1_700_000_000_000_000 + now).unwrap()
    }
}

impl IdSource for Ports {
    fn next(&self) -> uuid::Uuid {
        fresh()
    }
}

impl TokenCounter for Ports {
    fn count(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}
