//! The watcher: follows what a person changes while the vault is open.
//!
//! Events are hints. They are gathered until the files are quiet for a moment, then the files themselves are looked at, so Strata's
//! own writes, which are in the snapshot already, change nothing. While git changes many files, nothing is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Config, ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::disk::is_missing;
use super::git::Checkout;
use super::keeper::Call;
use super::layout;
use super::scope::Scope;
use super::vault::Vault;

/// The pause without events after which files are looked at: longer than an editor takes to save one. Where the system does not tell
/// which files are still being written, they have to be unchanged for longer.
const QUIET: Duration = Duration::from_millis(if cfg!(target_os = "linux") { 60 } else { 2_000 });

/// The longest time for which a stream of events may delay that.
const LATEST: Duration = Duration::from_secs(if cfg!(target_os = "linux") { 1 } else { 10 });

/// How long a file has to be missing to count as removed. Editors and git remove a file before they write it anew.
const MISSING: Duration = Duration::from_millis(400);

/// How often git is asked whether it is done.
const CHECKOUT: Duration = Duration::from_millis(200);

/// The message of an event.
enum Hint {
    /// Something happened at this path.
    Path(PathBuf),
    /// Events were lost.
    Everything,
    /// Something is not watched, for this reason.
    Deaf(String),
}

/// Watches a vault as long as the returned value lives.
pub(crate) struct Watch {
    _watcher: Arc<std::sync::Mutex<RecommendedWatcher>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    /// Begins to watch. What cannot be watched is noted, and the rest is watched all the same.
    pub(crate) fn start(vault: &Arc<Vault>, calls: mpsc::UnboundedSender<Call>) -> Option<Self> {
        let (hints, received) = mpsc::unbounded_channel();
        let pass_on = move |event: notify::Result<notify::Event>| {
            for hint in hints_of(event) {
                // The task ends before the watcher does.
                let _ = hints.send(hint);
            }
        };
        // A link may lead out of the vault, and to very many folders.
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(pass_on, config);
        let watcher = match watcher {
            Ok(watcher) => Arc::new(std::sync::Mutex::new(watcher)),
            Err(error) => {
                vault.note_unwatched(error.to_string());
                return None;
            }
        };
        // The folder of Strata's own data changes with every write, so the whole vault is not watched.
        let folders = [layout::ENTRIES, layout::USERS, layout::KEYS].map(|name| vault.root.join(name));
        watch_folder(vault, &watcher, &vault.root, RecursiveMode::NonRecursive);
        for folder in &folders {
            if std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
                watch_folder(vault, &watcher, folder, RecursiveMode::Recursive);
            }
        }
        let follower = Follower {
            vault: Arc::clone(vault),
            calls,
            watcher: Arc::clone(&watcher),
            folders,
            checkout: Checkout::default(),
        };
        Some(Self { _watcher: watcher, task: tokio::spawn(follower.run(received)) })
    }
}

/// Watches a folder, or notes why it cannot be watched. One that has gone meanwhile needs no watch.
fn watch_folder(
    vault: &Vault,
    watcher: &std::sync::Mutex<RecommendedWatcher>,
    folder: &Path,
    mode: RecursiveMode,
) {
    let mut watcher = watcher.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(error) = watcher.watch(folder, mode)
        && !is_gone(&error)
    {
        vault.note_unwatched(error.to_string());
    }
}

/// Whether what should be watched has gone.
fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => true,
        ErrorKind::Io(error) => is_missing(error),
        _ => false,
    }
}

fn hints_of(event: notify::Result<notify::Event>) -> Vec<Hint> {
    match event {
        Ok(event) if event.need_rescan() => vec![Hint::Everything],
        // A writer is done: what it wrote before was left alone.
        Ok(event) if event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
            event.paths.into_iter().map(Hint::Path).collect()
        }
        // Reading a file, and changes of its times or rights, are no changes of its content.
        Ok(event)
            if matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_))) =>
        {
            Vec::new()
        }
        Ok(event) => event.paths.into_iter().map(Hint::Path).collect(),
        Err(error) if is_gone(&error) => vec![Hint::Everything],
        // A new folder that cannot be watched: its files are looked at once, and never again.
        Err(error) => vec![Hint::Deaf(error.to_string()), Hint::Everything],
    }
}

/// The task behind a watcher.
struct Follower {
    vault: Arc<Vault>,
    calls: mpsc::UnboundedSender<Call>,
    watcher: Arc<std::sync::Mutex<RecommendedWatcher>>,
    folders: [PathBuf; 3],
    checkout: Checkout,
}

/// The gathered events.
#[derive(Default)]
struct Gathered {
    /// Files and folders.
    paths: BTreeSet<String>,
    everything: bool,
}

impl Follower {
    async fn run(self, mut hints: mpsc::UnboundedReceiver<Hint>) {
        let mut gathered = Gathered::default();
        // Paths that were missing, and when they count as removed.
        let mut missing: BTreeMap<String, Instant> = BTreeMap::new();
        // When git is asked again whether it is done.
        let mut held: Option<Instant> = None;
        loop {
            let due = held.or_else(|| missing.values().min().copied());
            let first = tokio::select! {
                hint = hints.recv() => match hint {
                    Some(hint) => Some(hint),
                    None => return,
                },
                () = until(due) => None,
            };
            if let Some(first) = first {
                self.gather(first, &mut gathered);
                self.wait_for_quiet(&mut hints, &mut gathered).await;
            }
            if self.checkout.is_running(&self.vault.root) {
                held = Some(Instant::now() + CHECKOUT);
                continue;
            }
            held = None;
            self.settle_missing(&mut gathered, &mut missing);
            if !self.pass_on(std::mem::take(&mut gathered)) {
                return;
            }
        }
    }

