//! The front over the use-cases. Each part holds only the ports that it needs; this module connects them.

use std::sync::Arc;

use jiff::Timestamp;

use strata_core::context::CompactionLimits;
use strata_core::error::{Error, Result};
use strata_core::lexicon::Lexicon;
use strata_core::ports::{
    ChatModel, Clock, Compute, Embedder, IdSource, InlineCompute, Reader, Reranker, Timer, TokenCounter,
};
use strata_core::store::Store;

use crate::clock::MicrosecondClock;
use crate::contexts::Contexts;
use crate::conversation::Conversation;
use crate::forgetting::Forgetting;
use crate::forgotten::Forgotten;
use crate::imports::Imports;
use crate::index::Indexes;
use crate::jobs::Jobs;
use crate::keys::Keys;
use crate::learn::LearnSettings;
use crate::learning::{Learning, ModelCounts, StatementVectors};
use crate::limits::Limits;
use crate::maintenance::{EmbedItems, Maintenance};
use crate::memories::Memories;
use crate::prompt::{PromptRules, PromptSettings};
use crate::prompting::Prompting;
use crate::recall::{Recall, RecallSettings, RequestLog};
use crate::recording::{Queues, Recording};
use crate::report::InForce;
use crate::reporting::Reporting;
use crate::requests::Requests;
use crate::sessions::Sessions;
use crate::summaries::Summaries;

/// The settings of the use-cases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// The limits on the data that one call may store.
    pub limits: Limits,
    /// Which items are embedded.
    pub embed: EmbedItems,
    /// The settings of recall.
    pub recall: RecallSettings,
    /// The settings of learning.
    pub learn: LearnSettings,
    /// When a session's working context is compacted, and which part stays.
    pub compaction: CompactionLimits,
}

/// The use-cases, one part each. An engine has no lasting state of its own: all data is in the store.
#[derive(Clone)]
pub struct Engine {
    /// Appends turns, and records exchanges with a model.
    pub recording: Recording,
    /// Answers questions from memory.
    pub recall: Recall,
    /// The rows and traces of recalls.
    pub requests: Requests,
    /// Reports over a period, growth, and complaints.
    pub reporting: Reporting,
    /// Makes prompts, and the memory block of a chat.
    pub prompting: Prompting,
    /// Answers a message through a model, or from memory alone.
    pub conversation: Conversation,
    /// Learns memories from recorded turns.
    pub learning: Learning,
    /// Summaries of sessions and texts.
    pub summaries: Summaries,
    /// Background jobs: waiting, running, finished, failed.
    pub jobs: Jobs,
    /// Memories: added, edited, deleted, forgotten.
    pub memories: Memories,
    /// Sessions, their turns and states.
    pub sessions: Sessions,
    /// Working contexts as JSON documents.
    pub contexts: Contexts,
    /// Imports records of other programs.
    pub imports: Imports,
    /// API keys.
    pub keys: Keys,
    /// Forgets users.
    pub forgetting: Forgetting,
    /// Segments and vectors, made in the background.
    pub maintenance: Maintenance,
    wiring: Wiring,
}

