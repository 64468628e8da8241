//! `strata users forget`: destroys everything of a user.

use strata_core::store::Removed;
use strata_core::{ErrorKind, UserId};
use strata_server::forget_kept_chats;
use strata_server::wire::RemovedResponse;

use super::super::serve::spill_folder;
use super::super::{Context, JsonArgs};
use super::{is_known, similar};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, confirm, counted};

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
    let forget_kept = || {
        let folder = context.config.store.path().map(spill_folder);
        folder.map_or(0, |folder| forget_kept_chats(&folder, &user, None))
    };
    // A server may have kept chats of a user whom the store does not know yet.
    let is_known = is_known(&engine, &user).await? || args.yes && forget_kept() > 0;
    if !is_known {
        let names = similar(&engine, &user).await?;
        return Err(Failure::failed(format!("there is no user `{user}`{names}")));
    }
    confirm(&format!("everything of user `{user}`, API keys included"), args.yes)?;
    // First the chats that a server could not record yet: it would record them later.
    forget_kept();
    let removed = match engine.forgetting.user(&user).await {
        // Only chats were kept of the user.
        Err(error) if error.kind() == ErrorKind::NotFound => Removed::default(),
        removed => removed?,
    };
    forget_kept();
    if args.json.json {
        output.json(&RemovedResponse::from(&removed))?;
    } else {
        output.line(format_args!(
            "destroyed {}, {}, {} and {}",
            counted(removed.sessions, "session"),
            counted(removed.turns, "turn"),
            counted(removed.memories, "memory"),
            counted(removed.summaries, "summary")
        ))?;
    }
    Ok(())
}
