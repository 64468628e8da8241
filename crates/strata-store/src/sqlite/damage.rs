//! Damaged rows: reads pass over a row that cannot be read, and note it, so that one row does not disable a user's searches.
//!
//! A row is noted on the thread that reads it; when the read ends, the notes of its thread go to the store, under the user
//! who asked. Deliberately absent: rows of keys, sessions and counters, where passing over would change the
//! meaning of an answer. [`super::repair`] finds and repairs all of them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use strata_core::UserId;

use super::error::{Fault, Outcome};

/// The most rows that are noted of a user; more would add nothing.
const MAX_NOTED: usize = 1_000;

thread_local! {
    static PASSED_OVER: RefCell<BTreeSet<Place>> = const { RefCell::new(BTreeSet::new()) };
}

/// A row: its table and its number.
pub(super) type Place = (&'static str, i64);

/// Returns a row that could be read. A damaged row is noted and gives `None`; any other failure stays one.
pub(super) fn pass_over<T>(read: Outcome<T>) -> Outcome<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Damaged { place, .. }) => {
            note(place);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Notes a row that is passed over.
pub(super) fn note(place: Place) {
    PASSED_OVER.with_borrow_mut(|passed_over| {
        if passed_over.len() < MAX_NOTED {
            passed_over.insert(place);
        }
    });
}

/// The damaged rows that reads of this store have met, by user.
#[derive(Clone, Default)]
pub(super) struct Noted(Arc<Mutex<HashMap<UserId, BTreeSet<Place>>>>);

impl Noted {
    /// Runs a read for a user, and keeps the rows that it passed over. A row is logged when it is met first.
    pub(super) fn watch<T>(&self, user: &UserId, read: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        PASSED_OVER.with_borrow_mut(BTreeSet::clear);
        let value = read();
        let met = PASSED_OVER.with_borrow_mut(std::mem::take);
        if !met.is_empty() {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = noted.entry(user.clone()).or_default();
            for place in met {
                if known.len() < MAX_NOTED && known.insert(place) {
                    let (table, row) = place;
                    tracing::warn!(table, row, "a damaged row was passed over; `strata doctor` tells more");
                }
            }
        }
        value
    }

    /// How many damaged rows reads for the user have met.
    pub(super) fn count(&self, user: &UserId) -> u64 {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get(user).map_or(0, |rows| rows.len() as u64)
    }

    /// Forgets all notes, after a repair.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
