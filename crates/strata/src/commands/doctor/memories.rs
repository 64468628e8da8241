//! `strata doctor --memories`: examines the memories of the store or of a mem0 export, and offers to mend what it finds.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use strata_core::memory::{Memory, MemoryKind, MemoryNotes, TodoState};
use strata_core::store::{Change, ChangeSet, MemoryQuery, MemorySelect, MetricQuery};
use strata_core::trace::{Trace, TraceCandidate};
use strata_core::{ItemId, MemoryId, UserId};
use strata_engine::Engine;
use strata_engine::hygiene::{self, Problem, ProblemKind, Statement, Use};

use super::Args;
use crate::commands::{Context, jobs};
use crate::failure::Outcome;
use crate::output::{Output, ask, can_ask, note};

/// The statements, and the memories of the store that they are; none for a file.
struct Examined {
    statements: Vec<Statement>,
    memories: Vec<(UserId, Memory)>,
    usage: Use,
}

/// A problem as JSON.
#[derive(Debug, Serialize)]
struct ProblemJson<'a> {
    #[serde(flatten)]
    problem: &'a Problem,
    id: &'a str,
    user: &'a str,
    memory: String,
    other_id: Option<&'a str>,
    other_memory: Option<String>,
}

pub(super) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { from, user, yes, json, .. } = args;
    let (engine, examined) = match &from {
        Some(file) => {
            let engine = strata::engine(
                &context.config,
                std::sync::Arc::new(strata_core::store::InMemoryStore::new()),
            )?;
            (engine, of_file(file, user.as_ref())?)
        }
        None => {
            let engine = match &user {
                Some(user) => context.engine_for(user).await?,
                None => context.engine_to_read().await?,
            };
            let examined = of_store(&engine, user).await?;
            (engine, examined)
        }
    };
    let now = engine.now();
    let problems = hygiene::examine(&engine.learning, &examined.statements, examined.usage, now).await?;
    if json.json {
        let mended = if yes && from.is_none() { mend(&engine, &problems, &examined, yes).await? } else { 0 };
        let shown: Vec<_> = problems.iter().map(|problem| in_json(problem, &examined.statements)).collect();
        let examined = examined.statements.len();
        output.json(&json!({ "examined": examined, "problems": shown, "mended": mended }))?;
        return Ok(());
    }
    show(&problems, &examined, output)?;
    output.flush()?;
    if problems.is_empty() {
        return Ok(());
    }
    if from.is_some() {
        note(
            "a file is only examined; `strata import mem0 FILE` brings the memories into the store, where they can be mended",
        );
    } else if !yes && !can_ask() {
        note(
            "nothing was changed; `--yes` mends everything that has a safe remedy, and a terminal asks about each",
        );
    } else {
        let mended = mend(&engine, &problems, &examined, yes).await?;
        output.line(format_args!("mended {mended} of {} problems", problems.len()))?;
    }
    Ok(())
}

fn in_json<'a>(problem: &'a Problem, statements: &'a [Statement]) -> ProblemJson<'a> {
    let (one, other) = (&statements[problem.place], problem.other.map(|other| &statements[other]));
    ProblemJson {
        problem,
        id: &one.id,
        user: &one.owner,
        memory: hygiene::shown(&one.content),
        other_id: other.map(|other| other.id.as_str()),
        other_memory: other.map(|other| hygiene::shown(&other.content)),
    }
}

async fn of_store(engine: &Engine, user: Option<UserId>) -> Outcome<Examined> {
    let users = match user {
        Some(user) => vec![user],
        None => jobs::users(engine).await?,
    };
    let mut examined = Examined { statements: Vec::new(), memories: Vec::new(), usage: Use::default() };
    for user in users {
        let (answers, recalled) = recalled(engine, &user).await?;
        examined.usage.answers = examined.usage.answers.max(answers);
        let current = MemoryQuery::new(MemorySelect::Current { as_of: None });
        for memory in engine.memories.list(&user, &current).await? {
            let session = memory.session.as_ref().map(|session| format!("/{session}")).unwrap_or_default();
            examined.statements.push(Statement {
                id: memory.id.to_string(),
                content: memory.content.clone(),
                kind: memory.kind,
                at: Some(memory.recorded_at),
                owner: format!("{user}{session}"),
                is_related: memory.notes.disputed.is_some() || memory.notes.thread.is_some(),
                // Where too few answers are known, nothing is said about their use.
                was_recalled: recalled.contains(&memory.id) || answers < examined.usage.answers,
            });
            examined.memories.push((user.clone(), memory));
        }
    }
    Ok(examined)
}

