//! The reference store: everything in memory, gone with the process.
//!
//! It shows what the contract of [`Store`] means, and serves people who want no file (`memory:`). It is simple rather than
//! fast: one mutex, ordered maps, and scans where a database would use an index; only text search has a real index. Start
//! reading at [`UserData::apply_all`](user_data::UserData::apply_all), then [`table::JournaledTable`], which makes a change
//! set all or nothing.

mod forget;
mod index;
mod jobs;
mod read;
mod table;
mod user_data;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    Applied, Change, ChangeSet, CheckDepth, Growth, Head, Health, Hit, Item, JobQuery, KeyQuery,
    LeaseRequest, MemoryQuery, MetricQuery, Page, PartQuery, Segment, SegmentSize, Store, StoredVector,
    SummaryQuery, TextQuery, TurnQuery,
};
use crate::error::{Error, Result};
use crate::id::{MemoryId, SessionId, UserId};
use crate::job::{Job, JobStatus, Lease};
use crate::key::{ApiKey, KeyHash};
use crate::memory::Memory;
use crate::metric::RequestMetric;
use crate::session::Session;
use crate::summary::Summary;
use crate::turn::Turn;
use user_data::UserData;

/// Keeps everything in memory.
#[derive(Default)]
pub struct InMemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    users: BTreeMap<UserId, UserData>,
}

impl Inner {
    fn keys(&self) -> impl Iterator<Item = &ApiKey> {
        self.users.values().flat_map(|data| data.keys.rows().values())
    }

    /// Refuses keys whose hash another user has.
    fn check_hashes(&self, user: &UserId, changes: &ChangeSet) -> Result<()> {
        for change in &changes.changes {
            let Change::AddKey(key) = change else { continue };
            if self.keys().any(|other| other.user != *user && other.hash == key.hash) {
                return Err(Error::conflict(format!("key `{}` exists already; make another", key.id)));
            }
        }
        Ok(())
    }
}

impl InMemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.inner.lock().map_err(|_| {
            Error::internal("an earlier call failed half-way in the store in memory; restart the process")
        })?;
        if inner.closed {
            return Err(Error::unavailable("the store is closed; open it again"));
        }
        Ok(inner)
    }

    /// The result of `read` on the user's data, or the empty answer for an unknown user.
    fn read<T: Default>(&self, user: &UserId, read: impl FnOnce(&UserData) -> T) -> Result<T> {
        Ok(self.lock()?.users.get(user).map(read).unwrap_or_default())
    }
}

#[async_trait]
impl Store for InMemoryStore {
    async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Applied> {
        let mut inner = self.lock()?;
        inner.check_hashes(user, &changes)?;
        inner.users.entry(user.clone()).or_default().apply_all(user, changes)
    }

    async fn head(&self, user: &UserId) -> Result<Head> {
        self.read(user, UserData::head)
    }

    async fn session(&self, user: &UserId, session: &SessionId) -> Result<Option<Session>> {
        self.read(user, |data| data.session(session))
    }

    async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>> {
        self.read(user, |data| data.sessions(page))
    }

    async fn turns(&self, user: &UserId, query: &TurnQuery) -> Result<Vec<Turn>> {
        self.read(user, |data| data.turns(query))
    }

    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>> {
        self.read(user, |data| data.memories(query))
    }

    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>> {
        self.read(user, |data| data.summaries(query))
    }

    async fn summaries_with(&self, user: &UserId, query: &PartQuery) -> Result<Vec<Summary>> {
        self.read(user, |data| data.summaries_with(query))
    }

    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>> {
        self.read(user, |data| data.search(query))
    }

    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>> {
        self.read(user, |data| data.feed(after, limit))
    }

    async fn vectors_since(&self, user: &UserId, model: &str, after: u64) -> Result<Vec<StoredVector>> {
        self.read(user, |data| data.vectors_since(model, after))
    }

    async fn segments(&self, user: &UserId, space: &str, from: u64) -> Result<Vec<Segment>> {
        self.read(user, |data| data.segments(space, from).cloned().collect())
    }

    async fn segment_sizes(&self, user: &UserId, space: &str) -> Result<Vec<SegmentSize>> {
        let size = |segment: &Segment| SegmentSize {
            first: segment.first,
            last: segment.last,
            bytes: segment.bytes.len() as u64,
        };
        self.read(user, |data| data.segments(space, 0).map(size).collect())
    }

