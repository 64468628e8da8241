//! Imports a file of another program, whose form is recognised or named.

use std::path::Path;

use strata_core::{Error, Result, UserId};
use strata_engine::Engine;

use crate::foreign::{self, FileReport, Remembered, Target};
use crate::formats::{self, Format, Source};

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// The form; `None` recognises it by the content.
    pub format: Option<Format>,
    /// The user, whatever the file says.
    pub user: Option<UserId>,
    /// The user of conversations for which the file names none.
    pub default_user: UserId,
    /// A prefix of the session names, to keep two sources apart.
    pub session_prefix: String,
    /// Whether parts of a wrong shape are counted and left out. Otherwise the first one stops the import before it begins.
    pub skip_bad: bool,
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// Conversations that are done, of all.
    pub conversations: (u64, u64),
    /// Messages and memories that are done, of all.
    pub items: (u64, u64),
}

/// The form of the file at `path`, by its content.
pub fn recognise(path: &Path) -> Result<Format> {
    formats::recognise(&formats::read(path)?)
}

/// Imports the file at `path`, and reports `progress` after each conversation.
///
/// The whole file is understood and checked first: a damaged one changes nothing. Each conversation is recorded whole or not at
/// all. A second run adds only what is new.
pub async fn file(
    path: &Path,
    engine: &Engine,
    options: &FileOptions,
    mut progress: impl FnMut(&FileProgress) + Send,
) -> Result<FileReport> {
    let (format, mut contents) = load(path, options).await?;
    let target = Target {
        user: options.user.clone(),
        default_user: options.default_user.clone(),
        session_prefix: options.session_prefix.clone(),
        form: format.as_str(),
    };
    foreign::check(&mut contents, engine, &target, options.skip_bad)?;
    let mut report = FileReport { format: format.as_str().to_owned(), ..FileReport::default() };
    report.skipped = std::mem::take(&mut contents.skipped);
    let mut state =
        FileProgress { conversations: (0, contents.chats.len() as u64), items: (0, contents.items()) };
    progress(&state);
    for chat in &contents.chats {
        foreign::record(engine, &target, chat, &mut report).await?;
        state.conversations.0 += 1;
        state.items.0 += chat.messages.len() as u64;
        progress(&state);
    }
    let tell = |done| {
        state.items.0 += done;
        progress(&state);
    };
    foreign::remember(engine, &target, &contents.memories, &mut report, tell).await?;
    Ok(report)
}

async fn load(path: &Path, options: &FileOptions) -> Result<(Format, foreign::Contents)> {
    let (path, options) = (path.to_owned(), options.clone());
    let loading = tokio::task::spawn_blocking(move || {
        let source = formats::read(&path)?;
        let format = options.format.map_or_else(|| formats::recognise(&source), Ok)?;
        let contents = formats::understand(&source, format, options.skip_bad)?;
        Ok::<_, Error>((format, contents))
    });
    loading.await.map_err(|error| Error::internal("reading the file failed").with_source(error))?
}

/// A memory of a file, for a look without an import.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMemory {
    /// Its id in the file.
    pub id: String,
    /// The user that the file names.
    pub user: Option<String>,
    /// The statement.
    pub content: String,
    /// When it was created or last changed.
    pub at: Option<jiff::Timestamp>,
}

/// The memories of a mem0 export.
pub fn mem0_memories(path: &Path) -> Result<Vec<FileMemory>> {
    let source: Source = formats::read(path)?;
    let format = formats::recognise(&source)?;
    if format != Format::Mem0 {
        return Err(Error::invalid(format!(
            "`{}` is {}, and not the answer of mem0's `get_all`",
            path.display(),
            format.as_str()
        )));
    }
    let contents = formats::understand(&source, format, false)?;
    let seen = |memory: Remembered| {
        let Remembered { id, user, content, created_at, updated_at, .. } = memory;
        FileMemory { id, user, content, at: updated_at.or(created_at) }
    };
    Ok(contents.memories.into_iter().map(seen).collect())
}
