//! The model's reply, assembled from the bytes that pass: one JSON document, or the deltas of a stream.
//!
//! Reading is lenient: parts that are not understood are not recorded, and never cause a failure. Only the first
//! choice is kept; the others are counted.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use strata_core::Role;
use strata_core::sse::EventReader;
use strata_core::turn::{NewMessage, Usage};

use super::request::compact_calls;

/// The most bytes of a reply that are kept for recording.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// The part of a reply that has arrived.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    content: String,
    refusal: String,
    /// The tool calls, by their index.
    calls: BTreeMap<u64, Call>,
    whole_calls: Vec<Value>,
    /// The other choices, by their index.
    others: BTreeMap<u64, ()>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Option<Value>,
    error: Option<String>,
    is_done: bool,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// A completion, or a chunk of one.
#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Value>,
    #[serde(default)]
    function_call: Option<Value>,
}

impl Reply {
    /// Reads a whole completion.
    pub(crate) fn read_document(&mut self, bytes: &[u8]) {
        let Ok(completion) = serde_json::from_slice::<Completion>(bytes) else { return };
        for choice in completion.choices.iter().filter(|choice| choice.index == 0) {
            let message = choice.delta.as_ref();
            let calls =
                message.and_then(|message| message.tool_calls.as_ref().or(message.function_call.as_ref()));
            self.whole_calls = calls.map(compact_calls).unwrap_or_default();
        }
        self.is_done = !completion.choices.is_empty();
        self.take(completion, Deltas::Whole);
    }

    /// Reads the data of one event.
    pub(crate) fn read_event(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.is_done = true;
        } else if let Ok(chunk) = serde_json::from_slice::<Completion>(data) {
            self.take(chunk, Deltas::Pieces);
        }
    }

    fn take(&mut self, completion: Completion, deltas: Deltas) {
        let Completion { model, choices, usage, error } = completion;
        self.model = model.or(self.model.take());
        self.usage = usage.filter(|usage| !usage.is_null()).or(self.usage.take());
        if let Some(error) = error.filter(|error| !error.is_null()) {
            self.error = Some(message_of(&error));
        }
        for Choice { index, delta, finish_reason } in choices {
            if index != 0 {
                self.others.insert(index, ());
                continue;
            }
            self.finish_reason = finish_reason.or(self.finish_reason.take());
            let Some(Delta { content, refusal, tool_calls, function_call }) = delta else { continue };
            if let Some(content) = content {
                self.say(&content);
            }
            if let Some(refusal) = refusal {
                push(&mut self.refusal, &refusal);
            }
            if deltas == Deltas::Pieces {
                self.take_calls(tool_calls.as_ref().or(function_call.as_ref()));
            }
        }
    }

    fn say(&mut self, content: &Value) {
        match content {
            Value::String(text) => push(&mut self.content, text),
            Value::Array(parts) => {
                for part in parts {
                    if let Some(text) = part.get("text").and_then(Value::as_str) {
                        push(&mut self.content, text);
                    }
                }
            }
            _ => {}
        }
    }

    fn take_calls(&mut self, calls: Option<&Value>) {
        let calls = match calls {
            Some(Value::Array(calls)) => calls.as_slice(),
            Some(call) => std::slice::from_ref(call),
            None => return,
        };
        for call in calls {
            let index = call.get("index").and_then(Value::as_u64).unwrap_or(0);
            let function = call.get("function").unwrap_or(call);
            let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            let known = self.calls.entry(index).or_default();
            if let Some(id) = text(call, "id").filter(|id| !id.is_empty()) {
                known.id = id;
            }
            push(&mut known.name, &text(function, "name").unwrap_or_default());
            push(&mut known.arguments, &text(function, "arguments").unwrap_or_default());
        }
    }

    /// Whether the model has announced the end: nothing important comes after.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the reply is complete, in any form in which servers announce that.
    pub(crate) fn is_complete(&self) -> bool {
        self.error.is_none() && (self.is_done || self.finish_reason.is_some())
    }

    /// The error in the middle of a stream.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The reply in the form that is recorded.
    pub(crate) fn into_message(self) -> NewMessage {
        let content = if self.content.is_empty() { self.refusal.clone() } else { self.content };
        let mut message = NewMessage::new(Role::Assistant, content);
        message.notes.tool_calls = match self.whole_calls.is_empty() {
            true => self.calls.into_values().map(Call::into_json).collect(),
            false => self.whole_calls,
        };
        message.notes.usage = self.usage.and_then(|usage| spent(&usage)).unwrap_or_default();
        let told = [
            ("refusal", (!self.refusal.is_empty()).then(|| true.into())),
            ("choices", (!self.others.is_empty()).then(|| (self.others.len() + 1).into())),
            ("finish_reason", self.finish_reason.map(Value::from)),
            ("model", self.model.map(Value::from)),
        ];
        let told = told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        message.metadata = told.collect();
        message
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deltas {
    Whole,
    Pieces,
}

impl Call {
    fn into_json(self) -> Value {
        let mut call = Map::new();
        for (name, value) in [("id", self.id), ("name", self.name), ("arguments", self.arguments)] {
            if !value.is_empty() {
                call.insert(name.to_owned(), value.into());
            }
        }
        Value::Object(call)
    }
}

/// Reads a stream while it passes.
#[derive(Debug, Default)]
pub(crate) struct StreamReader {
    events: EventReader,
    pub(crate) reply: Reply,
}

impl StreamReader {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let reply = &mut self.reply;
        self.events.feed(bytes, &mut |data| reply.read_event(data));
    }

    pub(crate) fn finish(&mut self) {
        let reply = &mut self.reply;
        self.events.finish(&mut |data| reply.read_event(data));
    }
}

/// A failure of the upstream, in the form that is recorded.
pub(crate) fn failure(status: Option<u16>, body: &[u8], fallback: &str) -> NewMessage {
    let said = serde_json::from_slice::<Value>(body).ok();
    let said = said.map(|said| message_of(said.get("error").unwrap_or(&said)));
    let reason = said.filter(|said| !said.is_empty()).unwrap_or_else(|| fallback.to_owned());
    let reason: String = reason.chars().take(1_000).collect();
    let content = match status {
        Some(status) => format!("The model failed with status {status}: {reason}"),
        None => format!("The model failed: {reason}"),
    };
    let mut message = NewMessage::new(Role::Assistant, content);
    message.metadata.insert("error", json!({ "status": status, "message": reason }));
    message
}

fn message_of(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let text = ["message", "detail", "code"].iter().find_map(|name| fields.get(*name)?.as_str());
            text.map(str::to_owned).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// The two figures of `usage` that Strata counts.
fn spent(usage: &Value) -> Option<Usage> {
    let tokens = |name: &str| Some(u32::try_from(usage.get(name)?.as_u64()?).unwrap_or(u32::MAX));
    Some(Usage { input: Some(tokens("prompt_tokens")?), output: Some(tokens("completion_tokens")?) })
}

fn push(text: &mut String, more: &str) {
    if text.len() + more.len() <= MAX_REPLY_BYTES {
        text.push_str(more);
    }
}

#[cfg(test)]
mod tests;
