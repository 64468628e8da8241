//! The background worker of a serving process: it learns, writes request rows, and builds index segments and vectors.
//!
//! Start reading at [`Worker::start`]. Upkeep is one task and embedding another, because embedding a large import takes long;
//! learning has one task for each job that may run at once, in [`learning`]. Tasks without work wait for the next beat of one
//! [`pulse`], so that an idle process wakes at most once a second.

mod learning;
mod pulse;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use strata_core::store::{CLOCK_SLACK, Page};
use strata_core::{Result, UserId};
use strata_engine::Engine;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::config::{Config, LearnModel};
use learning::{Learner, Pace};
use pulse::Pulse;

/// The pause after a failure. A full disk or a missing model is not repaired in milliseconds.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The interval between two removals of old request rows and finished jobs.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// The number of users that pruning reads at once.
const USERS_A_PAGE: u32 = 500;

/// A running worker. When it is stopped, it finishes its current work first.
pub struct Worker {
    stop: watch::Sender<bool>,
    upkeep: JoinHandle<()>,
    embedding: JoinHandle<()>,
    learners: JoinSet<()>,
    pulse: JoinHandle<()>,
}

/// The settings of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Request rows older than this are removed.
    pub requests_kept: Duration,
    /// Answers under idempotency keys older than this are removed.
    pub answers_kept: Duration,
    /// The number of jobs that run at once.
    pub learners: usize,
    /// Whether learning slows down while turns are recorded. The built-in rules do, because they use this process's cores; a
    /// remote model does not.
    pub gives_way: bool,
}

impl WorkerSettings {
    /// The settings from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            requests_kept: config.requests_kept,
            answers_kept: config.answers_kept,
            learners: config.learning.workers(),
            gives_way: config.learning.model() == LearnModel::Builtin,
        }
    }
}

impl Worker {
    /// Starts the background tasks of `engine`.
    pub fn start(engine: Engine, settings: WorkerSettings) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (pulse, beating) = Pulse::start(stopped.clone());
        let mut learners = JoinSet::new();
        let pace = if settings.gives_way { Pace::GivingWay } else { Pace::Full };
        for learner in Learner::many(&engine, settings.learners, pace, &pulse, &stopped) {
            learners.spawn(learner.run());
        }
        let embedding = tokio::spawn(embed(engine.clone(), pulse.clone(), stopped.clone()));
        let upkeep = tokio::spawn(work(engine, settings, pulse, stopped));
        Self { stop, upkeep, embedding, learners, pulse: beating }
    }

    /// Stops the worker and writes the waiting request rows. A batch that is being embedded is abandoned. A job that is not finished after `patience` is abandoned: its
    /// lease expires, and the next process that serves the store takes the job over.
    pub async fn stop(mut self, patience: Duration) {
        let _ = self.stop.send(true);
        self.embedding.abort();
        let finished = async {
            while let Some(ended) = self.learners.join_next().await {
                log_panic(ended);
            }
        };
        if tokio::time::timeout(patience, finished).await.is_err() {
            tracing::warn!(
                jobs = self.learners.len(),
                "jobs were left unfinished; they are taken over when their leases expire"
            );
            self.learners.shutdown().await;
        }
        log_panic((&mut self.upkeep).await);
        log_panic((&mut self.pulse).await);
    }
}

impl Drop for Worker {
    /// A dropped worker ends too, and the drop does not wait for it.
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}

fn log_panic(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a background task died");
    }
}

