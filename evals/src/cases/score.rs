//! Compares a state with the roles of the sentences that it was read from.

use std::collections::HashSet;

use strata_core::ports::CaseRole;
use strata_core::state::{DiagnosticState, DiagnosticStatus, State};
use strata_language::text::query_terms;

use super::{CaseConversation, CaseFindings, CaseLine};

/// The share of a sentence's words that an item has to hold.
const SHARE: f64 = 0.7;

/// The items of a state in its slots.
struct Slots<'a> {
    diagnostic: &'a DiagnosticState,
    open: Vec<String>,
    done: Vec<String>,
}

impl<'a> Slots<'a> {
    fn new(state: &'a State) -> Self {
        let tasks = |done: bool| {
            let tasks = state.active_tasks.iter().filter(move |task| (task.status == "Completed") == done);
            tasks.map(|task| task.description.clone()).collect()
        };
        Self { diagnostic: &state.diagnostic, open: tasks(false), done: tasks(true) }
    }

    /// The slots, each with the roles that its items may come from; the first one is its own.
    fn all(&self) -> [(&'static str, &[String], &'static [CaseRole]); 9] {
        use CaseRole::{
            Advice, Cause, Constraint, Decision, Done, Fact, Finding, Hypothesis, Question, Resolved,
            RuledOut, Todo, Unresolved,
        };
        let diagnostic = self.diagnostic;
        // An observation is a finding, whichever conclusion the sentence draws from it.
        let observed: &[CaseRole] = &[Finding, Fact, Cause, RuledOut, Resolved, Unresolved, Done, Constraint];
        let circumstances: &[CaseRole] =
            &[Fact, Finding, Cause, RuledOut, Resolved, Unresolved, Done, Constraint];
        [
            ("cause", &diagnostic.root_causes, &[Cause, Finding]),
            ("finding", &diagnostic.findings, observed),
            ("ruled out", &diagnostic.ruled_out, &[RuledOut, Finding]),
            ("hypothesis", &diagnostic.hypotheses, &[Hypothesis, Question]),
            ("decision", &diagnostic.decisions, &[Decision, Todo, Constraint]),
            ("constraint", &diagnostic.constraints, &[Constraint, Advice, Fact, Decision]),
            ("fact", &diagnostic.facts, circumstances),
            ("task", &self.open, &[Todo, Decision]),
            ("done", &self.done, &[Done, Resolved, Finding, Todo]),
        ]
    }
}

/// Counts what the state holds of a conversation, and what it claims without reason.
pub(super) fn score(
    conversation: &CaseConversation,
    state: &State,
    summary: &str,
    found: &mut CaseFindings,
    notes: &mut Vec<String>,
) {
    let slots = Slots::new(state);
    let last_done = conversation.lines.iter().rposition(|line| line.label == CaseRole::Done);
    let everything: Vec<&String> = slots.all().iter().flat_map(|(_, items, _)| items.iter()).collect();
    for (place, line) in conversation.lines.iter().enumerate() {
        let diagnostic = slots.diagnostic;
        let in_any =
            |lists: &[&[String]]| lists.iter().any(|items| items.iter().any(|item| holds(item, &line.text)));
        let in_state = everything.iter().any(|item| holds(item, &line.text));
        let (share, is_in) = match line.label {
            CaseRole::Cause => (&mut found.causes, in_any(&[&diagnostic.root_causes])),
            CaseRole::Finding => (&mut found.findings, in_state),
            CaseRole::RuledOut => (&mut found.ruled_out, in_state && !in_any(&[&diagnostic.hypotheses])),
            CaseRole::Decision => (&mut found.decisions, in_any(&[&diagnostic.decisions, &slots.open])),
            CaseRole::Todo if last_done.is_none_or(|done| done < place) => {
                (&mut found.todos, in_any(&[&slots.open, &diagnostic.decisions]))
            }
            _ => continue,
        };
        share.count(is_in);
        found.kept.count(is_in || in_state || holds(summary, &line.text));
        if !is_in {
            notes.push(format!("{} missing {:?}: {}", conversation.id, line.label, line.text));
        }
    }
    count_wrong(conversation, &slots, found, notes);
    count_status(conversation, state, found, notes);
}

fn count_wrong(
    conversation: &CaseConversation,
    slots: &Slots<'_>,
    found: &mut CaseFindings,
    notes: &mut Vec<String>,
) {
    for (slot, items, roles) in slots.all() {
        for item in items {
            let lines =
                conversation.lines.iter().filter(|line| holds(item, &line.text) || holds(&line.text, item));
            let labels: Vec<&CaseLine> = lines.collect();
            // Small talk that is claimed as anything is wrong, too.
            let is_wrong = !labels.iter().any(|line| roles.contains(&line.label));
            found.wrong.count(is_wrong);
            found.misfiled.count(!labels.iter().any(|line| is_own(line.label, roles[0])));
            if is_wrong {
                let was: Vec<CaseRole> = labels.iter().map(|line| line.label).collect();
                notes.push(format!("{} wrong {slot} (was {was:?}): {item}", conversation.id));
            }
        }
    }
}

/// Whether a role is that of a list. A word about the status tells what was observed, so it stands among the findings.
fn is_own(role: CaseRole, own: CaseRole) -> bool {
    role == own || (own == CaseRole::Finding && matches!(role, CaseRole::Resolved | CaseRole::Unresolved))
}

/// The last word about the problem decides.
fn count_status(
    conversation: &CaseConversation,
    state: &State,
    found: &mut CaseFindings,
    notes: &mut Vec<String>,
) {
    let words = [CaseRole::Resolved, CaseRole::Unresolved];
    let last = conversation.lines.iter().rev().map(|line| line.label).find(|label| words.contains(label));
    let is_resolved = last == Some(CaseRole::Resolved);
    let is_right = is_resolved == (state.diagnostic.status == DiagnosticStatus::Resolved);
    found.status.count(is_right);
    if !is_right {
        notes.push(format!("{} status: {:?}, but was {last:?}", conversation.id, state.diagnostic.status));
    }
}

/// Whether a text holds a sentence: its letters, or most of its words.
fn holds(text: &str, sentence: &str) -> bool {
    let fold = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    if fold(text).contains(&fold(sentence)) {
        return true;
    }
    let words: HashSet<String> = query_terms(text).into_iter().collect();
    let sentence = query_terms(sentence);
    let shared = sentence.iter().filter(|word| words.contains(*word)).count();
    sentence.len() >= 3 && shared as f64 >= SHARE * sentence.len() as f64
}
