//! The history of a vault in git. The `git` program runs as a process of its own beside the store and never makes a request wait.
//!
//! Only files of the vault's layout are added and committed: no links, and no temporary files of editors. Hooks of the repository
//! are not run, because they could wait for a person or change files; a lock that a killed process has left behind is removed
//! after a while. [`program`] runs git, [`repository`] looks at its folder, [`committer`] commits in the background, and [`undo`]
//! takes commits back.

mod bookkeeping;
mod committer;
mod completed;
mod locks;
mod message;
mod objects;
mod plan;
mod program;
mod repository;
mod schedule;
mod steps;
mod undo;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use strata_core::ports::Clock;
use strata_core::{Error, Result};

use super::disk::Disk;
use super::layout;
use super::processes::being_written;
use super::snapshot::Snapshot;
use super::vault::{blocking, unwritten};
pub(crate) use committer::Committer;
pub(crate) use locks::{Checkout, wait_for_checkout};
use objects::Changed;
pub(crate) use steps::Step;

/// Files that git leaves out: Strata's own data, keys, and what the memory-proxy design derives.
const IGNORED: &str = ".strata/\nkeys/\nchroma/\nmemory_index.json\n.strata-*.tmp\n";

/// The files that are committed; git matches them as globs. [`layout::place`] decides in the end.
const COMMITTED: [&str; 6] = [
    ":(icase,glob)entries/**/*.md",
    ":(glob)entries/**/session.json",
    ":(icase,glob)users/*/entries/**/*.md",
    ":(glob)users/*/entries/**/session.json",
    ":(glob)users/*/user.json",
    ":(glob).gitignore",
];

/// The git repository of a vault.
#[derive(Clone)]
pub struct Git {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    /// The settings of the repository that name programs.
    drivers: Arc<Mutex<Vec<String>>>,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// Nothing had changed.
    Nothing,
    /// A commit with this first line.
    Commit(String),
    /// The repository is in the middle of something, such as a merge.
    Busy(String),
}

