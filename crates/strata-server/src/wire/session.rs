//! Sessions, their turns, and how much a deletion destroyed.

use std::ops::Not;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_core::store::{AppendedTurn, Removed};
use strata_core::turn::{self, Follows, Metadata, TurnNotes};
use strata_core::{Session, Turn, UserId};
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Role;

/// A session without its turns.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionResponse {
    /// Its name.
    id: String,
    /// Its user.
    user_id: String,
    /// When it was first written to.
    created_at: Timestamp,
    /// When it was last written to.
    updated_at: Timestamp,
    /// How many turns it has.
    turn_count: u64,
}

impl SessionResponse {
    /// A session of `user`.
    pub fn new(user: &UserId, session: &Session) -> Self {
        let Session { id, created_at, updated_at, turn_count, .. } = session;
        Self {
            id: id.to_string(),
            user_id: user.to_string(),
            created_at: *created_at,
            updated_at: *updated_at,
            turn_count: *turn_count,
        }
    }
}

/// A user's sessions, the last written to first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionsResponse {
    sessions: Vec<SessionResponse>,
}

impl SessionsResponse {
    /// Sessions of `user`.
    pub fn new(user: &UserId, sessions: &[Session]) -> Self {
        Self { sessions: sessions.iter().map(|session| SessionResponse::new(user, session)).collect() }
    }
}

/// A turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnResponse {
    /// Its id.
    id: Uuid,
    /// Its place in the session, from 0 and without gaps.
    seq: u64,
    /// Who said it.
    role: Role,
    /// The speaker's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// What was said.
    content: String,
    /// When it was said.
    created_at: Timestamp,
    /// The tokens of `content`.
    token_count: u32,
    /// The client's metadata, as it was sent.
    #[schema(value_type = Object)]
    metadata: Metadata,
    /// The `seq` of the turn that it follows, `null` if it begins a conversation. Without it, it follows the visible turn
    /// before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    follows: Option<Option<u64>>,
    /// Whether the content was cut to the most bytes of a turn.
    #[serde(skip_serializing_if = "Not::not")]
    truncated: bool,
    #[serde(flatten)]
    notes: NotesResponse,
    /// The agent to which the memories belong that are learned from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent_id: Option<String>,
    /// Why recall does not see it; absent where recall does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hidden: Option<&'static str>,
}

impl From<&Turn> for TurnResponse {
    fn from(turn: &Turn) -> Self {
        let notes = &turn.notes;
        Self {
            id: turn.id.0,
            seq: turn.seq,
            role: turn.role.into(),
            name: turn.name.clone(),
            content: turn.content.clone(),
            created_at: turn.created_at,
            token_count: turn.token_count,
            metadata: turn.metadata.clone(),
            follows: match notes.follows {
                Follows::Previous => None,
                Follows::Nothing => Some(None),
                Follows::Turn(seq) => Some(Some(seq)),
            },
            truncated: notes.truncated,
            notes: NotesResponse::from(notes),
            agent_id: notes.owner.agent.clone(),
            hidden: turn.hidden.map(|hidden| hidden.reason.as_str()),
        }
    }
}

/// What is noted about a turn and can be recorded with it.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotesResponse {
    /// Whether the reply broke off.
    #[serde(skip_serializing_if = "Not::not")]
    interrupted: bool,
    /// The calls that a reply asks for, each with `id`, `name` and `arguments`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    tool_calls: Vec<Value>,
    /// The call that a tool's result answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_call_id: Option<String>,
    /// Whether a tool's call failed, if the client said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failed: Option<bool>,
    /// The tokens that the model reported for a reply.
    #[serde(skip_serializing_if = "Usage::is_unknown")]
    usage: Usage,
    /// Whether the turn is embedded even where embedding costs money.
    #[serde(skip_serializing_if = "Not::not")]
    high_value: bool,
}

impl From<&TurnNotes> for NotesResponse {
    fn from(notes: &TurnNotes) -> Self {
        Self {
            interrupted: notes.interrupted,
            tool_calls: notes.tool_calls.clone(),
            tool_call_id: notes.tool_call_id.clone(),
            failed: notes.failed,
            usage: notes.usage.into(),
            high_value: notes.high_value,
        }
    }
}

/// The tokens of a reply, as OpenAI or Anthropic name them; other fields are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Usage {
    /// The tokens of the prompt, also called `input_tokens`.
    #[serde(alias = "input_tokens", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4_294_967_295_u32)]
    prompt_tokens: Option<u32>,
    /// The tokens of the reply, also called `output_tokens`.
    #[serde(alias = "output_tokens", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4_294_967_295_u32)]
    completion_tokens: Option<u32>,
}

impl Usage {
    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Usage> for turn::Usage {
    fn from(usage: Usage) -> Self {
        Self { input: usage.prompt_tokens, output: usage.completion_tokens }
    }
}

impl From<turn::Usage> for Usage {
    fn from(usage: turn::Usage) -> Self {
        Self { prompt_tokens: usage.input, completion_tokens: usage.output }
    }
}

/// A part of a session, by `seq`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnsResponse {
    turns: Vec<TurnResponse>,
    /// Set when more turns follow: the `after` that continues here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_after: Option<u64>,
}

impl TurnsResponse {
    /// At most `limit` of these turns; one more than that tells that others follow.
    pub(crate) fn new(turns: &[Turn], limit: usize) -> Self {
        let shown = &turns[..turns.len().min(limit)];
        let next_after = shown.last().filter(|_| turns.len() > limit).map(|turn| turn.seq);
        Self { turns: shown.iter().map(TurnResponse::from).collect(), next_after }
    }
}

/// The turns that are now durable, in the order given.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordResponse {
    turns: Vec<RecordedTurn>,
}

/// A recorded turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordedTurn {
    /// Its id.
    id: Uuid,
    /// Its place in the session, from 0 and without gaps.
    seq: u64,
}

impl From<&AppendedTurn> for RecordedTurn {
    fn from(turn: &AppendedTurn) -> Self {
        Self { id: turn.id.0, seq: turn.seq }
    }
}

impl From<&[AppendedTurn]> for RecordResponse {
    fn from(turns: &[AppendedTurn]) -> Self {
        Self { turns: turns.iter().map(RecordedTurn::from).collect() }
    }
}

/// How much was destroyed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedResponse {
    /// The counts.
    removed: RemovedCounts,
}

/// How much was destroyed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedCounts {
    /// Sessions.
    sessions: u64,
    /// Turns.
    turns: u64,
    /// Memories, former statements included.
    memories: u64,
    /// Summaries.
    summaries: u64,
}

impl From<&Removed> for RemovedCounts {
    fn from(removed: &Removed) -> Self {
        let Removed { sessions, turns, memories, summaries } = *removed;
        Self { sessions, turns, memories, summaries }
    }
}

impl From<&Removed> for RemovedResponse {
    fn from(removed: &Removed) -> Self {
        Self { removed: removed.into() }
    }
}
