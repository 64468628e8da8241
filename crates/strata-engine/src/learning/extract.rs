//! Extraction: turns become statements, by the model or by the rules.
//!
//! Each session has a progress mark in a space of its own. The change set that stores the learned memories also moves
//! the mark. So each turn is read once, whether by a job, by another job that took it over, or by a caller who waits
//! for the result.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::Timestamp;

use super::Learning;
use super::checked::{EarlierTurn, Sources};
use super::reconcile::{DatedStatement, Target};
use crate::ask::ask;
use crate::jobs::{Ended, JobKind, Work, after, was_overtaken};
use crate::learn::questions::Context;
use crate::learn::rules;
use crate::learn::standalone::Previous;
use crate::learn::{LearnInto, LearnSecrets, Said, Statement, answer, questions};
use crate::prompt::strip_injected;
use crate::recording::left_space;
use strata_core::error::{Error, Result};
use strata_core::id::{LeaseId, SessionId, TurnId, UserId};
use strata_core::job::Job;
use strata_core::memory::MemoryKind;
use strata_core::ports::Spent;
use strata_core::store::{Change, Expectation, TurnQuery, session_space};
use strata_core::turn::{Owner, Role, Turn};
use strata_language::secrets::is_secret;
use strata_language::statements::{is_task_of_another, without_orders, without_secrets};

/// The number of attempts if other writers change the memories in the meantime.
const TRIES: usize = 8;

/// The number of turns before a batch that a model sees for their context.
const CONTEXT_TURNS: u64 = 6;
/// The number of turns before a batch that a reader needs: what each message answers, and what its speaker said before.
const READ_BEFORE: u64 = 3;

/// The detail of a job's result that says why the learning model could not be used.
pub const MODEL_FAILED: &str = "model_failed";

/// The reaction to a model that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnModelFailure {
    /// The job fails and is tried again later.
    Retry,
    /// The rules do the work now.
    UseRules,
}

/// Turns of one session that are learned from together.
pub(super) struct Batch {
    session: SessionId,
    /// The first `seq`, and the one after the last.
    from: u64,
    to: u64,
    /// How often a branch of the session was left when the batch was read. If it is left again in the meantime, the
    /// batch is not learned.
    times_left: u64,
    /// The number of the session's turns when the batch was read.
    turn_count: u64,
    /// The user's visible turns.
    said: Vec<Turn>,
    /// The turn before each of them.
    before: Vec<Previous>,
    /// The assistant's reply that each of them answers.
    replies: Vec<Option<String>>,
    /// The last turns before the batch, for a model.
    earlier: Vec<EarlierTurn>,
    /// The owner of the memories that come from the batch.
    owner: Owner,
}

/// The statements of a batch.
#[derive(Default)]
pub(super) struct Extracted {
    statements: Vec<Statement>,
    /// `rules`, or the name of the model.
    by: String,
    spent: Spent,
    /// Why the configured model could not be used.
    model_failed: Option<String>,
}

impl Learning {
    /// Does an `extract` job and writes its changes. If memories change in the meantime, they are read again; the model
    /// reads the turns only once.
    pub(super) async fn extract_job(&self, job: &Job, lease: LeaseId) -> Result<(Ended, Work)> {
        let Some(session) = &job.session else {
            return Err(Error::invalid("the job names no session; extraction works on one"));
        };
        // The reader does the work at once; the rules know less, so the model gets more time.
        let is_last = self.reader.is_some() || job.attempts >= self.settings.max_attempts.max(1);
        let on_failure = if is_last { OnModelFailure::UseRules } else { OnModelFailure::Retry };
        let mut extracted: Option<([u64; 3], Extracted)> = None;
        let mut overtaken = None;
        // The cost of attempts whose changes could not be written.
        let mut spent = Spent::default();
        for _ in 0..TRIES {
            let Some(batch) = self.batch(&job.user, session).await? else {
                return self.jobs.settle(job, lease, Work { spent, ..Work::default() }).await;
            };
            if let Some(run_at) = self.wait_until(job, &batch) {
                return self.jobs.settle(job, lease, Work { later: Some(run_at), ..Work::default() }).await;
            }
            let known = extracted.take().filter(|(of, _)| *of == batch.read());
            let mut found = match known {
                Some((_, found)) => found,
                None => self.extract(&job.user, &batch, on_failure).await?,
            };
            let mut work = self.learned(&job.user, &batch, &found).await?;
            work.spent += std::mem::take(&mut spent);
            spent = work.spent;
            match self.jobs.settle(job, lease, work).await {
                Err(error) if was_overtaken(&error) => overtaken = Some(error),
                settled => return settled,
            }
            found.spent = Spent::default();
            extracted = Some((batch.read(), found));
        }
        Err(overtaken.unwrap_or_else(|| Error::internal("learning made no progress")))
    }

