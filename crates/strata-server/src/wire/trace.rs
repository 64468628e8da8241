//! What a request did and cost, and why each candidate was or was not recalled.

use jiff::Timestamp;
use serde::Serialize;
use strata_core::metric::{ErrorStage, RequestMetric, TraceSource};
use strata_core::trace::{Explanation, Outcome, Trace, TraceCandidate};
use strata_core::{ItemId, UserId};
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Scope;

/// What happened in one recall.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TraceResponse {
    /// The question.
    query: String,
    /// Where was looked.
    scope: Scope,
    /// Why the scope was widened.
    expansion: Option<String>,
    /// Which path gave the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `none`.
    retrieval_path: &'static str,
    /// Items that hold a word of the question.
    fts_hits: u32,
    /// Items found by trigrams.
    trgm_hits: u32,
    /// Items compared by their vectors.
    vector_hits: u32,
    /// The candidates, the most relevant first.
    candidates: Vec<CandidateResponse>,
}

/// What happened to one candidate. A part that did not count, or that the path does not know, is `null`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CandidateResponse {
    /// Its id.
    pub(crate) id: Uuid,
    /// What it is.
    pub(crate) kind: CandidateKind,
    /// Its place by relevance, from 1.
    pub(crate) place: u32,
    /// The share of the question's weight that its words match, by BM25.
    terms: Option<f32>,
    /// The share of the question's weight that the vectors of its words match.
    words: Option<f32>,
    /// The cosine of the means of word vectors.
    mean: Option<f32>,
    /// The encoder's cosine.
    encoder: Option<f32>,
    /// Whether it is from a time that the question names.
    timely: bool,
    /// What likeness to the best answers added.
    likeness: Option<f32>,
    /// By how many places being newer than a like statement moved it up; negative where it is the older one.
    fresher_by: i32,
    /// All of these together.
    score: f32,
    /// How well it fits the question, from 0 to 1.
    pub(crate) relevance: f32,
    /// How old it is.
    age_days: Option<f32>,
    /// Relevance and recency together, from 0 to 1.
    served_score: Option<f32>,
    /// What became of it.
    pub(crate) outcome: OutcomeName,
    /// The same in words.
    pub(crate) reason: String,
}

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CandidateKind {
    /// A turn.
    Turn,
    /// A memory.
    Memory,
    /// A summary.
    Summary,
}

impl From<ItemId> for CandidateKind {
    fn from(item: ItemId) -> Self {
        match item {
            ItemId::Turn(_) => Self::Turn,
            ItemId::Memory(_) => Self::Memory,
            ItemId::Summary(_) => Self::Summary,
        }
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeName {
    /// It was given back.
    Served,
    /// It is not relevant enough.
    BelowThreshold,
    /// Others were better, or it says what a chosen one says.
    NotChosen,
    /// It did not fit the budget.
    OverBudget,
    /// It is in front of whoever asks anyway.
    Shown,
    /// It asks what is asked.
    SameQuestion,
    /// It was said again later, in the same words.
    SaidAgain,
}

impl From<&Outcome> for OutcomeName {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Served(_) => Self::Served,
            Outcome::BelowThreshold => Self::BelowThreshold,
            Outcome::NotChosen => Self::NotChosen,
            Outcome::OverBudget(_) => Self::OverBudget,
            Outcome::Shown => Self::Shown,
            Outcome::SameQuestion => Self::SameQuestion,
            Outcome::SaidAgain(_) => Self::SaidAgain,
        }
    }
}

impl From<&Trace> for TraceResponse {
    fn from(trace: &Trace) -> Self {
        Self {
            query: trace.query.clone(),
            scope: trace.scope.into(),
            expansion: trace.expansion.clone(),
            retrieval_path: trace.path.as_str(),
            fts_hits: trace.fts_hits,
            trgm_hits: trace.trgm_hits,
            vector_hits: trace.vector_hits,
            candidates: trace.candidates.iter().map(CandidateResponse::from).collect(),
        }
    }
}

impl From<&TraceCandidate> for CandidateResponse {
    fn from(candidate: &TraceCandidate) -> Self {
        Self {
            id: candidate.item.uuid(),
            kind: candidate.item.into(),
            place: candidate.place,
            terms: candidate.terms,
            words: candidate.words,
            mean: candidate.mean,
            encoder: candidate.encoder,
            timely: candidate.timely,
            likeness: candidate.likeness,
            fresher_by: candidate.fresher_by,
            score: candidate.score,
            relevance: candidate.relevance,
            age_days: candidate.age_days,
            served_score: candidate.served_score,
            outcome: OutcomeName::from(&candidate.outcome),
            reason: candidate.reason(),
        }
    }
}

