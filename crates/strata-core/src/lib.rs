//! Strata's domain: types, text analysis, ranking, use-cases and the ports.
//!
//! What is deliberately absent: databases, HTTP, the file system, environment variables, the wall clock and a runtime.
//! Time, ids, tokens, models and storage come in through [`ports`] and [`store`]. Start reading at [`Engine`], which
//! holds the use-cases, then at [`store::Store`].

pub mod context;
pub mod dot;
pub mod engine;
pub mod error;
pub mod filter;
pub mod id;
pub mod index;
pub mod job;
pub mod key;
pub mod learn;
pub mod lexicon;
pub mod memory;
pub mod metric;
pub mod moment;
pub mod ports;
pub mod prompt;
pub mod recall;
pub mod session;
pub mod sse;
pub mod state;
pub mod store;
pub mod summary;
pub mod text;
pub mod time;
pub mod turn;
pub mod vector;
mod whole;

pub use engine::Engine;
pub use error::{Error, ErrorKind, Result};
pub use filter::Filter;
pub use id::{ItemId, JobId, KeyId, LeaseId, MemoryId, RequestId, SessionId, SummaryId, TurnId, UserId};
pub use memory::{Memory, MemoryKind};
pub use session::Session;
pub use store::Store;
pub use turn::{NewTurn, Role, Turn};
