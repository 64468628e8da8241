//! The task that keeps the files: it takes all waiting change sets, writes their files together, and then answers each caller.
//!
//! Files that could not be written are tried again until they are, also if nothing else happens.

use std::sync::Arc;
use std::time::Duration;

use strata_core::{Error, Result};
use tokio::sync::{mpsc, oneshot};

use super::dirty::{Dirty, Owed};
use super::flush::Unwritten;
use super::git::{Git, Step};
use super::scope::Scope;
use super::vault::{Vault, blocking};

/// The most change sets whose files are written together, which bounds how long the first one waits.
const GROUP_CALLS: usize = 512;

/// The pause before files that could not be written are tried again. A monitor learns within it that they can be.
const RETRY: Duration = Duration::from_secs(1);

/// A call to the task.
pub(crate) enum Call {
    /// Write the files of these items.
    Write { dirty: Dirty, answer: Answer },
    /// Take in changes.
    Sync { scope: Scope, answer: Option<Answer> },
    /// Go a step through the history, which waits for its turn.
    Step { git: Git, step: Step, commit: Option<String>, answer: oneshot::Sender<Result<String>> },
    /// Finish.
    Close { answer: oneshot::Sender<()> },
}

type Answer = oneshot::Sender<Result<()>>;

/// Serves calls until one asks to close. `left` could not be written when the vault was opened.
pub(crate) async fn keep(vault: Arc<Vault>, left: Dirty, mut calls: mpsc::UnboundedReceiver<Call>) {
    let mut keeper = Keeper { vault, is_failing: !left.is_empty(), left };
    while let Some(group) = keeper.next_group(&mut calls).await {
        let mut writes = Vec::new();
        for call in group {
            match call {
                Call::Write { dirty, answer } => writes.push((dirty, answer)),
                Call::Sync { scope, answer } => {
                    keeper.write(std::mem::take(&mut writes)).await;
                    keeper.serve_sync(scope, answer).await;
                }
                Call::Step { git, step, commit, answer } => {
                    keeper.write(std::mem::take(&mut writes)).await;
                    let _ = answer.send(keeper.step(&git, step, commit.as_deref()).await);
                }
                Call::Close { answer } => {
                    keeper.write(std::mem::take(&mut writes)).await;
                    keeper.close().await;
                    let _ = answer.send(());
                    return;
                }
            }
        }
        keeper.write(writes).await;
    }
}

struct Keeper {
    vault: Arc<Vault>,
    /// Items whose files could not be written, or are being written by another program.
    left: Dirty,
    /// Whether the last attempt to write files has failed.
    is_failing: bool,
}

impl Keeper {
    /// The calls that wait, at least one. Until one comes, files that could not be written are tried again.
    async fn next_group(&mut self, calls: &mut mpsc::UnboundedReceiver<Call>) -> Option<Vec<Call>> {
        let first = loop {
            if !self.is_failing {
                break calls.recv().await?;
            }
            match tokio::time::timeout(RETRY, calls.recv()).await {
                Ok(first) => break first?,
                Err(_) => self.retry().await,
            }
        };
        let mut group = vec![first];
        while group.len() < GROUP_CALLS
            && let Ok(next) = calls.try_recv()
        {
            group.push(next);
        }
        Some(group)
    }

    async fn serve_sync(&mut self, scope: Scope, answer: Option<Answer>) {
        match (answer, self.sync(scope).await) {
            // A caller that no longer waits is not an error.
            (Some(answer), synced) => drop(answer.send(synced)),
            (None, Err(error)) => {
                tracing::warn!(%error, "changes in the vault could not be taken in")
            }
            (None, Ok(())) => {}
        }
    }

    /// Goes a step through the history. The files are locked all the while, so that no other process sees half of it.
    async fn step(&mut self, git: &Git, step: Step, commit: Option<&str>) -> Result<String> {
        let locking = Arc::clone(&self.vault);
        let _lock = blocking(move || locking.lock()).await?;
        self.sync_locked(Scope::All).await?;
        let taken = git.prepare(step, commit).await?;
        git.put(&taken).await?;
        if let Err(error) = self.sync_locked(Scope::All).await {
            git.put_back(&taken).await;
            return Err(error);
        }
        git.finish(taken).await
    }

    /// Takes in changes and writes what follows from them.
    async fn sync(&mut self, scope: Scope) -> Result<()> {
        let locking = Arc::clone(&self.vault);
        let _lock = blocking(move || locking.lock()).await?;
        self.sync_locked(scope).await
    }

    async fn sync_locked(&mut self, scope: Scope) -> Result<()> {
        let dirty = self.vault.take_in(scope).await?;
        let mut all = std::mem::take(&mut self.left);
        all.merge(dirty.clone());
        let unwritten = self.flush(all).await?;
        // The callers of changes that could not be written before have been told.
        let own = unwritten.failed.into_iter().find(|(owed, _)| dirty.holds(owed));
        own.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Writes the files of several change sets and answers their callers.
    async fn write(&mut self, writes: Vec<(Dirty, Answer)>) {
        if writes.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.left);
        for (dirty, _) in &writes {
            all.merge(dirty.clone());
        }
        match self.locked_flush(all).await {
            Ok(unwritten) => {
                for (dirty, answer) in writes {
                    let own = unwritten.failed.iter().find(|(owed, _)| dirty.holds(owed));
                    let _ = answer.send(own.map_or(Ok(()), |(_, error)| Err(repeat(error))));
                }
            }
            Err(error) => {
                for (_, answer) in writes {
                    let _ = answer.send(Err(repeat(&error)));
                }
            }
        }
    }

    /// Tries the files that are left again.
    async fn retry(&mut self) {
        let left = std::mem::take(&mut self.left);
        if let Err(error) = self.locked_flush(left).await {
            tracing::debug!(%error, "files of the vault still cannot be written");
        }
    }

    async fn locked_flush(&mut self, dirty: Dirty) -> Result<Unwritten> {
        let locking = Arc::clone(&self.vault);
        match blocking(move || locking.lock()).await {
            Ok(_lock) => self.flush(dirty).await,
            Err(error) => {
                self.left.merge(dirty);
                self.note(Some(&error));
                Err(error)
            }
        }
    }

    /// Writes the files of items. Those that could not be written are left, and the vault knows why.
    async fn flush(&mut self, dirty: Dirty) -> Result<Unwritten> {
        match self.vault.flush(&dirty).await {
            Ok(unwritten) => {
                self.left.merge(unwritten.of(&dirty));
                // A forgotten file that cannot be removed hinders nobody from writing.
                let failed = unwritten.failed.iter().find(|(owed, _)| matches!(owed, Owed::File(_)));
                self.note(failed.map(|(_, error)| error));
                Ok(unwritten)
            }
            Err(error) => {
                self.left.merge(dirty);
                self.note(Some(&error));
                Err(error)
            }
        }
    }

    /// Notes whether files could be written.
    fn note(&mut self, failure: Option<&Error>) {
        self.is_failing = failure.is_some();
        self.vault.note_unwritten(failure);
    }

    async fn close(&mut self) {
        if !self.left.is_empty() {
            self.retry().await;
        }
        let (closing, is_clean) = (Arc::clone(&self.vault), self.left.is_empty());
        if let Err(error) = blocking(move || closing.end(is_clean)).await {
            tracing::warn!(%error, "the vault is checked again when it is opened next");
        }
    }
}

/// The same error for another caller.
fn repeat(error: &Error) -> Error {
    let again = Error::new(error.kind(), error.message().to_owned());
    if error.is_retryable() { again.retryable() } else { again }
}
