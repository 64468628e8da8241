//! The one error of the core and its ports: a kind to match on, a message for a person, and the cause.
//!
//! Backends translate their drivers' errors into this type in one place each. Whether a failure may be retried is decided
//! there too, because the cause is known there. HTTP status codes do not exist here: the server maps kinds to them.

use std::fmt;

/// The result of every fallible function of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason for a failure, coarse enough for a caller to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The named thing does not exist for this user.
    NotFound,
    /// The write contradicts the stored data: an id that exists, a lease that was lost, a key reused for other content.
    Conflict,
    /// The write would remove something, and the caller does not say which state of the store it has read.
    Unconditional,
    /// The input is invalid in any state of the store.
    Invalid,
    /// The input is well formed but larger than a limit.
    TooLarge,
    /// A dependency does not answer now: a locked file, a full disk, a remote model.
    Unavailable,
    /// A defect, or invalid stored data.
    Internal,
}

/// An error with its kind, its context and its cause.
pub struct Error {
    kind: ErrorKind,
    message: String,
    retryable: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error. The message is lower case, names the offending value in backticks and says what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retryable: false, source: None }
    }

    /// The named thing does not exist for this user.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The write contradicts the stored data.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// The write needs a condition.
    pub fn unconditional(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unconditional, message)
    }

    /// The input is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The input is larger than a limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    /// A dependency does not answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A defect, or invalid stored data: the message names the table and the id.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks the failure as retryable: the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The kind, for callers to match on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message alone, without the chain of causes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }
}

/// A failure of the file system for people: in lower case, without the number of the operating system.
pub fn io_reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match error.kind() {
        NotFound => "it does not exist".to_owned(),
        PermissionDenied => "permission is denied".to_owned(),
        _ => {
            let said = error.to_string();
            let said = said.split(" (os error").next().unwrap_or_default();
            let mut letters = said.chars();
            letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}

/// The beginning of an offending value, for a message.
pub fn shown(value: impl fmt::Display) -> String {
    value.to_string().chars().take(64).collect()
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("retryable", &self.retryable)
            .field("source", &self.source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
