//! The real binary, called as a person or a script would call it, each test with a home directory of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the answer")]

mod adding;
mod answers;
mod chatting;
mod configuration;
mod daily;
mod disputing;
mod evaluating;
mod explaining;
mod files;
mod forgetting;
mod harness;
mod hygiene;
mod keys;
mod late_models;
mod learning;
mod models;
mod moving;
mod prompting;
mod recording;
mod reporting;
mod serving;
mod terminal;
mod vault;

#[path = "../support/model.rs"]
mod model;

#[path = "../support/upstream.rs"]
mod upstream;