/// The number of a user's answers whose items are known, and the memories that they used.
async fn recalled(engine: &Engine, user: &UserId) -> Outcome<(usize, HashSet<MemoryId>)> {
    let query = MetricQuery { limit: u32::MAX, ..MetricQuery::default() };
    let (mut answers, mut used) = (0, HashSet::new());
    for row in engine.store().requests(user, &query).await? {
        let served = match row.served() {
            Some(served) => served,
            None => match row.trace.clone().and_then(|trace| serde_json::from_value::<Trace>(trace).ok()) {
                Some(trace) => {
                    let served = trace.candidates.iter().filter(|candidate| candidate.served_score.is_some());
                    served.map(|TraceCandidate { item, .. }| *item).collect()
                }
                None => continue,
            },
        };
        answers += 1;
        used.extend(served.into_iter().filter_map(|item| match item {
            ItemId::Memory(id) => Some(id),
            ItemId::Turn(_) | ItemId::Summary(_) => None,
        }));
    }
    Ok((answers, used))
}

fn of_file(file: &Path, user: Option<&UserId>) -> Outcome<Examined> {
    let memories = strata_import::mem0_memories(file).map_err(anyhow::Error::from)?;
    let statements = memories
        .into_iter()
        .filter(|memory| user.is_none_or(|user| memory.user.as_deref() == Some(user.as_str())))
        .map(|memory| Statement {
            id: memory.id,
            content: memory.content,
            kind: MemoryKind::Fact,
            at: memory.at,
            owner: memory.user.unwrap_or_default(),
            is_related: false,
            was_recalled: true,
        });
    Ok(Examined { statements: statements.collect(), memories: Vec::new(), usage: Use::default() })
}

fn show(problems: &[Problem], examined: &Examined, output: &mut Output) -> Outcome {
    let Examined { statements, usage, memories } = examined;
    output.line(format_args!("examined {} memories", statements.len()))?;
    for problem in problems {
        output.line("")?;
        let one = &statements[problem.place];
        output.line(format_args!("{}: {} {}", problem.kind.as_str(), one.id, problem.why))?;
        output.text(&hygiene::shown(&one.content))?;
        if let Some(other) = problem.other {
            output.line(format_args!("  {}", statements[other].id))?;
            output.text(&hygiene::shown(&statements[other].content))?;
        }
    }
    if !memories.is_empty() && usage.answers < 20 {
        note("which memories are never recalled cannot be said yet: too few answers keep what they used");
    }
    let mut counts: BTreeMap<ProblemKind, u32> = BTreeMap::new();
    for problem in problems {
        *counts.entry(problem.kind).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{count} {}", named(*kind, *count))).collect();
    output.line("")?;
    output.line(match counts.is_empty() {
        true => "no problems".to_owned(),
        false => counts.join(", "),
    })?;
    Ok(())
}

/// What to do about a problem.
enum Choice {
    Mend,
    Leave,
    End,
}

/// Mends problems one by one: with `yes` all that have a safe remedy, on a terminal as a person decides.
async fn mend(engine: &Engine, problems: &[Problem], examined: &Examined, yes: bool) -> Outcome<u32> {
    let mut mended = 0;
    let mut gone: HashSet<MemoryId> = HashSet::new();
    for problem in problems {
        let (user, memory) = &examined.memories[problem.place];
        let other = problem.other.map(|other| &examined.memories[other].1);
        if gone.contains(&memory.id) || other.is_some_and(|other| gone.contains(&other.id)) {
            continue;
        }
        let choice = match yes {
            true if problem.is_sure => Choice::Mend,
            true => Choice::Leave,
            false => asked(problem, memory, other)?,
        };
        match choice {
            Choice::Mend => {
                apply(engine, user, problem.kind, memory, other).await?;
                gone.insert(memory.id);
                mended += 1;
            }
            Choice::Leave => {}
            Choice::End => break,
        }
    }
    Ok(mended)
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

fn asked(problem: &Problem, memory: &Memory, other: Option<&Memory>) -> Outcome<Choice> {
    note(format_args!("\n{}: {}", problem.kind.as_str(), hygiene::shown(&memory.content)));
    if let Some(other) = other {
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

async fn apply(
    engine: &Engine,
    user: &UserId,
    kind: ProblemKind,
    memory: &Memory,
    other: Option<&Memory>,
) -> Outcome {
    let now = engine.now();
    match (kind, other) {
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

/// The name of a kind of problems, for so many of them.
fn named(kind: ProblemKind, count: u32) -> String {
    let has_plural = !matches!(kind, ProblemKind::Junk | ProblemKind::NeverRecalled);
    format!("{}{}", kind.as_str(), if has_plural && count != 1 { "s" } else { "" })
}
