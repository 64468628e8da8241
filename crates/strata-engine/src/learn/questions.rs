//! The requests for extraction and reconciliation.
//!
//! A user may replace the instructions. The data follow them as JSON lines, so that nothing a user said can end the
//! instructions.

use serde_json::{Value, json};

use super::{LearnSettings, Said, Statement};
use strata_core::memory::{Memory, MemoryKind};
use strata_core::ports::{AnswerSchema, ChatMessage, ChatRequest};
use strata_core::turn::Role;
use strum::VariantArray as _;

/// The built-in instructions for extraction.
pub(crate) const EXTRACT_PROMPT: &str = include_str!("prompts/extract.txt");

/// The built-in instructions for reconciliation.
pub(crate) const RECONCILE_PROMPT: &str = include_str!("prompts/reconcile.txt");

/// The token limit of an answer: a base for the reasoning before it, plus an amount for each message or number. It
/// stops a model that does not come to an end.
const MAX_ANSWER_TOKENS: usize = 2_048;
const MAX_TOKENS_EACH: usize = 256;

/// The most characters of a turn that is shown for its context.
const MAX_CONTEXT_CHARS: usize = 400;

/// The texts around the messages that are read.
#[derive(Debug, Default)]
pub(crate) struct Context<'a> {
    /// The turns before them: who spoke, and what.
    pub(crate) earlier: &'a [(&'static str, &'a str)],
    /// The assistant's reply that each of them answers.
    pub(crate) replies: &'a [Option<String>],
}

/// Asks which statements the user's messages hold.
pub(crate) fn extraction(said: &[Said<'_>], context: &Context<'_>, settings: &LearnSettings) -> ChatRequest {
    let most = settings.max_message_chars.min(MAX_CONTEXT_CHARS);
    let earlier =
        context.earlier.iter().map(|(by, text)| json!({"by": by, "text": shown(text, most)}).to_string());
    let earlier: Vec<String> = earlier.collect();
    let lines = said.iter().enumerate().map(|(place, said)| {
        let mut line = message_line(place + 1, said, settings.max_message_chars);
        if let Some(Some(reply)) = context.replies.get(place) {
            line["answers"] = shown(reply, most).into();
        }
        line.to_string()
    });
    let prompt = settings.extract_prompt.as_deref().unwrap_or(EXTRACT_PROMPT);
    let mut data = format!("Messages:\n{}", lines.collect::<Vec<_>>().join("\n"));
    if !earlier.is_empty() {
        data = format!("Said before, for context alone:\n{}\n\n{data}", earlier.join("\n"));
    }
    request(prompt, data, said.len(), AnswerSchema { name: "statements", schema: statements_schema() })
}

/// Asks what happens to known memories and new statements. Their ids are numbers from 1: copying UUIDs costs tokens and
/// causes mistakes.
pub(crate) fn reconciliation(new: &[&Statement], known: &[&Memory], settings: &LearnSettings) -> ChatRequest {
    let most = settings.max_message_chars;
    let day = |at: jiff::Timestamp| at.strftime("%Y-%m-%d").to_string();
    let memories = known.iter().zip(1..).map(|(memory, id)| {
        let (kind, text) = (memory.kind.as_str(), shown(&memory.content, most));
        json!({"id": id, "kind": kind, "since": day(memory.valid_from), "text": text}).to_string()
    });
    let statements = new.iter().zip(known.len() + 1..).map(|(statement, id)| {
        let (kind, text) = (statement.kind.as_str(), shown(&statement.content, most));
        json!({"id": id, "kind": kind, "text": text}).to_string()
    });
    let prompt = settings.reconcile_prompt.as_deref().unwrap_or(RECONCILE_PROMPT);
    let data = format!(
        "Existing memories:\n{}\n\nNew statements:\n{}",
        memories.collect::<Vec<_>>().join("\n"),
        statements.collect::<Vec<_>>().join("\n")
    );
    let each = known.len() + new.len();
    request(prompt, data, each, AnswerSchema { name: "memories", schema: memories_schema() })
}

/// Asks again, with the model's answer and what is wrong with it.
pub(crate) fn repair(request: &ChatRequest, answer: &str, wrong: &str) -> ChatRequest {
    let mut request = request.clone();
    request.messages.push(ChatMessage { role: Role::Assistant, content: answer.to_owned() });
    let content = format!("This cannot be used: {wrong}. Answer again, with the JSON alone.");
    request.messages.push(ChatMessage { role: Role::User, content });
    request
}

fn request(prompt: &str, data: String, each: usize, schema: AnswerSchema) -> ChatRequest {
    ChatRequest {
        messages: vec![
            ChatMessage { role: Role::System, content: prompt.trim().to_owned() },
            ChatMessage { role: Role::User, content: data },
        ],
        schema: Some(schema),
        max_tokens: u32::try_from(MAX_ANSWER_TOKENS + each * MAX_TOKENS_EACH).ok(),
    }
}

/// The whole text, or its beginning and its end if it is longer than `most` characters.
fn message_line(number: usize, said: &Said<'_>, most: usize) -> Value {
    let mut line = json!({
        "message": number,
        "said_on": said.at.strftime("%Y-%m-%d %A").to_string(),
        "text": shown(said.text, most),
    });
    if let Some(name) = said.name {
        line["name"] = name.into();
    }
    line
}

fn shown(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!("{head} […] {tail}")
}

fn statements_schema() -> Value {
    list_schema(
        "statements",
        json!({
            "content": {"type": "string"},
            "kind": {"type": "string", "enum": MemoryKind::VARIANTS.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()},
            "confidence": {"type": "number"},
            "message": {"type": "integer"},
            "since": {"type": ["string", "null"]},
        }),
    )
}

fn memories_schema() -> Value {
    list_schema(
        "memories",
        json!({
            "id": {"type": "integer"},
            "event": {"type": "string", "enum": ["NONE", "ADD", "UPDATE", "DELETE", "DONE", "DROPPED"]},
            "by": {"type": ["integer", "null"]},
        }),
    )
}

/// The schema of an object that holds a list of objects, in the form that strict servers accept: every property is
/// required, and no other property is allowed.
fn list_schema(name: &str, properties: Value) -> Value {
    let required: Vec<&String> =
        properties.as_object().map(|object| object.keys().collect()).unwrap_or_default();
    let item = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let mut fields = serde_json::Map::new();
    fields.insert(name.to_owned(), json!({"type": "array", "items": item}));
    json!({"type": "object", "properties": fields, "required": [name], "additionalProperties": false})
}

#[cfg(test)]
#[path = "questions/tests.rs"]
mod tests;
