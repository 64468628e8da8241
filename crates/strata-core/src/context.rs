//! The working context: all that a program keeps about a session, as one JSON document.
//!
//! [`ContextData`] is that document, field for field; [`ContextCompactor`] keeps it small; [`of_session`] makes it for a
//! session of the store and [`changes`] says what a document that came back asks to be changed there. What is
//! deliberately absent: files (the store crate's `ContextManager` keeps them) and the wall clock. Start reading at
//! [`ContextData`], then [`ContextCompactor`].

mod compact;
mod document;
mod fold;
mod session;

pub use compact::{CompactionLimits, ContextCompactor};
pub use document::{ContextData, Environment, HistoryEntry};
pub use fold::SUMMARY_HEADING;
pub use session::counts_usage;
pub use session::{ContextChanges, SessionParts, SummaryRewrite, changes, of_session};

pub use crate::state::{Task, TokenUsage, ToolStats};

/// The name that the working context's documents give to the error.
pub type MemoryError = crate::error::Error;
