//! The working context: all data that a program keeps about a session, as one JSON document.
//!
//! [`ContextData`] is that document, field for field. [`ContextCompactor`] keeps it small. [`of_session`] makes it for
//! a session of the store, and [`changes`] computes the changes that an edited document asks for. Deliberately absent:
//! files (the context crate's `ContextManager` keeps them) and the wall clock. Start reading at [`ContextData`], then
//! [`ContextCompactor`].

mod compact;
mod document;
mod fold;
mod removal;
mod session;

pub use compact::{CompactionLimits, ContextCompactor};
pub use document::{ContextData, Environment, HistoryEntry};
pub use removal::removals;
pub use session::counts_usage;
pub use session::{ContextChanges, SessionParts, SummaryRewrite, changes, of_session};

pub use crate::state::{Task, TokenUsage, ToolStats};

/// The name of the error in the context-store design.
pub type MemoryError = crate::error::Error;
