//! Sessions and their turns.

use super::Engine;
use strata_core::error::{Error, Result};
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::session::Session;
use strata_core::store::{Change, ChangeSet, Forget, Page, Removed, TurnQuery};
use strata_core::turn::{Hidden, HiddenReason, Turn};

impl Engine {
    /// The user's sessions, the last written to first.
    pub async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        self.store.sessions(user, page).await
    }

    /// One session; *not found* where there is none.
    pub async fn session(&self, user: &UserId, session: &SessionId) -> Result<Session> {
        self.store.session(user, session).await?.ok_or_else(|| unknown_session(session))
    }

    /// A session's turns by `seq`, hidden ones included; *not found* where there is no such session.
    pub async fn turns(
        &self,
        user: &UserId,
        session: &SessionId,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Turn>> {
        let query = TurnQuery::Range { session: session.clone(), after, limit };
        let turns = self.store.turns(user, &query).await?;
        if turns.is_empty() && self.store.session(user, session).await?.is_none() {
            return Err(unknown_session(session));
        }
        Ok(turns)
    }

    /// Takes turns out of recall and learning. They stay in the session's record.
    pub async fn hide_turns(&self, user: &UserId, ids: Vec<TurnId>) -> Result<()> {
        let now = self.now();
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        self.store.apply(user, ChangeSet::one(now, Change::HideTurns { ids, hidden })).await?;
        Ok(())
    }

    /// Destroys a session with its turns, summaries and the memories bound to it, and says what went.
    pub async fn delete_session(&self, user: &UserId, session: &SessionId) -> Result<Removed> {
        let change = Change::Forget(Forget::Session(session.clone()));
        Ok(self.store.apply(user, ChangeSet::one(self.now(), change)).await?.removed)
    }
}

fn unknown_session(session: &SessionId) -> Error {
    Error::not_found(format!("session `{session}` does not exist for this user"))
}
