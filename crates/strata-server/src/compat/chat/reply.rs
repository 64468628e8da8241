//! The model's reply, assembled from the bytes that pass: one JSON document, or the pieces of a stream.
//!
//! Reading is lenient: parts that are not understood are not recorded, and never cause a failure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use strata_core::Role;
use strata_core::sse::EventReader;
use strata_core::turn::{NewMessage, Usage};

use super::ChatApi;

/// The most bytes of a reply that are kept for recording.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// The part of a reply that has arrived.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    content: String,
    refusal: String,
    /// The id under which the provider stores the reply.
    id: Option<String>,
    /// The part of the reply that the last text belongs to.
    part: Option<u64>,
    /// The number of runs of text that have ended.
    runs: u64,
    /// The tool calls that arrive in pieces, by their index.
    calls: BTreeMap<u64, PartialCall>,
    /// The tool calls that arrived whole.
    whole_calls: Vec<Value>,
    /// The other choices, by their index.
    others: BTreeSet<u64>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Usage,
    error: Option<String>,
    is_done: bool,
    work: Option<BackgroundWork>,
}

/// Whether the provider still works on a reply in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackgroundWork {
    GoesOn,
    Ended,
}

/// A tool call of which pieces have arrived.
#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

impl Reply {
    /// The next text.
    pub(crate) fn say(&mut self, text: &str) {
        push(&mut self.content, text);
    }

    /// The next text of a part. Each part is on a line of its own.
    pub(crate) fn say_in(&mut self, part: u64, text: &str) {
        if self.part.is_some_and(|last| last != part) && !self.content.is_empty() {
            self.say("\n");
        }
        self.part = Some(part);
        self.say(text);
    }

    /// The next text of a run of blocks that are one text.
    pub(crate) fn say_run(&mut self, text: &str) {
        self.say_in(self.runs, text);
    }

    /// A run of text blocks ends.
    pub(crate) fn break_run(&mut self) {
        self.runs += 1;
    }

    pub(crate) fn refuse(&mut self, text: &str) {
        push(&mut self.refusal, text);
    }

    /// The next piece of a tool call.
    pub(crate) fn call_piece(&mut self, index: u64, id: &str, name: &str, arguments: &str) {
        let call = self.calls.entry(index).or_default();
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        push(&mut call.name, name);
        push(&mut call.arguments, arguments);
    }

    /// A tool call, as [`super::tool_call`] writes it.
    pub(crate) fn whole_call(&mut self, call: Value) {
        self.whole_calls.push(call);
    }

    /// More arguments of a tool call that has begun.
    pub(crate) fn more_arguments(&mut self, index: u64, arguments: &str) {
        if let Some(call) = self.calls.get_mut(&index) {
            push(&mut call.arguments, arguments);
        }
    }

    /// There is another choice, which is not kept.
    pub(crate) fn another(&mut self, index: u64) {
        self.others.insert(index);
    }

    pub(crate) fn finish(&mut self, reason: Option<&str>) {
        if let Some(reason) = reason {
            self.finish_reason = Some(reason.to_owned());
        }
    }

