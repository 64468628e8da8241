//! The core's closed sets of names as clients write them: roles, kinds, scopes.
//!
//! Each is read from a string by the core's own rule, so that the message about a wrong one is the same everywhere.

use serde::{Deserialize, Serialize};
use strata_core::Error;
use utoipa::ToSchema;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub(crate) enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Instructions to the model.
    System,
    /// The result of a tool call.
    Tool,
}

impl TryFrom<String> for Role {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse::<strata_core::Role>().map(Self::from)
    }
}

impl From<Role> for strata_core::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::System => Self::System,
            Role::Tool => Self::Tool,
        }
    }
}

impl From<strata_core::Role> for Role {
    fn from(role: strata_core::Role) -> Self {
        match role {
            strata_core::Role::User => Self::User,
            strata_core::Role::Assistant => Self::Assistant,
            strata_core::Role::System => Self::System,
            strata_core::Role::Tool => Self::Tool,
        }
    }
}

/// What kind of statement a memory is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub(crate) enum Kind {
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

impl TryFrom<String> for Kind {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse::<strata_core::MemoryKind>().map(Self::from)
    }
}

impl From<Kind> for strata_core::MemoryKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Fact => Self::Fact,
            Kind::Preference => Self::Preference,
            Kind::Todo => Self::Todo,
            Kind::Decision => Self::Decision,
        }
    }
}

impl From<strata_core::MemoryKind> for Kind {
    fn from(kind: strata_core::MemoryKind) -> Self {
        match kind {
            strata_core::MemoryKind::Fact => Self::Fact,
            strata_core::MemoryKind::Preference => Self::Preference,
            strata_core::MemoryKind::Todo => Self::Todo,
            strata_core::MemoryKind::Decision => Self::Decision,
        }
    }
}

/// Where something holds, or where recall looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub(crate) enum Scope {
    /// One session.
    Session,
    /// All of the user's sessions.
    User,
    /// All users.
    Global,
}

impl TryFrom<String> for Scope {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse::<strata_core::scope::Scope>().map(Self::from)
    }
}

impl From<Scope> for strata_core::scope::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Session => Self::Session,
            Scope::User => Self::User,
            Scope::Global => Self::Global,
        }
    }
}

impl From<strata_core::scope::Scope> for Scope {
    fn from(scope: strata_core::scope::Scope) -> Self {
        match scope {
            strata_core::scope::Scope::Session => Self::Session,
            strata_core::scope::Scope::User => Self::User,
            strata_core::scope::Scope::Global => Self::Global,
        }
    }
}
