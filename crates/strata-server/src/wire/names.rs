//! Closed sets of names as clients write them: roles, kinds, scopes, formats, the status of a job.
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
    /// Who says something.
    Role = strata_core::Role {
        /// The person.
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
    /// What kind of statement a memory is.
    #[derive(Default)]
    Kind = strata_core::MemoryKind {
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
}

names! {
    /// Where something holds, or where recall looks.
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
    /// The form of a prompt.
    Format = strata_engine::prompt::PromptFormat {
        /// One text, the request first.
        Flat,
        /// A list of messages, with memory in front of the user's last one.
        Chat,
    }
}

names! {
    /// How far a job is.
    Status = strata_core::job::JobStatus {
        /// Waiting for its time and a worker.
        Queued,
        /// Held by a worker until its lease ends.
        Leased,
        /// Finished.
        Done,
        /// Given up after too many attempts.
        Dead,
    }
}
