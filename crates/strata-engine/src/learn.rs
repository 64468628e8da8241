//! The write path behind the conversation: what is made of turns after they were acknowledged.
//!
//! A message makes [`Statement`]s; a [`Plan`] says what becomes of each of them and of every neighbour that is known
//! already. Who makes them, the rules inside the binary ([`rules`]) or a model, is a detail: both give these values, and both
//! are held to [`Plan::check`], so that a contradiction never leaves the store with neither.
//!
//! What is deliberately absent: jobs, storage and retries, which are the engine's.

pub(crate) mod answer;
pub(crate) mod extractive;
pub(crate) mod questions;
pub mod rules;
mod settings;
mod statement;
pub mod structured;
pub mod summarising;
pub mod tree;
pub mod window;

pub use settings::{LearnInto, LearnSettings};
pub use statement::{Said, Statement};
pub use strata_language::normalised;
pub use strata_language::plan::{Fate, Novelty, Plan, TodoEnd};
pub use strata_language::rules::MAX_STATEMENTS;
