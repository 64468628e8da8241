//! Records the conversations of a set and asks its questions, each at its time.
//!
//! Each conversation is one user. Users and sessions get neutral names, so that recall does not see the ids of the data.
//! Conversations are recorded concurrently. Questions are asked one after another, so that the latencies are meaningful. A
//! question with `as_of_session` is asked before that session is recorded, which is more exact than any filter.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use strata_core::scope::Scope;
use strata_core::store::{Head, Item};
use strata_core::turn::NewMessage;
use strata_core::{Error, Result, SessionId, TurnId, UserId};
use strata_engine::Engine;
use strata_engine::recall::{Budget, Order, RecallRequest};
use tokio::task::JoinSet;

use crate::clock::EvalClock;
use crate::data::{Conversation, Question, Set, speaker};
use crate::foreign::{Answer, Unanswerable};
use crate::metrics::{Level, Slot, question_metrics, summarise};
use crate::options::Options;
use crate::report::{Ingest, Latency, OrderReport, Report, RunLine};

/// The number of conversations that are recorded concurrently: enough for a store that groups commits.
const CONCURRENT_CONVERSATIONS: usize = 16;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Turns recorded.
    pub turns: usize,
    /// Turns in all.
    pub all_turns: usize,
    /// Questions asked.
    pub questions: usize,
    /// Questions in all.
    pub all_questions: usize,
}

/// Runs a set through `engine`, which must use `clock`, and scores the recalled items.
///
/// The engine's store must not contain an earlier run of the set. The first call that fails ends the run; the error names
/// the place in the data.
pub async fn run(
    engine: Engine,
    clock: Arc<EvalClock>,
    set: &Set,
    options: &Options,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let plans: Vec<Plan> =
        set.conversations.iter().enumerate().map(|(i, c)| Plan::new(set, i, c)).collect::<Result<_>>()?;
    let turns = plans.iter().map(Plan::turns).sum();
    let state = Progress { turns: 0, all_turns: turns, questions: 0, all_questions: set.questions.len() };
    let mut runner = Runner {
        clock,
        engine,
        options,
        progress,
        state,
        turn_ids: HashMap::new(),
        session_turns: HashMap::new(),
        record_calls: Vec::new(),
        recording: Duration::ZERO,
        asked: options.variants().iter().map(|_| OrderResults::new(set.questions.len())).collect(),
        unanswerable: Unanswerable::default(),
    };
    let users: Vec<(UserId, Timestamp)> = plans.iter().map(|plan| (plan.user.clone(), plan.end())).collect();
    for plan in &plans {
        let head = runner.engine.store().head(&plan.user).await?;
        if head != Head::default() {
            return Err(Error::conflict(format!(
                "the store contains an earlier run of set `{}`; use an empty store",
                set.name
            )));
        }
    }
    let (step_by_step, at_once): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(|plan| plan.has_as_of);
    let questions: Vec<_> =
        at_once.iter().flat_map(|plan| plan.all_questions().collect::<Vec<_>>()).collect();
    runner.record_all(at_once).await?;
    for (conversation, user, question) in questions {
        runner.ask(set, conversation, &user, question).await?;
    }
    for plan in step_by_step {
        runner.run_step_by_step(set, plan).await?;
    }
    if options.foreign {
        runner.ask_others(set, &users).await?;
    }
    Ok(runner.report(set))
}

/// The recordings and questions of one conversation.
struct Plan {
    conversation: usize,
    user: UserId,
    place: String,
    sessions: Vec<PlannedSession>,
    /// The latest time of a turn.
    latest: Option<Timestamp>,
    /// The questions to ask before each session and after the last one, as indexes in the set.
    questions: Vec<Vec<(usize, Timestamp)>>,
    has_as_of: bool,
}

struct PlannedSession {
    id: SessionId,
    turn_ids: Vec<String>,
    messages: Vec<NewMessage>,
}

