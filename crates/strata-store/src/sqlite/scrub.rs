//! Scrubbing: the bytes of forgotten data are removed from the text index, the free pages of the file and the log.
//!
//! Deleting a row only frees its space, and the text index keeps the terms of deleted items until it merges the segment that
//! has them. So a change set that forgets leaves a mark in the file. Soon afterwards the writer merges the index in bounded
//! steps, rewrites the file without its free pages, empties the log, and removes the mark. It does so between two groups of
//! calls and does not wait for a pause: a busy store is scrubbed as soon as an idle one. If a crash, a reader or the end of
//! the process prevents that, the next process that opens the store does it. Deliberately absent: copies of
//! overwritten blocks that the file system or the disk keeps.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use strata_core::Error;

use super::error::Outcome;
use super::writer::{Flush, Thread};

/// The mark: a row of `indexed` that belongs to no kind of item and counts how often something was forgotten since.
const MARK: i64 = -1;

/// The time between forgetting and the first step. Several calls that forget one thing after the other are scrubbed together.
const DELAY: Duration = Duration::from_millis(250);

/// The pause after a step that a reader blocked: reads take milliseconds.
const HELD_UP: Duration = Duration::from_millis(100);

/// The longest pause after steps that failed or that a reader blocked again and again, as a backup does.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long emptying the log waits for readers. Callers wait as long.
const READERS_PATIENCE: Duration = Duration::from_millis(100);

/// The pages of the index merged at once: a call that arrives during it waits a few milliseconds.
const MERGED_PAGES: i64 = 256;

/// The largest file that is rewritten as a whole, which takes about a tenth of a second. Rewriting a larger one would make
/// callers wait longer, so only its free pages are overwritten.
const SMALL_FILE: i64 = 16 << 20;

/// The most free pages overwritten in one commit: 64 MiB.
const OVERWRITTEN_PAGES: i64 = 16_384;

/// The longest time for which a process that ends continues to scrub.
const AT_CLOSE: Duration = Duration::from_secs(10);

/// Leaves the mark, inside the transaction that forgets.
pub(super) fn mark(conn: &Connection) -> Outcome<()> {
    conn.prepare_cached(
        "INSERT INTO indexed (kind, upto) VALUES (?1, 1) ON CONFLICT (kind) DO UPDATE SET upto = upto + 1",
    )?
    .execute([MARK])?;
    Ok(())
}

fn marked(conn: &Connection) -> Outcome<Option<i64>> {
    let mut select = conn.prepare_cached("SELECT upto FROM indexed WHERE kind = ?1")?;
    Ok(select.query_row([MARK], |row| row.get(0)).optional()?)
}

/// The writer's state of scrubbing.
#[derive(Debug, Default)]
pub(super) struct Scrubbing {
    /// When the next step is due, if there is one to do.
    pub(super) due: Option<Instant>,
    /// The count of the mark for which the file is clean and only the log is left.
    clean: Option<i64>,
    failures: u32,
}

/// The result of one step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// A reader still needs the log.
    HeldUp,
    Done,
}

impl Thread {
    /// Checks whether this or another process has forgotten something, and schedules the scrubbing.
    pub(super) fn notice_forgotten(&mut self) {
        if self.scrubbing.due.is_none() && marked(&self.conn).is_ok_and(|mark| mark.is_some()) {
            self.scrubbing.due = Some(Instant::now() + DELAY);
        }
    }

    /// Whether a step is due now.
    pub(super) fn has_to_scrub(&self) -> bool {
        self.scrubbing.due.is_some_and(|due| due <= Instant::now())
    }

    /// Does one step and decides when the next one is due.
    pub(super) fn scrub(&mut self) {
        let pause = match self.scrub_step() {
            Ok(Step::More) => Some(Duration::ZERO),
            Ok(Step::Done) => None,
            Ok(Step::HeldUp) => Some(self.longer_pause()),
            Err(fault) => {
                let error = Error::from(fault);
                tracing::warn!(%error, "cannot yet overwrite what was forgotten; it is tried again");
                Some(self.longer_pause())
            }
        };
        if matches!(pause, None | Some(Duration::ZERO)) {
            self.scrubbing.failures = 0;
        }
        self.scrubbing.due = pause.map(|pause| Instant::now() + pause);
    }

    /// Waits before the next step, because the file cannot be written now.
    pub(super) fn put_off_scrubbing(&mut self) {
        if self.scrubbing.due.is_some() {
            self.scrubbing.due = Some(Instant::now() + self.longer_pause());
        }
    }

