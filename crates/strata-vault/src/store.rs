//! The store: the index answers questions, and a write is acknowledged when its files are on the disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use strata_core::job::Job;
use strata_core::key::{ApiKey, KeyHash};
use strata_core::metric::RequestMetric;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::{
    Applied, ChangeSet, CheckDepth, Growth, Head, Health, Hit, Item, JobQuery, KeyQuery, LeaseRequest,
    MemoryQuery, MetricQuery, Page, PartQuery, Segment, SegmentSize, StoredVector, SummaryQuery, TextQuery,
    TurnQuery,
};
use strata_core::summary::Summary;
use strata_core::{Error, Memory, MemoryId, Result, Session, SessionId, Store, Turn, UserId};
use tokio::sync::{mpsc, oneshot};

use super::dirty::Dirty;
use super::git::{Committer, Git, Step, wait_for_checkout};
use super::keeper::{self, Call};
use super::layout;
use super::scope::Scope;
use super::snapshot::Problem;
use super::vault::{Progress, Vault, blocking};
use super::watch::Watch;

/// The most problems of single files that a check lists.
const LISTED_PROBLEMS: usize = 50;

/// How a vault is used.
#[derive(Clone)]
pub struct VaultOptions {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids for items that a person makes.
    pub ids: Arc<dyn IdSource>,
    /// Told how far the files have been read when the vault is opened.
    pub progress: Option<Progress>,
    /// Whether changes of a person are followed while the vault is open.
    pub watch: bool,
    /// Whether changes are committed to a git repository in the vault.
    pub git: bool,
    /// The most bytes of a memory that is taken in from a file.
    pub max_memory_bytes: usize,
}

impl VaultOptions {
    /// A vault without watcher, git and limits.
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { clock, ids, progress: None, watch: false, git: false, max_memory_bytes: usize::MAX }
    }
}

/// Stores everything as files in a folder.
pub struct VaultStore {
    vault: Arc<Vault>,
    calls: mpsc::UnboundedSender<Call>,
    watch: Mutex<Option<Watch>>,
    committer: Mutex<Option<Committer>>,
}

impl VaultStore {
    /// Opens the vault in the folder at `root`, which is made if it does not exist. What a person has changed since the last time
    /// is taken in; an index that is missing is built from the files.
    pub async fn open(root: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        // Boxed: the steps are large, and every caller's future would hold them.
        Box::pin(Self::open_at(root.as_ref().to_owned(), options)).await
    }

    async fn open_at(root: PathBuf, options: VaultOptions) -> Result<Self> {
        let (watches, commits) = (options.watch, options.git);
        // Before the lock, for which other processes would wait.
        wait_for_checkout(root.canonicalize().unwrap_or_else(|_| root.clone())).await?;
        let vault = blocking(move || open_parts(&root, options)).await?;
        let (vault, lock) = vault;
        let beginning = Arc::clone(&vault);
        let is_left = blocking(move || beginning.begin()).await?;
        let dirty = vault.take_in(Scope::All).await?;
        let mut left = vault.flush(&dirty).await?.of(&dirty);
        if is_left {
            let dirty = vault.reconcile().await?;
            left.merge(vault.flush(&dirty).await?.of(&dirty));
        }
        let built = Arc::clone(&vault);
        blocking(move || built.mark_built()).await?;
        drop(lock);
        let (calls, received) = mpsc::unbounded_channel();
        tokio::spawn(keeper::keep(Arc::clone(&vault), left, received));
        let watch = if watches { Watch::start(&vault, calls.clone()) } else { None };
        let committer = match commits {
            true => {
                let git = Git::new(&vault.root, Arc::clone(&vault.clock))?;
                Some(Committer::start(git, vault.changes.subscribe()))
            }
            false => None,
        };
        Ok(Self { vault, calls, watch: Mutex::new(watch), committer: Mutex::new(committer) })
    }

    /// Takes in what a person has changed since the vault was opened.
    pub async fn sync(&self) -> Result<()> {
        wait_for_checkout(self.vault.root.clone()).await?;
        let (answer, answered) = oneshot::channel();
        self.call(Call::Sync { scope: Scope::All, answer: Some(answer) })?;
        answered.await.map_err(|_| stopped())?
    }

    /// Takes a commit of the vault's history back with a commit of its own; without a name, the last one that is not taken back
    /// already. What the commit added leaves recall, and what it took out comes back. Returns the first line of its message.
    pub async fn undo(&self, commit: Option<&str>) -> Result<String> {
        self.step(Step::Undo, commit).await
    }

