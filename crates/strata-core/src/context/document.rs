//! The document: its fields, their order, and how unknown fields pass through it.

use std::collections::BTreeMap;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::hash::in_process;
use crate::lenient_int;
use crate::state::{Task, TokenUsage, ToolStats};

/// A session's working context.
///
/// Fields that this version does not know survive a load and a save at every level. A field that is missing or `null`
/// reads as its empty value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct ContextData {
    /// The session of the document.
    pub session_id: String,
    /// The program's own settings for the session.
    pub system_state: Map<String, Value>,
    /// The known facts.
    pub facts: Vec<String>,
    /// The latest messages, oldest first.
    pub recent_history: Vec<HistoryEntry>,
    /// A summary of the messages before.
    pub long_term_summary: String,
    /// The current tasks.
    pub active_tasks: Vec<Task>,
    /// The number of calls per tool.
    pub tool_stats: ToolStats,
    /// The environment when it was last seen.
    pub last_known_environment: Environment,
    /// Input and output tokens.
    pub token_usage: TokenUsage,
    /// Fields of a later version or of the client's own.
    pub extra: Map<String, Value>,
    unknown: UnknownFields,
}

impl ContextData {
    /// The empty context of a session.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self { session_id: session_id.into(), ..Self::default() }
    }

    /// The document as people read it: indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// A digest of the document: the same content has the same digest. It makes an `ETag`.
    pub fn fingerprint(&self) -> u64 {
        in_process(&serde_json::to_string(self).unwrap_or_default())
    }

    /// The tokens of the history. For an entry without a count they are estimated from its characters.
    pub(crate) fn history_tokens(&self) -> usize {
        self.recent_history.iter().map(HistoryEntry::tokens).fold(0, usize::saturating_add)
    }

    /// The unknown fields of an entry.
    pub(super) fn unknown_fields(&self, entry: &HistoryEntry) -> Map<String, Value> {
        let fields = self.unknown.0.get(&entry.key()).and_then(|fields| fields.first());
        fields.cloned().unwrap_or_default()
    }
}

/// One message of the history.
///
/// It has only the four fields that programs write. Other fields of an entry are kept beside the list, under the
/// entry's moment, role and content, and a save writes them back into the entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    /// Seconds since the epoch.
    pub timestamp: i64,
    /// `user`, `assistant`, `system`, `tool`, or the client's own word.
    pub role: String,
    /// The text of the message.
    pub content: String,
    /// The number of its tokens, if it was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_count: Option<usize>,
}

impl HistoryEntry {
    /// The number of its tokens as counted, or else estimated: one token per four characters of Latin text, or per
    /// character of any other script. Multilingual vocabularies hold about one token per Chinese character.
    pub fn tokens(&self) -> usize {
        self.token_count.unwrap_or_else(|| estimate(&self.content))
    }

    fn key(&self) -> u64 {
        in_process(&(self.timestamp, &self.role, &self.content))
    }
}

fn estimate(text: &str) -> usize {
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    let quarters: usize = text.chars().map(|c| if c < '\u{250}' { 1 } else { 4 }).sum();
    quarters.div_ceil(4)
}

/// The environment of a program when it was last seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The working directory.
    #[serde(deserialize_with = "null_as_default")]
    pub workspace: String,
    /// Seconds since the epoch.
    #[serde(deserialize_with = "lenient_int::number_or_null")]
    pub last_update: i64,
    /// The measured values.
    pub system_snapshot: Value,
    /// Fields of the client's own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            workspace: String::new(),
            last_update: 0,
            system_snapshot: Value::Object(Map::new()),
            extra: Map::new(),
        }
    }
}

/// The unknown fields of history entries, under the entry's key. Entries with the same key take their fields in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct UnknownFields(BTreeMap<u64, Vec<Map<String, Value>>>);

/// The document as it is serialised.
#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default, deserialize_with = "null_as_default")]
    session_id: String,
    #[serde(default, deserialize_with = "null_as_default")]
    system_state: Map<String, Value>,
    #[serde(default, deserialize_with = "null_as_default")]
    facts: Vec<String>,
    #[serde(default)]
    recent_history: WireHistory,
    #[serde(default, deserialize_with = "null_as_default")]
    long_term_summary: String,
    #[serde(default, deserialize_with = "null_as_default")]
    active_tasks: Vec<Task>,
    #[serde(default, deserialize_with = "null_as_default")]
    tool_stats: ToolStats,
    #[serde(default, deserialize_with = "null_as_default")]
    last_known_environment: Environment,
    #[serde(default, deserialize_with = "null_as_default")]
    token_usage: TokenUsage,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// The history with the unknown fields of its entries.
#[derive(Default)]
struct WireHistory {
    entries: Vec<HistoryEntry>,
    unknown: UnknownFields,
}

#[derive(Deserialize)]
#[serde(expecting = "an entry of the history, an object")]
struct EntryRead {
    #[serde(default, deserialize_with = "lenient_int::number_or_null")]
    timestamp: i64,
    #[serde(default, deserialize_with = "null_as_default")]
    role: String,
    #[serde(default, deserialize_with = "null_as_default")]
    content: String,
    #[serde(default, deserialize_with = "lenient_int::optional")]
    token_count: Option<usize>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Serialize)]
struct EntryWritten<'a> {
    #[serde(flatten)]
    entry: &'a HistoryEntry,
    #[serde(flatten)]
    unknown: &'a Map<String, Value>,
}

impl<'de> Deserialize<'de> for WireHistory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read: Vec<EntryRead> = null_as_default(deserializer)?;
        let mut history = Self { entries: Vec::with_capacity(read.len()), ..Self::default() };
        for EntryRead { timestamp, role, content, token_count, unknown } in read {
            let entry = HistoryEntry { timestamp, role, content, token_count };
            if !unknown.is_empty() {
                history.unknown.0.entry(entry.key()).or_default().push(unknown);
            }
            history.entries.push(entry);
        }
        Ok(history)
    }
}

impl Serialize for WireHistory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.unknown.0.is_empty() {
            return self.entries.serialize(serializer);
        }
        let mut list = serializer.serialize_seq(Some(self.entries.len()))?;
        let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
        for entry in &self.entries {
            let key = entry.key();
            let taken = taken.entry(key).or_default();
            match self.unknown.0.get(&key).and_then(|fields| fields.get(*taken)) {
                Some(unknown) => list.serialize_element(&EntryWritten { entry, unknown })?,
                None => list.serialize_element(entry)?,
            }
            *taken += 1;
        }
        list.end()
    }
}

impl From<Wire> for ContextData {
    fn from(wire: Wire) -> Self {
        Self {
            session_id: wire.session_id,
            system_state: wire.system_state,
            facts: wire.facts,
            recent_history: wire.recent_history.entries,
            long_term_summary: wire.long_term_summary,
            active_tasks: wire.active_tasks,
            tool_stats: wire.tool_stats,
            last_known_environment: wire.last_known_environment,
            token_usage: wire.token_usage,
            extra: wire.extra,
            unknown: wire.recent_history.unknown,
        }
    }
}

impl From<ContextData> for Wire {
    fn from(context: ContextData) -> Self {
        Self {
            session_id: context.session_id,
            system_state: context.system_state,
            facts: context.facts,
            recent_history: WireHistory { entries: context.recent_history, unknown: context.unknown },
            long_term_summary: context.long_term_summary,
            active_tasks: context.active_tasks,
            tool_stats: context.tool_stats,
            last_known_environment: context.last_known_environment,
            token_usage: context.token_usage,
            extra: context.extra,
        }
    }
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
