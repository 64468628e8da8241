//! Opens the store that a URL names.

use std::fs::DirBuilder;
use std::path::Path;
use std::sync::Arc;

use strata_core::store::InMemoryStore;
use strata_core::{Error, Result, Store};
use strata_store::{SqliteOptions, SqliteStore};

use crate::config::StoreUrl;

/// Opens the store at `url`; a SQLite file that does not exist is made, with its directory.
pub async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>> {
    match url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(open_sqlite(path).await?)),
        StoreUrl::Memory => Ok(Arc::new(InMemoryStore::new())),
    }
}

/// Opens the SQLite file at `path` as itself, for what only a file can do: copies and reindexing.
pub async fn open_sqlite(path: &Path) -> Result<SqliteStore> {
    let path = path.to_owned();
    // Opening waits for other processes and may upgrade the file.
    let opening = tokio::task::spawn_blocking(move || open_file(&path));
    opening.await.map_err(|error| Error::internal("opening the store failed").with_source(error))?
}

fn open_file(path: &Path) -> Result<SqliteStore> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        make_directory(directory)?;
    }
    SqliteStore::open(path, SqliteOptions::default())
}

/// Makes a directory that only its owner can read: what people said is nobody else's business.
fn make_directory(directory: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| {
        Error::unavailable(format!(
            "directory `{}` cannot be made; choose another with `--data-dir` or `--store`",
            directory.display()
        ))
        .with_source(error)
    })
}