    fn longer_pause(&mut self) -> Duration {
        self.scrubbing.failures = (self.scrubbing.failures + 1).min(14);
        // The first retries follow quickly, because most readers need the log for milliseconds only.
        (HELD_UP * (1 << self.scrubbing.failures.saturating_sub(5))).min(LONGEST_PAUSE)
    }

    /// Finishes the scrubbing before the file is closed, within a time limit.
    pub(super) fn scrub_at_close(&mut self) {
        let began = Instant::now();
        while began.elapsed() < AT_CLOSE {
            match self.scrub_step() {
                Ok(Step::More) => {}
                Ok(Step::Done) => return,
                Ok(Step::HeldUp) => break,
                Err(fault) => {
                    let error = Error::from(fault);
                    tracing::warn!(%error, "cannot overwrite what was forgotten");
                    break;
                }
            }
        }
        tracing::info!("what was forgotten is overwritten when the store is next opened");
    }

    /// Does the next step. Each step makes the one after it possible.
    pub(super) fn scrub_step(&mut self) -> Outcome<Step> {
        let Some(count) = marked(&self.conn)? else { return Ok(Step::Done) };
        if self.scrubbing.clean != Some(count) {
            if self.clean_file()? == Step::More {
                return Ok(Step::More);
            }
            self.scrubbing.clean = Some(count);
        }
        if !self.empty_log()? {
            return Ok(Step::HeldUp);
        }
        // Unless another process has forgotten something since.
        let taken = self.in_transaction(Flush::AtCommit, |conn| {
            let sql = "DELETE FROM indexed WHERE kind = ?1 AND upto = ?2";
            Ok(conn.prepare_cached(sql)?.execute(params![MARK, count])?)
        })?;
        self.scrubbing.clean = None;
        Ok(if taken == 0 { Step::More } else { Step::Done })
    }

    /// Removes the forgotten bytes from the file itself, or does one step of that.
    fn clean_file(&mut self) -> Outcome<Step> {
        let pages: i64 = self.conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let is_small = pages * page_size(&self.conn)? <= SMALL_FILE;
        if self.merge(is_small)? {
            return Ok(Step::More);
        }
        if is_small {
            self.conn.execute_batch("VACUUM")?;
        } else {
            self.overwrite_unused()?;
        }
        Ok(Step::Done)
    }

    /// Copies the log into the file and truncates it, and returns whether no reader prevented that.
    fn empty_log(&mut self) -> Outcome<bool> {
        let patience: i64 = self.conn.query_row("PRAGMA busy_timeout", [], |row| row.get(0))?;
        let patience = Duration::from_millis(patience.unsigned_abs());
        self.conn.busy_timeout(patience.min(READERS_PATIENCE))?;
        let is_busy: Result<bool, _> =
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        self.conn.busy_timeout(patience)?;
        Ok(!is_busy?)
    }

    /// Merges a part of the text index, and returns whether there was something to merge. Merging all segments into one is the
    /// only way to remove the terms of deleted items from an index that keeps no contents.
    fn merge(&mut self, is_small: bool) -> Outcome<bool> {
        let merge = |thread: &mut Self| {
            thread.in_transaction(Flush::Later, |conn| {
                let before = conn.total_changes();
                // A negative number merges all segments into one, even a single one with deleted items.
                conn.prepare_cached("INSERT INTO text_index (text_index, rank) VALUES ('merge', ?1)")?
                    .execute([-MERGED_PAGES])?;
                // The insertion itself counts as one.
                Ok(conn.total_changes() - before > 1)
            })
        };
        if is_small { merge(self) } else { self.zeroing(merge) }
    }

    /// Runs `work` so that every page that it frees is filled with zeros.
    fn zeroing<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.conn.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
        let done = work(self);
        self.conn.query_row("PRAGMA secure_delete = FAST", [], |_| Ok(()))?;
        done
    }

    /// Overwrites the free pages: a table takes them all, filled with zeros, and is dropped again.
    pub(super) fn overwrite_unused(&mut self) -> Outcome<()> {
        self.zeroing(|thread| {
            thread.in_transaction(Flush::AtCommit, |conn| {
                let unused: i64 = conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
                // Each page of a blob begins with the number of the next one.
                let bytes = unused.min(OVERWRITTEN_PAGES) * (page_size(conn)? - 4);
                conn.execute_batch(&format!(
                    "CREATE TABLE unused (bytes BLOB);
                     INSERT INTO unused VALUES (zeroblob({bytes}));
                     DROP TABLE unused;"
                ))?;
                Ok(())
            })
        })
    }
}

fn page_size(conn: &Connection) -> Outcome<i64> {
    Ok(conn.query_row("PRAGMA page_size", [], |row| row.get(0))?)
}
