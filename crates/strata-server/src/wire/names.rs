//! Closed sets of names in the form that clients write: roles, kinds, scopes, formats, the status of a job.
//!
//! The core parses each name, so every route gives the same message for an unknown one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Declares the wire form of an enum of the core: the same variants, written in lower case.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident = $core:ty { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "lowercase", try_from = "String")]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl TryFrom<String> for $name {
            type Error = strata_core::Error;

            fn try_from(name: String) -> Result<Self, Self::Error> {
                name.parse::<$core>().map(Self::from)
            }
        }

        impl From<$name> for $core {
            fn from(name: $name) -> Self {
                match name { $($name::$variant => Self::$variant,)+ }
            }
        }

        impl From<$core> for $name {
            fn from(name: $core) -> Self {
                match name { $(<$core>::$variant => Self::$variant,)+ }
            }
        }
    };
}

names! {
    /// The role of a speaker.
    Role = strata_core::Role {
        /// The user.
        User,
        /// The model.
        Assistant,
        /// Instructions to the model.
        System,
        /// The result of a tool call.
        Tool,
    }
}

names! {
    /// The kind of a memory.
    #[derive(Default)]
    Kind = strata_core::MemoryKind {
        /// A fact.
        #[default]
        Fact,
        /// A person's preference: something they like, or how they want things done.
        Preference,
        /// A time or a rhythm: an appointment, opening hours.
        Schedule,
        /// A task to be done, or a plan.
        Todo,
        /// A decision that was made.
        Decision,
        /// Something that happened.
        Event,
        /// A person or an animal, and what they are to the speaker.
        Relation,
        /// A detail of work: a port, a version, a budget.
        Work,
        /// A standing instruction to the assistant. Prompts always hold it, within their budget.
        Instruction,
    }
}

names! {
    /// Where a memory holds, or where recall searches.
    Scope = strata_core::scope::Scope {
        /// One session.
        Session,
        /// All of the user's sessions.
        User,
        /// All users.
        Global,
    }
}

names! {
    /// How far recall looks from a session.
    RecallScope = strata_core::scope::RecallScope {
        /// Only the session, and the memories that all users share.
        Session,
        /// All of the user's sessions.
        User,
    }
}

names! {
    /// The form of a prompt.
    Format = strata_engine::prompt::PromptFormat {
        /// One text, the request first.
        Flat,
        /// A list of messages, with memory in front of the user's last one.
        Chat,
    }
}

names! {
    /// The status of a job.
    Status = strata_core::job::JobStatus {
        /// Waiting for its time and for a worker.
        Queued,
        /// Held by a worker until its lease ends.
        Leased,
        /// Finished.
        Done,
        /// Given up after too many attempts.
        Dead,
    }
}
