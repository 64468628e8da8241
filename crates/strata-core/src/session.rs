//! A session: an ordered list of turns of one user, with its working state.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::state::State;

/// A session as the store knows it, without its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its name, unique for its user.
    pub id: SessionId,
    /// When it was first written to.
    pub created_at: Timestamp,
    /// When it was last written to.
    pub updated_at: Timestamp,
    /// How many turns it has, which is also the next turn's `seq`.
    pub turn_count: u64,
    /// Its working state.
    pub state: State,
}
