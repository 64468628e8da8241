//! The history of a vault in git. The `git` program runs as a process of its own beside the store and never makes a request wait.
//!
//! Only files of the vault's layout are added and committed: no links, and no temporary files of editors. Hooks of the repository
//! are not run, because they could wait for a person or change files; a lock that a killed process has left behind is removed
//! after a while. [`undo`] takes commits back.

mod locks;
mod message;
mod schedule;
mod undo;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use strata_core::ports::Clock;
use strata_core::{Error, Result};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::{oneshot, watch};

use super::disk::Disk;
use super::layout;
use super::snapshot::Snapshot;
pub(crate) use locks::{Checkout, wait_for_checkout};
use schedule::Schedule;
pub(crate) use undo::Step;

/// How long a command of git may take.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// States of a repository in which a person is in the middle of something.
const IN_PROGRESS: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"];

/// The git repository of a vault.
#[derive(Clone)]
pub struct Git {
    root: PathBuf,
    clock: Arc<dyn Clock>,
}

/// What came of a commit.
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
        Ok(Self { root: super::vault::make_root(root.as_ref())?, clock })
    }

    /// Commits what has changed in the vault's folders. The repository and its ignore file are made if they are missing.
    pub async fn commit(&self) -> Result<Committed> {
        if let Some(what) = self.in_progress() {
            return Ok(Committed::Busy(format!(
                "the repository has `.git/{what}`: finish or abort with git what was begun there"
            )));
        }
        let Some(staged) = self.stage().await? else { return Ok(Committed::Nothing) };
        let (subject, body) = message::describe(&self.root, &staged.changes, &self.refused());
        self.record(&staged, &subject, &body).await?;
        Ok(Committed::Commit(subject))
    }

    /// Stages what has changed in the files of the vault's layout; `None` if nothing has.
    async fn stage(&self) -> Result<Option<Staged>> {
        self.set_up().await?;
        locks::remove_left_behind(&self.root, self.clock.now());
        let listing = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard", "--"];
        let listed = self.text(&[&listing[..], &COMMITTED].concat()).await?;
        let disk = Disk::new(&self.root);
        let mut paths = String::new();
        for path in listed.split('\0').filter(|path| is_committed(&disk, path)) {
            paths.push_str(path);
            paths.push('\0');
        }
        let updating = ["update-index", "--add", "--remove", "-z", "--stdin"];
        self.run_with(&updating, paths.as_bytes(), None).await?;
        self.staged(&COMMITTED, |path| is_committed(&disk, path)).await
    }

    /// What is staged below these paths; `None` if nothing is.
    async fn staged(&self, below: &[&str], counts: impl Fn(&str) -> bool) -> Result<Option<Staged>> {
        let listing = ["diff", "--cached", "--raw", "--no-abbrev", "--no-renames", "-z", "--"];
        let staged = Staged::read(&self.text(&[&listing[..], below].concat()).await?, counts);
        Ok((!staged.changes.is_empty()).then_some(staged))
    }

    /// Commits what is staged there, and nothing else. The commit is made of an index of its own: `git commit` would add whatever
    /// else has changed in the folders.
    async fn record(&self, staged: &Staged, subject: &str, body: &str) -> Result<()> {
        let index = locks::folder(&self.root).join(format!("{}{}", locks::OWN_INDEX, std::process::id()));
        let recorded = self.record_with(&index, staged, subject, body).await;
        let _ = std::fs::remove_file(&index);
        recorded
    }

    async fn record_with(&self, index: &Path, staged: &Staged, subject: &str, body: &str) -> Result<()> {
        let trimmed = |text: String| text.trim().to_owned();
        let head = self.text(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.ok().map(trimmed);
        let from = head.as_deref().unwrap_or("--empty");
        self.run_with(&["read-tree", from], &[], Some(index)).await?;
        self.run_with(&["update-index", "-z", "--index-info"], staged.entries.as_bytes(), Some(index))
            .await?;
        let tree = trimmed(self.said(&["write-tree"], &[], Some(index)).await?);
        let mut arguments = self.identity().await?;
        arguments.extend(["commit-tree".to_owned(), tree]);
        arguments.extend(head.iter().flat_map(|head| ["-p".to_owned(), head.clone()]));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let message = format!("{subject}\n\n{body}");
        let message = format!("{}\n", message.trim());
        let commit = trimmed(self.said(&arguments, message.as_bytes(), None).await?);
        // The branch moves only if it has not been moved meanwhile.
        let reason = format!("commit: {subject}");
        self.run(&["update-ref", "-m", &reason, "HEAD", &commit, head.as_deref().unwrap_or("")]).await?;
        Ok(())
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
        self.expect_repository()?;
        let count = format!("--max-count={limit}");
        self.text(&["log", &count, "--date=format:%Y-%m-%d %H:%M", "--format=%h  %ad  %s", "--", "."]).await
    }

    /// What a commit has changed; without one, what has changed since the last commit.
    pub async fn diff(&self, commit: Option<&str>) -> Result<String> {
        self.expect_repository()?;
        match commit {
            Some(commit) => {
                let commit = self.commit_id(commit).await?;
                self.text(&[
                    "show",
                    "--no-ext-diff",
                    "--format=%h  %ad  %s%n%b",
                    "--date=iso",
                    &commit,
                    "--",
                    ".",
                ])
                .await
            }
            None => self.text(&["diff", "--no-ext-diff", "HEAD", "--", "."]).await,
        }
    }

    /// Makes the repository and its ignore file if they are missing. A repository whose making was cut short is made whole.
    async fn set_up(&self) -> Result<()> {
        let folder = self.root.join(".git");
        let found = std::fs::symlink_metadata(&folder).ok();
        let is_half_made =
            found.as_ref().is_some_and(|metadata| metadata.is_dir() && locks::is_half_made(&folder));
        if is_half_made && super::processes::git_works_in(&self.root) != Some(true) {
            locks::clear_half_made(&folder);
        }
        if found.is_none() || is_half_made {
            self.run(&["-c", "init.defaultBranch=main", "init", "--quiet"]).await?;
        }
        let ignore = self.root.join(".gitignore");
        if std::fs::symlink_metadata(&ignore).is_err() {
            std::fs::write(&ignore, IGNORED).map_err(|error| super::vault::unwritten(&error))?;
        }
        Ok(())
    }

    fn expect_repository(&self) -> Result<()> {
        if self.root.join(".git").exists() {
            return Ok(());
        }
        Err(Error::not_found(format!(
            "the vault `{}` has no history yet; set `enable_git_versioning` to true",
            self.root.display()
        )))
    }

    fn in_progress(&self) -> Option<&'static str> {
        let folder = locks::folder(&self.root);
        IN_PROGRESS.into_iter().find(|name| folder.join(name).exists())
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

    async fn text(&self, arguments: &[&str]) -> Result<String> {
        self.said(arguments, &[], None).await
    }

    async fn said(&self, arguments: &[&str], input: &[u8], index: Option<&Path>) -> Result<String> {
        let output = self.run_with(arguments, input, index).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.run_with(arguments, &[], None).await
    }

    /// Runs git in the vault, without hooks, prompts, pagers or settings of the caller's own repository. Git reads `input`, and works
    /// with another `index` than the repository's own.
    async fn run_with(&self, arguments: &[&str], input: &[u8], index: Option<&Path>) -> Result<Output> {
        let mut command = Command::new("git");
        let safe = [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "commit.gpgSign=false",
            "core.quotePath=false",
            "gc.auto=0",
            "core.autocrlf=false",
        ];
        for setting in safe {
            command.args(["-c", setting]);
        }
        command.arg("--no-pager").args(arguments);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE"] {
            command.env_remove(variable);
        }
        command.envs(index.map(|index| ("GIT_INDEX_FILE", index)));
        command
            .current_dir(&self.root)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_EDITOR", "true")
            .env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap_or(&self.root))
            .env("LC_ALL", "C")
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, fed(command, input)).await;
        let output = output.map_err(|_| Error::unavailable("git takes too long"))?;
        let output = output.map_err(|error| {
            Error::unavailable("git cannot be run; install it, or set `enable_git_versioning` to false")
                .with_source(error)
        })?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").to_owned();
        Err(Error::unavailable(format!(
            "git {}: {said}",
            arguments.iter().find(|word| !word.starts_with('-')).unwrap_or(&"")
        )))
    }
}

