//! The one thread that writes: it takes all waiting calls, commits them together, and answers each caller separately.
//!
//! A commit costs a flush of the disk, whatever is in it. With one transaction for all waiting calls, 64 callers share one
//! flush. Each change set has a savepoint of its own, so that one that fails is rolled back alone.
//!
//! When no call waits, the thread brings the text index up to date; under constant load it does so from time to time, so
//! that the tail which each search has to read stays short. Then it scrubs forgotten data ([`super::scrub`]).

mod pending;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use strata_core::job::Job;
use strata_core::store::{Applied, ChangeSet, LeaseRequest};
use strata_core::{Error, Result, UserId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::connection::closed;
use super::error::{Outcome, repeat};
use super::index;
use super::scrub::Scrubbing;
use pending::ServedWrite;

pub(super) use pending::PendingWrite;

/// The most calls in the queue. Further callers wait for a permit, so that a burst cannot fill the memory.
const QUEUE: usize = 4_096;

/// The most calls of one commit. At 64 callers the number hardly matters; it bounds how long the first one waits.
const GROUP_CALLS: usize = 512;

/// The most text of one commit, in bytes, for the same reason.
const GROUP_BYTES: usize = 8 << 20;

/// The pause without calls after which appended items are indexed: a client that sends one turn after the other must not
/// wait for an index of one turn each time.
const QUIET: Duration = Duration::from_millis(20);

/// The longest time for which a stream of calls may delay indexing.
const LATEST: Duration = Duration::from_secs(1);

/// The items indexed at once when no call waits: a call that arrives during it waits a few milliseconds.
const QUIET_BATCH: usize = 512;

/// The items indexed at once under load, where fewer and larger transactions cost less.
const LOADED_BATCH: usize = 2_048;

/// The most items in the tail under load. A search reads the user's part of them in a few milliseconds.
const LONGEST_TAIL: usize = 4_096;

/// Whether the index is kept up to date. Tests switch this off to see the state that a crash leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexing {
    Behind,
    #[cfg(test)]
    Off,
}

/// A call to the thread.
enum Call {
    Write(PendingWrite),
    Probe { answer: oneshot::Sender<Result<()>> },
    Reindex { answer: oneshot::Sender<Result<()>> },
    Close { answer: oneshot::Sender<Result<()>> },
}

/// A call with its place in the queue.
pub(super) struct Waiting {
    call: Call,
    _place: OwnedSemaphorePermit,
}

/// The handle of the thread.
pub(crate) struct Writer {
    calls: Mutex<Option<Sender<Waiting>>>,
    places: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(conn: Connection, indexing: Indexing) -> Result<Self> {
        Self::over(move |calls| Thread::new(conn, indexing).run(&calls))
            .map_err(|error| Error::unavailable("cannot start the writing thread").with_source(error))
    }

    /// Starts a thread that runs `work` with the calls.
    pub(super) fn over(work: impl FnOnce(Receiver<Waiting>) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let thread =
            std::thread::Builder::new().name("strata-writer".to_owned()).spawn(move || work(receiver))?;
        let places = Arc::new(Semaphore::new(QUEUE));
        Ok(Self { calls: Mutex::new(Some(sender)), places, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) async fn apply(&self, user: UserId, changes: ChangeSet) -> Result<Applied> {
        self.call(|answer| Call::Write(PendingWrite::Apply { user, changes, answer })).await
    }

    pub(crate) async fn lease_job(&self, request: LeaseRequest) -> Result<Option<Job>> {
        self.call(|answer| Call::Write(PendingWrite::Lease { request, answer })).await
    }

    /// Whether a write could begin now.
    pub(crate) async fn probe(&self) -> Result<()> {
        self.call(|answer| Call::Probe { answer }).await
    }

    /// Rebuilds the text index; other calls are served in between.
    pub(crate) async fn reindex(&self) -> Result<()> {
        self.call(|answer| Call::Reindex { answer }).await
    }

    /// Finishes the accepted calls, and ends the thread.
    pub(crate) async fn close(&self) -> Result<()> {
        let closing = self.call(|answer| Call::Close { answer }).await;
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.join();
        closing
    }

    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<Result<T>>) -> Call) -> Result<T> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let (answer, answered) = oneshot::channel();
        {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let sender = calls.as_ref().ok_or_else(closed)?;
            sender.send(Waiting { call: call(answer), _place: place }).map_err(|_| stopped())?;
        }
        answered.await.map_err(|_| stopped())?
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writing thread of the store had broken off");
        }
    }
}

