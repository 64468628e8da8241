//! The file under the store: moved, deleted, replaced or overwritten while it is open.
//!
//! SQLite writes to the file that it has opened, wherever that file is by now, so a commit would be acknowledged into a file
//! that is lost. So the writer compares the files at the store's path with those that it has opened, before and
//! after each commit. A file that another program has overwritten in place keeps its identity. It is recognised by a mark
//! that a process leaves in the table `openings`: a restored copy is older and has no such mark. The mark is looked for
//! only if the file has changed and not by this writer. Deliberately absent: access to the files themselves, which are
//! never opened here, because closing a file would end SQLite's locks on it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use strata_core::Error;

use super::connection::{SqliteOptions, open_reader};
use super::error::{Fault, Outcome};

/// A process that is open for this long leaves its mark. Commands that end sooner do without.
const MARKED_AFTER: Duration = Duration::from_secs(1);

/// The marks that are kept. Marks of processes that have died stay until there are more.
const MARKS: i64 = 1_000;

/// The file and what belongs to it.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Which file it is, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

/// The file that a store has opened, for connections that are opened later.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenedFile(Option<Identity>);

impl OpenedFile {
    pub(super) fn new(path: &Path) -> Self {
        Self(identity(path))
    }

    /// Fails if another file stands at the path.
    pub(super) fn check(self, path: &Path) -> Result<(), Error> {
        match (self.0, identity(path)) {
            (Some(opened), Some(found)) if opened != found => Err(gone(path, REPLACED)),
            (Some(_), None) => Err(gone(path, MISSING)),
            _ => Ok(()),
        }
    }
}

const REPLACED: &str = "another file has taken its place";
const MISSING: &str = "it was moved or deleted";

fn gone(file: &Path, problem: &str) -> Error {
    Error::unavailable(format!(
        "`{}` is no longer the file that this process has opened ({problem}); nothing was written; put the file \
         back, or restart the process",
        file.display()
    ))
    .retryable()
}

/// The state of the file's content, as far as the file system tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    bytes: u64,
    changed: (i64, i64),
}

/// Watches the files of one store.
pub(super) struct FileWatch {
    path: PathBuf,
    opened: [Option<Identity>; 3],
    content: Option<Content>,
    opened_at: Instant,
    mark: Mark,
    /// Why the file can no longer be used, also if its name comes back.
    lost: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// The process is not open for long enough.
    Waiting,
    Left(i64),
    /// The mark could not be left; the file is watched without it.
    None,
}

impl FileWatch {
    /// Watches the files that were just opened at `path`.
    pub(super) fn new(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut watch = Self {
            opened: [None; 3],
            content: None,
            opened_at: Instant::now(),
            mark: Mark::Waiting,
            lost: None,
            path,
        };
        watch.learn();
        watch.remember();
        watch
    }

    /// A watch that sees nothing, for a database without a file.
    #[cfg(test)]
    pub(super) fn blind() -> Self {
        let mut watch = Self::new(Path::new(""));
        watch.mark = Mark::None;
        watch
    }

    fn file(&self, suffix: &str) -> PathBuf {
        let mut file = self.path.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    }

    /// Notes the identity of files that have appeared since.
    fn learn(&mut self) {
        for (place, suffix) in SUFFIXES.iter().enumerate() {
            if self.opened[place].is_none() {
                self.opened[place] = identity(&self.file(suffix));
            }
        }
    }

    /// Notes that all changes of the file up to now are this writer's own.
    pub(super) fn remember(&mut self) {
        self.content = content(&self.path);
    }

