//! Builds the trace while a recall runs.

use std::collections::HashMap;

use strata_core::id::ItemId;
use strata_core::trace::{Outcome, Trace, TraceCandidate};

use super::candidates::{Candidate, CandidateSet};
use super::exclusions::ExclusionReason;
use super::request::{RecallRequest, Recalled, RecalledItem};

/// The trace of a running recall.
pub(super) struct TraceLog(pub(super) Trace);

impl From<ExclusionReason> for Outcome {
    fn from(reason: ExclusionReason) -> Self {
        match reason {
            ExclusionReason::Shown => Self::Shown,
            ExclusionReason::SameQuestion => Self::SameQuestion,
            ExclusionReason::SaidAgain(item) => Self::SaidAgain(item.to_string()),
            ExclusionReason::NoContent => Self::NoContent,
        }
    }
}

impl TraceLog {
    pub(super) fn new(request: &RecallRequest, found: &CandidateSet) -> Self {
        let behind = found.candidates.len() as u32 + 1;
        let excluded = found.excluded.iter().zip(behind..).map(|((candidate, reason), place)| {
            let outcome = Outcome::from(*reason);
            TraceCandidate { outcome, ..new_candidate(candidate, place) }
        });
        let candidates =
            found.candidates.iter().zip(1..).map(|(candidate, place)| new_candidate(candidate, place));
        let candidates = candidates.chain(excluded);
        Self(Trace {
            query: request.query.clone(),
            scope: found.scope,
            expansion: found.expansion.clone(),
            path: found.path,
            fts_hits: found.term_hits,
            trgm_hits: found.similar_hits,
            vector_hits: found.vector_hits,
            candidates: candidates.collect(),
        })
    }

    /// Records the order that a cross-encoder gave.
    pub(super) fn rerank(&mut self, candidates: &[Candidate]) {
        let places: HashMap<ItemId, u32> =
            candidates.iter().zip(1..).map(|(candidate, place)| (candidate.id, place)).collect();
        for known in self.0.candidates.iter_mut().filter(|known| !known.was_excluded()) {
            known.place = places.get(&known.item).copied().unwrap_or(known.place);
        }
        self.0.candidates.sort_by_key(|known| (known.was_excluded(), known.place));
    }

    /// Adds the recent turns that the fallback returned.
    pub(super) fn add_recent(&mut self, items: &[RecalledItem]) {
        let known = self.0.candidates.len() as u32;
        for (item, place) in items.iter().zip(known + 1..) {
            let id = item.item.id();
            if self.candidate(id).is_none() {
                let created_at = item.item.created_at().as_microsecond();
                let candidate = Candidate::unranked(id, created_at, 0.0, 0.0);
                self.0.candidates.push(new_candidate(&candidate, place));
            }
        }
    }

    fn candidate(&mut self, item: ItemId) -> Option<&mut TraceCandidate> {
        self.0.candidates.iter_mut().find(|candidate| candidate.item == item)
    }

    /// Records that a candidate passed the threshold.
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

    /// Records the returned items.
    pub(super) fn finish(&mut self, recalled: &Recalled) {
        self.0.path = recalled.path;
        for (item, place) in recalled.items.iter().zip(1..) {
            self.settle(item.item.id(), Outcome::Served(place));
        }
    }
}

pub(super) fn new_candidate(candidate: &Candidate, place: u32) -> TraceCandidate {
    let parts = candidate.ranked.as_ref().map(|(_, ranked)| ranked.parts);
    TraceCandidate {
        item: candidate.id,
        place,
        terms: parts.map(|parts| parts.terms),
        words: parts.map(|parts| parts.words),
        mean: parts.filter(|parts| parts.encoder.is_none()).map(|parts| parts.mean),
        encoder: parts.and_then(|parts| parts.encoder),
        timely: parts.is_some_and(|parts| parts.timely),
        likeness: parts.map(|parts| parts.likeness),
        fresher_by: parts.map_or(0, |parts| parts.fresher_by),
        judged: candidate.judged,
        score: candidate.score,
        relevance: candidate.relevance,
        age_days: None,
        served_score: None,
        replaced_by: candidate.replaced_by.map(|item| item.uuid()),
        outcome: Outcome::BelowThreshold,
    }
}
