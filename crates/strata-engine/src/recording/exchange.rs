//! Exchanges: a client's messages and the reply that a model gives, recorded as they happen.
//!
//! [`Recording::open_exchange`] aligns the messages with the session (see [`super::align`]), stores the new ones and
//! enqueues a job that stands for the awaited reply. [`Recording::close_exchange`] stores the reply and removes the
//! job. Each is one change set. The job is under a lease: if the process dies in between, a worker finds the job
//! later and records that the reply was interrupted ([`JobKind::Reply`]). So every reply is recorded, as complete or
//! as interrupted.

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

/// How long a reply is awaited without a renewal by the process that awaits it, unless leases are shorter.
const REPLY_LEASE: SignedDuration = SignedDuration::from_secs(30);

/// How many turns alignment reads first. Nearly every request continues at the end of the session.
const FIRST_LOOK: u64 = 64;

/// How many turns alignment reads if the first ones are not enough to decide.
const LONGEST_LOOK: u64 = 1_024;

/// An awaited reply.
#[derive(Debug, Clone)]
pub struct Exchange {
    session: SessionId,
    /// The turn that the reply follows.
    question: Option<AppendedTurn>,
    reply: TurnId,
    job: Job,
}

/// Who keeps the conversation.
#[derive(Debug, Clone, Copy)]
enum History {
    /// The client, which sends it with every request.
    Sent,
    /// The provider: the client sends new messages only.
    Kept,
}

/// The payload of the job that awaits a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct AwaitedReply {
    session: SessionId,
    question: Option<AppendedTurn>,
    reply: TurnId,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ending {
    /// The reply is complete.
    Complete(NewMessage),
    /// The reply was interrupted; the message holds the part that arrived.
    Interrupted(NewMessage),
    /// The model failed; the message describes the failure.
    Failed(NewMessage),
}

/// The position of new messages at the end of a session. They are known if they are its last turns already.
fn after_all(stored: &[Turn], heard: &[Heard]) -> Alignment {
    let last = stored.iter().rev().map(|turn| Stored::from(turn).key);
    let is_repeated = !heard.is_empty()
        && stored.len() >= heard.len()
        && last.zip(heard.iter().rev()).all(|(stored, heard)| stored == heard.key);
    let after = stored.last().map(|turn| turn.seq);
    let known = if is_repeated { heard.len() } else { 0 };
    Alignment { after, known, abandoned: Vec::new(), is_certain: true }
}

impl Recording {
    /// Stores those of `messages` that the session does not have yet, and a job that stands for the awaited reply.
    /// Sending the same messages again stores nothing twice. Turns on a branch that the client has left are removed
    /// from recall, together with the memories learned from them.
    pub async fn open_exchange(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
    ) -> Result<Exchange> {
        self.exchange(user, session, messages, History::Sent).await
    }

    /// As [`Recording::open_exchange`], for a client that leaves the conversation to its provider and sends only new
    /// messages. They follow the session's last turn. If they are the session's last turns already, without a reply,
    /// the client has repeated its request, and nothing is stored twice.
    pub async fn continue_exchange(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
    ) -> Result<Exchange> {
        self.exchange(user, session, messages, History::Kept).await
    }

