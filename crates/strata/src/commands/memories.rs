//! `strata memories`: lists, shows, edits, deletes, restores and forgets memories, and shows their history.

mod edit;
mod export;

use clap::Subcommand;
use jiff::Timestamp;
use strata_core::moment::parse_as_of;
use strata_core::store::{MemoryQuery, MemorySelect};
use strata_core::{Memory, MemoryId, MemoryKind, SessionId, UserId};
use strata_engine::{Engine, Filter};
use strata_engine::{HistoryStep, MemoryEdit};
use strata_server::wire::{MemoriesResponse, MemoryResponse, RemovedResponse, StatementsResponse};

use super::ids::{self, IdText};
use super::learn::has_unread;
use super::{Context, JsonArgs, PageArgs, UserArgs, text_or_stdin};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, confirm, counted, note};

/// List, show, edit, delete and forget memories
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata memories list --user ada --kind preference")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the current memories, newest first
    #[command(after_help = "Example:\n  strata memories list --user ada --as-of 2026-01-31")]
    List(ListArgs),
    /// Show one memory in any state
    #[command(after_help = "Example:\n  strata memories show 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Show(OneArgs),
    /// Show a memory's former statements and what replaced it, oldest first
    #[command(after_help = "Example:\n  strata memories history 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e --json")]
    History(OneArgs),
    /// Replace a memory's statement; the old one stays in the history
    #[command(
        after_help = "Example:\n  strata memories edit 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e \"Ada lives in Porto\""
    )]
    Edit {
        #[command(flatten)]
        one: OneArgs,
        /// The new statement; `-` reads it from stdin [default: open $EDITOR, if on a terminal]
        #[arg(value_name = "TEXT")]
        text: Option<String>,
    },
    /// Hide a memory from recall and lists; `restore` undoes this
    #[command(after_help = "Example:\n  strata memories delete 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Delete(OneArgs),
    /// Restore a deleted or evicted memory
    #[command(after_help = "Example:\n  strata memories restore 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e")]
    Restore(OneArgs),
    Export(export::Args),
    /// Destroy a memory and its history, or all memories of a user
    #[command(after_help = "Example:\n  strata memories forget 0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e --yes")]
    Forget {
        /// The memory, or the last characters of its id
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        id: Option<IdText>,
        /// Destroy all memories of the user; turns stay
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        owner: OwnerArgs,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
}

/// The owner of the memories.
#[derive(Debug, clap::Args)]
struct OwnerArgs {
    #[command(flatten)]
    user: UserArgs,
    /// Use the memories that all users share, instead of a user's
    #[arg(long, conflicts_with = "user")]
    global: bool,
}

impl OwnerArgs {
    fn of(self, context: &Context) -> UserId {
        if self.global { UserId::global() } else { self.user.of(context) }
    }
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The memory, or the last characters of its id
    #[arg(value_name = "ID")]
    id: IdText,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    owner: OwnerArgs,
    /// Only memories of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// Only memories of this kind: fact, preference, schedule, todo, decision, event,
    /// relation, work or instruction
    #[arg(long, value_name = "KIND")]
    kind: Option<MemoryKind>,
    /// The memories that were current then: a date (at the end of the day, UTC) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = parse_as_of, conflicts_with = "all")]
    as_of: Option<Timestamp>,
    /// Only memories that match this JSON filter, as in `{"category": "travel"}`
    #[arg(long, value_name = "JSON")]
    filter: Option<Filter>,
    /// Include replaced and deleted memories
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::List(args) => list(args, context, output).await,
        Action::Show(one) => {
            let One { engine, user, id, json } = One::find(one, context).await?;
            let memory = engine.memories.get(&user, id).await?;
            show(&engine, &user, &memory, json, output).await
        }
        Action::History(one) => {
            let One { engine, user, id, json } = One::find(one, context).await?;
            let steps = engine.memories.explain(&user, id).await?;
            print_history(&engine, &user, &steps, json, output).await
        }
        Action::Edit { one, text } => edit(One::find(one, context).await?, text, context, output).await,
        Action::Delete(one) => {
            let One { engine, user, id, json } = One::find(one, context).await?;
            engine.memories.delete(&user, id).await?;
            if json.json {
                let memory = engine.memories.get(&user, id).await?;
                output.json(&MemoryResponse::load(&engine, &user, &memory).await?)?;
            } else {
                output.line(format_args!("deleted; `strata memories restore {id}` restores it"))?;
            }
            Ok(())
        }
        Action::Restore(one) => restore(One::find(one, context).await?, output).await,
        Action::Export(args) => export::run(args, context, output).await,
        Action::Forget { id, owner, yes, json, .. } => {
            let user = owner.of(context);
            let engine = context.engine_for(&user).await?;
            let id = match id {
                Some(id) => Some(ids::memory(&engine, &user, &id).await?),
                None => None,
            };
            forget(&engine, &user, id, yes, json, output).await
        }
    }
}

/// One memory of a user.
pub(super) struct One {
    engine: Engine,
    user: UserId,
    id: MemoryId,
    json: JsonArgs,
}

impl One {
    async fn find(args: OneArgs, context: &Context) -> Outcome<Self> {
        let OneArgs { id, owner, json } = args;
        Self::named(&id, owner.of(context), json, context).await
    }

    /// The memory that an id names.
    pub(super) async fn named(id: &IdText, user: UserId, json: JsonArgs, context: &Context) -> Outcome<Self> {
        let engine = context.engine_for(&user).await?;
        let id = ids::memory(&engine, &user, id).await?;
        Ok(Self { engine, user, id, json })
    }
}

