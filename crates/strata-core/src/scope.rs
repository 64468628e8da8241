//! Where to look, and when to look further.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::UserId;
use crate::names::{Named, unknown};

/// Where recall looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Scope>)]
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
        self.into()
    }
}

impl Scope {
    /// Whose items are looked through; `shared` says that what all users share is, whatever the scope.
    pub fn owners(self, user: &UserId, shared: bool) -> Vec<UserId> {
        let shared = (shared || self == Self::Global).then(UserId::global).filter(|global| global != user);
        std::iter::once(user.clone()).chain(shared).collect()
    }
}

impl Named for Scope {
    const WHAT: &'static str = "scope";
}
