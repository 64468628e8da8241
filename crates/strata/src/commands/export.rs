//! `strata export`: writes the store, or one user's data, as JSON lines that `strata import` reads back.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use strata_core::UserId;
use strata_engine::Engine;
use strata_import::archive::{self, ArchiveCounts};

use super::vault::{self, CopyArgs};
use super::{Context, JsonArgs, UserArgs, progress, users};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted, note};

/// Export the store, or one user, as JSON lines
///
/// The lines hold every turn, every version of every memory, summaries, and sessions with their state; of keys they hold
/// everything but the secret. `strata import FILE` reads them back without loss. `strata backup` is faster, and is for SQLite
/// files only.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata export strata.jsonl\n  strata export ada.jsonl --user ada\n  strata export --vault memory/\n  strata export - | gzip > strata.jsonl.gz"
)]
pub(crate) struct Args {
    /// The file to write, which must not exist; `-` for stdout
    #[arg(value_name = "FILE", required_unless_present = "vault")]
    file: Option<PathBuf>,
    /// Write a vault of Markdown files into this folder instead, with the whole store
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "user"])]
    vault: Option<PathBuf>,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { file, vault: folder, user, json } = args;
    let Some(file) = file else {
        let folder = folder.unwrap_or_default();
        return vault::export(CopyArgs { folder, json }, context, output).await;
    };
    // Without `--user`, everything is exported, whatever the default user is.
    let user = user.named();
    let engine = match &user {
        Some(user) => context.engine_for(user).await?,
        None => context.engine_to_read().await?,
    };
    if file.exists() {
        return Err(Failure::failed(format!(
            "`{}` exists already and stays as it is; name a new file",
            file.display()
        )));
    }
    if file == Path::new("-") {
        write(&engine, user.as_ref(), output.writer()).await?;
        return Ok(());
    }
    let failed = || format!("`{}` cannot be written; name a new file in an existing folder", file.display());
    let mut target = BufWriter::new(create(&file).with_context(failed)?);
    let counts = match write(&engine, user.as_ref(), &mut target).await {
        Ok(counts) => counts,
        Err(failure) => {
            // Half an export is of no use.
            let _ = std::fs::remove_file(&file);
            return Err(failure);
        }
    };
    let target = target.into_inner().map_err(|error| Failure::Failed(error.into_error().into()))?;
    target.sync_all().with_context(failed)?;
    if json.json {
        output.json(&json!({ "file": file, "exported": counts }))?;
        return Ok(());
    }
    let ArchiveCounts { users, sessions, turns, summaries, memories, .. } = counts;
    output.line(format_args!(
        "exported {}, {}, {}, {} and {} to `{}`",
        counted(users, "user"),
        counted(sessions, "session"),
        counted(turns, "turn"),
        counted(memories, "memory"),
        counted(summaries, "summary"),
        file.display()
    ))?;
    if counts.keys > 0 {
        note(format_args!("the {} keys are exported without their secrets", counts.keys));
    }
    Ok(())
}

async fn write(
    engine: &Engine,
    user: Option<&UserId>,
    to: &mut (dyn Write + Send),
) -> Outcome<ArchiveCounts> {
    let bar = progress::bar("{bar:40} {pos}/{len} turns and memories {eta}");
    bar.set_length(users::items(engine, user).await?);
    let exported = archive::export(engine.store().as_ref(), user, engine.now(), to, |counts| {
        bar.set_position(counts.turns + counts.memories);
    })
    .await;
    bar.finish_and_clear();
    exported.map_err(|error| {
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
        match source.map(std::io::Error::kind) {
            Some(std::io::ErrorKind::BrokenPipe) => Failure::ClosedPipe,
            _ => Failure::Failed(error.into()),
        }
    })
}

/// Creates a file that only its owner can read, because it holds private conversations.
pub(super) fn create(file: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
