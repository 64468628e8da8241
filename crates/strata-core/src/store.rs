//! The storage port, and the values that travel through it.
//!
//! A write is one value, a [`ChangeSet`] with its preconditions, applied all or nothing: a folder of files can honour that
//! as well as a database can. A read is a query that is bound to one user, apart from the few that [`Store`] names. Start
//! reading at [`Store`].
//!
//! Every sentence of the contract below has a case in the conformance suite, and each backend passes the whole suite.

mod change;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod in_memory;
mod query;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use change::{
    AppendedTurn, Applied, Change, ChangeSet, Expectation, Forget, Idempotency, Removed, SESSION_PURPOSES,
    Segment, SegmentSize, session_space,
};
pub use in_memory::InMemoryStore;
pub use query::{
    Hit, Item, ItemKinds, ItemRef, JobQuery, Keep, KeyQuery, MOST_TESTED, MemoryQuery, MemorySelect,
    MetricQuery, Page, PartQuery, StoredVector, SummaryQuery, TextMatch, TextQuery, TurnQuery, VectorQuery,
};

use crate::error::Result;
use crate::id::{LeaseId, MemoryId, SessionId, UserId};
use crate::job::{Job, Lease};
use crate::key::{ApiKey, KeyHash};
use crate::memory::Memory;
use crate::metric::RequestMetric;
use crate::session::Session;
use crate::summary::Summary;
use crate::turn::Turn;

