//! Recall over the reference store, with a small test lexicon.

mod answerable;
mod deadlines;
mod disputed;
mod exclusions;
mod filtering;
pub(crate) mod fixture;
mod identifiers;
mod listing;
mod models;
mod pipeline;
mod request_log;
mod second_look;
mod summaries;
mod validity;
mod walls;
