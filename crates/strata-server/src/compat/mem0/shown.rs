//! Memories in the form of mem0's service. The client's metadata keeps its text, so these are types and no JSON values.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::turn::Metadata;
use strata_core::{Memory, MemoryId, SessionId, UserId};

use crate::wire::memory::Sources;

/// A memory, with the name of the speaker and the time of the turn that it was learned from.
#[derive(Debug, Serialize)]
pub(super) struct ShownMemory {
    id: MemoryId,
    memory: String,
    user_id: String,
    agent_id: Option<String>,
    app_id: Option<Value>,
    run_id: Option<SessionId>,
    categories: Value,
    metadata: Metadata,
    created_at: Timestamp,
    updated_at: Timestamp,
    said_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

impl ShownMemory {
    pub(super) fn new(owner: &UserId, memory: Memory, sources: &Sources) -> Self {
        Self {
            id: memory.id,
            user_id: owner.to_string(),
            app_id: memory.metadata.get("app_id").cloned(),
            categories: memory
                .metadata
                .get("categories")
                .cloned()
                .unwrap_or_else(|| Value::Array(Vec::new())),
            created_at: memory.first_recorded_at(),
            updated_at: memory.hidden.map_or(memory.recorded_at, |hidden| hidden.at),
            said_at: sources.said_at(&memory),
            name: sources.name(&memory),
            score: None,
            memory: memory.content,
            agent_id: memory.agent,
            run_id: memory.session,
            metadata: memory.metadata,
        }
    }

    pub(super) fn scored(self, score: f32) -> Self {
        Self { score: Some(score), ..self }
    }
}

/// The answer of a search.
#[derive(Debug, Serialize)]
pub(super) struct FoundMemories {
    pub(super) results: Vec<ShownMemory>,
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct MemoryPage {
    pub(super) count: usize,
    pub(super) next: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) results: Vec<ShownMemory>,
}
