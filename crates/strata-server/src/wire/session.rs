//! Sessions, their turns, and how much a deletion destroyed.

use std::ops::Not;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_core::lenient_int;
use strata_core::store::{AppendedTurn, Removed};
use strata_core::turn::{self, Follows, Metadata, TurnNotes};
use strata_core::{Session, Turn, UserId};
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Role;

response! {
    /// A session without its turns.
    pub SessionResponse of pub fn(user: &UserId, session: &Session) {
        /// Its name.
        id: String = session.id.to_string(),
        /// Its user.
        user_id: String = user.to_string(),
        /// When it was first written to.
        created_at: Timestamp = session.created_at,
        /// When it was last written to.
        updated_at: Timestamp = session.updated_at,
        /// How many turns it has.
        turn_count: u64 = session.turn_count,
    }
}

/// A user's sessions, the most recently written first.
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

response! {
    /// A turn.
    pub TurnResponse from (turn: Turn) {
        /// Its id.
        id: Uuid = turn.id.0,
        /// Its place in the session, from 0 and without gaps.
        seq: u64 = turn.seq,
        /// The role of the speaker.
        role: Role = turn.role.into(),
        /// The speaker's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        name: Option<String> = turn.name.clone(),
        /// The text.
        content: String = turn.content.clone(),
        /// When it was said.
        created_at: Timestamp = turn.created_at,
        /// The tokens of `content`.
        token_count: u32 = turn.token_count,
        /// The client's metadata, exactly as it was sent.
        #[schema(value_type = Object)]
        metadata: Metadata = turn.metadata.clone(),
        /// The `seq` of the turn that this turn follows; `null` if it begins a conversation. If this field is absent,
        /// the turn follows the visible turn before it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<u64>)]
        follows: Option<Option<u64>> = followed(turn.notes.follows),
        /// Whether the content was cut to the maximum size of a turn.
        #[serde(skip_serializing_if = "Not::not")]
        truncated: bool = turn.notes.truncated,
        #[serde(flatten)]
        notes: NotesResponse = NotesResponse::from(&turn.notes),
        /// The agent that owns the memories learned from this turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        agent_id: Option<String> = turn.notes.owner.agent.clone(),
        /// Why recall does not return it; absent if recall does.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        hidden: Option<&'static str> = turn.hidden.map(|hidden| hidden.reason.as_str()),
    }
}

fn followed(follows: Follows) -> Option<Option<u64>> {
    match follows {
        Follows::Previous => None,
        Follows::Nothing => Some(None),
        Follows::Turn(seq) => Some(Some(seq)),
    }
}

response! {
    /// Notes about a turn that a client can record with it.
    pub NotesResponse from (notes: TurnNotes) {
        /// Whether the reply was interrupted.
        #[serde(skip_serializing_if = "Not::not")]
        interrupted: bool = notes.interrupted,
        /// The tool calls that a reply asks for, each with `id`, `name` and `arguments`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(value_type = Vec<Object>)]
        tool_calls: Vec<Value> = notes.tool_calls.clone(),
        /// The id of the tool call that this result answers.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        tool_call_id: Option<String> = notes.tool_call_id.clone(),
        /// Whether the tool call failed, if the client reported it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        failed: Option<bool> = notes.failed,
        /// The tokens that the model reported for a reply.
        #[serde(skip_serializing_if = "Usage::is_unknown")]
        usage: Usage = notes.usage.into(),
        /// Whether the turn is embedded even if embedding costs money.
        #[serde(skip_serializing_if = "Not::not")]
        high_value: bool = notes.high_value,
    }
}

/// The tokens of a reply, as OpenAI or Anthropic name them; other fields are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Usage {
    /// The tokens of the prompt, also called `input_tokens`.
    #[serde(default, alias = "input_tokens", deserialize_with = "lenient_int::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4_294_967_295_u32)]
    prompt_tokens: Option<u32>,
    /// The tokens of the reply, also called `output_tokens`.
    #[serde(default, alias = "output_tokens", deserialize_with = "lenient_int::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Present if more turns follow: the `after` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_after: Option<u64>,
}

impl TurnsResponse {
    /// At most `limit` of these turns. One turn more tells that others follow.
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

response! {
    /// A recorded turn.
    pub RecordedTurn from (turn: AppendedTurn) {
        /// Its id.
        id: Uuid = turn.id.0,
        /// Its place in the session, from 0 and without gaps.
        seq: u64 = turn.seq,
    }
}

impl From<&[AppendedTurn]> for RecordResponse {
    fn from(turns: &[AppendedTurn]) -> Self {
        Self { turns: turns.iter().map(RecordedTurn::from).collect() }
    }
}

response! {
    /// The destroyed data.
    pub RemovedResponse from (removed: Removed) {
        /// The counts.
        removed: RemovedCounts = removed.into(),
    }
}

response! {
    /// The number of destroyed items.
    pub(crate) RemovedCounts from (removed: Removed) {
        /// Sessions.
        sessions: u64 = removed.sessions,
        /// Turns.
        turns: u64 = removed.turns,
        /// Memories, former statements included.
        memories: u64 = removed.memories,
        /// Summaries.
        summaries: u64 = removed.summaries,
    }
}
