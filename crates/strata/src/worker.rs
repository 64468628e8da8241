//! The background worker of a serving process: request rows, index segments and vectors, behind everybody's back.

use std::time::Duration;

use jiff::SignedDuration;
use strata_core::store::Page;
use strata_core::{Engine, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long the worker rests when there was nothing to do: short enough that a row is there when somebody looks for it.
const REST: Duration = Duration::from_millis(250);

/// How long it rests after a failure: a full disk or a missing model is not mended in milliseconds.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How often old request rows are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// How many users are looked through at a time when pruning.
const USERS_A_PAGE: u32 = 500;

/// A running worker. It stops when told to, after the piece of work it is at.
pub struct Worker {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Worker {
    /// Starts working for `engine`; rows of requests older than `requests_kept` are removed.
    pub fn start(engine: Engine, requests_kept: Duration) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, task: tokio::spawn(work(engine, requests_kept, stopped)) }
    }

    /// Stops, and writes what waits.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the background worker died");
        }
    }
}

async fn work(engine: Engine, requests_kept: Duration, mut stopped: watch::Receiver<bool>) {
    let mut pruned: Option<tokio::time::Instant> = None;
    while !*stopped.borrow() {
        let mut rest = REST;
        if let Err(error) = engine.flush_requests().await {
            tracing::warn!(%error, waiting = engine.waiting_requests(), "request rows could not be written yet");
            rest = REST_AFTER_FAILURE;
        }
        match engine.maintain().await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "background work failed and will be tried again");
                rest = REST_AFTER_FAILURE;
            }
        }
        if pruned.is_none_or(|at| at.elapsed() > PRUNE_EVERY) {
            pruned = Some(tokio::time::Instant::now());
            if let Err(error) = prune(&engine, requests_kept).await {
                tracing::warn!(%error, "old request rows could not be removed");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stopped.changed() => {}
        }
    }
    if let Err(error) = engine.flush_requests().await {
        tracing::error!(%error, lost = engine.waiting_requests(), "request rows could not be written");
    }
}

/// Removes old request rows of all users.
async fn prune(engine: &Engine, kept: Duration) -> Result<()> {
    let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
    let Ok(before) = engine.now().checked_sub(kept) else { return Ok(()) };
    let mut offset = 0;
    loop {
        let users = engine.store().users(Page { offset, limit: USERS_A_PAGE }).await?;
        for user in &users {
            engine.prune_requests(user, before).await?;
        }
        if users.len() < USERS_A_PAGE as usize {
            return Ok(());
        }
        offset += u64::from(USERS_A_PAGE);
    }
}
