//! `strata doctor --memories`: examines the memories of the store or of a mem0 export, and offers to mend what it finds.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;
use strata_core::memory::{Memory, MemoryKind};
use strata_core::store::{MemoryQuery, MemorySelect, MetricQuery};
use strata_core::trace::{Trace, TraceCandidate};
use strata_core::{ItemId, MemoryId, UserId};
use strata_engine::Engine;
use strata_engine::hygiene::{self, Problem, ProblemKind, StoredStatement};
use strata_import::Mem0File;

use super::{Args, mending};
use crate::commands::{Context, export, jobs, users};
use crate::failure::Outcome;
use crate::output::{Output, can_ask, note};

/// The statements, and the memories of the store that they are; none for a file.
struct Examined {
    statements: Vec<StoredStatement>,
    memories: Vec<(UserId, Memory)>,
    /// The users of whose answers too few are known.
    little_used: Vec<UserId>,
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
    let Args { from, to, user, yes, json, .. } = args;
    let file = from.as_deref().map(Mem0File::read).transpose().map_err(anyhow::Error::from)?;
    let (engine, examined) = match &file {
        Some(file) => {
            let store = std::sync::Arc::new(strata_core::store::InMemoryStore::new());
            (strata::engine(&context.config, store)?, of_file(file, user.as_ref()))
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
    let problems = hygiene::examine(&engine.learning, &examined.statements, now).await?;
    if !json.json {
        show(&problems, &examined, output)?;
        output.flush()?;
    }
    let may_mend = file.is_none() || to.is_some();
    let can_decide = yes || !json.json && can_ask();
    let mut gone = HashSet::new();
    if may_mend && can_decide {
        let keep_store = file.is_some();
        gone = mending::each(&problems, &examined.statements, yes, async |problem| match keep_store {
            true => Ok(()),
            false => mending::apply(&engine, problem, &examined.memories).await,
        })
        .await?;
    }
    if let (Some(file), Some(to)) = (&file, &to) {
        let ids = gone.iter().map(|place| examined.statements[*place].id.clone()).collect();
        write(to, &file.without(&ids).map_err(anyhow::Error::from)?)?;
    }
    if json.json {
        let shown: Vec<_> = problems.iter().map(|problem| in_json(problem, &examined.statements)).collect();
        let examined = examined.statements.len();
        output.json(&json!({ "examined": examined, "problems": shown, "mended": gone.len() }))?;
    } else if !problems.is_empty() {
        match (may_mend, can_decide) {
            (false, _) => note("nothing was changed; `--to FILE` writes a mended copy of the export"),
            (true, false) => note(
                "nothing was changed; `--yes` mends everything that has a safe remedy, and a terminal asks about each",
            ),
            (true, true) => {
                output.line(format_args!("mended {} of {} problems", gone.len(), problems.len()))?
            }
        }
    }
    Ok(())
}

/// Writes the mended copy of an export.
fn write(to: &Path, text: &str) -> Outcome {
    let failed = || format!("`{}` cannot be written; name a new file in an existing folder", to.display());
    let mut file = export::create(to).with_context(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
    note(format_args!("wrote the mended export to `{}`", to.display()));
    Ok(())
}

fn in_json<'a>(problem: &'a Problem, statements: &'a [StoredStatement]) -> ProblemJson<'a> {
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
    let mut examined = Examined { statements: Vec::new(), memories: Vec::new(), little_used: Vec::new() };
    for user in users {
        let (answers, recalled) = recalled(engine, &user).await?;
        let current = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let memories = engine.memories.list(&user, &current).await?;
        if answers < hygiene::ENOUGH_ANSWERS && !memories.is_empty() {
            examined.little_used.push(user.clone());
        }
        for memory in memories {
            let session = memory.session.as_ref().map(|session| format!("/{session}")).unwrap_or_default();
            examined.statements.push(StoredStatement {
                id: memory.id.to_string(),
                content: memory.content.clone(),
                kind: memory.kind,
                at: Some(memory.recorded_at),
                owner: format!("{user}{session}"),
                is_related: memory.notes.disputed.is_some() || memory.notes.thread.is_some(),
                was_recalled: recalled.contains(&memory.id),
                answers,
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

fn of_file(file: &Mem0File, user: Option<&UserId>) -> Examined {
    let statements = file
        .memories
        .iter()
        .filter(|memory| user.is_none_or(|user| memory.user.as_deref() == Some(user.as_str())))
        .cloned()
        .map(|memory| StoredStatement {
            id: memory.id,
            content: memory.content,
            kind: MemoryKind::Fact,
            at: memory.at,
            owner: memory.user.unwrap_or_default(),
            is_related: false,
            was_recalled: false,
            answers: 0,
        });
    Examined { statements: statements.collect(), memories: Vec::new(), little_used: Vec::new() }
}

fn show(problems: &[Problem], examined: &Examined, output: &mut Output) -> Outcome {
    let Examined { statements, little_used, .. } = examined;
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
    if !little_used.is_empty() {
        note(format_args!(
            "which memories are never recalled cannot be said yet for {}: too few answers keep what they used",
            users::named(little_used)
        ));
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

/// The name of a kind of problems, for so many of them.
fn named(kind: ProblemKind, count: u32) -> String {
    let has_plural = !matches!(kind, ProblemKind::Junk | ProblemKind::NeverRecalled);
    format!("{}{}", kind.as_str(), if has_plural && count != 1 { "s" } else { "" })
}
