//! Follows the subject of a conversation that has no device: what its speakers say about it tells it from others.
//!
//! A user announces another subject and tells something about it that shares no word with what is known: then what is known
//! is archived. A subject comes back when a user returns to it, in words of its own. What began as another subject and is
//! small talk after all ends again.

use std::collections::HashSet;

use strata_core::ports::{CaseRole, Speaker};
use strata_core::state::{DiagnosticState, State};
use strata_language::text::query_terms;

use super::Judged;
use super::small_talk::is_common;
use super::subject_cues::{announces_subject, returns};
use crate::prompt::{begin_subject, has_device, return_to_subject, undo_subject};

/// The words that a sentence has to share with an archived subject: if it says that it returns, and otherwise.
const RETURN_WORDS: [usize; 2] = [1, 3];

/// A subject with fewer items than this, in the midst of small talk, was none.
const LEAST_ITEMS: usize = 4;

/// The change of the subject that a sentence makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// Another subject begins.
    Begins,
    /// The archived subject at this place is the subject again.
    Returns(usize),
}

/// The change that a sentence makes, `announced` if a sentence of its turn has announced another subject; `shared` is the
/// number of words that it shares with what is known.
pub(super) fn change(state: &State, judged: &Judged, announced: bool, shared: usize) -> Change {
    if judged.sentence.speaker != Speaker::User || shared > 0 {
        return Change::None;
    }
    let text = &judged.sentence.text;
    if let Some(place) = archived_subject(state, text) {
        return Change::Returns(place);
    }
    let is_announced = announced || announces_subject(text);
    let known = &state.diagnostic;
    let is_known = items(known).next().is_some() || has_device(known);
    if is_announced && is_known && tells_something(judged) { Change::Begins } else { Change::None }
}

/// Makes a change. `read` is what the word patterns read in the turn.
pub(super) fn apply(state: &mut State, change: Change, read: &State, seq: u64) {
    state.observed.begun = if change == Change::Begins { seq } else { 0 };
    match change {
        Change::None => {}
        Change::Begins => begin_subject(state, read, seq),
        Change::Returns(place) => return_to_subject(state, place, seq),
    }
}

/// Takes back a subject that began without a device and of which little was said, because it was small talk.
pub(super) fn end_small_talk(state: &mut State) {
    let now = &state.diagnostic;
    let has_begun = now.since > 0 && now.since == state.observed.begun;
    if has_begun && !has_device(now) && items(now).count() < LEAST_ITEMS {
        state.observed.begun = 0;
        undo_subject(state);
    }
}

/// Whether a sentence says enough to begin a subject.
fn tells_something(judged: &Judged) -> bool {
    use CaseRole::{Cause, Constraint, Decision, Fact, Finding, Hypothesis, Todo, Unresolved};
    let roles = [Cause, Constraint, Decision, Fact, Finding, Hypothesis, Todo, Unresolved];
    judged.is_listed && roles.contains(&judged.role)
}

/// The archived subject that a sentence speaks of most.
fn archived_subject(state: &State, text: &str) -> Option<usize> {
    let words: HashSet<String> = query_terms(text).into_iter().filter(|word| !is_common(word)).collect();
    let least = RETURN_WORDS[usize::from(!returns(text))];
    let shared = |subject: &DiagnosticState| {
        let known: HashSet<String> = items(subject).flat_map(|item| query_terms(item)).collect();
        words.intersection(&known).count()
    };
    let subjects = state.archived.iter().map(shared).enumerate();
    let best = subjects.max_by_key(|(place, shared)| (*shared, *place));
    best.filter(|(_, shared)| *shared >= least).map(|(place, _)| place)
}

/// All that is known about a subject.
fn items(subject: &DiagnosticState) -> impl Iterator<Item = &String> {
    let DiagnosticState {
        findings, hypotheses, ruled_out, root_causes, decisions, constraints, facts, ..
    } = subject;
    let lists = [findings, hypotheses, ruled_out, root_causes, decisions, constraints, facts];
    lists.into_iter().flatten().chain(&subject.device_name)
}
