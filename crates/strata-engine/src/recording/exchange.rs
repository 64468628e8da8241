//! Exchanges: a client's messages and the reply that a model gives, recorded as they happen.
//!
//! [`Recording::open_exchange`] aligns the messages with the session (see [`super::align`]), stores what is new and notes that
//! a reply is awaited; [`Recording::close_exchange`] stores the reply and takes the note back, in one change set each. The
//! note is a job under a lease: when the process dies in between, whoever works on jobs next finds it and records that the
//! reply was interrupted ([`JobKind::Reply`]). So a reply whose end somebody saw is recorded, and of every other one
//! it is known that it broke off.

use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Recording;
use super::align::{Alignment, Heard, Stored, align, key};
use super::{MAX_TRIES, session_now};
use crate::jobs::{Ended, JobKind, Work, was_overtaken};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{JobId, LeaseId, SessionId, TurnId, UserId};
use strata_core::job::{Job, JobOutcome, JobStatus, Lease};
use strata_core::nul::MayHoldNul;
use strata_core::session::Session;
use strata_core::store::{AppendedTurn, Change, ChangeSet, Expectation, TurnQuery};
use strata_core::turn::{Follows, Hidden, HiddenReason, Metadata, NewMessage, NewTurn, Role, Turn};

/// How long a reply is awaited without a sign of life of the process that awaits it, unless leases are shorter.
const HELD: SignedDuration = SignedDuration::from_secs(30);

/// How many turns alignment looks at first. Nearly every request continues where the session ends.
const NEAR: u64 = 64;

/// How many turns it looks at where those do not settle it.
const FAR: u64 = 1_024;

/// A reply that is awaited.
#[derive(Debug, Clone)]
pub struct Exchange {
    session: SessionId,
    /// The turn that the reply follows.
    question: Option<AppendedTurn>,
    reply: TurnId,
    job: Job,
}

/// What the job that awaits a reply carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Awaited {
    session: SessionId,
    question: Option<AppendedTurn>,
    reply: TurnId,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Whole.
    Complete(NewMessage),
    /// Broken off: what came of it.
    Interrupted(NewMessage),
    /// The model failed: what there is to say about it.
    Failed(NewMessage),
}

