//! The scope of a recall.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::UserId;
use crate::names::{Named, unknown};

/// The items that recall searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Scope>)]
pub enum Scope {
    /// One session, and the memories that are bound to no session.
    Session,
    /// All of the user's sessions and memories.
    User,
    /// All of the user's sessions and memories, and the data that all users share.
    Global,
}

impl Scope {
    /// The name that clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Scope {
    /// The owners of the items to search. With `shared`, the data that all users share is always included.
    pub fn owners(self, user: &UserId, shared: bool) -> Vec<UserId> {
        let shared = (shared || self == Self::Global).then(UserId::global).filter(|global| global != user);
        std::iter::once(user.clone()).chain(shared).collect()
    }
}

impl Named for Scope {
    const WHAT: &'static str = "scope";
}

/// How far a question that is asked in a session may look: the values of the setting `recall.scope`, of a key's, and of
/// a request's `memory_scope`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<RecallScope>)]
pub enum RecallScope {
    /// Only the session: its turns, the memories that belong to it or were learned from it, memories that were added for
    /// no session, and the data that all users share.
    Session,
    /// All of the user's sessions.
    #[default]
    User,
}

impl RecallScope {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for RecallScope {
    const WHAT: &'static str = "recall scope";
}
