//! Extraction and reconciliation by rules, in English and Chinese. They are the default: they need no download and no
//! model.
//!
//! A message is split into clauses ([`sentence`]). The grammar of its language ([`english`], [`chinese`]) reads each
//! clause as claims ([`claim`]); its tables define the meaning of a predicate and its form in the third person. Known
//! memories are read by the same grammars, so two texts are compared by their claims ([`compare`]) and not by their
//! wording. Text that no rule reads is ignored: precision comes before recall, and a similar text alone never ends a
//! memory.
//!
//! The confidence of a statement depends on the way it was read; `docs/learning.md` documents it: 0.95 if the user asks
//! to remember it, 0.9 for a plain statement, 0.8 for a conclusion from one, 0.7 for statements about other people and
//! finished errands, and half of that for a hedged statement.

mod chinese;
mod claim;
mod compare;
mod compound;
mod english;
mod home;
mod patterns;
mod sentence;
mod since;
mod statement;
#[cfg(test)]
mod tests;
mod value;

use crate::plan::Plan;
use claim::{Hold, ReadClaim};
pub(crate) use compound::is_no_name;
pub(crate) use english::third_person as verb_in_third_person;
pub use home::{HomeMove, home_move};
use sentence::{Clause, Language};
pub use sentence::{is_question, with_question_mark};
pub use statement::{Known, MAX_STATEMENTS, RuleStatement, SaidText, StatementKind};

/// The factor for statements with «I think», «maybe», 可能.
const HEDGED: f32 = 0.5;
/// The confidence of «Remember that …», 记住: the user asks for it.
const ASKED_FOR: f32 = 0.95;

/// The statements of a message, at most [`MAX_STATEMENTS`].
pub fn extract(message: &SaidText<'_>) -> Vec<RuleStatement> {
    let mut statements: Vec<(RuleStatement, ReadClaim)> = Vec::new();
    let mut subject = None;
    for clause in sentence::clauses(message.text) {
        let who = message.name.unwrap_or(match clause.language {
            Language::English => "The user",
            Language::Chinese => "用户",
        });
        let mut readings = match clause.language {
            Language::English => english::read(&clause.text, who, message.at),
            Language::Chinese => chinese::read(&clause.text, who, message.at, &mut subject),
        };
        if readings.is_empty() && clause.asked_for {
            readings.extend(sentence::in_its_own_words(&clause, who));
        }
        for reading in readings {
            let statement = statement(message, &clause, &reading);
            // A later part of a message corrects an earlier one.
            statements.retain(|(_, earlier)| !compare::ends(&reading.claim, &earlier.claim));
            if !statements.iter().any(|(other, _)| other.content == statement.content) {
                statements.push((statement, reading));
            }
        }
    }
    // A long message has more statements than are kept. The statements with the highest confidence stay, in their
    // original order.
    if statements.len() > MAX_STATEMENTS {
        let mut order: Vec<usize> = (0..statements.len()).collect();
        order.sort_by(|a, b| statements[*b].0.confidence.total_cmp(&statements[*a].0.confidence));
        let mut kept: Vec<usize> = order.into_iter().take(MAX_STATEMENTS).collect();
        kept.sort_unstable();
        return kept.into_iter().map(|place| statements[place].0.clone()).collect();
    }
    statements.into_iter().map(|(statement, _)| statement).collect()
}

fn statement(message: &SaidText<'_>, clause: &Clause, reading: &ReadClaim) -> RuleStatement {
    let ReadClaim { content, kind, confidence, begins, claim } = reading;
    let confidence = match (clause.asked_for, clause.hedged) {
        (_, true) => HEDGED * confidence,
        (true, false) => ASKED_FOR,
        (false, false) => *confidence,
    };
    let since =
        (*begins && claim.hold == Hold::Now).then(|| since::begin(&clause.text, message.at)).flatten();
    let content = match *kind {
        StatementKind::Todo | StatementKind::Fact
            if claim.errand.is_some() || claim.hold == Hold::Planned =>
        {
            sentence::with_dates(content, message.at)
        }
        _ => content.clone(),
    };
    let content = match clause.language {
        Language::English => content,
        Language::Chinese => chinese::as_written(&content, message.text),
    };
    RuleStatement { content, kind: *kind, confidence, valid_from: since }
}

/// The plan for new statements, each with its confidence, and for the known statements that are similar to them.
pub fn reconcile(new: &[(&str, f32)], known: &[Known<'_>]) -> Plan {
    compare::plan(new, known)
}
