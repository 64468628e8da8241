//! Exchanges: a client's messages and the reply that a model gives, recorded as they happen.
//!
//! [`Recording::open_exchange`] aligns the messages with the session (see [`super::align`]), stores the new ones and
//! enqueues a job that stands for the awaited reply. [`Recording::close_exchange`] stores the reply and removes the
//! job. Each is one change set. The job is under a lease: if the process dies in between, a worker finds the job
//! later and records that the reply was interrupted ([`JobKind::Reply`]). So every reply is recorded, as complete or
//! as interrupted.
//!
//! Both steps may be repeated if the store fails, also if it has written and could not say so. The ids of an exchange
//! ([`ExchangeIds`]) are made before the first attempt, so a repeated attempt finds what an earlier one has written. A
//! client that is faster than the disk sends the reply back with its next question before the reply is recorded; then
//! the reply is there already, and is not recorded a second time.

mod closing;

use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Recording;
use super::align::{Alignment, Heard, Stored, align, align_again, key};
use super::{MAX_TRIES, session_now};
use crate::jobs::{JobKind, was_overtaken};
use strata_core::error::{Error, ErrorKind, Result};
use strata_core::id::{JobId, LeaseId, SessionId, TurnId, UserId};
use strata_core::job::{Job, JobOutcome, JobStatus, Lease};
use strata_core::nul::MayHoldNul;
use strata_core::session::Session;
use strata_core::store::{AppendedTurn, Change, ChangeSet, Expectation, JobQuery, TurnQuery};
use strata_core::turn::{Follows, Hidden, HiddenReason, Metadata, NewMessage, NewTurn, Turn};

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
    late: TurnId,
    job: Job,
}

/// The ids of an exchange. They are made before the first attempt to open it, so that an attempt that seemed to fail is
/// recognised.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExchangeIds {
    reply: TurnId,
    /// The id of a reply that comes after it has been given up.
    late: TurnId,
    job: JobId,
    lease: LeaseId,
    is_tried: bool,
}

impl ExchangeIds {
    /// Ids for the first attempt.
    pub fn new(next: impl Fn() -> uuid::Uuid) -> Self {
        Self {
            reply: TurnId(next()),
            late: TurnId(next()),
            job: JobId(next()),
            lease: LeaseId(next()),
            is_tried: false,
        }
    }

    /// The same ids, for an attempt after one whose outcome is not known.
    pub fn tried(self) -> Self {
        Self { is_tried: true, ..self }
    }
}

