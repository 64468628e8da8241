//! The result and cost of a request, and why each candidate was or was not recalled.

use jiff::Timestamp;
use serde::Serialize;
use strata_core::metric::{ErrorStage, Feedback, LateStage, RequestMetric, TraceSource};
use strata_core::trace::{Explanation, Outcome, Trace, TraceCandidate};
use strata_core::{ItemId, UserId};
use utoipa::ToSchema;
use uuid::Uuid;

use super::names::Scope;

response! {
    /// The trace of one recall.
    pub(crate) TraceResponse from (trace: Trace) {
        /// The question.
        query: String = trace.query.clone(),
        /// Where recall searched.
        scope: Scope = trace.scope.into(),
        /// Why the scope was widened.
        expansion: Option<String> = trace.expansion.clone(),
        /// The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `nothing`.
        retrieval_path: &'static str = trace.path.as_str(),
        /// Items that contain a word of the question.
        fts_hits: u32 = trace.fts_hits,
        /// Items found by trigrams.
        trgm_hits: u32 = trace.trgm_hits,
        /// Items compared by their vectors.
        vector_hits: u32 = trace.vector_hits,
        /// The candidates, the most relevant first.
        candidates: Vec<CandidateResponse> = trace.candidates.iter().map(CandidateResponse::from).collect(),
    }
}

response! {
    /// The outcome of one candidate. A part of the score that did not count, or that the retrieval path does not
    /// have, is `null`.
    pub(crate) CandidateResponse from (candidate: TraceCandidate) {
        /// Its id.
        pub(crate) id: Uuid = candidate.item.uuid(),
        /// The kind of the item.
        pub(crate) kind: CandidateKind = candidate.item.into(),
        /// Its place by relevance, from 1.
        pub(crate) place: u32 = candidate.place,
        /// The share of the question's weight that its words match, by BM25.
        terms: Option<f32> = candidate.terms,
        /// The share of the question's weight that the vectors of its words match.
        words: Option<f32> = candidate.words,
        /// The cosine of the means of word vectors.
        mean: Option<f32> = candidate.mean,
        /// The encoder's cosine.
        encoder: Option<f32> = candidate.encoder,
        /// Whether it is from a time that the question names.
        timely: bool = candidate.timely,
        /// The part of the score that likeness to the best answers added.
        likeness: Option<f32> = candidate.likeness,
        /// How many places it moved up because it is newer than a similar statement; negative if it is the older one.
        fresher_by: i32 = candidate.fresher_by,
        /// The score: all of these together.
        score: f32 = candidate.score,
        /// The reader's judgement whether it answers, as log odds, if the scores left a doubt.
        judged: Option<f32> = candidate.judged,
        /// The relevance for the question, from 0 to 1.
        pub(crate) relevance: f32 = candidate.relevance,
        /// Its age, in days.
        age_days: Option<f32> = candidate.age_days,
        /// Relevance and recency together, from 0 to 1.
        served_score: Option<f32> = candidate.served_score,
        /// The outcome.
        pub(crate) outcome: OutcomeName = OutcomeName::from(&candidate.outcome),
        /// The outcome in words.
        pub(crate) reason: String = candidate.reason(),
    }
}

/// The kind of a candidate.
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

/// The outcome of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeName {
    /// It was returned.
    Served,
    /// It is not relevant enough.
    BelowThreshold,
    /// Other items were better, or a chosen one says the same.
    NotChosen,
    /// It did not fit the budget.
    OverBudget,
    /// Excluded: already shown.
    Shown,
    /// Excluded: it asks the same question.
    SameQuestion,
    /// Excluded: it was said again later, in the same words.
    SaidAgain,
    /// Excluded: it has no content, as «ok» or «where is it?».
    NoContent,
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
            Outcome::NoContent => Self::NoContent,
        }
    }
}

response! {
    /// Why one item was or was not recalled.
    pub ExplanationResponse from (explanation: Explanation) {
        /// The item's id.
        id: Uuid = explanation.item.uuid(),
        /// The kind of the item.
        kind: CandidateKind = explanation.item.into(),
        /// Whether it was returned.
        recalled: bool = is_served(explanation),
        /// The answer in a sentence.
        reason: String = explanation.reason.clone(),
        /// The outcome, if it was a candidate.
        candidate: Option<CandidateResponse> = explanation.candidate.as_ref().map(CandidateResponse::from),
    }
}

