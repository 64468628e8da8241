//! What Strata itself notes about a turn, apart from the client's metadata.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Metadata;

/// Which turn a turn follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follows {
    /// The visible one before it.
    #[default]
    Previous,
    /// None: it begins a conversation.
    Nothing,
    /// The one at this `seq`.
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

/// To whom the memories belong that are learned from a turn, and what is attached to them. It is stored with the turn,
/// so that learning gives the same result now and after a crash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The agent that the memories are for.
    pub agent: Option<String>,
    /// Whether they are bound to the session of the turn, whatever the settings say.
    pub in_session: bool,
    /// The client's metadata of each memory.
    pub metadata: Metadata,
}

/// What Strata notes about a turn. No field is ever read from a client's metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnNotes {
    /// Which turn it follows.
    pub follows: Follows,
    /// Whether the reply broke off.
    pub interrupted: bool,
    /// Whether its content was cut to the most bytes of a turn.
    pub truncated: bool,
    /// The calls that a reply asks for, each an object with an `id`.
    pub tool_calls: Vec<Value>,
    /// The call that a tool's result answers.
    pub tool_call_id: Option<String>,
    /// Whether a tool's call failed; `None` where only its content can tell.
    pub failed: Option<bool>,
    /// The tokens that the model reports for a reply.
    pub usage: Usage,
    /// Whether the turn is embedded even where embedding costs money.
    pub high_value: bool,
    /// To whom the memories belong that are learned from it.
    pub owner: Owner,
}
