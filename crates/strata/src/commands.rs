//! The commands, one file each, and the parts that they share: the open store and the arguments that name a user.

pub(crate) mod add;
pub(crate) mod backup;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod feedback;
mod ids;
pub(crate) mod import;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod learn;
pub(crate) mod mcp;
pub(crate) mod memories;
pub(crate) mod migrate;
pub(crate) mod models;
mod progress;
pub(crate) mod prompt;
pub(crate) mod record;
pub(crate) mod reindex;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod sessions;
mod settle;
pub(crate) mod state;
pub(crate) mod users;
pub(crate) mod vault;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use strata::config::{Config, StoreUrl};
use strata_core::store::Page;
use strata_core::{SessionId, Store, UserId};
use strata_engine::Engine;

use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// The commands of `strata`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Demo(demo::Args),
    Chat(chat::Args),
    Mcp(mcp::Args),
    Record(record::Args),
    Add(add::Args),
    Search(search::Args),
    Explain(explain::Args),
    Report(report::Args),
    Feedback(feedback::Args),
    Prompt(prompt::Args),
    Context(context::Args),
    State(state::Args),
    Sessions(sessions::Args),
    Memories(memories::Args),
    Users(users::Args),
    Learn(learn::Args),
    Jobs(jobs::Args),
    Import(import::Args),
    Export(export::Args),
    Keys(keys::Args),
    Doctor(doctor::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Migrate(migrate::Args),
    Reindex(reindex::Args),
    Vault(vault::Args),
    Eval(eval::Args),
    Models(models::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

impl Command {
    /// The log filter if the configuration sets none. A server logs its events; at a prompt, the answer must not drown in
    /// them.
    pub(crate) fn default_log(&self) -> &'static str {
        match self {
            Self::Serve(_) => "info",
            _ => "warn",
        }
    }
}

/// Runs one command, and does the background work of a server for what it has recorded.
pub(crate) async fn run(command: Command, context: &Context, output: &mut Output) -> Outcome {
    use Command::{Add, Import, Learn, Record};
    let records = matches!(command, Record(_) | Add(_) | Import(_) | Learn(_));
    Box::pin(run_alone(command, context, output)).await?;
    match context.opened_engine() {
        Some(engine) if records => settle::settle_recorded(&engine, context, output).await,
        _ => Ok(()),
    }
}

async fn run_alone(command: Command, context: &Context, output: &mut Output) -> Outcome {
    match command {
        Command::Serve(_) => Box::pin(serve::run(context, output)).await,
        Command::Demo(args) => Box::pin(demo::run(args, context, output)).await,
        Command::Chat(args) => Box::pin(chat::run(args, context, output)).await,
        Command::Mcp(args) => mcp::run(args, context).await,
        Command::Record(args) => record::run(args, context, output).await,
        Command::Add(args) => Box::pin(add::run(args, context, output)).await,
        Command::Search(args) => search::run(args, context, output).await,
        Command::Explain(args) => explain::run(args, context, output).await,
        Command::Report(args) => Box::pin(report::run(args, context, output)).await,
        Command::Feedback(args) => Box::pin(feedback::run(args, context, output)).await,
        Command::Prompt(args) => prompt::run(args, context, output).await,
        Command::Context(args) => context::run(args, context, output).await,
        Command::State(args) => Box::pin(state::run(args, context, output)).await,
        Command::Sessions(args) => Box::pin(sessions::run(args, context, output)).await,
        Command::Memories(args) => Box::pin(memories::run(args, context, output)).await,
        Command::Users(args) => users::run(args, context, output).await,
        Command::Learn(args) => learn::run(args, context, output).await,
        Command::Jobs(args) => jobs::run(args, context, output).await,
        Command::Import(args) => Box::pin(import::run(args, context, output)).await,
        Command::Export(args) => Box::pin(export::run(args, context, output)).await,
        Command::Keys(args) => Box::pin(keys::run(args, context, output)).await,
        Command::Doctor(args) => doctor::run(args, context, output).await,
        Command::Backup(args) => backup::run(args, context, output).await,
        Command::Restore(args) => Box::pin(restore::run(args, context, output)).await,
        Command::Migrate(args) => migrate::run(args, context, output).await,
        Command::Reindex(args) => reindex::run(args, context, output).await,
        Command::Vault(args) => vault::run(args, context, output).await,
        Command::Eval(args) => Box::pin(eval::run(args, context, output)).await,
        Command::Models(args) => models::run(args, context, output).await,
        Command::Config(args) => config::run(&args, context, output),
        Command::Completions(args) => completions::run(&args, context, output),
        Command::Man(args) => completions::man(&args, context, output),
    }
}

/// The user whose data a command works on.
#[derive(Debug, Clone, Args)]
pub(crate) struct UserArgs {
    /// The user [default: the setting `user`, else `default`]
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
}

impl UserArgs {
    /// The named user, or the user of the settings.
    pub(crate) fn of(self, context: &Context) -> UserId {
        self.user.unwrap_or_else(|| context.config.user.clone())
    }

    /// The user that the command line names.
    pub(crate) fn named(self) -> Option<UserId> {
        self.user
    }
}

/// A session of a user.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[command(flatten)]
    user: UserArgs,
}

