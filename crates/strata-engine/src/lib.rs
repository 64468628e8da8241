//! Strata's use-cases over the ports of `strata-core`: record, recall, prompt, learn.
//!
//! What is deliberately absent: databases, HTTP, the file system, environment variables, the wall clock and a runtime.
//! Time, ids, tokens, models and storage come in through ports. Start reading at [`Engine`].

mod engine;
pub mod filter;
pub mod index;
pub mod learn;
pub mod prompt;
pub mod recall;

pub use engine::*;
pub use filter::Filter;
