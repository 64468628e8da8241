//! Making a consistent copy while the store serves.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use strata_core::Error;

use super::connection::create_private;
use super::error::{Fault, Outcome};

/// Copies the database to `target`, which must not exist. It appears there whole or not at all.
pub(crate) fn backup(conn: &Connection, target: &Path) -> Outcome<()> {
    if target.try_exists().map_err(|error| cannot_write(target, error))? {
        return Err(already_there(target));
    }
    let mut partial = target.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = Path::new(&partial);
    let written = copy(conn, partial).and_then(|()| publish(partial, target));
    if written.is_err() {
        // The partial copy is useless. If it cannot be removed, the first error is still the one to report.
        let _ = fs::remove_file(partial);
    }
    written
}

/// Copies all pages in one step: it reads one snapshot, and writers continue beside it.
fn copy(source: &Connection, partial: &Path) -> Outcome<()> {
    create_private(partial).map_err(|error| cannot_write(partial, error))?;
    let mut copy = Connection::open(partial)?;
    let step = Backup::new(source, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(Error::unavailable("the database was locked during the backup; try again")
            .retryable()
            .into());
    }
    // The marks of open processes belong to the file that they have opened.
    let is_marked: bool =
        copy.query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'openings'", [], |row| {
            row.get(0)
        })?;
    if is_marked {
        copy.execute_batch("DELETE FROM openings")?;
    }
    // The copy has to be one file: without this, the first process that opens it would create a log beside it.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    copy.close().map_err(|(_, error)| Fault::from(error))?;
    let file = File::open(partial).and_then(|file| file.sync_all());
    file.map_err(|error| cannot_write(partial, error))
}

/// Gives the finished copy its name. A hard link fails if the name exists by now; a rename would overwrite the file.
fn publish(partial: &Path, target: &Path) -> Outcome<()> {
    match fs::hard_link(partial, target) {
        Ok(()) => fs::remove_file(partial).map_err(|error| cannot_write(partial, error))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(already_there(target)),
        // Some file systems have no hard links.
        Err(_) => fs::rename(partial, target).map_err(|error| cannot_write(target, error))?,
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot_write(folder, error))
}

fn already_there(target: &Path) -> Fault {
    let message = format!("`{}` exists already; name a file that does not", target.display());
    Error::conflict(message).into()
}

fn cannot_write(path: &Path, error: io::Error) -> Fault {
    let message = format!(
        "`{}` cannot be written; check the folder, its permissions and the space left",
        path.display()
    );
    Error::unavailable(message).with_source(error).into()
}
