//! The façade for Rust programs: one value that records, recalls, prompts, chats, learns and forgets, on one file.
//!
//! Start reading at [`Memory`]. Deliberately absent: domain logic, which belongs to the engine ([`Memory::engine`]), and the
//! environment: a setting that the program does not set has its default.

mod builder;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use strata_core::job::JobStatus;
use strata_core::ports::ChatModel;
use strata_core::store::{JobQuery, MemoryQuery, MemorySelect, Page, Removed};
use strata_core::turn::NewMessage;
use strata_core::{Memory as MemoryItem, MemoryId, Result, SessionId, UserId};
use strata_engine::Engine;
use strata_engine::prompt::{Prompt, PromptFormat};
use strata_engine::recall::{RecallRequest, Recalled, RecalledItem};
use strata_engine::{ChatReply, Event, NewMemory, PromptRequest, Recorded, ReplyStatus, Talk};

use crate::config::Config;
use crate::{SystemTimer, Worker, WorkerSettings};

pub use builder::MemoryBuilder;

/// How long [`Memory::settle`] waits for work that another process has taken.
const SETTLE: Duration = Duration::from_secs(10);

/// The pause between two checks for unfinished jobs.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// A handle on the memory in one file, bound to a user and a session. It is cheap to clone, and all handles share the file.
///
/// While it is open, it learns from recorded turns in the background. [`Memory::close`] finishes this work. A dropped memory
/// loses nothing either, because the next process that opens the file continues the work.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> strata::Result<()> {
/// let memory = strata::Memory::open("memory:").await?.user("ada")?;
/// memory.add("Ada is allergic to peanuts").await?;
/// let found = memory.search("what must Ada not eat?").await?;
/// assert_eq!(found[0].item.content(), "Ada is allergic to peanuts");
/// memory.close().await
/// # }
/// ```
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
    user: UserId,
    session: SessionId,
}

/// The parts that all handles share.
struct Shared {
    engine: Engine,
    model: Option<Arc<dyn ChatModel>>,
    instructions: Option<String>,
    /// How long running work may take when the memory is closed.
    patience: Duration,
    worker: Mutex<Option<Worker>>,
}

impl Memory {
    /// Opens a store with default settings: a path or `sqlite:PATH`, which is created if it does not exist, or `memory:`, which
    /// ends with the process. Call it within a Tokio runtime.
    pub async fn open(store: impl Into<String>) -> Result<Self> {
        Self::builder(store).open().await
    }

