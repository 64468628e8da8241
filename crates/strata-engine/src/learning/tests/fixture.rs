//! The fixture of learning: the fixture of recall with a scripted model.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;

pub(super) use crate::recall::tests::fixture::{World, moment, session};
use crate::{Engine, Settings};
use strata_core::error::{Error, Result};
use strata_core::id::TurnId;
use strata_core::job::Job;
use strata_core::memory::Memory;
use strata_core::ports::{ChatAnswer, ChatModel, ChatRequest, Spent};
use strata_core::store::{JobQuery, MemoryQuery, MemorySelect, Store, TurnQuery};
use strata_core::turn::{NewMessage, Owner, Role, Turn, TurnNotes};

/// The reaction of a scripted model to a request.
pub(super) enum Answer {
    /// It answers this.
    Says(String),
    /// It cannot be reached now.
    Unreachable,
    /// It refuses, and a retry would not help.
    Refuses,
    /// Another action runs before it answers.
    Meanwhile(Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>, String),
}

/// A model that plays a script and records its requests. After the end of the script it cannot be reached.
#[derive(Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    pub(super) asked: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    pub(super) fn new(answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into()), asked: Mutex::default() })
    }

    pub(super) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The data of a request, after the instructions.
    pub(super) fn data(&self, call: usize) -> String {
        self.asked.lock().unwrap()[call].messages[1].content.clone()
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        let text = match answer {
            Some(Answer::Says(text)) => text,
            Some(Answer::Refuses) => return Err(Error::invalid("the key is wrong")),
            Some(Answer::Unreachable) | None => {
                return Err(Error::unavailable("the model did not answer in time").retryable());
            }
            Some(Answer::Meanwhile(happens, text)) => {
                happens().await;
                text
            }
        };
        Ok(ChatAnswer { text, spent: Spent { calls: 1, input_tokens: 100, output_tokens: 10 } })
    }
}

/// The notes of a message whose memories belong to an agent.
pub(super) fn for_agent(agent: &str) -> TurnNotes {
    let owner = Owner { agent: Some(agent.to_owned()), ..Owner::default() };
    TurnNotes { owner, ..TurnNotes::default() }
}

pub(super) fn says(text: impl Into<String>) -> Answer {
    Answer::Says(text.into())
}

/// An answer with these statements, each with the number of its message.
pub(super) fn states(statements: &[(&str, u32)]) -> Answer {
    let list: Vec<_> =
        statements.iter().map(|(content, message)| json!({"content": content, "message": message})).collect();
    says(json!({ "statements": list }).to_string())
}

/// An answer that gives each number an event in turn, with `by` after a space.
pub(super) fn decides(events: &[&str]) -> Answer {
    let list: Vec<_> = events
        .iter()
        .zip(1..)
        .map(|(event, id)| {
            let (event, by) = event.split_once(' ').unwrap_or((event, "null"));
            json!({"id": id, "event": event, "by": serde_json::from_str::<serde_json::Value>(by).unwrap()})
        })
        .collect();
    says(json!({ "memories": list }).to_string())
}

/// A world without a delay.
pub(super) fn world() -> World {
    world_with(|_| ())
}

pub(super) fn world_with(change: impl FnOnce(&mut Settings)) -> World {
    World::with(|settings| {
        settings.learn.delay_secs = Some(0);
        // Summaries have tests and scripts of their own.
        settings.learn.summaries.enable_summarization = false;
        change(settings);
    })
}

/// An engine over the same store that learns with a model.
pub(super) fn with_model(world: &World, answers: Vec<Answer>) -> (Engine, Arc<Scripted>) {
    let model = Scripted::new(answers);
    (world.engine.clone().with_chat_model(Arc::clone(&model) as Arc<dyn ChatModel>), model)
}

/// Records a text and learns from it with a model that gives these answers.
pub(super) async fn learn(world: &World, text: &str, answers: Vec<Answer>) -> (TurnId, Arc<Scripted>) {
    let turn = world.say("s", text).await;
    let (engine, model) = with_model(world, answers);
    engine.learning.learn_all().await.unwrap();
    (turn, model)
}

/// Records an assistant's reply.
pub(super) async fn reply(world: &World, to: &str, text: &str) {
    let message = NewMessage::new(Role::Assistant, text);
    world.engine.recording.record(&world.user, &session(to), vec![message], None).await.unwrap();
}

pub(super) async fn jobs(world: &World) -> Vec<Job> {
    let query = JobQuery { limit: 1_000, ..JobQuery::default() };
    world.store.jobs(&world.user, &query).await.unwrap()
}

pub(super) async fn jobs_of(world: &World, kind: &str) -> Vec<Job> {
    jobs(world).await.into_iter().filter(|job| job.kind == kind).collect()
}

pub(super) async fn memories(world: &World, select: MemorySelect) -> Vec<Memory> {
    world.store.memories(&world.user, &MemoryQuery::new(select)).await.unwrap()
}

/// The current memories, sorted.
pub(super) async fn believed(world: &World) -> Vec<String> {
    believed_at(world, None).await
}

/// The memories that were current at a time, sorted.
pub(super) async fn believed_at(world: &World, as_of: Option<&str>) -> Vec<String> {
    let select = MemorySelect::Current { as_of: as_of.map(moment) };
    let mut found: Vec<String> =
        memories(world, select).await.into_iter().map(|memory| memory.content).collect();
    found.sort();
    found
}

/// The memory with this content, in any state.
pub(super) async fn saying(world: &World, content: &str) -> Memory {
    let all = memories(world, MemorySelect::All).await;
    let mut found = all.into_iter().filter(|memory| memory.content == content);
    let memory = found.next().unwrap_or_else(|| panic!("nothing says «{content}»"));
    assert!(found.next().is_none(), "«{content}» is stored twice");
    memory
}

pub(super) async fn turns(world: &World, of: &str) -> Vec<Turn> {
    let query = TurnQuery::Range { session: session(of), after: None, limit: u32::MAX };
    world.store.turns(&world.user, &query).await.unwrap()
}
