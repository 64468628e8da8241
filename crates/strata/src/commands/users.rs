//! `strata users`: forgets users.

mod forget;

use clap::Subcommand;

use super::Context;
use crate::failure::Outcome;
use crate::output::Output;

/// Forget users
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata users forget ada")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Forget(forget::Args),
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::Forget(args) => forget::run(args, context, output).await,
    }
}
