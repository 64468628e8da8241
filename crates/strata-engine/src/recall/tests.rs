//! Recall over the reference store, with a small test lexicon.

mod filtering;
pub(crate) mod fixture;
mod models;
mod observing;
mod pipeline;
mod repeating;
mod standing;
