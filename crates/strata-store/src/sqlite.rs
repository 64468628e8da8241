//! The default store: one SQLite file with its write-ahead log, one thread that writes, a few connections that read.
//!
//! Several processes may use one file: the database's own locks keep them apart, and no write depends on anything that this
//! process remembers between two transactions. What is deliberately left alone: the meaning of turns and memories, and
//! the search by vectors. Start reading at [`writer`], then [`apply`] for what is written and [`index`] for how text is found.

mod apply;
mod backup;
mod check;
mod connection;
mod error;
mod feed;
mod index;
mod read;
mod row;
mod schema;
mod scrub;
mod search;
#[cfg(test)]
mod tests;
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
    MemoryQuery, MemorySelect, MetricQuery, Page, Segment, SegmentSize, StoredVector, SummaryQuery,
    TextQuery, TurnQuery,
};
use strata_core::summary::Summary;
use strata_core::{Error, Memory, MemoryId, Result, Session, SessionId, Store, Turn, UserId};

pub use connection::SqliteOptions;

use connection::Readers;
use error::Outcome;
use writer::{Indexing, Writer};

/// The most rows that are read on the calling thread, see [`Readers::run_here`].
const FEW_ROWS: usize = 32;

/// Stores everything in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    readers: Readers,
    writer: Option<Writer>,
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
            Some(Writer::start(conn, indexing)?)
        };
        Ok(Self { readers: Readers::new(path.clone(), options), path, writer })
    }

    /// Writes a consistent copy to `target` while the store continues to serve. The target must not exist, and appears whole
    /// or not at all.
    pub async fn backup(&self, target: impl Into<PathBuf>) -> Result<()> {
        let target = target.into();
        // Not in a transaction of its own: the copy makes one.
        self.readers.run_bare(move |conn| backup::backup(conn, &target)).await
    }

    /// Rebuilds the text index from the turns and memories. Until it is done, searches find everything, more slowly.
    pub async fn reindex(&self) -> Result<()> {
        self.writer()?.reindex().await
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
        let (user, query) = (user.clone(), query.clone());
        let rows = match &query {
            TurnQuery::Ids(ids) => ids.len(),
            TurnQuery::Range { limit, .. } => *limit as usize,
            TurnQuery::Recent { .. } => usize::MAX,
        };
        self.read_few(rows, move |conn| read::turns(conn, &user, &query)).await
    }

    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        let (user, query) = (user.clone(), query.clone());
        let rows = match &query.select {
            MemorySelect::Ids(ids) => ids.len(),
            _ => usize::MAX,
        };
        self.read_few(rows, move |conn| read::memories(conn, &user, &query)).await
    }

    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>> {
        let (user, query) = (user.clone(), query.clone());
        let rows = query.limit as usize;
        self.read_few(rows, move |conn| read::summaries(conn, &user, &query)).await
    }

    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>> {
        let (user, query) = (user.clone(), query.clone());
        self.read(move |conn| search::search(conn, &user, &query)).await
    }

    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>> {
        let user = user.clone();
        self.read_few(limit as usize, move |conn| feed::feed(conn, &user, after, limit)).await
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
        let space = space.to_owned();
        self.read(move |conn| feed::behind(conn, &space, gap, limit)).await
    }

    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        let (user, query) = (user.clone(), query.clone());
        self.read(move |conn| read::jobs(conn, &user, &query)).await
    }

    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>> {
        self.writer()?.lease_job(request.clone()).await
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

    async fn check(&self, depth: CheckDepth) -> Result<Health> {
        let path = self.path.clone();
        let mut health = self.read(move |conn| check::check(conn, &path, depth)).await?;
        if let Some(writer) = &self.writer
            && let Err(error) = writer.probe().await
        {
            health.problems.push(format!("the store cannot be written: {error}"));
        }
        Ok(health)
    }

    async fn close(&self) -> Result<()> {
        if let Some(writer) = &self.writer {
            writer.close().await?;
        }
        self.readers.close().await;
        Ok(())
    }
}