    async fn wait_for_quiet(&self, hints: &mut mpsc::UnboundedReceiver<Hint>, gathered: &mut Gathered) {
        let latest = Instant::now() + LATEST;
        loop {
            let quiet = (Instant::now() + QUIET).min(latest);
            match tokio::time::timeout_at(quiet, hints.recv()).await {
                Ok(Some(hint)) => self.gather(hint, gathered),
                Ok(None) | Err(_) => return,
            }
            if Instant::now() >= latest {
                return;
            }
        }
    }

    fn gather(&self, hint: Hint, gathered: &mut Gathered) {
        let path = match hint {
            Hint::Path(path) => path,
            Hint::Everything => return gathered.everything = true,
            Hint::Deaf(reason) => return self.vault.note_unwatched(reason),
        };
        if let Some(folder) = self.folders.iter().find(|folder| **folder == path)
            && std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir())
        {
            watch_folder(&self.vault, &self.watcher, folder, RecursiveMode::Recursive);
        }
        let Ok(relative) = path.strip_prefix(&self.vault.root) else { return };
        let Some(relative) = relative.to_str().map(|path| path.replace('\\', "/")) else { return };
        let is_below = self.folders.iter().any(|folder| path.starts_with(folder));
        if !is_below || relative.split('/').any(|part| part.starts_with('.')) {
            return;
        }
        // The files of a folder that came or went have no events of their own.
        let is_other_file =
            || std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.file_type().is_file());
        if layout::place(&relative).is_some() || !is_other_file() {
            gathered.paths.insert(relative);
        }
    }

    /// Puts missing files aside until they have been missing for a while, and takes up those that have.
    fn settle_missing(&self, gathered: &mut Gathered, missing: &mut BTreeMap<String, Instant>) {
        let now = Instant::now();
        for path in std::mem::take(&mut gathered.paths) {
            let is_there = std::fs::symlink_metadata(self.vault.disk.absolute(&path)).is_ok();
            if is_there {
                missing.remove(&path);
                gathered.paths.insert(path);
            } else {
                missing.entry(path).or_insert(now + MISSING);
            }
        }
        let due: Vec<String> =
            missing.iter().filter(|(_, due)| **due <= now).map(|(path, _)| path.clone()).collect();
        for path in due {
            missing.remove(&path);
            gathered.paths.insert(path);
        }
        if gathered.everything && !missing.is_empty() {
            // A look at everything would take them for removed: it waits for them.
            gathered.everything = false;
            missing.entry(String::new()).or_insert(now + MISSING);
        }
        if gathered.paths.remove("") {
            gathered.everything = true;
        }
    }

    /// Hands the paths to the keeper; `false` when the vault is closed.
    fn pass_on(&self, gathered: Gathered) -> bool {
        let Gathered { paths, everything } = gathered;
        let scope = match (everything, paths.is_empty()) {
            (false, true) => return true,
            (false, false) => Scope::Hinted(paths.into_iter().collect()),
            (true, _) => Scope::All,
        };
        self.calls.send(Call::Sync { scope, answer: None }).is_ok()
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::tests::vault;

    #[test]
    fn a_folder_that_cannot_be_watched_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Arc::new(vault(folder.path()));
        let (calls, _received) = mpsc::unbounded_channel();
        let watcher = RecommendedWatcher::new(|_| {}, Config::default()).unwrap();
        let watcher = Arc::new(std::sync::Mutex::new(watcher));
        // A folder that went before it could be watched hides no edit.
        watch_folder(&vault, &watcher, &folder.path().join("gone"), RecursiveMode::Recursive);
        assert_eq!(vault.unwatched(), None);
        let folders = [layout::ENTRIES, layout::USERS, layout::KEYS].map(|name| vault.root.join(name));
        let checkout = Checkout::default();
        let follower = Follower { vault: Arc::clone(&vault), calls, watcher, folders, checkout };
        let mut gathered = Gathered::default();
        for hint in hints_of(Err(notify::Error::new(ErrorKind::MaxFilesWatch))) {
            follower.gather(hint, &mut gathered);
        }
        assert!(gathered.everything, "what it holds now is looked at");
        let told = vault.unwatched().unwrap();
        assert!(
            told.contains("not all edits are followed: ") && told.contains("`strata vault sync`"),
            "{told}"
        );
    }

    #[test]
    fn a_folder_is_looked_at_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Arc::new(vault(folder.path()));
        let watcher = RecommendedWatcher::new(|_| {}, Config::default()).unwrap();
        let (calls, mut received) = mpsc::unbounded_channel();
        let folders = [layout::ENTRIES, layout::USERS, layout::KEYS].map(|name| vault.root.join(name));
        let watcher = Arc::new(std::sync::Mutex::new(watcher));
        let follower = Follower { vault, calls, watcher, folders, checkout: Checkout::default() };
        for name in ["entries/trip.2026/facts", "entries/.trash", "entries/notes"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("entries/photo.png"), "x").unwrap();
        let mut gathered = Gathered::default();
        for name in
            ["entries/trip.2026", "entries/.trash/x.md", "entries/notes", "entries/photo.png", "README.md"]
        {
            follower.gather(Hint::Path(follower.vault.root.join(name)), &mut gathered);
        }
        follower.settle_missing(&mut gathered, &mut BTreeMap::new());
        assert!(follower.pass_on(gathered));
        let Some(Call::Sync { scope: Scope::Hinted(paths), .. }) = received.blocking_recv() else {
            panic!("a look at everything");
        };
        assert_eq!(paths, ["entries/notes", "entries/trip.2026"]);
    }
}
