//! Reconciliation: what becomes of new statements and of the memories near them, written as one change set.
//!
//! Who judges is the model or the rules; what is done with the judgement is the same for both and is decided here:
//!
//! - What is equal but for spelling is a duplicate, and nobody is asked.
//! - A memory that a statement ends is closed when that was said, not when it was learned, so that as-of reads return what was
//!   believed then; it stays, and names what took its place.
//! - A statement that is older than the memory it contradicts, because a session was read late, does not win: it is added as
//!   history, closed by the memory that came after it.
//! - A statement that is known already is not added again; its turns join those that say so, so that forgetting the first who
//!   said it does not take it away.
//! - Statements of one batch are applied one after the other, so that a later one may end an earlier one.

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
use strata_core::ports::Spent;
use strata_core::scope::Scope;
use strata_core::store::{Change, Expectation, Item, ItemKinds};
use strata_core::turn::Owner;
use strata_language::normalised;
use strata_language::plan::{Fate, Novelty, Plan, TodoEnd};

/// How many memories are looked through for each statement: by the rules, and for one that is equal, which is the most
/// relevant there is.
const MAX_NEIGHBOURS: u32 = 20;

/// A batch shows a model at most the neighbours of so many statements: to enumerate more is more than a small one does well.
const MAX_SHOWN_STATEMENTS: usize = 4;

/// A statement and when it was said.
#[derive(Debug, Clone)]
pub(super) struct DatedStatement {
    pub(super) statement: Statement,
    pub(super) at: Timestamp,
}

/// Where new memories belong.
pub(super) struct Target {
    /// The session they are bound to.
    pub(super) session: Option<SessionId>,
    /// The session in which they were said.
    pub(super) within: SessionId,
    /// Whose they become.
    pub(super) owner: Owner,
}

impl Learning {
    /// How new statements change the memories, with the expectation that no memory has changed since they were read.
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
        let mut by = "rules";
        match self.model_plan(&dated, &reconciler.known, &near, &mut spent).await {
            Some(plan) => {
                by = "model";
                reconciler.apply(&dated, &plan);
            }
            None => reconciler.apply_rules(&dated),
        }
        reconciler.confirm_repeated();
        let Reconciler { changes, events, .. } = reconciler;
        let expect = if changes.is_empty() { Vec::new() } else { vec![unchanged] };
        let mut details = Map::new();
        if !dated.is_empty() {
            details.insert("reconciled_by".to_owned(), by.into());
        }
        Ok(Work { expect, changes, spent, events, details, later: None })
    }

    /// The current memories nearest to a statement, of the same agent, bound to no session or to this one, nearest first.
    async fn neighbours(&self, user: &UserId, target: &Target, statement: &Statement) -> Result<Vec<Memory>> {
        let request = RecallRequest {
            session: Some(target.within.clone()),
            scope: Some(Scope::Session),
            kinds: ItemKinds { turns: false, memories: true },
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
        Ok(memories.filter(|memory| memory.is_current() && memory.agent == target.owner.agent).collect())
    }

    /// The memories near any of the statements, and the places among_added them of those that a model is shown: the nearest of each
    /// statement, in turn. The rules read all of them, which costs nothing and finds more.
    async fn neighbourhood(
        &self,
        user: &UserId,
        target: &Target,
        dated: &[DatedStatement],
    ) -> Result<(Vec<Memory>, Vec<usize>)> {
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

    /// The model's judgement; nothing where there is no model, nothing to judge, or nothing usable in its answer.
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
                tracing::warn!(%error, "the model reconciled nothing; the rules do");
                return None;
            }
        };
        // What the model was not shown stays.
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
        Some(plan)
    }
}

/// The memories as they stand while statements are applied, and what that changes.
struct Reconciler<'a> {
    learning: &'a Learning,
    target: &'a Target,
    /// What is believed: neighbours, and what was added.
    known: Vec<Memory>,
    /// What was said again among_added what is judged.
    again: Vec<Statement>,
    changes: Vec<Change>,
    events: Vec<InferredEvent>,
}

