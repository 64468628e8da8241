//! Imports a file of another program, whose form is recognised or named.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use strata_core::{Error, Result, UserId};
use strata_engine::Engine;

use crate::foreign::{self, Contents, FileReport, Remembered, Target};
use crate::formats::{self, Format, Source};

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// The form; `None` recognises it by the content.
    pub format: Option<Format>,
    /// The name of the session that a whole file becomes; `None` takes the file's name.
    pub name: Option<String>,
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
    progress: impl FnMut(&FileProgress) + Send,
) -> Result<FileReport> {
    load(path, engine, options).await?.import(engine, progress).await
}

/// A file that was understood and checked, and can be imported.
#[derive(Debug)]
pub struct LoadedFile {
    path: PathBuf,
    format: Format,
    target: Target,
    contents: Contents,
}

/// Reads the file at `path` and checks that all of it can be imported, before [`LoadedFile::import`] writes anything.
pub async fn load(path: &Path, engine: &Engine, options: &FileOptions) -> Result<LoadedFile> {
    let (format, mut contents) = understood(path, options).await?;
    let target = Target {
        user: options.user.clone(),
        default_user: options.default_user.clone(),
        session_prefix: options.session_prefix.clone(),
        form: format.as_str(),
    };
    foreign::check(&mut contents, engine, &target, options.skip_bad)?;
    Ok(LoadedFile { path: path.to_owned(), format, target, contents })
}

impl LoadedFile {
    /// Records the content, and reports `progress` after each conversation.
    pub async fn import(
        self,
        engine: &Engine,
        mut progress: impl FnMut(&FileProgress) + Send,
    ) -> Result<FileReport> {
        let Self { format, target, contents, .. } = self;
        let mut report = FileReport { format: format.as_str().to_owned(), ..FileReport::default() };
        let mut state =
            FileProgress { conversations: (0, contents.chats.len() as u64), items: (0, contents.items()) };
        report.skipped = contents.skipped;
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
}

/// Fails if two files would share a session that is only named after them.
pub fn check_apart<'a>(files: impl IntoIterator<Item = &'a LoadedFile>) -> Result<()> {
    let mut seen = HashMap::new();
    for file in files {
        for chat in file.contents.chats.iter().filter(|chat| chat.is_named_by_file) {
            let known = seen.insert((&chat.user, &chat.session), &file.path);
            if let Some(other) = known.filter(|other| **other != file.path) {
                return Err(Error::invalid(format!(
                    "`{}` and `{}` would both be session `{}`; import each by itself with a `--prefix` of its own",
                    other.display(),
                    file.path.display(),
                    chat.session
                )));
            }
        }
    }
    Ok(())
}

async fn understood(path: &Path, options: &FileOptions) -> Result<(Format, Contents)> {
    let (path, options) = (path.to_owned(), options.clone());
    let loading = tokio::task::spawn_blocking(move || {
        let mut source = formats::read(&path)?;
        if let Some(name) = options.name {
            source.name = name;
        }
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

/// A mem0 export that is looked at without being imported.
pub struct Mem0File {
    source: Source,
    /// Its current memories.
    pub memories: Vec<FileMemory>,
}

impl Mem0File {
    /// Reads a mem0 export.
    pub fn read(path: &Path) -> Result<Self> {
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
        // A memory that has ended or was deleted needs no mending.
        let memories = contents.memories.into_iter().filter(Remembered::is_current).map(seen).collect();
        Ok(Self { source, memories })
    }

    /// The export without the memories that have one of these ids: a JSON list in which all others are as they were.
    pub fn without(&self, ids: &HashSet<String>) -> Result<String> {
        let text = self.source.texts.first().map_or("", String::as_str);
        formats::mem0::without(text, &self.source.path, ids)
    }
}
