//! Extraction and reconciliation by rules, in English and Chinese: the default, with nothing to download and nothing to call.
//!
//! A message is cut into clauses ([`sentence`]); each is read as claims ([`claim`]) by the grammar of its language ([`english`],
//! [`chinese`]), whose tables say what a predicate means and how it is said in the third person. What is known is read by the
//! same grammars, so that two texts are compared by what they claim ([`compare`]) and not by how they look. What no rule reads is
//! left alone: precision comes before recall, and a memory is never ended because a text merely resembles it.
//!
//! How sure a statement is says how it was read, and is documented in `docs/learning.md`: 0.95 where the user asks to remember it, 0.9 for
//! a plain statement, 0.8 for what follows from one, 0.7 for others' affairs and errands done, half of that behind a hedge.

mod chinese;
mod claim;
mod compare;
mod compound;
mod english;
mod patterns;
mod sentence;
mod since;
mod statement;
#[cfg(test)]
mod tests;
mod value;

use crate::plan::Plan;
use claim::{Hold, Reading};
pub use sentence::is_question;
use sentence::{Clause, Language};
pub use statement::{Known, MAX_STATEMENTS, Message, Statement, StatementKind};

/// Under «I think», «maybe», 可能: what may well be otherwise.
const HEDGED: f32 = 0.5;
/// «Remember that …», 记住: the user's own wish.
const ASKED_FOR: f32 = 0.95;

/// What a message states, at most [`MAX_STATEMENTS`].
pub fn extract(said: &Message<'_>) -> Vec<Statement> {
    let mut statements: Vec<(Statement, Reading)> = Vec::new();
    let mut subject = None;
    for clause in sentence::clauses(said.text) {
        let who = said.name.unwrap_or(match clause.language {
            Language::English => "The user",
            Language::Chinese => "用户",
        });
        let mut readings = match clause.language {
            Language::English => english::read(&clause.text, who, said.at),
            Language::Chinese => chinese::read(&clause.text, who, said.at, &mut subject),
        };
        if readings.is_empty() && clause.asked_for {
            readings.extend(sentence::as_it_stands(&clause, who));
        }
        for reading in readings {
            let statement = statement(said, &clause, &reading);
            // What is said later in a message corrects what was said earlier in it.
            statements.retain(|(_, earlier)| !compare::ends(&reading.claim, &earlier.claim));
            if !statements.iter().any(|(other, _)| other.content == statement.content) {
                statements.push((statement, reading));
            }
        }
    }
    // A long message says more than is kept; the surest come first, in the order in which they were said.
    if statements.len() > MAX_STATEMENTS {
        let mut order: Vec<usize> = (0..statements.len()).collect();
        order.sort_by(|a, b| statements[*b].0.confidence.total_cmp(&statements[*a].0.confidence));
        let mut kept: Vec<usize> = order.into_iter().take(MAX_STATEMENTS).collect();
        kept.sort_unstable();
        return kept.into_iter().map(|place| statements[place].0.clone()).collect();
    }
    statements.into_iter().map(|(statement, _)| statement).collect()
}

fn statement(said: &Message<'_>, clause: &Clause, reading: &Reading) -> Statement {
    let Reading { content, kind, confidence, begins, claim } = reading;
    let confidence = match (clause.asked_for, clause.hedged) {
        (_, true) => HEDGED * confidence,
        (true, false) => ASKED_FOR,
        (false, false) => *confidence,
    };
    let since = (*begins && claim.hold == Hold::Now).then(|| since::begin(&clause.text, said.at)).flatten();
    let content = match *kind {
        StatementKind::Todo | StatementKind::Fact
            if claim.errand.is_some() || claim.hold == Hold::Planned =>
        {
            sentence::with_dates(content, said.at)
        }
        _ => content.clone(),
    };
    let content = match clause.language {
        Language::English => content,
        Language::Chinese => chinese::as_written(&content, said.text),
    };
    Statement { content, kind: *kind, confidence, valid_from: since }
}

/// What becomes of new statements, each with its confidence, and of the known ones near them.
pub fn reconcile(new: &[(&str, f32)], known: &[Known<'_>]) -> Plan {
    compare::plan(new, known)
}
