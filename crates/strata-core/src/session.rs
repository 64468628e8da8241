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
    /// The time of its first write.
    pub created_at: Timestamp,
    /// The time of its last write.
    pub updated_at: Timestamp,
    /// The version of the session. It rises with each change set that appends turns or replaces the state. A session
    /// that does not exist has version 0, and a version is never used again for a session of the same name.
    pub version: u64,
    /// The number of turns, which is also the next turn's `seq`.
    pub turn_count: u64,
    /// Its working state.
    pub state: State,
}

impl Session {
    /// A session that does not exist yet: without turns, with the default state, in version 0.
    pub fn unwritten(id: SessionId, at: Timestamp) -> Self {
        Self { id, created_at: at, updated_at: at, version: 0, turn_count: 0, state: State::default() }
    }

    /// The title that another program gave the conversation, if it was imported with one.
    pub fn title(&self) -> Option<&str> {
        self.state.system_state.get("title")?.as_str().filter(|title| !title.trim().is_empty())
    }
}
