//! A turn: one message as it was said. Its content never changes; only its visibility to recall can change.

mod metadata;
mod notes;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::{SessionId, TurnId};
use crate::names::{Named, unknown};

pub use metadata::Metadata;
pub use notes::{Follows, Owner, TurnNotes, Usage};

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Role>)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Instructions to the model.
    System,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// The name that clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Role {
    const WHAT: &'static str = "role";
}

/// The reason why recall does not see a stored item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<HiddenReason>)]
pub enum HiddenReason {
    /// The model failed: the turn records the failure.
    Error,
    /// A later edit or regeneration replaced this branch of the conversation.
    Abandoned,
    /// It was evicted to make room for newer entries.
    Evicted,
    /// A client deleted it; it can be restored until it is destroyed.
    Deleted,
}

impl HiddenReason {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for HiddenReason {
    const WHAT: &'static str = "reason";
}

/// The reason and the time at which an item was hidden from recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// The reason.
    pub reason: HiddenReason,
    /// The time at which it was hidden.
    pub at: Timestamp,
}

/// One message as it was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The session it belongs to.
    pub session: SessionId,
    /// Its position in the session, from 0 without gaps.
    pub seq: u64,
    /// The author.
    pub role: Role,
    /// The speaker's name, if the client gave one.
    pub name: Option<String>,
    /// The text of the message.
    pub content: String,
    /// The time at which it was said, to the microsecond. It is the client's time, or the time of recording if the
    /// client gives none.
    pub created_at: Timestamp,
    /// The number of tokens of `content`, by the configured counter.
    pub token_count: u32,
    /// The client's metadata.
    pub metadata: Metadata,
    /// Strata's own notes about it.
    pub notes: TurnNotes,
    /// Set while it is hidden from recall.
    pub hidden: Option<Hidden>,
}

impl Turn {
    /// Whether the turn still belongs to its conversation. An evicted turn does: it has left recall to make room, and
    /// it was not taken back.
    pub fn is_in_conversation(&self) -> bool {
        self.hidden.is_none_or(|hidden| hidden.reason == HiddenReason::Evicted)
    }
}

/// A turn without a position: the store numbers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTurn {
    /// Its id.
    pub id: TurnId,
    /// The author.
    pub role: Role,
    /// The speaker's name, if the client gave one.
    pub name: Option<String>,
    /// The text of the message.
    pub content: String,
    /// The time at which it was said.
    pub created_at: Timestamp,
    /// The number of tokens of `content`.
    pub token_count: u32,
    /// The client's metadata.
    pub metadata: Metadata,
    /// Strata's own notes about it.
    pub notes: TurnNotes,
    /// Set if the turn is hidden from recall from the start, as an error is.
    pub hidden: Option<Hidden>,
}

impl NewTurn {
    /// The turn at its position.
    pub fn at(self, session: SessionId, seq: u64) -> Turn {
        let Self { id, role, name, content, created_at, token_count, metadata, notes, hidden } = self;
        Turn { id, session, seq, role, name, content, created_at, token_count, metadata, notes, hidden }
    }
}

/// A message to record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewMessage {
    /// The author.
    pub role: Role,
    /// The speaker's name, if there is one.
    pub name: Option<String>,
    /// The text of the message.
    pub content: String,
    /// The time at which it was said; `None` means now.
    pub created_at: Option<Timestamp>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// Strata's own notes about it, apart from the metadata.
    pub notes: TurnNotes,
    /// Set if the turn is hidden from recall, as an error is.
    pub hidden: Option<Hidden>,
}

impl NewMessage {
    /// A plain message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            content: content.into(),
            created_at: None,
            metadata: Metadata::new(),
            notes: TurnNotes::default(),
            hidden: None,
        }
    }
}
