//! Opens the store that a URL names.

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::Arc;

use strata_core::store::InMemoryStore;
use strata_core::{Error, Result, Store};
use strata_postgres::PostgresStore;
use strata_store::{SqliteOptions, SqliteStore};
use strata_vault::{Progress, VaultOptions, VaultStore};

use crate::config::{StoreUrl, VaultFolder};
use crate::{SystemClock, SystemIds};

/// Opens the store at `url`. A SQLite file that does not exist is created, with its directory, and
/// the tables of an empty database are made.
pub async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>> {
    open_store_with(url, None).await
}

/// As [`open_store`]. `progress` is told how far the files of a vault have been read.
pub async fn open_store_with(url: &StoreUrl, progress: Option<Progress>) -> Result<Arc<dyn Store>> {
    match url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(open_sqlite(path).await?)),
        StoreUrl::Postgres(options) => Ok(Arc::new(PostgresStore::open((**options).clone()).await?)),
        StoreUrl::Vault(vault) => Ok(Arc::new(open_vault(vault, progress).await?)),
        StoreUrl::Memory => Ok(Arc::new(InMemoryStore::new())),
    }
}

/// Opens a vault, for operations that only a vault supports. `progress` is told how far its files have been read.
pub async fn open_vault(vault: &VaultFolder, progress: Option<Progress>) -> Result<VaultStore> {
    let options = VaultOptions::new(Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let VaultFolder { watch, git, max_memory_bytes, .. } = *vault;
    let options = VaultOptions { progress, watch, git, max_memory_bytes, ..options };
    VaultStore::open(&vault.path, options).await
}

/// Opens the SQLite file at `path` as a [`SqliteStore`], for operations that only a file supports: backups and reindexing.
pub async fn open_sqlite(path: &Path) -> Result<SqliteStore> {
    let path = path.to_owned();
    // Opening waits for other processes and may upgrade the file.
    let opening = tokio::task::spawn_blocking(move || open_file(&path));
    opening.await.map_err(|error| Error::internal("opening the store failed").with_source(error))?
}

/// Opens an existing SQLite file for reading only, as on a read-only disk.
pub async fn open_sqlite_to_read(path: &Path) -> Result<SqliteStore> {
    let path = path.to_owned();
    let options = SqliteOptions { read_only: true, ..SqliteOptions::default() };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(path, options));
    opening.await.map_err(|error| Error::internal("opening the store failed").with_source(error))?
}

fn open_file(path: &Path) -> Result<SqliteStore> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        create_directory(directory)?;
    }
    SqliteStore::open(path, SqliteOptions::default())
}

/// Creates a directory that only its owner can read, because it holds private conversations.
fn create_directory(directory: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| {
        Error::unavailable(format!(
            "directory `{}` cannot be created; choose another with `--data-dir` or `--store`",
            directory.display()
        ))
        .with_source(error)
    })
}