impl Reconciler<'_> {
    /// Leaves statements out that are known word for word, or were just said.
    fn without_duplicates(&mut self, dated: Vec<DatedStatement>) -> Vec<DatedStatement> {
        let mut seen = BTreeSet::new();
        let mut new = Vec::new();
        for one in dated {
            let text = normalised(&one.statement.content);
            match self.equal(&text).cloned() {
                Some(memory) => self.repeat(&memory, &one.statement),
                None if seen.insert(text) => new.push(one),
                None => self.again.push(one.statement),
            }
        }
        new
    }

    /// What is believed word for word.
    fn equal(&self, text: &str) -> Option<&Memory> {
        self.known.iter().find(|memory| normalised(&memory.content) == text)
    }

    /// Something that is known was said once more: should the turns be forgotten that said it first, these still say it.
    fn repeat(&mut self, memory: &Memory, statement: &Statement) {
        self.confirm(memory.id, &statement.turns);
        self.report(memory, Event::None, None);
    }

    fn confirm(&mut self, id: MemoryId, turns: &[TurnId]) {
        let Some(known) = self.known.iter_mut().find(|known| known.id == id) else { return };
        if Memory::confirm(&mut known.source_turns, turns) {
            self.changes.push(Change::ConfirmMemory { id, turns: turns.to_vec() });
        }
    }

    /// What was said more than once, and is believed now that it has been judged, was said by all of these turns.
    fn confirm_repeated(&mut self) {
        for statement in std::mem::take(&mut self.again) {
            let id = self.equal(&normalised(&statement.content)).map(|memory| memory.id);
            if let Some(id) = id {
                self.confirm(id, &statement.turns);
            }
        }
    }

    /// Lets the rules judge, message by message.
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
                tracing::error!(%error, "the rules made a plan that would lose something; all is added");
                Plan::add_all(self.known.len(), new.len())
            }
        }
    }

    /// Does what a checked plan says.
    fn apply(&mut self, dated: &[DatedStatement], plan: &Plan) {
        let judged = self.known.clone();
        let mut added: Vec<MemoryId> = Vec::new();
        for (place, one) in dated.iter().enumerate() {
            match plan.new[place] {
                Novelty::Duplicate { of } => self.repeat(&judged[of], &one.statement),
                Novelty::Repeated { .. } => {}
                Novelty::Add => {
                    // Of what was added by the same plan the judge knew nothing.
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

    /// What a statement ends or repeats among_added those that were added just before, by the rules.
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

    /// Adds a statement and closes what it ends.
    fn add(&mut self, dated: &DatedStatement, ended: &[(Memory, Fate)]) -> MemoryId {
        let mut memory = self.memory(dated);
        let id = memory.id;
        // Whoever spoke later is right, in whichever order the sessions were read.
        let later = ended.iter().filter(|(old, _)| old.recorded_at > dated.at);
        if let Some((later, _)) = later.min_by_key(|(old, _)| old.recorded_at) {
            memory.valid_to = Some(later.valid_from.max(later.recorded_at));
            memory.replaced_by = Some(later.id);
        }
        let ended = ended.iter().filter(|(old, _)| old.recorded_at <= dated.at);
        let ended: Vec<&(Memory, Fate)> = ended.collect();
        // What takes the place of something that all sessions know is known to all of them.
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

    fn memory(&self, dated: &DatedStatement) -> Memory {
        let DatedStatement { statement, at } = dated;
        Memory {
            id: MemoryId(self.learning.ids.next()),
            session: self.target.session.clone(),
            agent: self.target.owner.agent.clone(),
            kind: statement.kind,
            content: statement.content.clone(),
            confidence: statement.confidence.clamp(0.0, 1.0),
            valid_from: statement.valid_from.unwrap_or(*at),
            valid_to: None,
            // Known since it was said, like the turn itself: as-of reads see both.
            recorded_at: *at,
            replaced_by: None,
            source_turns: statement.turns.clone(),
            source_summary: None,
            metadata: self.target.owner.metadata.clone(),
            notes: MemoryNotes::default(),
            hidden: None,
        }
    }

    fn report(&mut self, memory: &Memory, event: Event, previous: Option<String>) {
        let (id, memory) = (memory.id, memory.content.clone());
        self.events.push(InferredEvent { id, memory, event, previous });
    }
}

/// The note of how a todo ended.
fn todo_note(how: TodoEnd) -> MemoryNotes {
    let todo = match how {
        TodoEnd::Done => TodoState::Done,
        TodoEnd::Dropped => TodoState::Dropped,
    };
    MemoryNotes { todo: Some(todo), ..MemoryNotes::default() }
}
