//! The end of an exchange: the reply is recorded once, however often that is tried.

use jiff::Timestamp;

use super::{AwaitedReply, Ending, Exchange, LONGEST_LOOK};
use crate::jobs::{Ended, Work, was_overtaken};
use crate::recording::align::key;
use crate::recording::{MAX_TRIES, Recording, session_now};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{LeaseId, TurnId, UserId};
use strata_core::job::{Job, JobOutcome};
use strata_core::store::{Change, ChangeSet, Expectation, TurnQuery};
use strata_core::turn::{Follows, Hidden, HiddenReason, NewMessage, NewTurn, Role};

impl Recording {
    /// Stores a reply; when the call returns, the reply is durable. An interrupted reply is marked. A failed reply,
    /// and an interrupted reply without text, are hidden from recall.
    pub async fn close_exchange(&self, user: &UserId, exchange: Exchange, ending: Ending) -> Result<()> {
        let now = self.clock.now();
        if self.is_forgotten(user, &exchange) || !self.question_exists(user, &exchange).await? {
            tracing::info!("the question of a reply was forgotten meanwhile; the reply is not recorded");
            let changes = exchange.finishing(JobOutcome::Dropped).into_iter().collect();
            // The job may have been deleted together with the question.
            let _ = self.store.apply(user, ChangeSet::new(now, changes)).await;
            return Ok(());
        }
        let turn = self.reply_turn(&exchange, ending, now)?;
        match self.append_reply(user, &exchange, &turn, now).await {
            // A worker has assumed that this process is dead, and has recorded that the reply was interrupted.
            Err(error) if gave_up(&error) => self.append_late(user, &exchange, turn, now).await,
            result => result,
        }
    }

    /// Appends a reply and removes its job, unless the session has the reply already.
    async fn append_reply(
        &self,
        user: &UserId,
        exchange: &Exchange,
        turn: &NewTurn,
        now: Timestamp,
    ) -> Result<()> {
        let session = &exchange.session;
        let finishing = ChangeSet::new(now, exchange.finishing(JobOutcome::Dropped).into_iter().collect());
        let _place = self.queues.enter(user, session).await;
        let mut tried = 0;
        loop {
            let found = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
            if self.is_forgotten(user, exchange) {
                return Ok(());
            }
            let first = finishing.clone().expecting(Expectation::unchanged(&found));
            let turns = match self.has_reply(user, exchange, found.turn_count, turn).await? {
                true => Vec::new(),
                false => vec![turn.clone()],
            };
            match self.append_after(user, (session, Some(&found)), first, turns).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result.map(drop),
            }
        }
    }

    /// Whether the client has sent the reply back with a later question before it was recorded.
    async fn has_reply(
        &self,
        user: &UserId,
        exchange: &Exchange,
        turn_count: u64,
        reply: &NewTurn,
    ) -> Result<bool> {
        let Some(question) = exchange.question.filter(|_| reply.hidden.is_none()) else { return Ok(false) };
        if question.seq + 1 >= turn_count {
            return Ok(false);
        }
        let wanted = key(reply.role, &reply.content, &reply.notes);
        let turns = self.last_turns(user, &exchange.session, turn_count, LONGEST_LOOK).await?;
        let mut before = None;
        Ok(turns.iter().any(|turn| {
            let before = before.replace(turn.seq);
            let follows = match turn.notes.follows {
                Follows::Previous => before == Some(question.seq),
                Follows::Turn(seq) => seq == question.seq,
                Follows::Nothing => false,
            };
            follows && !turn.notes.interrupted && key(turn.role, &turn.content, &turn.notes) == wanted
        }))
    }

    /// Records a reply whose job has ended: it was written though the store returned an error, or it was given up.
    async fn append_late(
        &self,
        user: &UserId,
        exchange: &Exchange,
        turn: NewTurn,
        now: Timestamp,
    ) -> Result<()> {
        let there = self.store.turns(user, &TurnQuery::Ids(vec![exchange.reply, exchange.late])).await?;
        let found = session_now(self.store.as_ref(), self.clock.as_ref(), user, &exchange.session).await?;
        if there.iter().any(|there| there.content == turn.content)
            || self.has_reply(user, exchange, found.turn_count, &turn).await?
        {
            return Ok(());
        }
        tracing::warn!("a reply came after it had been given up; it is recorded beside the note of that");
        let turn = NewTurn { id: exchange.late, ..turn };
        self.append(user, &exchange.session, vec![turn], None, now).await.map(drop)
    }

    /// Whether the user or the session was forgotten since the exchange began.
    fn is_forgotten(&self, user: &UserId, exchange: &Exchange) -> bool {
        self.forgotten.since(exchange.reply.0, user, Some(&exchange.session))
    }

    /// Whether the question still exists.
    async fn question_exists(&self, user: &UserId, exchange: &Exchange) -> Result<bool> {
        let Some(question) = exchange.question else { return Ok(true) };
        Ok(!self.store.turns(user, &TurnQuery::Ids(vec![question.id])).await?.is_empty())
    }

    fn reply_turn(&self, exchange: &Exchange, ending: Ending, now: Timestamp) -> Result<NewTurn> {
        let error = Some(Hidden { reason: HiddenReason::Error, at: now });
        let mut message = match ending {
            Ending::Complete(message) => message,
            Ending::Interrupted(mut message) => {
                message.notes.interrupted = true;
                if message.content.trim().is_empty() {
                    message.hidden = error;
                }
                message
            }
            Ending::Failed(mut message) => {
                message.hidden = error;
                message
            }
        };
        if let Some(question) = exchange.question {
            message.notes.follows = Follows::Turn(question.seq);
        }
        let turn = self.new_turn(self.fitted(message), now)?;
        Ok(NewTurn { id: exchange.reply, ..turn })
    }

    /// Records that a reply was interrupted because its process has died.
    pub(crate) async fn settle_reply(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let now = self.clock.now();
        let finish = Change::FinishJob { id: job.id, lease, outcome: JobOutcome::Dropped };
        let mut changes = vec![finish];
        if let Ok(awaited) = serde_json::from_value::<AwaitedReply>(job.payload.clone()) {
            let AwaitedReply { session, question, reply } = awaited;
            let ids: Vec<TurnId> = question.iter().map(|question| question.id).chain([reply]).collect();
            let found = self.store.turns(&job.user, &TurnQuery::Ids(ids)).await?;
            // The question may have been forgotten meanwhile. Then no reply is recorded.
            let is_awaited = question.is_none_or(|question| found.iter().any(|turn| turn.id == question.id));
            if is_awaited && !found.iter().any(|turn| turn.id == reply) {
                let message = NewMessage::new(Role::Assistant, "");
                let late = TurnId(self.ids.next());
                let exchange = Exchange { session: session.clone(), question, reply, late, job: job.clone() };
                let turn = self.reply_turn(&exchange, Ending::Interrupted(message), now)?;
                changes.push(Change::AppendTurns { session, turns: vec![turn] });
            }
        }
        self.store.apply(&job.user, ChangeSet::new(now, changes)).await?;
        Ok((Ended::Done, Work::default()))
    }
}

/// Whether an error says that the job of a reply has ended.
fn gave_up(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict => !error.is_retryable(),
        kind => kind == ErrorKind::NotFound,
    }
}
