//! Reconciliation: decides what happens to new statements and to the memories near them, and writes it as one change
//! set.
//!
//! The model or the rules make a plan. This module applies it, in the same way for both:
//!
//! - Statements that differ from a memory only in spelling are duplicates. Neither the model nor the rules are asked.
//! - A memory that a statement ends is closed at the time of the statement, not at the time of learning, so that as-of
//!   reads return the belief of that time. The memory stays stored and names its replacement.
//! - A statement that is older than the memory it contradicts does not win. (A session may be read late.) It is added
//!   as history, closed by the newer memory.
//! - A statement that is known already is not added again. Its turns join the memory's source turns, so that forgetting
//!   the first of them does not remove the memory.
//! - The statements of one batch are applied one after the other, so that a later one may end an earlier one.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Map;

use super::Learning;
use crate::ask::ask;
use crate::jobs::{Event, InferredEvent, Work};
use crate::learn::rules;
use crate::learn::{Statement, answer, questions};
use crate::recall::{Order, RecallRequest};
use strata_core::error::Result;
use strata_core::id::{MemoryId, RequestId, SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryNotes, TodoState};
use strata_core::ports::{Clock, Spent};
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{CLOCK_SLACK, Change, Expectation, Item, ItemKinds};
use strata_core::turn::Owner;
use strata_language::normalised;
use strata_language::plan::{Fate, Novelty, Plan, TodoEnd};
use strata_language::statements::is_same_fact;

/// The most memories that are searched for each statement. The rules read all of them. An equal memory is among them,
/// because it is the most relevant one.
const MAX_NEIGHBOURS: u32 = 20;

/// The most statements whose neighbours a model sees in one batch. A small model does not enumerate more of them
/// reliably.
const MAX_SHOWN_STATEMENTS: usize = 4;

/// A statement and the time at which it was said.
#[derive(Debug, Clone)]
pub(super) struct DatedStatement {
    pub(super) statement: Statement,
    pub(super) at: Timestamp,
    /// The messages from which it was learned, each with the turn that it answers.
    pub(super) heard: String,
}

/// The owner and the session of new memories.
pub(super) struct Target {
    /// The session that the memories are bound to.
    pub(super) session: Option<SessionId>,
    /// The session in which the statements were said.
    pub(super) within: SessionId,
    /// The owner of the memories.
    pub(super) owner: Owner,
    /// Whether the session is kept apart: nothing that is said in it changes the memories of another session.
    pub(super) apart: bool,
}

impl Target {
    /// Memories that are bound to no session and no agent.
    pub(super) fn new(user: &UserId, within: SessionId) -> Self {
        Self { session: None, within, owner: Owner::default(), apart: *user == UserId::default() }
    }

    /// Whether a memory is one of those that the statements may be about: of the same agent and, if the session is kept
    /// apart, of this session or of none.
    fn may_hold(&self, memory: &Memory) -> bool {
        memory.agent == self.owner.agent && (self.holds_here(memory) || !self.apart)
    }

    /// The memory that says the same in the same words, apart from spelling and the order around «is».
    pub(super) fn equal<'m>(&self, content: &str, known: &'m [Memory]) -> Option<&'m Memory> {
        known.iter().find(|memory| self.holds_here(memory) && is_same_fact(&memory.content, content))
    }

    /// Whether a memory holds in this session.
    pub(super) fn holds_here(&self, memory: &Memory) -> bool {
        memory.session.as_ref().is_none_or(|session| *session == self.within)
    }
}

