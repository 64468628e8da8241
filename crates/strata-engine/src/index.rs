//! An index in memory of all of a user's items: exact statistics, the same for every backend.
//!
//! Ranking needs statistics over all of a user's items: how rare a term is, which items are neighbours, how high the
//! best score is. Databases compute these differently, and their statistics also depend on the data of other users. So
//! the index keeps a user's items as numbers in memory while that user asks questions. It is loaded on demand from
//! stored segments. Before each question it is brought up to date with the store's feed, which also brings the changes
//! of other processes. It is dropped when all indexes together exceed a budget of bytes. The index is never the source
//! of truth: it can always be rebuilt from the store.
//!
//! Start reading at [`Indexes::fresh`], then [`user::UserIndex`].

mod document;
mod features;
mod fingerprint;
mod learned;
mod lists;
mod load;
mod maintain;
mod means;
mod postings;
mod segment;
mod similar_words;
#[cfg(test)]
mod tests;
mod user;
mod vector_table;
mod vocabulary;

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use lru::LruCache;

pub(crate) use document::{Doc, Document, Marks, Placement};
pub(crate) use features::{TermHash, is_latin, question_terms, question_words, speaker, spoken, term_hash};
pub(crate) use user::{UserIndex, is_indexed};

use vector_table::VectorTables;

pub use fingerprint::TextFingerprint;
#[cfg(feature = "fuzz")]
pub(crate) use segment::fuzz as fuzz_segment;

pub(crate) use maintain::{SEGMENT_ITEMS, write_segment};
pub use segment::SEGMENT_SPACE;

use strata_core::error::Result;
use strata_core::id::UserId;
use strata_core::lexicon::Lexicon;
use strata_core::memory::Memory;
use strata_core::ports::{self, Compute, Load};
use strata_core::store::{Head, Item, Segment, Store};

/// The number of items in one read of the feed.
const FEED_BATCH: u32 = 2_000;

/// Up to this many items are analysed on the calling thread: at 40 µs for an item, this takes less than a millisecond.
const INLINE_ITEMS: usize = 16;

/// The indexes of the users who asked most recently.
pub(crate) struct Indexes {
    lexicon: Arc<dyn Lexicon>,
    budget: usize,
    users: Mutex<Users>,
    /// The vectors of users who are too large for an index.
    pub(crate) tables: VectorTables,
}

type Users = LruCache<UserId, CachedIndex>;

struct CachedIndex {
    index: Arc<RwLock<UserIndex>>,
    bytes: usize,
}

/// Changes that are about to be added to an index.
struct FeedBatch {
    /// The revision that the index must have before.
    after: u64,
    /// The revision of the index afterwards, if there are no more changes.
    upto: u64,
    /// Whether there may be more changes.
    full: bool,
    changes: Vec<(u64, Item)>,
}

/// A user's index, which was up to date when it was returned.
#[derive(Clone)]
pub(crate) struct FreshIndex(Arc<RwLock<UserIndex>>);

impl FreshIndex {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, UserIndex> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the turns from which all memories were learned.
    pub(crate) fn note_memories(&self, memories: &[Memory]) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).learned.complete(memories);
    }

    /// Records the exact texts of items that were loaded from segments.
    pub(crate) fn note_texts(&self, items: impl IntoIterator<Item = Item>) {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for item in items {
            if let Some(doc) = index.doc(&item.id()) {
                index.fingerprints.note(doc, &item);
            }
        }
    }
}

impl Indexes {
    /// Creates a cache of indexes that take about `budget` bytes together. Tables of vectors take as many at most.
    pub(crate) fn new(lexicon: Arc<dyn Lexicon>, budget: usize) -> Self {
        let tables = VectorTables::new(budget);
        Self { lexicon, budget, users: Mutex::new(LruCache::unbounded()), tables }
    }

    /// The words and their vectors.
    pub(crate) fn lexicon(&self) -> &dyn Lexicon {
        self.lexicon.as_ref()
    }

    /// The user's index, brought up to date with the store's `head`, which the caller has just read, and with the
    /// vectors of `model`.
    pub(crate) async fn fresh(
        self: &Arc<Self>,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        mut head: Head,
        model: Option<&str>,
    ) -> Result<FreshIndex> {
        let mut known = self.lock().peek(user).map(|cached| Arc::clone(&cached.index));
        if let Some(index) = &known {
            let (seen, outdated) = {
                let index = index.read().unwrap_or_else(PoisonError::into_inner);
                (index.head, index.is_outdated())
            };
            if seen.revision > head.revision {
                // Another question has added changes that were written after the caller read the head. If the index is
                // still ahead of a new head, the store was restored from an older copy.
                head = store.head(user).await?;
            }
            // Something was erased, or much of the index is outdated: load it again.
            if seen.epoch != head.epoch || seen.revision > head.revision || outdated {
                known = None;
            }
        }
        let index = match known {
            Some(index) => index,
            None => Arc::new(RwLock::new(self.load(store, compute, user, head).await?)),
        };
        self.catch_up(store, compute, user, &index, head).await?;
        if let Some(model) = model {
            self.catch_up_vectors(store, compute, user, &index, model, head).await?;
        }
        self.keep(user, &index);
        Ok(FreshIndex(index))
    }

