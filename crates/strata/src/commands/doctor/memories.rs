//! `strata doctor --memories`: examines the memories of the store or of a mem0 export, and offers to mend what it finds.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
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
use crate::output::{Output, can_ask, counted as counted_as, note};

/// The statements, and the memories of the store that they are; none for a file.
struct Examined {
    statements: Vec<StoredStatement>,
    memories: Vec<(UserId, Memory)>,
    /// The users of whose answers too few are known.
    little_used: Vec<UserId>,
}

impl Examined {
    /// Leaves out the statements at these places.
    fn remove(&mut self, gone: &HashSet<usize>) {
        retain_places(&mut self.statements, gone);
        retain_places(&mut self.memories, gone);
    }
}

fn retain_places<T>(items: &mut Vec<T>, gone: &HashSet<usize>) {
    let mut place = 0..items.len();
    items.retain(|_| place.next().is_some_and(|place| !gone.contains(&place)));
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

/// What the examinations have found, and what was mended. Where all is mended without asking, the statements are examined again
/// until nothing is left to mend: what is gone may have stood between two others.
#[derive(Default)]
struct Found {
    known: HashSet<(ProblemKind, String)>,
    in_json: Vec<Value>,
    mended: HashSet<String>,
}

impl Found {
    /// Notes problems and returns those that no earlier examination has found.
    fn note(&mut self, problems: &[Problem], statements: &[StoredStatement]) -> Outcome<Vec<Problem>> {
        let mut new = problems.to_vec();
        new.retain(|problem| self.known.insert((problem.kind, statements[problem.place].id.clone())));
        for problem in &new {
            let shown = serde_json::to_value(in_json(problem, statements)).map_err(anyhow::Error::from)?;
            self.in_json.push(shown);
        }
        Ok(new)
    }
}

pub(super) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let file = args.from.as_deref().map(Mem0File::read).transpose().map_err(anyhow::Error::from)?;
    let (engine, mut examined) = to_examine(&args, file.as_ref(), context).await?;
    let count = examined.statements.len();
    let may_mend = file.is_none() || args.to.is_some();
    let can_decide = args.yes || !args.json.json && can_ask();
    let mut found = Found::default();
    loop {
        let problems = hygiene::examine(&engine.learning, &examined.statements, engine.now()).await?;
        let is_first = found.known.is_empty();
        let new = found.note(&problems, &examined.statements)?;
        if !args.json.json {
            show(&new, &examined, is_first, output)?;
            output.flush()?;
        }
        if !may_mend || !can_decide {
            break;
        }
        let gone = mending::each(&problems, &examined.statements, args.yes, async |problem| match &file {
            Some(_) => Ok(()),
            None => mending::apply(&engine, problem, &examined.memories).await,
        })
        .await?;
        found.mended.extend(gone.iter().map(|place| examined.statements[*place].id.clone()));
        if !args.yes || gone.is_empty() {
            break;
        }
        examined.remove(&gone);
    }
    if let (Some(file), Some(to)) = (&file, &args.to) {
        write(to, &file.without(&found.mended).map_err(anyhow::Error::from)?)?;
    }
    match args.json.json {
        true => output
            .json(&json!({ "examined": count, "problems": found.in_json, "mended": found.mended.len() }))?,
        false => conclude(&found, may_mend, can_decide, output)?,
    }
    Ok(())
}

/// The engine, and the statements of the store or of the file.
async fn to_examine(args: &Args, file: Option<&Mem0File>, context: &Context) -> Outcome<(Engine, Examined)> {
    if let Some(file) = file {
        let store = std::sync::Arc::new(strata_core::store::InMemoryStore::new());
        return Ok((strata::engine(&context.config, store)?, of_file(file, args.user.as_ref())));
    }
    let engine = match &args.user {
        Some(user) => context.engine_for(user).await?,
        None => context.engine_to_read().await?,
    };
    let examined = of_store(&engine, args.user.clone()).await?;
    Ok((engine, examined))
}

/// Says what was mended, or how to mend.
fn conclude(found: &Found, may_mend: bool, can_decide: bool, output: &mut Output) -> Outcome {
    let (mended, problems) = (found.mended.len(), found.known.len());
    match (may_mend, can_decide) {
        _ if problems == 0 => {}
        (false, _) => note("nothing was changed; `--to FILE` writes a mended copy of the export"),
        (true, false) => note(
            "nothing was changed; `--yes` mends everything that has a safe remedy, and a terminal asks about each",
        ),
        (true, true) => {
            let problems = counted_as(problems as u64, "problem");
            output.line(format_args!("mended {mended} of {problems}"))?;
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

/// Shows problems; at the first examination with what was examined and how much of each kind was found.
fn show(problems: &[Problem], examined: &Examined, is_first: bool, output: &mut Output) -> Outcome {
    let Examined { statements, little_used, .. } = examined;
    if is_first {
        output.line(format_args!("examined {}", counted_as(statements.len() as u64, "memory")))?;
    }
    for problem in problems {
        show_one(problem, statements, output)?;
    }
    if !little_used.is_empty() && is_first {
        note(format_args!(
            "which memories are never recalled cannot be said yet for {}: too few answers keep what they used",
            users::named(little_used)
        ));
    }
    let counted = counted(problems);
    if is_first || !counted.is_empty() {
        output.line("")?;
        output.line(if counted.is_empty() { "no problems" } else { &counted })?;
    }
    Ok(())
}

fn show_one(problem: &Problem, statements: &[StoredStatement], output: &mut Output) -> Outcome {
    let one = &statements[problem.place];
    output.line("")?;
    output.line(format_args!("{}: {} {}", problem.kind.as_str(), one.id, problem.why))?;
    output.text(&hygiene::shown(&one.content))?;
    if let Some(other) = problem.other {
        output.line(format_args!("  {}", statements[other].id))?;
        output.text(&hygiene::shown(&statements[other].content))?;
    }
    Ok(())
}

/// How many problems there are of each kind, in words.
fn counted(problems: &[Problem]) -> String {
    let mut counts: BTreeMap<ProblemKind, u32> = BTreeMap::new();
    for problem in problems {
        *counts.entry(problem.kind).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{count} {}", named(*kind, *count))).collect();
    counts.join(", ")
}

/// The name of a kind of problems, for so many of them.
fn named(kind: ProblemKind, count: u32) -> String {
    let has_plural = !matches!(kind, ProblemKind::Junk | ProblemKind::NeverRecalled);
    format!("{}{}", kind.as_str(), if has_plural && count != 1 { "s" } else { "" })
}
