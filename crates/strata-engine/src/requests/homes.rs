//! The upstream that keeps a response or a conversation of a user, so that a chat stays with it after a restart and in other
//! processes.
//!
//! The notes of a user are bounded: an id has one of [`PLACES`] places by its hash, and replaces the id that was there. A note is one
//! number, the progress of the space of its place; it holds a part of the hash of the id and a print of the upstream. An id whose note is
//! gone is unknown, and the upstreams are asked for it.

use jiff::Timestamp;
use strata_core::error::Result;
use strata_core::hash::fnv;
use strata_core::id::UserId;
use strata_core::store::{Change, ChangeSet};

use super::Requests;

/// The most ids that are noted for a user: those of as many replies of long chats, in about 200 kB.
const PLACES: u64 = 4_096;

/// The bits of a note that tell the upstream.
const UPSTREAM_BITS: u32 = 24;

/// The bits of a note that tell the id. Databases keep 63 bits of a number.
const ID_BITS: u32 = 39;

impl Requests {
    /// Notes which upstream keeps what has this id. The print of an upstream is any number; its lowest 24 bits count.
    pub async fn note_home(&self, user: &UserId, id: &str, upstream: u32, now: Timestamp) -> Result<()> {
        let noted = Change::SetProgress { space: space(id), revision: note(id, upstream) };
        self.store.apply(user, ChangeSet::one(now, noted)).await.map(drop)
    }

    /// The first of these upstreams, by their prints, that is noted as the one that keeps what has this id.
    pub async fn home(&self, user: &UserId, id: &str, upstreams: &[u32]) -> Result<Option<usize>> {
        let noted = self.store.progress(user, &space(id)).await?;
        Ok(upstreams.iter().position(|upstream| note(id, *upstream) == noted))
    }
}

/// The space of the place of an id.
fn space(id: &str) -> String {
    format!("home:{:03x}", fnv(id.as_bytes()) % PLACES)
}

fn note(id: &str, upstream: u32) -> u64 {
    let id = fnv(id.as_bytes()) >> (u64::BITS - ID_BITS);
    id << UPSTREAM_BITS | u64::from(upstream) & ((1 << UPSTREAM_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_note_tells_the_id_and_the_upstream_and_fits_into_a_database() {
        let ids: Vec<String> = (0..2_000).map(|number| format!("resp_{number:x}")).collect();
        let mut notes = HashSet::new();
        for id in &ids {
            for upstream in [0, 1, u32::MAX] {
                assert!(note(id, upstream) <= i64::MAX as u64, "{id}");
                assert!(notes.insert((space(id), note(id, upstream))), "{id} {upstream}");
            }
        }
        let places: HashSet<String> = ids.iter().map(|id| space(id)).collect();
        assert!(places.len() > 1_000, "ids that resemble each other are spread: {}", places.len());
        assert_eq!(note("conv_1", 3), note("conv_1", 3 | 1 << UPSTREAM_BITS));
    }
}
