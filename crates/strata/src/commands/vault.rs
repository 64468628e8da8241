//! `strata vault`: the history of a vault, its index, and copies of a store as a vault.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Subcommand;
use strata::SystemClock;
use strata::config::{StoreUrl, VaultFolder};
use strata_core::Store;
use strata_core::store::{MemoryQuery, MemorySelect, Page, TurnQuery};
use strata_import::{Keys, Transferred};
use strata_vault::{Git, Progress, VaultStore};

use super::{Context, JsonArgs, progress};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted as count, note};

/// Look at a vault's history, undo a change, or take in edits
///
/// A vault keeps memory as Markdown files in a folder (`--store vault:DIR`). The history needs `enable_git_versioning`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  strata vault log --store vault:notes\n  strata vault undo --store vault:notes\n  strata vault sync --store vault:notes"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the commits of the vault, newest first
    Log {
        /// The maximum number of commits
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Show what a commit has changed, or what has changed since the last one
    Diff {
        /// The commit, as `strata vault log` names it
        #[arg(value_name = "COMMIT")]
        commit: Option<String>,
    },
    /// Take a commit back, and with it what it has added to memory
    Undo {
        /// The commit, as `strata vault log` names it; defaults to the last one that is not taken back already
        #[arg(value_name = "COMMIT")]
        commit: Option<String>,
    },
    /// Do again what the last undo has taken back
    Redo,
    /// Take in what has been edited, and report the files that cannot be read
    Sync,
    /// Build the index again from the files
    Rebuild,
}

/// A vault to copy from or into.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The vault's folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

/// A vault to copy into the store.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    copy: CopyArgs,
    /// Copy the vault's API keys too: who has one can then use this store
    #[arg(long)]
    keys: bool,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    match args.action {
        Action::Log { limit } => print(output, &git(context)?.log(limit).await?),
        Action::Diff { commit } => print(output, &git(context)?.diff(commit.as_deref()).await?),
        Action::Undo { commit } => undo(commit.as_deref(), context, output).await,
        Action::Redo => redo(context, output).await,
        Action::Sync => look(context, output).await,
        Action::Rebuild => rebuild(context, output).await,
    }
}

/// The configured vault.
fn vault(context: &Context) -> Outcome<&VaultFolder> {
    match &context.config.store {
        StoreUrl::Vault(vault) => Ok(vault),
        other => {
            Err(Failure::usage(format!("the store `{other}` is no vault; name one with `--store vault:DIR`")))
        }
    }
}

fn git(context: &Context) -> Outcome<Git> {
    context.existing_store()?;
    Ok(Git::new(&vault(context)?.path, Arc::new(SystemClock))?)
}

fn print(output: &mut Output, text: &str) -> Outcome {
    for line in text.lines() {
        output.line(format_args!("{line}"))?;
    }
    Ok(())
}

async fn undo(commit: Option<&str>, context: &Context, output: &mut Output) -> Outcome {
    let undone = history(context).await?.undo(commit).await?;
    output.line(format_args!("taken back: {undone}"))?;
    output.line("`strata vault redo` does it again")?;
    Ok(())
}

async fn redo(context: &Context, output: &mut Output) -> Outcome {
    let redone = history(context).await?.redo().await?;
    output.line(format_args!("done again: {redone}"))?;
    Ok(())
}

/// The vault, for a step through its history. The step makes the only commit, so nothing is committed in the background.
async fn history(context: &Context) -> Outcome<Arc<VaultStore>> {
    context.existing_store()?;
    let vault = VaultFolder { git: false, watch: false, ..vault(context)?.clone() };
    open(&vault, context).await
}

async fn look(context: &Context, output: &mut Output) -> Outcome {
    context.existing_store()?;
    let store = open(vault(context)?, context).await?;
    report(store.as_ref(), output).await
}

async fn rebuild(context: &Context, output: &mut Output) -> Outcome {
    context.existing_store()?;
    let vault = vault(context)?;
    strata_vault::remove_index(&vault.path)?;
    let begun = Instant::now();
    let (bar, progress) = progress::of_files();
    let files = Arc::new(AtomicUsize::new(0));
    let opened = strata::open_vault(vault, Some(counted(progress, Arc::clone(&files)))).await;
    bar.finish_and_clear();
    let store = Arc::new(opened.map_err(|error| context.not_opened(error))?);
    context.close_later(store.clone());
    let (files, seconds) = (files.load(Ordering::Relaxed), begun.elapsed().as_secs_f64());
    let rate = files as f64 / seconds;
    output.line(format_args!("files: {files}, read and indexed in {seconds:.1} s ({rate:.0} files/s)"))?;
    report(store.as_ref(), output).await
}

/// Notes the number of files beside telling how far they are read.
fn counted(progress: Progress, files: Arc<AtomicUsize>) -> Progress {
    Arc::new(move |done, all| {
        files.store(all, Ordering::Relaxed);
        progress(done, all);
    })
}

async fn open(vault: &VaultFolder, context: &Context) -> Outcome<Arc<VaultStore>> {
    let store = Arc::new(open_folder(vault).await.map_err(|error| context.not_opened(error))?);
    context.close_later(store.clone());
    Ok(store)
}

