//! The store itself: which connection serves which call.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use strata_core::job::Job;
use strata_core::key::{ApiKey, KeyHash};
use strata_core::metric::RequestMetric;
use strata_core::store::{
    Applied, Change, ChangeSet, CheckDepth, Forget, Growth, Head, Health, Hit, Item, JobQuery, KeyQuery,
    LeaseRequest, MemoryQuery, MetricQuery, Page, PartQuery, Segment, SegmentSize, StoredVector,
    SummaryQuery, TextQuery, TurnQuery, VectorQuery,
};
use strata_core::summary::Summary;
use strata_core::{Memory, MemoryId, Result, Session, SessionId, Store, Turn, UserId};

use crate::apply::Batches;
use crate::behind::Behind;
use crate::connection::Connections;
use crate::error::Outcome;
use crate::extensions::{self, Extensions};
use crate::lent::Connection;
use crate::lent::Transaction;
use crate::options::{PostgresOptions, Purpose};
use crate::replica::{Replica, Snapshot};
use crate::vectors::{self, LargeUsers};
use crate::wake::Wake;
use crate::{apply, check, feed, read, schema, search, sql};

/// Stores everything in one PostgreSQL database, which many processes may share.
pub struct PostgresStore {
    location: String,
    primary: Arc<Connections>,
    /// For the reads of recall, if there is a replica.
    replica: Option<Replica>,
    extensions: Extensions,
    /// What the database lacks, and what to do about it.
    advice: Vec<String>,
    /// The size from which a user's vectors are indexed.
    hnsw_from: u64,
    large_users: LargeUsers,
    behind: Behind,
    batches: Batches,
    wake: Wake,
}

