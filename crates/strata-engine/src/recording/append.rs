//! Updating a session's state from its turns, in the change set that records them.
//!
//! A user's turns are appended as they come and read together with the reply that follows them, so that recording them
//! costs nothing more. The state says how far it has read ([`Observed`](strata_core::state::Observed)): turns that were appended
//! without being read are read together with the next reply.

use super::Recording;
use crate::jobs::was_overtaken;
use jiff::Timestamp;
use strata_core::ports::Clock;
use strata_core::store::Store;

use crate::prompt::PromptRules;
use crate::prompt::{Moment, add_task, checklist, count_usage};
use strata_core::error::Result;
use strata_core::id::{SessionId, UserId};
use strata_core::session::Session;
use strata_core::state::State;
use strata_core::store::{Applied, Change, ChangeSet, Expectation, Idempotency, TurnQuery};
use strata_core::turn::{NewTurn, Role, Turn};

/// How often recording a reply is tried when other writers are faster. After that the reply is recorded without being
/// read, and the next reply reads it.
const TRIES: usize = 4;

/// How often a write that depends on the session is tried again when other writers are faster. With each failed try another
/// writer has succeeded. The writers of this process queue (see [`crate::recording::queue`]), so only a thousand writes of
/// other processes in a row exhaust the tries.
pub(crate) const MAX_TRIES: usize = 1_000;

/// The most unread turns that are read with one reply. Older ones are skipped: a session of a hundred thousand turns that
/// another program recorded must not delay a reply.
const MAX_CATCH_UP: u64 = 200;

impl Recording {
    /// Appends turns. If a reply or a tool's result is among them, the same change set also updates the state and the
    /// rolling summary.
    pub(crate) async fn append(
        &self,
        user: &UserId,
        session: &SessionId,
        turns: Vec<NewTurn>,
        idempotency: Option<Idempotency>,
        now: Timestamp,
    ) -> Result<Applied> {
        let first = ChangeSet { idempotency, ..ChangeSet::new(now, Vec::new()) };
        self.append_after(user, (session, None), first, turns).await
    }

    /// As [`Recording::append`], in one change set with `first` and after its changes. A caller that has read the session hands
    /// it over: then `first` expects its version, and a conflict is returned to the caller, who has to read the session again.
    /// Otherwise the write is tried again.
    pub(crate) async fn append_after(
        &self,
        user: &UserId,
        (session, read): (&SessionId, Option<&Session>),
        first: ChangeSet,
        turns: Vec<NewTurn>,
    ) -> Result<Applied> {
        let expects = read.is_some();
        let learning = self.jobs.jobs_for_turns(user, session, &turns, first.at);
        let is_read =
            |turn: &NewTurn| turn.hidden.is_none() && matches!(turn.role, Role::Assistant | Role::Tool);
        if turns.iter().any(is_read) {
            let place = match expects {
                // The caller is in the queue already.
                true => None,
                false => Some(self.queues.enter(user, session).await),
            };
            for _ in 0..TRIES {
                let mut set = first.clone();
                // The turns come first: they create the session, and only a session that exists can be summarised.
                set.changes.push(Change::AppendTurns { session: session.clone(), turns: turns.clone() });
                let before = match read {
                    Some(read) => read.clone(),
                    None => session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?,
                };
                self.observe_into(&mut set, user, before, &turns).await?;
                set.changes.extend(learning.clone());
                match self.store.apply(user, set).await {
                    Err(error) if was_overtaken(&error) && !expects => {}
                    result => return result,
                }
            }
            drop(place);
            tracing::warn!(%session, "many writers write to one session at once; its state is updated with a later reply");
        }
        let mut set = first;
        if !turns.is_empty() {
            set.changes.push(Change::AppendTurns { session: session.clone(), turns });
        }
        set.changes.extend(learning);
        self.store.apply(user, set).await
    }

    /// Adds the other changes that follow from recording `turns` to `set`: the state and the rolling summary.
    async fn observe_into(
        &self,
        set: &mut ChangeSet,
        user: &UserId,
        before: Session,
        turns: &[NewTurn],
    ) -> Result<()> {
        set.expect.push(Expectation::unchanged(&before));
        let Session { id: ref session, turn_count, mut state, .. } = before;
        let read = state.observed.turns.min(turn_count).max(turn_count.saturating_sub(MAX_CATCH_UP));
        if read < turn_count {
            let after = read.checked_sub(1);
            let query =
                TurnQuery::Range { session: session.clone(), after, limit: (turn_count - read) as u32 };
            for turn in self.store.turns(user, &query).await? {
                if turn.hidden.is_none() && turn.seq < turn_count {
                    let Turn { role, name, content, notes, token_count, created_at, .. } = &turn;
                    count_usage(*role, name.as_deref(), content, notes, *token_count, &mut state);
                    let moment = Moment { seq: turn.seq, at: *created_at };
                    self.observe(*role, content, moment, &mut state);
                }
            }
        }
        for (turn, seq) in turns.iter().zip(turn_count..).filter(|(turn, _)| turn.hidden.is_none()) {
            let NewTurn { role, name, content, notes, token_count, created_at, .. } = turn;
            count_usage(*role, name.as_deref(), content, notes, *token_count, &mut state);
            self.observe(*role, content, Moment { seq, at: *created_at }, &mut state);
        }
        state.observed.turns = turn_count + turns.len() as u64;
        let folded = self.fold(user, session, turn_count, turns, &state.observed).await?;
        set.changes.push(Change::PutState { session: session.clone(), state: Box::new(state) });
        set.changes.extend(folded);
        Ok(())
    }

    /// Reads a turn into the state, by the word patterns of the profiles and by the form of checklists.
    fn observe(&self, role: Role, content: &str, moment: Moment, state: &mut State) {
        let PromptRules { settings, rules } = &*self.prompts;
        rules.observe_turn(role, content, moment.seq, &settings.filter, state);
        if matches!(role, Role::User | Role::Assistant) {
            for (task, end) in checklist(content) {
                add_task(state, &task, end, moment);
            }
        }
    }
}

/// The session as it is stored, or an empty one before the first write.
pub(crate) async fn session_now(
    store: &dyn Store,
    clock: &dyn Clock,
    user: &UserId,
    session: &SessionId,
) -> Result<Session> {
    let found = store.session(user, session).await?;
    Ok(found.unwrap_or_else(|| Session::unwritten(session.clone(), clock.now())))
}
