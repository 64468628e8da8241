//! The role of a sentence, decided from the reader's probabilities.

use strata_core::ports::{CaseRole, SentenceReading, Speaker, best};
use strum::VariantArray as _;

use super::Sentence;

/// The probability from which a sentence states the cause, though another role is likelier. A cause that is missed costs
/// more than one that is a finding too: on unseen conversations this finds 82 instead of 70 of 100 causes.
const CAUSE: f32 = 0.2;
/// The least probability of a role that claims something. Below it the sentence is left out.
const CLAIM: f32 = 0.4;
/// The least probability of an assistant's word that the case is resolved. Users say whether it is; assistants hope so.
const ASSISTANT_RESOLVED: f32 = 0.9;

/// A sentence with its role.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub(crate) sentence: Sentence,
    pub(crate) role: CaseRole,
    /// The probability of the role.
    pub(crate) sure: f32,
}

/// The role of a sentence.
pub(crate) fn judged(sentence: Sentence, reading: &SentenceReading) -> Judged {
    let role = role(&sentence, reading);
    Judged { sure: reading.case(role), role, sentence }
}

fn role(sentence: &Sentence, reading: &SentenceReading) -> CaseRole {
    let likeliest = CaseRole::VARIANTS[best(&reading.case)];
    let never_cause =
        matches!(likeliest, CaseRole::Hypothesis | CaseRole::Advice | CaseRole::Question | CaseRole::Todo);
    if !never_cause && reading.case(CaseRole::Cause) >= CAUSE {
        return CaseRole::Cause;
    }
    // A sentence in the form of a question claims nothing but, at most, a hypothesis.
    let is_question = sentence.text.ends_with(['?', '？']);
    if is_question && likeliest != CaseRole::Hypothesis {
        return CaseRole::Question;
    }
    let least = match (likeliest, sentence.speaker) {
        (CaseRole::Resolved, Speaker::Assistant) => ASSISTANT_RESOLVED,
        _ => CLAIM,
    };
    if reading.case(likeliest) < least { CaseRole::Nothing } else { likeliest }
}
