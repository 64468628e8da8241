//! `strata users forget`: destroys everything of a user.

use strata_core::UserId;
use strata_server::wire::RemovedResponse;

use super::super::{Context, JsonArgs};
use super::{is_known, similar};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, confirm};

/// Destroy everything of a user: turns, memories, summaries, states, requests, keys, vectors and jobs
///
/// A running server notices it at once. This cannot be undone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata users forget ada --yes")]
pub(crate) struct Args {
    /// The user
    #[arg(value_name = "USER")]
    user: UserId,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let engine = context.engine_to_read().await?;
    let user = args.user;
    if !is_known(&engine, &user).await? {
        let names = similar(&engine, &user).await?;
        return Err(Failure::failed(format!("there is no user `{user}`{names}")));
    }
    confirm(&format!("everything of user `{user}`, API keys included"), args.yes)?;
    let removed = engine.forgetting.user(&user).await?;
    if args.json.json {
        output.json(&RemovedResponse::from(&removed))?;
    } else {
        output.line(format_args!(
            "destroyed {} sessions, {} turns, {} memories and {} summaries",
            removed.sessions, removed.turns, removed.memories, removed.summaries
        ))?;
    }
    Ok(())
}