impl Learning {
    /// Computes how new statements change the memories. The result expects that no memory has changed since they were
    /// read.
    pub(super) async fn reconcile(
        &self,
        user: &UserId,
        target: &Target,
        dated: Vec<DatedStatement>,
    ) -> Result<Work> {
        if dated.is_empty() {
            return Ok(Work::default());
        }
        // The head is read first, so that the expectation covers everything that is read after it.
        let unchanged = Expectation::memories_since(self.store.head(user).await?);
        let (known, near) = self.neighbourhood(user, target, &dated).await?;
        let mut reconciler = Reconciler {
            learning: self,
            target,
            known,
            again: Vec::new(),
            changes: Vec::new(),
            events: Vec::new(),
        };
        let dated = reconciler.without_duplicates(dated);
        let mut spent = Spent::default();
        let by = match self.model_plan(&dated, &reconciler.known, &near, &mut spent).await {
            Some(plan) => {
                reconciler.apply(&dated, &plan);
                "model"
            }
            // Boxed, because the futures of all callers hold it.
            None => Box::pin(self.without_model(user, &mut reconciler, &dated)).await,
        };
        reconciler.confirm_repeated();
        let Reconciler { changes, events, .. } = reconciler;
        let expect = if changes.is_empty() { Vec::new() } else { vec![unchanged] };
        let mut details = Map::new();
        if !dated.is_empty() {
            details.insert("reconciled_by".to_owned(), by.into());
        }
        Ok(Work { expect, changes, spent, events, details, later: None })
    }