    async fn exchange(
        &self,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
        history: History,
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
            let (stored, alignment) = match history {
                History::Sent => self.aligned(user, session, found.turn_count, &heard).await?,
                History::Kept => {
                    let stored = self.last_turns(user, session, found.turn_count, FIRST_LOOK).await?;
                    let alignment = after_all(&stored, &heard);
                    (stored, alignment)
                }
            };
            let mut turns = messages[alignment.known.min(messages.len())..].to_vec();
            // A client may send more messages than one call may store. Only the last ones are stored; the others are
            // too old to matter to recall.
            let most = self.limits.max_turns_per_call;
            turns.drain(..turns.len().saturating_sub(most));
            let opening = Opening { session: &found, stored: &stored, alignment: &alignment };
            match self.open(user, opening, turns, now).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result,
            }
        }
    }

    /// Appends a message whose reply is awaited, without aligning it: for a client that leaves the conversation to
    /// the session.
    pub(crate) async fn open_message(
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
            let stored = self.last_turns(user, session, found.turn_count, FIRST_LOOK).await?;
            let after = stored.last().map(|turn| turn.seq);
            let alignment = Alignment { after, known: 0, abandoned: Vec::new(), is_certain: true };
            let opening = Opening { session: &found, stored: &stored, alignment: &alignment };
            match self.open(user, opening, vec![turn.clone()], now).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result,
            }
        }
    }

    /// Appends turns to a session as it was read, and enqueues the job for the reply. Memories learned on an
    /// abandoned branch are taken back.
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

    /// The visible turns among a session's last `looked` turns.
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

    /// Enough of the session's visible turns to decide, and the position of the messages among them.
    async fn aligned(
        &self,
        user: &UserId,
        session: &SessionId,
        turn_count: u64,
        heard: &[Heard],
    ) -> Result<(Vec<Turn>, Alignment)> {
        let mut looked = FIRST_LOOK;
        loop {
            let first = turn_count.saturating_sub(looked);
            let turns = self.last_turns(user, session, turn_count, looked).await?;
            let stored: Vec<Stored> = turns.iter().map(Stored::from).collect();
            let alignment = align(&stored, heard);
            if alignment.is_certain || first == 0 || looked >= LONGEST_LOOK {
                return Ok((turns, alignment));
            }
            looked = LONGEST_LOOK;
        }
    }

    /// The exchange, and the change set that opens it, still without the turns.
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
        let awaited = AwaitedReply { session: session.id.clone(), question, reply: TurnId(self.ids.next()) };
        let job = self.reply_job(user, &awaited, now);
        let mut first = ChangeSet::one(now, Change::EnqueueJob(Box::new(job.clone())))
            .expecting(Expectation::unchanged(session));
        if !left.is_empty() {
            let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: now });
            first.changes.push(Change::HideTurns { ids: left, hidden });
        }
        let AwaitedReply { session, question, reply } = awaited;
        (Exchange { session, question, reply, job }, first)
    }

    fn reply_job(&self, user: &UserId, awaited: &AwaitedReply, now: Timestamp) -> Job {
        Job {
            id: JobId(self.ids.next()),
            user: user.clone(),
            // The job locks no session: learning from the session continues while a reply arrives.
            session: None,
            kind: JobKind::Reply.as_str().to_owned(),
            payload: serde_json::to_value(awaited).unwrap_or(Value::Null),
            status: JobStatus::Leased,
            attempts: 0,
            run_at: now,
            lease: Some(Lease {
                id: LeaseId(self.ids.next()),
                worker: JobKind::Reply.as_str().to_owned(),
                until: later(now, self.reply_lease()),
            }),
            last_error: None,
            result: None,
            created_at: now,
            updated_at: now,
        }
    }

    fn reply_lease(&self) -> SignedDuration {
        REPLY_LEASE.min(SignedDuration::from_secs(self.jobs.settings.lease_secs.into()))
    }

    /// How often [`Recording::hold_exchange`] has to be called while a reply takes long.
    pub fn exchange_hold(&self) -> std::time::Duration {
        self.reply_lease().unsigned_abs() / 3
    }

    /// Renews the lease: the reply is still awaited.
    pub async fn hold_exchange(&self, user: &UserId, exchange: &mut Exchange) -> Result<()> {
        let now = self.clock.now();
        let mut job = exchange.job.clone();
        let Some(lease) = &mut job.lease else { return Ok(()) };
        lease.until = later(now, self.reply_lease());
        let again = Change::EnqueueJob(Box::new(job.clone()));
        let changes = exchange.finishing(JobOutcome::Dropped).into_iter().chain([again]).collect();
        self.store.apply(user, ChangeSet::new(now, changes)).await?;
        exchange.job = job;
        Ok(())
    }

    /// Stores a reply; when the call returns, the reply is durable. An interrupted reply is marked. A failed reply,
    /// and an interrupted reply without text, are hidden from recall.
    pub async fn close_exchange(&self, user: &UserId, exchange: Exchange, ending: Ending) -> Result<()> {
        let now = self.clock.now();
        let session = &exchange.session;
        if !self.question_exists(user, &exchange).await? {
            tracing::info!("the question of a reply was forgotten meanwhile; the reply is not recorded");
            let changes = exchange.finishing(JobOutcome::Dropped).into_iter().collect();
            // The job may have been deleted together with the question.
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
            // A worker has assumed that this process is dead, and has recorded that the reply was interrupted.
            Err(error) if gave_up(&error) => {
                let there = self.store.turns(user, &TurnQuery::Ids(vec![turn.id])).await?;
                if there.iter().any(|there| there.content == turn.content) {
                    // The reply had been written, though the store returned an error.
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
                let exchange = Exchange { session: session.clone(), question, reply, job: job.clone() };
                let turn = self.reply_turn(&exchange, Ending::Interrupted(message), now)?;
                changes.push(Change::AppendTurns { session, turns: vec![turn] });
            }
        }
        self.store.apply(&job.user, ChangeSet::new(now, changes)).await?;
        Ok((Ended::Done, Work::default()))
    }

    /// Makes a message of any client or model storable: its content has no NUL character and is not longer than a
    /// turn may be, and other parts that a turn cannot store are left out.
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

/// The parts of a session that were read to open an exchange in it.
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