/// Why one item was or was not recalled.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplanationResponse {
    /// The item's id.
    id: Uuid,
    /// What it is.
    kind: CandidateKind,
    /// Whether it was given back.
    recalled: bool,
    /// The answer in a sentence.
    reason: String,
    /// What happened to it, where it was a candidate.
    candidate: Option<CandidateResponse>,
}

impl From<&Explanation> for ExplanationResponse {
    fn from(explanation: &Explanation) -> Self {
        let candidate = explanation.candidate.as_ref();
        Self {
            id: explanation.item.uuid(),
            kind: explanation.item.into(),
            recalled: candidate.is_some_and(|candidate| matches!(candidate.outcome, Outcome::Served(_))),
            reason: explanation.reason.clone(),
            candidate: candidate.map(CandidateResponse::from),
        }
    }
}

/// What one request did and cost.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestResponse {
    /// Its id, as in the answer's `request_id`.
    id: Uuid,
    /// Whose memory was asked.
    user_id: String,
    /// The session it was asked in.
    session_id: Option<String>,
    /// When.
    created_at: Timestamp,
    /// The question.
    query: String,
    /// Items that hold a word of the question.
    fts_hits: u32,
    /// Items found by trigrams.
    trgm_hits: u32,
    /// Items compared by their vectors.
    vector_hits: u32,
    /// Whether full text and vectors gave nothing and trigrams or the most recent turns stood in.
    used_fallback: bool,
    /// Which path gave the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `none`.
    retrieval_path: &'static str,
    /// The scope asked for.
    scope: Scope,
    /// Where was looked in the end.
    scope_used: Scope,
    /// Why the scope was widened.
    expansion: Option<String>,
    /// How many items were given back.
    context_items: u32,
    /// Their tokens.
    estimated_tokens: u32,
    /// Whether the budget cut something.
    truncated: bool,
    /// Time spent on recall, in milliseconds.
    latency_retrieval_ms: f64,
    /// Time spent on the model, in milliseconds.
    latency_llm_ms: Option<f64>,
    /// What failed: `retrieval`, `embedding`, `llm_reply` or `summary`.
    error_stage: Option<&'static str>,
}

impl RequestResponse {
    fn new(user: &UserId, row: &RequestMetric) -> Self {
        let milliseconds = |micros: u64| micros as f64 / 1_000.0;
        Self {
            id: row.id.0,
            user_id: user.to_string(),
            session_id: row.session.as_ref().map(ToString::to_string),
            created_at: row.created_at,
            query: row.query.clone(),
            fts_hits: row.fts_hits,
            trgm_hits: row.trgm_hits,
            vector_hits: row.vector_hits,
            used_fallback: row.used_fallback,
            retrieval_path: row.retrieval_path.as_str(),
            scope: row.scope.into(),
            scope_used: row.scope_used.into(),
            expansion: row.expansion.clone(),
            context_items: row.context_items,
            estimated_tokens: row.estimated_tokens,
            truncated: row.truncated,
            latency_retrieval_ms: milliseconds(row.latency_retrieval_us),
            latency_llm_ms: row.latency_llm_us.map(milliseconds),
            error_stage: row.error_stage.map(stage_name),
        }
    }
}

fn stage_name(stage: ErrorStage) -> &'static str {
    match stage {
        ErrorStage::Retrieval => "retrieval",
        ErrorStage::Embedding => "embedding",
        ErrorStage::LlmReply => "llm_reply",
        ErrorStage::Summary => "summary",
    }
}

/// Requests, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestsResponse {
    requests: Vec<RequestResponse>,
}

impl RequestsResponse {
    pub(crate) fn new(user: &UserId, rows: &[RequestMetric]) -> Self {
        Self { requests: rows.iter().map(|row| RequestResponse::new(user, row)).collect() }
    }
}

/// A request and what happened in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TracedRequestResponse {
    /// What it did and cost.
    #[serde(flatten)]
    request: RequestResponse,
    /// Whether the trace was made then, because somebody asked with `explain`. Otherwise the question was asked again, of
    /// what could be seen then, with the settings of now.
    trace_kept: bool,
    /// The same in words: from what the trace was made.
    trace_note: &'static str,
    /// What became of each candidate.
    trace: TraceResponse,
}

impl TracedRequestResponse {
    /// A user's request and its trace.
    pub fn new(user: &UserId, row: &RequestMetric, trace: &Trace) -> Self {
        let source = row.trace_source();
        Self {
            request: RequestResponse::new(user, row),
            trace_kept: source == TraceSource::Kept,
            trace_note: source.note(),
            trace: trace.into(),
        }
    }
}
