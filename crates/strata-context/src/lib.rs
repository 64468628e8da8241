//! Working contexts as files: one JSON document per session, in one folder, readable for people and programs.
//!
//! ```text
//! data/context/
//! ├── user1:agent1:123.json               the context
//! ├── user1:agent1:123.json.damaged-…     a document that cannot be read, moved aside
//! ├── versions/user1:agent1:123/7.json    the document that the seventh save replaced
//! └── .locks/                             locks between processes
//! ```
//!
//! A save is atomic and durable. To read, change and save a context, use [`ContextManager::update`], which locks out others
//! meanwhile. Deliberately absent: the meaning of a context, and a clock; times come from the file system. Start reading at
//! [`ContextManager`], then [`folder`].

mod folder;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_core::context::ContextData;
pub use strata_core::context::MemoryError;
use strata_core::file_name::file_stem;
use strata_core::{Error, Result};

use folder::Folder;

/// The number of former documents kept of each session: enough to undo an afternoon, at about 100 KB each.
const DEFAULT_VERSIONS: usize = 20;

/// Stores working contexts in a folder.
#[derive(Debug, Clone)]
pub struct ContextManager {
    base_path: PathBuf,
    versions: usize,
}

/// A document that a later save replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The number, which rises with each save.
    pub number: u64,
    /// When the document was saved.
    pub saved_at: Timestamp,
    /// The size in bytes.
    pub bytes: u64,
}

impl ContextManager {
    /// A manager of the contexts in the folder at `base_path`.
    pub fn new(base_path: impl Into<PathBuf>) -> Self {
        Self { base_path: base_path.into(), versions: DEFAULT_VERSIONS }
    }

    /// Sets the number of former documents that are kept of each session; 0 keeps none.
    #[must_use]
    pub fn with_versions(mut self, versions: usize) -> Self {
        self.versions = versions;
        self
    }

    /// The path of a session's file, which need not exist.
    pub fn path(&self, session_id: &str) -> Result<PathBuf> {
        Ok(self.folder().document(&file_stem(session_id)?))
    }

    /// Creates the folder if it does not exist.
    pub async fn initialize(&self) -> Result<(), MemoryError> {
        self.run(|folder| folder.initialize()).await
    }

    /// A session's context, or a new empty one, which is not written until it is saved.
    ///
    /// A file that is not a valid context is renamed, and the error gives both names. The next load then returns an empty
    /// context, unless a version was restored.
    pub async fn load(&self, session_id: &str) -> Result<ContextData, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.load(&id)).await
    }

    /// Replaces a session's context. When it returns, the document is on disk. A concurrent reader, or a reader after a crash,
    /// gets either the former document or this one, complete. The former document is kept as a version.
    pub async fn save(&self, context: &ContextData) -> Result<(), MemoryError> {
        // The text is made first, so that a large context need not be cloned for another thread.
        let (id, text) = (context.session_id.clone(), context.to_json());
        self.run(move |folder| folder.save(&id, &text)).await
    }

    /// Loads, changes and saves a context under the session's lock, and returns the result of `change`. If `change` fails,
    /// nothing is saved.
    pub async fn update<T: Send + 'static>(
        &self,
        session_id: &str,
        change: impl FnOnce(&mut ContextData) -> Result<T> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.update(&id, change)).await
    }

    /// Destroys a session's context with its versions and its damaged documents. It is not an error if there is none.
    pub async fn delete(&self, session_id: &str) -> Result<(), MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.delete(&id)).await
    }

    /// The sessions that have a context, sorted.
    pub async fn list_sessions(&self) -> Result<Vec<String>, MemoryError> {
        self.run(|folder| folder.list()).await
    }

    /// The former documents of a session, newest first.
    pub async fn versions(&self, session_id: &str) -> Result<Vec<Version>, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.versions(&id)).await
    }

    /// Saves a former document again and returns it. The document that it replaces becomes a version.
    pub async fn restore(&self, session_id: &str, version: u64) -> Result<ContextData, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.restore(&id, version)).await
    }

    /// The folder of the contexts.
    pub fn base_path(&self) -> &Path {
        &self.base_path
    }

    fn folder(&self) -> Folder {
        Folder::new(self.base_path.clone(), self.versions)
    }

    /// Runs file operations off the async threads.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let folder = self.folder();
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(|error| {
            Error::internal("a task for the context's files has panicked").with_source(error)
        })?
    }
}