impl Plan {
    fn new(set: &Set, index: usize, conversation: &Conversation) -> Result<Self> {
        let times = conversation.times();
        let latest = times.iter().flatten().flatten().max().copied();
        let mut sessions = Vec::with_capacity(conversation.sessions.len());
        for (number, (session, times)) in conversation.sessions.iter().zip(times).enumerate() {
            let mut planned = PlannedSession {
                id: SessionId::new(format!("{index}-{number}"))?,
                turn_ids: Vec::new(),
                messages: Vec::new(),
            };
            for (turn, time) in session.turns.iter().zip(times) {
                // A turn without text cannot be recorded.
                if turn.text.trim().is_empty() {
                    continue;
                }
                let (role, name) = speaker(&turn.speaker);
                // If no turn has a time, the result must not depend on the time of the run.
                let created_at = Some(time.unwrap_or(Timestamp::UNIX_EPOCH));
                planned.turn_ids.push(turn.turn_id.clone());
                planned.messages.push(NewMessage {
                    name,
                    created_at,
                    ..NewMessage::new(role, turn.text.as_str())
                });
            }
            sessions.push(planned);
        }
        let mut questions = vec![Vec::new(); sessions.len() + 1];
        let mut has_as_of = false;
        let asked = set.questions.iter().enumerate();
        for (i, question) in
            asked.filter(|(_, question)| question.conversation_id == conversation.conversation_id)
        {
            let as_of = question.as_of_session.as_ref();
            let before = as_of
                .and_then(|id| conversation.sessions.iter().position(|session| session.session_id == *id));
            has_as_of |= before.is_some();
            let now = question.question_date.or(latest).unwrap_or(Timestamp::UNIX_EPOCH);
            questions[before.unwrap_or(sessions.len())].push((i, now));
        }
        let user = UserId::new(format!("eval-{}-{index}", set.name))?;
        let place = conversation.place.clone();
        Ok(Self { conversation: index, user, place, sessions, latest, questions, has_as_of })
    }

    /// The time at which the conversation has ended.
    fn end(&self) -> Timestamp {
        self.latest.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn turns(&self) -> usize {
        self.sessions.iter().map(|session| session.messages.len()).sum()
    }

    fn all_questions(&self) -> impl Iterator<Item = (usize, UserId, (usize, Timestamp))> + '_ {
        self.questions.iter().flatten().map(|question| (self.conversation, self.user.clone(), *question))
    }
}

/// A recorded session.
struct RecordedSession {
    conversation: usize,
    id: SessionId,
    turns: Vec<(TurnId, String)>,
    calls: Vec<Duration>,
}

/// Records a session in as few calls as the engine allows.
async fn record(
    engine: &Engine,
    conversation: usize,
    user: &UserId,
    session: PlannedSession,
) -> Result<RecordedSession> {
    let PlannedSession { id, turn_ids, messages } = session;
    let mut recorded = RecordedSession { conversation, id, turns: Vec::new(), calls: Vec::new() };
    let most = engine.settings().limits.max_turns_per_call.max(1);
    let (mut turn_ids, mut messages) = (turn_ids.into_iter(), messages.into_iter());
    loop {
        let batch: Vec<NewMessage> = messages.by_ref().take(most).collect();
        if batch.is_empty() {
            return Ok(recorded);
        }
        let began = Instant::now();
        let answer = engine.recording.record(user, &recorded.id, batch, None).await?;
        recorded.calls.push(began.elapsed());
        recorded.turns.extend(answer.turns.into_iter().map(|turn| turn.id).zip(turn_ids.by_ref()));
    }
}

/// An error with its place in the data.
fn at(place: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("{place}: {}", error.message())).with_source(error)
}

/// The rankings and latencies of one order so far.
struct OrderResults {
    ranked: Vec<Vec<Slot>>,
    calls: Vec<Duration>,
}

impl OrderResults {
    fn new(questions: usize) -> Self {
        Self { ranked: vec![Vec::new(); questions], calls: Vec::with_capacity(questions) }
    }

    fn report(self, set: &Set, order: Order, reranked: bool) -> OrderReport {
        OrderReport {
            order,
            reranked,
            turn: score(set, &self.ranked, Level::Turn),
            session: score(set, &self.ranked, Level::Session),
            latency: Latency::of(self.calls),
            run: std::iter::zip(&set.questions, self.ranked)
                .map(|(question, ranked)| RunLine { question_id: question.question_id.clone(), ranked })
                .collect(),
        }
    }
}

struct Runner<'a> {
    clock: Arc<EvalClock>,
    engine: Engine,
    options: &'a Options,
    progress: &'a mut (dyn FnMut(Progress) + Send),
    state: Progress,
    /// The conversation and the data's id of each recorded turn.
    turn_ids: HashMap<TurnId, (usize, String)>,
    /// The data's ids of each session's turns, by `seq`.
    session_turns: HashMap<SessionId, Vec<String>>,
    record_calls: Vec<Duration>,
    recording: Duration,
    /// By order.
    asked: Vec<OrderResults>,
    unanswerable: Unanswerable,
}

