//! `strata restore`: puts a backup in the place of the store, or brings back a deleted memory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use strata_core::store::{CheckDepth, Health};
use strata_core::{ErrorKind, Store};
use strata_store::SqliteStore;

use super::ids::IdText;
use super::{Context, JsonArgs, UserArgs, memories};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, confirm_that, counted, note};

/// Restore a backup, or a deleted memory
///
/// A backup is checked first and brought up to date as a copy; the file stays as it is. The present store is kept beside the
/// restored one. A server has to be stopped before. With the id of a memory instead of a file, that memory is restored.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata restore strata-2026-01-31.db\n  strata restore 5b6c7d8e --user ada"
)]
pub(crate) struct Args {
    /// The backup, or the id of a deleted memory
    #[arg(value_name = "FILE|ID")]
    what: PathBuf,
    #[command(flatten)]
    user: UserArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let Args { what, user, yes, json } = args;
    if !what.exists() {
        let id: Option<IdText> = what.to_str().and_then(|text| text.parse().ok());
        let Some(id) = id else {
            return Err(Failure::failed(format!(
                "there is no file `{}`, and it is not the id of a memory",
                what.display()
            )));
        };
        let one = memories::One::named(&id, user.of(context), json, context).await?;
        return memories::restore(one, output).await;
    }
    let store = context.file()?;
    if store.exists() && what.canonicalize()? == store.canonicalize()? {
        return Err(Failure::usage("the backup is the store itself; name another file"));
    }
    let prepared = beside(store, "restoring");
    let restored = replace(&what, store, &prepared, yes).await;
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", prepared.display()));
    }
    let (health, aside) = restored?;
    if json.json {
        output.json(&json!({
            "store": store, "kept": aside, "users": health.users, "sessions": health.sessions, "turns": health.turns, "memories": health.memories,
        }))?;
        return Ok(());
    }
    let Health { users, sessions, turns, memories, .. } = health;
    output.line(format_args!(
        "restored {}, {}, {} and {} to `{}`",
        counted(users, "user"),
        counted(sessions, "session"),
        counted(turns, "turn"),
        counted(memories, "memory"),
        store.display()
    ))?;
    if let Some(aside) = aside {
        note(format_args!("the former store is kept as `{}`", aside.display()));
    }
    Ok(())
}

/// Checks a copy of the backup and gives it the name of the store. Returns what it holds, and where the former store is.
async fn replace(
    backup: &Path,
    store: &Path,
    prepared: &Path,
    yes: bool,
) -> Outcome<(Health, Option<PathBuf>)> {
    if let Some(folder) = store.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("folder `{}` cannot be created", folder.display()))?;
    }
    let not_restored = |error: strata_core::Error| not_restored(backup, error);
    SqliteStore::copy(backup, prepared).map_err(not_restored)?;
    let copy = strata::open_sqlite(prepared).await.map_err(not_restored)?;
    let checked = copy.check(CheckDepth::Thorough).await;
    copy.close().await.map_err(not_restored)?;
    let health = checked.map_err(not_restored)?;
    if let Some(problem) = health.problems.first() {
        return Err(damaged(backup, problem));
    }
    let aside = store.exists().then(|| beside(store, "before-restore"));
    if let Some(aside) = &aside {
        let (store, aside) = (store.display(), aside.display());
        confirm_that(&format!("replaces the store at `{store}`, which is kept as `{aside}`"), yes)?;
    }
    let target = aside.clone().unwrap_or_default();
    SqliteStore::replace(prepared, store, &target).map_err(not_restored)?;
    Ok((health, aside))
}

fn not_restored(backup: &Path, error: strata_core::Error) -> Failure {
    match error.kind() {
        ErrorKind::Internal => damaged(backup, error.message()),
        _ => Failure::Failed(
            anyhow::Error::from(error).context(format!("`{}` cannot be restored", backup.display())),
        ),
    }
}

/// The failure for a damaged backup. The problem comes with the advice for a store, which is to restore a backup.
fn damaged(backup: &Path, problem: &str) -> Failure {
    let found = problem.split("; run `strata doctor`").next().unwrap_or(problem);
    let found = found.split("; restore a backup").next().unwrap_or(found);
    Failure::failed(format!(
        "the backup `{}` is damaged: {found}; nothing was changed, restore another backup",
        backup.display()
    ))
}

/// A name beside the store that no file has.
fn beside(store: &Path, what: &str) -> PathBuf {
    let name = |number: u32| PathBuf::from(format!("{}.{what}-{number}", store.display()));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}
