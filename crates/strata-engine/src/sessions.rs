//! Sessions and their turns.

use crate::forgetting::MAX_ROUNDS;
use crate::jobs::was_overtaken;
use crate::limits::Limits;
use crate::recall::RequestLog;
use crate::recording::{MAX_TRIES, Queues, session_now};
use jiff::Timestamp;
use std::sync::Arc;
use strata_core::error::{Error, Result};
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::ports::{Clock, IdSource};
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::store::Store;
use strata_core::store::{Change, ChangeSet, Expectation, Forget, Page, Removed, TurnQuery};
use strata_core::turn::{Hidden, HiddenReason, Turn};

/// Sessions with their turns and states.
#[derive(Clone)]
pub struct Sessions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) log: RequestLog,
    pub(crate) limits: Limits,
    pub(crate) queues: Arc<Queues>,
}

impl Sessions {
    /// The user's sessions, the most recently written first.
    pub async fn list(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        self.store.sessions(user, page).await
    }

    /// One session; *not found* if it does not exist.
    pub async fn get(&self, user: &UserId, session: &SessionId) -> Result<Session> {
        self.store.session(user, session).await?.ok_or_else(|| unknown_session(session))
    }

    /// When a session began: with its first turn if that is older than the session, as an imported one is.
    pub async fn begun(&self, user: &UserId, session: &Session) -> Result<Timestamp> {
        let first = TurnQuery::Range { session: session.id.clone(), after: None, limit: 1 };
        let first = self.store.turns(user, &first).await?;
        let said_at = first.first().map(|turn| turn.created_at);
        Ok(said_at.map_or(session.created_at, |said_at| said_at.min(session.created_at)))
    }

    /// A session's turns by `seq`, hidden ones included; *not found* if the session does not exist.
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

    /// Removes turns from recall and learning. They stay in the session's record.
    pub async fn hide_turns(&self, user: &UserId, ids: Vec<TurnId>) -> Result<()> {
        let now = self.clock.now();
        let hidden = Some(Hidden { reason: HiddenReason::Deleted, at: now });
        self.store.apply(user, ChangeSet::one(now, Change::HideTurns { ids, hidden })).await?;
        Ok(())
    }

    /// Destroys a session with its turns, its summaries, its requests and the memories bound to it, and returns how much
    /// was destroyed. A chat of the session that has begun before is not recorded any more.
    pub async fn delete(&self, user: &UserId, session: &SessionId) -> Result<Removed> {
        for _ in 0..MAX_ROUNDS {
            if !self.log.forget(user, Some(session), self.ids.next()) {
                break;
            }
            // A row of a request is being written right now. It must not come after the change set that forgets, so a
            // write that changes nothing waits for it.
            self.store.apply(user, ChangeSet::new(self.clock.now(), Vec::new())).await?;
        }
        let change = Change::Forget(Forget::Session(session.clone()));
        Ok(self.store.apply(user, ChangeSet::one(self.clock.now(), change)).await?.removed)
    }

    /// A session's state; *not found* if the session does not exist.
    pub async fn state(&self, user: &UserId, session: &SessionId) -> Result<State> {
        Ok(self.get(user, session).await?.state)
    }

    /// Replaces a session's state with an edited one. The session is created if it does not exist. The position up to
    /// which turns have been read stays as it is: `state` cannot change it.
    pub async fn put_state(&self, user: &UserId, session: &SessionId, mut state: State) -> Result<State> {
        self.limits.check_state(&state)?;
        let _place = self.queues.enter(user, session).await;
        let mut tries = 0;
        loop {
            let before = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
            state.observed = before.state.observed.clone();
            let put = Change::PutState { session: session.clone(), state: Box::new(state.clone()) };
            let set = ChangeSet::one(self.clock.now(), put).expecting(Expectation::unchanged(&before));
            match self.store.apply(user, set).await {
                Ok(_) => return Ok(state),
                Err(error) if was_overtaken(&error) && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn unknown_session(session: &SessionId) -> Error {
    Error::not_found(format!("session `{session}` does not exist for this user"))
}
