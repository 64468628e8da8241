//! Applies the reading rules of `strata-language` to turns and memories.
//!
//! The rules work on text alone. This module adds the turn to each statement and converts memories into the input of
//! the rules.

use strata_core::memory::{Memory, MemoryKind};
use strata_language::plan::Plan;
use strata_language::rules::{self, Known, SaidText, StatementKind};
use strata_language::statements::{Leaning, introduced, left_out, pieces, third_person, without_orders};

use super::{Said, Statement};

/// The confidence in a name that its bearer gives: that of a plain statement.
const INTRODUCED: f32 = 0.9;

/// The statements of a message, at most [`super::MAX_STATEMENTS`].
pub fn extract(said: &Said<'_>) -> Vec<Statement> {
    let text = &*without_orders(said.text);
    let message = SaidText { name: said.name, text, at: said.at };
    let with_turn = |statement: rules::RuleStatement| Statement {
        content: statement.content,
        kind: kind(statement.kind),
        confidence: statement.confidence,
        turns: vec![said.turn],
        valid_from: statement.valid_from,
        as_said: None,
    };
    let mut statements: Vec<Statement> = rules::extract(&message).into_iter().map(with_turn).collect();
    statements.extend(
        introduction(said, text).filter(|one| statements.iter().all(|known| known.content != one.content)),
    );
    statements
}

/// The name that the speaker of a message gives.
fn introduction(said: &Said<'_>, text: &str) -> Option<Statement> {
    let pieces = pieces(text);
    let left_out = left_out(&pieces, &vec![Leaning::default(); pieces.len()]);
    let mut own = pieces.iter().zip(left_out).filter(|(_, reason)| reason.is_none());
    let told = own.find_map(|(piece, _)| introduced(&piece.text))?;
    let is_known = said.name.is_some_and(|name| told.ends_with(name));
    (!is_known).then(|| Statement {
        content: third_person(&told, said.name, said.at),
        kind: MemoryKind::Fact,
        confidence: INTRODUCED,
        turns: vec![said.turn],
        valid_from: None,
        as_said: None,
    })
}

/// Plans what happens to new statements and to the memories near them.
pub fn reconcile(new: &[Statement], known: &[Memory]) -> Plan {
    let new: Vec<(&str, f32)> = new.iter().map(|one| (one.content.as_str(), one.confidence)).collect();
    let known: Vec<Known<'_>> = known
        .iter()
        .map(|memory| Known { content: &memory.content, is_current: memory.is_current() })
        .collect();
    rules::reconcile(&new, &known)
}

fn kind(kind: StatementKind) -> MemoryKind {
    match kind {
        StatementKind::Fact => MemoryKind::Fact,
        StatementKind::Preference => MemoryKind::Preference,
        StatementKind::Todo => MemoryKind::Todo,
        StatementKind::Decision => MemoryKind::Decision,
    }
}