/// The ports and settings that the parts are made of.
#[derive(Clone)]
struct Wiring {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    tokens: Arc<dyn TokenCounter>,
    compute: Arc<dyn Compute>,
    settings: Arc<Settings>,
    prompts: Arc<PromptRules>,
    /// Without a lexicon, recall uses the store's own text index.
    indexes: Option<Arc<Indexes>>,
    embedder: Option<Arc<dyn Embedder>>,
    reranker: Option<Arc<dyn Reranker>>,
    /// Without a timer, recall waits for models as long as they take.
    timer: Option<Arc<dyn Timer>>,
    /// Without a model, learning uses rules.
    model: Option<Arc<dyn ChatModel>>,
    /// Without a reader, learning reads by rules.
    reader: Option<Arc<dyn Reader>>,
    vectors: StatementVectors,
    counts: ModelCounts,
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
        Wiring {
            store,
            clock: Arc::new(MicrosecondClock(clock)),
            ids,
            tokens,
            compute: Arc::new(InlineCompute),
            settings: Arc::new(settings),
            prompts: PromptRules::built_in(),
            indexes: None,
            embedder: None,
            reranker: None,
            timer: None,
            model: None,
            reader: None,
            vectors: StatementVectors::default(),
            counts: ModelCounts::default(),
        }
        .build()
    }

    #[cfg(test)]
    pub(crate) fn with_changed_settings(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = (*self.wiring.settings).clone();
        change(&mut settings);
        Wiring { settings: Arc::new(settings), ..self.wiring }.build()
    }

    /// Runs long computations on `compute`, and gives models the time that `timer` measures.
    #[must_use]
    pub fn with_runtime(self, compute: Arc<dyn Compute>, timer: Arc<dyn Timer>) -> Self {
        Wiring { compute, timer: Some(timer), ..self.wiring }.build()
    }

    /// Ranks in memory, with the words and vectors of a lexicon.
    #[must_use]
    pub fn with_lexicon(self, lexicon: Arc<dyn Lexicon>) -> Self {
        let indexes = Indexes::new(lexicon, self.wiring.settings.recall.index_bytes);
        Wiring { indexes: Some(Arc::new(indexes)), ..self.wiring }.build()
    }

    /// Compares by the vectors of an encoder too.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Wiring { embedder: Some(embedder), ..self.wiring }.build()
    }

    /// Reorders the best candidates with a cross-encoder, where the setting or a request asks for it.
    #[must_use]
    pub fn with_reranker(self, reranker: Arc<dyn Reranker>) -> Self {
        Wiring { reranker: Some(reranker), ..self.wiring }.build()
    }

    /// Extracts, reconciles and summarises with a chat model instead of rules.
    #[must_use]
    pub fn with_chat_model(self, model: Arc<dyn ChatModel>) -> Self {
        Wiring { model: Some(model), ..self.wiring }.build()
    }

    /// Learns what people say with a reader instead of rules.
    #[must_use]
    pub fn with_reader(self, reader: Arc<dyn Reader>) -> Self {
        Wiring { reader: Some(reader), ..self.wiring }.build()
    }

    /// Replaces the default settings for prompts and states; *invalid* if a profile has an error.
    pub fn with_prompts(self, settings: PromptSettings) -> Result<Self> {
        if settings.enrichment.as_ref().is_some_and(|template| !template.contains("{question}")) {
            return Err(Error::invalid("`enrichment` does not hold `{question}`; the request would be lost"));
        }
        let prompts = Arc::new(PromptRules::new(settings)?);
        Ok(Wiring { prompts, ..self.wiring }.build())
    }

    /// The store, for operations that no use-case covers: checks, closing.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.wiring.store
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.wiring.settings
    }

    /// A new id, for values that the caller itself has to identify: a request, an answer.
    pub fn next_id(&self) -> uuid::Uuid {
        self.wiring.ids.next()
    }

    /// The time now, to the microsecond.
    pub fn now(&self) -> Timestamp {
        self.wiring.clock.now()
    }
}

impl Wiring {
    fn build(self) -> Engine {
        let Settings { limits, embed, recall, learn, .. } = &*self.settings;
        let (recall, learn) = (Arc::new(recall.clone()), Arc::new(learn.clone()));
        let forgotten = Arc::<Forgotten>::default();
        let log = RequestLog::new(self.store.clone(), self.clock.clone(), forgotten.clone());
        let jobs = self.jobs(&learn);
        let queues = Arc::<Queues>::default();
        let maintenance = self.maintenance(*embed);
        let recall = self.recall(recall, log.clone(), maintenance.clone());
        let sessions = self.sessions(*limits, queues.clone(), log.clone());
        let recording = self.recording(*limits, queues, jobs.clone(), forgotten);
        let memories = self.memories(*limits);
        let summaries = self.summaries(&learn, jobs.clone(), sessions.clone());
        let prompting = self.prompting(recall.clone(), recording.clone(), *limits);
        let contexts = self.contexts(&sessions, &recording, &memories);
        let learning = self.learning(learn, &recall, &recording, &summaries, &contexts);
        let requests = Requests { store: self.store.clone(), recall: recall.clone(), log: log.clone() };
        Engine {
            forgetting: Forgetting {
                store: self.store.clone(),
                clock: self.clock.clone(),
                ids: self.ids.clone(),
                log,
                indexes: self.indexes.clone(),
            },
            reporting: Reporting {
                store: self.store.clone(),
                clock: self.clock.clone(),
                requests: requests.clone(),
                in_force: Arc::new(self.in_force()),
            },
            requests,
            conversation: Conversation {
                clock: self.clock.clone(),
                ids: self.ids.clone(),
                recording: recording.clone(),
                prompting: Arc::new(prompting.clone()),
                learning: Arc::new(learning.clone()),
            },
            contexts,
            imports: self.imports(*limits, &recording),
            keys: Keys { store: self.store.clone(), clock: self.clock.clone(), ids: self.ids.clone() },
            maintenance,
            recording,
            recall,
            prompting,
            learning,
            summaries,
            jobs,
            memories,
            sessions,
            wiring: self,
        }
    }

