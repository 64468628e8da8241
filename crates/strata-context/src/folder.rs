//! The operations on the files of the contexts; all of them block.
//!
//! A writer holds its session's lock. A reader needs no lock, because a document is replaced by a rename. A crash may leave
//! a `.tmp` file, which the session's next save removes, and a version that equals the document.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_core::context::ContextData;
use strata_core::file_name::{Named, file_stem, read_stem};
use strata_core::{Error, ErrorKind, Result, hash};

use super::Version;

const ENDING: &str = ".json";
const VERSIONS: &str = "versions";
const LOCKS: &str = ".locks";

/// The number of lock files, which the sessions share. A lock file per session could never be removed safely. Two sessions
/// with the same lock file wait for each other's writes, which take a few milliseconds.
const LOCK_FILES: u64 = 256;

/// A folder of contexts.
pub(super) struct Folder {
    base: PathBuf,
    keep_versions: usize,
}

/// The lock that is held while a session's files are changed. The operating system releases it when the process dies.
struct SessionLock {
    _file: File,
}

impl Folder {
    pub(super) fn new(base: PathBuf, keep_versions: usize) -> Self {
        Self { base, keep_versions }
    }

    pub(super) fn document(&self, stem: &str) -> PathBuf {
        self.base.join(format!("{stem}{ENDING}"))
    }

    pub(super) fn initialize(&self) -> Result<()> {
        for folder in [self.base.clone(), self.base.join(VERSIONS), self.base.join(LOCKS)] {
            fs::create_dir_all(&folder).map_err(|error| cannot(&folder, "be created", error))?;
        }
        sync_folder(&self.base)
    }

    pub(super) fn load(&self, id: &str) -> Result<ContextData> {
        let stem = file_stem(id)?;
        match self.read(id, &stem) {
            Err(error) if error.kind() == ErrorKind::Internal => {
                let lock = self.lock(&stem)?;
                self.load_locked(&lock, id, &stem)
            }
            read => Ok(read?.unwrap_or_else(|| ContextData::new(id))),
        }
    }

    pub(super) fn save(&self, id: &str, text: &str) -> Result<()> {
        let stem = file_stem(id)?;
        let lock = self.lock(&stem)?;
        self.write(&lock, &stem, text)
    }

