//! What a message says, before it is compared with what is known.

use jiff::Timestamp;

use strata_core::id::TurnId;
use strata_core::memory::MemoryKind;

/// A message of the user's, as extraction reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said<'a> {
    /// The turn.
    pub turn: TurnId,
    /// The speaker's name, where the client gave one.
    pub name: Option<&'a str>,
    /// What was said, without what Strata injected.
    pub text: &'a str,
    /// When: relative times are reckoned from here.
    pub at: Timestamp,
}

/// One atomic statement that stands on its own, in the language of who said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The statement, in the third person («The user lives in Lisbon», 用户住在里斯本).
    pub content: String,
    /// What kind of statement it is.
    pub kind: MemoryKind,
    /// How sure its maker is, from 0 to 1.
    pub confidence: f32,
    /// The turns that say so.
    pub turns: Vec<TurnId>,
    /// Since when it is so, where the message says; else it holds from when it was said.
    pub valid_from: Option<Timestamp>,
}
