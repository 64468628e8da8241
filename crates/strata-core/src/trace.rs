//! Why each candidate was or was not recalled, stage by stage.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::ItemId;
use crate::scope::Scope;

/// Which path gave the recalled items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}

/// What happened in one recall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The question.
    pub query: String,
    /// The scope that was used.
    pub scope: Scope,
    /// Why it was widened.
    pub expansion: Option<String>,
    /// Which path gave the candidates.
    pub path: RetrievalPath,
    /// Hits of full text, of trigrams, and items compared by vectors.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Items compared by their vectors.
    pub vector_hits: u32,
    /// The candidates, most relevant first.
    pub candidates: Vec<TraceCandidate>,
}

/// What happened to one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceCandidate {
    /// The item.
    #[serde(flatten)]
    pub item: ItemId,
    /// Its place by relevance, from 1.
    pub place: u32,
    /// BM25 over terms: the share of the question's weight that it matches.
    pub terms: Option<f32>,
    /// Late interaction over word vectors: the share of the question's weight that it matches.
    pub words: Option<f32>,
    /// The cosine of the means of word vectors, where it counted.
    pub mean: Option<f32>,
    /// The encoder's cosine.
    pub encoder: Option<f32>,
    /// Whether it is from a time that the question names.
    pub timely: bool,
    /// What likeness to the best answers added.
    pub likeness: Option<f32>,
    /// By how many places being newer than a like statement moved it up, or being older moved it down.
    pub fresher_by: i32,
    /// All of these together.
    pub score: f32,
    /// From 0 to 1.
    pub relevance: f32,
    /// How old it is.
    pub age_days: Option<f32>,
    /// Relevance and recency together.
    pub served_score: Option<f32>,
    /// What holds now, where this held once: it stands in front of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Uuid>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "detail", rename_all = "snake_case")]
pub enum Outcome {
    /// It was given back, at this place from 1.
    Served(u32),
    /// It is not relevant enough.
    BelowThreshold,
    /// Others were better, or it says what a chosen one says.
    NotChosen,
    /// It did not fit the budget, for this reason.
    OverBudget(String),
    /// It is in front of whoever asks anyway.
    Shown,
    /// It asks what is asked.
    SameQuestion,
    /// The item of this id says the same, and later.
    SaidAgain(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Served(place) => write!(f, "served as number {place}"),
            Self::BelowThreshold => f.write_str("not relevant enough"),
            Self::NotChosen => f.write_str("others were better, or say the same"),
            Self::OverBudget(reason) => f.write_str(reason),
            Self::Shown => f.write_str("the prompt shows it anyway"),
            Self::SameQuestion => f.write_str("it asks the same, which is no answer"),
            Self::SaidAgain(item) => write!(f, "said again later, by `{item}`"),
        }
    }
}

/// Why one item was or was not recalled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The item.
    #[serde(flatten)]
    pub item: ItemId,
    /// The answer in a sentence.
    pub reason: String,
    /// What happened to it, where it was a candidate.
    pub candidate: Option<TraceCandidate>,
}

impl TraceCandidate {
    /// What became of it, in words.
    pub fn reason(&self) -> String {
        match self.replaced_by {
            Some(current) => format!("{}; it was replaced by `{current}`", self.outcome),
            None => self.outcome.to_string(),
        }
    }

    /// Whether it was no candidate for a place.
    pub fn was_excluded(&self) -> bool {
        matches!(self.outcome, Outcome::Shown | Outcome::SameQuestion | Outcome::SaidAgain(_))
    }
}
