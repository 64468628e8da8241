//! An engine with a clock that moves on with every read, and with a scripted model.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::learn::LearnSettings;
use crate::{Engine, Learned, Settings};
use strata_core::error::{Error, Result};
use strata_core::ports::EstimatedTokens;
use strata_core::ports::{ChatAnswer, ChatModel, ChatRequest, Clock, IdSource, Spent};
use strata_core::store::conformance::fixture::{ann, at, session};
use strata_core::store::{InMemoryStore, Store};
use strata_core::summary::Summary;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

/// A clock that moves on by a millisecond with every read.
#[derive(Default)]
pub(crate) struct Ticking(AtomicI64);

impl Ticking {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let millis = self.0.fetch_add(1, Ordering::Relaxed);
        at(0) + jiff::SignedDuration::from_millis(millis)
    }
}

#[derive(Default)]
struct Counter(AtomicU64);

impl IdSource for Counter {
    fn next(&self) -> Uuid {
        Uuid::from_u64_pair(7, self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The reaction of a scripted model to a request.
pub(crate) enum Reply {
    /// It answers.
    Says(String),
    /// It fails.
    Fails(Error),
    /// It never answers.
    Hangs,
    /// A round is recorded before it answers.
    AfterRound(String),
}

/// A model that plays a script and records its requests.
#[derive(Default)]
pub(crate) struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<String>>,
    engine: Mutex<Option<Engine>>,
}

impl Scripted {
    pub(crate) fn will(&self, reply: Reply) {
        self.replies.lock().unwrap().push_back(reply);
    }

    pub(crate) fn says(&self, text: &str) {
        self.will(Reply::Says(text.to_owned()));
    }

    /// Drops the rest of the script.
    pub(crate) fn say_no_more(&self) {
        self.replies.lock().unwrap().clear();
    }

    /// The requests so far, each as its messages in order. The list of requests is then empty.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        // Extraction has tests of its own, so here it finds nothing.
        if request.schema.as_ref().is_some_and(|schema| schema.name != "summary") {
            return Ok(ChatAnswer { text: r#"{"statements": []}"#.to_owned(), spent: Spent::default() });
        }
        let messages: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
        self.asked.lock().unwrap().push(messages.join("\n---\n"));
        let spent = Spent { calls: 1, input_tokens: 10, output_tokens: 5 };
        let reply = self.replies.lock().unwrap().pop_front();
        match reply {
            Some(Reply::Says(text)) => Ok(ChatAnswer { text, spent }),
            Some(Reply::Fails(error)) => Err(error),
            Some(Reply::Hangs) => std::future::pending().await,
            Some(Reply::AfterRound(text)) => {
                let engine = self.engine.lock().unwrap().clone().unwrap();
                round(&engine).await;
                Ok(ChatAnswer { text, spent })
            }
            None => Err(Error::internal("the script has no further answer")),
        }
    }
}

pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<Scripted>,
    pub(crate) clock: Arc<Ticking>,
}

/// An engine with a scripted model and without delays.
pub(crate) fn with_model(change: impl FnOnce(&mut LearnSettings)) -> Fixture {
    let Fixture { engine, model, clock } = without_model(change);
    let engine = engine.with_chat_model(Arc::clone(&model) as Arc<dyn ChatModel>);
    *model.engine.lock().unwrap() = Some(engine.clone());
    Fixture { engine, model, clock }
}

/// An engine that learns with the rules.
pub(crate) fn without_model(change: impl FnOnce(&mut LearnSettings)) -> Fixture {
    let mut settings = Settings::default();
    settings.learn.delay_secs = Some(0);
    change(&mut settings.learn);
    let clock = Arc::new(Ticking::default());
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let ids = Arc::new(Counter::default());
    let engine =
        Engine::new(store, Arc::clone(&clock) as Arc<dyn Clock>, ids, Arc::new(EstimatedTokens), settings);
    Fixture { engine, model: Arc::default(), clock }
}

pub(crate) async fn say(engine: &Engine, role: Role, content: &str) {
    engine.recording.record(&ann(), &session("s"), vec![NewMessage::new(role, content)], None).await.unwrap();
}

/// Records the next round: a question and an answer that name their turns.
pub(crate) async fn round(engine: &Engine) {
    let seq =
        engine.store().session(&ann(), &session("s")).await.unwrap().map_or(0, |session| session.turn_count);
    say(engine, Role::User, &format!("Is turn {seq} a question?")).await;
    say(engine, Role::Assistant, &format!("Turn {} answers it.", seq + 1)).await;
}

/// Works until no `summarise` job is due. Jobs of other kinds are done in between.
pub(crate) async fn summarise(engine: &Engine) -> Vec<Learned> {
    let learned = engine.learning.learn_all().await.unwrap();
    learned.into_iter().filter(|learned| learned.kind == "summarise").collect()
}

/// The session's summaries of a strategy, oldest first.
pub(crate) async fn rows(engine: &Engine, strategy: &str) -> Vec<Summary> {
    let mut rows = engine.summaries.list(&ann(), &session("s"), 1_000).await.unwrap();
    rows.retain(|row| row.strategy.as_str() == strategy);
    rows.sort_by_key(|row| row.created_at);
    rows
}

/// An answer that holds only a summary.
pub(crate) fn answer(summary: &str) -> String {
    serde_json::json!({
        "summary": summary, "facts": [], "preferences": [], "decisions": [], "todos": [], "entities": []
    })
    .to_string()
}
