//! Opening connections with their durability, lock timeout and cache sizes; and the pool of reading connections.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use strata_core::{Error, Result, UserId};
use tokio::sync::Semaphore;

use super::error::{Fault, Outcome};
use super::schema::{self, FileState};
use super::still::Stillness;
use super::watch::OpenedFile;

/// The prepared statements that a connection keeps: more than the backend has, so that none is prepared twice.
const STATEMENTS: usize = 128;

/// The page cache of a reading connection, in KiB. It grows only as it is used; four of them are small beside the 50 MB
/// that an idle process may take. The operating system caches the file as well.
const READER_CACHE_KIB: i32 = 4 * 1024;

/// The page cache of the writing connection, in KiB. It holds the inner pages of all indexes of a large store.
const WRITER_CACHE_KIB: i32 = 16 * 1024;

/// Pages in the write-ahead log before they are copied into the file: 16 MiB. With the default of 1000, a store under
/// 64 writers spent a tenth of its time there.
const CHECKPOINT_PAGES: i32 = 4_000;

/// The pause before switching to the write-ahead log is tried again.
const WAL_RETRY: Duration = Duration::from_millis(10);

/// The options of a [`SqliteStore`](super::SqliteStore).
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// How long a write waits while another process holds the file. Then it fails as unavailable and may be retried.
    pub busy_timeout: Duration,
    /// How many reads run at once.
    pub readers: usize,
    /// Opens an existing store for reading only.
    pub read_only: bool,
    /// The largest size of the file; a write beyond it fails as on a full disk.
    pub max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), readers: 4, read_only: false, max_bytes: None }
    }
}

/// Opens the writing connection, after the file has been checked, and migrates the file.
pub(crate) fn open_writer(path: &Path, options: &SqliteOptions) -> Outcome<Connection> {
    let mut conn = open_checked(path, options)?;
    use_wal(&conn, options.busy_timeout)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // SQLite fills deleted content with zeros in pages that it writes anyway. `scrub.rs` removes the rest.
    conn.query_row("PRAGMA secure_delete = FAST", [], |_| Ok(()))?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    set_up(&conn, WRITER_CACHE_KIB)?;
    schema::migrate(&mut conn, path)?;
    if let Some(bytes) = options.max_bytes {
        let page_size: u64 = conn.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0))?.into();
        conn.query_row(&format!("PRAGMA max_page_count = {}", bytes / page_size), [], |_| Ok(()))?;
    }
    Ok(conn)
}

/// Switches to the write-ahead log. If two processes create the same file at once, SQLite refuses one of them without
/// waiting, as it would for any other lock.
fn use_wal(conn: &Connection, patience: Duration) -> Outcome<()> {
    let mut left = patience;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && !left.is_zero() => {
                std::thread::sleep(WAL_RETRY);
                left = left.saturating_sub(WAL_RETRY);
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// Opens a connection that reads.
pub(crate) fn open_reader(path: &Path, options: &SqliteOptions) -> Outcome<Connection> {
    // Not opened as read-only: the last process that closes the file may have to recover it after a crash.
    let flags =
        if options.read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
    let mut conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(options.busy_timeout)?;
    if options.read_only && conn.query_row("PRAGMA schema_version", [], |_| Ok(())).is_err() {
        conn = open_unchanging(path)?;
    }
    set_up(&conn, READER_CACHE_KIB)?;
    conn.pragma_update(None, "query_only", true)?;
    // Only the writer copies the log into the file: it knows whether the file is still the one that was opened.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !options.read_only)?;
    Ok(conn)
}

/// Opens a file on a medium that cannot be written, where SQLite cannot create the files beside a log. Without a log nothing is
/// missing in the file.
fn open_unchanging(path: &Path) -> Outcome<Connection> {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return Err(Error::unavailable(format!(
            "`{}` cannot be read without writing, because its log holds the last writes; make the folder writable, or use a backup",
            path.display()
        ))
        .into());
    }
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Ok(Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)?)
}

/// Checks whether a read-only store can be read without migrating it.
pub(crate) fn check_read_only(path: &Path, options: &SqliteOptions) -> Outcome<()> {
    let found = schema::inspect(&open_reader(path, options)?, path)?;
    if found == FileState::Store(schema::VERSION) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::invalid(format!(
        "`{path}` has an old format; open it once for writing to bring it up to date"
    ))
    .into())
}

fn set_up(conn: &Connection, cache_kib: i32) -> Outcome<()> {
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without this, SQLite plans some statements again at each use, because their plan depends on the bound values: those with
    // a bound limit, and the one that looks for a waiting job. With learning on, that took an eighth of the writer's time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Opens a file and refuses it, unchanged, if it is not a store. A file that does not exist or is empty becomes one.
fn open_checked(path: &Path, options: &SqliteOptions) -> Outcome<Connection> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(
            Error::invalid(format!("folder `{}` does not exist; create it first", folder.display())).into()
        );
    }
    if path.is_dir() {
        return Err(Error::invalid(format!("`{}` is a folder; name a file in it", path.display())).into());
    }
    if !path.exists() {
        // If the file cannot be created, opening it reports why; if another process was faster, opening it succeeds.
        let _ = create_private(path);
    }
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(options.busy_timeout)?;
    if conn.is_readonly("main")? {
        return Err(Error::unavailable(format!(
            "`{}` cannot be written; check the permissions of the file and its folder",
            path.display()
        ))
        .into());
    }
    // In one snapshot: another process may be creating the store in this file at the same time.
    in_snapshot(&conn, |conn| schema::inspect(conn, path))?;
    Ok(conn)
}

