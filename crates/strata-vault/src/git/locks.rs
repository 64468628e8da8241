//! The repository's folder: its locks, and a repository that was never finished.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use strata_core::Result;

use crate::processes::git_works_in;
use crate::vault::blocking;

/// The age of a lock in seconds after which it was left behind, if no git works in the vault: longer than a command may take.
const STALE_SECS: i64 = 180;

/// The same where the system does not tell whether git works there. A commit holds its lock while its editor is open.
const STALE_UNSEEN_SECS: i64 = 3_600;

/// The locks beside those of the branches.
const LOCKS: [&str; 4] = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"];

/// The beginning of the names of the indexes and other files that Strata makes for its commits.
pub(super) const OWN_FILE: &str = "strata-";

/// How long the lock of a checkout keeps looks away. A commit whose editor is open holds the same lock for much longer.
const HELD: Duration = Duration::from_secs(30);

/// The folder of the repository whose checkouts change the vault's files. A person may keep it elsewhere, and a file `.git` then
/// names it; nothing is written there.
fn followed(root: &Path) -> PathBuf {
    let own = root.join(".git");
    let named = fs::read_to_string(&own).ok().filter(|_| own.is_file());
    match named.as_deref().and_then(|text| text.trim().strip_prefix("gitdir:")) {
        Some(named) => root.join(named.trim()),
        None => own,
    }
}

/// Whether a person is in the middle of a merge or the like, which may have left conflicts in files.
pub(super) fn is_merging(root: &Path) -> bool {
    let folder = followed(root);
    super::repository::IN_PROGRESS.into_iter().any(|(name, _)| folder.join(name).exists())
}

/// The pause between two looks at whether git is done.
const STEP: Duration = Duration::from_millis(50);

/// The lock that git holds while it changes many files at once.
#[derive(Debug, Default)]
pub(crate) struct Checkout {
    /// The lock's own time, and when it was seen first. Two readings of one steady clock: the time of day may jump.
    seen: Mutex<Option<(SystemTime, Instant)>>,
}

impl Checkout {
    /// Whether git is changing files, so that those that are missing may come back.
    pub(crate) fn is_running(&self, root: &Path) -> bool {
        let lock = followed(root).join("index.lock");
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(made) = fs::symlink_metadata(lock).and_then(|metadata| metadata.modified()) else {
            *seen = None;
            return false;
        };
        if git_works_in(root) == Some(false) {
            return false;
        }
        match *seen {
            Some((known, since)) if known == made => since.elapsed() < HELD,
            _ => {
                *seen = Some((made, Instant::now()));
                true
            }
        }
    }
}

/// Waits while git is changing files.
pub(crate) async fn wait_for_checkout(root: PathBuf) -> Result<()> {
    let checkout = Arc::new(Checkout::default());
    loop {
        let (checkout, root) = (Arc::clone(&checkout), root.clone());
        if !blocking(move || Ok(checkout.is_running(&root))).await? {
            return Ok(());
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Removes the locks that killed processes have left behind.
pub(super) fn remove_left_behind(root: &Path, now: Timestamp) {
    let least = match git_works_in(root) {
        Some(true) => return,
        Some(false) => STALE_SECS,
        None => STALE_UNSEEN_SECS,
    };
    let folder = super::repository::folder(root);
    let mut locks: Vec<PathBuf> = LOCKS.map(|name| folder.join(name)).to_vec();
    add_locks_of_branches(&folder.join("refs"), &mut locks);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_own = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(OWN_FILE))
    };
    locks.extend(entries.map(|entry| entry.path()).filter(is_own));
    for lock in locks {
        let Ok(changed) = fs::symlink_metadata(&lock).and_then(|metadata| metadata.modified()) else {
            continue;
        };
        let Ok(changed) = Timestamp::try_from(changed) else { continue };
        // A lock from the future was left before the clock was set back.
        if now.duration_since(changed).as_secs().abs() >= least {
            tracing::warn!(lock = %lock.display(), "git's lock in the vault was left behind and is removed");
            let _ = fs::remove_file(lock);
        }
    }
}

fn add_locks_of_branches(folder: &Path, locks: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_locks_of_branches(&path, locks);
        } else if path.extension().is_some_and(|ending| ending == "lock") {
            locks.push(path);
        }
    }
}

/// Whether the making of a repository was cut short. One with a branch is no such repository, whatever it lacks.
pub(super) fn is_half_made(folder: &Path) -> bool {
    let has_head = fs::metadata(folder.join("HEAD")).is_ok_and(|metadata| metadata.len() > 0);
    let is_whole = has_head && folder.join("objects").is_dir() && folder.join("refs").is_dir();
    let has_branch = folder.join("packed-refs").exists()
        || fs::read_dir(folder.join("refs/heads")).is_ok_and(|mut entries| entries.next().is_some());
    !is_whole && !has_branch
}

/// Removes what hinders git from making a half-made repository whole.
pub(super) fn clear_half_made(folder: &Path) {
    for name in ["HEAD", "HEAD.lock", "config.lock"] {
        let _ = fs::remove_file(folder.join(name));
    }
}