    /// Does again what the last undo has taken back. Returns the first line of the message of the commit that is in force again.
    pub async fn redo(&self) -> Result<String> {
        self.step(Step::Redo, None).await
    }

    async fn step(&self, step: Step, commit: Option<&str>) -> Result<String> {
        // Edits that were not taken in yet become a commit of their own, while others may still write.
        self.sync().await?;
        let git = Git::new(&self.vault.root, Arc::clone(&self.vault.clock))?;
        git.expect_repository().await?;
        git.commit().await?;
        let _turn = git.turn().await?;
        let (answer, answered) = oneshot::channel();
        self.call(Call::Step { git, step, commit: commit.map(str::to_owned), answer })?;
        answered.await.map_err(|_| stopped())?
    }

    fn call(&self, call: Call) -> Result<()> {
        self.calls.send(call).map_err(|_| stopped())
    }

    /// The number of files that cannot be used.
    pub async fn problem_count(&self) -> Result<u64> {
        let vault = Arc::clone(&self.vault);
        blocking(move || vault.snapshot().problem_count()).await
    }

    /// The files that cannot be used, each with its line and reason. Of very many, the first are listed and the rest is counted in
    /// a last line.
    pub async fn problems(&self) -> Result<Vec<String>> {
        self.problems_that(|_| true).await
    }

    /// Why edits are not followed or the history is not kept, if that is so.
    async fn hindrances(&self) -> Result<Vec<String>> {
        let mut hindrances = Vec::from_iter(self.vault.unwatched());
        let failure = match &*self.committer.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(committer) => committer.failure(),
            None => return Ok(hindrances),
        };
        let examined = Git::new(&self.vault.root, Arc::clone(&self.vault.clock))?.examine().await;
        let reason = examined.err().map(|error| error.to_string()).or(failure);
        hindrances.extend(reason.map(|reason| format!("the history is not kept: {reason}")));
        Ok(hindrances)
    }

    async fn problems_that(&self, counts: impl Fn(&Problem) -> bool) -> Result<Vec<String>> {
        let vault = Arc::clone(&self.vault);
        let mut problems = blocking(move || vault.snapshot().problems()).await?;
        problems.retain(counts);
        let more = problems.len().saturating_sub(LISTED_PROBLEMS);
        let mut listed: Vec<String> =
            problems.iter().take(LISTED_PROBLEMS).map(ToString::to_string).collect();
        if more > 0 {
            let files = if more == 1 { "file" } else { "files" };
            listed.push(format!("{more} further {files} cannot be used"));
        }
        Ok(listed)
    }
}

fn open_parts(root: &Path, options: VaultOptions) -> Result<(Arc<Vault>, std::fs::File)> {
    let VaultOptions { clock, ids, progress, max_memory_bytes, .. } = options;
    // The lock comes first: another process may be building the index.
    let root: PathBuf = super::vault::make_root(root)?;
    super::vault::make_private(&root.join(super::layout::PRIVATE))?;
    let lock = super::vault::lock(&root)?;
    let mut vault = Vault::open(&root, clock, ids, progress)?;
    vault.max_memory_bytes = max_memory_bytes;
    Ok((Arc::new(vault), lock))
}

fn stopped() -> Error {
    Error::unavailable("the vault is closed; open it again")
}

/// Fails if a new item cannot have a file, because something else lies in the place of its folder. Nothing is kept of an item that
/// is refused. A disk that fails is another matter: its files are written when it can be written again.
fn expect_folders(vault: &Vault, user: &UserId, changes: &ChangeSet) -> Result<()> {
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for change in &changes.changes {
        folders.extend(layout::folders_of(vault.names, user, change)?);
    }
    folders.iter().try_for_each(|folder| vault.disk.expect_folder(folder))
}

/// Applies a change set to the index and has its files written.
async fn apply(
    vault: Arc<Vault>,
    calls: mpsc::UnboundedSender<Call>,
    user: UserId,
    changes: ChangeSet,
) -> Result<Applied> {
    let dirty = Dirty::of(&user, &changes);
    expect_folders(&vault, &user, &changes)?;
    let applied = vault.index.apply(&user, changes).await?;
    let dirty = if applied.replayed { Dirty::replayed(&user, &applied) } else { dirty };
    if dirty.is_empty() {
        return Ok(applied);
    }
    let (answer, answered) = oneshot::channel();
    calls.send(Call::Write { dirty, answer }).map_err(|_| stopped())?;
    answered.await.map_err(|_| stopped())??;
    Ok(applied)
}