    /// The provider stores the reply under this id.
    pub(crate) fn stored_as(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| self.id.as_deref() != Some(*id)) {
            self.id = Some(id.to_owned());
        }
    }

    /// The id under which the provider stores the reply.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn answered_by(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
    }

    /// The tokens that the provider counted, under the names that the API has for them.
    pub(crate) fn spent(&mut self, usage: &Value, input: &str, output: &str) {
        let tokens = |name: &str| Some(u32::try_from(usage.get(name)?.as_u64()?).unwrap_or(u32::MAX));
        self.usage.input = tokens(input).or(self.usage.input);
        self.usage.output = tokens(output).or(self.usage.output);
    }

    /// The model failed.
    pub(crate) fn fail(&mut self, error: &Value) {
        if !error.is_null() {
            self.error = Some(message_of(error));
        }
    }

    /// The model has announced the end: nothing important comes after.
    pub(crate) fn end(&mut self) {
        self.is_done = true;
        self.stop_working();
    }

    /// The provider works on the reply in the background: the client fetches it later.
    pub(crate) fn work_on(&mut self) {
        self.work = Some(BackgroundWork::GoesOn);
    }

    /// The provider no longer works on the reply.
    pub(crate) fn stop_working(&mut self) {
        self.work = Some(BackgroundWork::Ended);
    }

    /// The id under which the client will fetch the reply.
    pub(crate) fn fetched_later_as(&self) -> Option<&str> {
        self.id().filter(|_| self.work == Some(BackgroundWork::GoesOn))
    }

    /// Whether nothing more can come, even if the reply is fetched again.
    pub(crate) fn is_final(&self) -> bool {
        self.work == Some(BackgroundWork::Ended)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the reply is complete, in any form in which servers announce that.
    pub(crate) fn is_complete(&self) -> bool {
        self.error.is_none() && (self.is_done || self.finish_reason.is_some())
    }

    /// Whether anything of a reply was read.
    pub(crate) fn says_something(&self) -> bool {
        let is_silent = self.content.is_empty() && self.refusal.is_empty();
        !(is_silent && self.calls.is_empty() && self.whole_calls.is_empty())
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
            true => self.calls.into_values().map(PartialCall::into_json).collect(),
            false => self.whole_calls,
        };
        message.notes.usage = self.usage;
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

impl PartialCall {
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

/// How the pieces of a stream are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document on each line.
    Lines,
}

impl Framing {
    /// The framing of an answer by its `Content-Type`; `None` if it is one document.
    pub(crate) fn of(content_type: Option<&str>) -> Option<Self> {
        let kind = content_type?.trim_start().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            return Some(Self::Events);
        }
        let is_lines = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
        is_lines.iter().any(|lines| kind.starts_with(lines)).then_some(Self::Lines)
    }
}

/// Reads a stream while it passes.
pub(crate) struct StreamReader {
    api: &'static dyn ChatApi,
    framing: Framing,
    events: EventReader,
    /// The current, unfinished line.
    line: Vec<u8>,
    pub(crate) reply: Reply,
}

impl StreamReader {
    pub(crate) fn new(api: &'static dyn ChatApi, framing: Framing) -> Self {
        Self { api, framing, events: EventReader::default(), line: Vec::new(), reply: Reply::default() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let (api, reply) = (self.api, &mut self.reply);
        match self.framing {
            Framing::Events => self.events.feed(bytes, &mut |data| read(api, data, reply)),
            Framing::Lines => {
                for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                    if self.line.len() + piece.len() <= MAX_REPLY_BYTES {
                        self.line.extend_from_slice(piece);
                    }
                    if piece.ends_with(b"\n") {
                        read(api, &self.line, reply);
                        self.line.clear();
                    }
                }
            }
        }
    }

    pub(crate) fn finish(&mut self) {
        let (api, reply) = (self.api, &mut self.reply);
        self.events.finish(&mut |data| read(api, data, reply));
        if !self.line.is_empty() {
            read(api, &self.line, reply);
            self.line.clear();
        }
    }
}

fn read(api: &dyn ChatApi, data: &[u8], reply: &mut Reply) {
    if data.trim_ascii() == b"[DONE]" {
        reply.end();
    } else if let Ok(event) = serde_json::from_slice::<Value>(data) {
        api.read_event(&event, reply);
    }
}

/// A whole answer. Some servers send a stream under the name of a document.
pub(crate) fn document(api: &'static dyn ChatApi, bytes: &[u8]) -> Reply {
    if let Ok(document) = serde_json::from_slice::<Value>(bytes) {
        let mut reply = Reply::default();
        api.read_document(&document, &mut reply);
        return reply;
    }
    let begins = |with: &[u8]| bytes.trim_ascii_start().starts_with(with);
    let is_events = [b"data:".as_slice(), b"event:", b": "].into_iter().any(begins);
    let mut stream = StreamReader::new(api, if is_events { Framing::Events } else { Framing::Lines });
    stream.feed(bytes);
    stream.finish();
    stream.reply
}

/// A failure of the upstream, in the form that is recorded.
pub(crate) fn failure(status: Option<u16>, body: &[u8], fallback: &str) -> NewMessage {
    let said = serde_json::from_slice::<Value>(body).ok();
    let said =
        said.map(|said| message_of(said.get("error").filter(|error| !error.is_null()).unwrap_or(&said)));
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

/// Appends as much of a text as is kept.
fn push(text: &mut String, more: &str) {
    let room = MAX_REPLY_BYTES.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}
