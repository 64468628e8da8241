//! The failures of a command, which decide the exit code.

use std::io;

use strata_core::ErrorKind;

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The reason why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was called wrongly: exit code 2.
    Usage(anyhow::Error),
    /// The call was right and the command failed: exit code 1.
    Failed(anyhow::Error),
    /// The reader of the output has closed the pipe, as in `strata search … | head`. This is not an error: exit code 0.
    ClosedPipe,
}

impl Failure {
    /// A command called wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(anyhow::Error::msg(message.into()))
    }

    /// A command that failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(anyhow::Error::msg(message.into()))
    }
}

impl From<strata_core::Error> for Failure {
    fn from(error: strata_core::Error) -> Self {
        match error.kind() {
            ErrorKind::Invalid | ErrorKind::TooLarge => Self::Usage(error.into()),
            ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Unconditional
            | ErrorKind::Unavailable
            | ErrorKind::Internal => Self::Failed(error.into()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Failed(error.into()),
        }
    }
}
