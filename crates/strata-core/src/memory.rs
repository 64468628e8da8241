//! A memory: a derived statement with its confidence, its validity in time and where it came from.
//!
//! Nothing is overwritten. A statement that is no longer true is closed ([`Memory::valid_to`]) and names what replaced it,
//! so that «what did we believe on that day» has an answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::{MemoryId, SessionId, SummaryId, TurnId};
use crate::names::{Named, unknown};
use crate::turn::{Hidden, Metadata};

/// What kind of statement a memory is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<MemoryKind>)]
pub enum MemoryKind {
    /// Something that is so.
    #[default]
    Fact,
    /// Something somebody likes or wants done in a certain way.
    Preference,
    /// Something to be done.
    Todo,
    /// Something that was settled.
    Decision,
}

impl MemoryKind {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for MemoryKind {
    const WHAT: &'static str = "kind";
}

/// How far a todo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<TodoState>)]
pub enum TodoState {
    /// To be done.
    Open,
    /// Done.
    Done,
    /// Not to be done any more.
    Dropped,
}

impl TodoState {
    /// The name clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for TodoState {
    const WHAT: &'static str = "state of a todo";
}

/// What Strata notes about a memory. No field is ever read from a client's metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNotes {
    /// How a todo ended: `done` or `dropped`.
    pub todo: Option<TodoState>,
    /// When somebody brought an evicted memory back: it is not evicted again.
    pub restored_at: Option<Timestamp>,
    /// When the first statement of a revised memory was recorded.
    pub first_recorded_at: Option<Timestamp>,
}

impl MemoryNotes {
    /// These notes, and where one is missing that of `former`.
    #[must_use]
    pub fn or(self, former: Self) -> Self {
        Self {
            todo: self.todo.or(former.todo),
            restored_at: self.restored_at.or(former.restored_at),
            first_recorded_at: self.first_recorded_at.or(former.first_recorded_at),
        }
    }
}

/// A derived statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Its id, which an edit by hand keeps.
    pub id: MemoryId,
    /// The session it is bound to; without one it holds for all of the user's sessions.
    pub session: Option<SessionId>,
    /// The agent that it belongs to, where a client keeps several.
    pub agent: Option<String>,
    /// What kind of statement it is.
    pub kind: MemoryKind,
    /// The statement.
    pub content: String,
    /// How sure Strata is, from 0 to 1.
    pub confidence: f32,
    /// Since when it is so.
    pub valid_from: Timestamp,
    /// Until when it was so; open while it still is.
    pub valid_to: Option<Timestamp>,
    /// When Strata learned it.
    pub recorded_at: Timestamp,
    /// What took its place.
    pub replaced_by: Option<MemoryId>,
    /// The turns that say so.
    pub source_turns: Vec<TurnId>,
    /// The summary that says so.
    pub source_summary: Option<SummaryId>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// What Strata notes about it.
    pub notes: MemoryNotes,
    /// Set while recall must not see it.
    pub hidden: Option<Hidden>,
}

/// The most turns that a memory names as its sources. Further repetitions of a statement are not worth a quotation.
const MAX_SOURCES: usize = 16;

impl Memory {
    /// Adds turns that say the same to a memory's sources, up to a limit, and tells whether that changed anything. A memory
    /// without sources was given by hand: it gets none, because it holds whatever becomes of the turns.
    pub fn confirm(sources: &mut Vec<TurnId>, turns: &[TurnId]) -> bool {
        let before = sources.len();
        for turn in turns {
            if before > 0 && sources.len() < MAX_SOURCES && !sources.contains(turn) {
                sources.push(*turn);
            }
        }
        sources.len() > before
    }

    /// Whether its statement was given by hand in place of another one.
    pub fn is_edited(&self) -> bool {
        self.notes.first_recorded_at.is_some()
    }

    /// When its first statement was recorded, however often it was edited since.
    pub fn first_recorded_at(&self) -> Timestamp {
        self.notes.first_recorded_at.unwrap_or(self.recorded_at)
    }

    /// Whether this was believed at `moment`: known by then, not yet closed, not yet hidden.
    pub fn believed_at(&self, moment: Timestamp) -> bool {
        self.recorded_at <= moment
            && self.valid_to.is_none_or(|end| end > moment)
            && self.hidden.is_none_or(|hidden| hidden.at > moment)
    }

    /// How far a todo is; nothing for other kinds, and for one that was replaced by another.
    pub fn todo(&self) -> Option<TodoState> {
        if self.kind != MemoryKind::Todo {
            return None;
        }
        self.notes.todo.or_else(|| self.valid_to.is_none().then_some(TodoState::Open))
    }

    /// Whether this is believed as far as the store knows.
    pub fn is_current(&self) -> bool {
        self.valid_to.is_none() && self.hidden.is_none()
    }
}
