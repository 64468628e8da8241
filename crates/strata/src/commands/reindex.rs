//! `strata reindex`: builds the text index anew from turns and memories.

use std::sync::Arc;

use serde_json::json;
use strata_core::Store;
use strata_core::store::CheckDepth;

use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Build the text index anew from turns and memories
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata reindex --store sqlite:strata.db")]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let path = context.existing_file()?;
    let store = Arc::new(strata::open_sqlite(path).await.map_err(|error| context.not_opened(error))?);
    context.close_later(store.clone());
    store.reindex().await.map_err(|error| Failure::Failed(error.into()))?;
    let health = store.check(CheckDepth::Quick).await.map_err(|error| Failure::Failed(error.into()))?;
    if args.json.json {
        output.json(&json!({ "turns": health.turns, "memories": health.memories }))?;
    } else {
        output.line(format_args!("indexed {} turns and {} memories", health.turns, health.memories))?;
    }
    Ok(())
}
