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

/// Truncates a timestamp to the microsecond, and in the very last second to that second: its microseconds are no timestamp, so
/// that a store could not read them back.
pub(crate) fn to_micros(timestamp: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(timestamp.as_microsecond())
        .or_else(|_| Timestamp::from_second(timestamp.as_second()))
        .unwrap_or(timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timestamp_can_be_read_back() {
        for timestamp in [Timestamp::MAX, Timestamp::MIN, Timestamp::UNIX_EPOCH] {
            let stored = to_micros(timestamp).as_microsecond();
            assert_eq!(Timestamp::from_microsecond(stored).unwrap(), to_micros(timestamp));
        }
    }
}
