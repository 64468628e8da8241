//! The ports of the core beside the store: time, ids, tokens and models.

mod reader;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{Error, Result};

pub use reader::{
    CaseRole, PairReading, Reader, Relation, SentenceInContext, SentencePair, SentenceReading, Speaker,
    TurnInContext, Voice, best,
};

/// The time. Tests pass a fixed clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, to the microsecond.
    fn now(&self) -> Timestamp;
}

/// Waits. The core has no async runtime of its own.
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns after the given duration. Dropping the future cancels the wait without side effects.
    async fn rest(&self, time: Duration);
}

/// Fresh ids, ordered by time. Tests pass a counter.
pub trait IdSource: Send + Sync + 'static {
    /// A UUID that was never returned before.
    fn next(&self) -> Uuid;
}

/// Counts tokens as the model does.
pub trait TokenCounter: Send + Sync + 'static {
    /// The number of tokens of `text`.
    fn count(&self, text: &str) -> u32;
}

/// A token counter without a vocabulary: it estimates the number of tokens from the characters, rounded up.
///
/// A quarter of a token per Latin character is OpenAI's own rule of thumb. Vocabularies of multilingual models hold
/// about one token per Chinese or Japanese character, and one token per two characters of other scripts.
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

/// Han, kana and hangul, with their punctuation and the full-width forms.
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

/// The text of an item that is embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The text said just before it in the same session, for encoders that read a turn in its context.
    pub context: Option<String>,
    /// The item itself, as `speaker: text` if a speaker is known.
    pub text: String,
}

/// The place where an embedder runs. It decides which items are worth embedding: the evolution plan never pays for all
/// turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderCost {
    /// In this process.
    Local,
    /// At a remote endpoint, for money.
    Remote,
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// The model's name. Vectors of another name belong to another space.
    fn model(&self) -> &str;

    /// The place where it runs.
    fn cost(&self) -> EmbedderCost;

    /// Embeds passages: one vector per passage, all of one dimension, in the given order.
    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>>;

    /// Embeds a question into the same space.
    async fn embed_question(&self, question: &str) -> Result<Vec<f32>>;
}

/// Judges how well turns and memories answer a question.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// The model's name.
    fn model(&self) -> &str;

    /// About how many word pieces of a question and of an item it reads.
    fn reads(&self) -> (usize, usize) {
        (usize::MAX, usize::MAX)
    }

    /// Scores items: one raw score (a logit) per item, in the given order. If the future is dropped, the work ends soon.
    async fn score(&self, question: &str, items: &[TurnInContext]) -> Result<Vec<f32>>;
}

/// One message to a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: crate::turn::Role,
    /// The text of the message.
    pub content: String,
}

/// A request to a chat model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The schema of the answer, if the answer must be JSON. Not every model can be forced to follow it, so the reader
    /// of the answer checks it.
    pub schema: Option<AnswerSchema>,
    /// The maximum number of tokens of the answer; `None` means the model's own limit.
    pub max_tokens: Option<u32>,
}

/// The schema of a JSON answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSchema {
    /// The name of the schema: letters, digits, `_` and `-`.
    pub name: &'static str,
    /// JSON Schema.
    pub schema: serde_json::Value,
}

/// A chat model's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatAnswer {
    /// The text of the answer.
    pub text: String,
    /// The cost of the answer.
    pub spent: Spent,
}

/// The use of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Spent {
    /// Requests that reached the model, retries included.
    pub calls: u32,
    /// Input tokens, as the model counts them, or else as Strata does.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// A chat model.
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// The model's name.
    fn model(&self) -> &str;

    /// Answers a request. The model retries transient failures itself; the error says whether a later call may succeed.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer>;

    /// Like [`ChatModel::complete`], but passes each piece of the text to `on_text` as it comes. The pieces together are
    /// the text of the answer. After the first piece nothing is retried: an error then means that the answer broke off.
    /// A model that cannot stream passes the whole text at the end.
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