pub(super) async fn open_folder(vault: &VaultFolder) -> strata_core::Result<VaultStore> {
    let (bar, progress) = progress::of_files();
    let opened = strata::open_vault(vault, Some(progress)).await;
    bar.finish_and_clear();
    opened
}

/// The current content of a vault, without deleted turns and earlier wordings of memories.
#[derive(Debug, Default)]
struct Held {
    sessions: u64,
    turns: u64,
    memories: u64,
}

impl Held {
    async fn by(store: &VaultStore) -> Outcome<Self> {
        let mut held = Self::default();
        let all = Page::first(u32::MAX);
        for user in store.users(all).await? {
            let current =
                MemoryQuery { page: all, ..MemoryQuery::new(MemorySelect::Current { as_of: None }) };
            held.memories += store.memories(&user, &current).await?.len() as u64;
            for session in store.sessions(&user, all).await? {
                let hidden = TurnQuery::Hidden { session: session.id, after: None, limit: u32::MAX };
                let hidden = store.turns(&user, &hidden).await?.len() as u64;
                held.sessions += 1;
                held.turns += session.turn_count.saturating_sub(hidden);
            }
        }
        Ok(held)
    }
}

async fn report(store: &VaultStore, output: &mut Output) -> Outcome {
    let Held { sessions, turns, memories } = Held::by(store).await?;
    output.line(format_args!("sessions: {sessions}, turns: {turns}, current memories: {memories}"))?;
    let problems = store.problems().await?;
    for problem in &problems {
        output.line(format_args!("{problem}"))?;
    }
    match store.problem_count().await? {
        0 => Ok(()),
        1 => Err(Failure::failed("1 file cannot be used")),
        count => Err(Failure::failed(format!("{count} files cannot be used"))),
    }
}

/// Copies the store into a vault.
pub(crate) async fn export(args: CopyArgs, context: &Context, output: &mut Output) -> Outcome {
    context.existing_store()?;
    if args.folder.is_file() {
        return Err(Failure::failed(format!(
            "`{}` is a file and stays as it is; a vault is a folder, so name one",
            args.folder.display()
        )));
    }
    let target = StoreUrl::Vault(VaultFolder::new(args.folder));
    expect_two(&context.config.store, &target)?;
    let source = progress::open_store(&context.config.store).await?;
    copy(source, &target, Keys::Copy, context).await?.tell(&target, &args.json, output)
}

/// Copies a vault into the store, and tells which of its files could not be used.
pub(crate) async fn import(args: ImportArgs, context: &Context, output: &mut Output) -> Outcome {
    let ImportArgs { copy: CopyArgs { folder, json }, keys } = args;
    if !strata_vault::is_vault(&folder) {
        return Err(Failure::failed(format!(
            "`{}` is no vault: it has neither a folder `entries` nor `users`; name the folder that holds them, or import single \
             files with `strata import FILE`",
            folder.display()
        )));
    }
    let vault = VaultFolder::new(folder);
    let target = &context.config.store;
    expect_two(&StoreUrl::Vault(vault.clone()), target)?;
    let source = Arc::new(open_folder(&vault).await?);
    let problems = source.problems().await?;
    let keys = if keys { Keys::Copy } else { Keys::LeaveOut };
    let copied = Copied { problems, ..copy(source, target, keys, context).await? };
    copied.tell(target, &json, output)
}

fn expect_two(from: &StoreUrl, to: &StoreUrl) -> Outcome {
    if from.path().is_some() && from.path() == to.path() {
        return Err(Failure::usage("both stores are the same; name two"));
    }
    Ok(())
}

/// The result of a copy.
#[derive(Debug, serde::Serialize)]
struct Copied {
    #[serde(flatten)]
    moved: Transferred,
    /// The files of the source that could not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

impl Copied {
    fn tell(&self, to: &StoreUrl, json: &JsonArgs, output: &mut Output) -> Outcome {
        if json.json {
            output.json(self)?;
            return Ok(());
        }
        let Transferred { users, sessions, turns, memories, summaries, .. } = self.moved;
        output.line(format_args!(
            "{}, {}, {}, {} and {} are in `{to}`; counts and digests agree",
            count(users, "user"),
            count(sessions, "session"),
            count(turns, "turn"),
            count(memories, "memory"),
            count(summaries, "summary")
        ))?;
        for problem in &self.problems {
            note(format_args!("skipped: {problem}"));
        }
        Ok(())
    }
}

async fn copy(source: Arc<dyn Store>, to: &StoreUrl, keys: Keys, context: &Context) -> Outcome<Copied> {
    let target = progress::open_store(to).await?;
    let embedder = strata::embedder(&context.config).ok().flatten();
    let models: Vec<String> = embedder.iter().map(|embedder| embedder.model().to_owned()).collect();
    let bar = progress::copy_bar();
    let tell = |done: &Transferred, all: u64| progress::show_copied(&bar, done, all);
    let moved = strata_import::transfer(source.as_ref(), target.as_ref(), &models, keys, tell).await;
    bar.finish_and_clear();
    let closed = (source.close().await, target.close().await);
    let moved = moved?;
    closed.0.and(closed.1)?;
    Ok(Copied { moved, problems: Vec::new() })
}