impl Drop for Writer {
    /// Waits for the commit in progress, so that the file is not opened again while this process still writes to it.
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.join();
    }
}

fn stopped() -> Error {
    Error::unavailable("the store's writing thread has stopped; restart the process")
}

/// When a commit reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Before it is acknowledged.
    AtCommit,
    /// With the next commit that is flushed. This serves the text index, which is derived data: frames of the log are valid
    /// in their order only, so the next append's flush covers them, and losing the last ones costs only repeated work.
    Later,
}

impl Flush {
    fn level(self) -> &'static str {
        match self {
            Self::AtCommit => "FULL",
            Self::Later => "NORMAL",
        }
    }
}

/// The thread's own state.
pub(super) struct Thread {
    pub(super) conn: Connection,
    indexing: Indexing,
    /// How the connection flushes at present, if known.
    flush: Option<Flush>,
    /// About how many items are not yet in the index.
    unindexed: usize,
    /// The last time at which indexing was done or had nothing to do.
    indexed_at: Instant,
    reindexing: Vec<oneshot::Sender<Result<()>>>,
    pub(super) scrubbing: Scrubbing,
}

/// Whether the thread continues.
#[derive(PartialEq, Eq)]
enum Next {
    Call,
    End,
}

impl Thread {
    pub(super) fn new(conn: Connection, indexing: Indexing) -> Self {
        // At least one, so that the thread looks once for items that a crash or another process left unindexed.
        Self {
            conn,
            indexing,
            flush: None,
            unindexed: 1,
            indexed_at: Instant::now(),
            reindexing: Vec::new(),
            scrubbing: Scrubbing::default(),
        }
    }

