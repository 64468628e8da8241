//! The writes of one group: a write whose caller waits, and its result until the group is committed.

use jiff::Timestamp;
use rusqlite::Connection;
use strata_core::job::{Job, JobStatus};
use strata_core::store::{Applied, Change, ChangeSet, LeaseRequest};
use strata_core::{Error, Result, Turn, UserId};
use tokio::sync::oneshot;

use super::super::apply;
use super::super::error::{Outcome, repeat};

/// A write whose caller waits. A lease is a write too: if it were committed alone, all callers behind it would wait for one
/// more flush of the disk.
pub(in super::super) enum PendingWrite {
    Apply { user: UserId, changes: ChangeSet, answer: oneshot::Sender<Result<Applied>> },
    Correct { user: UserId, at: Timestamp, turns: Vec<Turn>, answer: oneshot::Sender<Result<Applied>> },
    Lease { request: LeaseRequest, answer: oneshot::Sender<Result<Option<Job>>> },
}

impl PendingWrite {
    /// The number of items that the write adds to the index.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Apply { changes, .. } => indexable(changes),
            Self::Correct { .. } | Self::Lease { .. } => 0,
        }
    }

    /// Whether the write destroys something.
    pub(super) fn forgets(&self) -> bool {
        match self {
            Self::Apply { changes, .. } => {
                changes.changes.iter().any(|change| matches!(change, Change::Forget(_)))
            }
            Self::Correct { .. } => true,
            Self::Lease { .. } => false,
        }
    }

    /// Whether the write enqueues a job that is due.
    pub(super) fn enqueues(&self) -> bool {
        match self {
            Self::Apply { changes, .. } => changes.changes.iter().any(|change| match change {
                Change::EnqueueJob(job) | Change::EnqueueOnce(job) => {
                    job.status == JobStatus::Queued && job.run_at <= changes.at
                }
                Change::RetryJob { .. } => true,
                _ => false,
            }),
            Self::Correct { .. } | Self::Lease { .. } => false,
        }
    }

    /// The approximate number of bytes of text in the write.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Apply { changes, .. } => size(changes),
            Self::Correct { turns, .. } => turns.iter().map(|turn| turn.content.len()).sum(),
            Self::Lease { .. } => 0,
        }
    }

    /// Applies the write, inside a transaction.
    pub(super) fn serve(self, conn: &Connection) -> ServedWrite {
        match self {
            Self::Apply { user, changes, answer } => {
                let result = in_savepoint(conn, |conn| apply::apply(conn, &user, changes));
                ServedWrite::Applied { result: result.map_err(Error::from), answer }
            }
            Self::Correct { user, at, turns, answer } => {
                let result = in_savepoint(conn, |conn| apply::correct_turns(conn, &user, at, &turns));
                ServedWrite::Applied { result: result.map_err(Error::from), answer }
            }
            Self::Lease { request, answer } => {
                let result = in_savepoint(conn, |conn| apply::lease_job(conn, &request));
                ServedWrite::Leased { result: Box::new(result.map_err(Error::from)), answer }
            }
        }
    }

    pub(super) fn answer_failed(self, error: &Error) {
        match self {
            Self::Apply { answer, .. } | Self::Correct { answer, .. } => {
                drop(answer.send(Err(repeat(error))));
            }
            Self::Lease { answer, .. } => drop(answer.send(Err(repeat(error)))),
        }
    }
}

/// The answer to a call, sent after the commit. A caller that no longer waits is not an error.
pub(super) enum ServedWrite {
    Applied { result: Result<Applied>, answer: oneshot::Sender<Result<Applied>> },
    Leased { result: Box<Result<Option<Job>>>, answer: oneshot::Sender<Result<Option<Job>>> },
}

impl ServedWrite {
    pub(super) fn error(&self) -> Option<&Error> {
        match self {
            Self::Applied { result, .. } => result.as_ref().err(),
            Self::Leased { result, .. } => result.as_ref().as_ref().err(),
        }
    }

    pub(super) fn answer(self) {
        match self {
            Self::Applied { result, answer } => drop(answer.send(result)),
            Self::Leased { result, answer } => drop(answer.send(*result)),
        }
    }

    /// Answers that the commit failed. A call that had failed by itself keeps its own error.
    pub(super) fn answer_failed(self, error: &Error) {
        match self {
            Self::Applied { result, answer } => drop(answer.send(result.and_then(|_| Err(repeat(error))))),
            Self::Leased { result, answer } => drop(answer.send(result.and_then(|_| Err(repeat(error))))),
        }
    }
}

fn in_savepoint<T>(conn: &Connection, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    conn.prepare_cached("SAVEPOINT change_set")?.execute([])?;
    match work(conn) {
        Ok(value) => {
            conn.prepare_cached("RELEASE change_set")?.execute([])?;
            Ok(value)
        }
        Err(fault) => {
            if !conn.is_autocommit() {
                conn.execute_batch("ROLLBACK TO change_set; RELEASE change_set")?;
            }
            Err(fault)
        }
    }
}

/// The number of items that a change set adds to the index.
fn indexable(changes: &ChangeSet) -> usize {
    let items = changes.changes.iter().map(|change| match change {
        Change::AppendTurns { turns, .. } => turns.len(),
        Change::AddMemory(_) | Change::ReviseMemory { .. } => 1,
        _ => 0,
    });
    items.sum()
}

/// The approximate number of bytes of text in a change set.
fn size(changes: &ChangeSet) -> usize {
    let sizes = changes.changes.iter().map(|change| match change {
        Change::AppendTurns { turns, .. } => turns.iter().map(|turn| turn.content.len()).sum(),
        Change::AddMemory(memory) => memory.content.len(),
        Change::PutVectors(vectors) => vectors.iter().map(|vector| vector.vector.values.len()).sum(),
        _ => 0,
    });
    sizes.sum()
}
