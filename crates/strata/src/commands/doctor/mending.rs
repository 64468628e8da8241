//! Mends the problems that `strata doctor --memories` has found, one by one.

use std::collections::HashSet;

use strata_core::UserId;
use strata_core::memory::{Memory, MemoryNotes, TodoState};
use strata_core::store::{Change, ChangeSet};
use strata_engine::Engine;
use strata_engine::hygiene::{self, Problem, ProblemKind, StoredStatement};

use crate::failure::Outcome;
use crate::output::{ask, note};

/// The answer to a problem.
enum Choice {
    Mend,
    Leave,
    End,
}

/// Mends problems one by one: with `yes` all that have a safe remedy, on a terminal as a person decides. Returns the places of the
/// statements that are gone.
pub(super) async fn each(
    problems: &[Problem],
    statements: &[StoredStatement],
    yes: bool,
    mut apply: impl AsyncFnMut(&Problem) -> Outcome,
) -> Outcome<HashSet<usize>> {
    let mut gone = HashSet::new();
    for problem in problems {
        if gone.contains(&problem.place) || problem.other.is_some_and(|other| gone.contains(&other)) {
            continue;
        }
        let choice = match yes {
            true if problem.is_sure => Choice::Mend,
            true => Choice::Leave,
            false => asked(problem, statements)?,
        };
        match choice {
            Choice::Mend => {
                apply(problem).await?;
                gone.insert(problem.place);
            }
            Choice::Leave => {}
            Choice::End => break,
        }
    }
    Ok(gone)
}

/// The remedy of a problem, as a question puts it.
fn remedy(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Secret => "destroy the memory and its history",
        ProblemKind::Contradiction => "end the older memory in favour of the newer one",
        ProblemKind::Duplicate => "delete the older memory",
        ProblemKind::Junk | ProblemKind::NeverRecalled => "delete the memory",
        ProblemKind::StaleTodo => "drop the todo",
    }
}

fn asked(problem: &Problem, statements: &[StoredStatement]) -> Outcome<Choice> {
    let one = &statements[problem.place];
    note(format_args!("\n{}: {}", problem.kind.as_str(), hygiene::shown(&one.content)));
    if let Some(other) = problem.other.map(|other| &statements[other]) {
        note(format_args!("  {}: {}", problem.why, hygiene::shown(&other.content)));
    }
    loop {
        let answer = ask(&format!("{}? [y]es, [n]o, [q]uit: ", remedy(problem.kind)))?;
        match answer.to_lowercase().as_str() {
            "y" | "yes" => return Ok(Choice::Mend),
            "n" | "no" | "" => return Ok(Choice::Leave),
            "q" | "quit" => return Ok(Choice::End),
            _ => {}
        }
    }
}

/// Mends a problem in the store.
pub(super) async fn apply(engine: &Engine, problem: &Problem, memories: &[(UserId, Memory)]) -> Outcome {
    let now = engine.now();
    let (user, memory) = &memories[problem.place];
    match (problem.kind, problem.other.map(|other| &memories[other].1)) {
        (ProblemKind::Secret, _) => {
            engine.memories.forget(user, memory.id).await?;
            if !memory.source_turns.is_empty() {
                engine.sessions.hide_turns(user, memory.source_turns.clone()).await?;
                note(
                    "the messages that said it are no longer recalled; `strata sessions delete` destroys them",
                );
            }
        }
        (ProblemKind::Contradiction, Some(newer)) => {
            let valid_to = newer.valid_from.max(memory.valid_from).min(now);
            let close = Change::CloseMemory { id: memory.id, valid_to, replaced_by: Some(newer.id) };
            engine.store().apply(user, ChangeSet::one(now, close)).await?;
        }
        (ProblemKind::StaleTodo, _) => {
            let notes = MemoryNotes { todo: Some(TodoState::Dropped), ..MemoryNotes::default() };
            let close = Change::CloseMemory { id: memory.id, valid_to: now, replaced_by: None };
            let changes = vec![Change::NoteMemory { id: memory.id, notes }, close];
            engine.store().apply(user, ChangeSet::new(now, changes)).await?;
        }
        _ => engine.memories.delete(user, memory.id).await?,
    }
    Ok(())
}
