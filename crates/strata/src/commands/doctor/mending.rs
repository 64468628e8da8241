//! Mends the problems that `strata doctor --memories` has found, one by one.

use std::collections::{HashMap, HashSet};

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
    let mut mended = HashMap::new();
    for problem in problems {
        let Some(problem) = after(problem, &mended) else { continue };
        let choice = match yes {
            true if problem.is_sure => Choice::Mend,
            true => Choice::Leave,
            false => asked(&problem, statements)?,
        };
        match choice {
            Choice::Mend => {
                apply(&problem).await?;
                mended.insert(problem.place, problem);
            }
            Choice::Leave => {}
            Choice::End => break,
        }
    }
    Ok(mended.into_keys().collect())
}

/// A problem as it stands after what was mended; `None` if nothing is left of it. A statement that repeats an outdated one is
/// outdated too, and one that repeats a repetition repeats what is left.
fn after(problem: &Problem, mended: &HashMap<usize, Problem>) -> Option<Problem> {
    if mended.contains_key(&problem.place) {
        return None;
    }
    let mut problem = problem.clone();
    while let Some(remedy) = problem.other.and_then(|other| mended.get(&other)) {
        let was_ended = remedy.kind == ProblemKind::Contradiction;
        if was_ended && problem.kind == ProblemKind::Contradiction {
            break;
        }
        problem.other = Some(remedy.other?);
        if was_ended {
            problem.kind = remedy.kind;
            problem.why.clone_from(&remedy.why);
        }
    }
    Some(problem)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A problem of a statement that says the same as another one, or is out of date by it.
    fn problem(kind: ProblemKind, place: usize, other: Option<usize>) -> Problem {
        Problem { kind, place, other, why: String::new(), is_sure: true }
    }

    /// What is done about problems without asking: kind, place and other place.
    async fn done(problems: &[Problem]) -> Vec<(ProblemKind, usize, Option<usize>)> {
        let mut done = Vec::new();
        let gone = each(problems, &[], true, async |problem| {
            done.push((problem.kind, problem.place, problem.other));
            Ok(())
        });
        assert_eq!(gone.await.unwrap().len(), done.len());
        done
    }

    #[tokio::test]
    async fn a_repetition_of_an_outdated_statement_is_ended_with_it() {
        use ProblemKind::{Contradiction, Duplicate, Secret};
        let found = [problem(Contradiction, 1, Some(2)), problem(Duplicate, 0, Some(1))];
        assert_eq!(done(&found).await, [(Contradiction, 1, Some(2)), (Contradiction, 0, Some(2))]);
        let found = [problem(Duplicate, 0, Some(1)), problem(Duplicate, 1, Some(2))];
        assert_eq!(done(&found).await, [(Duplicate, 0, Some(1)), (Duplicate, 1, Some(2))]);
        let found = [problem(Duplicate, 1, Some(2)), problem(Duplicate, 0, Some(1))];
        assert_eq!(done(&found).await, [(Duplicate, 1, Some(2)), (Duplicate, 0, Some(2))]);
        // A memory that was ended stays in the history, so it can be named as the one that ended another.
        let found = [problem(Contradiction, 1, Some(2)), problem(Contradiction, 0, Some(1))];
        assert_eq!(done(&found).await, [(Contradiction, 1, Some(2)), (Contradiction, 0, Some(1))]);
        let found = [problem(Secret, 1, None), problem(Duplicate, 0, Some(1))];
        assert_eq!(done(&found).await, [(Secret, 1, None)]);
    }
}