impl Git {
    /// The repository of the vault at `root`.
    pub fn new(root: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self { root: super::vault::make_root(root.as_ref())?, clock, drivers: Arc::default() })
    }

    /// Commits what has changed in the vault's folders. The repository and its ignore file are made if they are missing.
    pub async fn commit(&self) -> Result<Committed> {
        let _turn = self.turn().await?;
        self.commit_changes().await
    }

    /// Waits until no other process commits to the history or goes through it. The turn ends when the file is dropped.
    pub(crate) async fn turn(&self) -> Result<std::fs::File> {
        self.on_disk(|git| super::vault::lock_history(&git.root)).await
    }

    /// Commits, for a caller whose turn it is.
    async fn commit_changes(&self) -> Result<Committed> {
        if let Some(what) = self.on_disk(|git| Ok(repository::unfinished(&git.root))).await? {
            return Ok(Committed::Busy(what));
        }
        let Some(staged) = self.stage().await? else { return Ok(Committed::Nothing) };
        let (subject, body) = self.describe(&staged).await?;
        let body = format!("{body}\n\n{}", self.completed(&staged).await?);
        self.record(&staged, &subject, body.trim()).await?;
        Ok(Committed::Commit(subject))
    }

    /// Fails if the history cannot be kept: the repository is not the vault's own or damaged, or a person is in the middle of
    /// something there.
    pub(crate) async fn examine(&self) -> Result<()> {
        if let Some(what) = self.on_disk(|git| Ok(repository::unfinished(&git.root))).await? {
            return Err(Error::conflict(what));
        }
        if self.on_disk(|git| repository::state(&git.root)).await? != repository::State::Whole {
            return Ok(());
        }
        self.run(&["rev-parse", "--git-dir"]).await?;
        // A repository without a commit is no damaged one.
        if self.run(&["rev-parse", "--verify", "--quiet", "HEAD"]).await.is_ok() {
            self.run(&["cat-file", "-e", "HEAD^{tree}"]).await?;
        }
        Ok(())
    }

    /// Those of the files with the marks of a conflict that a person has to merge: git has listed them as such, or is in the
    /// middle of something.
    pub(crate) async fn awaiting_merge(&self, marked: HashSet<String>) -> Result<HashSet<String>> {
        if self.on_disk(|git| Ok(locks::is_merging(&git.root))).await? {
            return Ok(marked);
        }
        if self.expect_repository().await.is_err() {
            return Ok(HashSet::new());
        }
        // A repository that git cannot read lists nothing.
        let unmerged = self.unmerged(&COMMITTED).await.unwrap_or_default();
        Ok(marked.into_iter().filter(|path| unmerged.contains(path)).collect())
    }

    /// The files below these paths that git could not merge.
    async fn unmerged(&self, below: &[&str]) -> Result<HashSet<String>> {
        let listed = self.text(&[&["ls-files", "-z", "--unmerged", "--"], below].concat()).await?;
        let paths = listed.split_terminator('\0').filter_map(|line| line.split_once('\t'));
        Ok(paths.map(|(_, path)| path.to_owned()).collect())
    }

    /// Stages what has changed in the files of the vault's layout; `None` if nothing has.
    async fn stage(&self) -> Result<Option<Staged>> {
        self.set_up().await?;
        let listing = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard", "--"];
        let listed = self.text(&[&listing[..], &COMMITTED].concat()).await?;
        let unmerged = self.unmerged(&COMMITTED).await?;
        let paths = self.on_disk(move |git| Ok(only_committed(&git.root, &listed, &unmerged))).await?;
        self.expect_unfiltered(&paths).await?;
        let updating = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.run_with(&updating, paths.as_bytes(), None).await?;
        self.staged().await
    }

    /// Runs `work`, which may wait for the disk, on a thread of its own.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let git = self.clone();
        blocking(move || work(&git)).await
    }

    /// The first line of the message for what is staged, and the rest.
    async fn describe(&self, staged: &Staged) -> Result<(String, String)> {
        let items = self.items(message::to_identify(&staged.changed)).await?;
        let changed = staged.changed.clone();
        self.on_disk(move |git| Ok(message::describe(&git.root, &changed, &items, &git.refused()))).await
    }

    /// The staged changes of the vault's files; `None` if there are none.
    async fn staged(&self) -> Result<Option<Staged>> {
        let listing = ["diff", "--cached", "--raw", "--no-abbrev", "--no-renames", "-z", "--"];
        let listed = self.text(&[&listing[..], &COMMITTED].concat()).await?;
        let read = move |git: &Self| {
            let disk = Disk::new(&git.root);
            Ok(Staged::read(&listed, |path| is_committed(&disk, path)))
        };
        let staged = self.on_disk(read).await?;
        Ok((!staged.changed.is_empty()).then_some(staged))
    }

    /// Commits what is staged there, and nothing else. The commit is made of an index of its own: `git commit` would add whatever
    /// else has changed in the folders.
    async fn record(&self, staged: &Staged, subject: &str, body: &str) -> Result<()> {
        let index = self.own_index();
        let recorded = self.record_with(&index, staged, subject, body).await;
        let _ = std::fs::remove_file(&index);
        recorded
    }

    async fn record_with(&self, index: &Path, staged: &Staged, subject: &str, body: &str) -> Result<()> {
        let head = self.head().await;
        let from = head.as_deref().unwrap_or("--empty");
        self.run_with(&["read-tree", from], &[], Some(index)).await?;
        self.run_with(&["update-index", "-z", "--index-info"], staged.entries.as_bytes(), Some(index))
            .await?;
        let tree = self.said(&["write-tree"], &[], Some(index)).await?.trim().to_owned();
        let message = format!("{subject}\n\n{body}");
        let commit = self.commit_tree(&tree, head.as_deref(), message.trim()).await?;
        // The branch moves only if it has not been moved meanwhile.
        let reason = format!("{}{subject}", completed::OWN_MOVE);
        self.run(&["update-ref", "-m", &reason, "HEAD", &commit, head.as_deref().unwrap_or("")]).await?;
        Ok(())
    }

    /// Makes a commit to which nothing refers yet, and returns its id.
    async fn commit_tree(&self, tree: &str, parent: Option<&str>, message: &str) -> Result<String> {
        let mut arguments = self.identity().await?;
        arguments.extend(["commit-tree".to_owned(), tree.to_owned()]);
        arguments.extend(parent.iter().flat_map(|parent| ["-p".to_owned(), (*parent).to_owned()]));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let commit = self.said(&arguments, format!("{message}\n").as_bytes(), None).await?;
        Ok(commit.trim().to_owned())
    }

    /// The files that cannot be used, as the last look has found them.
    fn refused(&self) -> HashSet<String> {
        let path = self.root.join(layout::PRIVATE).join(super::vault::SNAPSHOT);
        if !path.exists() {
            return HashSet::new();
        }
        let problems = Snapshot::open(&path).and_then(|snapshot| snapshot.problems()).unwrap_or_default();
        problems.into_iter().map(|problem| problem.path).collect()
    }

    /// The commits of the vault, newest first, one line each.
    pub async fn log(&self, limit: u32) -> Result<String> {
        self.expect_repository().await?;
        if self.is_without_commits().await {
            return Ok("nothing is committed yet\n".to_owned());
        }
        let count = format!("--max-count={limit}");
        self.text(&["log", &count, "--date=format:%Y-%m-%d %H:%M", "--format=%h  %ad  %s", "--", "."]).await
    }

    /// Whether the first commit is still to come. A damaged repository has commits that cannot be read.
    async fn is_without_commits(&self) -> bool {
        self.text(&["rev-list", "--all", "--max-count=1"]).await.is_ok_and(|commit| commit.trim().is_empty())
            && self.head().await.is_none()
    }

    /// The last commit; `None` before the first one.
    async fn head(&self) -> Option<String> {
        let head = self.text(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.ok()?;
        Some(head.trim().to_owned())
    }

    /// The changes of a commit, or those since the last one.
    pub async fn diff(&self, commit: Option<&str>) -> Result<String> {
        self.expect_repository().await?;
        let plain = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        let Some(commit) = commit else { return self.uncommitted(&plain).await };
        let commit = self.commit_id(commit).await?;
        let shown = ["--format=%h  %ad  %s%n%b", "--date=iso", &commit, "--", "."];
        self.text(&[&["show"], &plain[..], &shown].concat()).await
    }

    /// The changes since the last commit, with the files that are new.
    async fn uncommitted(&self, plain: &[&str]) -> Result<String> {
        let listing = ["ls-files", "-z", "--others", "--exclude-standard", "--"];
        let listed = self.text(&[&listing[..], &COMMITTED].concat()).await?;
        let new = self.on_disk(move |git| Ok(only_committed(&git.root, &listed, &HashSet::new()))).await?;
        // Before the first commit everything is new.
        let last = match self.is_without_commits().await {
            true => self.empty_tree().await?,
            false => "HEAD".to_owned(),
        };
        let compared = [&["diff"], plain, &[&last, "--", "."]].concat();
        if new.is_empty() {
            return self.text(&compared).await;
        }
        let index = self.own_index();
        let shown = self.with_new(&index, &new, &compared).await;
        let _ = std::fs::remove_file(&index);
        shown
    }

    /// What a command prints that takes these files for ones that will be added. The repository's own index stays as it is.
    async fn with_new(&self, index: &Path, new: &str, command: &[&str]) -> Result<String> {
        let own = repository::folder(&self.root).join("index");
        let to = index.to_owned();
        // A repository without a commit may have none.
        let copy = move |_: &Self| match std::fs::copy(own, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unwritten(&error)),
            _ => Ok(()),
        };
        self.on_disk(copy).await?;
        let adding = [
            "--literal-pathspecs",
            "add",
            "--intent-to-add",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ];
        self.run_with(&adding, new.as_bytes(), Some(index)).await?;
        self.said(command, &[], Some(index)).await
    }

    /// The path of an index beside the repository's own.
    fn own_index(&self) -> PathBuf {
        repository::folder(&self.root).join(format!("{}index-{}", locks::OWN_FILE, std::process::id()))
    }

    /// Makes the repository and its ignore file if they are missing, and removes the locks that were left behind. A repository
    /// whose making was cut short is made whole.
    async fn set_up(&self) -> Result<()> {
        if self.on_disk(|git| repository::prepare(&git.root)).await? {
            self.run(&["-c", "init.defaultBranch=main", "init", "--quiet"]).await?;
        }
        self.switch_off_drivers().await?;
        let ready = |git: &Self| {
            repository::ignore(&git.root)?;
            locks::remove_left_behind(&git.root, git.clock.now());
            Ok(())
        };
        self.on_disk(ready).await
    }

    pub(crate) async fn expect_repository(&self) -> Result<()> {
        self.on_disk(|git| repository::expect(&git.root)).await?;
        self.switch_off_drivers().await
    }

    /// The full name of a commit, which a person may have written in any way.
    async fn commit_id(&self, name: &str) -> Result<String> {
        if name.starts_with('-') {
            return Err(Error::invalid(format!("`{name}` is no commit")));
        }
        let spec = format!("{name}^{{commit}}");
        let id = self.text(&["rev-parse", "--verify", "--quiet", "--end-of-options", &spec]).await;
        let id = id.map_err(|_| Error::not_found(format!("there is no commit `{name}` in the vault")))?;
        Ok(id.trim().to_owned())
    }

    /// The author, where the person has set none.
    async fn identity(&self) -> Result<Vec<String>> {
        if self.text(&["config", "user.email"]).await.is_ok_and(|email| !email.trim().is_empty()) {
            return Ok(Vec::new());
        }
        Ok(["-c", "user.name=Strata", "-c", "user.email=strata@localhost"].map(str::to_owned).to_vec())
    }
}

