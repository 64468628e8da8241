//! One row for each request that recalled something: what makes «it forgot» a question with an answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RequestId, SessionId};
use crate::recall::Scope;

/// Which path gave the recalled items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetrievalPath {
    /// Full text.
    Fts,
    /// Trigrams: substrings and misspellings.
    Trgm,
    /// Vectors.
    Vector,
    /// The most recent turns.
    Window,
    /// Nothing but summaries.
    SummariesOnly,
    /// Nothing at all.
    None,
}

impl RetrievalPath {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fts => "fts",
            Self::Trgm => "trgm",
            Self::Vector => "vector",
            Self::Window => "window",
            Self::SummariesOnly => "summaries_only",
            Self::None => "none",
        }
    }
}

/// Where a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStage {
    /// Recall.
    Retrieval,
    /// The model's reply.
    LlmReply,
    /// Summarising.
    Summary,
    /// Embedding the question.
    Embedding,
}

/// What one request did and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestMetric {
    /// The request.
    pub id: RequestId,
    /// The session it was made in.
    pub session: Option<SessionId>,
    /// When.
    pub created_at: Timestamp,
    /// The question.
    pub query: String,
    /// Hits of full text.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Hits of vectors.
    pub vector_hits: u32,
    /// Whether neither text path gave anything and recent turns stood in.
    pub used_fallback: bool,
    /// Which path gave the result.
    pub retrieval_path: RetrievalPath,
    /// The scope asked for.
    pub scope: Scope,
    /// The scope used in the end.
    pub scope_used: Scope,
    /// Why the scope was widened.
    pub expansion: Option<String>,
    /// Items given back.
    pub context_items: u32,
    /// Their tokens.
    pub estimated_tokens: u32,
    /// Whether the budget cut something.
    pub truncated: bool,
    /// Time spent on recall, in microseconds.
    pub latency_retrieval_us: u64,
    /// Time spent on the model, in microseconds.
    pub latency_llm_us: Option<u64>,
    /// Where it failed.
    pub error_stage: Option<ErrorStage>,
    /// The full trace, when one was asked for.
    pub trace: Option<Value>,
}
