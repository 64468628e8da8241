//! Memory for any LLM application: what the `strata` binary is made of, for Rust programs that embed it.
//!
//! Configuration, the system's clock and ids, and the choice of a store. What is deliberately absent: domain logic, which
//! lives in `strata-core`. Start reading at [`config::Config`], then at [`open_store`] and [`engine()`].

pub mod config;
mod store;
mod system;

use std::sync::Arc;

pub use store::{open_sqlite, open_store};
pub use system::{SystemClock, SystemIds};

use strata_core::ports::Clock;
use strata_core::{Engine, Store};

/// The use-cases over `store`, with the system's clock and ids and the configured tokenizer and limits.
pub fn engine(config: &config::Config, store: Arc<dyn Store>) -> Engine {
    engine_at(config, store, Arc::new(SystemClock))
}

/// As [`engine()`], at the time that `clock` shows: for benchmarks, whose questions have their own time.
pub fn engine_at(config: &config::Config, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Engine {
    Engine::new(store, clock, Arc::new(SystemIds::new()), Arc::new(config.tokenizer), config.engine.clone())
}
