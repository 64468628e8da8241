//! `strata memories export`: the memories of a user for another program.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;
use strata_core::store::{MemoryQuery, MemorySelect};
use strata_server::wire::MemoriesResponse;

use super::OwnerArgs;
use crate::commands::{Context, export};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted, note};

/// Export the memories of a user, oldest first
///
/// Each line is a memory with its kind, validity and sources. `strata import` reads the lines back; `strata export` has the
/// turns and the history too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata memories export memories.jsonl --user ada\n  strata memories export --format mem0 > memories.json"
)]
pub(super) struct Args {
    /// The file to write; it must not exist [default: stdout]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Include replaced and deleted memories
    #[arg(long)]
    all: bool,
    /// The form: `jsonl` for one memory on each line, `mem0` for one document as mem0's `get_all` answers
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Jsonl,
    Mem0,
}

pub(super) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { file, owner, all, format } = args;
    let user = owner.of(context);
    let engine = context.engine_for(&user).await?;
    let select = if all { MemorySelect::All } else { MemorySelect::Current { as_of: None } };
    let mut memories = engine.memories.list(&user, &MemoryQuery::new(select)).await?;
    memories.reverse();
    let document = serde_json::to_value(MemoriesResponse::load(&engine, &user, &memories).await?)
        .map_err(|error| Failure::Failed(error.into()))?;
    let text = match format {
        Form::Mem0 => format!("{document:#}\n"),
        Form::Jsonl => {
            let rows = document["results"].as_array().into_iter().flatten();
            rows.map(|row: &Value| format!("{row}\n")).collect()
        }
    };
    let Some(file) = file else {
        output.raw(&text)?;
        return Ok(());
    };
    let failed = || format!("`{}` cannot be written; name a new file in an existing folder", file.display());
    let mut target = export::create(&file).with_context(failed)?;
    let written = target.write_all(text.as_bytes()).and_then(|()| target.sync_all());
    if written.is_err() {
        // Half an export is of no use.
        let _ = std::fs::remove_file(&file);
    }
    written.with_context(failed)?;
    note(format_args!("wrote {} to `{}`", counted(memories.len() as u64, "memory"), file.display()));
    Ok(())
}
