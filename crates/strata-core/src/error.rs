//! The one error of the core and its ports: a kind to match on, a message for a person, and the cause.
//!
//! Backends translate their drivers' errors into this type in one place each. Whether a failure may be retried is decided
//! there too, where the cause is known. HTTP status codes do not exist here: the server maps kinds to them.

use std::fmt;

/// What every fallible function of the core returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something failed, coarse enough for a caller to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The thing named does not exist for this user.
    NotFound,
    /// The write contradicts what is stored: an id that exists, a lease that was lost, a key reused for other content.
    Conflict,
    /// The input cannot be right, whatever the state of the store.
    Invalid,
    /// The input is well formed but larger than a limit.
    TooLarge,
    /// Something we depend on does not answer now: a locked file, a full disk, a remote model.
    Unavailable,
    /// A defect, or stored data that cannot be right.
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
    /// An error of `kind`; the message is lower case, names the offending value in backticks and says what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retryable: false, source: None }
    }

    /// The thing named does not exist for this user.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The write contradicts what is stored.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// The input cannot be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The input is larger than a limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    /// Something we depend on does not answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A defect, or stored data that cannot be right: name the table and the id.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks the failure as one that the same call may survive later.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// What a caller matches on.
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

/// The beginning of an offending value, as a message shows it.
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
