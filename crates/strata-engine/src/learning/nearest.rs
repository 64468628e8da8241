//! The memories that a new statement may be about.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::Learning;
use super::reconcile::Target;
use strata_core::error::Result;
use strata_core::hash;
use strata_core::id::UserId;
use strata_core::memory::Memory;
use strata_core::ports::{Embedder, EmbedderCost, Passage};
use strata_core::store::{MemoryQuery, MemorySelect, Page};
use strata_language::text;

/// The most memories that a reader compares with a statement. The line that a statement changes is among the five nearest in
/// all but one of a hundred cases.
const MAX_CANDIDATES: usize = 5;
/// The least cosine of a candidate. The memory that a statement changes lies below it in one of a hundred cases.
const LEAST_COSINE: f32 = 0.12;
/// A user with at most this many current memories needs no search: all of them are compared by their vectors.
const SMALL: u32 = 64;
/// The number of vectors that are kept.
const CACHED_VECTORS: usize = 4_096;

/// Vectors of statements that were compared before.
#[derive(Clone)]
pub(crate) struct StatementVectors(Arc<Mutex<LruCache<u64, Arc<[f32]>>>>);

impl Default for StatementVectors {
    fn default() -> Self {
        let size = NonZeroUsize::new(CACHED_VECTORS).unwrap_or(NonZeroUsize::MIN);
        Self(Arc::new(Mutex::new(LruCache::new(size))))
    }
}

impl StatementVectors {
    /// The vectors of texts, in their order.
    async fn of(&self, embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Arc<[f32]>>> {
        let key = |text: &str| hash::fnv_append(hash::fnv(embedder.model().as_bytes()), text.as_bytes());
        let known =
            |text: &&str| self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key(text)).cloned();
        let mut vectors: Vec<Option<Arc<[f32]>>> = texts.iter().map(known).collect();
        let missing: Vec<usize> = (0..texts.len()).filter(|place| vectors[*place].is_none()).collect();
        let passages: Vec<Passage> =
            missing.iter().map(|place| Passage { context: None, text: texts[*place].to_owned() }).collect();
        if !passages.is_empty() {
            let made = embedder.embed_passages(&passages).await?;
            let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (place, vector) in missing.into_iter().zip(made) {
                let vector: Arc<[f32]> = vector.into();
                cache.put(key(texts[place]), Arc::clone(&vector));
                vectors[place] = Some(vector);
            }
        }
        Ok(vectors.into_iter().map(Option::unwrap_or_default).collect())
    }
}

impl Learning {
    /// All current memories of a user with few of them; `None` for others. They belong to the same agent, and are bound to
    /// this session or to none.
    pub(super) async fn all_memories(&self, user: &UserId, target: &Target) -> Result<Option<Vec<Memory>>> {
        let current = MemoryQuery::new(MemorySelect::Current { as_of: None });
        let query = MemoryQuery { page: Page::first(SMALL + 1), ..current };
        let mut memories = self.store.memories(user, &query).await?;
        if memories.len() > SMALL as usize {
            return Ok(None);
        }
        memories.retain(|memory| self.may_touch(user, target, memory));
        Ok(Some(memories))
    }

    /// The places of the memories nearest to a text, nearest first.
    pub(super) async fn nearest(&self, said: &str, memories: &[Memory]) -> Result<Vec<usize>> {
        let local = self.embedder.as_ref().filter(|embedder| embedder.cost() == EmbedderCost::Local);
        let Some(embedder) = local else { return Ok(by_terms(said, memories)) };
        let mut texts = vec![said];
        texts.extend(memories.iter().map(|memory| memory.content.as_str()));
        let vectors = self.vectors.of(embedder.as_ref(), &texts).await?;
        let Some((said, others)) = vectors.split_first() else { return Ok(Vec::new()) };
        let cosine = |other: &Arc<[f32]>| said.iter().zip(other.iter()).map(|(a, b)| a * b).sum::<f32>();
        Ok(best(others.iter().map(cosine), LEAST_COSINE))
    }
}

/// The places of the memories that share most terms with a text; of equals the newest.
fn by_terms(said: &str, memories: &[Memory]) -> Vec<usize> {
    let terms = text::query_terms(said);
    let shared = |memory: &Memory| {
        let others = text::query_terms(&memory.content);
        terms.iter().filter(|term| others.contains(term)).count()
    };
    let mut ranked: Vec<(usize, usize)> = memories.iter().map(shared).enumerate().collect();
    ranked.sort_by_key(|(place, shared)| std::cmp::Reverse((*shared, memories[*place].recorded_at)));
    ranked.into_iter().take(MAX_CANDIDATES).map(|(place, _)| place).collect()
}

fn best(values: impl Iterator<Item = f32>, least: f32) -> Vec<usize> {
    let mut ranked: Vec<(usize, f32)> = values.enumerate().filter(|(_, value)| *value >= least).collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranked.into_iter().take(MAX_CANDIDATES).map(|(place, _)| place).collect()
}