impl Runner<'_> {
    /// Records conversations concurrently, the turns of each in order.
    async fn record_all(&mut self, plans: Vec<Plan>) -> Result<()> {
        let latest = plans.iter().filter_map(|plan| plan.latest).max();
        self.clock.set(latest.unwrap_or(Timestamp::UNIX_EPOCH));
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        let mut plans = plans.into_iter();
        loop {
            while tasks.len() < CONCURRENT_CONVERSATIONS
                && let Some(plan) = plans.next()
            {
                let engine = self.engine.clone();
                tasks.spawn(async move {
                    let mut recorded = Vec::with_capacity(plan.sessions.len());
                    for session in plan.sessions {
                        let session = record(&engine, plan.conversation, &plan.user, session).await;
                        recorded.push(session.map_err(|error| at(&plan.place, error))?);
                    }
                    Ok::<_, Error>(recorded)
                });
            }
            let Some(recorded) = tasks.join_next().await else { break };
            let recorded = recorded
                .map_err(|error| Error::internal("a recording task has panicked").with_source(error))?;
            for session in recorded? {
                self.take(session);
            }
        }
        self.recording += began.elapsed();
        self.settle().await
    }

    /// Finishes all background work, so that the progress of that work does not change the measured recall.
    async fn settle(&self) -> Result<()> {
        if self.options.learn {
            self.engine.learning.learn_all().await?;
        }
        self.engine.maintenance.maintain_all().await
    }

    /// Records a conversation session by session, and asks each question before its session.
    async fn run_step_by_step(&mut self, set: &Set, plan: Plan) -> Result<()> {
        let mut questions = plan.questions.into_iter();
        for session in plan.sessions {
            for question in questions.next().unwrap_or_default() {
                self.ask(set, plan.conversation, &plan.user, question).await?;
            }
            if let Some(latest) = session.messages.iter().filter_map(|message| message.created_at).max() {
                self.clock.set(latest);
            }
            let began = Instant::now();
            let recorded = record(&self.engine, plan.conversation, &plan.user, session).await;
            self.recording += began.elapsed();
            self.settle().await?;
            self.take(recorded.map_err(|error| at(&plan.place, error))?);
        }
        for question in questions.flatten() {
            self.ask(set, plan.conversation, &plan.user, question).await?;
        }
        Ok(())
    }

    fn take(&mut self, recorded: RecordedSession) {
        let RecordedSession { conversation, id, turns, calls } = recorded;
        self.state.turns += turns.len();
        self.record_calls.extend(calls);
        self.session_turns.insert(id, turns.iter().map(|(_, id)| id.clone()).collect());
        self.turn_ids.extend(turns.into_iter().map(|(turn, id)| (turn, (conversation, id))));
        (self.progress)(self.state);
    }

    async fn ask(
        &mut self,
        set: &Set,
        conversation: usize,
        user: &UserId,
        asked: (usize, Timestamp),
    ) -> Result<()> {
        let (index, now) = asked;
        let Some(question) = set.questions.get(index) else { return Ok(()) };
        self.clock.set(now);
        for (position, (order, rerank)) in self.options.variants().into_iter().enumerate() {
            let limit = match order {
                Order::Relevance => self.options.relevance_limit,
                Order::Served => self.options.served_limit,
            };
            let request = RecallRequest {
                scope: Some(Scope::User),
                limit: Some(limit),
                order,
                rerank: self.options.rerank.then_some(rerank),
                // The figures compare rankings: a budget of tokens would measure the length of the answers.
                budget: Some(Budget { max_tokens: u32::MAX, max_turns: limit, max_item_chars: u32::MAX }),
                ..RecallRequest::new(question.question.as_str())
            };
            let began = Instant::now();
            let recalled = self.engine.recall.ask(user, &request).await;
            let took = began.elapsed();
            let recalled = recalled.map_err(|error| at(&question.place, error))?;
            let ranked = recalled.items.iter().map(|found| self.slot(conversation, &found.item));
            let ranked = ranked.collect::<Result<Vec<_>>>().map_err(|error| at(&question.place, error))?;
            if let Some(asked) = self.asked.get_mut(position) {
                asked.calls.push(took);
                asked.ranked[index] = ranked;
            }
        }
        if self.options.foreign {
            let answer = self.answer(user, question).await?;
            if question.is_unanswerable() {
                self.unanswerable.abstention.push(answer);
            } else if question.scored {
                self.unanswerable.own.push(answer);
            }
        }
        self.state.questions += 1;
        (self.progress)(self.state);
        Ok(())
    }

    /// Asks each answerable question of another conversation, which knows nothing about it.
    async fn ask_others(&mut self, set: &Set, users: &[(UserId, Timestamp)]) -> Result<()> {
        let own: HashMap<&str, usize> =
            set.conversations.iter().enumerate().map(|(at, c)| (c.conversation_id.as_str(), at)).collect();
        for question in set.questions.iter().filter(|question| question.scored) {
            let Some(at) = own.get(question.conversation_id.as_str()) else { continue };
            let Some(other) = crate::foreign::stranger_to(&set.conversations, *at) else { continue };
            let (user, end) = &users[other];
            self.clock.set(question.question_date.unwrap_or(*end).max(*end));
            let answer = self.answer(user, question).await?;
            self.unanswerable.foreign.push(answer);
        }
        Ok(())
    }

    /// The best score for a question, and whether anything is served, with the default settings.
    async fn answer(&self, user: &UserId, question: &Question) -> Result<Answer> {
        let ask = async |order: Order| {
            let request = RecallRequest {
                scope: Some(Scope::User),
                order,
                ..RecallRequest::new(question.question.as_str())
            };
            self.engine.recall.ask(user, &request).await.map_err(|error| at(&question.place, error))
        };
        let ranked = ask(Order::Relevance).await?;
        let best = ranked.items.iter().map(|item| item.relevance).fold(0.0, f32::max);
        let served = ask(Order::Served).await?;
        Ok(Answer { best, is_served: !served.items.is_empty() })
    }

    /// The data's ids of the turns from which an item was made.
    fn slot(&self, conversation: usize, item: &Item) -> Result<Slot> {
        let turn = |id: &TurnId| match self.turn_ids.get(id) {
            Some((of, name)) if *of == conversation => Ok(name.clone()),
            _ => Err(Error::internal(format!(
                "recall returned turn `{id}`, which is not of this conversation"
            ))),
        };
        match item {
            Item::Turn(found) => Ok(vec![turn(&found.id)?]),
            Item::Memory(memory) => memory.source_turns.iter().map(turn).collect(),
            Item::Summary(summary) => {
                let turns = self.session_turns.get(&summary.session).map_or(&[][..], Vec::as_slice);
                let range: Range<usize> =
                    summary.start_seq as usize..(summary.end_seq as usize + 1).min(turns.len());
                Ok(turns.get(range).unwrap_or_default().to_vec())
            }
        }
    }

    fn report(self, set: &Set) -> Report {
        let unanswerable = self.options.foreign.then(|| self.unanswerable.report());
        let seconds = self.recording.as_secs_f64();
        let turns_per_second = if seconds > 0.0 { self.state.turns as f64 / seconds } else { 0.0 };
        let variants = self.options.variants().into_iter();
        let orders =
            variants.zip(self.asked).map(|((order, reranked), asked)| asked.report(set, order, reranked));
        Report {
            set: set.name.clone(),
            conversations: set.conversations.len(),
            sessions: set.conversations.iter().map(|conversation| conversation.sessions.len()).sum(),
            turns: self.state.turns,
            questions: set.questions.len(),
            ingest: Ingest { turns_per_second, latency: Latency::of(self.record_calls) },
            orders: orders.collect(),
            foreign: unanswerable,
        }
    }
}