    /// The next turns of a session to learn from; `None` if there are none. A batch may hold fewer turns than wait,
    /// because it has one owner and no more of the user's turns than a model reads well at once.
    pub(super) async fn batch(&self, user: &UserId, session: &SessionId) -> Result<Option<Batch>> {
        let settings = &self.settings;
        let space = session_space("learn", session);
        let from = self.store.progress(user, &space).await?;
        let times_left = self.recording.times_left(user, session).await?;
        let Some(found) = self.store.session(user, session).await? else { return Ok(None) };
        let limit = settings.batch_turns.max(1);
        // The turns before the batch are read for their context.
        let context = if self.model.is_some() { CONTEXT_TURNS } else { READ_BEFORE };
        let (after, limit) = (from.checked_sub(context + 1), limit.saturating_add(from.min(context) as u32));
        let query = TurnQuery::Range { session: session.clone(), after, limit };
        let turns = self.store.turns(user, &query).await?;
        let most = match &self.model {
            Some(_) => 2 * settings.model_batch.max(1) as usize,
            None => usize::MAX,
        };
        let mut batch = Batch::new(session, from, times_left, found.turn_count);
        let mut before = String::new();
        let mut speaker = None;
        let mut reply = None;
        let mut own = HashMap::new();
        for turn in turns {
            let said_by = (turn.role, turn.name.clone());
            let is_said = turn.role == Role::User
                && turn.hidden.is_none()
                && !strip_injected(&turn.content).trim().is_empty();
            if turn.seq < from {
                before = strip_injected(&turn.content).into_owned();
                reply = is_reply(&turn).then(|| before.clone());
                batch.earlier.extend(earlier(&turn, &before));
                if is_said {
                    own.insert(said_by.clone(), (turn.notes.owner.clone(), before.clone()));
                }
                speaker = Some(said_by);
                continue;
            }
            let owner = &turn.notes.owner;
            if is_said && (batch.said.len() == most || (!batch.said.is_empty() && *owner != batch.owner)) {
                break;
            }
            batch.to = turn.seq + 1;
            let text = strip_injected(&turn.content).into_owned();
            if is_said {
                batch.owner = owner.clone();
                let by_other = speaker.is_some_and(|speaker| speaker != said_by);
                let said_before = own.insert(said_by.clone(), (owner.clone(), text.clone()));
                let own = said_before.filter(|(of, _)| by_other && of == owner).map(|(_, text)| text);
                let text = std::mem::take(&mut before);
                batch.before.push(Previous { text, by_other, own: own.unwrap_or_default() });
                batch.replies.push(reply.take());
                batch.said.push(turn);
            } else {
                reply = is_reply(&turn).then(|| text.clone());
            }
            before = text;
            speaker = Some(said_by);
        }
        Ok((batch.to > batch.from).then_some(batch))
    }

    /// The time until which a batch waits for more turns, so that several turns share one call of the model. `None` if
    /// it is ready.
    fn wait_until(&self, job: &Job, batch: &Batch) -> Option<Timestamp> {
        // A job that comes from a clock that was ahead has waited for long enough.
        let until = match job.created_at > self.clock.now() {
            true => Timestamp::MIN,
            false => after(job.created_at, self.jobs.delay()),
        };
        let is_full =
            batch.said.len() >= self.settings.model_batch.max(1) as usize || batch.to < batch.turn_count;
        (!is_full && self.clock.now() < until).then_some(until)
    }

