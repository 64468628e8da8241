//! `strata backup`: makes a consistent copy of the store, also while a server writes to it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::{Context, JsonArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Copy the store to a file, even while a server uses it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  strata backup strata-2026-01-31.db")]
pub(crate) struct Args {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { file, json } = args;
    let path = context.existing_file()?;
    if file.try_exists()? {
        return Err(Failure::failed(format!("`{}` already exists; choose another name", file.display())));
    }
    let store = Arc::new(strata::open_sqlite(path).await.map_err(|error| context.not_opened(error))?);
    context.close_later(store.clone());
    store.backup(&file).await.map_err(|error| Failure::Failed(error.into()))?;
    let bytes = file.metadata()?.len();
    if json.json {
        output.json(&json!({ "file": file, "bytes": bytes }))?;
    } else {
        output.line(format_args!("copied {bytes} bytes to `{}`", file.display()))?;
    }
    Ok(())
}
