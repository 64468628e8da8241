//! The input and the output of the rules.

use jiff::Timestamp;

/// The maximum number of statements per message: the memory-proxy design asks for 0 to 3 atomic statements.
pub const MAX_STATEMENTS: usize = 3;

/// A user's message, as the rules read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaidText<'a> {
    /// The speaker's name, if the client gave one.
    pub name: Option<&'a str>,
    /// The text, without the parts that Strata injected.
    pub text: &'a str,
    /// The time at which it was said. Relative times are resolved against it.
    pub at: Timestamp,
}

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// A fact.
    Fact,
    /// A like, a dislike or a wish of the user.
    Preference,
    /// A task or a plan of the user.
    Todo,
    /// A decision.
    Decision,
}

/// One atomic statement that can be understood alone, in the language of the speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleStatement {
    /// The statement in the third person («The user lives in Lisbon», 用户住在里斯本).
    pub content: String,
    /// The kind of the statement.
    pub kind: StatementKind,
    /// The confidence of the rule, from 0 to 1.
    pub confidence: f32,
    /// The beginning of its validity, if the message names it; otherwise it is valid from the time of the message.
    pub valid_from: Option<Timestamp>,
}

/// A known statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known<'a> {
    /// The text of the statement.
    pub content: &'a str,
    /// Whether it is believed now. Only current statements can end or be repeated.
    pub is_current: bool,
}
