//! The default store: one SQLite file with its write-ahead log, one thread that writes, a few connections that read.
//!
//! Several processes may use one file: the database's own locks keep them apart, and no write depends on anything that this
//! process remembers between two transactions. Deliberately absent: the meaning of turns and memories, and
//! the search by vectors. Start reading at [`writer`], then [`apply`] for what is written and [`index`] for how text is found.

mod apply;
mod backup;
mod check;
mod connection;
mod damage;
mod error;
mod feed;
mod index;
mod read;
mod repair;
mod restore;
mod row;
mod schema;
mod scrub;
mod search;
mod still;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::Connection;
use strata_core::job::Job;
use strata_core::key::{ApiKey, KeyHash};
use strata_core::metric::RequestMetric;
use strata_core::store::{
    Applied, ChangeSet, CheckDepth, Growth, Head, Health, Hit, Item, JobQuery, KeyQuery, LeaseRequest,
    MemoryQuery, MemorySelect, MetricQuery, Page, PartQuery, Segment, SegmentSize, StoredVector,
    SummaryQuery, TextQuery, TurnQuery,
};
use strata_core::summary::Summary;
use strata_core::{Error, Memory, MemoryId, Result, Session, SessionId, Store, Turn, UserId};

pub use connection::SqliteOptions;
pub use repair::Quarantined;

use connection::Readers;
use damage::Noted;
use error::Outcome;
use watch::FileWatch;
use writer::{Indexing, Writer};

/// The most rows that are read on the calling thread, see [`Readers::run_here`].
const FEW_ROWS: usize = 32;