async fn work(engine: Engine, settings: WorkerSettings, pulse: Pulse, mut stopped: watch::Receiver<bool>) {
    // When rows were last removed, by a clock that never jumps and by the engine's.
    let mut pruned: Option<(tokio::time::Instant, Timestamp)> = None;
    while !*stopped.borrow() {
        let mut failed = false;
        if engine.requests.waiting() > 0 {
            pulse.found_work();
        }
        if let Err(error) = engine.requests.flush().await {
            tracing::warn!(%error, waiting = engine.requests.waiting(), "request rows cannot be written yet");
            failed = true;
        }
        match engine.maintenance.write_segments().await {
            Ok(true) => {
                pulse.found_work();
                continue;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "segments cannot be written yet");
                failed = true;
            }
        }
        if pruned.is_none_or(|(at, _)| at.elapsed() > PRUNE_EVERY) {
            let jumped = pruned.is_some_and(|(at, time)| has_jumped(at.elapsed(), time, engine.now()));
            pruned = Some((tokio::time::Instant::now(), engine.now()));
            if jumped {
                tracing::warn!("the clock has jumped; old rows are removed an hour later, if it stays");
            } else if let Err(error) = prune(&engine, &settings).await {
                tracing::warn!(%error, "old rows cannot be removed");
            }
        }
        match failed {
            true => pause(REST_AFTER_FAILURE, &mut stopped).await,
            false => pulse.wait(1).await,
        }
    }
    if let Err(error) = engine.requests.flush().await {
        tracing::error!(%error, lost = engine.requests.waiting(), "request rows cannot be written");
    }
}

/// Whether the wall clock has gone much further than `elapsed` since it showed `then`.
fn has_jumped(elapsed: Duration, then: Timestamp, now: Timestamp) -> bool {
    let gone = now.duration_since(then);
    let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
    gone.checked_sub(elapsed).is_none_or(|ahead| ahead > CLOCK_SLACK)
}

/// Embeds recorded items until the worker is stopped. The encoder is loaded when the first item is there.
async fn embed(engine: Engine, pulse: Pulse, mut stopped: watch::Receiver<bool>) {
    while !*stopped.borrow() {
        match engine.maintenance.embed_items().await {
            Ok(true) => pulse.found_work(),
            Ok(false) => pulse.wait(1).await,
            Err(error) => {
                tracing::warn!(%error, "items cannot be embedded yet; recall ranks them by their words");
                pause(REST_AFTER_FAILURE, &mut stopped).await;
            }
        }
    }
}

/// Waits for `rest`, or until the worker is stopped.
async fn pause(rest: Duration, stopped: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(rest) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

/// Removes old request rows, finished jobs and answers under idempotency keys of all users, and hides sessions from recall
/// that have not been used for long.
async fn prune_user(
    engine: &Engine,
    user: &UserId,
    requests_before: Option<Timestamp>,
    answers_before: Option<Timestamp>,
) -> Result<()> {
    if let Some(before) = requests_before {
        engine.requests.prune(user, before).await?;
    }
    if let Some(before) = answers_before {
        engine.recording.prune_answers(user, before).await?;
    }
    engine.jobs.prune(user).await?;
    engine.learning.prune_sessions(user).await?;
    Ok(())
}

async fn prune(engine: &Engine, settings: &WorkerSettings) -> Result<()> {
    let now = engine.now();
    let before = |kept: Duration| {
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        now.checked_sub(kept).ok()
    };
    let (requests, answers) = (before(settings.requests_kept), before(settings.answers_kept));
    let mut offset = 0;
    loop {
        let users = engine.store().users(Page { offset, limit: USERS_A_PAGE }).await?;
        for user in &users {
            prune_user(engine, user, requests, answers).await?;
        }
        if users.len() < USERS_A_PAGE as usize {
            return Ok(());
        }
        offset += u64::from(USERS_A_PAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_ahead_is_noticed() {
        let then: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let check = |now: &str, jumped| {
            assert_eq!(has_jumped(Duration::from_secs(3_600), then, now.parse().unwrap()), jumped, "{now}");
        };
        check("2026-03-01T01:00:00Z", false);
        check("2026-03-01T01:59:00Z", false);
        check("2026-03-01T03:00:00Z", true);
        check("2027-03-01T01:00:00Z", true);
        check("2025-03-01T01:00:00Z", false);
    }
}
