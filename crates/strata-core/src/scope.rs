//! Where to look, and when to look further.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::UserId;

/// Where recall looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One session, and the memories bound to none.
    Session,
    /// All of the user's sessions and memories.
    User,
    /// The user's, and what is shared by all users.
    Global,
}

impl Scope {
    /// The name clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::User => "user",
            Self::Global => "global",
        }
    }
}

impl Scope {
    /// Whose items are looked through; `shared` says that what all users share is, whatever the scope.
    pub fn owners(self, user: &UserId, shared: bool) -> Vec<UserId> {
        let shared = (shared || self == Self::Global).then(UserId::global).filter(|global| global != user);
        std::iter::once(user.clone()).chain(shared).collect()
    }
}

impl std::str::FromStr for Scope {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "session" => Ok(Self::Session),
            "user" => Ok(Self::User),
            "global" => Ok(Self::Global),
            _ => Err(Error::invalid(format!(
                "scope `{}` is unknown; use `session`, `user` or `global`",
                name.chars().take(64).collect::<String>()
            ))),
        }
    }
}