/// Stores everything in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    readers: Readers,
    writer: Option<Writer>,
    /// The damaged rows that reads have met.
    noted: Noted,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, which is created if it does not exist and migrated if it has an older format.
    /// A file of another program or of a later Strata is refused and stays as it is.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        Self::open_with(path.as_ref(), options, Indexing::Behind)
    }

    fn open_with(path: &Path, options: SqliteOptions, indexing: Indexing) -> Result<Self> {
        let path = path.to_owned();
        let in_file = |error: Error| {
            if error.message().contains(&*path.to_string_lossy()) {
                return error;
            }
            let named = Error::new(error.kind(), format!("`{}`: {}", path.display(), error.message()));
            let named = if error.is_retryable() { named.retryable() } else { named };
            named.with_source(error)
        };
        let writer = if options.read_only {
            connection::check_read_only(&path, &options).map_err(|fault| in_file(fault.into()))?;
            None
        } else {
            let conn = connection::open_writer(&path, &options).map_err(|fault| in_file(fault.into()))?;
            Some(Writer::start(conn, indexing, FileWatch::new(&path))?)
        };
        Ok(Self { readers: Readers::new(path.clone(), options), path, writer, noted: Noted::default() })
    }

    /// Writes a consistent copy to `target` while the store continues to serve. The target must not exist, and appears whole
    /// or not at all.
    pub async fn backup(&self, target: impl Into<PathBuf>) -> Result<()> {
        let target = target.into();
        // Not in a transaction of its own: the copy makes one.
        self.readers.run_bare(move |conn| backup::backup(conn, &target)).await
    }

    /// Copies the store in the file at `source`, such as a backup, to `target`, which must not exist and appears whole or not
    /// at all. A file that is not a store is refused.
    pub fn copy(source: &Path, target: &Path) -> Result<()> {
        restore::copy(source, target).map_err(Error::from)
    }

    /// Gives the store at `from`, which no process uses, the name `store`. A store that is there is kept as `aside`; one that
    /// another process uses is a conflict, and stays.
    pub fn replace(from: &Path, store: &Path, aside: &Path) -> Result<()> {
        restore::replace(from, store, aside).map_err(Error::from)
    }

    /// Rebuilds the text index from the turns and memories. Until it is done, searches find everything, more slowly.
    pub async fn reindex(&self) -> Result<()> {
        self.writer()?.reindex().await
    }

    /// Gives turns that exist everything of these except their place and whether they are hidden, and destroys what was made of
    /// their former texts. Turns do not change in the contract of a store; this is for an index that is derived from files, in
    /// which a person has corrected a turn.
    pub async fn correct_turns(&self, user: &UserId, at: Timestamp, turns: Vec<Turn>) -> Result<()> {
        self.writer()?.correct(user.clone(), at, turns).await
    }

    /// Puts every row that cannot be read aside, into a table of its own, and returns how many there were.
    pub async fn repair(&self, at: Timestamp) -> Result<u64> {
        let repaired = self.writer()?.repair(row::micros(at)).await?;
        self.noted.clear();
        Ok(repaired)
    }

    /// The rows that were put aside, the oldest first.
    pub async fn quarantined(&self) -> Result<Vec<Quarantined>> {
        self.read(repair::quarantined).await
    }

    fn writer(&self) -> Result<&Writer> {
        self.writer.as_ref().ok_or_else(|| {
            Error::unavailable("the store was opened for reading only; open it for writing to change it")
        })
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.run(read).await
    }

    /// As [`SqliteStore::read`], for at most `rows` rows by their keys: a few are read on the calling thread.
    async fn read_few<T: Send + 'static>(
        &self,
        rows: usize,
        read: impl Fn(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        if rows <= FEW_ROWS { self.readers.run_here(read).await } else { self.readers.run(read).await }
    }

    /// As [`SqliteStore::read_few`], for items of a user. Damaged rows that it passes over are noted.
    async fn read_items<T: Send + 'static>(
        &self,
        user: &UserId,
        rows: usize,
        read: impl Fn(&Connection, &UserId) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let (user, noted) = (user.clone(), self.noted.clone());
        self.read_few(rows, move |conn| noted.watch(&user, || read(conn, &user))).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Applied> {
        self.writer()?.apply(user.clone(), changes).await
    }

    async fn head(&self, user: &UserId) -> Result<Head> {
        let user = user.clone();
        self.read_few(1, move |conn| read::head(conn, &user)).await
    }

    async fn session(&self, user: &UserId, session: &SessionId) -> Result<Option<Session>> {
        let (user, session) = (user.clone(), session.clone());
        self.read_few(1, move |conn| read::session(conn, &user, &session)).await
    }

    async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        let user = user.clone();
        self.read(move |conn| read::sessions(conn, &user, page)).await
    }

    async fn turns(&self, user: &UserId, query: &TurnQuery) -> Result<Vec<Turn>> {
        let query = query.clone();
        let rows = match &query {
            TurnQuery::Ids(ids) => ids.len(),
            TurnQuery::Range { limit, .. } | TurnQuery::Hidden { limit, .. } => *limit as usize,
            TurnQuery::Recent { .. } => usize::MAX,
        };
        self.read_items(user, rows, move |conn, user| read::turns(conn, user, &query)).await
    }

    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        let query = query.clone();
        let rows = match &query.select {
            MemorySelect::Ids(ids) => ids.len(),
            _ => usize::MAX,
        };
        self.read_items(user, rows, move |conn, user| read::memories(conn, user, &query)).await
    }

    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>> {
        let query = query.clone();
        let rows = query.limit as usize;
        self.read_items(user, rows, move |conn, user| read::summaries(conn, user, &query)).await
    }

    async fn summaries_with(&self, user: &UserId, query: &PartQuery) -> Result<Vec<Summary>> {
        let query = *query;
        self.read_items(user, usize::MAX, move |conn, user| read::summaries_with(conn, user, &query)).await
    }

    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>> {
        let query = query.clone();
        self.read_items(user, usize::MAX, move |conn, user| search::search(conn, user, &query)).await
    }

    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>> {
        self.read_items(user, limit as usize, move |conn, user| feed::feed(conn, user, after, limit)).await
    }

    async fn vectors_since(&self, user: &UserId, model: &str, after: u64) -> Result<Vec<StoredVector>> {
        let (user, model) = (user.clone(), model.to_owned());
        self.read(move |conn| feed::vectors_since(conn, &user, &model, after)).await
    }

    async fn segments(&self, user: &UserId, space: &str, from: u64) -> Result<Vec<Segment>> {
        let (user, space) = (user.clone(), space.to_owned());
        self.read(move |conn| feed::segments(conn, &user, &space, from)).await
    }

    async fn segment_sizes(&self, user: &UserId, space: &str) -> Result<Vec<SegmentSize>> {
        let (user, space) = (user.clone(), space.to_owned());
        self.read(move |conn| feed::segment_sizes(conn, &user, &space)).await
    }

    async fn progress(&self, user: &UserId, space: &str) -> Result<u64> {
        let (user, space) = (user.clone(), space.to_owned());
        self.read_few(1, move |conn| feed::progress(conn, &user, &space)).await
    }

    async fn behind(&self, space: &str, gap: u64, limit: u32) -> Result<Vec<UserId>> {
        let (space, look) = (space.to_owned(), format!("behind {gap} {limit} {space}"));
        self.readers.look(look, move |conn| feed::behind(conn, &space, gap, limit)).await
    }

    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        let (user, query) = (user.clone(), query.clone());
        self.read(move |conn| read::jobs(conn, &user, &query)).await
    }

    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>> {
        let (writer, wanted) = (self.writer()?, request.clone());
        // A worker that looks for work from time to time must not wake the writer when there is none.
        if self.read_few(1, move |conn| apply::due_job(conn, &wanted)).await?.is_none() {
            return Ok(None);
        }
        writer.lease_job(request.clone()).await
    }

    async fn job_enqueued(&self) {
        match &self.writer {
            Some(writer) => writer.job_enqueued().await,
            None => std::future::pending().await,
        }
    }

    async fn requests(&self, user: &UserId, query: &MetricQuery) -> Result<Vec<RequestMetric>> {
        let (user, query) = (user.clone(), query.clone());
        self.read(move |conn| read::requests(conn, &user, &query)).await
    }

    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>> {
        let hash = *hash;
        self.read_few(1, move |conn| read::key_by_hash(conn, &hash)).await
    }

    async fn keys(&self, query: &KeyQuery) -> Result<Vec<ApiKey>> {
        let query = query.clone();
        self.read(move |conn| read::keys(conn, &query)).await
    }

    async fn owner_of(&self, id: MemoryId) -> Result<Option<UserId>> {
        self.read(move |conn| read::owner_of(conn, id)).await
    }

    async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth> {
        let user = user.clone();
        self.read(move |conn| read::growth(conn, &user, since)).await
    }

    async fn users(&self, page: Page) -> Result<Vec<UserId>> {
        self.read(move |conn| read::users(conn, page)).await
    }

    fn unreadable(&self, user: &UserId) -> u64 {
        self.noted.count(user)
    }

    async fn check(&self, depth: CheckDepth) -> Result<Health> {
        let path = self.path.clone();
        let probed = match &self.writer {
            Some(writer) => writer.probe().await,
            None => Ok(()),
        };
        let health = self.read(move |conn| check::check(conn, &path, depth)).await;
        match (probed, health) {
            (Ok(()), health) => health,
            // Why a file cannot be written also tells why it cannot be read.
            (Err(error), Err(_)) => Err(error),
            (Err(error), Ok(mut health)) => {
                health.problems.push(format!("the store cannot be written: {error}"));
                Ok(health)
            }
        }
    }

    async fn close(&self) -> Result<()> {
        // The writer comes last, because the last connection that closes copies the log into the file.
        self.readers.close().await;
        match &self.writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }
}
