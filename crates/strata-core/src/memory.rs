//! A memory: a derived statement with its confidence, its validity in time and its sources.
//!
//! Nothing is overwritten. A statement that is no longer true is closed ([`Memory::valid_to`]) and names its
//! replacement, so that Strata can tell what it believed on any day.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::{MemoryId, SessionId, SummaryId, TurnId};
use crate::names::{Named, unknown};
use crate::turn::{Hidden, Metadata};

/// The kind of a memory's statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<MemoryKind>)]
pub enum MemoryKind {
    /// A fact.
    #[default]
    Fact,
    /// A preference: something a person likes or wants done in a certain way.
    Preference,
    /// A time or a rhythm: an appointment, opening hours, «every Tuesday at ten».
    Schedule,
    /// A task to be done, or a plan.
    Todo,
    /// A decision.
    Decision,
    /// Something that happened.
    Event,
    /// A person or an animal, and what they are to the speaker.
    Relation,
    /// A detail of work: a port, a version, a budget, a part of a project.
    Work,
    /// A standing instruction to the assistant. Prompts always hold it, within their budget.
    Instruction,
}

impl MemoryKind {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for MemoryKind {
    const WHAT: &'static str = "kind";
}

/// The state of a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<TodoState>)]
pub enum TodoState {
    /// To be done.
    Open,
    /// Done.
    Done,
    /// Dropped: not to be done any more.
    Dropped,
}

impl TodoState {
    /// The name that clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for TodoState {
    const WHAT: &'static str = "state of a todo";
}

/// Strata's own notes about a memory. No field is ever read from a client's metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNotes {
    /// The end of a todo: `done` or `dropped`.
    pub todo: Option<TodoState>,
    /// The time at which an evicted memory was restored by hand. It is not evicted again.
    pub restored_at: Option<Timestamp>,
    /// The time at which the first statement of a revised memory was recorded.
    pub first_recorded_at: Option<Timestamp>,
    /// The memory that said the same first. A change closes all memories of a thread together.
    pub thread: Option<MemoryId>,
    /// A current memory that it may contradict. Both are shown as disputed until one of them is closed.
    pub disputed: Option<MemoryId>,
    /// How sure the reader was of the change that closed it, or of the dispute, in per cent.
    pub certainty: Option<u8>,
}

impl MemoryNotes {
    /// These notes; a note that is missing comes from `former`.
    #[must_use]
    pub fn or(self, former: Self) -> Self {
        Self {
            todo: self.todo.or(former.todo),
            restored_at: self.restored_at.or(former.restored_at),
            first_recorded_at: self.first_recorded_at.or(former.first_recorded_at),
            thread: self.thread.or(former.thread),
            disputed: self.disputed.or(former.disputed),
            certainty: self.certainty.or(former.certainty),
        }
    }
}

/// A derived statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Its id. An edit by hand keeps it.
    pub id: MemoryId,
    /// The session it is bound to; `None` means that it holds for all of the user's sessions.
    pub session: Option<SessionId>,
    /// The agent it belongs to, if a client keeps several agents.
    pub agent: Option<String>,
    /// The kind of the statement.
    pub kind: MemoryKind,
    /// The statement.
    pub content: String,
    /// The confidence, from 0 to 1.
    pub confidence: f32,
    /// The beginning of its validity.
    pub valid_from: Timestamp,
    /// The end of its validity; `None` while it is valid.
    pub valid_to: Option<Timestamp>,
    /// The time at which Strata learned it.
    pub recorded_at: Timestamp,
    /// The memory that replaced it.
    pub replaced_by: Option<MemoryId>,
    /// The turns that state it.
    pub source_turns: Vec<TurnId>,
    /// The summary that states it.
    pub source_summary: Option<SummaryId>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// Strata's own notes about it.
    pub notes: MemoryNotes,
    /// Set while it is hidden from recall.
    pub hidden: Option<Hidden>,
}

/// The maximum number of source turns of a memory. More repetitions of a statement add nothing.
const MAX_SOURCES: usize = 16;

impl Memory {
    /// Adds turns that say the same to the sources, up to a limit, and returns whether anything changed. A memory
    /// without sources was given by hand. It gets no sources, so that it does not depend on any turn.
    pub fn confirm(sources: &mut Vec<TurnId>, turns: &[TurnId]) -> bool {
        let before = sources.len();
        for turn in turns {
            if before > 0 && sources.len() < MAX_SOURCES && !sources.contains(turn) {
                sources.push(*turn);
            }
        }
        sources.len() > before
    }

    /// Whether its statement was edited by hand.
    pub fn is_edited(&self) -> bool {
        self.notes.first_recorded_at.is_some()
    }

    /// The time at which its first statement was recorded, before any edit.
    pub fn first_recorded_at(&self) -> Timestamp {
        self.notes.first_recorded_at.unwrap_or(self.recorded_at)
    }

    /// Whether it was believed at `moment`: already known, not yet closed, not yet hidden.
    pub fn believed_at(&self, moment: Timestamp) -> bool {
        self.recorded_at <= moment
            && self.valid_to.is_none_or(|end| end > moment)
            && self.hidden.is_none_or(|hidden| hidden.at > moment)
    }

    /// The state of a todo; `None` for other kinds, and for a todo that another memory replaced.
    pub fn todo(&self) -> Option<TodoState> {
        if self.kind != MemoryKind::Todo {
            return None;
        }
        self.notes.todo.or_else(|| self.valid_to.is_none().then_some(TodoState::Open))
    }

    /// The thread of memories that say the same: its first memory.
    pub fn thread(&self) -> MemoryId {
        self.notes.thread.unwrap_or(self.id)
    }

    /// Whether it is believed now.
    pub fn is_current(&self) -> bool {
        self.valid_to.is_none() && self.hidden.is_none()
    }

    /// The memory that it may contradict, while it is current itself. The engine's reads leave out disputes with memories
    /// that are no longer current.
    pub fn in_dispute_with(&self) -> Option<MemoryId> {
        self.notes.disputed.filter(|_| self.is_current())
    }
}
