//! Identifiers. Clients name users and sessions with almost any text; everything that Strata makes has a UUID.
//!
//! UUIDs are version 7: they sort by the time at which they were made, so an index over them grows at its end. They
//! come from the [`IdSource`](crate::ports::IdSource) port, never from ambient randomness.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result, shown};

/// The longest name of a user or session, in characters. Two of them and a number must fit into one PostgreSQL index
/// row (2,704 bytes), at up to four bytes a character.
pub const MAX_NAME_CHARS: usize = 256;

/// The name of the bucket that every user may read. No client may use it as its own user.
const GLOBAL: &str = "*";

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as the client wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(name: String) -> Result<Self> {
                Self::new(name)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self("default".to_owned())
            }
        }
    };
}

name! {
    /// The owner of sessions and memories: the isolation boundary.
    UserId, "user"
}

name! {
    /// A session of a user. Two users may use the same name for different sessions.
    SessionId, "session"
}

impl UserId {
    /// Checks and takes a client's name for a user.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name == GLOBAL {
            return Err(Error::invalid("user `*` is reserved for what all users share; choose another name"));
        }
        check_name(&name, "user")?;
        Ok(Self(name))
    }

    /// The bucket that every user may read. It holds the items with the scope `global`.
    pub fn global() -> Self {
        Self(GLOBAL.to_owned())
    }

    /// Takes a name that a store has read back, [`UserId::global`] included.
    pub fn from_stored(name: String) -> Result<Self> {
        if name == GLOBAL { Ok(Self(name)) } else { Self::new(name) }
    }
}

impl SessionId {
    /// Checks and takes a client's name for a session. Separators, dots and emoji are allowed: a backend that keeps
    /// files escapes them.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        check_name(&name, "session")?;
        Ok(Self(name))
    }
}

/// Checks that a name is neither empty nor too long and contains no control character.
pub fn check_name(name: &str, what: &str) -> Result<()> {
    let length = name.chars().count();
    if length == 0 {
        return Err(Error::invalid(format!("{what} id is empty; give it at least one character")));
    }
    if length > MAX_NAME_CHARS {
        return Err(Error::invalid(format!(
            "{what} id has {length} characters; the most is {MAX_NAME_CHARS}, so use a shorter one or a hash of it"
        )));
    }
    if let Some(control) = name.chars().find(|c| c.is_control()) {
        return Err(Error::invalid(format!(
            "{what} id holds the control character `{}`; remove it",
            control.escape_unicode()
        )));
    }
    Ok(())
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Uuid::parse_str(text).map(Self).map_err(|_| {
                    Error::invalid(format!(concat!("`{}` is no ", $what, " id; an id is a UUID"), shown(text)))
                })
            }
        }
    };
}

uuid_id! {
    /// A turn.
    TurnId, "turn"
}
uuid_id! {
    /// A memory.
    MemoryId, "memory"
}
uuid_id! {
    /// A summary.
    SummaryId, "summary"
}
uuid_id! {
    /// A background job.
    JobId, "job"
}
uuid_id! {
    /// An API key.
    KeyId, "key"
}
uuid_id! {
    /// One lease of a job by one worker; a later lease of the same job has another id.
    LeaseId, "lease"
}
uuid_id! {
    /// One request that recalled something.
    RequestId, "request"
}

/// The id of any item that recall can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum ItemId {
    /// A turn.
    Turn(TurnId),
    /// A memory.
    Memory(MemoryId),
    /// A summary.
    Summary(SummaryId),
}

impl ItemId {
    /// The UUID, regardless of the kind of the item.
    pub fn uuid(&self) -> Uuid {
        match self {
            Self::Turn(id) => id.0,
            Self::Memory(id) => id.0,
            Self::Summary(id) => id.0,
        }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uuid().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_have_almost_any_name() {
        for name in ["user:agent:1", "../../x", "🦀", " ", "a/b\\c", ".hidden", &"长".repeat(MAX_NAME_CHARS)]
        {
            assert_eq!(SessionId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_name_that_no_store_could_keep_is_refused() {
        for name in ["", "a\0b", "line\nbreak", &"x".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(SessionId::new(name).unwrap_err().kind(), crate::ErrorKind::Invalid, "{name:?}");
            assert_eq!(UserId::new(name).unwrap_err().kind(), crate::ErrorKind::Invalid, "{name:?}");
        }
        assert!(UserId::new("*").is_err());
        assert!(serde_json::from_str::<UserId>("\"*\"").is_err());
    }
}
