//! Recall benchmarks: labelled conversations go through Strata's real write and read path, and what it brings back is
//! scored against the evidence, without any model.
//!
//! What is deliberately absent: a store, a configuration and printing; the caller hands in an engine and shows the
//! report. Start reading at [`load`] and [`run`]. The format of the data is described in `docs/evals.md`.

mod clock;
pub mod conflicts;
mod data;
mod metrics;
mod report;
mod runner;
mod table;

pub use clock::EvalClock;
pub use data::{Conversation, Question, Session, Set, Turn, load, sets};
pub use metrics::{Level, Metrics, NAMES, Row, Slot, Summary, of_question, summarise};
pub use report::{Ingest, Latency, OrderReport, Report, RunLine};
pub use runner::{Options, Progress, run};
pub use table::table;
