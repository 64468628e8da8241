//! The pure part of learning: statements from messages, plans for memories, summaries of turns.
//!
//! A message yields [`Statement`]s. A [`Plan`] says what happens to each of them and to every memory near them. The
//! built-in rules ([`rules`]) and a model both produce these values. [`Plan::check`] validates both, so that a
//! contradiction never removes the old memory without adding the new one.
//!
//! Deliberately absent: jobs, storage and retries, which are in the crate's learning and summaries modules.

pub(crate) mod answer;
pub(crate) mod checks;
pub(crate) mod extractive;
pub(crate) mod questions;
pub(crate) mod reading;
pub(crate) mod relation;
pub mod rules;
mod settings;
pub(crate) mod standalone;
mod statement;
pub mod structured;
pub mod summarising;
pub mod tree;
pub mod window;

pub use settings::{LearnInto, LearnSecrets, LearnSettings};
pub use statement::{AsSaid, Said, Standing, Statement};
pub use strata_language::normalised;
pub use strata_language::plan::{Fate, Novelty, Plan, TodoEnd};
pub use strata_language::rules::MAX_STATEMENTS;
