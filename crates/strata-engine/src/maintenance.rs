//! Background work: vectors of recorded items, and segments that make a cold index quick to load.
//!
//! A worker calls [`Maintenance::maintain`] from time to time. Until an item is embedded, recall ranks it without its vector.
//! A search waits for a moment for what was said just now; no other request waits for this work.

use crate::index::Indexes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use strata_core::ports::{Clock, Compute};
use strata_core::store::{Head, Store};

use crate::index::{SEGMENT_ITEMS, SEGMENT_SPACE, is_indexed, spoken, write_segment};
use strata_core::error::{Error, Result};
use strata_core::id::UserId;
use strata_core::ports::{Embedder, EmbedderCost, Passage};
use strata_core::store::{Change, ChangeSet, Item, TurnQuery};
use strata_core::vector::{ItemVector, Vector};

/// How many items are embedded at once: few enough that a question never waits long for the processor.
const EMBED_BATCH: u32 = 32;

/// The most batches that are embedded while a search waits. A user who is further behind waits for the background.
const CATCH_UP_BATCHES: u64 = 2;

/// How many users one round serves.
const USERS_A_ROUND: u32 = 64;

/// Which items are embedded. The evolution plan says never all turns; the memory-proxy design embeds them all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedItems {
    /// All items with a local encoder; only derived items if embedding costs money.
    #[default]
    Auto,
    /// Memories, summaries, and turns that clients mark with `high_value`.
    Derived,
    /// All items.
    All,
}

/// The result of one batch of a user.
struct Batch {
    worked: bool,
    /// The changes of the user that still wait.
    waiting: u64,
}

/// Segments and vectors, made in the background.
#[derive(Clone)]
pub struct Maintenance {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) compute: Arc<dyn Compute>,
    pub(crate) indexes: Option<Arc<Indexes>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) embed: EmbedItems,
    pub(crate) embedding: Arc<Embedding>,
    pub(crate) short: Arc<Short>,
}

/// Users with many changes since their last segment and few items, and how far they were then. They are looked at again after
/// their next change: a process to which nothing happens does nothing.
#[derive(Debug, Default)]
pub(crate) struct Short(Mutex<HashMap<UserId, Head>>);

impl Short {
    fn is_known(&self, user: &UserId, head: &Head) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(user) == Some(head)
    }

    fn note(&self, user: UserId, head: Head, wrote: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wrote {
            known.remove(&user)
        } else {
            known.insert(user, head)
        };
    }
}

/// How far the embedding is, as the last round saw it.
#[derive(Debug, Default)]
pub(crate) struct Embedding {
    embedded: AtomicU64,
    waiting: AtomicU64,
}

/// How far the embedding of recorded items is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// The items that this process has embedded.
    pub embedded: u64,
    /// The changes that wait to be embedded, over the users that the last round served: at most 64, furthest behind first.
    pub waiting: u64,
}

impl Maintenance {
    /// Does some of the pending work, for any user, and returns whether there was any.
    pub(crate) async fn maintain(&self) -> Result<bool> {
        let wrote = self.write_segments().await?;
        match self.embed_items().await {
            // The segments are progress, so the failure is reported when nothing else is left to do.
            Err(_) if wrote => Ok(true),
            embedded => Ok(embedded? || wrote),
        }
    }

    /// Writes the next segments of some users, and returns whether there were any.
    pub async fn write_segments(&self) -> Result<bool> {
        let Some(indexes) = &self.indexes else { return Ok(false) };
        let mut worked = false;
        let gap = u64::from(SEGMENT_ITEMS) - 1;
        for user in self.store.behind(SEGMENT_SPACE, gap, USERS_A_ROUND).await? {
            let (store, compute) = (self.store.as_ref(), self.compute.as_ref());
            let head = store.head(&user).await?;
            if self.short.is_known(&user, &head) {
                continue;
            }
            let wrote = write_segment(store, compute, indexes, &user, self.clock.now()).await?;
            self.short.note(user, head, wrote);
            worked |= wrote;
        }
        Ok(worked)
    }

    /// Embeds the next items of some users, and returns whether there were any.
    pub async fn embed_items(&self) -> Result<bool> {
        let Some(embedder) = &self.embedder else { return Ok(false) };
        let (mut worked, mut waiting, mut failure) = (false, 0, None);
        for user in self.store.behind(embedder.model(), 0, USERS_A_ROUND).await? {
            // A text of one user that cannot be embedded does not delay other users.
            match self.embed_some(embedder.as_ref(), &user).await {
                Ok(batch) => {
                    worked |= batch.worked;
                    waiting += batch.waiting;
                }
                Err(error) => failure = Some(error),
            }
        }
        self.embedding.waiting.store(waiting, Ordering::Relaxed);
        match failure {
            Some(error) if !worked => Err(error),
            _ => Ok(worked),
        }
    }

