//! The writer's work beside its calls, and its care for the file: it is checked, probed and closed here.

use std::time::Instant;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use strata_core::{Error, Result};

use super::super::error::{Fault, Outcome};
use super::{Flush, PROBED, QUIET_BATCH, Thread};

/// The row of `indexed` that counts probes. It belongs to no kind of item.
const PROBES: i64 = -2;

impl Thread {
    /// Scrubs and leaves the mark of an open file, if either is due. A file that was moved or replaced is left alone.
    pub(super) fn work_if_due(&mut self) {
        let has_to_mark = self.watch.mark_due().is_some_and(|due| due <= Instant::now());
        if !self.has_to_scrub() && !has_to_mark {
            return;
        }
        if self.check_file().is_err() {
            self.put_off_scrubbing();
            self.watch.do_without_mark();
            return;
        }
        if self.has_to_scrub() {
            self.scrub();
        }
        if has_to_mark {
            self.watch.leave_mark(&mut self.conn);
        }
        self.watch.remember();
    }

    pub(super) fn index_when_quiet(&mut self) {
        match self.check_file() {
            Ok(()) => self.index(QUIET_BATCH),
            // The next append tries again.
            Err(_) => self.unindexed = 0,
        }
    }

    /// Fails if the file is not the one that was opened. If another program has overwritten it, nothing is copied from the log
    /// into it any more.
    pub(super) fn check_file(&mut self) -> Result<()> {
        let checked = self.watch.check();
        if self.watch.is_lost() {
            self.conn
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
                .map_err(|error| Error::from(Fault::from(error)))?;
        }
        checked
    }

    /// Scrubs, empties the log into the file, and closes the connection.
    pub(super) fn close(&mut self) -> Outcome<()> {
        let is_lost = self.check_file().is_err() && self.watch.is_lost();
        if !is_lost {
            self.watch.take_back(&self.conn);
            self.scrub_at_close();
            if let Err(error) = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
                // Another process reads the file and will do this when it closes.
                tracing::debug!(%error, "the log stays beside the file");
            }
        }
        let conn = std::mem::replace(&mut self.conn, Connection::open_in_memory()?);
        let closing = conn.close().map_err(|(_, error)| Fault::from(error));
        if is_lost {
            self.watch.remove_log();
        }
        closing
    }

    /// Whether a write would succeed now: the file is the one that was opened, and a small commit reaches the disk.
    pub(super) fn probe(&mut self) -> Outcome<()> {
        self.check_file()?;
        if self.written_at.is_some_and(|at| at.elapsed() < PROBED) {
            return Ok(());
        }
        self.in_transaction(Flush::AtCommit, |conn| {
            // SQLite writes no page if nothing in it changes, so a row of its own counts the probes.
            let sql = "INSERT INTO indexed (kind, upto) VALUES (?1, 1)
                       ON CONFLICT (kind) DO UPDATE SET upto = upto + 1";
            Ok(conn.prepare_cached(sql)?.execute([PROBES])?)
        })?;
        self.written_at = Some(Instant::now());
        Ok(())
    }
}
