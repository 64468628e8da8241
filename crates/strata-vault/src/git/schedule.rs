//! When the next commit is due.

use std::time::Duration;

use tokio::time::Instant;

/// The pause without writes after which they are committed. A learning step writes its files within it.
const QUIET: Duration = Duration::from_secs(1);

/// The longest time for which a stream of writes may delay a commit.
const LATEST: Duration = Duration::from_secs(15);

/// How often a repository that is busy is asked again.
const BUSY: Duration = Duration::from_secs(5);

/// The next commit.
pub(super) struct Schedule {
    due: Option<Instant>,
    /// The latest time for the commit of the changes so far.
    latest: Instant,
    /// The end of the pause after a failed attempt.
    not_before: Instant,
}

impl Schedule {
    /// A commit that is due at once.
    pub(super) fn at_once() -> Self {
        let now = Instant::now();
        Self { due: Some(now), latest: now + LATEST, not_before: now }
    }

    /// Notes a change.
    pub(super) fn note_change(&mut self) {
        let now = Instant::now();
        if self.due.is_none() {
            self.latest = now + LATEST;
        }
        self.due = Some((now + QUIET).min(self.latest).max(self.not_before));
    }

    /// Notes an attempt, and whether nothing is left to do.
    pub(super) fn note_attempt(&mut self, is_done: bool) {
        if is_done {
            self.due = None;
            return;
        }
        self.not_before = Instant::now() + BUSY;
        self.latest = self.not_before + LATEST;
        self.due = Some(self.not_before);
    }

    /// Waits until the commit is due.
    pub(super) async fn due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_is_followed_by_a_pause_and_batches_again() {
        let mut schedule = Schedule::at_once();
        // The attempt has come so late that the changes before it have waited for long enough.
        schedule.latest = Instant::now();
        schedule.note_attempt(false);
        let after_failure = Instant::now();
        for _ in 0..3 {
            schedule.note_change();
            assert!(schedule.due.unwrap() > after_failure + BUSY - QUIET, "changes do not end the pause");
        }
        schedule.not_before = Instant::now();
        schedule.note_change();
        assert!(schedule.due.unwrap() > after_failure + QUIET / 2, "changes are gathered");
        schedule.note_attempt(true);
        assert_eq!(schedule.due, None);
        schedule.note_change();
        assert!(schedule.due.unwrap() <= Instant::now() + QUIET);
    }
}
