//! The stored format: its versions, how an old file becomes a new one, and which files are refused.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use strata_core::Error;

use super::error::Outcome;

/// Marks a SQLite file as Strata's: `Stra` in ASCII.
const APPLICATION_ID: i32 = 0x5374_7261;

/// The version that this program reads and writes.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The steps from each version to the next, beginning with an empty file. A released step never changes.
const MIGRATIONS: [&str; 11] = [
    include_str!("version_1.sql"),
    include_str!("version_2.sql"),
    include_str!("version_3.sql"),
    include_str!("version_4.sql"),
    include_str!("version_5.sql"),
    include_str!("version_6.sql"),
    include_str!("version_7.sql"),
    include_str!("version_8.sql"),
    include_str!("version_9.sql"),
    include_str!("version_10.sql"),
    include_str!("version_11.sql"),
];

/// The contents of a file before any change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The file is empty: it can be filled.
    Empty,
    /// A store of this version or an older one.
    Store(u32),
}

/// Reads the format of a file, without writing. A file of another program or of a later Strata is refused.
pub(crate) fn inspect(conn: &Connection, path: &Path) -> Outcome<FileState> {
    let path = path.display();
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: u32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: u32 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(FileState::Empty);
    }
    if application != APPLICATION_ID {
        return Err(Error::invalid(format!(
            "`{path}` is a SQLite database of another program; choose another path for the store"
        ))
        .into());
    }
    if version > VERSION {
        return Err(Error::invalid(format!(
            "`{path}` has format version {version}, and this Strata knows versions up to {VERSION}; \
             use a newer Strata"
        ))
        .into());
    }
    Ok(FileState::Store(version))
}

/// Brings a file to this version in one transaction. If another process does the same at once, the second one finds
/// nothing to do.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Outcome<()> {
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = match inspect(&transaction, path)? {
        FileState::Empty => 0,
        FileState::Store(version) => version,
    };
    if from == VERSION {
        return Ok(());
    }
    for step in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    tracing::info!(from, to = VERSION, "brought the store's format up to date");
    Ok(())
}
