//! Commits in the background while the vault is open. No request waits for them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};

use super::schedule::Schedule;
use super::{Committed, Git};

type Failure = Arc<Mutex<Option<String>>>;

/// Commits in the background while the vault is open.
pub(crate) struct Committer {
    /// Why the last commit has failed, if it has.
    failure: Failure,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Committer {
    pub(crate) fn start(git: Git, changes: watch::Receiver<u64>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let failure = Failure::default();
        let task = tokio::spawn(commit_in_background(git, changes, stopped, Arc::clone(&failure)));
        Self { failure, stop, task }
    }

    /// Why the last commit has failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Commits what is left, and ends.
    pub(crate) async fn finish(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

async fn commit_in_background(
    git: Git,
    mut changes: watch::Receiver<u64>,
    mut stop: oneshot::Receiver<()>,
    failure: Failure,
) {
    // Changes that a person or an earlier process has left are committed at once.
    let mut schedule = Schedule::at_once();
    let mut told = None;
    loop {
        let stopping = tokio::select! {
            _ = &mut stop => true,
            changed = changes.changed() => {
                schedule.note_change();
                changed.is_err()
            }
            () = schedule.due() => {
                let is_done = commit_once(&git, &mut told, &failure).await;
                schedule.note_attempt(is_done);
                false
            }
        };
        if stopping {
            commit_once(&git, &mut told, &failure).await;
            return;
        }
    }
}

/// Commits, and says whether nothing is left to do. A reason that was `told` already is not logged again.
async fn commit_once(git: &Git, told: &mut Option<String>, failure: &Failure) -> bool {
    let outcome = git.commit().await;
    *failure.lock().unwrap_or_else(PoisonError::into_inner) = outcome.as_ref().err().map(ToString::to_string);
    let (reason, is_failure) = match outcome {
        Ok(Committed::Busy(reason)) => (reason, false),
        Ok(_) => {
            *told = None;
            return true;
        }
        Err(error) => (error.to_string(), true),
    };
    if told.as_ref() != Some(&reason) {
        match is_failure {
            true => tracing::warn!(reason, "the vault cannot be committed now"),
            false => tracing::warn!(reason, "the vault is committed later"),
        }
        *told = Some(reason);
    }
    false
}
