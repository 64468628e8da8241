//! `strata state`: shows and replaces the structured state of a session.

use std::path::PathBuf;

use clap::Subcommand;
use strata_core::state::State;

use super::{Context, SessionArgs, read_document};
use crate::failure::Outcome;
use crate::output::Output;

/// Show or replace the structured state of a session, as JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata state show pump > pump.json\n  strata state set pump pump.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the known facts, tasks, tool statistics and token usage
    #[command(after_help = "Example:\n  strata state show pump --user ada")]
    Show {
        #[command(flatten)]
        which: SessionArgs,
    },
    /// Replace the state; fields that are left out become empty
    #[command(after_help = "Example:\n  strata state set pump pump.json")]
    Set {
        #[command(flatten)]
        which: SessionArgs,
        /// The new state; `-` reads it from stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let state = match args.action {
        Action::Show { which } => {
            let (session, user) = which.of(context);
            context.engine_for(&user).await?.sessions.state(&user, &session).await?
        }
        Action::Set { which, file } => {
            let (session, user) = which.of(context);
            let state: State = read_document(&file, context.config.engine.limits.max_turn_bytes)?;
            context.engine_to_write().await?.sessions.put_state(&user, &session, state).await?
        }
    };
    output.json(&state)?;
    Ok(())
}
