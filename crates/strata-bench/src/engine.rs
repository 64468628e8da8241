//! An engine in this process, with the built-in lexicon, for the background work before a measurement.

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

/// An engine over a store, with a clock.
pub(crate) fn at(store: &Arc<dyn Store>, clock: Arc<dyn Clock>) -> Engine {
    let ids = Arc::new(Count(AtomicU64::new(1)));
    Engine::new(Arc::clone(store), clock, ids, Arc::new(Tokenizer::default()), Settings::default())
        .with_lexicon(Arc::new(BuiltinLexicon::new()))
}

/// A fixed clock, so that nothing depends on the time of the run.
struct Standstill;

impl Clock for Standstill {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Ids that count up.
struct Count(AtomicU64);

impl IdSource for Count {
    fn next(&self) -> Uuid {
        Uuid::from_u64_pair(7 << 12, 1 << 63 | self.0.fetch_add(1, Ordering::Relaxed))
    }
}
