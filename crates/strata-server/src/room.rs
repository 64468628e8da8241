//! The room for the bodies of chats: how many bytes of them may be in memory at once
//! ([`Settings::max_bytes_under_way`](crate::Settings::max_bytes_under_way)).
//!
//! It has three parts, so that a large body never makes a small one wait, and compressed bodies that wait for the room of their
//! texts take nothing of it. Only a compressed body waits for one part while it holds another, and always in that direction.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::settings::Settings;

/// Bodies are counted in units of this many bytes.
const UNIT: usize = 1024;

/// The bytes of a body that are read before a request takes a permit or room: a client that declares a body and does not send
/// it holds neither. Each connection may hold as many, 256 MiB at the most with the usual limit of 1024 connections.
pub(crate) const FIRST_BYTES: usize = 256 * 1024;

/// The parts of the room.
pub(crate) struct Rooms {
    /// For bodies that have more than [`FIRST_BYTES`]: three quarters.
    large: Room,
    /// For all others: three sixteenths.
    small: Room,
    /// For compressed bodies while they wait for room for their texts: a sixteenth.
    packed: Room,
}

impl Rooms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let sixteenths = |count: usize| Room::new(settings.max_bytes_under_way / 16 * count);
        Self { large: sixteenths(12), small: sixteenths(3), packed: sixteenths(1) }
    }

    /// Waits until there is room for a body beside those that are under way. A body that is larger than all the room takes
    /// all of it.
    pub(crate) async fn take(&self, bytes: usize) -> TakenRoom {
        match bytes <= FIRST_BYTES {
            true => self.small.take(bytes).await,
            false => self.large.take(bytes).await,
        }
    }

    /// The same for a compressed body, which then waits for the room of its text.
    pub(crate) async fn take_packed(&self, bytes: usize) -> TakenRoom {
        self.packed.take(bytes).await
    }
}

/// A part of the room.
struct Room {
    places: Arc<Semaphore>,
    units: usize,
}

impl Room {
    fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, u32::MAX as usize);
        Self { places: Arc::new(Semaphore::new(units)), units }
    }

    async fn take(&self, bytes: usize) -> TakenRoom {
        let units = bytes.div_ceil(UNIT).min(self.units) as u32;
        // The semaphore is never closed.
        TakenRoom(Arc::clone(&self.places).acquire_many_owned(units).await.ok())
    }
}

/// The room of a body, free again when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct TakenRoom(Option<OwnedSemaphorePermit>);

impl TakenRoom {
    /// Gives back what a body of this size does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            let excess = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(excess));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_gives_back_what_it_does_not_need() {
        let settings = Settings { max_bytes_under_way: 16 << 20, ..Settings::default() };
        let rooms = Rooms::new(&settings);
        let free = || rooms.large.places.available_permits() * UNIT;
        let mut taken = rooms.take(10 << 20).await;
        assert_eq!(free(), 2 << 20);
        taken.shrink(1 << 20);
        assert_eq!(free(), 11 << 20);
        // It never grows.
        taken.shrink(5 << 20);
        assert_eq!(free(), 11 << 20);
        drop(taken);
        let all = rooms.take(1 << 40).await;
        assert_eq!(free(), 0);
        // Small and compressed bodies do not wait for it.
        drop((rooms.take(FIRST_BYTES).await, rooms.take_packed(1 << 20).await));
        drop(all);
        assert_eq!(free(), 12 << 20);
    }
}
