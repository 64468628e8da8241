//! Why each candidate was or was not recalled, as clients see it.

use serde::Serialize;
use strata_core::ItemId;
use strata_core::trace::{Explanation, Outcome, Trace, TraceCandidate};
use utoipa::ToSchema;
use uuid::Uuid;

use super::vocabulary::Scope;

/// What happened in one recall.
#[derive(Debug, Serialize, ToSchema)]
pub struct TraceResponse {
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
    id: Uuid,
    /// What it is.
    kind: CandidateKind,
    /// Its place by relevance, from 1.
    place: u32,
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
    relevance: f32,
    /// How old it is.
    age_days: Option<f32>,
    /// Relevance and recency together, from 0 to 1.
    served_score: Option<f32>,
    /// What became of it.
    outcome: OutcomeName,
    /// The same in words.
    reason: String,
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

impl From<Trace> for TraceResponse {
    fn from(trace: Trace) -> Self {
        let Trace { query, scope, expansion, path, fts_hits, trgm_hits, vector_hits, candidates } = trace;
        Self {
            query,
            scope: scope.into(),
            expansion,
            retrieval_path: path.as_str(),
            fts_hits,
            trgm_hits,
            vector_hits,
            candidates: candidates.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<TraceCandidate> for CandidateResponse {
    fn from(candidate: TraceCandidate) -> Self {
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

impl From<Explanation> for ExplanationResponse {
    fn from(explanation: Explanation) -> Self {
        let Explanation { item, reason, candidate } = explanation;
        let served = |candidate: &TraceCandidate| matches!(candidate.outcome, Outcome::Served(_));
        Self {
            id: item.uuid(),
            kind: item.into(),
            recalled: candidate.as_ref().is_some_and(served),
            reason,
            candidate: candidate.map(Into::into),
        }
    }
}
