//! `strata reindex`: rebuilds the text index from turns and memories, and embeds the items without vectors.

use std::sync::Arc;

use serde_json::json;
use strata_core::Store;
use strata_core::store::CheckDepth;

use super::settle::settle_all;
use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted};

/// Rebuild the text index and embed the items without vectors
///
/// A server does both in the background; this command does it now and returns when it is done.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata reindex --store sqlite:strata.db\n  strata reindex --embedder onnx:models/mine"
)]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let path = context.existing_file()?;
    let store = Arc::new(strata::open_sqlite(path).await.map_err(|error| context.not_opened(error))?);
    context.close_later(store.clone());
    store.reindex().await.map_err(|error| Failure::Failed(error.into()))?;
    let engine = strata::engine(&context.config, store.clone())?;
    settle_all(&engine).await?;
    let health = store.check(CheckDepth::Quick).await.map_err(|error| Failure::Failed(error.into()))?;
    if args.json.json {
        output.json(&json!({ "turns": health.turns, "memories": health.memories }))?;
    } else {
        let (turns, memories) = (counted(health.turns, "turn"), counted(health.memories, "memory"));
        output.line(format_args!("indexed {turns} and {memories}"))?;
    }
    Ok(())
}
