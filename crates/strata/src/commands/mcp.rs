//! `strata mcp`: memory for an agent, over standard input and output.

use strata_core::{SessionId, UserId};
use tokio::io::{stdin, stdout};

use super::Context;
use super::serve::stop_signal;
use crate::failure::{Failure, Outcome};

/// Serve memory to an agent over stdio (MCP)
///
/// The agent's program starts this itself. It works beside a running server and other agents on the same file, and ends
/// when its input does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  claude mcp add strata -- strata mcp --user ada")]
pub(crate) struct Args {
    /// Whose memory, whatever a call says; without it calls may name a user, else it is `default`
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    /// The session that questions are asked in
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Outcome {
    let Args { user, session } = args;
    let config = &context.config;
    // Signals first: one that comes while the store opens must not be lost.
    let stop = stop_signal()?;
    let engine = context.engine().await?;
    let worker = strata::Worker::start(engine.clone(), strata::WorkerSettings::new(config));
    let app = strata_server::App::new(engine, config.server.clone());
    let served = strata_server::serve_mcp(app, user, session, (stdin(), stdout()), stop).await;
    worker.stop(config.server.drain_timeout).await;
    served.map_err(|error| Failure::Failed(error.into()))
}
