//! Where Strata keeps things: the stores behind the core's port.
//!
//! Each backend has a module of its own and shares nothing with the others but the port, [`strata_core::Store`]. What is
//! deliberately absent: HTTP, model calls, configuration, and any rule about what to store: that is the core's.

mod sqlite;

pub use sqlite::{Quarantined, SqliteOptions, SqliteStore};
