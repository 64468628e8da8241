//! The shapes that `--json` prints: the names are those of the HTTP API, and where the whole is the same, so is the type.

mod job;
mod learning;

use std::ops::Not;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use strata_core::memory::TodoState;
use strata_core::scope::Scope;
use strata_core::store::{Item, Removed};
use strata_core::summary::SummaryStats;
use strata_core::turn::{Follows, Metadata, TurnNotes, Usage};
use strata_core::{Memory, Session, SessionId, Turn, UserId};
use strata_engine::SummaryReport;
use strata_engine::prompt::{Cut, Layer, Prompt};
use strata_engine::recall::{Recalled, RecalledItem};
use strata_import::ImportReport;
use strata_server::wire::{SummaryResponse, TraceResponse};
use uuid::Uuid;

pub(crate) use job::JobJson;
pub(crate) use learning::{HistoryJson, InferredJson};

/// A session without its turns.
#[derive(Debug, Serialize)]
pub(crate) struct SessionJson<'a> {
    id: &'a SessionId,
    user_id: &'a UserId,
    created_at: Timestamp,
    updated_at: Timestamp,
    turn_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summaries: Option<Vec<SummaryResponse>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<&'a SummaryStats>,
}

impl<'a> SessionJson<'a> {
    pub(crate) fn new(user: &'a UserId, session: &'a Session) -> Self {
        let Session { id, created_at, updated_at, turn_count, .. } = session;
        Self {
            id,
            user_id: user,
            created_at: *created_at,
            updated_at: *updated_at,
            turn_count: *turn_count,
            turns: None,
            summaries: None,
            stats: None,
        }
    }

    pub(crate) fn with_summaries(mut self, report: &'a SummaryReport) -> Self {
        self.summaries = Some(report.versions.iter().cloned().map(SummaryResponse::from).collect());
        self.stats = Some(&report.stats);
        self
    }

    pub(crate) fn with_turns(mut self, turns: &'a [Turn]) -> Self {
        self.turns = Some(turns.iter().map(TurnJson::new).collect());
        self
    }
}

/// A turn.
#[derive(Debug, Serialize)]
pub(crate) struct TurnJson<'a> {
    id: Uuid,
    seq: u64,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: &'a str,
    created_at: Timestamp,
    token_count: u32,
    metadata: &'a Metadata,
    /// The `seq` of the turn that it follows, `null` where it begins a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(flatten)]
    notes: NotesJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<&'static str>,
}

/// What is noted about a turn and can be recorded with it.
#[derive(Debug, Serialize)]
pub(crate) struct NotesJson<'a> {
    #[serde(skip_serializing_if = "Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "UsageJson::is_unknown")]
    usage: UsageJson,
    #[serde(skip_serializing_if = "Not::not")]
    high_value: bool,
}

impl<'a> NotesJson<'a> {
    pub(crate) fn new(notes: &'a TurnNotes) -> Self {
        Self {
            interrupted: notes.interrupted,
            tool_calls: &notes.tool_calls,
            tool_call_id: notes.tool_call_id.as_deref(),
            failed: notes.failed,
            usage: UsageJson { prompt_tokens: notes.usage.input, completion_tokens: notes.usage.output },
            high_value: notes.high_value,
        }
    }
}

/// The tokens that a model reports for a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageJson {
    #[serde(alias = "input_tokens", skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u32>,
    #[serde(alias = "output_tokens", skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<u32>,
}

impl UsageJson {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl From<UsageJson> for Usage {
    fn from(usage: UsageJson) -> Self {
        Self { input: usage.prompt_tokens, output: usage.completion_tokens }
    }
}

impl<'a> TurnJson<'a> {
    pub(crate) fn new(turn: &'a Turn) -> Self {
        Self {
            id: turn.id.0,
            seq: turn.seq,
            role: turn.role.as_str(),
            name: turn.name.as_deref(),
            content: &turn.content,
            created_at: turn.created_at,
            token_count: turn.token_count,
            metadata: &turn.metadata,
            follows: match turn.notes.follows {
                Follows::Previous => None,
                Follows::Nothing => Some(None),
                Follows::Turn(seq) => Some(Some(seq)),
            },
            truncated: turn.notes.truncated,
            agent_id: turn.notes.owner.agent.as_deref(),
            notes: NotesJson::new(&turn.notes),
            hidden: turn.hidden.map(|hidden| hidden.reason.as_str()),
        }
    }
}

/// A prompt, and how it came to its size.
#[derive(Debug, Serialize)]
pub(crate) struct PromptJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageJson<'a>>>,
    tokens: u32,
    layers: &'a [Layer],
    cut: &'a [Cut],
}

#[derive(Debug, Serialize)]
struct MessageJson<'a> {
    role: &'static str,
    content: &'a str,
}

impl<'a> PromptJson<'a> {
    pub(crate) fn new(prompt: &'a Prompt) -> Self {
        let messages = prompt.messages().map(|messages| {
            let messages = messages.iter();
            messages
                .map(|message| MessageJson { role: message.role.as_str(), content: &message.content })
                .collect()
        });
        let Prompt { tokens, layers, cut, .. } = prompt;
        Self { prompt: prompt.text(), messages, tokens: *tokens, layers, cut }
    }
}

/// What an import did.
#[derive(Debug, Serialize)]
pub(crate) struct ImportJson<'a> {
    conversations: u64,
    messages: u64,
    turns_added: u64,
    turns_present: u64,
    summaries_added: u64,
    states_added: u64,
    skipped: u64,
    problems: &'a [String],
}

