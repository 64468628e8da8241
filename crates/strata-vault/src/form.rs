//! Items as files: which key of the front matter holds what, as the memory-proxy design names them, and the keys beyond it.
//!
//! Reading fills what a foreign file leaves out: the design's own files have neither validity nor confidence, and a person's may
//! have no front matter at all.

mod read;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strata_core::memory::MemoryNotes;
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::summary::{Strategy, Summary};
use strata_core::turn::{Hidden, Metadata, TurnNotes};
use strata_core::{Memory, SessionId, Turn};
use uuid::Uuid;

use super::front::{Document, Field, text};
use super::layout::GLOBAL;

pub(crate) use read::{Given, ReadItem, derived, read, timestamp, uuid_of};

/// The answer to a keyed write, noted on the first item that the write has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keyed {
    /// The client's key.
    pub(crate) key: String,
    /// The digest of the request.
    pub(crate) fingerprint: u64,
    /// The turns that the write has appended, this one included.
    pub(crate) turns: usize,
}

/// The parts of a turn's file beyond the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TurnExtra {
    /// The time at which it was recorded, if it is another one than that at which it was said.
    pub(crate) recorded_at: Option<Timestamp>,
    /// The key of the write.
    pub(crate) keyed: Option<Keyed>,
}

/// A session's file: all that its turns do not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionFile {
    /// The session's name.
    pub(crate) session: SessionId,
    /// The time of its first write.
    pub(crate) created_at: Timestamp,
    /// The time of its last write when the file was written.
    pub(crate) updated_at: Timestamp,
    /// How far the session's own spaces have been worked through, by their purpose.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub(crate) progress: std::collections::BTreeMap<String, u64>,
    /// The state.
    #[serde(default)]
    pub(crate) state: State,
}

impl SessionFile {
    pub(crate) fn new(session: Session, progress: std::collections::BTreeMap<String, u64>) -> Self {
        let Session { id, created_at, updated_at, state, .. } = session;
        Self { session: id, created_at, updated_at, progress, state }
    }
}

/// A turn's file.
pub(crate) fn turn(turn: &Turn, extra: &TurnExtra, on: &Document) -> String {
    let mut fields = head(on, turn.id.0, turn.role.as_str(), turn.session.as_str(), turn.created_at);
    // A file keeps these two, which the turn does not have.
    if let Some(at) = extra.recorded_at.filter(|at| *at != turn.created_at) {
        fields.push(("recorded_at", Some(time(at))));
    }
    fields.extend(extra.keyed.as_ref().and_then(idempotency));
    fields.push(("seq", Some(turn.seq.to_string())));
    fields.push(("name", turn.name.as_deref().map(text)));
    fields.push(("token_count", Some(turn.token_count.to_string())));
    fields.push(("metadata", metadata(&turn.metadata)));
    fields.push(("notes", noted(&turn.notes, &TurnNotes::default())));
    fields.extend(hidden(turn.hidden));
    on.with(&fields, &turn.content)
}

/// A memory's file.
pub(crate) fn memory(memory: &Memory, keyed: Option<&Keyed>, on: &Document) -> String {
    let conversation = memory.session.as_ref().map_or(GLOBAL, SessionId::as_str);
    let mut fields = head(on, memory.id.0, "memory", conversation, memory.recorded_at);
    fields.push(("replaced_by", memory.replaced_by.map(|id| id.to_string())));
    // A session may have the name that stands for all of them.
    let bound = memory.session.as_ref().is_some_and(|session| session.as_str() == GLOBAL);
    fields.push(("scope", bound.then(|| "session".to_owned())));
    fields.push(("kind", Some(memory.kind.as_str().to_owned())));
    fields.push(("confidence", Some(memory.confidence.to_string())));
    fields.push(("valid_from", Some(time(memory.valid_from))));
    fields.push(("valid_to", memory.valid_to.map(time)));
    fields.push(("agent", memory.agent.as_deref().map(text)));
    let sources: Vec<String> = memory.source_turns.iter().map(ToString::to_string).collect();
    fields.push(("sources", (!sources.is_empty()).then(|| format!("[{}]", sources.join(", ")))));
    fields.push(("source_summary", memory.source_summary.map(|id| id.to_string())));
    fields.push(("metadata", metadata(&memory.metadata)));
    fields.push(("notes", noted(&memory.notes, &MemoryNotes::default())));
    fields.extend(hidden(memory.hidden));
    fields.extend(keyed.and_then(idempotency));
    on.with(&fields, &memory.content)
}

/// A summary's file.
pub(crate) fn summary(summary: &Summary, on: &Document) -> String {
    let mut fields = head(on, summary.id.0, "summary", summary.session.as_str(), summary.created_at);
    let kind = match summary.strategy {
        Strategy::Tree => format!("L{}", summary.level),
        other => other.as_str().to_owned(),
    };
    fields.push(("summary_kind", Some(text(&kind))));
    fields.push(("strategy", Some(summary.strategy.as_str().to_owned())));
    fields.push(("level", Some(summary.level.to_string())));
    fields.push(("start_seq", Some(summary.start_seq.to_string())));
    fields.push(("end_seq", Some(summary.end_seq.to_string())));
    fields.push(("base_id", summary.base_id.map(|id| id.to_string())));
    fields.push(("status", Some(summary.status.as_str().to_owned())));
    fields.push(("structured", summary.structured.as_ref().map(|value| text(&value.to_string()))));
    fields.push(("input_tokens", Some(summary.input_tokens.to_string())));
    fields.push(("output_tokens", Some(summary.output_tokens.to_string())));
    fields.push(("generation_ms", summary.generation_ms.map(|ms| ms.to_string())));
    fields.push(("updated_at", Some(time(summary.updated_at))));
    on.with(&fields, &summary.text)
}

/// The keys that every file has, in the design's order. A file keeps its own spelling of its id and time.
fn head(on: &Document, id: Uuid, role: &str, conversation: &str, created_at: Timestamp) -> Vec<Field> {
    let own_id = own(on, "id").filter(|own| read::uuid_of(own) == id);
    let own_time = own(on, "created_at").filter(|own| timestamp(own) == Some(created_at));
    vec![
        ("id", Some(own_id.map_or_else(|| id.to_string(), text))),
        ("role", Some(role.to_owned())),
        ("conversation_id", Some(text(conversation))),
        ("created_at", Some(own_time.map_or_else(|| time(created_at), text))),
    ]
}

fn own<'a>(on: &'a Document, key: &str) -> Option<&'a str> {
    on.fields.get(key)?.as_str()
}

fn idempotency(keyed: &Keyed) -> Option<Field> {
    Some(("idempotency", Some(text(&serde_json::to_string(keyed).ok()?))))
}

fn time(at: Timestamp) -> String {
    text(&at.to_string())
}

fn hidden(hidden: Option<Hidden>) -> [Field; 2] {
    [
        ("hidden", hidden.map(|hidden| hidden.reason.as_str().to_owned())),
        ("hidden_at", hidden.map(|hidden| time(hidden.at))),
    ]
}

fn metadata(metadata: &Metadata) -> Option<String> {
    (!metadata.is_empty()).then(|| text(metadata.as_text()))
}

fn noted<T: Serialize + PartialEq>(notes: &T, none: &T) -> Option<String> {
    (notes != none).then(|| serde_json::to_string(notes).ok()).flatten().map(|notes| text(&notes))
}
