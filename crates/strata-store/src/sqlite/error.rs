//! The one place where errors of the driver become errors of the core, with their kind and whether a retry makes sense.

use rusqlite::ErrorCode;
use strata_core::{Error, ErrorKind};

use super::damage::Place;

/// The result of a function that uses the database.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// An error inside this backend: one of the core, or one of the driver that is not translated yet.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error of the core.
    Known(Error),
    /// An error of the driver.
    Driver(rusqlite::Error),
    /// A row that cannot be read.
    Damaged {
        /// Its table and its number.
        place: Place,
        /// The problem with it.
        error: Box<Error>,
    },
}

impl Fault {
    /// Whether a unique index refused a row.
    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Driver(error) if is_duplicate(error))
    }

    /// Whether another connection held a lock.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Driver(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }

    /// A conflict if a unique index refused a row, otherwise this fault.
    pub(crate) fn or_conflict(self, message: impl FnOnce() -> String) -> Self {
        if self.is_duplicate() { Self::Known(Error::conflict(message())) } else { self }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Known(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Known(error) => error,
            Fault::Driver(error) => translate(error),
            Fault::Damaged { error, .. } => *error,
        }
    }
}

/// A copy of an error without its cause, for the other callers of the same failed commit.
pub(crate) fn repeat(error: &Error) -> Error {
    let repeated = Error::new(error.kind(), error.message());
    if error.is_retryable() { repeated.retryable() } else { repeated }
}

/// The error for invalid stored data.
pub(crate) fn damaged(table: &'static str, row: i64, detail: impl std::fmt::Display) -> Fault {
    let error = Error::internal(format!(
        "row `{row}` of table `{table}` cannot be right: {detail}; `strata doctor --repair` puts it aside"
    ));
    Fault::Damaged { place: (table, row), error: Box::new(error) }
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
    error.sqlite_error().is_some_and(|cause| {
        matches!(cause.extended_code, SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY)
    })
}

fn translate(error: rusqlite::Error) -> Error {
    use ErrorKind::{Internal, Invalid, TooLarge, Unavailable};
    let (kind, message, retryable) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            (Unavailable, "the database is locked by another process; try again", true)
        }
        Some(ErrorCode::DiskFull) => {
            (Unavailable, "the disk is full and nothing was written; free some space and try again", true)
        }
        Some(ErrorCode::ReadOnly) => (
            Unavailable,
            "the database cannot be written; check the permissions of the file and its folder",
            false,
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => (
            Unavailable,
            "the database cannot be opened; check the path and the permissions of its folder",
            false,
        ),
        Some(ErrorCode::NotADatabase) => {
            (Invalid, "the file is no SQLite database; choose another path, or restore a backup", false)
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            (Internal, "the database is damaged; run `strata doctor` and restore a backup", false)
        }
        Some(ErrorCode::SystemIoFailure) => {
            (Unavailable, "the disk failed while the database was read or written; check the medium", true)
        }
        Some(ErrorCode::OutOfMemory) => (Unavailable, "out of memory; try again when there is more", true),
        Some(ErrorCode::OperationInterrupted) => {
            (Unavailable, "the operation was interrupted; try again", true)
        }
        Some(ErrorCode::TooBig) => {
            (TooLarge, "a value is larger than the database can keep; send less", false)
        }
        _ => (Internal, "the database refused a statement; report this as a defect", false),
    };
    let translated = Error::new(kind, message).with_source(error);
    if retryable { translated.retryable() } else { translated }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn each_cause_has_its_kind_and_says_whether_to_try_again() {
        let check = |code, kind, retryable, word: &str| {
            let error = Error::from(Fault::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)));
            assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{error}");
            assert!(error.message().contains(word), "{error}");
        };
        check(ffi::SQLITE_BUSY, ErrorKind::Unavailable, true, "locked");
        check(ffi::SQLITE_FULL, ErrorKind::Unavailable, true, "disk is full");
        check(ffi::SQLITE_READONLY, ErrorKind::Unavailable, false, "permissions");
        check(ffi::SQLITE_READONLY_DIRECTORY, ErrorKind::Unavailable, false, "permissions");
        check(ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable, false, "path");
        check(ffi::SQLITE_NOTADB, ErrorKind::Invalid, false, "no SQLite database");
        check(ffi::SQLITE_CORRUPT, ErrorKind::Internal, false, "damaged");
        check(ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable, true, "disk failed");
        check(ffi::SQLITE_CONSTRAINT_FOREIGNKEY, ErrorKind::Internal, false, "defect");
    }
}
