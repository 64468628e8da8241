//! `strata mcp`: serves memory to an agent over standard input and output.

use strata_core::{SessionId, UserId};
use tokio::io::{stdin, stdout};

use super::Context;
use super::serve::stop_signal;
use crate::failure::{Failure, Outcome};

/// Serve memory to an agent over stdio (MCP)
///
/// The agent's program starts this command. A server and other agents may use the same store at the same time. The command
/// ends when its input ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  claude mcp add strata -- strata mcp --user ada")]
pub(crate) struct Args {
    /// Bind all calls to this user [default: the user that a call names, else `default`]
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    /// Bind all calls to this session [default: the session that a call names, if any]
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Outcome {
    let Args { user, session } = args;
    let config = &context.config;
    // Signals are handled first, so that none is lost while the store opens.
    let stop = stop_signal()?;
    let engine = context.engine().await?;
    let worker = strata::Worker::start(engine.clone(), strata::WorkerSettings::new(config));
    let app = strata_server::App::new(engine, config.server.clone());
    let served = strata_server::serve_mcp(app, user, session, (stdin(), stdout()), stop).await;
    worker.stop(config.server.drain_timeout).await;
    served.map_err(|error| Failure::Failed(error.into()))
}
