//! The one thread that writes: it takes all waiting calls, commits them together, and answers each caller separately.
//!
//! A commit costs a flush of the disk, whatever is in it. With one transaction for all waiting calls, 64 callers share one
//! flush. Each change set has a savepoint of its own, so that one that fails is rolled back alone.
//!
//! When no call waits, the thread brings the text index up to date; under constant load it does so from time to time, so
//! that the tail which each search has to read stays short. When something was forgotten, it scrubs it soon, load or not
//! ([`super::scrub`]). Without calls and work the thread sleeps.

mod pending;
mod upkeep;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use strata_core::job::Job;
use strata_core::store::{Applied, ChangeSet, LeaseRequest};
use strata_core::{Error, Result, Turn, UserId};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use super::connection::closed;
use super::error::{Outcome, repeat};
use super::index;
use super::repair;
use super::scrub::Scrubbing;
use super::watch::FileWatch;
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

/// For this long after a commit, a probe does not write by itself.
const PROBED: Duration = Duration::from_millis(500);

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
    Repair { now: i64, answer: oneshot::Sender<Result<u64>> },
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
    /// Told when a job that is due was committed.
    enqueued: Arc<Notify>,
}

impl Writer {
    pub(crate) fn start(conn: Connection, indexing: Indexing, watch: FileWatch) -> Result<Self> {
        let enqueued = Arc::new(Notify::new());
        let thread = Thread { enqueued: Arc::clone(&enqueued), ..Thread::new(conn, indexing, watch) };
        let mut writer = Self::over(move |calls| thread.run(&calls))
            .map_err(|error| Error::unavailable("cannot start the writing thread").with_source(error))?;
        writer.enqueued = enqueued;
        Ok(writer)
    }

    /// Starts a thread that runs `work` with the calls.
    pub(super) fn over(work: impl FnOnce(Receiver<Waiting>) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let thread =
            std::thread::Builder::new().name("strata-writer".to_owned()).spawn(move || work(receiver))?;
        let places = Arc::new(Semaphore::new(QUEUE));
        let (calls, thread) = (Mutex::new(Some(sender)), Mutex::new(Some(thread)));
        Ok(Self { calls, places, thread, enqueued: Arc::default() })
    }

    /// Returns when this process has committed a job that is due.
    pub(crate) async fn job_enqueued(&self) {
        self.enqueued.notified().await;
    }

    pub(crate) async fn apply(&self, user: UserId, changes: ChangeSet) -> Result<Applied> {
        self.call(|answer| Call::Write(PendingWrite::Apply { user, changes, answer })).await
    }

    pub(crate) async fn correct(&self, user: UserId, at: Timestamp, turns: Vec<Turn>) -> Result<()> {
        self.call(|answer| Call::Write(PendingWrite::Correct { user, at, turns, answer })).await.map(drop)
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

    /// Puts damaged rows aside, and returns how many there were.
    pub(crate) async fn repair(&self, now: i64) -> Result<u64> {
        self.call(|answer| Call::Repair { now, answer }).await
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
    enqueued: Arc<Notify>,
    watch: FileWatch,
    /// When a commit was last durable.
    written_at: Option<Instant>,
}

/// Whether the thread continues.
#[derive(PartialEq, Eq)]
enum Next {
    Call,
    End,
}

impl Thread {
    pub(super) fn new(conn: Connection, indexing: Indexing, watch: FileWatch) -> Self {
        // At least one, so that the thread looks once for items that a crash or another process left unindexed.
        Self {
            conn,
            indexing,
            flush: None,
            unindexed: 1,
            indexed_at: Instant::now(),
            reindexing: Vec::new(),
            scrubbing: Scrubbing::default(),
            enqueued: Arc::default(),
            watch,
            written_at: None,
        }
    }

    fn run(mut self, calls: &Receiver<Waiting>) {
        // With work left, it waits for a call until the pause is over; otherwise it waits without end.
        let mut quiet = Duration::ZERO;
        loop {
            let first = match self.patience(quiet) {
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
                    if self.has_to_index() && !self.has_to_scrub() {
                        self.index_when_quiet();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.work_if_due();
        }
    }

    /// How long the thread may wait for a call before it has something else to do; `None` if it has nothing to do.
    fn patience(&self, quiet: Duration) -> Option<Duration> {
        let indexing = self.has_to_index().then_some(quiet);
        let due = self.scrubbing.due.into_iter().chain(self.watch.mark_due()).min();
        let due = due.map(|due| due.saturating_duration_since(Instant::now()));
        indexing.into_iter().chain(due).min()
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
                let _ = answer.send(self.probe().map_err(Error::from));
            }
            Call::Repair { now, answer } => {
                let repaired = self.in_transaction(Flush::AtCommit, |conn| repair::repair(conn, now));
                // The repair may have emptied the text index.
                self.unindexed = self.unindexed.max(1);
                let _ = answer.send(repaired.map_err(Error::from));
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
                let _ = answer.send(self.close().map_err(Error::from));
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
        self.watch.remember();
        Ok(value)
    }

    /// Serves the calls in one transaction and answers each. Either the commit succeeds, and each call was served or rolled
    /// back alone; or the commit fails, and nothing was written.
    pub(super) fn commit_group(&mut self, group: Vec<PendingWrite>) {
        if group.is_empty() {
            return;
        }
        if let Err(error) = self.check_file() {
            group.into_iter().for_each(|pending| pending.answer_failed(&error));
            return;
        }
        let mut served = Vec::with_capacity(group.len());
        let mut waiting = group.into_iter();
        let mut appended = 0;
        let mut forgets = false;
        let mut enqueues = false;
        let committed = self.in_transaction(Flush::AtCommit, |conn| {
            for pending in waiting.by_ref() {
                let items = pending.items();
                forgets |= pending.forgets();
                enqueues |= pending.enqueues();
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
        // The file may have gone while the commit was on its way; then nothing is acknowledged.
        let committed = committed.map_err(Error::from).and_then(|()| self.check_file());
        if let Err(error) = committed {
            // No call was served, including those that had not been reached.
            self.written_at = None;
            served.into_iter().for_each(|one| one.answer_failed(&error));
            waiting.for_each(|pending| pending.answer_failed(&error));
            return;
        }
        self.written_at = Some(Instant::now());
        if self.unindexed == 0 {
            self.indexed_at = Instant::now();
        }
        self.unindexed += appended;
        if forgets {
            self.notice_forgotten();
        }
        if enqueues {
            self.enqueued.notify_one();
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
