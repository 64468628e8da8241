//! The role of a sentence, decided from the reader's probabilities.

use strata_core::ports::{CaseRole, SentenceReading, Speaker, best};
use strum::VariantArray as _;

use super::Sentence;
use super::cues::{announces_cause, drops_supposition, leaves_open, leaves_subject, names_alternatives};
use super::plan_cues::{announces_decision, decides_plainly, gives_up, is_completed, is_undecided};
use super::status_cues::{End, announced_end, announces_failure, goes_on};

/// The probability from which a sentence states the cause, though another role is likelier. A cause that is missed costs
/// more than one that is a finding too: on unseen conversations this finds 82 instead of 70 of 100 causes.
const CAUSE: f32 = 0.2;
/// The same for a user's word that the case is resolved, if a cause is known or something has been done.
const RESOLVED: f32 = 0.25;
/// The same for a word that something goes on as before («it still …», 还是), which seldom tells of an end.
const RESOLVED_AS_BEFORE: f32 = 0.8;
/// The least probability of an assistant's word that the case is resolved. Users say whether it is; assistants hope so.
const ASSISTANT_RESOLVED: f32 = 0.9;
/// The probability from which a sentence of no clear role is a finding, if the roles that observe something have
/// `OBSERVED` together.
const FINDING: f32 = 0.2;
const OBSERVED: f32 = 0.6;

/// The probability from which a sentence that drops a hypothesis or decides the status is no cause beside that.
const SURE: f32 = 0.5;
/// The probability from which such a sentence, if it is not sure, states the cause.
const CAUSE_BESIDE_END: f32 = 0.35;

/// The probability from which a sentence that announces a decision is one, though another role is likelier.
const DECISION: f32 = 0.1;

/// The probability of the roles that plan something, together, from which a sentence is the likelier one of them. A decision
/// and a todo are often the same sentence.
const PLANNED: f32 = 0.75;
/// The probability of a cause below which an announced decision is one, whatever the reader gives it.
const DOUBTFUL_CAUSE: f32 = 0.4;

/// The probability of `nothing` below which a sentence without a clear role says something: the reader only cannot tell what.
/// Of 75 such sentences in 46 working conversations, 44 have less; of 981 in small talk, 30.
const SAYS_NOTHING: f32 = 0.02;

/// The probability from which a sentence ends a hypothesis or a task.
const ENDING: f32 = 0.5;

/// The least probability of a role whose sentence enters a list. Those that are mistaken most often need the most: on unseen
/// conversations about one item of sixteen contradicts its list, and four of five things that matter are kept.
fn least(role: CaseRole, speaker: Speaker) -> f32 {
    match role {
        CaseRole::Resolved if speaker == Speaker::Assistant => ASSISTANT_RESOLVED,
        CaseRole::RuledOut => 0.9,
        CaseRole::Hypothesis | CaseRole::Done => 0.85,
        CaseRole::Fact | CaseRole::Constraint => 0.8,
        CaseRole::Decision => 0.7,
        CaseRole::Todo => 0.65,
        CaseRole::Finding => 0.6,
        _ => 0.4,
    }
}

/// A sentence with its role.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub(crate) sentence: Sentence,
    pub(crate) role: CaseRole,
    /// Whether its role is sure enough for a list. Otherwise the sentence only ends what it speaks about.
    pub(crate) is_listed: bool,
    /// Whether it says nothing about the case, and is not only hard to judge.
    pub(crate) says_nothing: bool,
    /// Whether it may be the user's word that the case is resolved, beside its role.
    pub(crate) may_resolve: bool,
    /// How it says that the problem is over, if it is such a word.
    pub(crate) end: Option<End>,
    /// Whether the speaker announces the role.
    pub(crate) is_announced: bool,
}

impl Judged {
    /// A sentence that claims nothing, and is hard to judge.
    fn nothing(sentence: Sentence) -> Self {
        let (role, end) = (CaseRole::Nothing, None);
        let (is_listed, says_nothing, may_resolve, is_announced) = (false, false, false, false);
        Self { sentence, role, is_listed, says_nothing, may_resolve, end, is_announced }
    }
}

/// Whether a role tells what the speakers do or leave, so that a quotation cannot have it.
fn is_plan(role: CaseRole) -> bool {
    matches!(role, CaseRole::Constraint | CaseRole::Decision | CaseRole::Todo | CaseRole::Done)
}

