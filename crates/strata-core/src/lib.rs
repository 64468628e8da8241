//! Strata's domain: its types, the ports, the store's contract, the reference store and the conformance suite.
//!
//! A backend needs this crate and nothing else. Deliberately absent: databases, HTTP, the file system, environment
//! variables, the wall clock and a runtime; and the use-cases, which are in `strata-engine`. Start reading at
//! [`store::Store`].

pub mod context;
pub mod dot;
pub mod error;
pub mod file_name;
pub mod hash;
pub mod id;
pub mod job;
pub mod key;
pub mod lenient_int;
pub mod lexicon;
pub mod memory;
pub mod metric;
pub mod moment;
pub mod names;
pub mod nul;
pub mod ports;
pub mod scope;
pub mod session;
pub mod sse;
pub mod state;
pub mod store;
pub mod summary;
pub mod trace;
pub mod turn;
pub mod vector;

pub use error::{Error, ErrorKind, Result};
pub use id::{ItemId, JobId, KeyId, LeaseId, MemoryId, RequestId, SessionId, SummaryId, TurnId, UserId};
pub use memory::{Memory, MemoryKind};
pub use session::Session;
pub use store::Store;
pub use turn::{NewMessage, NewTurn, Role, Turn};
