//! The watcher: follows what a person changes while the vault is open.
//!
//! Events are hints. They are gathered until the files are quiet for a moment, then the files themselves are looked at, so Strata's
//! own writes, which are in the snapshot already, change nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use strata_core::{Error, Result};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::keeper::Call;
use super::layout;
use super::scope::Scope;
use super::vault::Vault;

/// The pause without events after which files are looked at: longer than an editor takes to save one.
const QUIET: Duration = Duration::from_millis(60);

/// The longest time for which a stream of events may delay that.
const LATEST: Duration = Duration::from_secs(1);

/// How long a file has to be missing to count as removed. Editors and git remove a file before they write it anew.
const MISSING: Duration = Duration::from_millis(400);

/// With more paths than this, all files are looked at instead.
const MANY_PATHS: usize = 500;

/// What an event tells.
enum Hint {
    /// Something happened at this path.
    Path(PathBuf),
    /// Events were lost.
    Everything,
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
    /// Begins to watch.
    pub(crate) fn start(vault: &Arc<Vault>, calls: mpsc::UnboundedSender<Call>) -> Result<Self> {
        let (hints, received) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            for hint in hints_of(event) {
                // The task ends before the watcher does.
                let _ = hints.send(hint);
            }
        });
        let watcher = Arc::new(std::sync::Mutex::new(watcher.map_err(|error| unwatched(&error))?));
        // The folder of Strata's own data changes with every write, so the whole vault is not watched.
        let folders = [layout::ENTRIES, layout::USERS, layout::KEYS].map(|name| vault.root.join(name));
        watch_folder(&watcher, &vault.root, RecursiveMode::NonRecursive)?;
        for folder in &folders {
            if std::fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
                watch_folder(&watcher, folder, RecursiveMode::Recursive)?;
            }
        }
        let follower = Follower { vault: Arc::clone(vault), calls, watcher: Arc::clone(&watcher), folders };
        Ok(Self { _watcher: watcher, task: tokio::spawn(follower.run(received)) })
    }
}

fn watch_folder(
    watcher: &std::sync::Mutex<RecommendedWatcher>,
    folder: &Path,
    mode: RecursiveMode,
) -> Result<()> {
    let mut watcher = watcher.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    watcher.watch(folder, mode).map_err(|error| unwatched(&error))
}

fn unwatched(error: &notify::Error) -> Error {
    Error::unavailable(format!(
        "the vault cannot be watched: {error}; raise the limit of watched folders, or set `start_watcher` to false"
    ))
}

fn hints_of(event: notify::Result<notify::Event>) -> Vec<Hint> {
    match event {
        Ok(event) if event.need_rescan() => vec![Hint::Everything],
        // Reading a file, and changes of its times or rights, are no changes of its content.
        Ok(event)
            if matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_))) =>
        {
            Vec::new()
        }
        Ok(event) => event.paths.into_iter().map(Hint::Path).collect(),
        Err(error) => {
            tracing::warn!(%error, "the watcher has lost events; all files are looked at");
            vec![Hint::Everything]
        }
    }
}

/// The task behind a watcher.
struct Follower {
    vault: Arc<Vault>,
    calls: mpsc::UnboundedSender<Call>,
    watcher: Arc<std::sync::Mutex<RecommendedWatcher>>,
    folders: [PathBuf; 3],
}

/// What has been gathered.
#[derive(Default)]
struct Gathered {
    paths: BTreeSet<String>,
    everything: bool,
}

impl Follower {
    async fn run(self, mut hints: mpsc::UnboundedReceiver<Hint>) {
        // Paths that were missing, and when they count as removed.
        let mut missing: BTreeMap<String, Instant> = BTreeMap::new();
        loop {
            let due = missing.values().min().copied();
            let first = tokio::select! {
                hint = hints.recv() => match hint {
                    Some(hint) => Some(hint),
                    None => return,
                },
                () = until(due) => None,
            };
            let mut gathered = Gathered::default();
            if let Some(first) = first {
                self.gather(first, &mut gathered);
                self.wait_for_quiet(&mut hints, &mut gathered).await;
            }
            self.settle_missing(&mut gathered, &mut missing);
            if !self.pass_on(gathered) {
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
        let Hint::Path(path) = hint else {
            gathered.everything = true;
            return;
        };
        if let Some(folder) = self.folders.iter().find(|folder| **folder == path)
            && path.is_dir()
        {
            // The first file of a new folder may come before it is watched.
            if let Err(error) = watch_folder(&self.watcher, folder, RecursiveMode::Recursive) {
                tracing::warn!(%error, "a new folder of the vault is not watched");
            }
            gathered.everything = true;
            return;
        }
        let Ok(relative) = path.strip_prefix(&self.vault.root) else { return };
        let Some(relative) = relative.to_str().map(|path| path.replace('\\', "/")) else { return };
        if !self.folders.iter().any(|folder| path.starts_with(folder)) {
            return;
        }
        if layout::place(&relative).is_some() {
            gathered.paths.insert(relative);
        } else if relative
            .rsplit('/')
            .next()
            .is_some_and(|name| !name.starts_with('.') && !name.contains('.'))
        {
            // A folder that came or went; its files have no events of their own.
            gathered.everything = true;
        }
    }

    /// Puts missing files aside until they have been missing for a while, and takes up those that have.
    fn settle_missing(&self, gathered: &mut Gathered, missing: &mut BTreeMap<String, Instant>) {
        let now = Instant::now();
        let is_there = |path: &str| self.vault.disk.stat(path).is_ok_and(|stat| stat.is_some());
        for path in std::mem::take(&mut gathered.paths) {
            if is_there(&path) {
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
        let scope = match (everything, paths.len()) {
            (false, 0) => return true,
            (false, count) if count <= MANY_PATHS => Scope::Hinted(paths.into_iter().collect()),
            _ => Scope::All,
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
