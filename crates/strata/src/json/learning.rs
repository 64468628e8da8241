//! What was learned and how it came to be, as `--json` prints it.

use jiff::Timestamp;
use serde::Serialize;
use strata_core::UserId;
use strata_engine::{HistoryStep, InferredEvent, Quote};
use uuid::Uuid;

use super::MemoryJson;

/// What learning did.
#[derive(Debug, Serialize)]
pub(crate) struct InferredJson<'a> {
    results: Vec<EventJson<'a>>,
    inferred: bool,
}

#[derive(Debug, Serialize)]
struct EventJson<'a> {
    id: Uuid,
    memory: &'a str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_memory: Option<&'a str>,
}

impl<'a> InferredJson<'a> {
    pub(crate) fn new(events: &'a [InferredEvent]) -> Self {
        let result = |event: &'a InferredEvent| EventJson {
            id: event.id.0,
            memory: &event.memory,
            event: event.event.as_str(),
            previous_memory: event.previous.as_deref(),
        };
        Self { results: events.iter().map(result).collect(), inferred: true }
    }
}

/// One statement of a memory's history.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryJson<'a> {
    #[serde(flatten)]
    memory: MemoryJson<'a>,
    explanation: String,
    said: Vec<QuoteJson<'a>>,
    replaced_because: Vec<QuoteJson<'a>>,
}

#[derive(Debug, Serialize)]
struct QuoteJson<'a> {
    turn_id: Uuid,
    said_at: Timestamp,
    text: &'a str,
}

impl<'a> QuoteJson<'a> {
    fn all(quotes: &'a [Quote]) -> Vec<Self> {
        let json =
            |quote: &'a Quote| Self { turn_id: quote.turn.0, said_at: quote.said_at, text: &quote.text };
        quotes.iter().map(json).collect()
    }
}

impl<'a> HistoryJson<'a> {
    pub(crate) fn new(user: &'a UserId, step: &'a HistoryStep) -> Self {
        Self {
            memory: MemoryJson::new(user, &step.memory),
            explanation: step.to_string(),
            said: QuoteJson::all(&step.said),
            replaced_because: QuoteJson::all(&step.replaced_because),
        }
    }
}
