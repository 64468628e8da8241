//! Strata's knowledge of language, mainly English and Chinese: text analysis, sentences, time expressions, content,
//! cues that point at conversations or need no memory, and the rules that extract statements from messages.
//!
//! This crate is pure: text in, values out. It knows no turn, no memory, no user and no store. Start reading at
//! [`text`] for the terms of a search index, and at [`rules`] for the way from a message to statements.

mod amounts;
pub mod content;
pub mod cues;
mod pattern;
pub mod plan;
pub mod rules;
mod same;
pub mod secrets;
pub mod sentences;
pub mod sought;
pub mod statements;
pub mod text;
pub mod time;

pub use pattern::{Pattern, compact};
pub use same::normalised;
