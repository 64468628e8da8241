//! The answers of the tools: shorter forms of the wire types, without fields that cost a model tokens and are of no
//! use to it. Stored text is neutralised, because a model reads it.

use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::{Map, Value};
use strata_core::trace::TraceCandidate;
use strata_core::{Memory, UserId};
use strata_engine::neutral;
use strata_engine::recall::RecalledItem;

use crate::wire::MemoryResponse;
use crate::wire::memory::{AddedMemory, Sources};
use crate::wire::names::{Kind, Role, Scope};
use crate::wire::search::FoundItem;
use crate::wire::trace::{CandidateKind, CandidateResponse, OutcomeName};

/// A memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryAnswer {
    /// Its id, for `get_memory`, `update_memory` and `delete_memory`.
    id: String,
    /// The statement.
    memory: String,
    /// `fact`, `preference`, `schedule`, `todo`, `decision`, `event`, `relation`, `work` or `instruction`.
    #[schemars(with = "String")]
    kind: Kind,
    /// Where it holds: `session`, `user` or `global`.
    #[schemars(with = "String")]
    scope: Scope,
    /// The conversation it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The agent it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    /// The client's metadata.
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    /// How a todo ended: `done` or `dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<&'static str>,
    /// When it was learned.
    created_at: String,
    /// When the statement became true.
    valid_from: String,
    /// When the statement stopped being true; absent while it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<String>,
    /// The memory that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
    /// Whether it was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// The turns that state it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_turns: Vec<String>,
}

impl MemoryAnswer {
    pub(crate) fn new(owner: &UserId, memory: &Memory) -> Self {
        let memory = MemoryResponse::new(owner, memory, &Sources::default());
        Self {
            id: memory.id.to_string(),
            memory: neutral(&memory.memory),
            kind: memory.kind,
            scope: memory.scope,
            session_id: memory.run_id,
            agent_id: memory.agent_id,
            metadata: memory.metadata.fields().clone(),
            todo: memory.todo,
            created_at: memory.created_at.to_string(),
            valid_from: memory.valid_from.to_string(),
            valid_to: memory.valid_to.map(|moment| moment.to_string()),
            replaced_by: memory.replaced_by.map(|id| id.to_string()),
            deleted: memory.hidden == Some("deleted"),
            source_turns: memory.source.turns.iter().map(|turn| turn.id.to_string()).collect(),
        }
    }
}

/// The answer of `add_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AddedAnswer {
    /// The added memories.
    pub(crate) results: Vec<AddedMemoryAnswer>,
}

/// A memory that was added.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AddedMemoryAnswer {
    /// Its id.
    id: String,
    /// The statement as it is stored.
    memory: String,
    /// The kind of the change: `ADD`, `UPDATE` if it replaced a memory, `DELETE` for a memory that it ended, `NONE` if it
    /// was known already.
    event: &'static str,
}

impl From<&AddedMemory> for AddedMemoryAnswer {
    fn from(added: &AddedMemory) -> Self {
        Self { id: added.id.to_string(), memory: neutral(&added.memory), event: added.event.as_str() }
    }
}

/// The answer of `search_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    /// The found items, the best first.
    pub(crate) results: Vec<FoundAnswer>,
    /// The id for `explain_recall`.
    pub(crate) request_id: String,
    /// Where recall searched: `session`, `user` or `global`.
    pub(crate) scope: &'static str,
    /// A hint for using the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// A found item.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundAnswer {
    /// Its id.
    id: String,
    /// `turn` for a message; `summary`; or the kind of a memory, as in `get_memories`.
    kind: &'static str,
    /// Its text.
    memory: String,
    /// The role of the speaker, if it is a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    role: Option<Role>,
    /// The name of the speaker, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// When it was said; for a memory, when it was first said.
    said_at: String,
    /// The score: relevance and recency together, from 0 to 1.
    score: f64,
    /// When it was said or learned.
    created_at: String,
    /// When the statement stopped being true; absent while it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<String>,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The client's metadata.
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    /// Whether the text was shortened; `get_memory` returns the whole memory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl FoundAnswer {
    pub(crate) fn new(found: &RecalledItem, sources: &Sources) -> Self {
        let found = FoundItem::new(found, sources);
        Self {
            id: found.id.to_string(),
            kind: found.kind,
            memory: neutral(&found.memory),
            // A turn's metadata is of no use to a model.
            metadata: if found.role.is_some() { Map::new() } else { found.metadata.fields().clone() },
            role: found.role,
            name: found.name,
            said_at: found.said_at.to_string(),
            score: rounded(found.score),
            created_at: found.created_at.to_string(),
            valid_to: found.valid_to.map(|moment| moment.to_string()),
            session_id: found.session_id,
            truncated: found.truncated,
        }
    }
}

/// Rounds to three digits: more are of no use to a model.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1_000.0).round() / 1_000.0
}

/// The answer of `get_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoriesAnswer {
    /// The memories, the newest first.
    pub(crate) results: Vec<MemoryAnswer>,
    /// Present if there may be more: call again with this `offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_offset: Option<u64>,
}

/// The answer of `get_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OneAnswer {
    /// The memory.
    #[serde(flatten)]
    pub(crate) memory: MemoryAnswer,
    /// All statements that it replaced, its own, and all that replaced it, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<Vec<MemoryAnswer>>,
}

/// The answer of `delete_memory` and `delete_all_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedAnswer {
    /// The number of memories that were removed from recall.
    pub(crate) deleted: u64,
    /// An explanation of the result.
    pub(crate) note: &'static str,
}

/// The answer of `forget_user`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForgottenAnswer {
    /// The number of conversations that were destroyed.
    pub(crate) sessions: u64,
    /// The number of messages that were destroyed.
    pub(crate) turns: u64,
    /// The number of memories that were destroyed.
    pub(crate) memories: u64,
    /// An explanation of the result.
    pub(crate) note: &'static str,
}

/// The answer of `explain_recall`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainAnswer {
    /// The question.
    pub(crate) query: String,
    /// Where recall searched, and why the search was wider than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expansion: Option<String>,
    /// The reason, for the one item that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The outcomes of the candidates, the most relevant first.
    pub(crate) candidates: Vec<CandidateAnswer>,
    /// How many other candidates there were.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more_candidates: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The outcome of one candidate.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CandidateAnswer {
    /// Its id.
    id: String,
    /// `turn`, `memory` or `summary`.
    #[schemars(with = "String")]
    kind: CandidateKind,
    /// Its place by relevance, from 1.
    place: u32,
    /// The relevance for the question, from 0 to 1.
    relevance: f64,
    /// `served`, `below_threshold`, `not_chosen`, `over_budget`, `shown`, `same_question`, `said_again` or
    /// `no_content`.
    #[schemars(with = "String")]
    outcome: OutcomeName,
    /// The outcome in words.
    reason: String,
}

impl From<&TraceCandidate> for CandidateAnswer {
    fn from(candidate: &TraceCandidate) -> Self {
        let candidate = CandidateResponse::from(candidate);
        Self {
            id: candidate.id.to_string(),
            kind: candidate.kind,
            place: candidate.place,
            relevance: rounded(candidate.relevance),
            outcome: candidate.outcome,
            reason: candidate.reason,
        }
    }
}
