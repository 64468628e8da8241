//! Recall benchmarks: labelled conversations go through Strata's real write and read path, and the recalled items are scored
//! against the evidence, without a model.
//!
//! Deliberately absent: a store, a configuration and printing; the caller provides an engine and shows the report. Start
//! reading at [`load`] and [`run`]. `docs/evals.md` describes the format of the data.

pub mod cases;
mod clock;
pub mod conflicts;
mod data;
mod foreign;
mod metrics;
mod options;
pub mod prompts;
pub mod reading;
mod report;
mod runner;
mod table;

pub use clock::EvalClock;
pub use data::{Conversation, Question, Session, Set, Turn, load, sets};
pub use foreign::{ForeignReport, Group};
pub use metrics::{Level, Metrics, NAMES, Row, Slot, Summary, summarise};
pub use options::Options;
pub use report::{Ingest, Latency, OrderReport, Report, RunLine};
pub use runner::{Progress, run};
pub use table::table;