impl<'a> ImportJson<'a> {
    pub(crate) fn new(report: &'a ImportReport) -> Self {
        Self {
            conversations: report.conversations,
            messages: report.messages,
            turns_added: report.turns_added,
            turns_present: report.turns_present,
            summaries_added: report.summaries_added,
            states_added: report.states_added,
            skipped: report.skipped,
            problems: &report.problems,
        }
    }
}

/// A memory. `run_id` is its session, as mem0's clients call it.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryJson<'a> {
    id: Uuid,
    memory: &'a str,
    user_id: Option<&'a UserId>,
    agent_id: Option<&'a str>,
    run_id: Option<&'a SessionId>,
    scope: Scope,
    kind: &'static str,
    #[serde(serialize_with = "shortest")]
    confidence: f32,
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<&'static str>,
    created_at: Timestamp,
    updated_at: Timestamp,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    replaced_by: Option<Uuid>,
    hidden: Option<&'static str>,
    source: SourceJson<'a>,
}

impl<'a> MemoryJson<'a> {
    pub(crate) fn new(user: &'a UserId, memory: &'a Memory) -> Self {
        let is_global = *user == UserId::global();
        Self {
            id: memory.id.0,
            memory: &memory.content,
            user_id: (!is_global).then_some(user),
            agent_id: memory.agent.as_deref(),
            run_id: memory.session.as_ref(),
            scope: match &memory.session {
                Some(_) => Scope::Session,
                None if is_global => Scope::Global,
                None => Scope::User,
            },
            kind: memory.kind.as_str(),
            confidence: memory.confidence,
            metadata: &memory.metadata,
            todo: memory.notes.todo.map(TodoState::as_str),
            created_at: memory.first_recorded_at(),
            updated_at: memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            replaced_by: memory.replaced_by.map(|id| id.0),
            hidden: memory.hidden.map(|hidden| hidden.reason.as_str()),
            source: SourceJson::of_memory(memory),
        }
    }
}

/// Writes the shortest number that reads back as the same `f32`, also where it passes through a [`serde_json::Value`], which
/// knows only `f64`.
fn shortest<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(number.to_string().parse().unwrap_or_else(|_| f64::from(*number)))
}

/// The turns that say so.
#[derive(Debug, Serialize)]
struct SourceJson<'a> {
    turns: Vec<SourceTurnJson<'a>>,
}

#[derive(Debug, Serialize)]
struct SourceTurnJson<'a> {
    id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl<'a> SourceJson<'a> {
    fn of_turn(turn: &'a Turn) -> Self {
        let place = SourceTurnJson { id: turn.id.0, session_id: Some(&turn.session), seq: Some(turn.seq) };
        Self { turns: vec![place] }
    }

    fn of_memory(memory: &Memory) -> Self {
        let turns = memory.source_turns.iter();
        Self { turns: turns.map(|id| SourceTurnJson { id: id.0, session_id: None, seq: None }).collect() }
    }
}

/// What a search found.
#[derive(Debug, Serialize)]
pub(crate) struct RecalledJson<'a> {
    results: Vec<ResultJson<'a>>,
    request_id: Uuid,
    retrieval_path: &'static str,
    scope: Scope,
    expansion: Option<&'a str>,
    tokens: u32,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceResponse>,
}

#[derive(Debug, Serialize)]
struct ResultJson<'a> {
    id: Uuid,
    memory: &'a str,
    truncated: bool,
    #[serde(serialize_with = "shortest")]
    score: f32,
    #[serde(serialize_with = "shortest")]
    relevance: f32,
    kind: &'static str,
    created_at: Timestamp,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    session_id: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    source: SourceJson<'a>,
}

impl<'a> RecalledJson<'a> {
    pub(crate) fn new(recalled: &'a Recalled) -> Self {
        Self {
            results: recalled.items.iter().map(ResultJson::new).collect(),
            request_id: recalled.request_id.0,
            retrieval_path: recalled.path.as_str(),
            scope: recalled.scope,
            expansion: recalled.expansion.as_deref(),
            tokens: recalled.tokens,
            truncated: recalled.truncated,
            trace: recalled.trace.clone().map(TraceResponse::from),
        }
    }
}

impl<'a> ResultJson<'a> {
    fn new(found: &'a RecalledItem) -> Self {
        let item = &found.item;
        let (valid_from, valid_to, role, source) = match item {
            Item::Turn(turn) => (turn.created_at, None, Some(turn.role.as_str()), SourceJson::of_turn(turn)),
            Item::Memory(memory) => (memory.valid_from, memory.valid_to, None, SourceJson::of_memory(memory)),
            Item::Summary(summary) => (summary.created_at, None, None, SourceJson { turns: Vec::new() }),
        };
        Self {
            id: item.id().uuid(),
            memory: found.shortened.as_deref().unwrap_or_else(|| item.content()),
            truncated: found.shortened.is_some(),
            score: found.score,
            relevance: found.relevance,
            kind: kind_of(item),
            created_at: item.created_at(),
            valid_from,
            valid_to,
            session_id: item.session(),
            role,
            source,
        }
    }
}

/// What an item is called: a memory by its own kind.
pub(crate) fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::Turn(_) => "turn",
        Item::Memory(memory) => memory.kind.as_str(),
        Item::Summary(_) => "summary",
    }
}

/// What was destroyed.
#[derive(Debug, Serialize)]
pub(crate) struct RemovedJson {
    pub(crate) removed: Removed,
}