    /// Loads an index from the stored segments.
    async fn load(
        self: &Arc<Self>,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        head: Head,
    ) -> Result<UserIndex> {
        let stored = store.segments(user, SEGMENT_SPACE, 0).await?;
        let this = Arc::clone(self);
        ports::compute(compute, Load::Long, move || this.decode(&stored, head)).await
    }

    fn decode(&self, stored: &[Segment], head: Head) -> UserIndex {
        let (mut segments, mut revision) = (Vec::with_capacity(stored.len()), 0);
        for segment in stored {
            let read = segment::decode(&segment.bytes).filter(|_| segment.first <= revision + 1);
            // A damaged segment is skipped together with the segments after it. The feed brings their items.
            let Some(read) = read else {
                tracing::warn!(space = SEGMENT_SPACE, first = segment.first, "a stored segment is damaged");
                break;
            };
            segments.push(read);
            revision = segment.last;
        }
        let mut index = load::load(&segments, self.lexicon());
        index.head = Head { revision, epoch: head.epoch, vectors: 0 };
        index.find_closed();
        index
    }

    async fn catch_up(
        self: &Arc<Self>,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        index: &Arc<RwLock<UserIndex>>,
        head: Head,
    ) -> Result<()> {
        loop {
            let after = index.read().unwrap_or_else(PoisonError::into_inner).head.revision;
            if after >= head.revision {
                return Ok(());
            }
            // The limit is the number of missing revisions, because a store may answer a small query faster than a
            // large one.
            let limit = u32::try_from(head.revision - after).unwrap_or(FEED_BATCH).min(FEED_BATCH);
            let changes = store.feed(user, after, limit).await?;
            let batch =
                FeedBatch { after, upto: head.revision, full: changes.len() >= limit as usize, changes };
            // Analysing a few items takes less time than handing them to another thread.
            if batch.changes.len() <= INLINE_ITEMS {
                self.feed(index, batch);
                continue;
            }
            let (this, index) = (Arc::clone(self), Arc::clone(index));
            ports::compute(compute, Load::Long, move || this.feed(&index, batch)).await?;
        }
    }

    /// Adds changes to an index, unless another question has changed the index since they were read.
    fn feed(&self, index: &RwLock<UserIndex>, batch: FeedBatch) {
        let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
        if index.head.revision != batch.after {
            return;
        }
        for (revision, item) in batch.changes {
            index.add_item(&item, self.lexicon.as_ref());
            index.head.revision = revision;
        }
        if !batch.full {
            // Some revisions have no item to index, for instance a change of state.
            index.head.revision = index.head.revision.max(batch.upto);
        }
    }

    async fn catch_up_vectors(
        &self,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        index: &Arc<RwLock<UserIndex>>,
        model: &str,
        head: Head,
    ) -> Result<()> {
        let after = {
            let index = index.read().unwrap_or_else(PoisonError::into_inner);
            if index.vectors.model == model { index.head.vectors } else { 0 }
        };
        if after >= head.vectors {
            return Ok(());
        }
        let vectors = store.vectors_since(user, model, after).await?;
        let (index, model) = (Arc::clone(index), model.to_owned());
        ports::compute(compute, Load::Short, move || {
            let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
            index.add_vectors(&model, vectors);
            // The head must not go further: vectors that were stored after it was read may belong to items that are not
            // in the index yet.
            index.head.vectors = index.head.vectors.max(head.vectors);
        })
        .await
    }

    /// Caches an index, and drops the least recently used ones while all together are too large.
    fn keep(&self, user: &UserId, index: &Arc<RwLock<UserIndex>>) {
        let bytes = index.read().unwrap_or_else(PoisonError::into_inner).bytes();
        let mut users = self.lock();
        users.put(user.clone(), CachedIndex { index: Arc::clone(index), bytes });
        let mut total: usize = users.iter().map(|(_, cached)| cached.bytes).sum();
        while total > self.budget && users.len() > 1 {
            let Some((_, cached)) = users.pop_lru() else { break };
            total -= cached.bytes;
        }
    }

    /// Drops the index and the vectors of a user.
    pub(crate) fn forget(&self, user: &UserId) {
        self.lock().pop(user);
        self.tables.forget(user);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
