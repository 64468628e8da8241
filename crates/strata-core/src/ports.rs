//! What the core needs from outside beside the store: time, ids, tokens and models.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{Error, Result};

/// The time. Tests hand in a fixed one.
pub trait Clock: Send + Sync + 'static {
    /// Now, to the microsecond.
    fn now(&self) -> Timestamp;
}

/// Waits. The core has no runtime of its own.
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns when so much time has passed. Dropped before, nothing is left behind.
    async fn rest(&self, time: Duration);
}

/// Fresh ids, ordered by time. Tests hand in a counter.
pub trait IdSource: Send + Sync + 'static {
    /// A UUID that was never given before.
    fn next(&self) -> Uuid;
}

/// Counts tokens as the model would.
pub trait TokenCounter: Send + Sync + 'static {
    /// The tokens of `text`.
    fn count(&self, text: &str) -> u32;
}

/// A token counter without a vocabulary: it estimates tokens from characters, rounded up.
///
/// A quarter of a token for a Latin character is OpenAI's own rule of thumb. Vocabularies of multilingual models hold
/// about one token for a Chinese or Japanese character, and one for two characters of other scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EstimatedTokens;

impl TokenCounter for EstimatedTokens {
    fn count(&self, text: &str) -> u32 {
        let quarters = |character: char| match character {
            '\0'..='\u{24f}' => 1,
            c if is_cjk(c) => 4,
            _ => 2,
        };
        let quarters: usize = text.chars().map(quarters).sum();
        u32::try_from(quarters.div_ceil(4)).unwrap_or(u32::MAX)
    }
}

/// Han, kana and hangul, with the punctuation and the full-width forms that go with them.
fn is_cjk(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{11ff}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7ff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe4f}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// What is embedded of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// What was said just before it in the same session, for encoders that read a turn in its context.
    pub context: Option<String>,
    /// The item itself, as `speaker: text` where a speaker is known.
    pub text: String,
}

/// Where an embedder runs, which decides what is worth embedding: document 3 never pays for all turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderCost {
    /// In this process.
    Local,
    /// At somebody's endpoint, for money.
    Remote,
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// The model's name; another name is another space.
    fn model(&self) -> &str;

    /// Where it runs.
    fn cost(&self) -> EmbedderCost;

    /// One vector a passage, all of one dimension, in the order given.
    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>>;

    /// The vector of a question, in the same space.
    async fn embed_question(&self, question: &str) -> Result<Vec<f32>>;
}

/// Judges how well texts answer a question.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// The model's name.
    fn model(&self) -> &str;

    /// One raw score (a logit) a text, in the order given.
    async fn score(&self, question: &str, texts: &[String]) -> Result<Vec<f32>>;
}

/// One message to a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: crate::turn::Role,
    /// What it says.
    pub content: String,
}

/// What a chat model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The shape of the answer, where it has to be JSON. A model that cannot be held to it is asked in words alone, so the
    /// answer is checked by who reads it.
    pub schema: Option<AnswerSchema>,
    /// The most tokens of the answer; the model's own limit where nobody says.
    pub max_tokens: Option<u32>,
}

/// The shape of a JSON answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: &'static str,
    /// JSON Schema.
    pub schema: serde_json::Value,
}

/// A chat model's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatAnswer {
    /// What it says.
    pub text: String,
    /// What it cost.
    pub spent: Spent,
}

/// What was spent on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Spent {
    /// Requests that reached the model, those that were tried again included.
    pub calls: u32,
    /// Tokens that went in, as the model counts them or else as Strata does.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// The model's name.
    fn model(&self) -> &str;

    /// The answer to a request. What may succeed later was tried again inside; the error says whether it still may.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer>;

    /// As [`ChatModel::complete`], handing over each piece of the text as it comes; the pieces together are the answer's
    /// text. Once a piece was handed over nothing is tried again: an error then says that the answer broke off. A model
    /// that cannot do this hands the whole text over at the end.
    async fn stream(
        &self,
        request: &ChatRequest,
        on_text: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ChatAnswer> {
        let answer = self.complete(request).await?;
        on_text(&answer.text);
        Ok(answer)
    }
}

/// How long a piece of work keeps a processor busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A few milliseconds at most, and a request waits for it.
    Short,
    /// Up to seconds. Only some of the processors may be given to such work, so that short work always finds one.
    Long,
}

/// Runs work that keeps a processor busy away from the threads that serve requests.
#[async_trait]
pub trait Compute: Send + Sync + 'static {
    /// Runs `work` to its end and returns then. If the caller goes away, the work may still run.
    async fn run(&self, load: Load, work: Box<dyn FnOnce() + Send>);
}

/// Runs work on the caller's thread: for tests and for programs without threads to spare.
#[derive(Debug, Clone, Copy, Default)]
pub struct InlineCompute;

#[async_trait]
impl Compute for InlineCompute {
    async fn run(&self, _load: Load, work: Box<dyn FnOnce() + Send>) {
        work();
    }
}

/// The result of `work`, run through `compute`.
pub async fn compute<T: Send + 'static>(
    compute: &dyn Compute,
    load: Load,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let slot = Arc::new(Mutex::new(None));
    let place = Arc::clone(&slot);
    let run = move || *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(work());
    compute.run(load, Box::new(run)).await;
    let result = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.ok_or_else(|| Error::internal("a computation ended without a result"))
}
