//! The reading rules of `strata-language`, over turns and memories.
//!
//! The rules work on text alone. Here their statements get the turn they come from, and memories become what they compare
//! with.

use strata_core::memory::{Memory, MemoryKind};
use strata_language::plan::Plan;
use strata_language::rules::{self, Known, Message, StatementKind};

use super::{Said, Statement};

/// What a message states, at most [`super::MAX_STATEMENTS`].
pub fn extract(said: &Said<'_>) -> Vec<Statement> {
    let message = Message { name: said.name, text: said.text, at: said.at };
    let with_turn = |statement: rules::Statement| Statement {
        content: statement.content,
        kind: kind(statement.kind),
        confidence: statement.confidence,
        turns: vec![said.turn],
        valid_from: statement.valid_from,
    };
    rules::extract(&message).into_iter().map(with_turn).collect()
}

/// What becomes of new statements and of the memories near them.
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