/// Creates a new file that only its owner can read, because it holds private conversations. SQLite gives the log beside it
/// the same mode.
pub(super) fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The pool of reading connections, opened as they are needed.
pub(crate) struct Readers {
    path: PathBuf,
    options: SqliteOptions,
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    opened: OpenedFile,
    still: Arc<Stillness>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, options: SqliteOptions) -> Self {
        let permits = Arc::new(Semaphore::new(options.readers.max(1)));
        let (opened, still) = (OpenedFile::new(&path), Arc::default());
        Self { opened, path, options, free: Arc::default(), permits, still }
    }

    /// Runs `read` on a connection, in one snapshot of the database, off the async threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.run_bare(|conn| in_snapshot(conn, read)).await
    }

    /// Runs a `read` of a few rows by their keys, in one snapshot, on the calling thread. Such a read takes about ten
    /// microseconds; handing it to another thread and waiting for the answer takes a hundred, and a chat makes several. If no
    /// connection is free, or the file is locked, the read moves to another thread all the same.
    pub(crate) async fn run_here<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let waiting = self.permits.try_acquire().ok().and_then(|permit| Some((permit, self.pop()?)));
        if let Some((permit, conn)) = waiting {
            let value = without_patience(&conn, self.options.busy_timeout, |conn| in_snapshot(conn, &read));
            // The connection goes back before the permit, as below.
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            drop(permit);
            match value {
                Err(fault) if fault.is_busy() => {}
                value => return value.map_err(Error::from),
            }
        }
        self.run(read).await
    }

    /// Runs a `read` that looks for users off the async threads. If nothing was committed since the last look of this name, its
    /// answer still holds, and no other thread is woken.
    pub(crate) async fn look(
        &self,
        name: String,
        read: impl FnOnce(&Connection) -> Outcome<Vec<UserId>> + Send + 'static,
    ) -> Result<Vec<UserId>> {
        if let Some(found) = self.still.known(&name) {
            return Ok(found);
        }
        let still = Arc::clone(&self.still);
        let (path, options, opened) = (self.path.clone(), self.options.clone(), self.opened);
        self.run(move |conn| {
            // Before the snapshot, which begins with the first read.
            let version = still.version(|| {
                opened.check(&path)?;
                open_reader(&path, &options)
            });
            let found = read(conn)?;
            still.note(name, version, &found);
            Ok(found)
        })
        .await
    }

    fn pop(&self) -> Option<Connection> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Runs `read` on a connection, without a transaction around it, off the async threads.
    pub(crate) async fn run_bare<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let free = Arc::clone(&self.free);
        let (path, options, opened) = (self.path.clone(), self.options.clone(), self.opened);
        let task = tokio::task::spawn_blocking(move || {
            let waiting = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match waiting {
                Some(conn) => conn,
                None => {
                    // Another file in its place would answer with another store's data.
                    opened.check(&path)?;
                    open_reader(&path, &options)?
                }
            };
            let value = read(&conn);
            // The connection goes back before the permit, so that the next holder finds it. After `close` it is dropped.
            if !permit.semaphore().is_closed() {
                free.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            }
            drop(permit);
            value
        });
        let value = task.await.map_err(|error| {
            Error::internal("a read of the database broke off; report this as a defect").with_source(error)
        })?;
        value.map_err(Error::from)
    }

    /// Refuses further reads, waits for those that run, and closes the connections.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(self.options.readers.max(1)).unwrap_or(u32::MAX);
        if let Ok(permits) = self.permits.acquire_many(all).await {
            self.permits.close();
            drop(permits);
        }
        self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.still.close();
    }
}

/// Runs `read` on a connection that fails at once instead of waiting for a lock.
fn without_patience<T>(
    conn: &Connection,
    patience: Duration,
    read: impl FnOnce(&Connection) -> Outcome<T>,
) -> Outcome<T> {
    conn.busy_timeout(Duration::ZERO)?;
    let value = read(conn);
    conn.busy_timeout(patience)?;
    value
}

fn in_snapshot<T>(conn: &Connection, read: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    let transaction = conn.unchecked_transaction()?;
    let value = read(&transaction)?;
    transaction.commit().map_err(Fault::from)?;
    Ok(value)
}

/// The error of every call after [`close`](strata_core::Store::close).
pub(crate) fn closed() -> Error {
    Error::unavailable("the store is closed; open it again")
}
