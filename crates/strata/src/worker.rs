//! The background worker of a serving process: learning, request rows, index segments and vectors, behind everybody's back.
//!
//! Start reading at [`Worker::start`]. Upkeep is one task; learning is as many as jobs may be worked on at once, in
//! [`learning`].

mod learning;

use std::time::Duration;

use jiff::SignedDuration;
use strata_core::Result;
use strata_core::store::Page;
use strata_engine::Engine;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::config::{Config, LearnModel};
use learning::{Learner, Pace};

/// How long the worker rests when there was nothing to do: short enough that a row is there when somebody looks for it.
const REST: Duration = Duration::from_millis(250);

/// How long it rests after a failure: a full disk or a missing model is not mended in milliseconds.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How often old request rows and finished jobs are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// How many users are looked through at a time when pruning.
const USERS_A_PAGE: u32 = 500;

/// A running worker. It stops when told to, after the pieces of work it is at.
pub struct Worker {
    stop: watch::Sender<bool>,
    upkeep: JoinHandle<()>,
    learners: JoinSet<()>,
}

/// What a worker is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Rows of requests older than this are removed.
    pub requests_kept: Duration,
    /// Answers kept under idempotency keys for longer than this are removed.
    pub answers_kept: Duration,
    /// How many jobs are worked on at once.
    pub learners: usize,
    /// Whether the work is done here, so that it has to give way while turns are recorded. A model's is not.
    pub gives_way: bool,
}

impl WorkerSettings {
    /// As configured.
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
    /// Starts working for `engine`.
    pub fn start(engine: Engine, settings: WorkerSettings) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut learners = JoinSet::new();
        let pace = if settings.gives_way { Pace::GivingWay } else { Pace::Full };
        for learner in Learner::many(&engine, settings.learners, pace, &stopped) {
            learners.spawn(learner.run());
        }
        let upkeep = tokio::spawn(work(engine, settings, stopped));
        Self { stop, upkeep, learners }
    }

    /// Stops, and writes what waits. A job that is not finished after `patience` is left: its lease ends, and whoever serves
    /// the store then takes it over.
    pub async fn stop(mut self, patience: Duration) {
        let _ = self.stop.send(true);
        let finished = async {
            while let Some(ended) = self.learners.join_next().await {
                told(ended);
            }
        };
        if tokio::time::timeout(patience, finished).await.is_err() {
            tracing::warn!(
                jobs = self.learners.len(),
                "jobs were left unfinished; their leases end, and they are taken over"
            );
            self.learners.shutdown().await;
        }
        told((&mut self.upkeep).await);
    }
}

impl Drop for Worker {
    /// One that nobody stopped ends too, without being waited for.
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}

fn told(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a background task died");
    }
}

async fn work(engine: Engine, settings: WorkerSettings, mut stopped: watch::Receiver<bool>) {
    let mut pruned: Option<tokio::time::Instant> = None;
    while !*stopped.borrow() {
        let mut rest = REST;
        if let Err(error) = engine.requests.flush().await {
            tracing::warn!(%error, waiting = engine.requests.waiting(), "request rows could not be written yet");
            rest = REST_AFTER_FAILURE;
        }
        match engine.maintenance.maintain().await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "background work failed and will be tried again");
                rest = REST_AFTER_FAILURE;
            }
        }
        if pruned.is_none_or(|at| at.elapsed() > PRUNE_EVERY) {
            pruned = Some(tokio::time::Instant::now());
            if let Err(error) = prune(&engine, &settings).await {
                tracing::warn!(%error, "what is old could not be removed");
            }
        }
        pause(rest, &mut stopped).await;
    }
    if let Err(error) = engine.requests.flush().await {
        tracing::error!(%error, lost = engine.requests.waiting(), "request rows could not be written");
    }
}

/// Waits, but not longer than until the worker is told to stop.
async fn pause(rest: Duration, stopped: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(rest) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

/// Removes old request rows, finished jobs and answers under idempotency keys of all users, and takes sessions out of
/// recall that have rested long enough.
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
            if let Some(before) = requests {
                engine.requests.prune(user, before).await?;
            }
            if let Some(before) = answers {
                engine.recording.prune_answers(user, before).await?;
            }
            engine.jobs.prune(user).await?;
            engine.learning.prune_sessions(user).await?;
        }
        if users.len() < USERS_A_PAGE as usize {
            return Ok(());
        }
        offset += u64::from(USERS_A_PAGE);
    }
}
