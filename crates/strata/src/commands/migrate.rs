//! `strata migrate`: moves a whole store into another one, such as a file into a PostgreSQL database.

use std::sync::Arc;

use strata::config::StoreUrl;
use strata_core::Store;
use strata_import::{Keys, Transferred};

use super::{Context, JsonArgs, progress};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, note};

/// Copy a whole store into another one, and compare them
///
/// Stop every server that writes to either store first. A run that was interrupted is continued by running it again. The source
/// stays as it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata migrate sqlite:strata.db postgres://strata@db.example/strata\n  strata migrate postgres://strata@db.example/strata sqlite:strata.db"
)]
pub(crate) struct Args {
    /// The store to read, which must exist
    #[arg(value_name = "FROM")]
    from: String,
    /// The store to write
    #[arg(value_name = "TO")]
    to: String,
    /// Copy a vault although some of its files cannot be used; they are listed and left out
    #[arg(long)]
    skip_unusable: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let (from, to) = (address(context, &args.from)?, address(context, &args.to)?);
    if from == to {
        return Err(Failure::usage("both stores are the same; name two"));
    }
    if let Some(path) = from.path()
        && !path.exists()
    {
        return Err(Failure::failed(format!("there is no store at `{}`", path.display())));
    }
    if let StoreUrl::Vault(vault) = &from
        && !strata_vault::is_vault(&vault.path)
    {
        return Err(Failure::failed(format!("`{}` is no vault", vault.path.display())));
    }
    let not_opened = |url: &StoreUrl, error: strata_core::Error| {
        Failure::Failed(anyhow::Error::from(error).context(format!("the store `{url}` cannot be opened")))
    };
    let (source, problems) = open_source(&from).await.map_err(|error| not_opened(&from, error))?;
    if let Err(refusal) = expect_usable(&problems, args.skip_unusable, output) {
        source.close().await.map_err(|error| Failure::Failed(error.into()))?;
        return Err(refusal);
    }
    let target = progress::open_store(&to).await.map_err(|error| not_opened(&to, error))?;
    let embedder = strata::embedder(&context.config).ok().flatten();
    let models: Vec<String> = embedder.iter().map(|embedder| embedder.model().to_owned()).collect();
    let bar = progress::copy_bar();
    let tell = |done: &Transferred, all: u64| progress::show_copied(&bar, done, all);
    let moved = strata_import::transfer(source.as_ref(), target.as_ref(), &models, Keys::Copy, tell).await;
    bar.finish_and_clear();
    let closed = (source.close().await, target.close().await);
    let moved = moved.map_err(|error| Failure::Failed(error.into()))?;
    closed.0.and(closed.1).map_err(|error| Failure::Failed(error.into()))?;
    if args.json.json {
        output.json(&Moved { moved, problems })?;
    } else {
        let Transferred { users, sessions, turns, memories, summaries, vectors, jobs, requests, keys } =
            moved;
        output.line(format_args!(
            "{users} users, {sessions} sessions, {turns} turns, {memories} memories, {summaries} summaries, {vectors} vectors of the configured model, \
             {jobs} jobs, {requests} request rows and {keys} keys are in `{to}`; counts and digests agree"
        ))?;
    }
    Ok(())
}

/// The result of a migration.
#[derive(serde::Serialize)]
struct Moved {
    #[serde(flatten)]
    moved: Transferred,
    /// The files of the source that could not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// Opens the store to read, with the files that cannot be used if it is a vault.
async fn open_source(from: &StoreUrl) -> strata_core::Result<(Arc<dyn Store>, Vec<String>)> {
    let StoreUrl::Vault(vault) = from else { return Ok((progress::open_store(from).await?, Vec::new())) };
    let source = super::vault::open_folder(vault).await?;
    let problems = source.problems().await?;
    Ok((Arc::new(source), problems))
}

/// Lists the files that cannot be used. They are refused unless they may be left out.
fn expect_usable(problems: &[String], may_skip: bool, output: &mut Output) -> Outcome {
    if may_skip || problems.is_empty() {
        problems.iter().for_each(|problem| note(format_args!("skipped: {problem}")));
        return Ok(());
    }
    problems.iter().try_for_each(|problem| output.line(format_args!("{problem}")))?;
    Err(Failure::failed(
        "some files of the vault cannot be used, and nothing was copied; correct them, or leave them out with `--skip-unusable`",
    ))
}

/// The store that an argument names, with the settings of this run. A store that ends with the process is refused.
fn address(context: &Context, text: &str) -> Outcome<StoreUrl> {
    let url = match text.parse::<StoreUrl>() {
        Ok(StoreUrl::Memory) => {
            return Err(Failure::usage("a store in memory ends with the process; name a lasting one"));
        }
        Ok(url) => url,
        Err(error) => return Err(Failure::usage(error.message().to_owned())),
    };
    context.config.store_at(url).map_err(|error| Failure::usage(error.message().to_owned()))
}
