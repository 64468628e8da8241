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

/// One step in a memory's life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryEntry {
    /// The id of the statement; former ones have their own.
    id: Uuid,
    /// The memory that was asked for.
    memory_id: Uuid,
    /// What was believed before.
    old_memory: Option<String>,
    /// What is believed since.
    new_memory: Option<String>,
    /// What happened.
    event: HistoryEvent,
    /// When it happened.
    created_at: Timestamp,
    /// Whether the statement is deleted.
    is_deleted: bool,
    /// What kind of statement it is.
    kind: Kind,
    /// Since when it is so.
    valid_from: Timestamp,
    /// Until when it was so.
    valid_to: Option<Timestamp>,
    /// The memory that took its place.
    replaced_by: Option<Uuid>,
    /// Where it comes from.
    source: Source,
    /// The statement's life in a sentence: what was believed, since when, what took its place, and which turn said so.
    explanation: String,
}

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

impl HistoryEntry {
    /// The steps of the memory `asked`, the oldest first.
    pub(crate) async fn load(engine: &Engine, owner: &UserId, asked: MemoryId) -> Result<Vec<Self>> {
        let history = engine.memories.explain(owner, asked).await?;
        let sources = Sources::load(engine, owner, history.iter().map(|step| &step.memory)).await?;
        let mut entries = Vec::with_capacity(history.len() + 1);
        let mut before: Option<&Memory> = None;
        for step in &history {
            let event = if before.is_some() { HistoryEvent::Update } else { HistoryEvent::Add };
            let entry = Self::new(asked, step, &sources);
            entries.push(Self {
                old_memory: before.map(|memory| memory.content.clone()),
                new_memory: Some(step.memory.content.clone()),
                event,
                ..entry
            });
            if let Some(hidden) = deletion(&step.memory) {
                let entry = Self::new(asked, step, &sources);
                entries.push(Self {
                    old_memory: Some(step.memory.content.clone()),
                    event: HistoryEvent::Delete,
                    created_at: hidden.at,
                    ..entry
                });
            }
            before = Some(&step.memory);
        }
        Ok(entries)
    }

    /// What all entries of one statement have in common.
    fn new(asked: MemoryId, step: &HistoryStep, sources: &Sources) -> Self {
        let memory = &step.memory;
        Self {
            id: memory.id.0,
            memory_id: asked.0,
            old_memory: None,
            new_memory: None,
            event: HistoryEvent::Add,
            created_at: memory.recorded_at,
            is_deleted: deletion(memory).is_some(),
            kind: memory.kind.into(),
            valid_from: memory.valid_from,
            valid_to: memory.valid_to,
            replaced_by: memory.replaced_by.map(|id| id.0),
            source: sources.of(memory),
            explanation: step.to_string(),
        }
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

/// One statement of a memory, with the turns that said it and the turns that replaced it.
#[derive(Debug, Serialize)]
struct StatementResponse {
    #[serde(flatten)]
    memory: MemoryResponse,
    explanation: String,
    said: Vec<QuoteResponse>,
    replaced_because: Vec<QuoteResponse>,
}

/// A part of a turn.
#[derive(Debug, Serialize)]
struct QuoteResponse {
    turn_id: Uuid,
    said_at: Timestamp,
    text: String,
}

impl From<&Quote> for QuoteResponse {
    fn from(quote: &Quote) -> Self {
        Self { turn_id: quote.turn.0, said_at: quote.said_at, text: quote.text.clone() }
    }
}

impl StatementsResponse {
    /// The statements of a memory of `owner`; the places of their source turns are read.
    pub async fn load(engine: &Engine, owner: &UserId, steps: &[HistoryStep]) -> Result<Self> {
        let sources = Sources::load(engine, owner, steps.iter().map(|step| &step.memory)).await?;
        let statement = |step: &HistoryStep| StatementResponse {
            memory: MemoryResponse::new(owner, &step.memory, &sources),
            explanation: step.to_string(),
            said: step.said.iter().map(QuoteResponse::from).collect(),
            replaced_because: step.replaced_because.iter().map(QuoteResponse::from).collect(),
        };
        Ok(Self { results: steps.iter().map(statement).collect() })
    }
}
