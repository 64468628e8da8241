//! The file system below the vault: walking it without following links, and writing files that appear whole or not at all.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use strata_core::error::io_reason;

use super::front::Fault;
use super::layout::{ENTRIES, PRIVATE};
use super::snapshot::{Problem, Stat};

/// The beginning and end of the names of files that are being written.
const TEMPORARY: (&str, &str) = (".strata-", ".tmp");

/// The largest file that is read, in bytes: the largest turn that can be set, with room for its front matter.
const MAX_FILE_BYTES: u64 = 300 << 20;

/// Files beyond this size are read one at a time, because each reader holds a whole file.
const LARGE_FILE_BYTES: u64 = 8 << 20;

/// The size of a probe: more than a turn has, so that a disk with a few free blocks does not pass.
const PROBE_BYTES: usize = 64 << 10;

/// The files that are flushed at once. File systems write the flushes of several files together.
const FLUSHERS: usize = 16;

/// The deepest folder that is looked into.
const MAX_DEPTH: usize = 16;

/// A file to write.
#[derive(Debug, Clone)]
pub(crate) struct NewFile {
    /// The path, relative to the vault.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    /// A file that this one replaces under another path.
    pub(crate) replaces: Option<String>,
    /// What the file that this one replaces, under the same or another path, was like when it was read. If it is different now,
    /// nothing is written.
    pub(crate) expects: Option<Stat>,
}

/// The vault's folder.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    number: AtomicUsize,
    /// Held by the reader of a large file.
    large: Mutex<()>,
}

/// A file with its bytes.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: [u8; 32],
    pub(crate) stat: Stat,
}

/// The findings of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The regular files with their paths.
    pub(crate) files: Vec<(String, Stat)>,
    /// Links and other things that are left alone.
    pub(crate) problems: Vec<Problem>,
}

impl Walk {
    fn report(&mut self, path: String, error: &io::Error) {
        let fault =
            Fault::new(format!("it cannot be read: {}; correct its rights or move it", io_reason(error)));
        self.problems.push(Problem { path, fault });
    }
}

