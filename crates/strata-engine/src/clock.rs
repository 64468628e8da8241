//! Time to the microsecond, the precision that every backend stores.

use std::sync::Arc;

use jiff::Timestamp;

use strata_core::ports::Clock;

/// A clock that truncates the time to the microsecond.
pub(crate) struct MicrosecondClock(pub(crate) Arc<dyn Clock>);

impl Clock for MicrosecondClock {
    fn now(&self) -> Timestamp {
        to_micros(self.0.now())
    }
}

/// Truncates a timestamp to the microsecond.
pub(crate) fn to_micros(timestamp: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(timestamp.as_microsecond()).unwrap_or(timestamp)
}