    fn imports(&self, limits: Limits, recording: &Recording) -> Imports {
        Imports {
            store: self.store.clone(),
            clock: self.clock.clone(),
            tokens: self.tokens.clone(),
            limits,
            recording: recording.clone(),
        }
    }

    fn jobs(&self, learn: &Arc<LearnSettings>) -> Jobs {
        Jobs {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            settings: learn.clone(),
            has_model: self.model.is_some(),
            has_reader: self.reader.is_some(),
            counts: Arc::default(),
        }
    }

    /// The parts and settings in force, for the advice of reports.
    fn in_force(&self) -> InForce {
        let Settings { embed, recall, learn, .. } = &*self.settings;
        InForce {
            embeds: self.embedder.is_some(),
            reranks: self.reranker.is_some() && recall.rerank,
            learns_by_model: self.model.is_some(),
            embed: *embed,
            recall: recall.clone(),
            learn: learn.clone(),
        }
    }

    fn recall(&self, settings: Arc<RecallSettings>, log: RequestLog, maintenance: Maintenance) -> Recall {
        Recall {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tokens: self.tokens.clone(),
            compute: self.compute.clone(),
            settings,
            indexes: self.indexes.clone(),
            embedder: self.embedder.clone(),
            reranker: self.reranker.clone(),
            reader: self.reader.clone(),
            timer: self.timer.clone(),
            log,
            maintenance,
        }
    }

    fn maintenance(&self, embed: EmbedItems) -> Maintenance {
        Maintenance {
            store: self.store.clone(),
            clock: self.clock.clone(),
            compute: self.compute.clone(),
            indexes: self.indexes.clone(),
            embedder: self.embedder.clone(),
            embed,
            embedding: Arc::default(),
            short: Arc::default(),
        }
    }

    fn sessions(&self, limits: Limits, queues: Arc<Queues>, log: RequestLog) -> Sessions {
        let (store, clock, ids) = (self.store.clone(), self.clock.clone(), self.ids.clone());
        Sessions { store, clock, ids, log, limits, queues }
    }

    fn recording(
        &self,
        limits: Limits,
        queues: Arc<Queues>,
        jobs: Jobs,
        forgotten: Arc<Forgotten>,
    ) -> Recording {
        Recording {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tokens: self.tokens.clone(),
            compute: self.compute.clone(),
            limits,
            prompts: self.prompts.clone(),
            queues,
            forgotten,
            recorded: Arc::default(),
            jobs,
        }
    }

    fn memories(&self, limits: Limits) -> Memories {
        Memories { store: self.store.clone(), clock: self.clock.clone(), ids: self.ids.clone(), limits }
    }

    fn summaries(&self, learn: &Arc<LearnSettings>, jobs: Jobs, sessions: Sessions) -> Summaries {
        Summaries {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tokens: self.tokens.clone(),
            settings: learn.clone(),
            model: self.model.clone(),
            jobs,
            sessions,
        }
    }

    fn contexts(&self, sessions: &Sessions, recording: &Recording, memories: &Memories) -> Contexts {
        Contexts {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tokens: self.tokens.clone(),
            limits: self.settings.limits,
            sessions: sessions.clone(),
            recording: recording.clone(),
            memories: memories.clone(),
            compaction: Arc::new(self.settings.compaction.clone()),
            compactions: Arc::default(),
        }
    }

    fn prompting(&self, recall: Recall, recording: Recording, limits: Limits) -> Prompting {
        Prompting {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tokens: self.tokens.clone(),
            limits,
            prompts: self.prompts.clone(),
            recall,
            recording,
        }
    }

    fn learning(
        &self,
        settings: Arc<LearnSettings>,
        recall: &Recall,
        recording: &Recording,
        summaries: &Summaries,
        contexts: &Contexts,
    ) -> Learning {
        Learning {
            store: self.store.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            settings,
            model: self.model.clone(),
            reader: self.reader.clone(),
            embedder: self.embedder.clone(),
            vectors: self.vectors.clone(),
            counts: self.counts.clone(),
            jobs: recording.jobs.clone(),
            recording: recording.clone(),
            recall: recall.clone(),
            summaries: summaries.clone(),
            memories: contexts.memories.clone(),
            contexts: Arc::new(contexts.clone()),
            served: Arc::default(),
        }
    }
}