    /// The statements of a batch. The model finds them. The rules do if there is no model, if the turns lie too far
    /// back, or if the model fails.
    pub(super) async fn extract(
        &self,
        user: &UserId,
        batch: &Batch,
        on_failure: OnModelFailure,
    ) -> Result<Extracted> {
        let settings = &self.settings;
        let texts: Vec<Cow<'_, str>> = batch.said.iter().map(|turn| strip_injected(&turn.content)).collect();
        let said: Vec<Said<'_>> =
            batch.said.iter().zip(&texts).map(|(turn, text)| said(turn, text)).collect();
        let behind = batch.turn_count.saturating_sub(batch.to);
        let mut spent = Spent::default();
        let mut model_failed = None;
        if let Some(model) = self.model.as_ref().filter(|_| behind <= settings.model_backlog)
            && !said.is_empty()
        {
            // A model may obey an order that a pasted text holds, so it does not see one.
            let texts: Vec<Cow<'_, str>> = said.iter().map(|said| without_orders(said.text)).collect();
            let said: Vec<Said<'_>> =
                said.iter().zip(&texts).map(|(said, text)| Said { text, ..*said }).collect();
            let context = Context { earlier: &batch.earlier_lines(), replies: &batch.replies };
            let request = questions::extraction(&said, &context, settings);
            let read = |text: &str| answer::statements(text, &said);
            match ask(model.as_ref(), &request, read, &mut spent).await {
                Ok(mut statements) => {
                    let sources = Sources { said: &said, replies: &batch.replies, earlier: &batch.earlier };
                    let again = self.refuse_unsaid(user, &batch.session, &mut statements, &sources).await;
                    if !again.is_empty() {
                        statements.extend(self.read_without_model(batch, &said, &again).await.0);
                    }
                    let by = model.model().to_owned();
                    return Ok(Extracted { statements, by, spent, model_failed: None });
                }
                Err(error) if error.is_retryable() && on_failure == OnModelFailure::Retry => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(%error, session = %batch.session, "extraction by the model failed; the reader or the rules extract");
                    self.counts.failed();
                    model_failed = Some(error.message().to_owned());
                }
            }
        }
        let all: Vec<usize> = (0..said.len()).collect();
        let (statements, by) = self.read_without_model(batch, &said, &all).await;
        Ok(Extracted { statements, by, spent, model_failed })
    }

    /// The statements of some messages of a batch by the reader or, without one, by the rules; and who found them.
    async fn read_without_model(
        &self,
        batch: &Batch,
        said: &[Said<'_>],
        places: &[usize],
    ) -> (Vec<Statement>, String) {
        if let Some(reader) = &self.reader {
            let with_before: Vec<(Said<'_>, &Previous)> =
                places.iter().map(|place| (said[*place], &batch.before[*place])).collect();
            match self.read(reader.as_ref(), &with_before).await {
                Ok(statements) => return (statements, reader.model().to_owned()),
                Err(error) => {
                    tracing::warn!(%error, session = %batch.session, "the reader failed; the rules extract");
                }
            }
        }
        (places.iter().flat_map(|place| rules::extract(&said[*place])).collect(), "rules".to_owned())
    }

    /// The changes for a batch: the memories, the progress mark of the session, and the jobs that follow.
    pub(super) async fn learned(&self, user: &UserId, batch: &Batch, found: &Extracted) -> Result<Work> {
        let now = self.clock.now();
        let target = Target {
            session: self.bound_to(batch),
            within: batch.session.clone(),
            owner: batch.owner.clone(),
            apart: self.settings.into == LearnInto::Session || self.keeps_apart(user, &batch.owner),
        };
        let plain: Vec<Cow<'_, Statement>> =
            found.statements.iter().filter_map(|statement| self.without_secrets(statement)).collect();
        let skipped = found.statements.len() - plain.len();
        let dated = plain.iter().filter_map(|statement| dated(statement, batch, now)).collect();
        // A model that has just failed is not asked again.
        let without = found.model_failed.as_ref().map(|_| Self { model: None, ..self.clone() });
        let mut work = without.as_ref().unwrap_or(self).reconcile(user, &target, dated).await?;
        work.spent += found.spent;
        work.details.insert("extracted_by".to_owned(), found.by.clone().into());
        if let Some(failure) = &found.model_failed {
            work.details.insert(MODEL_FAILED.to_owned(), failure.clone().into());
        }
        if skipped > 0 {
            work.details.insert("secrets_skipped".to_owned(), skipped.into());
        }
        work.details.insert("turns".to_owned(), vec![batch.from, batch.to].into());
        let space = session_space("learn", &batch.session);
        work.expect.push(Expectation::Progress { space: space.clone(), revision: batch.from });
        let left_space = left_space(&batch.session);
        work.expect.push(Expectation::Progress { space: left_space, revision: batch.times_left });
        work.changes.push(Change::SetProgress { space, revision: batch.to });
        let mut follow =
            |kind, run_at| work.changes.push(self.jobs.enqueue_once(user, &batch.session, kind, run_at, now));
        if batch.to < batch.turn_count {
            follow(JobKind::Extract, now);
        }
        if self.is_over_full(user, &batch.session, batch.turn_count).await? {
            follow(JobKind::Evict, now);
        }
        if self.contexts.needs_compaction(user, &batch.session).await? {
            follow(JobKind::Compact, now);
        }
        if self.summaries.may_need_summary(user, &batch.session, batch.turn_count).await? {
            follow(JobKind::Summarise, after(now, self.jobs.delay()));
        }
        Ok(work)
    }

    /// A statement as it is learned: without its secrets, because a memory is shown to models in all sessions. `None` if it says
    /// nothing else.
    pub(super) fn without_secrets<'a>(&self, statement: &'a Statement) -> Option<Cow<'a, Statement>> {
        if self.settings.secrets != LearnSecrets::Skip || !is_secret(&statement.content) {
            return Some(Cow::Borrowed(statement));
        }
        let content = without_secrets(&statement.content)?;
        Some(Cow::Owned(Statement { content, ..statement.clone() }))
    }

    fn bound_to(&self, batch: &Batch) -> Option<SessionId> {
        match self.settings.into {
            LearnInto::User if !self.binds(&batch.owner) => None,
            LearnInto::User | LearnInto::Session => Some(batch.session.clone()),
        }
    }
}

