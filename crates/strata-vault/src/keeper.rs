//! The task that keeps the files: it takes all waiting change sets, writes their files together, and then answers each caller.

use std::sync::Arc;

use strata_core::{Error, Result};
use tokio::sync::{mpsc, oneshot};

use super::dirty::Dirty;
use super::scope::Scope;
use super::vault::{Vault, blocking};

/// The most change sets whose files are written together, which bounds how long the first one waits.
const GROUP_CALLS: usize = 512;

/// A call to the task.
pub(crate) enum Call {
    /// Write the files of these items.
    Write { dirty: Dirty, answer: oneshot::Sender<Result<()>> },
    /// Take in changes.
    Sync { scope: Scope, answer: Option<oneshot::Sender<Result<()>>> },
    /// Finish.
    Close { answer: oneshot::Sender<()> },
}

/// Serves calls until one asks to close.
pub(crate) async fn keep(vault: Arc<Vault>, mut calls: mpsc::UnboundedReceiver<Call>) {
    // Items whose files could not be written; they are tried again with the next ones.
    let mut left = Dirty::default();
    while let Some(first) = calls.recv().await {
        let mut group = vec![first];
        while group.len() < GROUP_CALLS
            && let Ok(next) = calls.try_recv()
        {
            group.push(next);
        }
        let mut writes = Vec::new();
        for call in group {
            match call {
                Call::Write { dirty, answer } => writes.push((dirty, answer)),
                Call::Sync { scope, answer } => {
                    write(&vault, std::mem::take(&mut writes), &mut left).await;
                    let synced = sync(&vault, scope, &mut left).await;
                    match (answer, synced) {
                        // A caller that no longer waits is not an error.
                        (Some(answer), synced) => drop(answer.send(synced)),
                        (None, Err(error)) => {
                            tracing::warn!(%error, "changes in the vault could not be taken in")
                        }
                        (None, Ok(())) => {}
                    }
                }
                Call::Close { answer } => {
                    write(&vault, std::mem::take(&mut writes), &mut left).await;
                    let is_clean = left.is_empty();
                    let closing = Arc::clone(&vault);
                    let ended = blocking(move || closing.end(is_clean)).await;
                    if let Err(error) = ended {
                        tracing::warn!(%error, "the vault is checked again when it is opened next");
                    }
                    let _ = answer.send(());
                    return;
                }
            }
        }
        write(&vault, writes, &mut left).await;
    }
}

/// Takes in changes and writes what follows from them.
async fn sync(vault: &Arc<Vault>, scope: Scope, left: &mut Dirty) -> Result<()> {
    let locking = Arc::clone(vault);
    let _lock = blocking(move || locking.lock()).await?;
    let dirty = vault.take_in(scope).await?;
    // What could not be written before is tried again, and has told its callers.
    let waiting = std::mem::take(left);
    match vault.flush(&waiting).await {
        Ok(unwritten) => unwritten.keys().for_each(|key| left.merge(waiting.only(key))),
        Err(_) => *left = waiting,
    }
    let unwritten = vault.flush(&dirty).await?;
    unwritten.postponed.iter().for_each(|key| left.merge(dirty.only(key)));
    unwritten.failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// Writes the files of several change sets and answers their callers.
async fn write(vault: &Arc<Vault>, writes: Vec<(Dirty, oneshot::Sender<Result<()>>)>, left: &mut Dirty) {
    if writes.is_empty() {
        return;
    }
    let mut all = std::mem::take(left);
    for (dirty, _) in &writes {
        all.merge(dirty.clone());
    }
    let flush = async {
        let locking = Arc::clone(vault);
        let _lock = blocking(move || locking.lock()).await?;
        vault.flush(&all).await
    };
    match flush.await {
        Ok(unwritten) => {
            for (dirty, answer) in writes {
                let own = unwritten.failed.iter().find(|(key, _)| dirty.holds(key));
                let _ = answer.send(own.map_or(Ok(()), |(_, error)| Err(repeat(error))));
            }
            unwritten.keys().for_each(|key| left.merge(all.only(key)));
        }
        Err(error) => {
            for (_, answer) in writes {
                let _ = answer.send(Err(repeat(&error)));
            }
            *left = all;
        }
    }
}

/// The same error for another caller.
fn repeat(error: &Error) -> Error {
    let again = Error::new(error.kind(), error.message().to_owned());
    if error.is_retryable() { again.retryable() } else { again }
}
