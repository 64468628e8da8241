//! The parts of an open vault, shared by its tasks: the folder, the index and the snapshot.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use strata_core::error::io_reason;
use strata_core::file_name::Names;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::SummaryQuery;
use strata_core::{Error, Result, SessionId};
use strata_store::{SqliteOptions, SqliteStore};
use tokio::sync::watch;

use super::disk::Disk;
use super::layout::{KEYS, PRIVATE};
use super::snapshot::Snapshot;

/// The files of the index and the snapshot, with the logs that SQLite keeps beside them.
const INDEX: &str = "index.db";
pub(crate) const SNAPSHOT: &str = "files.db";
const LOGS: [&str; 3] = ["", "-wal", "-shm"];

/// The marks of the snapshot: that all files have been read once, and how many processes have opened the vault and not closed it.
pub(crate) const BUILT: &str = "built";
const OPENED: &str = "opened";

/// For this long after a file could be written, a check does not write one by itself.
const PROBED: Duration = Duration::from_millis(500);

/// Told how many of how many files have been read, while an index is built.
pub type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// An open vault.
pub(crate) struct Vault {
    pub(crate) root: PathBuf,
    pub(crate) disk: Disk,
    /// How the disk compares names.
    pub(crate) names: Names,
    pub(crate) index: SqliteStore,
    snapshot: Mutex<Snapshot>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    /// The most bytes of a memory that is taken in from a file.
    pub(crate) max_memory_bytes: usize,
    /// Told how far the files are read until the vault is open.
    progress: Mutex<Option<Progress>>,
    /// Counts written and removed files, for the commits of git.
    pub(crate) changes: watch::Sender<u64>,
    /// Why the last attempt to write files has failed, if it has.
    unwritten: Mutex<Option<String>>,
    /// Why the watcher does not see all changes, if it does not.
    unwatched: Mutex<Option<String>>,
    /// When a file could last be written for a check.
    probed: Arc<tokio::sync::Mutex<Option<Instant>>>,
    /// Whether no other process had the vault open when this one opened it.
    alone: bool,
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
        if root.join(KEYS).exists() {
            ignore_keys(&root)?;
        }
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
            names: super::probe::names(&private),
            root,
            index,
            snapshot: Mutex::new(snapshot),
            clock,
            ids,
            max_memory_bytes: usize::MAX,
            progress: Mutex::new(progress),
            changes: watch::Sender::new(0),
            unwritten: Mutex::default(),
            unwatched: Mutex::default(),
            probed: Arc::default(),
            alone,
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

    /// Notes why files could not be written, or that they could.
    pub(crate) fn note_unwritten(&self, failure: Option<&Error>) {
        let failure = failure.map(|error| error.message().to_owned());
        *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Why the last attempt to write the files of items has failed, if it has.
    pub(crate) fn unwritten(&self) -> Option<String> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes why the watcher does not see all changes. The first reason stays: the watcher does not hear again by itself.
    pub(crate) fn note_unwatched(&self, reason: String) {
        tracing::warn!(reason, "not all edits in the vault are followed");
        self.unwatched.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    /// What a person has to know about edits that are not followed, if anything.
    pub(crate) fn unwatched(&self) -> Option<String> {
        let reason = self.unwatched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.map(|reason| {
            format!(
                "not all edits are followed: {reason}; raise the system's limit of watched folders and start Strata again, or take \
                 edits in with `strata vault sync`"
            )
        })
    }

    /// Fails if no file can be written now. Callers wait for each other, so that a disk that hangs holds up one thread.
    pub(crate) async fn probe(self: &Arc<Self>) -> Result<()> {
        let mut probed = Arc::clone(&self.probed).lock_owned().await;
        if probed.is_some_and(|at| at.elapsed() < PROBED) {
            return Ok(());
        }
        let vault = Arc::clone(self);
        let probe = move || {
            *probed = None;
            vault.disk.probe().map_err(|error| unwritten(&error))?;
            *probed = Some(Instant::now());
            Ok(())
        };
        blocking(probe).await
    }

    /// Told how far the files are read, while the vault is opened.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that this process opens the vault. Returns whether a process before it has died, so that files may be missing; a
    /// process that opens the vault beside another one leaves that to a later one.
    pub(crate) fn begin(&self) -> Result<bool> {
        let mut snapshot = self.snapshot();
        let is_built = snapshot.mark(BUILT)?.is_some();
        let left = snapshot.mark(OPENED)?.is_none_or(|count| count != "0");
        snapshot.write(|snapshot| {
            if self.alone { snapshot.set_mark(OPENED, "1") } else { snapshot.add_to_mark(OPENED, 1) }
        })?;
        Ok(self.alone && is_built && left)
    }

    /// Notes that all files have been read once.
    pub(crate) fn mark_built(&self) -> Result<()> {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.snapshot().write(|snapshot| snapshot.set_mark(BUILT, "1"))
    }

    /// Notes that this process closes the vault, and whether it has written everything.
    pub(crate) fn end(&self, is_clean: bool) -> Result<()> {
        if is_clean {
            self.snapshot().write(|snapshot| snapshot.add_to_mark(OPENED, -1))?;
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
    lock_of(root, "files.lock")
}

/// Locks the history of a vault.
pub(crate) fn lock_history(root: &Path) -> Result<File> {
    lock_of(root, "history.lock")
}

fn lock_of(root: &Path, name: &str) -> Result<File> {
    // The folder may have been deleted while the vault was open.
    make_private(&root.join(PRIVATE))?;
    let lock = open_lock(&root.join(PRIVATE).join(name))?;
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
    ignore_in(private).map_err(failed)
}

/// Has git ignore the keys, whatever the repository's own ignore file says.
pub(crate) fn ignore_keys(root: &Path) -> Result<()> {
    let keys = root.join(KEYS);
    if fs::symlink_metadata(&keys).is_err() {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&keys).map_err(|error| unwritten(&error))?;
    }
    // Anything else in its place is reported when the keys are written.
    match fs::symlink_metadata(&keys) {
        Ok(metadata) if metadata.is_dir() => ignore_in(&keys).map_err(|error| unwritten(&error)),
        _ => Ok(()),
    }
}

/// Has git ignore everything in a folder.
fn ignore_in(folder: &Path) -> io::Result<()> {
    let ignore = folder.join(".gitignore");
    if fs::symlink_metadata(&ignore).is_ok() { Ok(()) } else { fs::write(ignore, "*\n") }
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

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }
    }

    struct Counted(AtomicU64);

    impl IdSource for Counted {
        fn next(&self) -> uuid::Uuid {
            uuid::Uuid::from_u128(self.0.fetch_add(1, Ordering::Relaxed).into())
        }
    }

    pub(crate) fn vault(root: &Path) -> Vault {
        Vault::open(root, Arc::new(Fixed), Arc::new(Counted(AtomicU64::new(1))), None).unwrap()
    }

    #[test]
    fn only_a_process_that_is_alone_looks_for_what_a_dead_one_left() {
        let folder = tempfile::tempdir().unwrap();
        let server = vault(folder.path());
        assert!(!server.begin().unwrap(), "nothing is built yet");
        server.mark_built().unwrap();
        let command = vault(folder.path());
        assert!(!command.begin().unwrap(), "the server knows what it has not written yet");
        drop(server);
        command.end(true).unwrap();
        let next = vault(folder.path());
        assert!(next.begin().unwrap(), "the server has died");
        next.end(true).unwrap();
        assert!(!vault(folder.path()).begin().unwrap());
    }
}
