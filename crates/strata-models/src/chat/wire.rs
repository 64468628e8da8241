//! The bodies of OpenAI's protocol: requests, and the fields of answers that Strata reads.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strata_core::ports::{ChatMessage, ChatRequest};

use super::dialect::{Dialect, Shape};

/// A request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

impl<'a> Body<'a> {
    pub(super) fn new(model: &'a str, request: &'a ChatRequest, dialect: Dialect) -> Self {
        let message = |one: &'a ChatMessage| Message { role: one.role.as_str(), content: &one.content };
        let format = request.schema.as_ref().and_then(|wanted| match dialect.shape {
            Shape::Schema => Some(json!({
                "type": "json_schema",
                "json_schema": { "name": wanted.name, "schema": wanted.schema, "strict": true },
            })),
            Shape::Object => Some(json!({ "type": "json_object" })),
            Shape::Prompt => None,
        });
        let (old_limit, new_limit) =
            if dialect.new_limit { (None, request.max_tokens) } else { (request.max_tokens, None) };
        Self {
            model,
            messages: request.messages.iter().map(message).collect(),
            stream: false,
            stream_options: None,
            temperature: (!dialect.own_temperature).then_some(0.0),
            max_tokens: old_limit,
            max_completion_tokens: new_limit,
            response_format: format,
        }
    }

    /// Asks for a streamed answer. Streams serve conversations, so the server chooses the temperature.
    pub(super) fn streamed(self, dialect: Dialect) -> Self {
        let stream_options = (!dialect.plain_stream).then(|| json!({ "include_usage": true }));
        Self { stream: true, stream_options, temperature: None, ..self }
    }
}

/// An answer.
#[derive(Deserialize)]
pub(super) struct Completion {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Usage>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) message: ReplyMessage,
    pub(super) finish_reason: Option<String>,
}

impl Choice {
    /// Whether the answer ends at the token limit.
    pub(super) fn is_cut(&self) -> bool {
        self.finish_reason.as_deref() == Some("length")
    }
}

/// A piece of a streamed answer.
#[derive(Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<ChunkChoice>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct ChunkChoice {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: Option<ReplyMessage>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReplyMessage {
    content: Option<Content>,
    refusal: Option<String>,
}

/// A text, or on some servers a list of parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
}

impl Part {
    /// Whether the part holds the model's thoughts, not its answer.
    fn is_thought(&self) -> bool {
        ["reasoning", "thinking", "thought"].iter().any(|kind| self.kind.contains(kind))
    }
}

impl ReplyMessage {
    /// The text of the message. If the model refuses, this is its refusal; callers must expect prose in any case.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                parts.iter().filter(|part| !part.is_thought()).map(|part| part.text.as_str()).collect()
            }
            None => self.refusal.clone().unwrap_or_default(),
        }
    }
}

/// The tokens of a call.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}
