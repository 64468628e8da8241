//! What Strata knows about language, English and Chinese first: text analysis, sentences, time expressions, cues that point
//! at earlier conversations, and the rules that read statements out of messages.
//!
//! This crate is pure: text in, values out. It knows no turn, no memory, no user and no store. Start reading at
//! [`text`] for what a search index sees, at [`rules`] for how a message becomes statements.

pub mod cues;
pub mod plan;
pub mod rules;
mod same;
pub mod sentences;
pub mod text;
pub mod time;

pub use same::normalised;