    /// Applies statements as the reader relates them to the memories or, without a reader, by the rules. Returns who
    /// decided.
    async fn without_model(
        &self,
        user: &UserId,
        reconciler: &mut Reconciler<'_>,
        dated: &[DatedStatement],
    ) -> &'static str {
        let mut rest = dated;
        if let Some(reader) = &self.reader {
            while let Some((one, later)) = rest.split_first() {
                if let Err(error) = self.relate(user, reader.as_ref(), reconciler, one).await {
                    tracing::warn!(%error, "the reader failed; the rules reconcile");
                    break;
                }
                rest = later;
            }
        }
        let by = if self.reader.is_some() && rest.is_empty() { "reader" } else { "rules" };
        reconciler.apply_rules(rest);
        by
    }

    /// The current memories nearest to a statement, nearest first. They belong to the same agent, and are bound to this
    /// session or, unless the session is kept apart, to none.
    pub(super) async fn neighbours(
        &self,
        user: &UserId,
        target: &Target,
        statement: &Statement,
    ) -> Result<Vec<Memory>> {
        let request = RecallRequest {
            session: Some(target.within.clone()),
            scope: Some(if target.apart { Scope::Session } else { Scope::User }),
            kinds: ItemKinds::MEMORIES,
            similar: false,
            limit: Some(MAX_NEIGHBOURS),
            order: Order::Relevance,
            score_threshold: Some(0.0),
            ..RecallRequest::new(statement.content.clone())
        };
        let recalled = self.recall.ask_unnoted(user, &request, RequestId(self.ids.next())).await?;
        let memories = recalled.items.into_iter().filter_map(|found| match found.item {
            Item::Memory(memory) => Some(memory),
            Item::Turn(_) | Item::Summary(_) => None,
        });
        Ok(memories.filter(|memory| memory.is_current() && self.may_touch(user, target, memory)).collect())
    }

    /// Whether statements may change a memory. Behind a wall they change only memories of their own session.
    pub(super) fn may_touch(&self, user: &UserId, target: &Target, memory: &Memory) -> bool {
        let is_behind = memory.session.is_some() || !self.keeps_apart(user, &target.owner);
        is_behind && target.may_hold(memory)
    }

    /// Whether what is learned belongs to its session.
    pub(super) fn binds(&self, owner: &Owner) -> bool {
        owner.in_session || self.recall.settings.scope == RecallScope::Session
    }

    /// Whether a session stands behind a wall: what is said in it changes nothing elsewhere. The sessions of a named user
    /// are about one person, so without such a wall a change in one of them holds for the others.
    pub(super) fn keeps_apart(&self, user: &UserId, owner: &Owner) -> bool {
        let is_nobodys = owner.in_session && *user == UserId::default();
        owner.apart || is_nobodys || self.recall.settings.scope == RecallScope::Session
    }

    /// The memories near any of the statements, and the indexes of those that a model sees: the nearest ones of each
    /// statement in turn. The rules read all of them, which costs little and finds more.
    pub(super) async fn neighbourhood(
        &self,
        user: &UserId,
        target: &Target,
        dated: &[DatedStatement],
    ) -> Result<(Vec<Memory>, Vec<usize>)> {
        if let Some(all) =
            self.all_memories(user, target).await?.filter(|_| self.reader.is_some() && self.model.is_none())
        {
            return Ok((all, Vec::new()));
        }
        let each = self.settings.neighbours as usize;
        let mut known: Vec<Memory> = Vec::new();
        let mut ranked: Vec<(usize, usize)> = Vec::new();
        for DatedStatement { statement, .. } in dated {
            for (rank, memory) in self.neighbours(user, target, statement).await?.into_iter().enumerate() {
                let place = known.iter().position(|other| other.id == memory.id).unwrap_or_else(|| {
                    known.push(memory);
                    known.len() - 1
                });
                if rank < each {
                    ranked.push((rank, place));
                }
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut near: Vec<usize> = Vec::new();
        for (_, place) in ranked {
            if near.len() < MAX_SHOWN_STATEMENTS * each && !near.contains(&place) {
                near.push(place);
            }
        }
        Ok((known, near))
    }

    /// The model's plan. `None` if there is no model, nothing to decide, or no usable answer.
    async fn model_plan(
        &self,
        dated: &[DatedStatement],
        known: &[Memory],
        near: &[usize],
        spent: &mut Spent,
    ) -> Option<Plan> {
        let model = self.model.as_ref()?;
        if dated.is_empty() || near.is_empty() {
            return None;
        }
        let new: Vec<&Statement> = dated.iter().map(|dated| &dated.statement).collect();
        let shown: Vec<&Memory> = near.iter().map(|place| &known[*place]).collect();
        let request = questions::reconciliation(&new, &shown, &self.settings);
        let read = |text: &str| answer::plan(text, &shown, new.len());
        let judged = match ask(model.as_ref(), &request, read, spent).await {
            Ok(judged) => judged,
            Err(error) => {
                tracing::warn!(%error, "reconciliation by the model failed; the reader or the rules reconcile");
                self.counts.failed();
                return None;
            }
        };
        // Memories that the model did not see stay.
        let mut plan = Plan::add_all(known.len(), new.len());
        for (place, fate) in near.iter().zip(judged.known) {
            plan.known[*place] = fate;
        }
        for (place, novelty) in judged.new.into_iter().enumerate() {
            plan.new[place] = match novelty {
                Novelty::Duplicate { of } => Novelty::Duplicate { of: near[of] },
                other => other,
            };
        }
        self.keep_unspoken(&mut plan, dated, known).await;
        Some(plan)
    }
}

/// The memories while statements are applied, and the resulting changes.
pub(super) struct Reconciler<'a> {
    pub(super) learning: &'a Learning,
    pub(super) target: &'a Target,
    /// The current memories: the neighbours and the added ones.
    pub(super) known: Vec<Memory>,
    /// Statements that repeat another new statement.
    again: Vec<Statement>,
    pub(super) changes: Vec<Change>,
    events: Vec<InferredEvent>,
}

