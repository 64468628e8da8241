//! Current knowledge before outdated knowledge: if all memories learned from a turn were replaced, the turn ranks after
//! the memory that replaced them.
//!
//! Turns are never closed, because they were said. But «I live in Ghent» matches «where do I live» better than «the
//! user moved to Bruges» does. Learning has already decided which of the two is current, so the current memory takes
//! the turn's position.

use jiff::Timestamp;

use super::candidates::{Candidate, CandidateSet};
use super::exclusions::ExclusionReason;
use super::rank::{Ranked, ScoreParts};
use super::request::{RecallPlan, RecallRequest};
use super::visible::VisibleItems;
use crate::index::{Doc, UserIndex};
use strata_core::id::{ItemId, MemoryId, TurnId};
use strata_core::scope::Scope;

/// Moves current memories before the turns that they make outdated. The scores stay with the positions.
pub(super) fn current_first(found: &mut CandidateSet, request: &RecallRequest, plan: &RecallPlan) {
    let places: Vec<(f32, f32, f32)> =
        found.candidates.iter().map(|found| (found.score, found.relevance, found.standing)).collect();
    let mut at = 0;
    let mut moved = false;
    while at < found.candidates.len() {
        if let Some((current, from)) = current_of(found, at, request) {
            found.candidates[at].replaced_by = Some(current.id);
            match from {
                Some(from) if from < at => {}
                _ => {
                    let current = from.map(|from| found.candidates.remove(from)).unwrap_or(current);
                    found.candidates.insert(at, current);
                    moved = true;
                    at += 1;
                }
            }
        }
        at += 1;
    }
    if !moved {
        return;
    }
    found.candidates.truncate(plan.pool);
    let last = places.last().copied().unwrap_or_default();
    for (place, candidate) in found.candidates.iter_mut().enumerate() {
        (candidate.score, candidate.relevance, candidate.standing) =
            places.get(place).copied().unwrap_or(last);
        if let Some((_, ranked)) = &mut candidate.ranked {
            (ranked.score, ranked.relevance, ranked.standing) =
                (candidate.score, candidate.relevance, candidate.standing);
        }
    }
}

/// Makes each current memory at least as relevant as the turn that it replaced. Whatever raises or lowers single items after
/// the ranking, an outdated turn is never served without the statement that holds now.
pub(super) fn lift_current(candidates: &mut [Candidate]) {
    let outdated: Vec<(ItemId, f32)> = candidates
        .iter()
        .filter_map(|candidate| candidate.replaced_by.map(|current| (current, candidate.relevance)))
        .collect();
    for (current, relevance) in outdated {
        if let Some(memory) = candidates.iter_mut().find(|candidate| candidate.id == current) {
            memory.relevance = memory.relevance.max(relevance);
        }
    }
}

/// The memory that makes a candidate outdated, and its position among the candidates if it has one.
fn current_of(
    found: &CandidateSet,
    at: usize,
    request: &RecallRequest,
) -> Option<(Candidate, Option<usize>)> {
    let candidate = &found.candidates[at];
    let (ItemId::Turn(turn), Some((place, _))) = (candidate.id, &candidate.ranked) else { return None };
    let index = found.indexes.get(*place)?.read();
    let replacements = replacements(found, &index, turn, request);
    let known = replacements.iter().filter_map(|memory| {
        let id = ItemId::Memory(*memory);
        found.candidates.iter().position(|other| other.id == id)
    });
    if let Some(from) = known.min() {
        return Some((found.candidates[from].clone(), Some(from)));
    }
    let docs = replacements.iter().filter_map(|memory| index.doc(&ItemId::Memory(*memory)));
    let doc = docs.into_iter().find(|doc| may_be_seen(&index, *doc, found.scope, request))?;
    let document = &index.documents[doc as usize];
    let Candidate { score, relevance, standing, .. } = *candidate;
    let ranked = Ranked { doc, score, relevance, standing, parts: ScoreParts::default() };
    let current = Candidate {
        ranked: Some((*place, ranked)),
        standing,
        ..Candidate::unranked(document.id, document.created_at, score, relevance)
    };
    Some((current, None))
}

/// The memories that replaced everything that a turn says. Nothing is learned from a turn that only repeats known
/// facts. Then the replacements of the earlier turns with the same text count (they are excluded in favour of this
/// turn), if they were learned after this turn.
fn replacements(
    found: &CandidateSet,
    index: &UserIndex,
    turn: TurnId,
    request: &RecallRequest,
) -> Vec<MemoryId> {
    let as_of = request.as_of.map(Timestamp::as_microsecond);
    let said = index.doc(&ItemId::Turn(turn)).map(|doc| index.documents[doc as usize].created_at);
    let learned_later = |memory: &MemoryId| {
        let doc = index.doc(&ItemId::Memory(*memory));
        doc.map(|doc| index.documents[doc as usize].created_at) > said
    };
    if index.learned.knows(turn) {
        return index.replacements(turn, as_of);
    }
    let again = |(candidate, reason): &(Candidate, ExclusionReason)| match candidate.id {
        ItemId::Turn(other) if *reason == ExclusionReason::SaidAgain(ItemId::Turn(turn)) => Some(other),
        _ => None,
    };
    let others = found.excluded.iter().filter_map(again);
    others.flat_map(|other| index.replacements(other, as_of)).filter(learned_later).collect()
}

fn may_be_seen(index: &UserIndex, doc: Doc, scope: Scope, request: &RecallRequest) -> bool {
    // With a filter, only candidates are known to be accepted.
    if request.filter.is_some() {
        return false;
    }
    VisibleItems::new(index, request, scope, None).contains(doc)
}

/// Keeps current memories before outdated turns after recency and diversity. `order` holds positions in `candidates`.
pub(super) fn keep_current_first(candidates: &[&Candidate], order: &mut [usize]) {
    for at in 0..order.len() {
        let Some(current) = candidates[order[at]].replaced_by else { continue };
        if order[..at].iter().any(|place| candidates[*place].id == current) {
            continue;
        }
        let Some(place) = candidates.iter().position(|candidate| candidate.id == current) else { continue };
        // The memory takes the turn's position. The turn takes the memory's position, or is dropped if the memory had
        // none.
        match order.iter().position(|other| *other == place) {
            Some(later) => order.swap(at, later),
            None => order[at] = place,
        }
    }
}
