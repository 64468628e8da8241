//! Reading what is recorded into the session's state, in the change set that records it.
//!
//! A user's turns are appended as they come and read together with the reply that follows them, so that recording them
//! costs nothing more. The state says how far it has read ([`Observed`](strata_core::state::Observed)): whatever was appended
//! without being read, by whichever path, is caught up with the next reply.

use jiff::Timestamp;

use super::Prompting;
use crate::engine::Engine;
use crate::prompt::count_usage;
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{SessionId, UserId};
use strata_core::state::State;
use strata_core::store::{Applied, Change, ChangeSet, Idempotency, TurnQuery};
use strata_core::turn::{NewTurn, Role, TurnNotes};

/// How often a reply is tried again that another writer overtook. After that it is recorded without being read: the next
/// reply catches up.
const TRIES: usize = 4;

/// How often a write is tried again that has to look at the session, and that another writer overtook. That is no failure:
/// with each try somebody has got through. Within this process writers queue (see [`crate::engine::queue`]), so it
/// takes a thousand writes of other programs, each just then, to come to the end of it.
pub(in crate::engine) const MAX_TRIES: usize = 1_000;

/// The most turns that are caught up at once. Older ones are passed over: a session of a hundred thousand turns that
/// another program recorded must not make a reply wait.
const MAX_CATCH_UP: u64 = 200;

impl Engine {
    /// Appends turns and, where a reply or a tool's result is among them, reads them into the state and moves the summary
    /// on: all or nothing.
    pub(in crate::engine) async fn append(
        &self,
        user: &UserId,
        session: &SessionId,
        turns: Vec<NewTurn>,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Applied> {
        self.append_after(user, session, Vec::new(), turns, idempotency, now).await
    }

    /// As [`Engine::append`], after other changes in the same change set. Where these expect something of the session, what
    /// was overtaken is not tried again: who expected has to look again.
    pub(in crate::engine) async fn append_after(
        &self,
        user: &UserId,
        session: &SessionId,
        first: Vec<Change>,
        turns: Vec<NewTurn>,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Applied> {
        let expects = first.iter().any(|change| matches!(change, Change::ExpectSession { .. }));
        let is_read =
            |turn: &NewTurn| turn.hidden.is_none() && matches!(turn.role, Role::Assistant | Role::Tool);
        if turns.iter().any(is_read) {
            let place = match expects {
                // Who expects something is in the queue already.
                true => None,
                false => Some(self.queues.enter(user, session).await),
            };
            for _ in 0..TRIES {
                let mut changes = self.observed(user, session, &turns).await?;
                changes.push(Change::AppendTurns { session: session.clone(), turns: turns.clone() });
                // A session has to exist before it can be summarised: the expectation first, then the turns.
                let last = changes.len() - 1;
                changes.swap(1, last);
                changes.extend(self.learning(user, session, &turns, now));
                let changes = [first.clone(), changes].concat();
                let changes = ChangeSet { at: now, idempotency: idempotency.clone(), changes };
                match self.store.apply(user, changes).await {
                    Err(error) if was_overtaken(&error) && !expects => {}
                    result => return result,
                }
            }
            drop(place);
            tracing::warn!(%session, "many write to one session at once; its state will be read up later");
        }
        let learning = self.learning(user, session, &turns, now);
        let mut changes = first;
        if !turns.is_empty() {
            changes.push(Change::AppendTurns { session: session.clone(), turns });
        }
        changes.extend(learning);
        self.store.apply(user, ChangeSet { at: now, idempotency, changes }).await
    }

    /// What recording `turns` changes beside appending them; that the session is as it was read comes first.
    async fn observed(&self, user: &UserId, session: &SessionId, turns: &[NewTurn]) -> Result<Vec<Change>> {
        let (turn_count, before) = self.session_now(user, session).await?;
        let mut state = before.clone();
        let read = state.observed.turns.min(turn_count).max(turn_count.saturating_sub(MAX_CATCH_UP));
        if read < turn_count {
            let after = read.checked_sub(1);
            let query =
                TurnQuery::Range { session: session.clone(), after, limit: (turn_count - read) as u32 };
            for turn in self.store.turns(user, &query).await? {
                if turn.hidden.is_none() && turn.seq < turn_count {
                    let name = turn.name.as_deref();
                    self.observe(turn.role, name, &turn.content, &turn.notes, turn.token_count, &mut state);
                }
            }
        }
        for turn in turns.iter().filter(|turn| turn.hidden.is_none()) {
            let name = turn.name.as_deref();
            self.observe(turn.role, name, &turn.content, &turn.notes, turn.token_count, &mut state);
        }
        state.observed.turns = turn_count + turns.len() as u64;
        let mut changes = Vec::with_capacity(4);
        changes.push(Change::ExpectSession { session: session.clone(), turn_count, state: Box::new(before) });
        changes.push(Change::PutState { session: session.clone(), state: Box::new(state) });
        changes.extend(self.fold(user, session, turn_count, turns).await?);
        Ok(changes)
    }

    fn observe(
        &self,
        role: Role,
        name: Option<&str>,
        content: &str,
        notes: &TurnNotes,
        token_count: u32,
        state: &mut State,
    ) {
        let Prompting { settings, rules } = &*self.prompting;
        rules.observe(role, content, &settings.filter, state);
        count_usage(role, name, content, notes, token_count, state);
    }

    /// How many turns a session has and its state, as a write may expect them.
    pub(in crate::engine) async fn session_now(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> Result<(u64, State)> {
        let found = self.store.session(user, session).await?;
        Ok(found.map_or_else(Default::default, |session| (session.turn_count, session.state)))
    }
}

/// Whether a write failed because another one came first.
pub(in crate::engine) fn was_overtaken(error: &Error) -> bool {
    error.kind() == ErrorKind::Conflict && error.is_retryable()
}