    async fn progress(&self, user: &UserId, space: &str) -> Result<u64> {
        self.read(user, |data| data.progress(space))
    }

    async fn behind(&self, space: &str, gap: u64, limit: u32) -> Result<Vec<UserId>> {
        let inner = self.lock()?;
        let behind = |data: &UserData| data.head().revision.saturating_sub(data.progress(space));
        // A forgotten user has only counters left, and nothing to work through.
        let users = inner.users.iter().filter(|(_, data)| !data.is_empty());
        let users = users.map(|(user, data)| (behind(data), user));
        let mut users: Vec<(u64, &UserId)> = users.filter(|(behind, _)| *behind > gap).collect();
        users.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        Ok(users.into_iter().take(limit as usize).map(|(_, user)| user.clone()).collect())
    }

    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>> {
        self.read(user, |data| data.jobs(query))
    }

    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>> {
        let mut inner = self.lock()?;
        let next = inner
            .users
            .iter()
            .filter(|(user, _)| request.user.as_ref().is_none_or(|only| only == *user))
            .filter_map(|(user, data)| data.next_job(request).map(|job| (user, job)))
            .min_by_key(|(user, job)| {
                // Users take turns in the order of their names: those after the last one, then the others.
                let turn = request.after.as_ref().map(|after| (*user <= after, *user));
                (turn, job.run_at, job.created_at, job.id)
            })
            .map(|(user, job)| (user.clone(), job.clone()));
        let Some((user, mut job)) = next else { return Ok(None) };
        job.status = JobStatus::Leased;
        job.attempts += 1;
        job.lease = Some(Lease { id: request.lease, worker: request.worker.clone(), until: request.until });
        job.updated_at = request.now;
        inner.users.entry(user).or_default().put_leased(job.clone());
        Ok(Some(job))
    }

    async fn requests(&self, user: &UserId, query: &MetricQuery) -> Result<Vec<RequestMetric>> {
        self.read(user, |data| data.requests(query))
    }

    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>> {
        Ok(self.lock()?.keys().find(|key| key.hash == *hash).cloned())
    }

    async fn keys(&self, query: &KeyQuery) -> Result<Vec<ApiKey>> {
        let KeyQuery { id, user, revoked, page } = query;
        let inner = self.lock()?;
        let wanted = |key: &&ApiKey| {
            id.is_none_or(|id| id == key.id)
                && user.as_ref().is_none_or(|user| *user == key.user)
                && (*revoked || key.revoked_at.is_none())
        };
        let mut keys: Vec<&ApiKey> = inner.keys().filter(wanted).collect();
        keys.sort_unstable_by_key(|key| std::cmp::Reverse((key.created_at, key.id)));
        Ok(part(keys.into_iter().cloned(), *page).collect())
    }

    async fn owner_of(&self, id: MemoryId) -> Result<Option<UserId>> {
        let inner = self.lock()?;
        let mut owners = inner.users.iter().filter(|(_, data)| data.memories.contains(&id));
        let owner = owners.find(|(user, _)| **user != UserId::global());
        Ok(owner.map(|(user, _)| user.clone()))
    }

    async fn users(&self, page: Page) -> Result<Vec<UserId>> {
        let inner = self.lock()?;
        let users = inner.users.iter().filter(|(_, data)| !data.is_empty()).map(|(user, _)| user.clone());
        Ok(part(users, page).collect())
    }

    async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth> {
        self.read(user, |data| data.growth(since))
    }

    async fn check(&self, depth: CheckDepth) -> Result<Health> {
        let inner = self.lock()?;
        let mut health = Health {
            location: "memory:".to_owned(),
            format_version: 1,
            users: 0,
            sessions: 0,
            turns: 0,
            memories: 0,
            unindexed: 0,
            bytes: 0,
            problems: Vec::new(),
        };
        for (user, data) in inner.users.iter().filter(|(_, data)| !data.is_empty()) {
            data.count_into(&mut health);
            if depth == CheckDepth::Thorough {
                data.verify(user, &mut health.problems);
            }
        }
        Ok(health)
    }

    async fn close(&self) -> Result<()> {
        let mut inner = self.lock()?;
        inner.closed = true;
        inner.users.clear();
        Ok(())
    }
}

/// The part of a list that a page names.
fn part<T>(list: impl Iterator<Item = T>, page: Page) -> impl Iterator<Item = T> {
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    list.skip(offset).take(page.limit as usize)
}

#[cfg(test)]
mod tests;