/// The metrics of a run at one level, without the questions that are not scored there.
fn score(set: &Set, ranked: &[Vec<Slot>], level: Level) -> crate::metrics::Summary {
    let sessions: HashMap<&str, HashMap<&str, &str>> = match level {
        Level::Turn => HashMap::new(),
        Level::Session => {
            set.conversations.iter().map(|c| (c.conversation_id.as_str(), c.session_of())).collect()
        }
    };
    let rows = std::iter::zip(&set.questions, ranked).filter_map(|(question, ranked)| {
        let evidence = evidence(question, level);
        if !question.scored || evidence.is_empty() {
            return None;
        }
        let metrics = match sessions.get(question.conversation_id.as_str()) {
            None => question_metrics(ranked, evidence, &question.latest_turns, &question.stale_turns),
            Some(session_of) => {
                let session = |turn: &String| (*session_of.get(turn.as_str()).unwrap_or(&&**turn)).to_owned();
                let slots = ranked.iter().map(|slot| slot.iter().map(session).collect());
                question_metrics(&slots.collect::<Vec<Slot>>(), evidence, &[], &[])
            }
        };
        Some((question.category.as_str(), metrics))
    });
    summarise(&rows.collect::<Vec<_>>())
}

fn evidence(question: &Question, level: Level) -> &[String] {
    match level {
        Level::Turn => &question.evidence_turns,
        Level::Session => question.evidence_sessions.as_deref().unwrap_or_default(),
    }
}
