//! Statements of a message, before they are compared with the known memories.

use jiff::Timestamp;

use strata_core::id::TurnId;
use strata_core::memory::MemoryKind;

/// A message of the user, as extraction reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said<'a> {
    /// The turn.
    pub turn: TurnId,
    /// The speaker's name, if the client gave one.
    pub name: Option<&'a str>,
    /// The text, without the memory that Strata injected.
    pub text: &'a str,
    /// The time of the message. Relative times are computed from it.
    pub at: Timestamp,
}

/// One atomic statement that is understandable without context, in the speaker's language.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The statement, in the third person («The user lives in Lisbon», 用户住在里斯本).
    pub content: String,
    /// The kind of the statement.
    pub kind: MemoryKind,
    /// The confidence of the rules or the model, from 0 to 1.
    pub confidence: f32,
    /// The turns that hold the statement.
    pub turns: Vec<TurnId>,
    /// When the statement began to be true, if the message says so. It defaults to the time of the message.
    pub valid_from: Option<Timestamp>,
    /// The sentence behind it, if a reader found it.
    pub as_said: Option<AsSaid>,
}

/// A sentence as it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsSaid {
    /// The sentence.
    pub text: String,
    /// The sentence before it.
    pub before: String,
    /// The kind of memory that it may become.
    pub standing: Standing,
    /// The other facts of the same sentence, in the third person. The facts of a sentence do not change each other.
    pub beside: Vec<String>,
}

/// The kind of memory that a sentence may become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It becomes a memory.
    #[default]
    Kept,
    /// It becomes a memory only if it replaces another one.
    AsChange,
    /// It becomes no memory, but may end one if the change is sure.
    AsSureChange,
}

impl Statement {
    /// The sentence behind the statement, or the statement itself.
    pub(crate) fn said(&self) -> &str {
        self.as_said.as_ref().map_or(&self.content, |said| &said.text)
    }

    /// Whether a memory is another fact of the same sentence.
    pub(crate) fn is_beside(&self, content: &str, turns: &[TurnId]) -> bool {
        let beside = self.as_said.as_ref().map(|said| said.beside.as_slice()).unwrap_or_default();
        beside.iter().any(|other| other == content) && self.turns.iter().all(|turn| turns.contains(turn))
    }

    /// The kind of memory that it may become.
    pub(crate) fn standing(&self) -> Standing {
        self.as_said.as_ref().map(|said| said.standing).unwrap_or_default()
    }
}
