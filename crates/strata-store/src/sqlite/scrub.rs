//! Scrubbing: the bytes of forgotten data are removed from the text index, the free pages of the file and the log.
//!
//! Deleting a row only frees its space, and the text index keeps the terms of deleted items until it merges the segment that
//! has them. So a change set that forgets leaves a mark in the file. After a pause without calls the writer merges the index
//! in bounded steps, rewrites the file without its free pages, empties the log, and removes the mark. If a crash, a reader
//! or the end of the process prevents that, the next process that opens the store does it. What is deliberately left alone:
//! copies of overwritten blocks that the file system or the disk keeps.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use strata_core::Error;

use super::error::Outcome;
use super::writer::{Flush, Thread};

/// The mark: a row of `indexed` that belongs to no kind of item and counts how often something was forgotten since.
const MARK: i64 = -1;

/// The pause without calls before the first step: a client that forgets one thing after the other must not wait each time.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a step that failed or that a reader blocked.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The pages of the index merged at once: a call that arrives during it waits a few milliseconds.
const MERGED_PAGES: i64 = 256;

/// The largest file that is rewritten as a whole. Rewriting a larger one would make callers wait for more than a second, so
/// only its free pages are overwritten.
const SMALL_FILE: i64 = 64 << 20;

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
    /// The pause without calls before the next step, if there is one to do.
    pub(super) wait: Option<Duration>,
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
        if self.scrubbing.wait.is_none() && marked(&self.conn).is_ok_and(|mark| mark.is_some()) {
            self.scrubbing.wait = Some(PAUSE);
        }
    }

    /// Does one step and decides when the next one is due.
    pub(super) fn scrub_when_quiet(&mut self) {
        let step = self.scrub_step();
        self.scrubbing.wait = match step {
            Ok(Step::More) => Some(Duration::ZERO),
            Ok(Step::Done) => None,
            Ok(Step::HeldUp) => Some(self.longer_pause()),
            Err(fault) => {
                let error = Error::from(fault);
                tracing::warn!(%error, "cannot yet overwrite what was forgotten; it is tried again");
                Some(self.longer_pause())
            }
        };
        if matches!(self.scrubbing.wait, None | Some(Duration::ZERO)) {
            self.scrubbing.failures = 0;
        }
    }

    fn longer_pause(&mut self) -> Duration {
        self.scrubbing.failures = (self.scrubbing.failures + 1).min(6);
        (PAUSE * (1 << self.scrubbing.failures)).min(LONGEST_PAUSE)
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
            self.scrubbing.clean = Some(count);
        }
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy: bool = self.conn.query_row(checkpoint, [], |row| row.get(0))?;
        if is_busy {
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
