//! `strata add`: remembers a statement in its own words, or learns from a message.

use strata_core::scope::Scope;
use strata_core::turn::NewMessage;
use strata_core::{Memory, MemoryKind, Role, SessionId, UserId};
use strata_engine::{Engine, Event, InferredEvent, NewMemory};
use strata_server::wire::{AddResponse, MemoryResponse};

use super::{Context, JsonArgs, UserArgs, text_or_stdin};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Remember a statement, or learn from a message
///
/// A statement that is known already is not added again, and one that changes a memory replaces it. The history keeps both.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata add \"Ada prefers trains to planes\" --kind preference --user ada\n  \
        strata add --infer \"I moved to Porto last week\" --user ada"
)]
pub(crate) struct Args {
    /// The statement; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    text: String,
    /// The kind of memory: fact, preference, schedule, todo, decision, event, relation, work or
    /// instruction
    #[arg(long, value_name = "KIND", default_value = "fact")]
    kind: MemoryKind,
    #[command(flatten)]
    user: UserArgs,
    /// The session that the memory belongs to
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// The scope: session, user or global [default: session with `--session`, else user]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,
    /// Store the statement in any case, and change nothing else
    #[arg(long, conflicts_with = "infer")]
    verbatim: bool,
    /// Treat the text as a message of the user: record it, extract statements and reconcile them with known memories
    #[arg(long, conflicts_with_all = ["kind", "scope"])]
    infer: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { text, kind, user, session, scope, infer, verbatim, json } = args;
    let user = user.of(context);
    let text = text_or_stdin(text, context.config.engine.limits.max_turn_bytes)?;
    if infer {
        return learn_from(text, &user, session, context, json, output).await;
    }
    let (user, session) = match (scope, session) {
        (None, session) => (user, session),
        (Some(Scope::Session), Some(session)) => (user, Some(session)),
        (Some(Scope::Session), None) => {
            return Err(Failure::usage("scope `session` needs a session; name one with `--session`"));
        }
        (Some(Scope::User), _) => (user, None),
        (Some(Scope::Global), _) => (UserId::global(), None),
    };
    let engine = context.engine_to_write().await?;
    let memory = NewMemory { kind, session, ..NewMemory::new(text) };
    if verbatim {
        for memory in engine.memories.add(&user, vec![memory]).await? {
            added(&engine, &user, &memory, "remembered", json, output).await?;
        }
        return Ok(());
    }
    let events = engine.learning.add(&user, vec![memory]).await?;
    for event in events.iter().filter(|event| event.event != Event::Delete) {
        let memory = engine.memories.get(&user, event.id).await?;
        let what = if event.event == Event::None { "already known" } else { "remembered" };
        added(&engine, &user, &memory, what, json, output).await?;
    }
    if !json.json {
        for ended in events.iter().filter_map(|event| match event.event {
            Event::Delete => Some(&event.memory),
            _ => event.previous.as_ref(),
        }) {
            output.line("instead of:")?;
            output.text(ended)?;
        }
    }
    Ok(())
}

async fn added(
    engine: &Engine,
    user: &UserId,
    memory: &Memory,
    what: &str,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if json.json {
        output.json(&MemoryResponse::load(engine, user, memory).await?)?;
    } else {
        output.line(format_args!("{what} as {}", memory.id))?;
    }
    Ok(())
}

async fn learn_from(
    text: String,
    user: &UserId,
    session: Option<SessionId>,
    context: &Context,
    json: JsonArgs,
    output: &mut Output,
) -> Outcome {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty; give a text to learn from"));
    }
    let engine = context.engine_to_write().await?;
    let message = NewMessage::new(Role::User, text);
    let events = engine.learning.infer(user, &session.unwrap_or_default(), vec![message], None).await?;
    if json.json {
        output.json(&AddResponse::inferred(&events))?;
        return Ok(());
    }
    if events.is_empty() {
        output.line("recorded; the text holds no statement to remember")?;
    }
    for InferredEvent { id, memory, event, previous } in &events {
        let what = match event {
            Event::Add => "remembered",
            Event::Update => "changed",
            Event::Delete => "ended",
            Event::None => "already known",
        };
        output.line(format_args!("{what}, as {id}:"))?;
        output.text(memory)?;
        if let Some(previous) = previous {
            output.line("instead of:")?;
            output.text(previous)?;
        }
    }
    Ok(())
}