fn is_served(explanation: &Explanation) -> bool {
    let candidate = explanation.candidate.as_ref();
    candidate.is_some_and(|candidate| matches!(candidate.outcome, Outcome::Served(_)))
}

response! {
    /// The result and cost of one request.
    pub RequestResponse of pub fn(user: &UserId, row: &RequestMetric) {
        /// Its id, as in the answer's `request_id`.
        id: Uuid = row.id.0,
        /// The user whose memory was searched.
        user_id: String = user.to_string(),
        /// The session it was asked in.
        session_id: Option<String> = row.session.as_ref().map(ToString::to_string),
        /// When the request was made.
        created_at: Timestamp = row.created_at,
        /// The question.
        query: String = row.query.clone(),
        /// Items that contain a word of the question.
        fts_hits: u32 = row.fts_hits,
        /// Items found by trigrams.
        trgm_hits: u32 = row.trgm_hits,
        /// Items compared by their vectors.
        vector_hits: u32 = row.vector_hits,
        /// Whether full text and vectors found nothing, so that trigrams or the most recent turns were used instead.
        used_fallback: bool = row.used_fallback,
        /// The retrieval path that found the items: `fts`, `trgm`, `vector`, `window`, `summaries_only` or `nothing`.
        retrieval_path: &'static str = row.retrieval_path.as_str(),
        /// The requested scope.
        scope: Scope = row.scope.into(),
        /// Where recall searched in the end.
        scope_used: Scope = row.scope_used.into(),
        /// Why the scope was widened.
        expansion: Option<String> = row.expansion.clone(),
        /// The number of returned items.
        context_items: u32 = row.context_items,
        /// Their tokens.
        estimated_tokens: u32 = row.estimated_tokens,
        /// Whether the budget cut something.
        truncated: bool = row.truncated,
        /// Time spent on recall, in milliseconds.
        latency_retrieval_ms: f64 = milliseconds(row.latency_retrieval_us),
        /// Time spent on the model, in milliseconds.
        latency_llm_ms: Option<f64> = row.latency_llm_us.map(milliseconds),
        /// The stage that failed: `retrieval`, `embedding`, `llm_reply` or `summary`.
        error_stage: Option<&'static str> = row.error_stage.map(stage_name),
        /// The stage that came after the deadline, so that recall answered without it: `embedding` (the items were ranked
        /// by their words), `reranking` (they stayed in the order before the cross-encoder) or `second_look` (the scores
        /// stayed as they were before the reader).
        late: Option<&'static str> = row.late.map(LateStage::as_str),
        /// The tokens of all turns of the session: the size of a prompt that sends everything.
        raw_tokens: Option<u64> = row.prompt.raw_tokens,
        /// The tokens that the model read.
        input_tokens: Option<u64> = row.prompt.input_tokens,
        /// The tokens that the model wrote.
        output_tokens: Option<u64> = row.prompt.output_tokens,
        /// The share of the prompt that equals the beginning of the session's last prompt.
        stable_share: Option<f32> = row.prompt.stable_share,
        /// Complaints about the request, the oldest first.
        feedback: Vec<FeedbackResponse> = row.feedback.iter().map(FeedbackResponse::from).collect(),
    }
}

response! {
    /// A complaint about a request.
    pub(crate) FeedbackResponse from (feedback: Feedback) {
        /// The kind of failure: `forgot` or `meaning`.
        kind: &'static str = feedback.kind.as_str(),
        /// When it was filed.
        created_at: Timestamp = feedback.at,
        /// The person's own words.
        text: String = feedback.text.clone(),
    }
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

fn stage_name(stage: ErrorStage) -> &'static str {
    match stage {
        ErrorStage::Retrieval => "retrieval",
        ErrorStage::Embedding => "embedding",
        ErrorStage::LlmReply => "llm_reply",
        ErrorStage::Summary => "summary",
        ErrorStage::Recording => "recording",
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

response! {
    /// A request and its trace.
    pub TracedRequestResponse of pub fn(user: &UserId, row: &RequestMetric, trace: &Trace) {
        /// The result and cost of the request.
        #[serde(flatten)]
        request: RequestResponse = RequestResponse::new(user, row),
        /// Whether the trace was stored with the request, because it was made with `explain`. Otherwise the question
        /// was asked again, over the items that were visible then, with the current settings.
        trace_kept: bool = row.trace_source() == TraceSource::Kept,
        /// The same in words.
        trace_note: &'static str = row.trace_source().note(),
        /// The outcome of each candidate.
        trace: TraceResponse = trace.into(),
    }
}