impl Recording {
    /// Stores what of `messages` the session does not have yet, and that a reply to them is awaited. Asking the same again
    /// stores nothing twice; what was said on a branch that the client has left leaves recall, with what was learned from it.
    pub async fn open_exchange(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
    ) -> Result<Exchange> {
        let now = self.clock.now();
        let messages = messages.iter().map(|message| self.fitted(message.clone())).collect();
        let messages = self.new_turns(messages, now).await?;
        let heard: Vec<Heard> = messages
            .iter()
            .map(|turn| Heard { key: key(turn.role, &turn.content, &turn.notes), role: turn.role })
            .collect();
        let _place = self.queues.enter(user, session).await;
        let mut tried = 0;
        loop {
            let found = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
            let (stored, alignment) = self.aligned(user, session, found.turn_count, &heard).await?;
            let mut turns = messages[alignment.known.min(messages.len())..].to_vec();
            // A client may send more than a call may; the rest would not be recalled before it is old anyway.
            let most = self.limits.max_turns_per_call;
            turns.drain(..turns.len().saturating_sub(most));
            let opening = Opening { session: &found, stored: &stored, alignment: &alignment };
            match self.open(user, opening, turns, now).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result,
            }
        }
    }

    /// Appends a message whose reply is awaited, whatever it says: for a client that leaves the conversation to the session.
    pub async fn open_message(
        &self,
        user: &UserId,
        session: &SessionId,
        message: NewMessage,
    ) -> Result<Exchange> {
        let now = self.clock.now();
        let turn = self.new_turn(message, now)?;
        let _place = self.queues.enter(user, session).await;
        let mut tried = 0;
        loop {
            let found = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
            let stored = self.last_turns(user, session, found.turn_count, NEAR).await?;
            let after = stored.last().map(|turn| turn.seq);
            let alignment = Alignment { after, known: 0, abandoned: Vec::new(), is_certain: true };
            let opening = Opening { session: &found, stored: &stored, alignment: &alignment };
            match self.open(user, opening, vec![turn.clone()], now).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result,
            }
        }
    }

    /// Appends turns to a session as it was found, and notes that a reply is awaited; what was learned on a branch that is
    /// left is taken back.
    async fn open(
        &self,
        user: &UserId,
        opening: Opening<'_>,
        mut turns: Vec<NewTurn>,
        now: Timestamp,
    ) -> Result<Exchange> {
        let Opening { session, stored, alignment } = opening;
        let left: Vec<&Turn> = stored.iter().filter(|turn| alignment.abandoned.contains(&turn.seq)).collect();
        let (exchange, mut first) = self.opened(user, opening, &mut turns, now);
        self.unlearn_into(&mut first, user, &session.id, &left).await?;
        let applied = self.append_after(user, &session.id, first, turns).await?;
        self.recorded.fetch_add(applied.turns.len() as u64, Ordering::Relaxed);
        Ok(exchange)
    }

    /// The visible ones of a session's last turns.
    async fn last_turns(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
        looked: u64,
    ) -> Result<Vec<Turn>> {
        if turn_count == 0 {
            return Ok(Vec::new());
        }
        let first = turn_count.saturating_sub(looked);
        let query =
            TurnQuery::Range { session: session.clone(), after: first.checked_sub(1), limit: looked as u32 };
        let mut turns = self.store.turns(user, &query).await?;
        turns.retain(|turn| turn.hidden.is_none() && turn.seq < turn_count);
        Ok(turns)
    }

    /// The session's visible turns, as many as it takes, and where the messages stand in them.
    async fn aligned(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
        heard: &[Heard],
    ) -> Result<(Vec<Turn>, Alignment)> {
        let mut looked = NEAR;
        loop {
            let first = turn_count.saturating_sub(looked);
            let turns = self.last_turns(user, session, turn_count, looked).await?;
            let stored: Vec<Stored> = turns.iter().map(Stored::from).collect();
            let alignment = align(&stored, heard);
            if alignment.is_certain || first == 0 || looked >= FAR {
                return Ok((turns, alignment));
            }
            looked = FAR;
        }
    }

    /// The exchange, and the change set that opens it, without its turns.
    fn opened(
        &self,
        user: &UserId,
        opening: Opening<'_>,
        turns: &mut [NewTurn],
        now: Timestamp,
    ) -> (Exchange, ChangeSet) {
        let Opening { session, stored, alignment } = opening;
        let is_left = |turn: &&Turn| alignment.abandoned.contains(&turn.seq);
        let left: Vec<TurnId> = stored.iter().filter(is_left).map(|turn| turn.id).collect();
        let last_visible = stored.iter().rfind(|turn| !is_left(turn)).map(|turn| turn.seq);
        if let Some(first) = turns.first_mut() {
            first.notes.follows = match alignment.after {
                after if after == last_visible && after.is_some() => Follows::Previous,
                Some(seq) => Follows::Turn(seq),
                None => Follows::Nothing,
            };
        }
        let question = match turns.last() {
            Some(turn) => {
                Some(AppendedTurn { id: turn.id, seq: session.turn_count + turns.len() as u64 - 1 })
            }
            None => stored
                .iter()
                .find(|turn| Some(turn.seq) == alignment.after)
                .map(|turn| AppendedTurn { id: turn.id, seq: turn.seq }),
        };
        let awaited = Awaited { session: session.id.clone(), question, reply: TurnId(self.ids.next()) };
        let job = self.reply_job(user, &awaited, now);
        let mut first = ChangeSet::one(now, Change::EnqueueJob(Box::new(job.clone())))
            .expecting(Expectation::unchanged(session));
        if !left.is_empty() {
            let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: now });
            first.changes.push(Change::HideTurns { ids: left, hidden });
        }
        let Awaited { session, question, reply } = awaited;
        (Exchange { session, question, reply, job }, first)
    }

    fn reply_job(&self, user: &UserId, awaited: &Awaited, now: Timestamp) -> Job {
        Job {
            id: JobId(self.ids.next()),
            user: user.clone(),
            // It holds no session: learning from one goes on while a reply comes in.
            session: None,
            kind: JobKind::Reply.as_str().to_owned(),
            payload: serde_json::to_value(awaited).unwrap_or(Value::Null),
            status: JobStatus::Leased,
            attempts: 0,
            run_at: now,
            lease: Some(Lease {
                id: LeaseId(self.ids.next()),
                worker: JobKind::Reply.as_str().to_owned(),
                until: later(now, self.held()),
            }),
            last_error: None,
            result: None,
            created_at: now,
            updated_at: now,
        }
    }

    fn held(&self) -> SignedDuration {
        HELD.min(SignedDuration::from_secs(self.jobs.settings.lease_secs.into()))
    }

    /// How often a reply that takes long has to be awaited anew, see [`Recording::hold_exchange`].
    pub fn exchange_hold(&self) -> std::time::Duration {
        self.held().unsigned_abs() / 3
    }

    /// Says that the reply is still awaited.
    pub async fn hold_exchange(&self, user: &UserId, exchange: &mut Exchange) -> Result<()> {
        let now = self.clock.now();
        let mut job = exchange.job.clone();
        let Some(lease) = &mut job.lease else { return Ok(()) };
        lease.until = later(now, self.held());
        let again = Change::EnqueueJob(Box::new(job.clone()));
        let changes = exchange.finishing(JobOutcome::Dropped).into_iter().chain([again]).collect();
        self.store.apply(user, ChangeSet::new(now, changes)).await?;
        exchange.job = job;
        Ok(())
    }

    /// Stores a reply; when it returns, the reply is durable. A reply that broke off is marked, and where nothing of it
    /// came it is not recalled, as one that failed.
    pub async fn close_exchange(&self, user: &UserId, exchange: Exchange, ending: Ending) -> Result<()> {
        let now = self.clock.now();
        let session = &exchange.session;
        if !self.is_still_asked(user, &exchange).await? {
            tracing::info!("a reply came to a question that was forgotten meanwhile; it is not recorded");
            let changes = exchange.finishing(JobOutcome::Dropped).into_iter().collect();
            // The note may be gone with the question.
            let _ = self.store.apply(user, ChangeSet::new(now, changes)).await;
            return Ok(());
        }
        let turn = self.reply_turn(&exchange, ending, now)?;
        let first = ChangeSet::new(now, exchange.finishing(JobOutcome::Dropped).into_iter().collect());
        let gave_up = |error: &Error| match error.kind() {
            ErrorKind::Conflict => !error.is_retryable(),
            kind => kind == ErrorKind::NotFound,
        };
        match self.append_after(user, session, first, vec![turn.clone()]).await {
            Ok(_) => Ok(()),
            // Somebody took this process for dead, and has noted that the reply was interrupted.
            Err(error) if gave_up(&error) => {
                let there = self.store.turns(user, &TurnQuery::Ids(vec![turn.id])).await?;
                if there.iter().any(|there| there.content == turn.content) {
                    // It had been written, though the store could not say so.
                    return Ok(());
                }
                tracing::warn!(
                    "a reply came after it had been given up; it is recorded beside the note of that"
                );
                let turn = NewTurn { id: TurnId(self.ids.next()), ..turn };
                self.append(user, session, vec![turn], None, now).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the question has not been forgotten.
    async fn is_still_asked(&self, user: &UserId, exchange: &Exchange) -> Result<bool> {
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

    /// Records that a reply was interrupted whose process has died.
    pub(crate) async fn settle_reply(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let now = self.clock.now();
        let finish = Change::FinishJob { id: job.id, lease, outcome: JobOutcome::Dropped };
        let mut changes = vec![finish];
        if let Ok(awaited) = serde_json::from_value::<Awaited>(job.payload.clone()) {
            let Awaited { session, question, reply } = awaited;
            let ids: Vec<TurnId> = question.iter().map(|question| question.id).chain([reply]).collect();
            let found = self.store.turns(&job.user, &TurnQuery::Ids(ids)).await?;
            // The question may have been forgotten meanwhile: then there is nothing to reply to.
            let is_awaited = question.is_none_or(|question| found.iter().any(|turn| turn.id == question.id));
            if is_awaited && !found.iter().any(|turn| turn.id == reply) {
                let message = NewMessage::new(Role::Assistant, "");
                let exchange = Exchange { session: session.clone(), question, reply, job: job.clone() };
                let turn = self.reply_turn(&exchange, Ending::Interrupted(message), now)?;
                changes.push(Change::AppendTurns { session, turns: vec![turn] });
            }
        }
        self.store.apply(&job.user, ChangeSet::new(now, changes)).await?;
        Ok((Ended::Done, Work::default()))
    }

    /// A message that can be recorded whatever a client or a model sent: its content has no NUL character and is not longer
    /// than a turn may be, and other parts that a turn cannot keep are left out.
    fn fitted(&self, mut message: NewMessage) -> NewMessage {
        let most = self.limits.max_turn_bytes;
        message.content = message.content.replace('\0', "\u{fffd}");
        if message.content.len() > most {
            let end = (0..=most).rev().find(|end| message.content.is_char_boundary(*end)).unwrap_or(0);
            message.content.truncate(end);
            message.notes.truncated = true;
        }
        if self.limits.check_metadata("`metadata`", &message.metadata).is_err() {
            message.metadata = Metadata::new();
        }
        if self.check_notes(&message.notes).is_err() {
            message.notes.tool_calls = Vec::new();
            message.notes.tool_call_id = None;
        }
        message.name = message.name.filter(|name| !name.holds_nul());
        message.name = message.name.map(|name| name.chars().take(super::record::MAX_SPEAKER_CHARS).collect());
        message
    }
}

/// What was read of a session to open an exchange in it.
#[derive(Clone, Copy)]
struct Opening<'a> {
    session: &'a Session,
    stored: &'a [Turn],
    alignment: &'a Alignment,
}

impl Exchange {
    /// The turn that the reply follows.
    pub fn question(&self) -> Option<AppendedTurn> {
        self.question
    }

    fn finishing(&self, outcome: JobOutcome) -> Option<Change> {
        let lease = self.job.lease.as_ref()?.id;
        Some(Change::FinishJob { id: self.job.id, lease, outcome })
    }
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