/// The role of a sentence.
pub(crate) fn judged(sentence: Sentence, reading: &SentenceReading) -> Judged {
    let by_reader = role(&sentence, reading);
    if sentence.is_material && is_plan(by_reader) {
        return Judged::nothing(sentence);
    }
    let end = end_of(&sentence, by_reader);
    let announced = announced_role(&sentence, reading, by_reader, end);
    let role = announced.unwrap_or(by_reader);
    let is_announced = announced.is_some()
        || match role {
            CaseRole::Cause => announces_cause(&sentence.text),
            CaseRole::RuledOut => drops_supposition(&sentence.text),
            CaseRole::Hypothesis => leaves_open(&sentence.text) || names_alternatives(&sentence.text),
            _ => false,
        };
    let is_listed = is_announced
        || reading.case(role) >= least(role, sentence.speaker)
        || is_observed(role, reading)
        || is_planned(role, reading);
    let says_nothing = role == CaseRole::Nothing
        && (reading.case(CaseRole::Nothing) >= SAYS_NOTHING || leaves_subject(&sentence.text));
    let may_resolve = sentence.speaker == Speaker::User
        && role != CaseRole::Unresolved
        && announced != Some(CaseRole::Decision)
        && (may_resolve(&sentence.text, reading) || end.is_some())
        && !leaves_subject(&sentence.text);
    Judged { sentence, role, is_listed, says_nothing, may_resolve, end, is_announced }
}

/// How a user's sentence says that the problem is over. What is asked, supposed, advised or still to be done says no such
/// thing.
fn end_of(sentence: &Sentence, role: CaseRole) -> Option<End> {
    let end = announced_end(&sentence.text).filter(|_| sentence.speaker == Speaker::User)?;
    let may_be = match role {
        CaseRole::Finding | CaseRole::Fact | CaseRole::Done | CaseRole::Nothing | CaseRole::Unresolved => {
            true
        }
        CaseRole::Resolved => true,
        CaseRole::RuledOut | CaseRole::Decision | CaseRole::Cause => end.is_announced(),
        _ => false,
    };
    may_be.then_some(end)
}

/// The role that a speaker announces, where it is not the one that the reader gives.
fn announced_role(
    sentence: &Sentence,
    reading: &SentenceReading,
    role: CaseRole,
    end: Option<End>,
) -> Option<CaseRole> {
    let text = &sentence.text;
    if leaves_subject(text) || text.ends_with(['?', '？']) {
        return None;
    }
    let is_unclear = role == CaseRole::Nothing && reading.case(CaseRole::Nothing) < SURE;
    let may_tell_status = is_unclear || matches!(role, CaseRole::Decision | CaseRole::RuledOut);
    if end.is_some_and(End::is_announced) && (may_tell_status || role == CaseRole::Unresolved) {
        return Some(CaseRole::Resolved);
    }
    if end.is_some() && role == CaseRole::Unresolved {
        return Some(CaseRole::Nothing);
    }
    let has_failed = announces_failure(text) && (may_tell_status || role == CaseRole::Done);
    let is_given_up = reading.case(CaseRole::Decision) >= DECISION && gives_up(text);
    let decides = announces_decision(text) || is_given_up;
    let is_as_before = goes_on(text) && !decides && (is_unclear || role == CaseRole::Done);
    if sentence.speaker == Speaker::User && end.is_none() && (has_failed || is_as_before) {
        return Some(CaseRole::Unresolved);
    }
    let may_be = may_decide(text, reading, role) || is_overruled(role) && decides_plainly(text);
    (decides && may_be).then_some(CaseRole::Decision)
}

/// Whether a plain announcement of a decision weighs more than a role.
fn is_overruled(role: CaseRole) -> bool {
    matches!(
        role,
        CaseRole::Constraint | CaseRole::Fact | CaseRole::Nothing | CaseRole::Finding | CaseRole::Advice
    )
}

/// Whether a sentence that announces a decision may be one, though the reader gives it another role.
fn may_decide(text: &str, reading: &SentenceReading, role: CaseRole) -> bool {
    let is_possible = reading.case(CaseRole::Decision) >= DECISION;
    match role {
        // Speakers who agree upon something sound as if a problem were over.
        CaseRole::Resolved => is_possible && announced_end(text).is_none(),
        CaseRole::Nothing => reading.case(CaseRole::Nothing) < SURE,
        CaseRole::Finding | CaseRole::Fact | CaseRole::Constraint | CaseRole::RuledOut => is_possible,
        CaseRole::Cause => {
            !announces_cause(text) && (is_possible || reading.case(CaseRole::Cause) < DOUBTFUL_CAUSE)
        }
        _ => false,
    }
}

