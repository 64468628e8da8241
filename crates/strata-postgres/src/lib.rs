//! Strata's store for many processes: one PostgreSQL database.
//!
//! Any number of processes may use one database. No write depends on anything that a process remembers between two
//! transactions, and nothing is kept in a connection between two statements. What is deliberately left alone: the meaning of
//! turns and memories. Start reading at [`PostgresStore`], then `apply` for what is written, `search` for how text is found,
//! `vectors` for the search by vectors, and `version_1.sql` for the tables.

mod apply;
mod behind;
mod check;
mod connect;
mod connection;
mod error;
mod extensions;
mod feed;
mod lent;
mod options;
mod read;
mod replica;
mod row;
mod schema;
mod search;
mod sql;
mod store;
mod terms;
#[cfg(feature = "test-server")]
pub mod test_server;
mod vectors;
mod wake;

pub use options::{Address, PostgresOptions};
pub use store::PostgresStore;
