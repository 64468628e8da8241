//! The façade for Rust programs: one value that records, recalls, prompts, chats, learns and forgets, on one file.
//!
//! Start reading at [`Memory`]. What is deliberately absent: domain logic, which is the engine's ([`Memory::engine`]), and
//! the environment: what a program does not say here has its default.

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
use strata_engine::{ChatReply, NewMemory, PromptRequest, Recorded, ReplyStatus, Talk};

use crate::config::Config;
use crate::{SystemTimer, Worker, WorkerSettings};

pub use builder::MemoryBuilder;

/// How long [`Memory::settle`] waits for work that another process has taken.
const SETTLE: Duration = Duration::from_secs(10);

/// How long it rests between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A memory on one file, bound to a user and a session. Cheap to clone; handles for others share the file.
///
/// While it is open it learns in the background from what was recorded. [`Memory::close`] finishes that; a memory that is
/// merely dropped loses nothing either, because whoever opens the file next goes on.
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

/// What all handles share.
struct Shared {
    engine: Engine,
    model: Option<Arc<dyn ChatModel>>,
    instructions: Option<String>,
    /// How long work under way may take when the memory is closed.
    patience: Duration,
    worker: Mutex<Option<Worker>>,
}

impl Memory {
    /// Opens a store with all defaults: a path or `sqlite:PATH`, which is made if it does not exist, or `memory:`, which
    /// ends with the process. It has to be called within a Tokio runtime.
    pub async fn open(store: impl Into<String>) -> Result<Self> {
        Self::builder(store).open().await
    }

    /// Says more before the store is opened: user, session, model, embedder, settings.
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

    /// A memory over an engine that somebody has made, for the user and the session `default`. Learning starts.
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

    /// The same memory for another user, in the session `default`. Nothing of one user is ever seen by another.
    pub fn user(&self, user: impl Into<String>) -> Result<Self> {
        let user = UserId::new(user.into())?;
        Ok(Self { shared: Arc::clone(&self.shared), user, session: SessionId::default() })
    }

    /// The same user's memory in another session. Sessions share what is known of the user.
    pub fn session(&self, session: impl Into<String>) -> Result<Self> {
        let session = SessionId::new(session.into())?;
        Ok(Self { shared: Arc::clone(&self.shared), user: self.user.clone(), session })
    }

    /// Whose memory this handle works on.
    pub fn user_id(&self) -> &UserId {
        &self.user
    }

    /// The session it works in.
    pub fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// The use-cases underneath, for everything that has no method here.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Whether a model replies, or memory alone.
    pub fn has_model(&self) -> bool {
        self.shared.model.is_some()
    }

    /// Says something and has a reply: from the model with what memory knows, or where there is no model from memory alone
    /// ([`ReplyStatus::MemoryAlone`]). Both sides are recorded. A model that fails is no error: the reply says so
    /// ([`ReplyStatus::Failed`]), and what was said is recorded all the same.
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

    /// As [`Memory::chat`], handing over the reply piece by piece as it comes.
    pub async fn stream(&self, message: &str, on_text: &mut (dyn FnMut(&str) + Send)) -> Result<ChatReply> {
        self.chat_until(message, on_text, std::future::pending()).await
    }

    /// As [`Memory::stream`], until `stop` completes: then the reply is broken off and recorded as far as it came
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
        let mut heard = 0;
        let mut told = |piece: &str| {
            heard += piece.len();
            on_text(piece);
        };
        let talk = Talk { model, instructions, on_text: &mut told, stop: pin!(stop), timer: &SystemTimer };
        let reply = engine.conversation.chat(&self.user, &self.session, message, talk).await?;
        // What a model that failed did not say itself.
        if let (ReplyStatus::Failed { .. }, Some(rest)) = (&reply.status, reply.text.get(heard..)) {
            on_text(rest);
        }
        Ok(reply)
    }

    /// What answers a question, best first, from all of the user's sessions and memories.
    pub async fn search(&self, query: &str) -> Result<Vec<RecalledItem>> {
        Ok(self.recall(&RecallRequest::new(query)).await?.items)
    }

    /// As [`Memory::search`], with everything that recall can be told, and with what it says about itself.
    pub async fn recall(&self, request: &RecallRequest) -> Result<Recalled> {
        self.engine().recall.ask(&self.user, request).await
    }

    /// Remembers a statement as it is, as a fact of all sessions.
    pub async fn add(&self, statement: &str) -> Result<MemoryItem> {
        self.add_memory(NewMemory::new(statement)).await
    }

    /// Remembers a statement with its kind, session, metadata and validity.
    pub async fn add_memory(&self, memory: NewMemory) -> Result<MemoryItem> {
        let added = self.engine().memories.add(&self.user, vec![memory]).await?.pop();
        added.ok_or_else(|| strata_core::Error::internal("a memory was added and is not there"))
    }

    /// Appends to the session what was said elsewhere. When it returns, the turns are durable; what they state is learned in
    /// the background.
    pub async fn record(&self, messages: impl IntoIterator<Item = NewMessage>) -> Result<Recorded> {
        let messages = messages.into_iter().collect();
        self.engine().recording.record(&self.user, &self.session, messages, None).await
    }

    /// What a model is to be shown for a question, for programs that call their model themselves: one text, or messages.
    pub async fn prompt(&self, question: &str, format: PromptFormat) -> Result<Prompt> {
        let request = PromptRequest { format, ..PromptRequest::new(self.session.clone(), question) };
        Ok(self.engine().prompting.prompt(&self.user, &request).await?.prompt)
    }

    /// What is believed now, newest first, after what was said a moment ago has been learned.
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

    /// Destroys the session: its turns, its summaries, and what only its turns say.
    pub async fn forget_session(&self) -> Result<Removed> {
        self.engine().sessions.delete(&self.user, &self.session).await
    }

    /// Learns what is due now instead of in the background, and returns when nothing of the user's is under way. What waits
    /// for others to share a call of a model is not due yet.
    pub async fn settle(&self) -> Result<()> {
        let engine = self.engine();
        let settling = async {
            loop {
                engine.learning.learn_all().await?;
                let leased =
                    JobQuery { status: Some(JobStatus::Leased), limit: u32::MAX, ..JobQuery::default() };
                let leased = engine.jobs.list(&self.user, &leased).await?;
                // A reply that is awaited is no work.
                if leased.iter().all(|job| job.kind == "reply") {
                    return Ok(());
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        // Another process may hold a job for as long as its lease lasts: it is not waited for.
        tokio::time::timeout(SETTLE, settling).await.unwrap_or(Ok(()))
    }

    /// Stops learning after what is due is learned, and leaves the store open. For all handles.
    pub async fn stop(&self) -> Result<()> {
        let worker = self.shared.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            worker.stop(self.shared.patience).await;
            // What is not done in time stays in the store, and whoever opens it next goes on.
            if let Ok(learned) =
                tokio::time::timeout(self.shared.patience, self.engine().learning.learn_all()).await
            {
                learned?;
            }
        }
        self.engine().requests.flush().await
    }

    /// Learns what is due, writes what waits and closes the store. For all handles: what they are asked then is an error.
    pub async fn close(self) -> Result<()> {
        let stopped = self.stop().await;
        self.engine().store().close().await.and(stopped)
    }
}