    /// How far the embedding is; `None` without an embedder.
    pub fn embedding(&self) -> Option<EmbeddingProgress> {
        self.embedder.as_ref()?;
        let Embedding { embedded, waiting } = self.embedding.as_ref();
        Some(EmbeddingProgress {
            embedded: embedded.load(Ordering::Relaxed),
            waiting: waiting.load(Ordering::Relaxed),
        })
    }

    /// Works until nothing is pending.
    pub async fn maintain_all(&self) -> Result<()> {
        while self.maintain().await? {}
        Ok(())
    }

    /// Embeds what a user has said just now, if it is little and costs nothing, so that a question can find it by its
    /// meaning at once. A failure is the background's to report.
    pub(crate) async fn catch_up(&self, user: &UserId) {
        let local = self.embedder.as_ref().filter(|embedder| embedder.cost() == EmbedderCost::Local);
        let Some(embedder) = local else { return };
        let (Ok(after), Ok(head)) =
            (self.store.progress(user, embedder.model()).await, self.store.head(user).await)
        else {
            return;
        };
        let batches = head.revision.saturating_sub(after).div_ceil(u64::from(EMBED_BATCH));
        if batches <= CATCH_UP_BATCHES {
            for _ in 0..batches {
                let _ = self.embed_some(embedder.as_ref(), user).await;
            }
        }
    }

    /// Embeds a user's next items.
    async fn embed_some(&self, embedder: &dyn Embedder, user: &UserId) -> Result<Batch> {
        let model = embedder.model();
        let after = self.store.progress(user, model).await?;
        let head = self.store.head(user).await?;
        let items = self.store.feed(user, after, EMBED_BATCH).await?;
        let full = items.len() >= EMBED_BATCH as usize;
        let last = items.last().map_or(after, |(revision, _)| *revision);
        // Revisions without an item are skipped together with the items before them.
        let upto = if full { last } else { last.max(head.revision) };
        let wanted: Vec<&Item> =
            items.iter().map(|(_, item)| item).filter(|item| self.is_embedded(embedder, item)).collect();
        let mut passages = Vec::with_capacity(wanted.len());
        for item in &wanted {
            passages
                .push(Passage { context: self.said_before(user, item, &items).await?, text: spoken(item) });
        }
        let vectors =
            if passages.is_empty() { Vec::new() } else { embedder.embed_passages(&passages).await? };
        if vectors.len() != passages.len() {
            return Err(Error::unavailable(format!(
                "embedder `{model}` gave {} vectors for {} texts; they are embedded again later",
                vectors.len(),
                passages.len()
            )));
        }
        self.embedding.embedded.fetch_add(vectors.len() as u64, Ordering::Relaxed);
        let vectors = wanted.iter().zip(vectors).map(|(item, values)| ItemVector {
            item: item.id(),
            model: model.to_owned(),
            vector: Vector::quantise(&values),
        });
        let changes = vec![
            Change::PutVectors(vectors.collect()),
            Change::SetProgress { space: model.to_owned(), revision: upto },
        ];
        self.store.apply(user, ChangeSet::new(self.clock.now(), changes)).await?;
        Ok(Batch { worked: upto > after, waiting: head.revision.saturating_sub(upto) })
    }

    fn is_embedded(&self, embedder: &dyn Embedder, item: &Item) -> bool {
        let all = match self.embed {
            EmbedItems::All => true,
            EmbedItems::Derived => false,
            EmbedItems::Auto => embedder.cost() == EmbedderCost::Local,
        };
        match item {
            Item::Turn(turn) => {
                turn.hidden.is_none() && !turn.content.trim().is_empty() && (all || turn.notes.high_value)
            }
            // Recall searches neither rolling summaries nor the lower levels of a tree.
            Item::Memory(_) | Item::Summary(_) => is_indexed(item),
        }
    }

    /// The text of the turn just before this one in its session.
    async fn said_before(&self, user: &UserId, item: &Item, batch: &[(u64, Item)]) -> Result<Option<String>> {
        let Item::Turn(turn) = item else { return Ok(None) };
        let Some(seq) = turn.seq.checked_sub(1) else { return Ok(None) };
        let known = batch.iter().map(|(_, item)| item).find(
            |other| matches!(other, Item::Turn(other) if other.session == turn.session && other.seq == seq),
        );
        if let Some(known) = known {
            return Ok(Some(spoken(known)));
        }
        let query = TurnQuery::Range { session: turn.session.clone(), after: seq.checked_sub(1), limit: 1 };
        Ok(self.store.turns(user, &query).await?.pop().map(|turn| spoken(&Item::Turn(turn))))
    }
}