    pub(super) fn update<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut ContextData) -> Result<T>,
    ) -> Result<T> {
        let stem = file_stem(id)?;
        let lock = self.lock(&stem)?;
        let mut context = self.load_locked(&lock, id, &stem)?;
        let done = change(&mut context)?;
        if context.session_id != id {
            return Err(Error::invalid(format!(
                "`session_id` became `{}` in an update of session `{id}`; leave it as it is",
                context.session_id
            )));
        }
        self.write(&lock, &stem, &context.to_json())?;
        Ok(done)
    }

    pub(super) fn delete(&self, id: &str) -> Result<()> {
        let stem = file_stem(id)?;
        let _lock = self.lock(&stem)?;
        for path in
            [self.document(&stem), self.temporary(&stem)].into_iter().chain(self.damaged_documents(&stem)?)
        {
            remove(&path)?;
        }
        let versions = self.version_folder(&stem);
        match fs::remove_dir_all(&versions) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(cannot(&versions, "be removed", error))
            }
            _ => sync_folder(&self.base),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<String>> {
        let mut sessions = BTreeSet::new();
        for name in names_in(&self.base)? {
            let Some(stem) = name.strip_suffix(ENDING) else { continue };
            match read_stem(stem) {
                Named::Session(id) => {
                    sessions.insert(id);
                }
                Named::Digest => match self.id_in(&name) {
                    Ok(Some(id)) => {
                        sessions.insert(id);
                    }
                    // One file that cannot be read must not hide the others. Loading it gives the error.
                    Ok(None) => {}
                    Err(error) => tracing::warn!(file = name, %error, "a context is left out of the list"),
                },
                Named::Foreign => {
                    tracing::debug!(file = name, "a file among the contexts has a foreign name")
                }
            }
        }
        Ok(sessions.into_iter().collect())
    }

    pub(super) fn versions(&self, id: &str) -> Result<Vec<Version>> {
        let stem = file_stem(id)?;
        let mut versions = Vec::new();
        for number in self.version_numbers(&stem)? {
            let path = self.version(&stem, number);
            match fs::metadata(&path) {
                Ok(found) => {
                    let saved_at = modified(&found).map_err(|error| cannot(&path, "be read", error))?;
                    versions.push(Version { number, saved_at, bytes: found.len() });
                }
                // Another process has just removed the oldest version.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(cannot(&path, "be read", error)),
            }
        }
        versions.reverse();
        Ok(versions)
    }

    pub(super) fn restore(&self, id: &str, number: u64) -> Result<ContextData> {
        let stem = file_stem(id)?;
        let lock = self.lock(&stem)?;
        let path = self.version(&stem, number);
        let text = read_file(&path)?.ok_or_else(|| {
            Error::not_found(format!(
                "session `{id}` has no version {number}; list the versions and choose one"
            ))
        })?;
        let context = parse(&path, id, &text)?;
        self.write(&lock, &stem, &context.to_json())?;
        Ok(context)
    }

    fn load_locked(&self, lock: &SessionLock, id: &str, stem: &str) -> Result<ContextData> {
        match self.read(id, stem) {
            Err(error) if error.kind() == ErrorKind::Internal => Err(self
                .move_aside(lock, stem)
                .map_or_else(|failed| failed, |aside| damaged(id, &error, &aside))),
            read => Ok(read?.unwrap_or_else(|| ContextData::new(id))),
        }
    }

    fn read(&self, id: &str, stem: &str) -> Result<Option<ContextData>> {
        let path = self.document(stem);
        read_file(&path)?.map(|text| parse(&path, id, &text)).transpose()
    }

    /// Writes a temporary file and renames it, so that there is always one complete document.
    fn write(&self, _lock: &SessionLock, stem: &str, text: &str) -> Result<()> {
        let (path, temporary) = (self.document(stem), self.temporary(stem));
        // The file is removed and not truncated, because after a crash it may be the same file as a version.
        remove(&temporary)?;
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        let written = write().map_err(|error| cannot(&temporary, "be written", error));
        let published = written.and_then(|()| {
            self.keep_version(stem)?;
            fs::rename(&temporary, &path).map_err(|error| cannot(&path, "be written", error))
        });
        if published.is_err() {
            // The temporary file is useless now. If it cannot be removed, the first error is still the one to report.
            let _ = fs::remove_file(&temporary);
        }
        published?;
        // The file system's journal has the link of the version before the rename, so the version needs no sync of its own.
        sync_folder(&self.base)
    }

    /// Keeps the current document as a version, and removes the oldest versions. The document itself stays in its place.
    fn keep_version(&self, stem: &str) -> Result<()> {
        let path = self.document(stem);
        if self.keep_versions == 0 || !path.exists() {
            return Ok(());
        }
        let folder = self.version_folder(stem);
        fs::create_dir_all(&folder).map_err(|error| cannot(&folder, "be created", error))?;
        let numbers = self.version_numbers(stem)?;
        let version = self.version(stem, numbers.last().map_or(1, |newest| newest + 1));
        // Some file systems have no hard links.
        let kept = fs::hard_link(&path, &version).or_else(|_| fs::copy(&path, &version).map(|_| ()));
        kept.map_err(|error| cannot(&version, "be written", error))?;
        let too_many = (numbers.len() + 1).saturating_sub(self.keep_versions);
        numbers.iter().take(too_many).try_for_each(|number| remove(&self.version(stem, *number)))
    }

    /// Renames a document that cannot be read, and returns the new path.
    fn move_aside(&self, _lock: &SessionLock, stem: &str) -> Result<PathBuf> {
        let path = self.document(stem);
        let found = fs::metadata(&path).and_then(|found| modified(&found));
        let moment =
            found.map_err(|error| cannot(&path, "be read", error))?.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut aside = self.base.join(format!("{stem}{ENDING}.damaged-{moment}"));
        for number in 2.. {
            if !aside.exists() {
                break;
            }
            aside = self.base.join(format!("{stem}{ENDING}.damaged-{moment}-{number}"));
        }
        fs::rename(&path, &aside).map_err(|error| cannot(&aside, "be written", error))?;
        sync_folder(&self.base)?;
        Ok(aside)
    }

    /// The damaged documents of a session, which were moved aside.
    fn damaged_documents(&self, stem: &str) -> Result<Vec<PathBuf>> {
        let start = format!("{stem}{ENDING}.damaged-");
        let names = names_in(&self.base)?.into_iter().filter(|name| name.starts_with(&start));
        Ok(names.map(|name| self.base.join(name)).collect())
    }

    fn lock(&self, stem: &str) -> Result<SessionLock> {
        let folder = self.base.join(LOCKS);
        // All processes must use the same file for a session.
        let path = folder.join(format!("{:02x}.lock", hash::fnv(stem.as_bytes()) % LOCK_FILES));
        let open = || OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.initialize()?;
                open()
            }
            opened => opened,
        };
        let file = file.map_err(|error| cannot(&path, "be opened", error))?;
        file.lock().map_err(|error| cannot(&path, "be locked", error))?;
        Ok(SessionLock { _file: file })
    }

    /// The session id inside a document.
    fn id_in(&self, name: &str) -> Result<Option<String>> {
        #[derive(serde::Deserialize)]
        struct Id {
            session_id: String,
        }
        let path = self.base.join(name);
        let Some(text) = read_file(&path)? else { return Ok(None) };
        let id: Id = serde_json::from_slice(&text).map_err(|error| unreadable(&path, error))?;
        Ok(Some(id.session_id))
    }

    fn version_numbers(&self, stem: &str) -> Result<Vec<u64>> {
        let names = names_in(&self.version_folder(stem))?;
        let mut numbers: Vec<u64> =
            names.iter().filter_map(|name| name.strip_suffix(ENDING)?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn temporary(&self, stem: &str) -> PathBuf {
        self.base.join(format!("{stem}.tmp"))
    }

    fn version_folder(&self, stem: &str) -> PathBuf {
        self.base.join(VERSIONS).join(stem)
    }

    fn version(&self, stem: &str, number: u64) -> PathBuf {
        self.version_folder(stem).join(format!("{number}{ENDING}"))
    }
}

/// Reads a document. A document that is not a context is an *internal* error. A document of another session was put here by
/// a person, so it is a conflict and stays where it is.
fn parse(path: &Path, id: &str, text: &[u8]) -> Result<ContextData> {
    let mut context: ContextData = serde_json::from_slice(text).map_err(|error| unreadable(path, error))?;
    if context.session_id.is_empty() {
        id.clone_into(&mut context.session_id);
    }
    if context.session_id != id {
        return Err(Error::conflict(format!(
            "`{}` is about session `{}` and not `{id}`; correct its `session_id` or its name",
            path.display(),
            context.session_id
        )));
    }
    Ok(context)
}

fn unreadable(path: &Path, error: serde_json::Error) -> Error {
    Error::internal(format!("`{}` is not a valid context ({error})", path.display())).with_source(error)
}

fn damaged(id: &str, error: &Error, aside: &Path) -> Error {
    Error::internal(format!(
        "the context of session `{id}` is damaged: {}; it was renamed to `{}`; restore a version, or load again to \
         start with an empty context",
        error.message(),
        aside.display()
    ))
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot(path, "be read", error)),
    }
}

/// The names of the files in a folder, without those that are not UTF-8. A folder that does not exist counts as empty.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(folder, "be read", error)),
    };
    let names =
        entries.filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose());
    names.collect::<io::Result<_>>().map_err(|error| cannot(folder, "be read", error))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(path, "be removed", error)),
        _ => Ok(()),
    }
}

fn modified(found: &fs::Metadata) -> io::Result<Timestamp> {
    Timestamp::try_from(found.modified()?).map_err(io::Error::other)
}

/// Makes a rename durable. Windows has no such call and needs none.
fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot(folder, "be synced", error))
}

fn cannot(path: &Path, verb: &str, error: io::Error) -> Error {
    let message = format!(
        "`{}` cannot {verb} ({error}); check the folder, its permissions and the space left",
        path.display()
    );
    Error::unavailable(message).with_source(error)
}