    /// Fails if the file is not the one that was opened, or if another program has overwritten it.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if let Some(lost) = &self.lost {
            return Err(Error::unavailable(lost));
        }
        self.learn();
        for (place, suffix) in SUFFIXES.iter().enumerate() {
            let Some(opened) = self.opened[place] else { continue };
            let file = self.file(suffix);
            let problem = match identity(&file) {
                Some(found) if found == opened => continue,
                Some(_) => REPLACED,
                None => MISSING,
            };
            return Err(gone(&file, problem));
        }
        if content(&self.path) != self.content {
            if self.is_overwritten() {
                let lost = format!(
                    "another program has overwritten `{}` while it was open; nothing was written; restart the process",
                    self.path.display()
                );
                tracing::error!("{lost}");
                self.lost = Some(lost.clone());
                return Err(Error::unavailable(lost));
            }
            // Another process of Strata has copied its log into the file.
            self.remember();
        }
        Ok(())
    }

    /// Whether the file was overwritten: a new connection, which has read nothing yet, does not find this process's mark.
    fn is_overwritten(&self) -> bool {
        let Mark::Left(mark) = self.mark else { return false };
        let options = SqliteOptions { busy_timeout: Duration::from_millis(100), ..SqliteOptions::default() };
        let found = open_reader(&self.path, &options).and_then(|conn| has_mark(&conn, mark));
        match found {
            Ok(is_there) => !is_there,
            Err(Fault::Driver(error)) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown)
            ),
            Err(_) => false,
        }
    }

    /// When the mark has to be left, if it has not been.
    pub(super) fn mark_due(&self) -> Option<Instant> {
        (self.mark == Mark::Waiting).then(|| self.opened_at + MARKED_AFTER)
    }

    /// Leaves the mark, and copies it into the file: as long as it is in the log, it would be found there.
    pub(super) fn leave_mark(&mut self, conn: &mut Connection) {
        self.mark = match write_mark(conn) {
            Ok(mark) => Mark::Left(mark),
            Err(fault) => {
                let error = Error::from(fault);
                tracing::debug!(%error, "the file is watched by its identity alone");
                Mark::None
            }
        };
        self.remember();
    }

    /// Gives up leaving a mark.
    pub(super) fn do_without_mark(&mut self) {
        if self.mark == Mark::Waiting {
            self.mark = Mark::None;
        }
    }

    /// Takes the mark back before the file is closed.
    pub(super) fn take_back(&self, conn: &Connection) {
        if let (Mark::Left(mark), None) = (self.mark, &self.lost) {
            // A mark that stays is harmless.
            let _ = conn.execute("DELETE FROM openings WHERE mark = ?1", [mark]);
        }
    }

    /// Whether the file holds another program's data by now. Then nothing may be copied from the log into it.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Removes the log of a file that another program has overwritten. If it stayed, the next process would read it into the
    /// restored file.
    pub(super) fn remove_log(&self) {
        for (place, suffix) in SUFFIXES.iter().enumerate().skip(1) {
            let file = self.file(suffix);
            if self.opened[place].is_some() && identity(&file) == self.opened[place] {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

fn has_mark(conn: &Connection, mark: i64) -> Outcome<bool> {
    let found = conn.query_row("SELECT 1 FROM openings WHERE mark = ?1", [mark], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

fn write_mark(conn: &mut Connection) -> Outcome<i64> {
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS openings (id INTEGER PRIMARY KEY, mark INTEGER NOT NULL) STRICT",
    )?;
    let mark = transaction.query_row("SELECT random()", [], |row| row.get(0))?;
    transaction.execute("INSERT INTO openings (mark) VALUES (?1)", [mark])?;
    transaction.execute("DELETE FROM openings WHERE id <= (SELECT max(id) FROM openings) - ?1", [MARKS])?;
    transaction.commit()?;
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(mark)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some(Identity { device: metadata.dev(), number: metadata.ino() })
}

#[cfg(unix)]
fn content(path: &Path) -> Option<Content> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some(Content { bytes: metadata.len(), changed: (metadata.mtime(), metadata.mtime_nsec()) })
}

/// Other systems do not let a program move or delete a file that is open.
#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}

#[cfg(not(unix))]
fn content(_path: &Path) -> Option<Content> {
    None
}