    fn run(mut self, calls: &Receiver<Waiting>) {
        // With work left, it waits for a call until the pause is over, then indexes and scrubs; otherwise it waits without end.
        let mut quiet = Duration::ZERO;
        loop {
            let patience = if self.has_to_index() { Some(quiet) } else { self.scrubbing.wait };
            let first = match patience {
                Some(patience) => calls.recv_timeout(patience),
                None => calls.recv().map_err(Into::into),
            };
            match first {
                Ok(first) => {
                    if self.serve(first, calls) == Next::End {
                        return;
                    }
                    quiet = QUIET;
                    let late = self.unindexed > LONGEST_TAIL || self.indexed_at.elapsed() > LATEST;
                    if late && self.has_to_index() {
                        self.index(LOADED_BATCH);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    quiet = Duration::ZERO;
                    if self.has_to_index() {
                        self.index(QUIET_BATCH);
                    } else {
                        self.scrub_when_quiet();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn has_to_index(&self) -> bool {
        self.indexing == Indexing::Behind && self.unindexed > 0
    }

    /// Serves a call and all calls that wait behind it.
    fn serve(&mut self, first: Waiting, calls: &Receiver<Waiting>) -> Next {
        let mut group = Vec::new();
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(Waiting { call, _place }) = next {
            match call {
                Call::Write(pending) => {
                    bytes += pending.size();
                    group.push(pending);
                }
                // A call of another kind ends the group, so that calls are served in the order of their arrival.
                other => {
                    self.commit_group(std::mem::take(&mut group));
                    if self.serve_alone(other) == Next::End {
                        return Next::End;
                    }
                    return Next::Call;
                }
            }
            next =
                if group.len() < GROUP_CALLS && bytes < GROUP_BYTES { calls.try_recv().ok() } else { None };
        }
        self.commit_group(group);
        Next::Call
    }

    fn serve_alone(&mut self, call: Call) -> Next {
        // The results are ignored because a caller that no longer waits for its answer is not an error.
        match call {
            Call::Write(pending) => self.commit_group(vec![pending]),
            Call::Probe { answer } => {
                let probed = self.conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK");
                let _ = answer.send(probed.map_err(|error| super::error::Fault::from(error).into()));
            }
            Call::Reindex { answer } => match self.in_transaction(Flush::AtCommit, index::clear) {
                Ok(()) => {
                    self.unindexed = self.unindexed.max(1);
                    self.reindexing.push(answer);
                }
                Err(fault) => {
                    let _ = answer.send(Err(fault.into()));
                }
            },
            Call::Close { answer } => {
                self.scrub_at_close();
                let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
                if let Err(error) = self.conn.query_row(checkpoint, [], |_| Ok(())) {
                    // Another process reads the file and will do this when it closes.
                    tracing::debug!(%error, "the log stays beside the file");
                }
                let conn = std::mem::replace(
                    &mut self.conn,
                    match Connection::open_in_memory() {
                        Ok(conn) => conn,
                        Err(_) => return Next::End,
                    },
                );
                let closing = conn.close().map_err(|(_, error)| super::error::Fault::from(error).into());
                let _ = answer.send(closing);
                return Next::End;
            }
        }
        Next::Call
    }

    /// Runs `work` in a transaction. The flush mode is set before the transaction begins; if that fails, nothing is written.
    pub(super) fn in_transaction<T>(
        &mut self,
        flush: Flush,
        work: impl FnOnce(&Connection) -> Outcome<T>,
    ) -> Outcome<T> {
        if self.flush != Some(flush) {
            self.flush = None;
            self.conn.pragma_update(None, "synchronous", flush.level())?;
            self.flush = Some(flush);
        }
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Serves the calls in one transaction and answers each. Either the commit succeeds, and each call was served or rolled
    /// back alone; or the commit fails, and nothing was written.
    pub(super) fn commit_group(&mut self, group: Vec<PendingWrite>) {
        if group.is_empty() {
            return;
        }
        let mut served = Vec::with_capacity(group.len());
        let mut waiting = group.into_iter();
        let mut appended = 0;
        let mut forgets = false;
        let committed = self.in_transaction(Flush::AtCommit, |conn| {
            for pending in waiting.by_ref() {
                let items = pending.items();
                forgets |= pending.forgets();
                let one = pending.serve(conn);
                appended += if one.error().is_none() { items } else { 0 };
                // A full or broken disk may have ended the whole transaction, and with it the calls before this one.
                let fatal = one.error().filter(|_| conn.is_autocommit()).map(repeat);
                served.push(one);
                if let Some(fatal) = fatal {
                    return Err(fatal.into());
                }
            }
            Ok(())
        });
        if let Err(fault) = committed {
            // No call was served, including those that had not been reached.
            let error = Error::from(fault);
            served.into_iter().for_each(|one| one.answer_failed(&error));
            waiting.for_each(|pending| pending.answer_failed(&error));
            return;
        }
        if self.unindexed == 0 {
            self.indexed_at = Instant::now();
        }
        self.unindexed += appended;
        if forgets {
            self.notice_forgotten();
        }
        served.into_iter().for_each(ServedWrite::answer);
    }

    pub(super) fn index(&mut self, most: usize) {
        self.indexed_at = Instant::now();
        match self.in_transaction(Flush::Later, |conn| index::index_batch(conn, most)) {
            Ok(indexed) => {
                self.unindexed =
                    if indexed < most { 0 } else { self.unindexed.saturating_sub(indexed).max(1) };
                if self.unindexed == 0 {
                    self.notice_forgotten();
                    self.reindexing.drain(..).for_each(|answer| {
                        let _ = answer.send(Ok(()));
                    });
                }
            }
            Err(fault) => {
                // Searches read the tail themselves, so they still find every item. The next append tries again.
                let error = Error::from(fault);
                tracing::warn!(%error, "cannot bring the text index up to date");
                self.unindexed = 0;
                self.reindexing.drain(..).for_each(|answer| {
                    let _ = answer.send(Err(repeat(&error)));
                });
            }
        }
    }
}