/// Stores the data of all users.
///
/// **Isolation.** Every call names its user and neither sees nor changes the data of another user: an id that belongs to
/// another user is as unknown as one that never existed. The only exceptions are [`Store::lease_job`], [`Store::job_enqueued`], [`Store::behind`],
/// [`Store::users`], [`Store::owner_of`], [`Store::key_by_hash`], [`Store::keys`], [`Store::check`] and [`Store::close`],
/// which serve the process itself.
///
/// **Durability.** When [`Store::apply`] returns, the written data survives the death of the process and, if the medium
/// allows, of the machine. A read that begins afterwards, in any process, sees it.
///
/// **Assumptions.** Texts hold no NUL character and are within the engine's size limits: the engine has checked both. Calls come
/// concurrently, from several threads and processes. An id may exist already; then the call is a conflict.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Checks the expectations of `changes`, then applies all of its changes for `user` in their order, or nothing.
    ///
    /// - Every expectation is checked before the first change, so a change cannot break an expectation of its own set. If
    ///   one does not hold, nothing is applied and the call fails with a conflict that may be tried again. No other writer
    ///   comes between the check and the changes.
    /// - With an idempotency key that was seen before, nothing is checked or applied, and the first answer is given again,
    ///   marked as replayed; the same key with another fingerprint is a conflict. That holds until the answer is pruned.
    /// - Appended turns are numbered from the session's next `seq`, without gaps, in the order given, also under
    ///   concurrent writers; a session that does not exist is created. An id that exists already is a conflict.
    /// - A session's version rises with each change set that appends turns to it or replaces its state, and with no other.
    ///   A session that the user does not have is in version 0. A version is never used again for the same name, also when
    ///   the session is forgotten and created anew.
    /// - A change that names something the user does not have fails with *not found*.
    /// - A second `processing` summary for a session is a conflict.
    /// - Finishing a job under a lease that is not the current one is a conflict, so that a result which travels in the
    ///   same change set is stored by one worker only.
    /// - An API key whose id the user has, or whose hash any user has, is a conflict. The key names the user of the call.
    /// - Each change set that changes what recall can see raises the user's revision, by about as many as it changes
    ///   items; all items it changed carry the revision it leads to.
    async fn apply(&self, user: &UserId, changes: ChangeSet) -> Result<Applied>;

    /// The user's revision and epoch; zeros for a user that does not exist.
    async fn head(&self, user: &UserId) -> Result<Head>;

    /// A session without its turns.
    async fn session(&self, user: &UserId, session: &SessionId) -> Result<Option<Session>>;

    /// The user's sessions, the last written to first.
    async fn sessions(&self, user: &UserId, page: Page) -> Result<Vec<Session>>;

    /// The turns a query selects, hidden ones included unless the query says otherwise. Ids that do not exist are left
    /// out. [`TurnQuery::Range`] and [`TurnQuery::Hidden`] come by ascending `seq`, [`TurnQuery::Ids`] in the order of the ids,
    /// [`TurnQuery::Recent`] newest first by `created_at`, and leaves hidden turns out, as well as those that fail its
    /// [`Keep`], of which at most [`MOST_TESTED`] are read.
    async fn turns(&self, user: &UserId, query: &TurnQuery) -> Result<Vec<Turn>>;

    /// The memories a query selects. [`MemorySelect::Current`], [`MemorySelect::All`] and [`MemorySelect::Hidden`] come newest
    /// `recorded_at` first, [`MemorySelect::Ids`] in the order of the ids, in any state, [`MemorySelect::History`] oldest first: all
    /// that the memory replaced, itself, and all that replaced it; empty if the id does not exist. The page is cut from the
    /// memories that meet all other criteria, [`MemoryQuery::keep`] included.
    async fn memories(&self, user: &UserId, query: &MemoryQuery) -> Result<Vec<Memory>>;

    /// The user who has a memory with this id, in any state, for callers that may ask for any user. If
    /// several users have one, the first of them by name; [`UserId::global`] is never the answer.
    async fn owner_of(&self, id: MemoryId) -> Result<Option<UserId>>;

    /// A session's summaries, the one that reaches furthest first.
    async fn summaries(&self, user: &UserId, query: &SummaryQuery) -> Result<Vec<Summary>>;

    /// The current summaries of the user's sessions that have entries in a part, the session last written to first. A
    /// session's current summary is the completed summary of its window that reaches furthest; older ones do not count.
    async fn summaries_with(&self, user: &UserId, query: &PartQuery) -> Result<Vec<Summary>>;

    /// Full-text search over the items that recall may see: visible turns and memories believed at `as_of`, best first.
    ///
    /// Scores are positive and comparable within one answer only. Items that were applied before the call are found,
    /// whether or not they have been indexed. [`TextMatch::Words`] finds items that share at least one analysed term with the query.
    /// [`TextMatch::Similar`] finds items that hold the query as a substring, or a word whose trigrams resemble a word
    /// of the query; scores there are similarities from 0 to 1. With [`TextQuery::keep`], items that fail the test are left
    /// out, and items beyond the best [`MOST_TESTED`] are not read.
    async fn search(&self, user: &UserId, query: &TextQuery) -> Result<Vec<Hit>>;

    /// The items that recall may see whose vectors are nearest to a vector, best first; scores are cosines, and items with
    /// a cosine of 0 or less are left out. `None` if the store has no vector index of its own: the caller then compares the
    /// vectors of [`Store::vectors_since`] itself.
    async fn nearest(&self, _user: &UserId, _query: &VectorQuery) -> Result<Option<Vec<Hit>>> {
        Ok(None)
    }

    /// The items that changed after a revision: turns, memories and completed summaries, each once, as they are now, by
    /// the revision of their last change. Items of one revision come together, so the answer may be longer than `limit`.
    /// Destroyed items are not in the feed; [`Head::epoch`] rises instead.
    async fn feed(&self, user: &UserId, after: u64, limit: u32) -> Result<Vec<(u64, Item)>>;

    /// The vectors of a model that were stored after the given [`Head::vectors`], oldest first; 0 selects all of them.
    async fn vectors_since(&self, user: &UserId, model: &str, after: u64) -> Result<Vec<StoredVector>>;

    /// The stored segments of a space that begin at revision `from` or later, by the revisions they cover.
    async fn segments(&self, user: &UserId, space: &str, from: u64) -> Result<Vec<Segment>>;

    /// How large the stored segments of a space are, by the revisions they cover. Their content is not read.
    async fn segment_sizes(&self, user: &UserId, space: &str) -> Result<Vec<SegmentSize>>;

    /// The revision up to which a space has been worked through; 0 if it has not been begun.
    async fn progress(&self, user: &UserId, space: &str) -> Result<u64>;

    /// Users whose revision is more than `gap` ahead of their progress in `space`, furthest behind first. A store that is shared
    /// by several processes may leave out, for some minutes, users that only other processes have written to.
    async fn behind(&self, space: &str, gap: u64, limit: u32) -> Result<Vec<UserId>>;

    /// The user's jobs, newest first.
    async fn jobs(&self, user: &UserId, query: &JobQuery) -> Result<Vec<Job>>;

    /// Takes the job that has waited longest and is due, of any user or of the one that the request names, whose session no live lease holds; or one whose
    /// lease has ended. Its attempts rise by one. `None` when nothing is due.
    ///
    /// If the request says which user was served last, the users take turns: the next one with such a job is served, in an order
    /// that is the store's own, and the last one again only after all others. Of its jobs, the one is taken that has waited longest.
    ///
    /// A clock may have been ahead: a job whose times lie more than [`CLOCK_SLACK`] after the present is due, and a lease
    /// that ends more than a day after it has ended.
    async fn lease_job(&self, request: &LeaseRequest) -> Result<Option<Job>>;

    /// Returns when another call, of any process, has enqueued a job that is due. It is a hint, for workers that also look from
    /// time to time: a notice may be lost, and a store that cannot tell never returns.
    async fn job_enqueued(&self) {
        std::future::pending().await
    }

    /// The user's request rows, newest first.
    async fn requests(&self, user: &UserId, query: &MetricQuery) -> Result<Vec<RequestMetric>>;

    /// The API key with this hash, of any user and in any state.
    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>>;

    /// API keys of all users, the newest first.
    async fn keys(&self, query: &KeyQuery) -> Result<Vec<ApiKey>>;

    /// How much of each kind the user has, in any state, and how much of it came on each day since a moment: turns by the
    /// time at which they were said, memories by the time at which they were recorded. Days are counted from the moment,
    /// 24 hours each, oldest first; days on which nothing came are left out.
    async fn growth(&self, user: &UserId, since: Timestamp) -> Result<Growth>;

    /// The users that have anything stored, by name, [`UserId::global`] included. A user who has only API keys is not among
    /// them.
    async fn users(&self, page: Page) -> Result<Vec<UserId>>;

    /// How many rows of the user reads of this process have passed over, because they are damaged. A read returns all other
    /// rows.
    fn unreadable(&self, _user: &UserId) -> u64 {
        0
    }

    /// The user's files that cannot be used and were left alone, each with its line and the reason. They are those of the last look:
    /// no file is read. A store without files that a person edits has none.
    async fn unusable_files(&self, _user: &UserId) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What the medium lacks, each with what a person has to do about it. The store works without it, more slowly or with fewer results,
    /// so it is no problem of [`Store::check`]. It is what was found when the store was opened: nothing is read. A store that needs nothing has
    /// none.
    fn advice(&self) -> &[String] {
        &[]
    }

    /// Checks whether the store can be read and written, counts its data and lists its problems.
    async fn check(&self, depth: CheckDepth) -> Result<Health>;

    /// Finishes the accepted writes and releases files and locks. Later calls fail as unavailable.
    async fn close(&self) -> Result<()>;
}

