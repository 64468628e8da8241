//! The history of a memory: as steps, which is mem0's form, and as statements with the turns that said them.

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

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = Event)]
pub(crate) enum HistoryEvent {
    /// It was learned.
    Add,
    /// Another statement replaced it.
    Update,
    /// It was deleted.
    Delete,
}

response! {
    /// One step in the history of a memory.
    pub(crate) HistoryEntry of fn(asked: MemoryId, step: &HistoryStep, sources: &Sources, change: Change<'_>) {
        /// The id of the statement. Former statements have ids of their own.
        id: Uuid = step.memory.id.0,
        /// The requested memory.
        memory_id: Uuid = asked.0,
        /// The statement before this step.
        old_memory: Option<String> = change.old.map(|memory| memory.content.clone()),
        /// The statement after this step.
        new_memory: Option<String> = change.new.map(|memory| memory.content.clone()),
        /// The kind of the step.
        event: HistoryEvent = change.event,
        /// When it happened.
        created_at: Timestamp = change.at,
        /// Whether the statement is deleted.
        is_deleted: bool = deletion(&step.memory).is_some(),
        /// The kind of the statement.
        kind: Kind = step.memory.kind.into(),
        /// When the statement became true.
        valid_from: Timestamp = step.memory.valid_from,
        /// When the statement stopped being true.
        valid_to: Option<Timestamp> = step.memory.valid_to,
        /// The memory that replaced it.
        replaced_by: Option<Uuid> = step.memory.replaced_by.map(|id| id.0),
        /// The turns that it comes from.
        source: Source = sources.of(&step.memory),
        /// The history of the statement in a sentence: when it was believed, what replaced it, and which turn said
        /// so.
        explanation: String = step.to_string(),
    }
}

/// The change of a step.
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

/// How a memory was deleted. An abandoned memory without a successor counts as deleted.
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
    /// The statements of a memory of `owner`. This reads the places of their source turns.
    pub async fn load(engine: &Engine, owner: &UserId, steps: &[HistoryStep]) -> Result<Self> {
        let sources = Sources::load(engine, owner, steps.iter().map(|step| &step.memory)).await?;
        let results = steps.iter().map(|step| StatementResponse::new(owner, step, &sources)).collect();
        Ok(Self { results })
    }
}
