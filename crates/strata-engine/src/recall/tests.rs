//! Recall over the reference store, with a lexicon made for the purpose.

mod filtering;
pub(crate) mod fixture;
mod models;
mod observing;
mod pipeline;
mod repeating;
mod standing;