impl Disk {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), number: AtomicUsize::new(0), large: Mutex::new(()) }
    }

    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// All regular files at and below the given paths. Links are not followed, and files that were never finished are removed. What
    /// cannot be looked at is reported, and the rest is found all the same.
    pub(crate) fn walk<P: AsRef<str>>(&self, paths: &[P]) -> Walk {
        let mut walk = Walk::default();
        for path in paths.iter().map(P::as_ref) {
            if self.is_inside(path).unwrap_or(false) {
                self.walk_path(path.to_owned(), path.matches('/').count(), &mut walk);
            }
        }
        walk
    }

    fn walk_path(&self, path: String, depth: usize, walk: &mut Walk) {
        match self.lstat(&path) {
            Ok(Some(metadata)) => self.walk_entry(path, &metadata, depth, walk),
            // It may have gone since its folder was read.
            Ok(None) => {}
            Err(error) => walk.report(path, &error),
        }
    }

    fn walk_entry(&self, path: String, metadata: &fs::Metadata, depth: usize, walk: &mut Walk) {
        let kind = metadata.file_type();
        let name = path.rsplit('/').next().unwrap_or(&path);
        if kind.is_file() {
            if name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1) {
                let _ = fs::remove_file(self.absolute(&path));
            } else {
                walk.files.push((path, stat(metadata)));
            }
            return;
        }
        // Folders of programs, and the links by which an editor locks a file.
        if name.starts_with('.') {
            return;
        }
        let reason = match kind {
            kind if kind.is_symlink() => {
                "it is a symbolic link, which is not followed; put the file itself here"
            }
            kind if !kind.is_dir() => "it is neither a file nor a folder; remove it",
            _ if depth > MAX_DEPTH => "the folder lies too deep; move it up",
            _ => return self.walk_folder(&path, depth, walk),
        };
        walk.problems.push(Problem { path, fault: Fault::new(reason) });
    }

    fn walk_folder(&self, folder: &str, depth: usize, walk: &mut Walk) {
        let entries = match fs::read_dir(self.absolute(folder)) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return,
            Err(error) => return walk.report(folder.to_owned(), &error),
        };
        for entry in entries {
            let name = match entry {
                Ok(entry) => entry.file_name(),
                Err(error) => return walk.report(folder.to_owned(), &error),
            };
            let Some(name) = name.to_str() else {
                let path = format!("{folder}/{}", name.to_string_lossy());
                let fault = Fault::new("its name is not UTF-8; rename it");
                walk.problems.push(Problem { path, fault });
                continue;
            };
            self.walk_path(format!("{folder}/{name}"), depth + 1, walk);
        }
    }

    /// The time of the file system, in nanoseconds since the epoch. The clock of the machine may be another one, and may jump.
    pub(crate) fn now(&self) -> Option<i64> {
        let path = self.root.join(PRIVATE).join("time");
        File::create(&path).and_then(|mut file| file.write_all(b"\n")).ok()?;
        Some(stat(&fs::symlink_metadata(path).ok()?).changed)
    }

    /// Fails if no file can be written and flushed where the files of items lie. It leaves nothing behind.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let is_folder = self.lstat(ENTRIES)?.is_some_and(|metadata| metadata.is_dir());
        let folder = if is_folder { self.absolute(ENTRIES) } else { self.root.clone() };
        let path = folder.join(format!("{}{}-probe{}", TEMPORARY.0, std::process::id(), TEMPORARY.1));
        let probed = new_file(&path).and_then(|mut file| {
            file.write_all(&[b'\n'; PROBE_BYTES])?;
            file.sync_all()
        });
        let _ = fs::remove_file(path);
        probed
    }

    /// Whether nothing lies at a path any more. A link, or a folder that cannot be looked into, does not say so.
    pub(crate) fn is_gone(&self, path: &str) -> bool {
        for (at, _) in path.match_indices('/') {
            match self.lstat(&path[..at]) {
                Ok(Some(metadata)) if metadata.is_dir() => {}
                Ok(Some(metadata)) => return metadata.is_file(),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        self.lstat(path).is_ok_and(|found| found.is_none_or(|metadata| metadata.is_dir()))
    }

    /// Waits for the reader of another large file, if a file of this size is one.
    pub(crate) fn turn_to_read(&self, size: u64) -> Option<MutexGuard<'_, ()>> {
        (size > LARGE_FILE_BYTES).then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The kind of the entry at a path, without following a link.
    fn lstat(&self, path: &str) -> io::Result<Option<fs::Metadata>> {
        match fs::symlink_metadata(self.absolute(path)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The regular file at a path that lies in real folders alone; `None` if there is none.
    pub(crate) fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        if !self.is_inside(path)? {
            return Ok(None);
        }
        Ok(self.lstat(path)?.filter(fs::Metadata::is_file).map(|metadata| stat(&metadata)))
    }

    /// Whether a path holds a regular file inside of the vault, or no file at all. A folder in its place is none, unless it is a
    /// repository of its own.
    pub(crate) fn is_file_or_gone(&self, path: &str) -> bool {
        let is_linked =
            |at: usize| matches!(self.lstat(&path[..at]), Ok(Some(metadata)) if metadata.is_symlink());
        let is_outside = path.match_indices('/').any(|(at, _)| is_linked(at));
        let is_plain_folder = || fs::symlink_metadata(self.absolute(path).join(".git")).is_err();
        let counts = |found: fs::Metadata| found.is_file() || found.is_dir() && is_plain_folder();
        !is_outside && self.lstat(path).is_ok_and(|found| found.is_none_or(counts))
    }

    /// Whether all folders of a path are real folders of the vault.
    pub(crate) fn is_inside(&self, path: &str) -> io::Result<bool> {
        for (at, _) in path.match_indices('/') {
            match self.lstat(&path[..at])? {
                Some(metadata) if metadata.is_dir() => {}
                _ => return Ok(false),
            }
        }
        Ok(!path.split('/').any(|part| part == ".." || part.is_empty()))
    }

    /// Reads the regular file at a path; `None` if there is none.
    pub(crate) fn read(&self, path: &str) -> io::Result<Option<Result<Seen, Fault>>> {
        let Some(before) = self.stat(path)? else { return Ok(None) };
        if before.size > MAX_FILE_BYTES {
            let reason = format!("the file has {} bytes; the most is {MAX_FILE_BYTES}", before.size);
            return Ok(Some(Err(Fault::new(reason))));
        }
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
                | rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
        );
        let file = match options.open(self.absolute(path)) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => {
                let reason = format!("the file cannot be read: {}", io_reason(&error));
                return Ok(Some(Err(Fault::new(reason))));
            }
        };
        let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0));
        if let Err(error) = (&file).take(MAX_FILE_BYTES).read_to_end(&mut bytes) {
            let reason = format!("the file cannot be read: {}", io_reason(&error));
            return Ok(Some(Err(Fault::new(reason))));
        }
        let hash = Sha256::digest(&bytes).into();
        Ok(Some(Ok(Seen { bytes, hash, stat: stat(&file.metadata()?) })))
    }

    /// Writes files: each appears whole or not at all, and is on the disk when this returns. Files that replace another one come
    /// last, so that a crash in between leaves more rather than less.
    pub(crate) fn write(&self, files: &[NewFile]) -> Vec<io::Result<Stat>> {
        let folders = Mutex::new(BTreeSet::new());
        let mut outcomes = in_parallel(files, |file| self.prepare(file, &folders));
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by_key(|at| files[*at].replaces.is_some());
        let mut results: Vec<Option<io::Result<Stat>>> = files.iter().map(|_| None).collect();
        for at in order {
            let placed = std::mem::replace(&mut outcomes[at], Err(io::Error::other("taken")))
                .and_then(|temporary| self.put(&temporary, &files[at]));
            results[at] = Some(placed);
        }
        let folders: Vec<PathBuf> =
            folders.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect();
        let flushed = in_parallel(&folders, |folder| sync_folder(folder));
        let failed = flushed.into_iter().find_map(Result::err);
        results
            .into_iter()
            .map(|result| match (&failed, result) {
                (Some(error), _) => Err(io::Error::new(error.kind(), error.to_string())),
                (None, Some(result)) => result,
                (None, None) => Err(io::Error::other("a file was not written")),
            })
            .collect()
    }

    /// Writes a file under a temporary name beside its place.
    fn prepare(&self, file: &NewFile, folders: &Mutex<BTreeSet<PathBuf>>) -> io::Result<PathBuf> {
        let (folder, _) =
            file.path.rsplit_once('/').ok_or_else(|| io::Error::other("a file without a folder"))?;
        self.make_folder(folder, folders)?;
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}{}", TEMPORARY.0, std::process::id(), TEMPORARY.1);
        let temporary = self.absolute(folder).join(name);
        let written = new_file(&temporary).and_then(|mut written| {
            written.write_all(&file.bytes)?;
            written.sync_all()
        });
        if let Err(error) = written {
            // It is tried again, and would leave another one each time.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        Ok(temporary)
    }

    fn put(&self, temporary: &Path, file: &NewFile) -> io::Result<Stat> {
        let target = self.absolute(&file.path);
        let former = file.replaces.as_deref().unwrap_or(&file.path);
        if file.expects.is_some() && self.stat(former)? != file.expects {
            let _ = fs::remove_file(temporary);
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file has changed meanwhile"));
        }
        if let Err(error) = fs::rename(temporary, &target) {
            let _ = fs::remove_file(temporary);
            return Err(error);
        }
        if let Some(old) = &file.replaces {
            self.remove(old)?;
        }
        Ok(stat(&fs::symlink_metadata(&target)?))
    }

    /// Makes a folder and those above it, and notes which folders have to be flushed.
    fn make_folder(&self, folder: &str, folders: &Mutex<BTreeSet<PathBuf>>) -> io::Result<()> {
        let note = |path: PathBuf| {
            folders.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        };
        note(self.absolute(folder));
        let mut above = String::new();
        for part in folder.split('/') {
            let parent = self.absolute(&above);
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
            match self.lstat(&above)? {
                Some(metadata) if metadata.is_dir() => continue,
                Some(_) => {
                    let message = format!("`{above}` in the vault is not a folder; move it away");
                    return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
                }
                None => {}
            }
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(self.absolute(&above)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => note(parent),
            }
        }
        Ok(())
    }

    /// Fails if something that is no folder lies in the place of a folder, or of one above it.
    pub(crate) fn expect_folder(&self, folder: &str) -> strata_core::Result<()> {
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for at in ends {
            match self.lstat(&folder[..at]) {
                Ok(Some(metadata)) if !metadata.is_dir() => return Err(no_folder(&folder[..at], &metadata)),
                Ok(Some(_)) => {}
                // It can be made, or the disk tells when the file is written.
                Ok(None) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Removes a file, and the folders that become empty, up to the folder of all conversations.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        if !self.is_inside(path)? {
            return Ok(());
        }
        match self.lstat(path)? {
            // A folder in the place of a file is not that file.
            Some(metadata) if metadata.is_dir() => return Ok(()),
            Some(_) => match fs::remove_file(self.absolute(path)) {
                Err(error) if !is_missing(&error) => return Err(error),
                _ => {}
            },
            None => {}
        }
        self.remove_empty_folders(path);
        Ok(())
    }

    /// Removes the folders above a path that are empty, up to the folder of all conversations.
    pub(crate) fn remove_empty_folders(&self, path: &str) {
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            // A folder that holds anything is not removed.
            if !above.contains('/') || fs::remove_dir(self.absolute(above)).is_err() {
                break;
            }
            folder = above;
        }
    }

    /// Flushes the folders of removed files.
    pub(crate) fn sync_folders_of<'a>(&self, paths: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let folders: BTreeSet<PathBuf> =
            paths.filter_map(|path| Some(self.absolute(path.rsplit_once('/')?.0))).collect();
        folders.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| sync_folder(folder))
    }
}

