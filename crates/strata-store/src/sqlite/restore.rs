//! Putting a backup in the place of a store.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use strata_core::Error;

use super::backup;
use super::error::{Fault, Outcome};
use super::schema::{self, FileState};

/// How long an exclusive lock is waited for: another command may be about to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Copies the store in `source`, which may be in use, to `target`, which must not exist. The source stays as it is.
pub(crate) fn copy(source: &Path, target: &Path) -> Outcome<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(source, flags)?;
    if schema::inspect(&conn, source)? == FileState::Empty {
        return Err(Error::invalid(format!("`{}` is empty", source.display())).into());
    }
    backup::backup(&conn, target)
}

/// Gives the file at `from` the name `store`. If a store is there, it is kept as `aside`. A store that another process uses is
/// left alone.
pub(crate) fn replace(from: &Path, store: &Path, aside: &Path) -> Outcome<()> {
    let failed = |path: &Path, error: std::io::Error| -> Fault {
        Error::unavailable(format!(
            "`{}` cannot be renamed; check the folder and its permissions",
            path.display()
        ))
        .with_source(error)
        .into()
    };
    if store.exists() {
        settle(store)?;
        fs::hard_link(store, aside)
            .or_else(|_| fs::copy(store, aside).map(drop))
            .map_err(|error| failed(aside, error))?;
    }
    fs::rename(from, store).map_err(|error| failed(store, error))?;
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, error))
}

/// Moves everything from the log of a store into its file. Fails if another process has the store open.
fn settle(store: &Path) -> Outcome<()> {
    let in_use = || -> Fault {
        Error::conflict(format!(
            "another process uses `{}`; stop the server and other commands first",
            store.display()
        ))
        .into()
    };
    let conn = Connection::open(store)?;
    conn.busy_timeout(PATIENCE)?;
    // Every connection to a store holds a shared lock for as long as it is open.
    conn.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let begun = conn.execute_batch("BEGIN EXCLUSIVE; COMMIT;").map_err(Fault::from);
    begun.map_err(|fault| if fault.is_busy() { in_use() } else { fault })?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    conn.close().map_err(|(_, error)| Fault::from(error))?;
    let log = |end: &str| PathBuf::from(format!("{}{end}", store.display()));
    if fs::metadata(log("-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(in_use());
    }
    Ok(())
}