impl PostgresStore {
    /// Connects to the database and brings its format up to date. A schema with tables of another program and a database of a
    /// later Strata are refused and stay as they are.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let primary = Arc::new(Connections::new(&options.address, Purpose::Write, &options)?);
        let replica = options.replica.as_ref().map(|address| Replica::new(address, &options)).transpose()?;
        let connection = primary.get().await?;
        check::settings(&connection).await?;
        schema::migrate(&connection, options.partitions.clamp(1, 1_024)).await?;
        let (extensions, advice) = extensions::prepare(&connection).await?;
        drop(connection);
        let (location, hnsw_from) = (options.address.to_string(), options.hnsw_from);
        let wake = Wake::new(options, Arc::clone(&primary));
        let (large_users, behind) = (LargeUsers::default(), Behind::default());
        if extensions.halfvec {
            large_users.drop_unused(&primary);
        }
        let batches = Batches::new(Arc::clone(&primary), extensions.citus);
        Ok(Self {
            location,
            primary,
            replica,
            extensions,
            advice,
            hnsw_from,
            large_users,
            behind,
            batches,
            wake,
        })
    }

    /// How many connections this process holds.
    pub fn connections(&self) -> usize {
        self.primary.open() + self.replica.as_ref().map_or(0, Replica::open)
    }

    /// Runs a read that may be a moment old: on the replica, if there is one and it answers, else on the primary.
    async fn recall<T, F>(&self, read: impl Fn(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        if let Some(replica) = &self.replica
            && let Some(result) = replica.read(Snapshot::Each, &read).await
        {
            return result;
        }
        self.primary.read(read).await
    }

    /// As [`PostgresStore::recall`], with all statements of the read in one snapshot.
    async fn recall_snapshot<T, F>(&self, read: impl Fn(Connection) -> F) -> Result<T>
    where
        F: Future<Output = Outcome<T>> + Send,
    {
        if let Some(replica) = &self.replica
            && let Some(result) = replica.read(Snapshot::One, &read).await
        {
            return result;
        }
        self.primary.read_snapshot(read).await
    }

    async fn lease(&self, request: &LeaseRequest) -> Outcome<Option<Job>> {
        let mut transaction = Transaction::new(self.primary.get().await?);
        let leasing = async {
            sql::batch(transaction.client()?, &self.primary.begin()).await?;
            let job = apply::lease_job(transaction.client()?, request).await?;
            transaction.end(if job.is_some() { "COMMIT" } else { "ROLLBACK" }).await?;
            Ok(job)
        };
        self.primary.answered(leasing).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Applied> {
        let forgets = changes.changes.contains(&Change::Forget(Forget::User));
        let done = self.batches.apply(user, changes).await?;
        self.behind.note(user);
        if forgets && self.extensions.halfvec {
            self.large_users.drop_unused(&self.primary);
        }
        if done.wakes {
            self.wake.tell();
        }
        Ok(done.applied)
    }

    async fn head(&self, user: &UserId) -> Result<Head> {
        self.recall(|client| async move { read::head(&client, user).await }).await
    }

    async fn session(&self, user: &UserId, session: &SessionId) -> Result<Option<Session>> {
        self.primary.read(|client| async move { read::session(&client, user, session).await }).await
    }

    async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        self.primary.read(|client| async move { read::sessions(&client, user, page).await }).await
    }

    async fn turns(&self, user: &UserId, query: &TurnQuery) -> Result<Vec<Turn>> {
        self.primary.read(|client| async move { read::turns(&client, user, query).await }).await
    }

    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        self.primary.read(|client| async move { read::memories(&client, user, query).await }).await
    }

    async fn owner_of(&self, id: MemoryId) -> Result<Option<UserId>> {
        self.primary.read(|client| async move { read::owner_of(&client, id).await }).await
    }

    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>> {
        self.primary.read(|client| async move { read::summaries(&client, user, query).await }).await
    }

    async fn summaries_with(&self, user: &UserId, query: &PartQuery) -> Result<Vec<Summary>> {
        let read = |client: Connection| async move {
            let unnoted = read::has_unnoted_summaries(&client, user);
            let (unnoted, found) = tokio::join!(unnoted, read::summaries_with(&client, user, query));
            Outcome::Ok(if unnoted? { None } else { Some(found?) })
        };
        if let Some(found) = self.primary.read(read).await? {
            return Ok(found);
        }
        apply::catch_up(&self.primary, user).await?;
        self.primary.read(|client| async move { read::summaries_with(&client, user, query).await }).await
    }

    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>> {
        let extensions = self.extensions;
        self.recall_snapshot(|client| async move { search::search(&client, user, query, extensions).await })
            .await
    }

    async fn nearest(&self, user: &UserId, query: &VectorQuery) -> Result<Option<Vec<Hit>>> {
        if !self.extensions.halfvec {
            return Ok(None);
        }
        self.large_users.index(&self.primary, user, query, self.hnsw_from);
        let found = self
            .recall_snapshot(|client| async move { vectors::nearest(&client, user, query).await })
            .await?;
        Ok(Some(found))
    }

    // The head may come from the replica or from the primary. What changed comes from the primary: a server that lags behind the
    // one with the head would leave items out, and they would not be asked for again.
    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>> {
        Box::pin(
            self.primary.read_snapshot(|client| async move { feed::feed(&client, user, after, limit).await }),
        )
        .await
    }

    async fn vectors_since(&self, user: &UserId, model: &str, after: u64) -> Result<Vec<StoredVector>> {
        self.primary
            .read(|client| async move { feed::vectors_since(&client, user, model, after).await })
            .await
    }

    async fn segments(&self, user: &UserId, space: &str, from: u64) -> Result<Vec<Segment>> {
        self.recall(|client| async move { feed::segments(&client, user, space, from).await }).await
    }

    async fn segment_sizes(&self, user: &UserId, space: &str) -> Result<Vec<SegmentSize>> {
        self.primary.read(|client| async move { feed::segment_sizes(&client, user, space).await }).await
    }

    async fn progress(&self, user: &UserId, space: &str) -> Result<u64> {
        self.primary.read(|client| async move { read::progress(&client, user, space).await }).await
    }

    async fn behind(&self, space: &str, gap: u64, limit: u32) -> Result<Vec<UserId>> {
        self.behind.users(&self.primary, space, gap, limit).await
    }

    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        self.primary.read(|client| async move { read::jobs(&client, user, query).await }).await
    }

    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>> {
        Ok(self.lease(request).await?)
    }

    async fn job_enqueued(&self) {
        self.wake.heard().await;
    }

    async fn requests(&self, user: &UserId, query: &MetricQuery) -> Result<Vec<RequestMetric>> {
        self.primary.read(|client| async move { read::requests(&client, user, query).await }).await
    }

    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>> {
        self.primary.read(|client| async move { read::key_by_hash(&client, hash).await }).await
    }

    async fn keys(&self, query: &KeyQuery) -> Result<Vec<ApiKey>> {
        self.primary.read(|client| async move { read::keys(&client, query).await }).await
    }

    async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth> {
        self.primary.read(|client| async move { read::growth(&client, user, since).await }).await
    }

    async fn users(&self, page: Page) -> Result<Vec<UserId>> {
        self.primary.read(|client| async move { read::users(&client, page).await }).await
    }

    fn advice(&self) -> &[String] {
        &self.advice
    }

    async fn check(&self, depth: CheckDepth) -> Result<Health> {
        let location = self.location.clone();
        let check = |client| check::check(client, location.clone(), depth);
        match depth {
            CheckDepth::Quick => self.primary.read_now(check).await,
            // It reads everything, which takes as long as it takes.
            CheckDepth::Thorough => self.primary.run_once(check).await,
        }
    }

    async fn close(&self) -> Result<()> {
        self.wake.stop();
        if let Some(replica) = &self.replica {
            replica.close().await?;
        }
        self.primary.close().await
    }
}