/// How much a user has, and when it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Growth {
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Memories in any state.
    pub memories: u64,
    /// The days on which something came, oldest first.
    pub days: Vec<GrowthDay>,
}

impl Growth {
    /// Makes the list of days from counts of turns and of memories by day.
    pub fn with_days(mut self, turns: Vec<(u32, u64)>, memories: Vec<(u32, u64)>) -> Self {
        let mut days = std::collections::BTreeMap::<u32, GrowthDay>::new();
        for (day, count) in turns {
            days.entry(day).or_insert(GrowthDay { day, ..GrowthDay::default() }).turns += count;
        }
        for (day, count) in memories {
            days.entry(day).or_insert(GrowthDay { day, ..GrowthDay::default() }).memories += count;
        }
        self.days = days.into_values().collect();
        self
    }
}

/// The new turns and memories of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrowthDay {
    /// The number of whole days since the moment that was asked for.
    pub day: u32,
    /// Turns that were said on that day.
    pub turns: u64,
    /// Memories that were recorded on that day.
    pub memories: u64,
}

/// The microseconds of a day, for [`Store::growth`].
pub const DAY_MICROS: i64 = 86_400_000_000;

/// How much [`Store::check`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckDepth {
    /// A few rows: whether the store can be read and written. It takes milliseconds.
    Quick,
    /// Everything: integrity, sequences, the index against the turns.
    Thorough,
}

/// The counters by which an index in memory knows whether it is up to date with a user's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Rises with each change to what recall can see.
    pub revision: u64,
    /// Rises when something is destroyed: an index has to begin anew.
    pub epoch: u64,
    /// Rises with each change set that stores vectors.
    #[serde(default)]
    pub vectors: u64,
}

/// Asks for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseRequest {
    /// The id of the lease that this call may create.
    pub lease: LeaseId,
    /// The name of the worker that asks.
    pub worker: String,
    /// The present time.
    pub now: Timestamp,
    /// The end of the lease.
    pub until: Timestamp,
    /// Only jobs of this user.
    pub user: Option<UserId>,
    /// The user that was served last. With it users take turns, so that the many jobs of one do not hold up the others.
    pub after: Option<UserId>,
}

/// A time that lies further after the present than this was written under a clock that was ahead.
pub const CLOCK_SLACK: SignedDuration = SignedDuration::from_hours(1);

/// A lease that ends further after the present than this was taken under a clock that was ahead.
const LONGEST_LEASE: SignedDuration = SignedDuration::from_hours(24);

impl LeaseRequest {
    /// Later times were written under a clock that was ahead.
    pub fn latest(&self) -> Timestamp {
        self.now.checked_add(CLOCK_SLACK).unwrap_or(Timestamp::MAX)
    }

    /// No lease ends later than this.
    pub fn latest_end(&self) -> Timestamp {
        self.now.checked_add(LONGEST_LEASE).unwrap_or(Timestamp::MAX)
    }

    /// Whether a worker holds a job.
    pub(crate) fn is_held(&self, job: &Job) -> bool {
        let live = |lease: &Lease| lease.until > self.now && lease.until <= self.latest_end();
        job.updated_at <= self.latest() && job.lease.as_ref().is_some_and(live)
    }

    /// Whether a queued job may be taken.
    pub(crate) fn is_due(&self, job: &Job) -> bool {
        job.run_at <= self.now || job.created_at.max(job.updated_at) > self.latest()
    }
}

/// The result of [`Store::check`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The backend and the place of its data, without secrets.
    pub location: String,
    /// The version of the stored format.
    pub format_version: u32,
    /// Users with anything stored.
    pub users: u64,
    /// All sessions.
    pub sessions: u64,
    /// All turns.
    pub turns: u64,
    /// All memories.
    pub memories: u64,
    /// Items not yet in the text index.
    pub unindexed: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// The problems, each with its remedy; empty if there are none.
    pub problems: Vec<String>,
}