impl SessionArgs {
    /// The session, and its user.
    pub(crate) fn of(self, context: &Context) -> (SessionId, UserId) {
        (self.session, self.user.of(context))
    }
}

/// The part of a list that is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PageArgs {
    /// The maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
    limit: u32,
    /// The number of entries to skip
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    offset: u64,
}

impl From<PageArgs> for Page {
    fn from(PageArgs { limit, offset }: PageArgs) -> Self {
        Self { offset, limit }
    }
}

/// Whether the output is JSON, for programs.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The configuration, and the store once a command has opened it.
pub(crate) struct Context {
    pub(crate) config: Config,
    /// The description of the whole command line, for completions and manual pages.
    pub(crate) command_line: fn() -> clap::Command,
    opened: Mutex<Option<Opened>>,
}

/// The store to close at the end.
struct Opened {
    store: Arc<dyn Store>,
    /// The engine whose request rows wait to be written.
    engine: Option<Engine>,
}

impl Context {
    pub(crate) fn new(config: Config, command_line: fn() -> clap::Command) -> Self {
        Self { config, command_line, opened: Mutex::new(None) }
    }

    /// The use-cases over a store that a command writes to. A file that does not exist is created.
    pub(crate) async fn engine_to_write(&self) -> Outcome<Engine> {
        self.engine_to_write_with(&self.config).await
    }

    /// As [`Context::engine_to_write`], with another configuration of the engine.
    pub(crate) async fn engine_to_write_with(&self, config: &Config) -> Outcome<Engine> {
        self.lasting()?;
        self.engine_with(config).await
    }

    /// The use-cases over a store that must exist, so that a wrong path gives an error and not an empty list.
    pub(crate) async fn engine_to_read(&self) -> Outcome<Engine> {
        self.existing_store()?;
        if let Some(path) = self.config.store.path().filter(|path| is_read_only(path)) {
            let store = strata::open_sqlite_to_read(path).await.map_err(|error| self.not_opened(error))?;
            let store: Arc<dyn Store> = Arc::new(store);
            self.close_later(Arc::clone(&store));
            // The engine is not kept, because its request rows cannot be written.
            return Ok(strata::engine(&self.config, store)?);
        }
        self.engine().await
    }

    /// As [`Context::engine_to_read`], with a warning if the store does not know `user`.
    pub(crate) async fn engine_for(&self, user: &UserId) -> Outcome<Engine> {
        let engine = self.engine_to_read().await?;
        users::warn_if_unknown(&engine, user).await?;
        Ok(engine)
    }

    /// The use-cases over the configured store, which may be in memory.
    pub(crate) async fn engine(&self) -> Outcome<Engine> {
        self.engine_with(&self.config).await
    }

    async fn engine_with(&self, config: &Config) -> Outcome<Engine> {
        let store = progress::open_store(&self.config.store).await.map_err(|error| self.not_opened(error))?;
        self.close_later(Arc::clone(&store));
        let engine = strata::engine(config, Arc::clone(&store))?;
        let opened = Opened { store, engine: Some(engine.clone()) };
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(engine)
    }

    /// Fails if the store is a file that does not exist, or ends with the process.
    pub(crate) fn existing_store(&self) -> Outcome {
        match &self.config.store {
            StoreUrl::Sqlite(_) => self.existing_file().map(drop),
            StoreUrl::Vault(vault) if !vault.path.exists() => Err(Failure::failed(format!(
                "there is no vault at `{}` (from {}); create one with `strata record`, `strata add` or `strata serve`",
                vault.path.display(),
                self.config.origin("store"),
            ))),
            StoreUrl::Vault(_) => self.other_folder().map_or(Ok(()), |other| Err(Failure::failed(other))),
            StoreUrl::Postgres(_) | StoreUrl::Memory => self.lasting(),
        }
    }