#[async_trait]
impl Store for VaultStore {
    async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Applied> {
        // A task of its own: a caller that no longer waits must not leave an item without its file.
        let task = tokio::spawn(apply(Arc::clone(&self.vault), self.calls.clone(), user.clone(), changes));
        task.await.map_err(|error| Error::internal("a write to the vault broke off").with_source(error))?
    }

    async fn head(&self, user: &UserId) -> Result<Head> {
        self.vault.index.head(user).await
    }

    async fn session(&self, user: &UserId, session: &SessionId) -> Result<Option<Session>> {
        self.vault.index.session(user, session).await
    }

    async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        self.vault.index.sessions(user, page).await
    }

    async fn turns(&self, user: &UserId, query: &TurnQuery) -> Result<Vec<Turn>> {
        self.vault.index.turns(user, query).await
    }

    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        self.vault.index.memories(user, query).await
    }

    async fn owner_of(&self, id: MemoryId) -> Result<Option<UserId>> {
        self.vault.index.owner_of(id).await
    }

    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>> {
        self.vault.index.summaries(user, query).await
    }

    async fn summaries_with(&self, user: &UserId, query: &PartQuery) -> Result<Vec<Summary>> {
        self.vault.index.summaries_with(user, query).await
    }

    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>> {
        self.vault.index.search(user, query).await
    }

    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>> {
        self.vault.index.feed(user, after, limit).await
    }

    async fn vectors_since(&self, user: &UserId, model: &str, after: u64) -> Result<Vec<StoredVector>> {
        self.vault.index.vectors_since(user, model, after).await
    }

    async fn segments(&self, user: &UserId, space: &str, from: u64) -> Result<Vec<Segment>> {
        self.vault.index.segments(user, space, from).await
    }

    async fn segment_sizes(&self, user: &UserId, space: &str) -> Result<Vec<SegmentSize>> {
        self.vault.index.segment_sizes(user, space).await
    }

    async fn progress(&self, user: &UserId, space: &str) -> Result<u64> {
        self.vault.index.progress(user, space).await
    }

    async fn behind(&self, space: &str, gap: u64, limit: u32) -> Result<Vec<UserId>> {
        self.vault.index.behind(space, gap, limit).await
    }

    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        self.vault.index.jobs(user, query).await
    }

    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>> {
        self.vault.index.lease_job(request).await
    }

    async fn job_enqueued(&self) {
        self.vault.index.job_enqueued().await;
    }

    async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth> {
        self.vault.index.growth(user, since).await
    }

    fn unreadable(&self, user: &UserId) -> u64 {
        self.vault.index.unreadable(user)
    }

    async fn requests(&self, user: &UserId, query: &MetricQuery) -> Result<Vec<RequestMetric>> {
        self.vault.index.requests(user, query).await
    }

    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>> {
        self.vault.index.key_by_hash(hash).await
    }

    async fn keys(&self, query: &KeyQuery) -> Result<Vec<ApiKey>> {
        self.vault.index.keys(query).await
    }

    async fn users(&self, page: Page) -> Result<Vec<UserId>> {
        self.vault.index.users(page).await
    }

    async fn unusable_files(&self, user: &UserId) -> Result<Vec<String>> {
        let folder = layout::user_folder(self.vault.names, user)?;
        let is_own = |problem: &Problem| match folder.is_empty() {
            true => !problem.path.starts_with(&format!("{}/", layout::USERS)),
            false => problem.path.starts_with(&folder),
        };
        let mut listed = self.hindrances().await?;
        listed.extend(self.problems_that(is_own).await?);
        Ok(listed)
    }

    async fn check(&self, depth: CheckDepth) -> Result<Health> {
        let mut health = self.vault.index.check(depth).await?;
        health.location = format!("vault:{}", self.vault.root.display());
        if let Err(error) = self.vault.probe().await {
            health.problems.push(format!("the vault cannot be written: {error}"));
        }
        // A file that a person has to correct does not make the store unfit to serve.
        if depth == CheckDepth::Thorough {
            let unwritten = self.vault.unwritten();
            health.problems.extend(unwritten.map(|reason| format!("files could not be written: {reason}")));
            health.problems.extend(self.hindrances().await?);
            health.problems.extend(self.problems().await?);
        }
        Ok(health)
    }

    async fn close(&self) -> Result<()> {
        drop(self.watch.lock().unwrap_or_else(PoisonError::into_inner).take());
        let (answer, answered) = oneshot::channel();
        if self.call(Call::Close { answer }).is_ok() {
            // A task that has ended has nothing left to write.
            let _ = answered.await;
        }
        let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(committer) = committer {
            committer.finish().await;
        }
        self.vault.index.close().await
    }
}
