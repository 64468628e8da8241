//! The parts of an open vault, shared by its tasks: the folder, the index and the snapshot.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strata_core::error::io_reason;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::SummaryQuery;
use strata_core::{Error, Result, SessionId};
use strata_store::{SqliteOptions, SqliteStore};
use tokio::sync::watch;

use super::disk::Disk;
use super::layout::PRIVATE;
use super::snapshot::Snapshot;

/// The files of the index and the snapshot, with the logs that SQLite keeps beside them.
const INDEX: &str = "index.db";
pub(crate) const SNAPSHOT: &str = "files.db";
const LOGS: [&str; 3] = ["", "-wal", "-shm"];

/// The marks of the snapshot: that all files have been read once, and that the last process has closed the vault.
pub(crate) const BUILT: &str = "built";
pub(crate) const CLEAN: &str = "clean";

/// Told how many of how many files have been read, while an index is built.
pub type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// An open vault.
pub(crate) struct Vault {
    pub(crate) root: PathBuf,
    pub(crate) disk: Disk,
    pub(crate) index: SqliteStore,
    snapshot: Mutex<Snapshot>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) progress: Option<Progress>,
    /// Counts written and removed files, for the commits of git.
    pub(crate) changes: watch::Sender<u64>,
    /// Held while the vault is open, shared with other processes.
    presence: File,
}

impl Vault {
    /// Opens the parts. Files of the index are made anew if any of them is missing or an earlier build was cut short.
    pub(crate) fn open(
        root: &Path,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        progress: Option<Progress>,
    ) -> Result<Self> {
        let root = make_root(root)?;
        let private = root.join(PRIVATE);
        make_private(&private)?;
        let presence = open_lock(&private.join("open.lock"))?;
        let alone = presence.try_lock().is_ok();
        let has_both = [INDEX, SNAPSHOT].iter().all(|name| private.join(name).exists());
        match (has_both, alone) {
            (true, _) => {}
            (false, true) => wipe(&private)?,
            (false, false) => return Err(in_use()),
        }
        let mut snapshot = Snapshot::open(&private.join(SNAPSHOT))?;
        if alone && snapshot.mark(BUILT)?.is_none() {
            drop(snapshot);
            wipe(&private)?;
            snapshot = Snapshot::open(&private.join(SNAPSHOT))?;
        }
        let index = match SqliteStore::open(private.join(INDEX), SqliteOptions::default()) {
            // The index is derived: a damaged one is made anew.
            Err(error) if alone && !error.is_retryable() => {
                tracing::warn!(%error, "the index of the vault cannot be used and is built again");
                drop(snapshot);
                wipe(&private)?;
                snapshot = Snapshot::open(&private.join(SNAPSHOT))?;
                SqliteStore::open(private.join(INDEX), SqliteOptions::default())?
            }
            opened => opened?,
        };
        if alone {
            presence.unlock().map_err(|error| unlocked(&error))?;
        }
        presence.lock_shared().map_err(|error| unlocked(&error))?;
        Ok(Self {
            disk: Disk::new(&root),
            root,
            index,
            snapshot: Mutex::new(snapshot),
            clock,
            ids,
            progress,
            changes: watch::Sender::new(0),
            presence,
        })
    }

    pub(crate) fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the files against the other processes that have the vault open.
    pub(crate) fn lock(&self) -> Result<File> {
        lock(&self.root)
    }

    /// Notes that files have changed, so that git commits them.
    pub(crate) fn git_notice(&self, files: usize) {
        if files > 0 {
            self.changes.send_modify(|changes| *changes += files as u64);
        }
    }

    /// Notes that everything is written, if no other process has the vault open.
    pub(crate) fn mark_clean(&self) -> Result<()> {
        self.presence.unlock().map_err(|error| unlocked(&error))?;
        if self.presence.try_lock().is_ok() {
            self.snapshot().write(|snapshot| snapshot.set_mark(CLEAN, "1"))?;
        }
        self.presence.unlock().map_err(|error| unlocked(&error))
    }
}

/// Whether a folder holds a vault: files of the default user, of other users, or Strata's own data.
pub fn is_vault(root: &Path) -> bool {
    let is_folder =
        |name: &str| fs::symlink_metadata(root.join(name)).is_ok_and(|metadata| metadata.is_dir());
    [super::layout::ENTRIES, super::layout::USERS, PRIVATE].into_iter().any(is_folder)
}

/// Removes the index of a vault, so that it is built again from the files when the vault is opened next. Fails while a process
/// has the vault open.
pub fn remove_index(root: &Path) -> Result<()> {
    let private = root.join(PRIVATE);
    if !private.is_dir() {
        return Ok(());
    }
    let _lock = lock(root)?;
    let presence = open_lock(&private.join("open.lock"))?;
    presence.try_lock().map_err(|_| in_use())?;
    wipe(&private)
}

fn in_use() -> Error {
    Error::unavailable(
        "another Strata process has this vault open; stop it first, so that the index can be built again",
    )
}

/// Locks the files of a vault.
pub(crate) fn lock(root: &Path) -> Result<File> {
    // The folder may have been deleted while the vault was open.
    make_private(&root.join(PRIVATE))?;
    let lock = open_lock(&root.join(PRIVATE).join("files.lock"))?;
    lock.lock().map_err(|error| unlocked(&error))?;
    Ok(lock)
}

/// Makes the folder of a vault, and returns its real path.
pub(crate) fn make_root(root: &Path) -> Result<PathBuf> {
    let unusable = |error: io::Error| {
        let message = format!("the vault `{}` cannot be used; choose another folder", root.display());
        Error::unavailable(message).with_source(error)
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(root).map_err(unusable)?;
    root.canonicalize().map_err(unusable)
}

/// Makes the folder of Strata's own data, which git ignores.
pub(crate) fn make_private(private: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        Error::unavailable(format!("`{}` cannot be used", private.display())).with_source(error)
    };
    match fs::symlink_metadata(private) {
        Ok(metadata) if !metadata.is_dir() => {
            let message = format!("`{}` is not a folder; remove it", private.display());
            return Err(Error::unavailable(message));
        }
        Ok(_) => {}
        Err(_) => fs::create_dir(private).map_err(failed)?,
    }
    let ignore = private.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_err() {
        fs::write(ignore, "*\n").map_err(failed)?;
    }
    Ok(())
}

fn open_lock(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(|error| unlocked(&error))
}

fn unlocked(error: &io::Error) -> Error {
    Error::unavailable(format!("the vault cannot be locked: {}", io_reason(error)))
}

/// Removes the index and the snapshot.
fn wipe(private: &Path) -> Result<()> {
    for name in [INDEX, SNAPSHOT] {
        for log in LOGS {
            match fs::remove_file(private.join(format!("{name}{log}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let message = format!("`{name}` in `{}` cannot be removed", private.display());
                    return Err(Error::unavailable(message).with_source(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Runs `work` on a thread that may wait for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let work = tokio::task::spawn_blocking(work);
    work.await.map_err(|error| Error::internal("work on the vault's files broke off").with_source(error))?
}

/// All summaries of a session.
pub(crate) fn all_summaries(session: &SessionId) -> SummaryQuery {
    SummaryQuery { session: session.clone(), strategy: None, status: None, limit: u32::MAX }
}

/// A failure of the file system.
pub(crate) fn unwritten(error: &io::Error) -> Error {
    Error::unavailable(format!(
        "a file of the vault cannot be used: {}; check the folder and the disk",
        io_reason(error)
    ))
}
