//! Memory for any LLM application: the parts of the `strata` binary, for Rust programs that embed it.
//!
//! Start reading at [`Memory`]; most programs need nothing else. It is built from [`engine()`] and [`open_store`].
//! Deliberately absent: domain logic, which lives in `strata-engine`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> strata::Result<()> {
//! let memory = strata::Memory::open("memory:").await?; // or a path
//! let ada = memory.user("ada")?.session("trip")?;
//! ada.chat("I am allergic to peanuts.").await?;
//! let reply = ada.session("another day")?.chat("What must I not eat?").await?;
//! assert!(reply.text.contains("peanuts"));
//! # memory.close().await
//! # }
//! ```

pub mod config;
mod memory;
mod store;
mod system;
mod worker;

use std::sync::Arc;

pub use memory::{Memory, MemoryBuilder};
pub use store::{open_sqlite, open_sqlite_to_read, open_store, open_store_with, open_vault};
pub use strata_core::ports;
pub use strata_core::{
    Error, ErrorKind, Memory as MemoryItem, MemoryId, MemoryKind, NewMessage, Result, Role, SessionId, Turn,
    TurnId, UserId,
};
pub use strata_engine::recall::{RecallRequest, Recalled, RecalledItem};
pub use strata_engine::{ChatReply, Engine, NewMemory, ReplyStatus, prompt};
pub use system::{BlockingPool, SystemClock, SystemIds, SystemSecrets, SystemTimer};
pub use worker::{Worker, WorkerSettings};

#[cfg(not(feature = "lite"))]
use config::STRATA_ENCODER;
use config::{Config, EmbedderChoice, Models, ReaderChoice, RerankChoice};
use strata_core::Store;
use strata_core::ports::{Clock, Embedder, Reranker};
use strata_engine::prompt::PromptSettings;
use strata_models::BuiltinLexicon;
use strata_models::onnx::{OnnxEncoder, OnnxReader, OnnxReranker};
use strata_models::remote::RemoteEmbedder;

/// The use-cases over `store`, with the system's clock and ids and the configured tokenizer, models and limits.
pub fn engine(config: &Config, store: Arc<dyn Store>) -> Result<Engine> {
    engine_at(config, store, Arc::new(SystemClock))
}

/// As [`engine()`], with another clock: for benchmarks, whose questions have their own time.
pub fn engine_at(config: &Config, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Engine> {
    let ids = Arc::new(SystemIds::new());
    let engine = Engine::new(store, clock, ids, Arc::new(config.tokenizer), config.engine.clone())
        .with_runtime(Arc::new(BlockingPool::new()), Arc::new(SystemTimer))
        .with_lexicon(Arc::new(BuiltinLexicon::new()));
    let engine = match embedder(config)? {
        Some(embedder) => engine.with_embedder(embedder),
        None => engine,
    };
    let engine = match config.learn_model()? {
        Some(model) => engine.with_chat_model(Arc::new(model)),
        None => engine,
    };
    let reader = reader(config)?;
    let engine = match reranker(config, reader.as_ref())? {
        Some(reranker) => engine.with_reranker(reranker),
        None => engine,
    };
    let engine = match reader {
        Some(reader) => engine.with_reader(Arc::new(reader)),
        None => engine,
    };
    // The default prompts are compiled once for all engines.
    if config.prompts == PromptSettings::default() {
        return Ok(engine);
    }
    engine.with_prompts(config.prompts.clone())
}

/// The configured reader; `None` if the rules read.
fn reader(config: &Config) -> Result<Option<OnnxReader>> {
    match &config.learning.reader {
        ReaderChoice::Off => Ok(None),
        ReaderChoice::Builtin => builtin_reader(),
        ReaderChoice::Onnx(directory) => OnnxReader::open(directory).map(Some),
    }
}

/// The configured cross-encoder: one in a folder, or the reader that learns, so that its weights are in memory once. `None` if
/// this binary has no reader.
fn reranker(config: &Config, reader: Option<&OnnxReader>) -> Result<Option<Arc<dyn Reranker>>> {
    let reader = match (&config.models.rerank, reader) {
        (RerankChoice::Onnx(directory), _) => return Ok(Some(Arc::new(OnnxReranker::open(directory)?))),
        (_, Some(reader)) => Some(reader.clone()),
        (_, None) => builtin_reader()?,
    };
    if reader.is_none() && config.models.rerank == RerankChoice::Reader {
        return Err(Error::invalid(
            "`recall.rerank` is `reader`, and this binary has none; name a folder in `learn.reader`, or use `onnx:DIR`",
        ));
    }
    Ok(reader.map(|reader| Arc::new(reader) as _))
}

/// Strata's reader inside the binary.
#[cfg(not(feature = "lite"))]
fn builtin_reader() -> Result<Option<OnnxReader>> {
    OnnxReader::of_program("strata-reader", strata_weights::READER).map(Some)
}

/// This binary has no networks.
#[cfg(feature = "lite")]
fn builtin_reader() -> Result<Option<OnnxReader>> {
    Ok(None)
}

/// The configured encoder; `None` for the built-in word vectors alone.
pub fn embedder(config: &Config) -> Result<Option<Arc<dyn Embedder>>> {
    let models = &config.models;
    Ok(match &models.embedder {
        EmbedderChoice::Builtin => builtin_encoder(models)?.map(|encoder| Arc::new(encoder) as _),
        EmbedderChoice::Words => None,
        EmbedderChoice::Onnx(directory) => Some(Arc::new(OnnxEncoder::open(directory)?)),
        EmbedderChoice::Remote { url, model } => {
            let key = models.embedder_key.as_ref().map(|key| key.expose().to_owned());
            Some(Arc::new(RemoteEmbedder::new(url, model, key, models.embedder_timeout)?))
        }
    })
}

/// Strata's encoder inside the binary.
#[cfg(not(feature = "lite"))]
fn builtin_encoder(_models: &Models) -> Result<Option<OnnxEncoder>> {
    OnnxEncoder::of_program(STRATA_ENCODER, strata_weights::ENCODER).map(Some)
}

/// Strata's encoder where it is installed, because this binary has none.
#[cfg(feature = "lite")]
fn builtin_encoder(models: &Models) -> Result<Option<OnnxEncoder>> {
    models.installed_encoder().map(OnnxEncoder::open).transpose()
}
