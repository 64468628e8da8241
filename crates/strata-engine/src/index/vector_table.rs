//! The vectors of users who are too large for an index in memory, compared exactly, for stores without a vector index of their
//! own.
//!
//! A table is loaded when its user asks a question, and brought up to date before each question, also with the vectors that
//! another process has stored. Tables together take a budget of bytes; the least recently used are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lru::LruCache;

use strata_core::dot::dot;
use strata_core::error::Result;
use strata_core::id::{ItemId, UserId};
use strata_core::ports::{self, Compute, Load};
use strata_core::store::{Head, Store, StoredVector};
use strata_core::vector::Vector;

/// About how many bytes an item takes beside its components: its id twice, its place and its scale.
const ITEM_BYTES: usize = 64;

/// The tables of the large users who asked most recently.
pub(crate) struct VectorTables {
    budget: usize,
    users: Mutex<LruCache<UserId, Arc<RwLock<VectorTable>>>>,
}

/// All vectors of a user by one model.
#[derive(Default)]
pub(crate) struct VectorTable {
    model: String,
    /// The counters of the user up to which the table is current.
    epoch: u64,
    vectors: u64,
    dimension: usize,
    items: Vec<ItemId>,
    places: HashMap<ItemId, u32>,
    scales: Vec<f32>,
    components: Vec<i8>,
}

impl VectorTables {
    /// Creates a cache of tables that take about `budget` bytes together.
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, users: Mutex::new(LruCache::unbounded()) }
    }

    /// The items of a user whose vectors are nearest to a vector, best first, with their cosines.
    pub(crate) async fn nearest(
        &self,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        model: &str,
        vector: &Vector,
        count: usize,
    ) -> Result<Vec<(ItemId, f32)>> {
        let table = self.fresh(store, compute, user, model).await?;
        let vector = vector.clone();
        ports::compute(compute, Load::Short, move || {
            table.read().unwrap_or_else(PoisonError::into_inner).nearest(&vector, count)
        })
        .await
    }

    /// The user's table, brought up to date with the store.
    async fn fresh(
        &self,
        store: &dyn Store,
        compute: &dyn Compute,
        user: &UserId,
        model: &str,
    ) -> Result<Arc<RwLock<VectorTable>>> {
        let head = store.head(user).await?;
        let known = self.lock().get(user).map(Arc::clone);
        let fits = |table: &Arc<RwLock<VectorTable>>| {
            table.read().unwrap_or_else(PoisonError::into_inner).fits(model, head)
        };
        let table = known.filter(fits).unwrap_or_else(|| {
            let empty = VectorTable { model: model.to_owned(), epoch: head.epoch, ..VectorTable::default() };
            Arc::new(RwLock::new(empty))
        });
        let after = table.read().unwrap_or_else(PoisonError::into_inner).vectors;
        if after < head.vectors {
            let vectors = store.vectors_since(user, model, after).await?;
            let table = Arc::clone(&table);
            ports::compute(compute, Load::Long, move || {
                let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
                table.add(vectors);
                table.vectors = table.vectors.max(head.vectors);
            })
            .await?;
        }
        self.keep(user, &table);
        Ok(table)
    }

    fn keep(&self, user: &UserId, table: &Arc<RwLock<VectorTable>>) {
        let bytes =
            |table: &RwLock<VectorTable>| table.read().unwrap_or_else(PoisonError::into_inner).bytes();
        let mut users = self.lock();
        users.put(user.clone(), Arc::clone(table));
        let mut total: usize = users.iter().map(|(_, table)| bytes(table)).sum();
        while total > self.budget && users.len() > 1 {
            let Some((_, table)) = users.pop_lru() else { break };
            total -= bytes(&table);
        }
    }

    /// Drops the table of a user.
    pub(crate) fn forget(&self, user: &UserId) {
        self.lock().pop(user);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<UserId, Arc<RwLock<VectorTable>>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VectorTable {
    /// Whether the table only has to be added to. A destroyed item is in no feed, so a table of another epoch begins anew.
    fn fits(&self, model: &str, head: Head) -> bool {
        self.model == model && self.epoch == head.epoch && self.vectors <= head.vectors
    }

    /// Adds vectors, each replacing the former one of its item. Vectors of another dimension are left out.
    fn add(&mut self, vectors: Vec<StoredVector>) {
        for StoredVector { vector, .. } in vectors {
            let Vector { scale, values } = vector.vector;
            if self.items.is_empty() {
                self.dimension = values.len();
            }
            if values.len() != self.dimension || values.is_empty() {
                continue;
            }
            match self.places.get(&vector.item) {
                Some(place) => {
                    let place = *place as usize;
                    self.scales[place] = scale;
                    self.components[place * self.dimension..][..self.dimension].copy_from_slice(&values);
                }
                None => {
                    self.places.insert(vector.item, self.items.len() as u32);
                    self.items.push(vector.item);
                    self.scales.push(scale);
                    self.components.extend(values);
                }
            }
        }
    }

    fn nearest(&self, vector: &Vector, count: usize) -> Vec<(ItemId, f32)> {
        if vector.values.len() != self.dimension || self.dimension == 0 || count == 0 {
            return Vec::new();
        }
        let cosine = |(row, scale): (&[i8], &f32)| dot(row, &vector.values) as f32 * scale * vector.scale;
        let cosines = self.components.chunks_exact(self.dimension).zip(&self.scales).map(cosine);
        let mut near: Vec<(ItemId, f32)> =
            self.items.iter().copied().zip(cosines).filter(|(_, cosine)| *cosine > 0.0).collect();
        let best_first = |a: &(ItemId, f32), b: &(ItemId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if near.len() > count {
            near.select_nth_unstable_by(count - 1, best_first);
            near.truncate(count);
        }
        near.sort_unstable_by(best_first);
        near
    }

    fn bytes(&self) -> usize {
        self.components.len() + self.items.len() * ITEM_BYTES
    }
}
