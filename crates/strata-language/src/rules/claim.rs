//! The claim of a sentence in a form that can be compared: the subject, the slot, the value, and whether it holds.
//!
//! The same grammars ([`super::english`], [`super::chinese`]) read both sides of a comparison, messages and memories.
//! Deliberately absent: the comparison of two claims, which is in [`super::compare`].

use std::collections::BTreeSet;

/// The number of values that a slot can have at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    /// One: a new value replaces the old one (a home).
    One,
    /// Several, unless the sentence says that something changed («now», «new»): a person may have two jobs.
    Soft,
    /// Several: values are independent (likes).
    Many,
}

/// The state of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is true now.
    Now,
    /// It is not true.
    Not,
    /// It was true and is explicitly no longer true.
    NoLonger,
    /// It was true in the past; the sentence does not say whether it still is.
    Once,
    /// It is planned.
    Planned,
}

impl Hold {
    /// Whether it denies the present.
    pub(super) fn denies(self) -> bool {
        matches!(self, Self::Not | Self::NoLonger)
    }

    /// The opposite, for verbs with a negative meaning («dislike»).
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Now => Self::Not,
            Self::Not | Self::NoLonger => Self::Now,
            other => other,
        }
    }
}

/// The state of an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// Open.
    Open,
    /// Done.
    Done,
    /// Dropped.
    Dropped,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// The subject: `user`, `user's sister`, a name in lower case.
    pub(super) subject: String,
    /// The slot: the property of the subject.
    pub(super) slot: String,
    /// The value's terms; empty if the sentence only says that the former value ended.
    pub(super) value: BTreeSet<String>,
    /// Details beside the value (the manner, the time, the alternative). They are compared only if a sentence says that they changed.
    pub(super) detail: BTreeSet<String>,
    /// The value that the sentence corrects or replaces («not Anna», «instead of Postgres»).
    pub(super) old: Option<BTreeSet<String>>,
    /// The number of values that the slot can have.
    pub(super) arity: Arity,
    /// The state.
    pub(super) hold: Hold,
    /// Set if the claim is about an errand.
    pub(super) errand: Option<Errand>,
}

/// A rule of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The slot. `{n}` is the text of the pattern's group `n`.
    pub(super) slot: &'static str,
    /// A regular expression over the predicate: the text after the subject, its auxiliaries, adverbs and negation.
    /// Groups: `v` is the value, `t` a tail that is kept and not compared, `o` the old value, `n` a noun that names the
    /// slot.
    pub(super) pattern: &'static str,
    /// The template of the statement, with the same groups.
    pub(super) say: &'static str,
    /// The kind of the memory.
    pub(super) kind: StatementKind,
    /// The number of values that the slot can have.
    pub(super) arity: Arity,
    /// The relation of the verb to the state.
    pub(super) verb: Verb,
}

/// The relation of a verb to the state it describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// The state itself: in the past tense it is past («lived in»).
    State,
    /// The beginning of the state: in the past tense the state holds now («moved to»).
    Begin,
    /// The end of the state («sold»).
    End,
    /// The opposite state («hates»).
    Opposite,
    /// A single event; its tense does not matter («graduated»).
    Deed,
    /// An open errand.
    Todo,
    /// An errand that was done.
    Did,
    /// An errand that was dropped.
    Drop,
    /// A plan («plans to»).
    Plan,
}

/// A claim with its statement in the third person.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadClaim {
    /// The claim.
    pub(super) claim: Claim,
    /// The statement, in the third person.
    pub(super) content: String,
    /// The kind of the memory.
    pub(super) kind: StatementKind,
    /// The confidence of the rule, before hedges.
    pub(super) confidence: f32,
    /// Whether a time in the sentence is the beginning of the state.
    pub(super) begins: bool,
}

/// Fills the places of a template: `{v}`, `{t}` and `{n}`.
pub(super) fn fill(template: &str, value: &str, tail: &str, noun: &str) -> String {
    template.replace("{v}", value).replace("{t}", tail).replace("{n}", noun)
}
use crate::rules::StatementKind;