    /// Builds a memory with a user, session, model, embedder or settings of its own.
    ///
    /// ```no_run
    /// # async fn example() -> strata::Result<()> {
    /// let memory = strata::Memory::builder("notes.db")
    ///     .user("ada")
    ///     .session("trip")
    ///     .model("https://api.openai.com/v1", "gpt-4.1-mini")
    ///     .key("sk-…")
    ///     .setting("default_top_k", "8")
    ///     .open()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(store: impl Into<String>) -> MemoryBuilder {
        MemoryBuilder::new(store.into())
    }

    /// A memory over an existing engine, for the user `default` and the session `default`. Learning starts.
    pub fn over(engine: Engine, config: &Config) -> Result<Self> {
        let model = config.chat_model()?;
        let model = model.map(|model| Arc::new(model) as Arc<dyn ChatModel>);
        Ok(Self::start(engine, config, model, None))
    }

    fn start(
        engine: Engine,
        config: &Config,
        model: Option<Arc<dyn ChatModel>>,
        instructions: Option<String>,
    ) -> Self {
        let worker = Worker::start(engine.clone(), WorkerSettings::new(config));
        let shared = Shared {
            engine,
            model,
            instructions,
            patience: config.server.drain_timeout,
            worker: Mutex::new(Some(worker)),
        };
        Self { shared: Arc::new(shared), user: UserId::default(), session: SessionId::default() }
    }

    /// The same memory for another user, in the session `default`. A user never sees another user's data.
    pub fn user(&self, user: impl Into<String>) -> Result<Self> {
        let user = UserId::new(user.into())?;
        Ok(Self { shared: Arc::clone(&self.shared), user, session: SessionId::default() })
    }

    /// The same user's memory in another session. All sessions of a user share the user's memories.
    pub fn session(&self, session: impl Into<String>) -> Result<Self> {
        let session = SessionId::new(session.into())?;
        Ok(Self { shared: Arc::clone(&self.shared), user: self.user.clone(), session })
    }

    /// The user of this handle.
    pub fn user_id(&self) -> &UserId {
        &self.user
    }

    /// The session of this handle.
    pub fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// The engine, for all use-cases without a method here.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Whether a model replies; otherwise memory replies alone.
    pub fn has_model(&self) -> bool {
        self.shared.model.is_some()
    }

    /// Sends a message and returns the reply: of the model, which gets the relevant memories, or without a model from memory
    /// alone ([`ReplyStatus::MemoryAlone`]). Both messages are recorded. A failing model is not an error: the reply says so
    /// ([`ReplyStatus::Failed`]), and the message is recorded anyway.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> strata::Result<()> {
    /// let memory = strata::Memory::open("memory:").await?;
    /// memory.chat("I moved to Lisbon in March.").await?;
    /// let reply = memory.chat("Where do I live?").await?;
    /// assert!(reply.text.contains("Lisbon"));
    /// # memory.close().await
    /// # }
    /// ```
    pub async fn chat(&self, message: &str) -> Result<ChatReply> {
        self.chat_until(message, &mut |_| (), std::future::pending()).await
    }

    /// As [`Memory::chat`], and passes the reply to `on_text` piece by piece as it arrives.
    pub async fn stream(&self, message: &str, on_text: &mut (dyn FnMut(&str) + Send)) -> Result<ChatReply> {
        self.chat_until(message, on_text, std::future::pending()).await
    }

    /// As [`Memory::stream`], until `stop` completes. Then the reply is interrupted, and recorded as far as it has arrived
    /// ([`ReplyStatus::Interrupted`]).
    pub async fn chat_until(
        &self,
        message: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
        stop: impl Future<Output = ()> + Send,
    ) -> Result<ChatReply> {
        let Shared { engine, model, instructions, .. } = &*self.shared;
        let Some(model) = model.as_deref() else {
            let reply = engine.conversation.chat_alone(&self.user, &self.session, message).await?;
            on_text(&reply.text);
            return Ok(reply);
        };
        let instructions = instructions.as_deref();
        let mut streamed_bytes = 0;
        let mut counted = |piece: &str| {
            streamed_bytes += piece.len();
            on_text(piece);
        };
        let talk = Talk { model, instructions, on_text: &mut counted, stop: pin!(stop), timer: &SystemTimer };
        let reply = engine.conversation.chat(&self.user, &self.session, message, talk).await?;
        // After a failure, the reply may be longer than the streamed text.
        if let (ReplyStatus::Failed { .. }, Some(rest)) = (&reply.status, reply.text.get(streamed_bytes..)) {
            on_text(rest);
        }
        Ok(reply)
    }

    /// The items that answer a question, best first, from all of the user's sessions and memories.
    pub async fn search(&self, query: &str) -> Result<Vec<RecalledItem>> {
        Ok(self.recall(&RecallRequest::new(query)).await?.items)
    }

    /// As [`Memory::search`], with all options of recall, and with details about the search.
    pub async fn recall(&self, request: &RecallRequest) -> Result<Recalled> {
        self.engine().recall.ask(&self.user, request).await
    }

    /// Remembers a statement in its own words, as a fact for all sessions. If it is known already, the known memory is
    /// returned; if it changes a memory, it replaces that one.
    pub async fn add(&self, statement: &str) -> Result<MemoryItem> {
        self.add_memory(NewMemory::new(statement)).await
    }

    /// Remembers a statement with its kind, session, metadata and validity.
    pub async fn add_memory(&self, memory: NewMemory) -> Result<MemoryItem> {
        let events = self.engine().learning.add(&self.user, vec![memory]).await?;
        let added = events.iter().find(|event| event.event != Event::Delete);
        let added =
            added.ok_or_else(|| strata_core::Error::internal("a memory was added and is not there"))?;
        self.engine().memories.get(&self.user, added.id).await
    }

    /// Appends messages of a conversation elsewhere to the session. When it returns, the turns are durable. Strata learns from
    /// them in the background.
    pub async fn record(&self, messages: impl IntoIterator<Item = NewMessage>) -> Result<Recorded> {
        let messages = messages.into_iter().collect();
        self.engine().recording.record(&self.user, &self.session, messages, None).await
    }

    /// The prompt for a question, as one text or as messages, for programs that call their model themselves.
    pub async fn prompt(&self, question: &str, format: PromptFormat) -> Result<Prompt> {
        let request = PromptRequest { format, ..PromptRequest::new(self.session.clone(), question) };
        Ok(self.engine().prompting.prompt(&self.user, &request).await?.prompt)
    }

    /// The current memories, newest first, after the turns recorded so far have been learned from.
    pub async fn memories(&self) -> Result<Vec<MemoryItem>> {
        self.settle().await?;
        let current = MemorySelect::Current { as_of: None };
        let query = MemoryQuery { page: Page::first(u32::MAX), ..MemoryQuery::new(current) };
        self.engine().memories.list(&self.user, &query).await
    }

    /// Destroys a memory and its former statements.
    pub async fn forget(&self, id: MemoryId) -> Result<Removed> {
        self.engine().memories.forget(&self.user, id).await
    }

    /// Destroys the session: its turns, its summaries, and the memories that come from its turns only.
    pub async fn forget_session(&self) -> Result<Removed> {
        self.engine().sessions.delete(&self.user, &self.session).await
    }

    /// Runs the due learning jobs now instead of in the background, and returns when no job of the user is running. A turn that
    /// waits for other turns to share a model's call with is not due yet.
    pub async fn settle(&self) -> Result<()> {
        let engine = self.engine();
        let settling = async {
            loop {
                engine.learning.learn_all().await?;
                let leased =
                    JobQuery { status: Some(JobStatus::Leased), limit: u32::MAX, ..JobQuery::default() };
                let leased = engine.jobs.list(&self.user, &leased).await?;
                // A job `reply` only waits for a client's reply.
                if leased.iter().all(|job| job.kind == "reply") {
                    return Ok(());
                }
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
        };
        // Another process may hold a job until its lease expires, so the wait is limited.
        tokio::time::timeout(SETTLE, settling).await.unwrap_or(Ok(()))
    }

    /// Finishes the due learning jobs and stops learning, for all handles. The store stays open.
    pub async fn stop(&self) -> Result<()> {
        let worker = self.shared.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            worker.stop(self.shared.patience).await;
            // An unfinished job stays in the store, and the next process that opens the store continues it.
            if let Ok(learned) =
                tokio::time::timeout(self.shared.patience, self.engine().learning.learn_all()).await
            {
                learned?;
            }
        }
        self.engine().requests.flush().await
    }

    /// Finishes the due learning jobs, writes the waiting rows and closes the store, for all handles. Their calls fail
    /// afterwards.
    pub async fn close(self) -> Result<()> {
        let stopped = self.stop().await;
        self.engine().store().close().await.and(stopped)
    }
}
