//! `strata add`: a statement to remember as it is.

use strata_core::engine::NewMemory;
use strata_core::recall::Scope;
use strata_core::{MemoryKind, SessionId, UserId};

use super::{Context, JsonArgs, UserArgs, text_or_stdin};
use crate::failure::{Failure, Outcome};
use crate::json::MemoryJson;
use crate::output::Output;

/// Remember a statement as it is
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata add \"Ada prefers trains to planes\" --kind preference --user ada"
)]
pub(crate) struct Args {
    /// The statement; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    text: String,
    /// What it is: fact, preference, todo or decision
    #[arg(long, value_name = "KIND", default_value = "fact")]
    kind: MemoryKind,
    #[command(flatten)]
    user: UserArgs,
    /// The session it belongs to
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// Where it holds: session, user or global [default: the session if one is named, else the user]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { text, kind, user: UserArgs { user }, session, scope, json: JsonArgs { json } } = args;
    let (user, session) = match (scope, session) {
        (None, session) => (user, session),
        (Some(Scope::Session), Some(session)) => (user, Some(session)),
        (Some(Scope::Session), None) => {
            return Err(Failure::usage("scope `session` needs a session; name one with `--session`"));
        }
        (Some(Scope::User), _) => (user, None),
        (Some(Scope::Global), _) => (UserId::global(), None),
    };
    let text = text_or_stdin(text, context.config.engine.max_turn_bytes)?;
    let engine = context.engine_to_write().await?;
    let memory = NewMemory { kind, session, ..NewMemory::new(text) };
    for memory in engine.add_memories(&user, vec![memory]).await? {
        if json {
            output.json(&MemoryJson::new(&user, &memory))?;
        } else {
            output.line(format_args!("remembered as {}", memory.id))?;
        }
    }
    Ok(())
}
