//! `strata chat`: a conversation in the terminal, with memory.
//!
//! Replies go to stdout and notes to stderr, so that a script can read a conversation. If stdin is not a terminal, each of
//! its lines is a message. The library holds the conversation ([`strata::Memory`]); this module shows it.

mod input;
mod talk;

use strata::Memory;
use strata_core::{SessionId, UserId};

use super::{Context, UserArgs};
use crate::failure::Outcome;
use crate::output::{Output, note};
use input::{Input, Line};
use talk::{Next, Talk};

/// Talk in the terminal, with memory
///
/// With an upstream, its model replies and gets the relevant memories. Without a model, Strata replies alone: it shows what it
/// has learned, and answers questions from memory. Lines that begin with `/` are commands; `/help` lists them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata chat\n  strata chat --user ada --session trip --upstream http://127.0.0.1:11434/v1 --model llama3.2"
)]
pub(crate) struct Args {
    #[command(flatten)]
    user: UserArgs,
    /// The session to continue
    #[arg(long, value_name = "SESSION", default_value = "chat")]
    session: SessionId,
    /// The OpenAI-compatible server whose model replies
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The upstream's API key
    #[arg(long, value_name = "KEY")]
    pub(crate) upstream_key: Option<String>,
    /// The name of the upstream's model [default: the setting `upstream_model`]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { user, session, .. } = args;
    let user = user.of(context);
    let engine = context.engine().await?;
    let memory = Memory::over(engine, &context.config)?;
    let memory = memory.user(user.as_str())?.session(session.as_str())?;
    let talked = converse(&memory, context, &user, output).await;
    // Learning is finished even if the conversation failed.
    let stopped = memory.stop().await;
    talked?;
    Ok(stopped?)
}

async fn converse(memory: &Memory, context: &Context, user: &UserId, output: &mut Output) -> Outcome {
    let mut input = Input::new(&earlier(memory).await?)?;
    greet(memory, context, user, input.is_terminal());
    let mut talk = Talk::new(memory.clone(), output, input.is_terminal());
    loop {
        match input.next().await? {
            Line::Said(line) if line.trim().is_empty() => {}
            Line::Said(line) => {
                if talk.take(line.trim()).await? == Next::End {
                    return Ok(());
                }
            }
            Line::Interrupted => note("(Ctrl-D or /quit ends the chat)"),
            Line::End => return Ok(()),
        }
    }
}

/// The user's earlier messages of the session, for the arrow keys.
async fn earlier(memory: &Memory) -> Outcome<Vec<String>> {
    let engine = memory.engine();
    let found = engine.store().session(memory.user_id(), memory.session_id()).await?;
    let Some(session) = found else { return Ok(Vec::new()) };
    let after = session.turn_count.checked_sub(input::MAX_HISTORY);
    let turns = engine
        .sessions
        .turns(memory.user_id(), memory.session_id(), after, input::MAX_HISTORY as u32)
        .await?;
    let said = turns.into_iter().filter(|turn| turn.role == strata_core::Role::User && turn.hidden.is_none());
    Ok(said.map(|turn| turn.content).filter(|content| !content.contains(char::is_control)).collect())
}

fn greet(memory: &Memory, context: &Context, user: &UserId, is_terminal: bool) {
    let config = &context.config;
    let session = memory.session_id();
    match config.server.proxy.upstream_of(&config.upstream_model) {
        Some(upstream) => note(format_args!(
            "{} at {} replies, with the memory of user `{user}`, in session `{session}`.",
            config.upstream_model, upstream.url
        )),
        None => note(format_args!(
            "No model is configured, so memory replies alone to user `{user}` in session `{session}`: it shows what it has \
             learned, and answers questions from memory.\nTo talk with a model: strata chat --upstream \
             https://api.openai.com/v1 --upstream-key KEY --model gpt-4.1-mini (any OpenAI-compatible server)"
        )),
    }
    if is_terminal {
        note("/help lists the commands, Ctrl-D ends.\n");
    }
}