impl Reconciler<'_> {
    /// Removes statements that equal a memory or another new statement.
    fn without_duplicates(&mut self, dated: Vec<DatedStatement>) -> Vec<DatedStatement> {
        let mut seen = BTreeSet::new();
        let mut new = Vec::new();
        for one in dated {
            match self.equal(&one.statement.content).cloned() {
                Some(memory) => self.repeat(&memory, &one.statement),
                None if seen.insert(normalised(&one.statement.content)) => new.push(one),
                None => self.again.push(one.statement),
            }
        }
        new
    }

    /// The current memory that says the same in the same words.
    fn equal(&self, content: &str) -> Option<&Memory> {
        self.target.equal(content, &self.known)
    }

    /// Handles a statement that is known already. Its turns join the memory's source turns, so that the memory survives
    /// if its first turns are forgotten.
    pub(super) fn repeat(&mut self, memory: &Memory, statement: &Statement) {
        self.confirm(memory.id, &statement.turns);
        self.report(memory, Event::None, None);
    }

    fn confirm(&mut self, id: MemoryId, turns: &[TurnId]) {
        let Some(known) = self.known.iter_mut().find(|known| known.id == id) else { return };
        if Memory::confirm(&mut known.source_turns, turns) {
            self.changes.push(Change::ConfirmMemory { id, turns: turns.to_vec() });
        }
    }

    /// Adds the turns of repeated statements to the memories that now hold them.
    fn confirm_repeated(&mut self) {
        for statement in std::mem::take(&mut self.again) {
            let id = self.equal(&statement.content).map(|memory| memory.id);
            if let Some(id) = id {
                self.confirm(id, &statement.turns);
            }
        }
    }

    /// Applies the rules, message by message.
    fn apply_rules(&mut self, dated: &[DatedStatement]) {
        for message in dated.chunk_by(|a, b| a.statement.turns == b.statement.turns) {
            let plan = self.rules_plan(message);
            self.apply(message, &plan);
        }
    }

    fn rules_plan(&self, dated: &[DatedStatement]) -> Plan {
        let new: Vec<Statement> = dated.iter().map(|dated| dated.statement.clone()).collect();
        let plan = rules::reconcile(&new, &self.known);
        match plan.check(self.known.len(), new.len()) {
            Ok(()) => plan,
            Err(error) => {
                tracing::error!(%error, "the rules made a plan that would lose a statement; all statements are added");
                Plan::add_all(self.known.len(), new.len())
            }
        }
    }

    /// Applies a checked plan.
    fn apply(&mut self, dated: &[DatedStatement], plan: &Plan) {
        let judged = self.known.clone();
        let mut added: Vec<MemoryId> = Vec::new();
        for (place, one) in dated.iter().enumerate() {
            match plan.new[place] {
                Novelty::Duplicate { of } => self.repeat(&judged[of], &one.statement),
                Novelty::Repeated { .. } => {}
                Novelty::Add => {
                    // The author of the plan did not know the statements that the same plan adds.
                    let (mut ended, repeats) = self.among_added(one, &added);
                    if let Some(memory) = repeats {
                        self.repeat(&memory, &one.statement);
                        continue;
                    }
                    let fates = judged.iter().zip(&plan.known);
                    ended.extend(
                        fates
                            .filter(|(_, fate)| fate.because_of() == Some(place))
                            .map(|(memory, fate)| (memory.clone(), *fate)),
                    );
                    added.push(self.add(one, &ended));
                }
            }
        }
    }

    /// The memories that a statement ends, or the one that it repeats, among those that were just added. The rules
    /// decide.
    fn among_added(&self, one: &DatedStatement, added: &[MemoryId]) -> (Vec<(Memory, Fate)>, Option<Memory>) {
        let added: Vec<Memory> =
            self.known.iter().filter(|memory| added.contains(&memory.id)).cloned().collect();
        if added.is_empty() {
            return (Vec::new(), None);
        }
        let plan = rules::reconcile(std::slice::from_ref(&one.statement), &added);
        if plan.check(added.len(), 1).is_err() {
            return (Vec::new(), None);
        }
        if let Novelty::Duplicate { of } = plan.new[0] {
            return (Vec::new(), Some(added[of].clone()));
        }
        let ended = added.into_iter().zip(plan.known).filter(|(_, fate)| fate.because_of().is_some());
        (ended.collect(), None)
    }

    /// Adds a statement and closes the memories that it ends.
    pub(super) fn add(&mut self, dated: &DatedStatement, ended: &[(Memory, Fate)]) -> MemoryId {
        let mut memory = self.memory(dated);
        let id = memory.id;
        // The later statement wins, whichever session was read first.
        let clock = &self.learning.clock;
        let later = ended.iter().filter(|(old, _)| is_later(old, dated.at, clock.as_ref()));
        if let Some((later, _)) = later.min_by_key(|(old, _)| old.recorded_at) {
            memory.valid_to = Some(later.valid_from.max(later.recorded_at));
            memory.replaced_by = Some(later.id);
        }
        let ended = ended.iter().filter(|(old, _)| !is_later(old, dated.at, clock.as_ref()));
        let ended: Vec<&(Memory, Fate)> = ended.collect();
        // A replacement of a memory that is bound to no session is bound to no session either.
        if ended.iter().any(|(old, _)| old.session.is_none()) {
            memory.session = None;
        }
        let updated = ended.iter().find(|(_, fate)| matches!(fate, Fate::Update { .. }));
        match updated {
            Some((old, _)) => self.report(&memory, Event::Update, Some(old.content.clone())),
            None => self.report(&memory, Event::Add, None),
        }
        self.changes.push(Change::AddMemory(Box::new(memory.clone())));
        let valid_to = memory.valid_from.max(memory.recorded_at);
        for (old, fate) in &ended {
            self.changes.push(Change::CloseMemory { id: old.id, valid_to, replaced_by: Some(id) });
            if let Fate::End { how, .. } = fate {
                self.changes.push(Change::NoteMemory { id: old.id, notes: todo_note(*how) });
            }
            if updated.is_none_or(|(updated, _)| updated.id != old.id) {
                self.report(old, Event::Delete, None);
            }
        }
        self.known.retain(|other| ended.iter().all(|(old, _)| old.id != other.id));
        if memory.valid_to.is_none() {
            self.known.push(memory);
        }
        id
    }

    /// Closes the memories that a statement ends, without a memory of the statement itself.
    pub(super) fn close(&mut self, dated: &DatedStatement, ended: &[(Memory, Fate)]) {
        for (old, fate) in ended {
            self.changes.push(Change::CloseMemory { id: old.id, valid_to: dated.at, replaced_by: None });
            if let Fate::End { how, .. } = fate {
                self.changes.push(Change::NoteMemory { id: old.id, notes: todo_note(*how) });
            }
            self.report(old, Event::Delete, None);
        }
        self.known.retain(|other| ended.iter().all(|(old, _)| old.id != other.id));
    }

    fn memory(&self, dated: &DatedStatement) -> Memory {
        let DatedStatement { statement, at, .. } = dated;
        Memory {
            id: MemoryId(self.learning.ids.next()),
            session: self.target.session.clone(),
            agent: self.target.owner.agent.clone(),
            kind: statement.kind,
            content: statement.content.clone(),
            confidence: statement.confidence.clamp(0.0, 1.0),
            valid_from: statement.valid_from.unwrap_or(*at),
            valid_to: None,
            // The memory is recorded at the time of its turn, so that as-of reads see both.
            recorded_at: *at,
            replaced_by: None,
            source_turns: statement.turns.clone(),
            source_summary: None,
            metadata: self.target.owner.metadata.clone(),
            notes: MemoryNotes::default(),
            hidden: None,
        }
    }

    pub(super) fn report(&mut self, memory: &Memory, event: Event, previous: Option<String>) {
        let (id, memory) = (memory.id, memory.content.clone());
        self.events.push(InferredEvent { id, memory, event, previous });
    }
}

/// Whether a memory was said after `at`. A memory from a time that is still to come was said under a clock that was ahead,
/// and so before anything that is said now.
pub(super) fn is_later(memory: &Memory, at: Timestamp, clock: &dyn Clock) -> bool {
    let latest = || clock.now().checked_add(CLOCK_SLACK).unwrap_or(Timestamp::MAX);
    memory.recorded_at > at && memory.recorded_at <= latest()
}

/// The note of how a todo ended.
fn todo_note(how: TodoEnd) -> MemoryNotes {
    let todo = match how {
        TodoEnd::Done => TodoState::Done,
        TodoEnd::Dropped => TodoState::Dropped,
    };
    MemoryNotes { todo: Some(todo), ..MemoryNotes::default() }
}
