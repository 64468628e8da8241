//! Working contexts as files: one JSON document a session, in one folder, for people and programs to read.
//!
//! ```text
//! data/context/
//! ├── user1:agent1:123.json               the context
//! ├── user1:agent1:123.json.damaged-…     one that could not be read, set aside
//! ├── versions/user1:agent1:123/7.json    what it was before its seventh save
//! └── .locks/                             what keeps processes apart
//! ```
//!
//! A save is atomic and durable. A context that is read, changed and saved again belongs into
//! [`ContextManager::update`], which keeps others out meanwhile. What is deliberately left alone: what a context means,
//! and the clock: moments are those of the file system. Start reading at [`ContextManager`], then [`folder`].

mod folder;
mod name;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_core::context::ContextData;
pub use strata_core::context::MemoryError;
use strata_core::{Error, Result};

use folder::Folder;

/// Former documents kept of each session: enough to undo an afternoon, at about 100 KB each.
const DEFAULT_VERSIONS: usize = 20;

/// Keeps working contexts in a folder.
#[derive(Debug, Clone)]
pub struct ContextManager {
    base_path: PathBuf,
    versions: usize,
}

/// A document that a later save replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number, which rises with each save.
    pub number: u64,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// Its size.
    pub bytes: u64,
}

impl ContextManager {
    /// Contexts in the folder at `base_path`.
    pub fn new(base_path: impl Into<PathBuf>) -> Self {
        Self { base_path: base_path.into(), versions: DEFAULT_VERSIONS }
    }

    /// Keeps so many former documents of each session; with 0 none.
    #[must_use]
    pub fn with_versions(mut self, versions: usize) -> Self {
        self.versions = versions;
        self
    }

    /// The file of a session, whether or not it exists.
    pub fn path(&self, session_id: &str) -> Result<PathBuf> {
        Ok(self.folder().document(&name::file_stem(session_id)?))
    }

    /// Makes the folder, where it does not exist.
    pub async fn initialize(&self) -> Result<(), MemoryError> {
        self.run(|folder| folder.initialize()).await
    }

    /// A session's context; an empty one where there is none, which is not written until it is saved.
    ///
    /// A file that cannot be read as a context is set aside under another name, and the error names both. The next load
    /// then begins anew, unless a version was restored.
    pub async fn load(&self, session_id: &str) -> Result<ContextData, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.load(&id)).await
    }

    /// Replaces a session's context. When it returns, the document is on disk; whoever reads meanwhile, and whatever is
    /// found after a crash, is the former document or this one, whole. The former one is kept as a version.
    pub async fn save(&self, context: &ContextData) -> Result<(), MemoryError> {
        // Written out first: a large context need not be copied to travel to another thread.
        let (id, text) = (context.session_id.clone(), context.to_json());
        self.run(move |folder| folder.save(&id, &text)).await
    }

    /// Loads, changes and saves a context while no other process or task can, and gives back what `change` did. An
    /// error of `change` saves nothing.
    pub async fn update<T: Send + 'static>(
        &self,
        session_id: &str,
        change: impl FnOnce(&mut ContextData) -> Result<T> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.update(&id, change)).await
    }

    /// Destroys a session's context with its versions and what was set aside. One that does not exist is no error.
    pub async fn delete(&self, session_id: &str) -> Result<(), MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.delete(&id)).await
    }

    /// The sessions that have a context, sorted.
    pub async fn list_sessions(&self) -> Result<Vec<String>, MemoryError> {
        self.run(|folder| folder.list()).await
    }

    /// What a session's context was before, newest first.
    pub async fn versions(&self, session_id: &str) -> Result<Vec<Version>, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.versions(&id)).await
    }

    /// Saves a former document again and gives it back; what it replaces becomes a version itself.
    pub async fn restore(&self, session_id: &str, version: u64) -> Result<ContextData, MemoryError> {
        let id = session_id.to_owned();
        self.run(move |folder| folder.restore(&id, version)).await
    }

    /// The folder that the contexts are in.
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
        tokio::task::spawn_blocking(move || work(&folder))
            .await
            .map_err(|error| Error::internal("a task of the context's files died").with_source(error))?
    }
}
