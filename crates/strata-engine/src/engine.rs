//! The use-cases, over the ports: what the command line, the server and a Rust program all call.
//!
//! An [`Engine`] owns no state of its own beside its settings: everything lasting is in the store.

pub mod align;
mod chat;
mod context;
mod converse;
mod embedding;
mod exchange;
mod explain;
mod import;
mod keys;
mod learn;
mod memories;
mod prompt;
mod queue;
mod record;
mod requests;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::Value;

pub use chat::{ChatMemory, ChatQuestion, ChatSnapshot};
pub use converse::{ChatReply, ReplyStatus, Talk};
pub use embedding::EmbedItems;
pub use exchange::{Ending, Exchange};
pub use import::{ImportedParts, ImportedSession, ImportedSummary, ReadInto};
pub use keys::NewKey;
pub use learn::{
    Ended, Event, HistoryStep, InferredEvent, JobKind, Learned, Quote, StructuredPoint, SummaryReport,
    SummaryVersion, TextNode, TextSummary,
};
pub use memories::{MemoryEdit, NewMemory};
pub use prompt::{PromptRequest, Prompted};
pub use record::Recorded;

use crate::index::Indexes;
use crate::learn::LearnSettings;
use crate::recall::RecallSettings;
use strata_core::error::{Error, Result};
use strata_core::lexicon::Lexicon;
use strata_core::nul::check_nul;
use strata_core::ports::{ChatModel, Clock, Embedder, IdSource, Reranker, TokenCounter};
use strata_core::store::Store;
use strata_core::turn::Metadata;

/// What the use-cases may be told beside their input.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The most bytes of one turn or memory, its metadata counted apart under the same limit. 1 MiB: a long document
    /// still fits, a runaway client does not fill the disk.
    pub max_turn_bytes: usize,
    /// The most turns in one call.
    pub max_turns_per_call: usize,
    /// Which items are embedded.
    pub embed: EmbedItems,
    /// How recall works.
    pub recall: RecallSettings,
    /// How learning works.
    pub learn: LearnSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_turn_bytes: 1024 * 1024,
            max_turns_per_call: 1000,
            embed: EmbedItems::Auto,
            recall: RecallSettings::default(),
            learn: LearnSettings::default(),
        }
    }
}

/// The use-cases.
#[derive(Clone)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) tokens: Arc<dyn TokenCounter>,
    pub(crate) settings: Settings,
    /// Without a lexicon, recall uses the store's own text index.
    pub(crate) indexes: Option<Arc<Indexes>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    /// Without one, learning goes by rules.
    pub(crate) chat_model: Option<Arc<dyn ChatModel>>,
    pub(crate) waiting: Arc<requests::Waiting>,
    pub(crate) prompting: Arc<prompt::Prompting>,
    /// Shared by clones: who writes to which session just now.
    pub(crate) queues: Arc<queue::Queues>,
    /// How many turns were recorded, by this engine and its clones.
    pub(crate) recorded: Arc<AtomicU64>,
}

impl Engine {
    /// An engine over the given ports.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        tokens: Arc<dyn TokenCounter>,
        settings: Settings,
    ) -> Self {
        let waiting = Self::new_waiting();
        let prompting = prompt::Prompting::built_in();
        Self {
            store,
            clock,
            ids,
            tokens,
            settings,
            indexes: None,
            embedder: None,
            reranker: None,
            chat_model: None,
            waiting,
            prompting,
            queues: Arc::default(),
            recorded: Arc::default(),
        }
    }

    /// Ranks with the words and vectors of a lexicon, in memory.
    #[must_use]
    pub fn with_lexicon(mut self, lexicon: Arc<dyn Lexicon>) -> Self {
        self.indexes = Some(Arc::new(Indexes::new(lexicon, self.settings.recall.index_bytes)));
        self
    }

    /// Compares by an encoder's vectors too.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Lets a cross-encoder judge the best candidates.
    #[must_use]
    pub fn with_reranker(mut self, reranker: Arc<dyn Reranker>) -> Self {
        self.reranker = Some(reranker);
        self
    }

    /// The store underneath, for operations that no use-case covers: checks, closing.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many turns this engine and its clones have recorded: what works in the background can tell whether it is in the
    /// way.
    pub fn recorded_turns(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// A fresh id, for what a caller has to name itself: a request, an answer.
    pub fn next_id(&self) -> uuid::Uuid {
        self.ids.next()
    }

    /// The time now, to the microsecond.
    pub fn now(&self) -> Timestamp {
        to_micros(self.clock.now())
    }

    pub(crate) fn check_size(&self, what: &str, text: &str) -> Result<()> {
        let (bytes, most) = (text.len(), self.settings.max_turn_bytes);
        if bytes > most {
            return Err(Error::too_large(format!(
                "{what} has {bytes} bytes; the most is {most} (setting `max_turn_bytes`)"
            )));
        }
        Ok(())
    }

    pub(crate) fn check_text(&self, what: &str, text: &str) -> Result<()> {
        check_nul(what, text)?;
        self.check_size(what, text)
    }

    pub(crate) fn check_metadata(&self, what: &str, metadata: &Metadata) -> Result<()> {
        check_nul(what, metadata.fields())?;
        self.check_size(what, metadata.as_text())
    }

    pub(crate) fn check_json(&self, what: &str, value: &Value) -> Result<()> {
        check_nul(what, value)?;
        self.check_size(what, &value.to_string())
    }
}

/// Cuts a timestamp to the microsecond, which is what every backend keeps.
pub fn to_micros(timestamp: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(timestamp.as_microsecond()).unwrap_or(timestamp)
}
