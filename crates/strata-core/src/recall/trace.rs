//! Why each candidate was or was not recalled, stage by stage.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::aside::Reason;
use super::request::{RecallRequest, Recalled, RecalledItem};
use super::scope::Scope;
use super::{Candidate, Found};
use crate::id::ItemId;
use crate::metric::RetrievalPath;

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

impl From<Reason> for Outcome {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Shown => Self::Shown,
            Reason::Asked => Self::SameQuestion,
            Reason::Again(item) => Self::SaidAgain(item.to_string()),
        }
    }
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

impl Trace {
    pub(super) fn new(request: &RecallRequest, found: &Found) -> Self {
        let behind = found.candidates.len() as u32 + 1;
        let aside = found.aside.iter().zip(behind..).map(|((candidate, reason), place)| {
            let outcome = Outcome::from(*reason);
            TraceCandidate { outcome, ..TraceCandidate::new(candidate, place) }
        });
        let candidates =
            found.candidates.iter().zip(1..).map(|(candidate, place)| TraceCandidate::new(candidate, place));
        let candidates = candidates.chain(aside);
        Self {
            query: request.query.clone(),
            scope: found.scope,
            expansion: found.expansion.clone(),
            path: found.path,
            fts_hits: found.term_hits,
            trgm_hits: found.similar_hits,
            vector_hits: found.vector_hits,
            candidates: candidates.collect(),
        }
    }

    /// A cross-encoder has judged: its order and relevance take the place of the former. What it did not read, because
    /// others were better, keeps its relevance and comes after.
    pub(super) fn rerank(&mut self, candidates: &[Candidate]) {
        let read = |known: &&mut TraceCandidate| !known.stood_aside();
        for known in self.candidates.iter_mut().filter(read) {
            match candidates.iter().zip(1..).find(|(candidate, _)| candidate.id == known.item) {
                Some((candidate, place)) => {
                    known.place = place;
                    known.relevance = candidate.relevance;
                }
                None => known.outcome = Outcome::NotChosen,
            }
        }
        let read = |known: &TraceCandidate| known.outcome != Outcome::NotChosen && !known.stood_aside();
        self.candidates.sort_by_key(|known| (known.stood_aside(), !read(known), known.place));
        for (known, place) in self.candidates.iter_mut().zip(1..) {
            known.place = place;
        }
    }

    /// The most recent turns stand in for everything else.
    pub(super) fn add_recent(&mut self, items: &[RecalledItem]) {
        let known = self.candidates.len() as u32;
        for (item, place) in items.iter().zip(known + 1..) {
            let id = item.item.id();
            if self.candidate(id).is_none() {
                let created_at = item.item.created_at().as_microsecond();
                let candidate =
                    Candidate { id, created_at, score: 0.0, relevance: 0.0, ranked: None, replaced_by: None };
                self.candidates.push(TraceCandidate::new(&candidate, place));
            }
        }
    }

    fn candidate(&mut self, item: ItemId) -> Option<&mut TraceCandidate> {
        self.candidates.iter_mut().find(|candidate| candidate.item == item)
    }

    /// A candidate passed the threshold.
    pub(super) fn scored(&mut self, item: ItemId, age_days: f32, served_score: f32) {
        if let Some(candidate) = self.candidate(item) {
            candidate.age_days = Some(age_days);
            candidate.served_score = Some(served_score);
            candidate.outcome = Outcome::NotChosen;
        }
    }

    pub(super) fn settle(&mut self, item: ItemId, outcome: Outcome) {
        if let Some(candidate) = self.candidate(item) {
            candidate.outcome = outcome;
        }
    }

    /// Notes what was given back.
    pub(super) fn finish(&mut self, recalled: &Recalled) {
        self.path = recalled.path;
        for (item, place) in recalled.items.iter().zip(1..) {
            self.settle(item.item.id(), Outcome::Served(place));
        }
    }
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
    fn stood_aside(&self) -> bool {
        matches!(self.outcome, Outcome::Shown | Outcome::SameQuestion | Outcome::SaidAgain(_))
    }

    pub(super) fn new(candidate: &Candidate, place: u32) -> Self {
        let parts = candidate.ranked.as_ref().map(|(_, ranked)| ranked.parts);
        Self {
            item: candidate.id,
            place,
            terms: parts.map(|parts| parts.terms),
            words: parts.map(|parts| parts.words),
            mean: parts.filter(|parts| parts.encoder.is_none()).map(|parts| parts.mean),
            encoder: parts.and_then(|parts| parts.encoder),
            timely: parts.is_some_and(|parts| parts.timely),
            likeness: parts.map(|parts| parts.likeness),
            fresher_by: parts.map_or(0, |parts| parts.fresher_by),
            score: candidate.score,
            relevance: candidate.relevance,
            age_days: None,
            served_score: None,
            replaced_by: candidate.replaced_by.map(|item| item.uuid()),
            outcome: Outcome::BelowThreshold,
        }
    }
}
