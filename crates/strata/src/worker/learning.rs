//! Learning in the background: a bounded number of jobs at once, at a pace that does not slow down recording.

use std::sync::Arc;
use std::time::Duration;

use strata_engine::Engine;
use strata_engine::{Ended, Learned};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::pulse::Pulse;
use super::{REST_AFTER_FAILURE, pause};

/// While turns are recorded, the pause after a job is this many times as long as the job. Learning then uses a twentieth of a
/// core, and recording on two cores is slowed down by less than that.
const PAUSE_FACTOR: u32 = 19;

/// The longest of these pauses, so that a job that waited for a busy disk does not stop learning for minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The first learner looks for work at each beat of the pulse. The others are woken, and look at every eighth.
const OTHERS_BEATS: u64 = 8;

/// Whether learning gives way to recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// A small share of a core while turns are recorded, a whole core otherwise: the rules run in this process.
    GivingWay,
    /// As fast as the model answers: the work is done by a remote model.
    Full,
}

/// One task that runs jobs of the queue.
pub(super) struct Learner {
    engine: Engine,
    /// Its name in a lease.
    name: String,
    pace: Pace,
    pulse: Pulse,
    /// It looks for work at each beat whose number is a multiple of this.
    beats: u64,
    /// A learner that finds a job wakes the next learner, because there may be more jobs.
    found: Arc<Notify>,
    stopped: watch::Receiver<bool>,
}

impl Learner {
    /// Creates `count` learners for one queue.
    pub(super) fn many(
        engine: &Engine,
        count: usize,
        pace: Pace,
        pulse: &Pulse,
        stopped: &watch::Receiver<bool>,
    ) -> Vec<Self> {
        let found = Arc::new(Notify::new());
        // Several processes may serve one file, so the process id is part of the name.
        let process = std::process::id();
        let learner = |number| Self {
            engine: engine.clone(),
            name: format!("{process}-{number}"),
            pace,
            pulse: pulse.clone(),
            beats: if number == 0 { 1 } else { OTHERS_BEATS },
            found: Arc::clone(&found),
            stopped: stopped.clone(),
        };
        (0..count).map(learner).collect()
    }

    /// Runs jobs until the worker is stopped. A running job is finished first.
    pub(super) async fn run(mut self) {
        while !*self.stopped.borrow() {
            let (start, recorded) = (Instant::now(), self.engine.recording.recorded_turns());
            match self.engine.learning.learn_next(&self.name).await {
                Ok(Some(learned)) => {
                    self.found.notify_one();
                    self.pulse.found_work();
                    log(&learned);
                    let busy = self.engine.recording.recorded_turns() != recorded;
                    if let Some(rest) = rest_after(start.elapsed(), busy, self.pace) {
                        pause(rest, &mut self.stopped).await;
                    }
                }
                Ok(None) => {
                    let store = self.engine.store();
                    tokio::select! {
                        () = self.found.notified() => {}
                        () = store.job_enqueued() => {}
                        () = self.pulse.wait(self.beats) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "learning failed and will be retried");
                    pause(REST_AFTER_FAILURE, &mut self.stopped).await;
                }
            }
        }
    }
}

/// The pause after a job that took `took`.
fn rest_after(took: Duration, busy: bool, pace: Pace) -> Option<Duration> {
    (busy && pace == Pace::GivingWay).then(|| (took * PAUSE_FACTOR).min(LONGEST_PAUSE))
}

/// Logs the result of a job: counts and ids, never texts.
fn log(learned: &Learned) {
    let Learned { job, kind, ended, spent, events, .. } = learned;
    match ended {
        Ended::Done => tracing::debug!(
            %job,
            kind,
            events = events.len(),
            calls = spent.calls,
            input_tokens = spent.input_tokens,
            output_tokens = spent.output_tokens,
            "learned"
        ),
        Ended::Dead { error } => tracing::error!(
            %job,
            kind,
            error,
            "a job failed for good; `strata jobs retry` retries it"
        ),
        // The engine has logged the reason.
        Ended::Later { .. } | Ended::Retried { .. } | Ended::Dropped => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_gives_way_only_while_turns_are_recorded() {
        let check = |millis, busy, pace, expected: Option<u64>| {
            let rest = rest_after(Duration::from_millis(millis), busy, pace);
            assert_eq!(rest, expected.map(Duration::from_millis));
        };
        check(10, true, Pace::GivingWay, Some(190));
        check(10, false, Pace::GivingWay, None);
        check(10, true, Pace::Full, None);
        check(60_000, true, Pace::GivingWay, Some(2_000));
    }
}