    /// The message about a store that should be a vault and is a folder of other files.
    pub(crate) fn other_folder(&self) -> Option<String> {
        let StoreUrl::Vault(vault) = &self.config.store else { return None };
        is_other_folder(&vault.path).then(|| {
            format!(
                "`{}` (from {}) is no vault: it has neither a folder `entries` nor `users`; name the folder that holds them, or \
                 begin a vault here with `strata record`, `strata add` or `strata serve`",
                vault.path.display(),
                self.config.origin("store"),
            )
        })
    }

    /// The store's file, which must exist.
    pub(crate) fn existing_file(&self) -> Outcome<&Path> {
        let path = self.file()?;
        match path
            .try_exists()
            .with_context(|| format!("the store at `{}` cannot be accessed", path.display()))?
        {
            true => Ok(path),
            false => Err(Failure::failed(format!(
                "there is no store at `{}` (from {}); create one with `strata record`, `strata add` or `strata serve`",
                path.display(),
                self.config.origin("store"),
            ))),
        }
    }

    /// The file of the store, whether or not it exists.
    pub(crate) fn file(&self) -> Outcome<&Path> {
        match &self.config.store {
            StoreUrl::Sqlite(path) => Ok(path),
            StoreUrl::Postgres(_) => Err(Failure::usage(
                "this command works on a file, and the store is a PostgreSQL database; use PostgreSQL's own tools, such as `pg_dump` and `REINDEX`",
            )),
            StoreUrl::Vault(_) => Err(Failure::usage(
                "this command works on a file, and the store is a vault; copy its folder, or delete `.strata` in it to build the index again",
            )),
            StoreUrl::Memory => Err(ends_with_the_process()),
        }
    }

    /// Fails if the store ends with the process.
    fn lasting(&self) -> Outcome {
        match &self.config.store {
            StoreUrl::Sqlite(_) | StoreUrl::Postgres(_) | StoreUrl::Vault(_) => Ok(()),
            StoreUrl::Memory => Err(ends_with_the_process()),
        }
    }

    /// The error for a store that cannot be opened, with the setting that names the store.
    pub(crate) fn not_opened(&self, error: strata_core::Error) -> Failure {
        let origin = self.config.origin("store");
        let context = format!("the store `{}` (from {origin}) cannot be opened", self.config.store);
        Failure::Failed(anyhow::Error::from(error).context(context))
    }

    /// The engine that the command has opened, if it has.
    fn opened_engine(&self) -> Option<Engine> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.engine.clone()
    }

    pub(crate) fn close_later(&self, store: Arc<dyn Store>) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Opened { store, engine: None });
    }

    /// Writes the waiting request rows and closes the store, if a command has opened one.
    pub(crate) async fn close(&self) -> Outcome {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Opened { store, engine }) = opened else { return Ok(()) };
        // The answer has been given, so a failure here (such as a full disk) loses only the row and is logged.
        if let Some(engine) = engine
            && let Err(error) = engine.requests.flush().await
        {
            tracing::warn!(%error, "the request's row could not be written");
        }
        store.close().await.map_err(|error| Failure::Failed(error.into()))
    }
}

/// A text given as an argument, or read from stdin if the argument is `-`.
pub(crate) fn text_or_stdin(text: String, most: usize) -> Outcome<String> {
    if text != "-" {
        return Ok(text);
    }
    let mut bytes = Vec::new();
    // One byte more than the limit is read, so that a longer text fails with the limit's own error.
    std::io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::usage("stdin is not valid UTF-8; convert it first"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A JSON document from a file, or from stdin if the file is `-`.
pub(crate) fn read_document<T: DeserializeOwned>(file: &Path, most: usize) -> Outcome<T> {
    let text = if file == Path::new("-") {
        text_or_stdin("-".to_owned(), most)?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("file `{}` cannot be read", file.display()))?
    };
    serde_json::from_str(&text)
        .map_err(|error| Failure::failed(format!("`{}` is not a valid document: {error}", file.display())))
}

/// Whether a folder holds other files and no vault.
fn is_other_folder(folder: &Path) -> bool {
    let has_files = || folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    !strata_vault::is_vault(folder) && has_files()
}

/// Whether a store exists that this process may read and not write: its file, or its folder, in which a log would have to be made.
fn is_read_only(path: &Path) -> bool {
    is_read_only_file(path) || path.is_file() && is_in_read_only_folder(path)
}

#[cfg(unix)]
fn is_in_read_only_folder(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err()
}

#[cfg(not(unix))]
fn is_in_read_only_folder(_path: &Path) -> bool {
    false
}

fn is_read_only_file(path: &Path) -> bool {
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    opened.is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
    })
}

fn ends_with_the_process() -> Failure {
    Failure::usage(
        "store `memory:` ends with the process, so only `strata serve` and `strata chat` can use it; name a file with `--store sqlite:PATH`",
    )
}
