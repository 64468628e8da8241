//! A turn: one message as it was said. Its content never changes; only whether recall may see it does.

mod metadata;
mod notes;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::{SessionId, TurnId};
use crate::names::{Named, unknown};

pub use metadata::Metadata;
pub use notes::{Follows, Owner, TurnNotes, Usage};

/// Who said a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Role>)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Instructions to the model.
    System,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// The name clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Role {
    const WHAT: &'static str = "role";
}

/// Why recall does not see something that is still stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<HiddenReason>)]
pub enum HiddenReason {
    /// The model failed: the turn records the failure.
    Error,
    /// A later edit or regeneration took another branch.
    Abandoned,
    /// It made room for newer entries.
    Evicted,
    /// A client deleted it; it can be restored until it is forgotten.
    Deleted,
}

impl HiddenReason {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for HiddenReason {
    const WHAT: &'static str = "reason";
}

/// Why and since when recall does not see something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Why.
    pub reason: HiddenReason,
    /// Since when.
    pub at: Timestamp,
}

/// One message as it was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The session it belongs to.
    pub session: SessionId,
    /// Its place in the session, from 0 and without gaps.
    pub seq: u64,
    /// Who said it.
    pub role: Role,
    /// The speaker's name, if the client gave one.
    pub name: Option<String>,
    /// What was said.
    pub content: String,
    /// When it was said, as the client says, or else when it was recorded. To the microsecond.
    pub created_at: Timestamp,
    /// The tokens of `content`, by the configured counter.
    pub token_count: u32,
    /// The client's metadata.
    pub metadata: Metadata,
    /// What Strata notes about it.
    pub notes: TurnNotes,
    /// Set while recall must not see it.
    pub hidden: Option<Hidden>,
}

/// A turn that has no place yet: the store numbers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTurn {
    /// Its id.
    pub id: TurnId,
    /// Who said it.
    pub role: Role,
    /// The speaker's name, if the client gave one.
    pub name: Option<String>,
    /// What was said.
    pub content: String,
    /// When it was said.
    pub created_at: Timestamp,
    /// The tokens of `content`.
    pub token_count: u32,
    /// The client's metadata.
    pub metadata: Metadata,
    /// What Strata notes about it.
    pub notes: TurnNotes,
    /// Set when it must not be recalled from the start, as for an error.
    pub hidden: Option<Hidden>,
}

impl NewTurn {
    /// The turn at its place.
    pub fn at(self, session: SessionId, seq: u64) -> Turn {
        let Self { id, role, name, content, created_at, token_count, metadata, notes, hidden } = self;
        Turn { id, session, seq, role, name, content, created_at, token_count, metadata, notes, hidden }
    }
}

/// A message to record.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// Who said it.
    pub role: Role,
    /// The speaker's name, if there is one.
    pub name: Option<String>,
    /// What was said.
    pub content: String,
    /// When it was said; now where the client does not say.
    pub created_at: Option<Timestamp>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// What Strata is told about it, apart from the metadata.
    pub notes: TurnNotes,
    /// Set when it must not be recalled, as for an error.
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