impl Batch {
    /// A batch without turns, from this `seq` on.
    fn new(session: &SessionId, from: u64, times_left: u64, turn_count: u64) -> Self {
        Self {
            session: session.clone(),
            from,
            to: from,
            times_left,
            turn_count,
            said: Vec::new(),
            before: Vec::new(),
            replies: Vec::new(),
            earlier: Vec::new(),
            owner: Owner::default(),
        }
    }

    /// Identifies the turns that were read. Two batches of the same turns have the same value.
    fn read(&self) -> [u64; 3] {
        [self.from, self.to, self.times_left]
    }

    /// The turns before the batch as a model sees them: who spoke, and what.
    fn earlier_lines(&self) -> Vec<(&'static str, &str)> {
        let line = |turn: &EarlierTurn| if turn.by_user { "user" } else { "assistant" };
        self.earlier.iter().map(|turn| (line(turn), turn.text.as_str())).collect()
    }

    /// The messages of these turns, each after the turn before it, which it may answer or go on with.
    fn heard(&self, turns: &[TurnId]) -> String {
        let mut heard = String::new();
        for (turn, before) in self.said.iter().zip(&self.before) {
            if turns.contains(&turn.id) {
                for text in [before.text.as_str(), &strip_injected(&turn.content)] {
                    heard.push_str(text);
                    heard.push('\n');
                }
            }
        }
        heard
    }

    /// Whether a turn lies in the batch or before it.
    pub(super) fn covers(&self, seq: u64) -> bool {
        self.to > seq
    }

    /// Whether the batch begins after a turn.
    pub(super) fn is_behind(&self, seq: u64) -> bool {
        self.from > seq
    }
}

/// Whether a turn is a visible reply of the assistant.
fn is_reply(turn: &Turn) -> bool {
    turn.role == Role::Assistant && turn.hidden.is_none()
}

/// A turn as context; `None` if it is no visible message of the user or the assistant.
fn earlier(turn: &Turn, text: &str) -> Option<EarlierTurn> {
    let is_said = matches!(turn.role, Role::User | Role::Assistant) && turn.hidden.is_none();
    (is_said && !text.trim().is_empty())
        .then(|| EarlierTurn { by_user: turn.role == Role::User, text: text.to_owned() })
}

fn said<'a>(turn: &'a Turn, text: &'a str) -> Said<'a> {
    Said { turn: turn.id, name: turn.name.as_deref(), text, at: turn.created_at }
}

/// A statement with its time: that of its last turn, but never in the future. A statement that names none of the
/// batch's turns counts as said in all of them. `None` for a statement without content.
fn dated(statement: &Statement, batch: &Batch, now: Timestamp) -> Option<DatedStatement> {
    if statement.content.trim().is_empty() {
        return None;
    }
    let mut statement = statement.clone();
    statement.content = statement.content.trim().to_owned();
    if statement.kind == MemoryKind::Todo && is_task_of_another(&statement.content) {
        statement.kind = MemoryKind::Fact;
    }
    let is_here = |id: &TurnId| batch.said.iter().any(|turn| turn.id == *id);
    statement.turns.retain(is_here);
    if statement.turns.is_empty() {
        statement.turns = batch.said.iter().map(|turn| turn.id).collect();
    }
    let turns = batch.said.iter().filter(|turn| statement.turns.contains(&turn.id));
    let at = turns.map(|turn| turn.created_at).max()?.min(now);
    let heard = batch.heard(&statement.turns);
    Some(DatedStatement { statement, at, heard })
}
