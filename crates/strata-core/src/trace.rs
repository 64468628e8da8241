//! The trace of a recall: why each candidate was or was not returned, stage by stage.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::ItemId;
use crate::scope::Scope;

/// The path that found the recalled items.
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
    /// Only summaries.
    SummariesOnly,
    /// Nothing was found, or nothing was good enough. Clients and stores write `nothing`; older rows have `none`.
    #[serde(rename = "nothing", alias = "none")]
    #[strum(serialize = "nothing")]
    None,
}

impl RetrievalPath {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The trace of one recall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The question.
    pub query: String,
    /// The scope that was used.
    pub scope: Scope,
    /// The reason for widening the scope, if it was widened.
    pub expansion: Option<String>,
    /// The path that found the candidates.
    pub path: RetrievalPath,
    /// Hits of full-text search.
    pub fts_hits: u32,
    /// Hits of trigrams.
    pub trgm_hits: u32,
    /// Items compared by their vectors.
    pub vector_hits: u32,
    /// The candidates, most relevant first.
    pub candidates: Vec<TraceCandidate>,
}

/// The trace of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceCandidate {
    /// The item.
    #[serde(flatten)]
    pub item: ItemId,
    /// Its rank by relevance, from 1.
    pub place: u32,
    /// BM25 over terms: the share of the query's weight that the item matches.
    pub terms: Option<f32>,
    /// Late interaction over word vectors: the share of the query's weight that the item matches.
    pub words: Option<f32>,
    /// The cosine of the mean word vectors, if it counted.
    pub mean: Option<f32>,
    /// The encoder's cosine.
    pub encoder: Option<f32>,
    /// Whether the item is from a time that the query names.
    pub timely: bool,
    /// The bonus for similarity to the best results.
    pub likeness: Option<f32>,
    /// The number of ranks that the item moved up because it is newer than a similar statement, or down because it is
    /// older.
    pub fresher_by: i32,
    /// The sum of these parts.
    pub score: f32,
    /// The reader's judgement whether the item answers, as log odds, if the scores left a doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<f32>,
    /// The relevance, from 0 to 1.
    pub relevance: f32,
    /// The age of the item.
    pub age_days: Option<f32>,
    /// Relevance and recency together.
    pub served_score: Option<f32>,
    /// The current statement that replaces this one: it is placed before this item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Uuid>,
    /// The outcome for the candidate.
    pub outcome: Outcome,
}

/// The outcome for a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "detail", rename_all = "snake_case")]
pub enum Outcome {
    /// Returned at this rank, from 1.
    Served(u32),
    /// Not relevant enough.
    BelowThreshold,
    /// Other candidates were better, or a chosen one says the same.
    NotChosen,
    /// Excluded by the budget, for this reason.
    OverBudget(String),
    /// Excluded: the caller already sees it.
    Shown,
    /// Excluded: it asks the same question.
    SameQuestion,
    /// Excluded: the item with this id says the same and is newer.
    SaidAgain(String),
    /// Excluded: it says nothing that could answer a question, as «ok» or «where is it?».
    NoContent,
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
            Self::NoContent => f.write_str("excluded: no content"),
        }
    }
}

/// Why one item was or was not recalled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The item.
    #[serde(flatten)]
    pub item: ItemId,
    /// The answer in one sentence.
    pub reason: String,
    /// The item's trace, if it was a candidate.
    pub candidate: Option<TraceCandidate>,
}

impl TraceCandidate {
    /// The outcome in words.
    pub fn reason(&self) -> String {
        match self.replaced_by {
            Some(current) => format!("{}; it was replaced by `{current}`", self.outcome),
            None => self.outcome.to_string(),
        }
    }

    /// Whether the candidate was excluded before the ranking chose.
    pub fn was_excluded(&self) -> bool {
        use Outcome::{NoContent, SaidAgain, SameQuestion, Shown};
        matches!(self.outcome, Shown | SameQuestion | SaidAgain(_) | NoContent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_an_older_row_is_read() {
        let read = |name: &str| serde_json::from_str::<RetrievalPath>(&format!("\"{name}\"")).unwrap();
        assert_eq!((read("none"), read("nothing")), (RetrievalPath::None, RetrievalPath::None));
        assert_eq!(serde_json::to_value(RetrievalPath::None).unwrap(), RetrievalPath::None.as_str());
        assert_eq!((RetrievalPath::None.as_str(), RetrievalPath::Fts.as_str()), ("nothing", "fts"));
    }
}
