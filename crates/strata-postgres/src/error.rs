//! The one place where errors of the driver become errors of the core, with their kind and whether a retry makes sense.

use strata_core::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// The result of a function that uses the database.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// An error inside this backend: one of the core, or one of the driver that is not translated yet.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error of the core.
    Known(Error),
    /// An error of the driver.
    Driver(tokio_postgres::Error),
    /// The server has not answered long after it had to.
    Unanswered,
    /// A statement took longer than its time limit.
    TooSlow,
}

impl Fault {
    /// Whether a unique index refused a row.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.state() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// A conflict if a unique index refused a row, otherwise this fault.
    pub(crate) fn or_conflict(self, message: impl FnOnce() -> String) -> Self {
        if self.is_duplicate() { Self::Known(Error::conflict(message())) } else { self }
    }

    /// Whether the connection or the server failed, so that the same call may succeed on another connection.
    pub(crate) fn is_lost_connection(&self) -> bool {
        match self {
            Self::Known(_) | Self::TooSlow => false,
            Self::Unanswered => true,
            Self::Driver(error) => match error.code() {
                Some(code) => is_server_away(code),
                None => true,
            },
        }
    }

    /// Whether PostgreSQL undid the transaction because of others, so that the same call may succeed at once.
    pub(crate) fn is_transient(&self) -> bool {
        self.state().is_some_and(|code| {
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
        })
    }

    fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            Self::Known(_) | Self::Unanswered | Self::TooSlow => None,
        }
    }
}

/// Whether the server is stopping, starting, lost, or has become a standby, or has closed a session that was idle for too long: a
/// matter of seconds.
fn is_server_away(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
    ]
    .contains(code)
        || code.code().starts_with("08")
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Known(error)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Known(error) => error,
            Fault::Driver(error) => translate(error),
            Fault::Unanswered => {
                let message = "PostgreSQL does not answer; try again, and check that the server runs";
                Self::unavailable(message).retryable()
            }
            Fault::TooSlow => Self::unavailable(TOO_SLOW).retryable(),
        }
    }
}

const TOO_SLOW: &str = "PostgreSQL took longer than the time limit of a statement; try again";

/// The error for invalid stored data.
pub(crate) fn damaged(table: &str, row: &str, detail: impl std::fmt::Display) -> Error {
    Error::internal(format!(
        "row `{row}` of table `{table}` cannot be right: {detail}; run `strata doctor` and restore a backup"
    ))
}

/// The error of every call after [`close`](strata_core::Store::close).
pub(crate) fn closed() -> Error {
    Error::unavailable("the store is closed; open it again")
}

fn translate(error: tokio_postgres::Error) -> Error {
    use ErrorKind::{Internal, Invalid, TooLarge, Unavailable};
    let Some(code) = error.code().cloned() else {
        let message = "the connection to PostgreSQL failed; try again, and check that the server runs";
        return Error::new(Unavailable, message).retryable().with_source(error);
    };
    let class = code.code().get(..2).unwrap_or_default();
    let (kind, message, retryable) = match class {
        _ if is_server_away(&code) => {
            (Unavailable, "PostgreSQL cannot be used now; try again in a moment", true)
        }
        "28" => (Invalid, "PostgreSQL refused the user or the password; check the store's address", false),
        "3D" => (Invalid, "the database does not exist; create it with `createdb`", false),
        "40" => (Unavailable, "PostgreSQL undid the transaction because of others; try again", true),
        "42" if code == SqlState::INSUFFICIENT_PRIVILEGE => {
            (Invalid, "the role may not do that in this database; make it the owner of the schema", false)
        }
        "53" => (Unavailable, "PostgreSQL is out of disk space, memory or connections; try again", true),
        "54" => (TooLarge, "a value is larger than the database can keep; send less", false),
        _ if code == SqlState::QUERY_CANCELED => (Unavailable, TOO_SLOW, true),
        "58" => (Unavailable, "PostgreSQL cannot read or write its files; look into its log", false),
        "XX" => (Internal, "PostgreSQL has failed or is damaged; look into its log", false),
        _ => (Internal, "the database refused a statement; report this as a defect", false),
    };
    let translated = Error::new(kind, message).with_source(error);
    if retryable { translated.retryable() } else { translated }
}
