//! The use-cases in this process, with the words inside the binary: for the background work that comes before measuring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use strata_core::Store;
use strata_core::ports::{Clock, IdSource};
use strata_engine::Engine;
use strata_engine::Settings;
use strata_models::{BuiltinLexicon, Tokenizer};
use uuid::Uuid;

/// An engine over a store.
pub(crate) fn over(store: &Arc<dyn Store>) -> Engine {
    at(store, Arc::new(Standstill))
}

/// An engine over a store, at the time that a clock shows.
pub(crate) fn at(store: &Arc<dyn Store>, clock: Arc<dyn Clock>) -> Engine {
    let ids = Arc::new(Count(AtomicU64::new(1)));
    Engine::new(Arc::clone(store), clock, ids, Arc::new(Tokenizer::default()), Settings::default())
        .with_lexicon(Arc::new(BuiltinLexicon::new()))
}

/// A clock at which nothing depends on when the run takes place.
struct Standstill;

impl Clock for Standstill {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Ids that count.
struct Count(AtomicU64);

impl IdSource for Count {
    fn next(&self) -> Uuid {
        Uuid::from_u64_pair(7 << 12, 1 << 63 | self.0.fetch_add(1, Ordering::Relaxed))
    }
}