/// Who keeps the conversation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum KeptBy {
    /// The client, which sends it with every request.
    Client,
    /// The provider: the client sends new messages only.
    Provider,
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
        self.exchange(self.exchange_ids(), user, session, messages, KeptBy::Client).await
    }

    /// The ids of a new exchange.
    pub fn exchange_ids(&self) -> ExchangeIds {
        ExchangeIds::new(|| self.ids.next())
    }

    /// As [`Recording::open_exchange`], with ids that were made before: an exchange that an earlier attempt has opened is
    /// returned as it is. If the provider keeps the conversation ([`KeptBy::Provider`]), the client sends only new messages,
    /// which follow the session's last turn. If they are the session's last turns already, without a reply, the client
    /// has repeated its request, and nothing is stored twice.
    pub async fn open_exchange_as(
        &self,
        ids: ExchangeIds,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
        keeper: KeptBy,
    ) -> Result<Exchange> {
        if !ids.is_tried {
            return self.exchange(ids, user, session, messages, keeper).await;
        }
        self.still_wanted(ids, user, session)?;
        if let Some(opened) = self.opened_before(ids, user, session).await? {
            return Ok(opened);
        }
        match self.exchange(ids, user, session, messages, keeper).await {
            // The earlier attempt was still under way.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.opened_before(ids, user, session).await?.ok_or(error)
            }
            opened => opened,
        }
    }

    /// *Not found* if the user or the session was forgotten after an exchange had begun: it must not bring them back.
    fn still_wanted(&self, ids: ExchangeIds, user: &UserId, session: &SessionId) -> Result<()> {
        match self.forgotten.since(ids.reply.0, user, Some(session)) {
            true => Err(Error::not_found("the session of a chat was forgotten while the chat was under way")),
            false => Ok(()),
        }
    }

    /// The exchange that an earlier attempt with the same ids has opened.
    async fn opened_before(
        &self,
        ids: ExchangeIds,
        user: &UserId,
        session: &SessionId,
    ) -> Result<Option<Exchange>> {
        let query = JobQuery { id: Some(ids.job), limit: 1, ..JobQuery::default() };
        let job = self.store.jobs(user, &query).await?.pop();
        let awaited = job.as_ref().and_then(|job| serde_json::from_value(job.payload.clone()).ok());
        let (job, question) = match (job, awaited) {
            (Some(job), Some(AwaitedReply { question, .. })) => (job, question),
            _ => {
                // A worker may have given the reply up meanwhile.
                let is_given_up = !self.store.turns(user, &TurnQuery::Ids(vec![ids.reply])).await?.is_empty();
                let awaited = AwaitedReply { session: session.clone(), question: None, reply: ids.reply };
                let job = self.reply_job(ids, user, &awaited, self.clock.now());
                return Ok(is_given_up.then(|| Exchange::new(ids, session.clone(), None, job)));
            }
        };
        // A worker may hold it under another lease; then this one has ended.
        let lease = job.lease.clone().map(|lease| Lease { id: ids.lease, ..lease });
        Ok(Some(Exchange::new(ids, session.clone(), question, Job { lease, ..job })))
    }

    async fn exchange(
        &self,
        ids: ExchangeIds,
        user: &UserId,
        session: &SessionId,
        messages: &[NewMessage],
        keeper: KeptBy,
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
            self.still_wanted(ids, user, session)?;
            let (stored, alignment) = match keeper {
                KeptBy::Client if ids.is_tried => self.aligned_again(ids, user, &found, &heard).await?,
                KeptBy::Client => self.aligned(user, session, found.turn_count, &heard).await?,
                KeptBy::Provider => {
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
            match self.open(ids, user, opening, turns, now).await {
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
        let ids = self.exchange_ids();
        let _place = self.queues.enter(user, session).await;
        let mut tried = 0;
        loop {
            let found = session_now(self.store.as_ref(), self.clock.as_ref(), user, session).await?;
            let stored = self.last_turns(user, session, found.turn_count, FIRST_LOOK).await?;
            let after = stored.last().map(|turn| turn.seq);
            let alignment = Alignment { after, known: 0, abandoned: Vec::new(), is_certain: true };
            let opening = Opening { session: &found, stored: &stored, alignment: &alignment };
            match self.open(ids, user, opening, vec![turn.clone()], now).await {
                Err(error) if was_overtaken(&error) && tried < MAX_TRIES => tried += 1,
                result => return result,
            }
        }
    }

    /// Appends turns to a session as it was read, and enqueues the job for the reply. Memories learned on an
    /// abandoned branch are taken back.
    async fn open(
        &self,
        ids: ExchangeIds,
        user: &UserId,
        opening: Opening<'_>,
        mut turns: Vec<NewTurn>,
        now: Timestamp,
    ) -> Result<Exchange> {
        let Opening { session, stored, alignment } = opening;
        let left: Vec<&Turn> = stored.iter().filter(|turn| alignment.abandoned.contains(&turn.seq)).collect();
        let (exchange, mut first) = self.opened(ids, user, opening, &mut turns, now);
        self.unlearn_into(&mut first, user, &session.id, &left).await?;
        let applied = self.append_after(user, (&session.id, Some(session)), first, turns).await?;
        self.recorded.fetch_add(applied.turns.len() as u64, Ordering::Relaxed);
        Ok(exchange)
    }

    /// The turns of the conversation among a session's last `looked` turns. Evicted ones belong to it: a client still sends
    /// them.
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
        turns.retain(|turn| turn.is_in_conversation() && turn.seq < turn_count);
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

    /// As [`Recording::aligned`], for messages of an earlier attempt. Later chats may have been recorded before it, with
    /// the same messages and more, so that it looks like a client that has gone back. It has not: nothing is abandoned.
    async fn aligned_again(
        &self,
        ids: ExchangeIds,
        user: &UserId,
        session: &Session,
        heard: &[Heard],
    ) -> Result<(Vec<Turn>, Alignment)> {
        let turns = self.last_turns(user, &session.id, session.turn_count, LONGEST_LOOK).await?;
        let stored: Vec<Stored> = turns.iter().map(Stored::from).collect();
        let later = turns.iter().find(|turn| turn.id > ids.reply).map(|turn| turn.seq);
        let alignment = align_again(&stored, heard, later);
        Ok((turns, alignment))
    }

    /// The exchange, and the change set that opens it, still without the turns.
    fn opened(
        &self,
        ids: ExchangeIds,
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
        let awaited = AwaitedReply { session: session.id.clone(), question, reply: ids.reply };
        let job = self.reply_job(ids, user, &awaited, now);
        let mut first = ChangeSet::one(now, Change::EnqueueJob(Box::new(job.clone())))
            .expecting(Expectation::unchanged(session));
        if !left.is_empty() {
            let hidden = Some(Hidden { reason: HiddenReason::Abandoned, at: now });
            first.changes.push(Change::HideTurns { ids: left, hidden });
        }
        (Exchange::new(ids, awaited.session, question, job), first)
    }

    fn reply_job(&self, ids: ExchangeIds, user: &UserId, awaited: &AwaitedReply, now: Timestamp) -> Job {
        Job {
            id: ids.job,
            user: user.clone(),
            // The job locks no session: learning from the session continues while a reply arrives.
            session: None,
            kind: JobKind::Reply.as_str().to_owned(),
            payload: serde_json::to_value(awaited).unwrap_or(Value::Null),
            status: JobStatus::Leased,
            attempts: 0,
            run_at: now,
            lease: Some(Lease {
                id: ids.lease,
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
    fn new(ids: ExchangeIds, session: SessionId, question: Option<AppendedTurn>, job: Job) -> Self {
        Self { session, question, reply: ids.reply, late: ids.late, job }
    }

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