fn no_folder(path: &str, metadata: &fs::Metadata) -> strata_core::Error {
    let kind = if metadata.is_symlink() { " but a symbolic link, which is not followed" } else { "" };
    strata_core::Error::unavailable(format!(
        "`{path}` in the vault is not a folder{kind}; put a folder in its place"
    ))
}

/// An empty file that only its owner can read. A link in its place is not followed.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
        );
    }
    options.open(path)
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows cannot flush a folder.
    if cfg!(windows) { Ok(()) } else { File::open(folder)?.sync_all() }
}

fn stat(metadata: &fs::Metadata) -> Stat {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let changed = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Stat { size: metadata.len(), changed, inode: metadata.ino().cast_signed() }
    }
    #[cfg(not(unix))]
    {
        let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let changed = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        Stat { size: metadata.len(), changed, inode: 0 }
    }
}

/// Runs `work` for all inputs on a few threads and returns the results in their order.
pub(crate) fn in_parallel<I: Sync, T: Send>(inputs: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    if inputs.len() < 2 {
        return inputs.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(inputs.len()));
    std::thread::scope(|scope| {
        for _ in 0..inputs.len().min(FLUSHERS) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = inputs.get(at) else { break };
                    let result = work(input);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_goes_while_it_is_looked_at_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        let mut walk = Walk::default();
        disk.walk_folder("entries/gone", 1, &mut walk);
        assert!(walk.files.is_empty() && walk.problems.is_empty());
        assert!(disk.is_gone("entries/gone/a.md"));
    }

    #[test]
    fn large_files_are_read_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        let (reading, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let sizes = [LARGE_FILE_BYTES + 1; 32];
        in_parallel(&sizes, |size| {
            let _turn = disk.turn_to_read(*size);
            most.fetch_max(reading.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            reading.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert!(disk.turn_to_read(LARGE_FILE_BYTES).is_none());
    }
}
