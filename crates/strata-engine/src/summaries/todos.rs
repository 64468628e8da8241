//! The todos that were learned, beside those that the summaries list.
//!
//! Without a model, a summary's todos are those that the rules find. Learning reads more: the reader finds todos that no
//! rule knows, and that one is done is often said in other words, or in another session. So a list of open todos leaves out
//! the points whose learned todo has ended, and adds the open ones that no point tells.

use std::collections::HashMap;

use strata_core::error::Result;
use strata_core::id::{SessionId, TurnId, UserId};
use strata_core::memory::{Memory, MemoryKind, TodoState};
use strata_core::store::{MemoryQuery, MemorySelect, Page, Store, TurnQuery};
use strata_core::summary::{MODEL_FIELD, Summary};
use strata_core::turn::{HiddenReason, Turn};
use strata_language::statements::content_terms;

use super::StructuredPoint;

/// The most learned todos that are read, the newest first. A user seldom has more.
const MAX_TODOS: u32 = 1_000;

/// The share of the words that a point and a learned todo of another turn have to have in common to be the same todo. A
/// paraphrase changes about one word in five.
const SAME: f32 = 0.7;

/// The learned todos of a user, by session.
#[derive(Debug, Default)]
pub(super) struct LearnedTodos(HashMap<SessionId, Vec<Todo>>);

/// A learned todo in one of the sessions that it was said in.
#[derive(Debug)]
struct Todo {
    text: String,
    terms: Vec<String>,
    /// The turns of the session that say it.
    said: Vec<u64>,
    is_open: bool,
}

impl LearnedTodos {
    /// Reads the todos of one session or of all.
    pub(super) async fn read(store: &dyn Store, user: &UserId, only: Option<&SessionId>) -> Result<Self> {
        let query = MemoryQuery {
            kind: Some(MemoryKind::Todo),
            page: Page::first(MAX_TODOS),
            ..MemoryQuery::new(MemorySelect::All)
        };
        let mut memories = store.memories(user, &query).await?;
        memories.retain(|memory| !memory.source_turns.is_empty() && !is_evicted(memory));
        if memories.is_empty() {
            return Ok(Self::default());
        }
        let sources = memories.iter().flat_map(|memory| memory.source_turns.iter().copied()).collect();
        let turns = store.turns(user, &TurnQuery::Ids(sources)).await?;
        let turns: HashMap<TurnId, &Turn> = turns.iter().map(|turn| (turn.id, turn)).collect();
        let mut todos = Self::default();
        for memory in memories.iter().rev() {
            let said = memory.source_turns.iter().filter_map(|id| turns.get(id));
            todos.add(memory, said.filter(|turn| only.is_none_or(|only| turn.session == *only)));
        }
        Ok(todos)
    }

    fn add<'a>(&mut self, memory: &Memory, said: impl Iterator<Item = &'a &'a Turn>) {
        let mut by_session: HashMap<&SessionId, Vec<u64>> = HashMap::new();
        for turn in said {
            by_session.entry(&turn.session).or_default().push(turn.seq);
        }
        let is_open = memory.hidden.is_none() && memory.todo() == Some(TodoState::Open);
        for (session, said) in by_session {
            let (text, terms) = (memory.content.clone(), content_terms(&memory.content));
            self.0.entry(session.clone()).or_default().push(Todo { text, terms, said, is_open });
        }
    }

    /// Whether a summary's point is still open, as far as learning knows.
    pub(super) fn is_open(&self, point: &StructuredPoint) -> bool {
        self.told_by(point).is_none_or(|todo| todo.is_open)
    }

    /// The sessions that have open todos.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.0.iter().filter(|(_, todos)| todos.iter().any(|todo| todo.is_open)).map(|(session, _)| session)
    }

    /// The open todos that a session's summary covers and none of its points tells. A summary by a model has its own.
    pub(super) fn untold(&self, summary: &Summary, told: &[StructuredPoint]) -> Vec<StructuredPoint> {
        let structured = summary.structured.as_ref();
        if structured.is_some_and(|structured| structured.get(MODEL_FIELD).is_some()) {
            return Vec::new();
        }
        let told = told.iter().filter(|point| point.session == summary.session);
        let told: Vec<&Todo> = told.filter_map(|point| self.told_by(point)).collect();
        let open = self.0.get(&summary.session).into_iter().flatten().filter(|todo| todo.is_open);
        let untold = open.filter(|todo| !told.iter().any(|other| std::ptr::eq(*other, *todo)));
        untold
            .filter_map(|todo| {
                let seq = todo.said.iter().copied().filter(|seq| *seq <= summary.end_seq).max()?;
                let (session, text) = (summary.session.clone(), todo.text.clone());
                Some(StructuredPoint { session, summary: summary.id, text, seq: Some(seq) })
            })
            .collect()
    }

    /// The learned todo that a point tells: the one of its turn with the most words in common, or else one of its session in
    /// nearly the same words. An open one wins against one that has ended.
    fn told_by(&self, point: &StructuredPoint) -> Option<&Todo> {
        let terms = content_terms(&point.text);
        let todos = self.0.get(&point.session)?.iter();
        let likeness = |todo: &Todo| {
            let is_its_turn = point.seq.is_some_and(|seq| todo.said.contains(&seq));
            (is_its_turn, shared(&terms, &todo.terms), todo.is_open)
        };
        let best = todos
            .map(|todo| (likeness(todo), todo))
            .max_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        best.filter(|((is_its_turn, like, _), _)| *is_its_turn || *like >= SAME).map(|(_, todo)| todo)
    }
}

/// An evicted memory has not ended: it made room for others.
fn is_evicted(memory: &Memory) -> bool {
    memory.hidden.is_some_and(|hidden| hidden.reason == HiddenReason::Evicted)
}

/// The share of the words of two texts that both have.
fn shared(a: &[String], b: &[String]) -> f32 {
    let both = a.iter().filter(|term| b.contains(term)).count();
    both as f32 / a.len().max(b.len()).max(1) as f32
}
