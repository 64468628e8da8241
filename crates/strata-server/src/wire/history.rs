//! A memory's history: as steps, which is mem0's form, and as statements with what was said.

use jiff::Timestamp;
use serde::Serialize;
use strata_core::turn::{Hidden, HiddenReason};
use strata_core::{Memory, MemoryId, Result, UserId};
use strata_engine::Engine;
use strata_engine::{HistoryStep, Quote};
use utoipa::ToSchema;
use uuid::Uuid;

use super::memory::{MemoryResponse, Source, Sources};
use super::names::Kind;

/// What happened to a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = Event)]
pub(crate) enum HistoryEvent {
    /// It was learned.
    Add,
    /// Another statement took its place.
    Update,
    /// It was deleted.
    Delete,
}

response! {
    /// One step in a memory's life.
    pub(crate) HistoryEntry of fn(asked: MemoryId, step: &HistoryStep, sources: &Sources, change: Change<'_>) {
        /// The id of the statement; former ones have their own.
        id: Uuid = step.memory.id.0,
        /// The memory that was asked for.
        memory_id: Uuid = asked.0,
        /// What was believed before.
        old_memory: Option<String> = change.old.map(|memory| memory.content.clone()),
        /// What is believed since.
        new_memory: Option<String> = change.new.map(|memory| memory.content.clone()),
        /// What happened.
        event: HistoryEvent = change.event,
        /// When it happened.
        created_at: Timestamp = change.at,
        /// Whether the statement is deleted.
        is_deleted: bool = deletion(&step.memory).is_some(),
        /// What kind of statement it is.
        kind: Kind = step.memory.kind.into(),
        /// Since when it is so.
        valid_from: Timestamp = step.memory.valid_from,
        /// Until when it was so.
        valid_to: Option<Timestamp> = step.memory.valid_to,
        /// The memory that took its place.
        replaced_by: Option<Uuid> = step.memory.replaced_by.map(|id| id.0),
        /// Where it comes from.
        source: Source = sources.of(&step.memory),
        /// The statement's life in a sentence: what was believed, since when, what took its place, and which turn said so.
        explanation: String = step.to_string(),
    }
}

/// What a step changed.
pub(crate) struct Change<'a> {
    event: HistoryEvent,
    old: Option<&'a Memory>,
    new: Option<&'a Memory>,
    at: Timestamp,
}

impl HistoryEntry {
    /// The steps of the memory `asked`, the oldest first.
    pub(crate) async fn load(engine: &Engine, owner: &UserId, asked: MemoryId) -> Result<Vec<Self>> {
        let history = engine.memories.explain(owner, asked).await?;
        let sources = Sources::load(engine, owner, history.iter().map(|step| &step.memory)).await?;
        let mut entries = Vec::with_capacity(history.len() + 1);
        let mut old: Option<&Memory> = None;
        for step in &history {
            let memory = &step.memory;
            let event = if old.is_some() { HistoryEvent::Update } else { HistoryEvent::Add };
            let change = Change { event, old, new: Some(memory), at: memory.recorded_at };
            entries.push(Self::new(asked, step, &sources, change));
            if let Some(hidden) = deletion(memory) {
                let event = HistoryEvent::Delete;
                let change = Change { event, old: Some(memory), new: None, at: hidden.at };
                entries.push(Self::new(asked, step, &sources, change));
            }
            old = Some(memory);
        }
        Ok(entries)
    }
}

/// How a memory was deleted. One that was abandoned and has no successor counts as deleted.
fn deletion(memory: &Memory) -> Option<Hidden> {
    memory.hidden.filter(|hidden| match hidden.reason {
        HiddenReason::Abandoned => memory.replaced_by.is_none(),
        reason => reason == HiddenReason::Deleted,
    })
}

/// All statements of a memory, the oldest first.
#[derive(Debug, Serialize)]
pub struct StatementsResponse {
    results: Vec<StatementResponse>,
}

response! {
    /// One statement of a memory, with the turns that said it and the turns that replaced it.
    pub(crate) StatementResponse of fn(owner: &UserId, step: &HistoryStep, sources: &Sources) {
        #[serde(flatten)]
        memory: MemoryResponse = MemoryResponse::new(owner, &step.memory, sources),
        explanation: String = step.to_string(),
        said: Vec<QuoteResponse> = step.said.iter().map(QuoteResponse::from).collect(),
        replaced_because: Vec<QuoteResponse> = step.replaced_because.iter().map(QuoteResponse::from).collect(),
    }
}

response! {
    /// A part of a turn.
    pub(crate) QuoteResponse from (quote: Quote) {
        turn_id: Uuid = quote.turn.0,
        said_at: Timestamp = quote.said_at,
        text: String = quote.text.clone(),
    }
}

impl StatementsResponse {
    /// The statements of a memory of `owner`; the places of their source turns are read.
    pub async fn load(engine: &Engine, owner: &UserId, steps: &[HistoryStep]) -> Result<Self> {
        let sources = Sources::load(engine, owner, steps.iter().map(|step| &step.memory)).await?;
        let results = steps.iter().map(|step| StatementResponse::new(owner, step, &sources)).collect();
        Ok(Self { results })
    }
}
