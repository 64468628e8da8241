//! What a sentence claims, in a form that can be compared: of whom, what about them, which value, and whether it holds.
//!
//! Both sides of a comparison are read by the same readers ([`super::english`], [`super::chinese`]), whoever wrote the text.
//! What is left alone: what to do about two claims, which is [`super::compare`].

use std::collections::BTreeSet;

/// How many values somebody can have at a time in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    /// One: a new value takes the old one's place (where somebody lives).
    One,
    /// Several, unless the sentence says that things changed («now», «new»): somebody may have two jobs.
    Soft,
    /// Several: values stand beside each other (what somebody likes).
    Many,
}

/// Whether and when it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is so.
    Now,
    /// It is not so.
    Not,
    /// It was so and is not any more, in as many words.
    NoLonger,
    /// It was so once; whether it still is, is not said.
    Once,
    /// It is meant to become so.
    Planned,
}

impl Hold {
    /// Whether the present is denied.
    pub(super) fn denies(self) -> bool {
        matches!(self, Self::Not | Self::NoLonger)
    }

    /// The opposite, for verbs that are negative themselves («dislike»).
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Now => Self::Not,
            Self::Not | Self::NoLonger => Self::Now,
            other => other,
        }
    }
}

/// What somebody does about a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// It is to be done.
    Open,
    /// It was done.
    Done,
    /// It need not be done.
    Dropped,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// Of whom or what: `user`, `user's sister`, a name in lower case.
    pub(super) subject: String,
    /// In which respect.
    pub(super) slot: String,
    /// The value's terms; none where the sentence says only that whatever it was is over.
    pub(super) value: BTreeSet<String>,
    /// What is said beside the value (how, when, over what); compared only where a sentence says that this changed.
    pub(super) detail: BTreeSet<String>,
    /// The value that the sentence says is wrong or replaced («not Anna», «instead of Postgres»).
    pub(super) old: Option<BTreeSet<String>>,
    /// How many values there can be.
    pub(super) arity: Arity,
    /// Whether it holds.
    pub(super) hold: Hold,
    /// Set where it is about something to do.
    pub(super) errand: Option<Errand>,
}

/// What a rule makes of a sentence, by language; the tables are lists of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The slot. `{n}` is what the pattern's group `n` matched.
    pub(super) slot: &'static str,
    /// A regular expression over the predicate: everything after the subject, its auxiliaries, adverbs and negation. Groups: `v` the
    /// value, `t` a tail that is kept and not compared, `o` the old value, `n` a noun that names the slot.
    pub(super) pattern: &'static str,
    /// How the claim is said, with the same groups.
    pub(super) say: &'static str,
    /// What kind of memory it makes.
    pub(super) kind: StatementKind,
    /// How many values there can be.
    pub(super) arity: Arity,
    /// What the verb does.
    pub(super) verb: Verb,
}

/// How a verb relates to the state it speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// The state itself: in the past tense it is past («lived in»).
    State,
    /// What brings the state about: in the past tense it holds now («moved to»).
    Begin,
    /// What ends the state («sold»).
    End,
    /// The opposite state («hates»).
    Opposite,
    /// Something done once, whose tense changes nothing («graduated»).
    Deed,
    /// Something that is to be done.
    Todo,
    /// Something that was to be done and was.
    Did,
    /// Something that need not be done.
    Drop,
    /// Something meant («plans to»).
    Plan,
}

/// What was read: a claim, and what it takes to say it in the third person.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The claim.
    pub(super) claim: Claim,
    /// The sentence, in the third person.
    pub(super) content: String,
    /// The kind of memory it makes.
    pub(super) kind: StatementKind,
    /// How sure the pattern is, before hedges.
    pub(super) confidence: f32,
    /// Whether a time that the sentence names is since when it holds.
    pub(super) begins: bool,
}

/// The places of a template filled: `{v}`, `{t}` and `{n}`.
pub(super) fn fill(template: &str, value: &str, tail: &str, noun: &str) -> String {
    template.replace("{v}", value).replace("{t}", tail).replace("{n}", noun)
}
use crate::rules::StatementKind;