/// Changes that are staged.
#[derive(Default)]
struct Staged {
    changed: Vec<Changed>,
    /// The same files as `git update-index --index-info` reads them.
    entries: String,
}

impl Staged {
    /// Reads the output of `git diff --raw -z`.
    fn read(raw: &str, counts: impl Fn(&str) -> bool) -> Self {
        let mut changed = Changed::read(raw);
        changed.retain(|changed| counts(&changed.path));
        let entries = changed.iter().map(Changed::staged).collect();
        Self { changed, entries }
    }
}

/// Whether a path is a file of the vault's layout that lies inside of the vault, or that is gone.
fn is_committed(disk: &Disk, path: &str) -> bool {
    let is_ours = path == ".gitignore" || path.ends_with("/user.json") || layout::place(path).is_some();
    is_ours && disk.is_file_or_gone(path)
}

/// Those of the paths that are committed now: without the ones that git could not merge, and those that another program is still
/// writing. Each of them ends in NUL.
fn only_committed(root: &Path, listed: &str, unmerged: &HashSet<String>) -> String {
    let disk = Disk::new(root);
    let written = being_written(root, listed.split_terminator('\0'));
    let is_left_out = |path: &&str| unmerged.contains(*path) || written.contains(*path);
    let settled = listed.split_terminator('\0').filter(|path| !is_left_out(path));
    // In order: a file goes from the index before those of the folder that has taken its place come into it.
    let committed: BTreeSet<&str> = settled.filter(|path| is_committed(&disk, path)).collect();
    committed.into_iter().flat_map(|path| [path, "\0"]).collect()
}
