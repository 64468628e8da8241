//! What goes into the rules and what comes out of them.

use jiff::Timestamp;

/// The most statements of one message: the memory-proxy design asks for 0 to 3 atomic statements.
pub const MAX_STATEMENTS: usize = 3;

/// A user's message, as the rules read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message<'a> {
    /// The speaker's name, if the client gave one.
    pub name: Option<&'a str>,
    /// The text, without what Strata injected.
    pub text: &'a str,
    /// When it was said. Relative times are resolved against this moment.
    pub at: Timestamp,
}

/// What kind of statement something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// Something that is so.
    Fact,
    /// Something the user likes, dislikes or wants.
    Preference,
    /// Something the user has to do or plans to do.
    Todo,
    /// Something that was decided.
    Decision,
}

/// One atomic statement that stands on its own, in the language of the speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The statement in the third person («The user lives in Lisbon», 用户住在里斯本).
    pub content: String,
    /// What kind of statement it is.
    pub kind: StatementKind,
    /// How sure the rule is, from 0 to 1.
    pub confidence: f32,
    /// Since when it is so, if the message says; otherwise it holds from when it was said.
    pub valid_from: Option<Timestamp>,
}

/// A statement that is known already.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known<'a> {
    /// What it says.
    pub content: &'a str,
    /// Whether it is believed now. Only current statements can end or be repeated.
    pub is_current: bool,
}