fn may_resolve(text: &str, reading: &SentenceReading) -> bool {
    let resolved = reading.case(CaseRole::Resolved);
    let least = if goes_on(text) { RESOLVED_AS_BEFORE } else { RESOLVED };
    resolved >= least && resolved > reading.case(CaseRole::Unresolved)
}

fn role(sentence: &Sentence, reading: &SentenceReading) -> CaseRole {
    if leaves_subject(&sentence.text) {
        return CaseRole::Nothing;
    }
    let likeliest = CaseRole::VARIANTS[best(&reading.case)];
    if states_cause(sentence, reading, likeliest) {
        return CaseRole::Cause;
    }
    if likeliest == CaseRole::Cause && names_alternatives(&sentence.text) {
        return CaseRole::Hypothesis;
    }
    let may_drop = matches!(
        likeliest,
        CaseRole::Decision | CaseRole::Advice | CaseRole::Done | CaseRole::Nothing | CaseRole::RuledOut
    );
    if may_drop && drops_supposition(&sentence.text) {
        return CaseRole::RuledOut;
    }
    if likeliest == CaseRole::RuledOut && leaves_open(&sentence.text) {
        return CaseRole::Hypothesis;
    }
    if likeliest == CaseRole::Todo && is_completed(&sentence.text) {
        return CaseRole::Done;
    }
    if likeliest == CaseRole::Decision && is_undecided(&sentence.text) {
        return CaseRole::Nothing;
    }
    // A sentence in the form of a question claims nothing but, at most, a hypothesis.
    let is_question = sentence.text.ends_with(['?', '？']);
    if is_question && likeliest != CaseRole::Hypothesis {
        return CaseRole::Question;
    }
    if reading.case(likeliest) >= least(likeliest, sentence.speaker) || is_planned(likeliest, reading) {
        return likeliest;
    }
    if is_observed(CaseRole::Finding, reading) {
        return CaseRole::Finding;
    }
    let is_ending = matches!(likeliest, CaseRole::RuledOut | CaseRole::Done);
    if is_ending && reading.case(likeliest) >= ENDING { likeliest } else { CaseRole::Nothing }
}

/// Whether a sentence states the cause: because the reader gives that enough weight beside a role that is not sure, or
/// because the speaker announces it.
fn states_cause(sentence: &Sentence, reading: &SentenceReading, likeliest: CaseRole) -> bool {
    let is_asked = sentence.text.ends_with(['?', '？']);
    match likeliest {
        CaseRole::Advice | CaseRole::Question | CaseRole::Todo => return false,
        _ if !is_asked && announces_cause(&sentence.text) => return true,
        CaseRole::Hypothesis => return false,
        _ if names_alternatives(&sentence.text) => return false,
        _ => {}
    }
    let ends = matches!(likeliest, CaseRole::RuledOut | CaseRole::Resolved | CaseRole::Unresolved);
    let is_sure = ends && reading.case(likeliest) >= SURE;
    let least = if ends { CAUSE_BESIDE_END } else { CAUSE };
    !is_sure && reading.case(CaseRole::Cause) >= least
}

/// Whether a sentence plans something, as a decision or as a todo.
fn is_planned(role: CaseRole, reading: &SentenceReading) -> bool {
    let planning = [CaseRole::Decision, CaseRole::Todo, CaseRole::Constraint];
    let planned: f32 = planning.iter().map(|role| reading.case(*role)).sum();
    let is_likeliest = planning.iter().all(|other| reading.case(role) >= reading.case(*other));
    matches!(role, CaseRole::Decision | CaseRole::Todo) && is_likeliest && planned >= PLANNED
}

/// Whether a sentence is the cause or a finding, though another role may be likelier.
fn is_observed(role: CaseRole, reading: &SentenceReading) -> bool {
    let observing = [
        CaseRole::Finding,
        CaseRole::Fact,
        CaseRole::Done,
        CaseRole::Resolved,
        CaseRole::Unresolved,
        CaseRole::RuledOut,
        CaseRole::Cause,
    ];
    let observed: f32 = observing.iter().map(|role| reading.case(*role)).sum();
    match role {
        CaseRole::Cause => reading.case(CaseRole::Cause) >= CAUSE,
        CaseRole::Finding => reading.case(CaseRole::Finding) >= FINDING && observed >= OBSERVED,
        _ => false,
    }
}
