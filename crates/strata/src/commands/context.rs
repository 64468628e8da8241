//! `strata context`: prints, writes and compacts a session's working context as one JSON document.

use std::path::PathBuf;

use strata_core::context::ContextData;
use strata_core::{Error, ErrorKind};
use strata_engine::IfMatch;

use super::{Context, SessionArgs, read_document};
use crate::failure::Outcome;
use crate::output::{Output, note};

/// Print a session's working context as JSON
///
/// The document holds facts, recent history, a summary of the older history, tasks, tool statistics, environment and token
/// usage.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata context trip > trip.json\n  strata context trip --write trip.json\n  strata context trip --compact"
)]
pub(crate) struct Args {
    #[command(flatten)]
    which: SessionArgs,
    /// Replace the context with this document first; `-` reads it from stdin
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// With `--write`: remove facts, tasks, history and fields that the document does not have
    #[arg(long, requires = "write")]
    allow_removal: bool,
    /// Compact the context first: move excess history into the summary
    #[arg(long)]
    compact: bool,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { which, write, allow_removal, compact } = args;
    let (session, user) = which.of(context);
    let mut document = None;
    let engine = match write {
        Some(file) => {
            let new: ContextData = read_document(&file, context.config.server.max_body_bytes)?;
            let engine = context.engine_to_write().await?;
            let if_match = if allow_removal { IfMatch::Any } else { IfMatch::Absent };
            document = Some(engine.contexts.put(&user, &session, &new, if_match).await.map_err(with_hint)?);
            engine
        }
        None => context.engine_for(&user).await?,
    };
    if compact {
        let limits = &context.config.engine.compaction;
        let (compacted, changed) = engine.contexts.compact(&user, &session, limits).await?;
        if !changed {
            note("there is nothing to compact");
        }
        document = Some(compacted);
    }
    let document = match document {
        Some(document) => document,
        None => engine.contexts.get(&user, &session).await?,
    };
    output.json(&document)?;
    Ok(())
}

/// Adds how a command names the document.
fn with_hint(error: Error) -> Error {
    if error.kind() != ErrorKind::Unconditional {
        return error;
    }
    Error::unconditional(format!("{}; `--allow-removal` replaces any document", error.message()))
}
