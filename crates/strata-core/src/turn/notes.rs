//! Strata's own notes about a turn, apart from the client's metadata.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Metadata;

/// The predecessor of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follows {
    /// The last visible turn before it.
    #[default]
    Previous,
    /// None: it begins a conversation.
    Nothing,
    /// The turn at this `seq`.
    Turn(u64),
}

/// The tokens that a model reports for a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The tokens of the prompt.
    pub input: Option<u32>,
    /// The tokens of the reply.
    pub output: Option<u32>,
}

/// The owner and the metadata of the memories that are learned from a turn. They are stored with the turn, so that
/// learning gives the same result now and after a crash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The agent that the memories are for.
    pub agent: Option<String>,
    /// Whether the memories are bound to the session of the turn, regardless of the settings.
    pub in_session: bool,
    /// Whether the session stands behind a wall, so that nothing that is said in it changes a memory of another session.
    /// Such memories are bound to the session.
    #[serde(default)]
    pub apart: bool,
    /// The client's metadata for each memory.
    pub metadata: Metadata,
}

/// Strata's own notes about a turn. No field is ever read from a client's metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnNotes {
    /// The predecessor of the turn.
    pub follows: Follows,
    /// Whether the reply broke off.
    pub interrupted: bool,
    /// Whether its content was cut to the maximum size of a turn.
    pub truncated: bool,
    /// The tool calls of a reply, each an object with an `id`.
    pub tool_calls: Vec<Value>,
    /// The call that a tool result answers.
    pub tool_call_id: Option<String>,
    /// Whether a tool call failed; `None` if only the content can tell.
    pub failed: Option<bool>,
    /// The tokens that the model reports for a reply.
    pub usage: Usage,
    /// Whether the turn is embedded even if embedding costs money.
    pub high_value: bool,
    /// The owner of the memories that are learned from it.
    pub owner: Owner,
}