/// Restores a deleted or evicted memory.
pub(super) async fn restore(one: One, output: &mut Output) -> Outcome {
    let One { engine, user, id, json } = one;
    let memory = engine.memories.restore(&user, id).await?;
    show(&engine, &user, &memory, json, output).await
}

async fn edit(one: One, text: Option<String>, context: &Context, output: &mut Output) -> Outcome {
    let One { engine, user, id, json } = one;
    let memory = engine.memories.get(&user, id).await?;
    let content = match text {
        Some(text) => text_or_stdin(text, context.config.engine.limits.max_turn_bytes)?,
        None => edit::in_editor(&memory.content)?,
    };
    if content == memory.content {
        note("the statement is unchanged");
        return show(&engine, &user, &memory, json, output).await;
    }
    let memory = engine.memories.revise(&user, id, MemoryEdit { content, metadata: None }).await?;
    show(&engine, &user, &memory, json, output).await
}

async fn list(args: ListArgs, context: &Context, output: &mut Output) -> Outcome {
    let ListArgs { owner, session, kind, as_of, filter, all, page, json } = args;
    let user = owner.of(context);
    let engine = context.engine_for(&user).await?;
    let select = if all { MemorySelect::All } else { MemorySelect::Current { as_of } };
    let query = MemoryQuery { session, kind, page: page.into(), ..MemoryQuery::new(select) };
    let memories = match filter {
        Some(filter) => engine.memories.filtered(&user, &query, &filter).await?,
        None => engine.memories.list(&user, &query).await?,
    };
    if memories.is_empty() && !json.json {
        match has_unread(&engine, &user).await? {
            false => note("no memories match"),
            true => note(
                "no memories match; turns wait to be read: `strata learn` reads them now, `strata serve` in the background",
            ),
        }
        return Ok(());
    }
    print_list(&engine, &user, &memories, json, output).await
}

async fn forget(
    engine: &Engine,
    user: &UserId,
    id: Option<MemoryId>,
    yes: bool,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    let removed = match id {
        Some(id) => {
            engine.memories.get(user, id).await?;
            confirm(&format!("memory `{id}` and its history"), yes)?;
            engine.memories.forget(user, id).await?
        }
        None => {
            confirm(&format!("all memories of user `{user}`"), yes)?;
            engine.memories.forget_all(user).await?
        }
    };
    if json.json {
        output.json(&RemovedResponse::from(&removed))?;
    } else {
        let memories = counted(removed.memories, "memory");
        output.line(format_args!("destroyed {memories}, including former statements"))?;
    }
    Ok(())
}

/// Prints each statement and a sentence about its lifetime.
async fn print_history(
    engine: &Engine,
    user: &UserId,
    steps: &[HistoryStep],
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        output.json(&StatementsResponse::load(engine, user, steps).await?)?;
        return Ok(());
    }
    for step in steps {
        output.line(format_args!("memory {}", step.memory.id))?;
        output.text(&step.to_string())?;
    }
    Ok(())
}

async fn print_list(
    engine: &Engine,
    user: &UserId,
    memories: &[Memory],
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        output.json(&MemoriesResponse::load(engine, user, memories).await?)?;
        return Ok(());
    }
    let row = |memory: &Memory| {
        [
            memory.id.to_string(),
            memory.kind.as_str().to_owned(),
            memory.session.as_ref().map_or("-", SessionId::as_str).to_owned(),
            memory.recorded_at.to_string(),
            state(memory),
            memory.content.clone(),
        ]
    };
    let rows: Vec<_> = memories.iter().map(row).collect();
    output.table(["ID", "KIND", "SESSION", "RECORDED", "STATE", "MEMORY"], &rows)?;
    Ok(())
}

/// Whether a memory is current or disputed; if it is not current, why and since when.
fn state(memory: &Memory) -> String {
    match (memory.hidden, memory.valid_to) {
        (Some(hidden), _) => format!("{} {}", hidden.reason.as_str(), hidden.at),
        (None, Some(end)) => format!("until {end}"),
        (None, None) if memory.in_dispute_with().is_some() => "disputed".to_owned(),
        (None, None) => "current".to_owned(),
    }
}

async fn show(
    engine: &Engine,
    user: &UserId,
    memory: &Memory,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        output.json(&MemoryResponse::load(engine, user, memory).await?)?;
        return Ok(());
    }
    output.line(format_args!("memory {}", memory.id))?;
    output.text(&memory.content)?;
    output.line(format_args!(
        "{}, {}, confidence {}",
        memory.kind.as_str(),
        state(memory),
        memory.confidence
    ))?;
    output.line(format_args!("valid from {}, recorded {}", memory.valid_from, memory.recorded_at))?;
    if let Some(session) = &memory.session {
        output.line(format_args!("session `{session}`"))?;
    }
    if let Some(id) = memory.in_dispute_with() {
        output.line(format_args!("may contradict {id}, which is current too"))?;
    }
    if let Some(id) = memory.replaced_by {
        output.line(format_args!("replaced by {id}"))?;
    }
    if !memory.source_turns.is_empty() {
        let turns: Vec<String> = memory.source_turns.iter().map(ToString::to_string).collect();
        output.line(format_args!("from turns {}", turns.join(", ")))?;
    }
    if !memory.metadata.is_empty() {
        output.line(format_args!("metadata {}", memory.metadata.as_text()))?;
    }
    Ok(())
}

/// The error for an edit without a text and without a terminal for the editor.
fn no_statement() -> Failure {
    Failure::usage("the new statement is missing; give it as an argument, or `-` to read it from stdin")
}
