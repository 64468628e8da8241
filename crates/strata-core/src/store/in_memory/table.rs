//! A map that can undo its changes since the last commit.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// An ordered map with a journal of the values that changes replaced.
///
/// A change set is applied change by change, because a later change may build on an earlier one. When one fails, the
/// journal is played backwards. The cost depends on the size of the change set; a copy of the user's data would cost the user's
/// size for every append.
pub(super) struct JournaledTable<K, V> {
    rows: BTreeMap<K, V>,
    /// Keys with the value that they had before, oldest change first.
    journal: Vec<(K, Option<V>)>,
}

impl<K, V> Default for JournaledTable<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), journal: Vec::new() }
    }
}

impl<K: Ord + Clone, V> JournaledTable<K, V> {
    pub(super) fn rows(&self) -> &BTreeMap<K, V> {
        &self.rows
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.rows.get(key)
    }

    pub(super) fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.rows.contains_key(key)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        let before = self.rows.insert(key.clone(), value);
        self.journal.push((key, before));
    }

    /// Removes a row, and returns whether it existed.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        let before = self.rows.remove(key);
        let found = before.is_some();
        if found {
            self.journal.push((key.clone(), before));
        }
        found
    }

    /// Removes the rows that `condition` selects, and returns their number.
    pub(super) fn remove_where(&mut self, condition: impl Fn(&K, &V) -> bool) -> u64 {
        let keys: Vec<K> = self
            .rows
            .iter()
            .filter(|(key, value)| condition(key, value))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &keys {
            self.remove(key);
        }
        keys.len() as u64
    }

    /// Makes the changes final, and returns the changed keys with their former values, oldest change first.
    pub(super) fn commit(&mut self) -> Vec<(K, Option<V>)> {
        std::mem::take(&mut self.journal)
    }

    /// Undoes all changes since the last commit.
    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.journal.pop() {
            match before {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}