/// Changes that are staged.
#[derive(Default)]
struct Staged {
    /// Statuses and paths, as `git diff --name-status -z` names them.
    changes: String,
    /// The same files as `git update-index --index-info` reads them.
    entries: String,
}

impl Staged {
    /// Reads the output of `git diff --raw -z`.
    fn read(raw: &str, counts: impl Fn(&str) -> bool) -> Self {
        let mut staged = Self::default();
        let mut parts = raw.split('\0');
        while let (Some(fields), Some(path)) = (parts.next(), parts.next()) {
            let fields: Vec<&str> = fields.split(' ').collect();
            let [_, mode, _, id, status] = fields.as_slice() else { continue };
            // A name that is not UTF-8 has come here with other characters.
            if counts(path) && !path.contains(char::REPLACEMENT_CHARACTER) {
                staged.changes.push_str(&format!("{status}\0{path}\0"));
                let mode = if *status == "D" { "0" } else { mode };
                staged.entries.push_str(&format!("{mode} {id}\t{path}\0"));
            }
        }
        staged
    }
}

/// Whether a path is a file of the vault's layout that lies inside of the vault, or that is gone.
fn is_committed(disk: &Disk, path: &str) -> bool {
    let is_ours = path == ".gitignore" || path.ends_with("/user.json") || layout::place(path).is_some();
    is_ours && disk.is_file_or_gone(path)
}

/// Runs a command that reads `input`.
async fn fed(mut command: Command, input: &[u8]) -> std::io::Result<Output> {
    let mut child = command.spawn()?;
    let pipe = child.stdin.take();
    let feeding = async {
        if let Some(mut pipe) = pipe {
            // A command that ends early says why in its output.
            let _ = pipe.write_all(input).await;
        }
    };
    let ((), output) = tokio::join!(feeding, child.wait_with_output());
    output
}

/// Commits in the background while the vault is open.
pub(crate) struct Committer {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Committer {
    pub(crate) fn start(git: Git, changes: watch::Receiver<u64>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(commit_in_background(git, changes, stopped)) }
    }

    /// Commits what is left, and ends.
    pub(crate) async fn finish(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

async fn commit_in_background(git: Git, mut changes: watch::Receiver<u64>, mut stop: oneshot::Receiver<()>) {
    // What a person or an earlier process has left is committed at once.
    let mut schedule = Schedule::at_once();
    loop {
        let stopping = tokio::select! {
            _ = &mut stop => true,
            changed = changes.changed() => {
                schedule.note_change();
                changed.is_err()
            }
            () = schedule.due() => {
                let is_done = commit_once(&git).await;
                schedule.note_attempt(is_done);
                false
            }
        };
        if stopping {
            commit_once(&git).await;
            return;
        }
    }
}

/// Commits, and says whether nothing is left to do.
async fn commit_once(git: &Git) -> bool {
    match git.commit().await {
        Ok(Committed::Busy(reason)) => {
            tracing::info!(reason, "the vault is committed later");
            false
        }
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "the vault cannot be committed now");
            false
        }
    }
}
