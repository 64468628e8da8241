//! A clock that is set by hand, because a benchmark asks its questions at the times in the data.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use strata_core::ports::Clock;

/// A clock that stands still until it is set. It starts at the epoch.
#[derive(Debug, Default)]
pub struct EvalClock(AtomicI64);

impl EvalClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_microsecond()))
    }

    /// Sets the clock forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_microsecond(), Ordering::SeqCst);
    }
}

impl Clock for EvalClock {
    fn now(&self) -> Timestamp {
        // Every stored value comes from a timestamp.
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
