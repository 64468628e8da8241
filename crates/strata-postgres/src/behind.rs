//! Which users may have work for the background, without a look at all users each time.
//!
//! A worker asks several times a second. So a process remembers the users that it has written to itself, and asks the database
//! about those alone. It looks at all users when it starts, and from then on rarely: another process looks after the users that it
//! writes to, so only those of a process that has died are left.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strata_core::{Result, UserId};
use tokio::time::Instant;

use crate::connection::Connections;
use crate::read;

/// The time between two looks at all users. A look takes about a second for a million users.
const LOOK_EVERY: Duration = Duration::from_secs(300);

/// The users that may be behind, for each space and gap that was asked about.
#[derive(Default)]
pub(crate) struct Behind {
    spaces: Mutex<Spaces>,
}

type Spaces = HashMap<(String, u64), Space>;

#[derive(Default)]
struct Space {
    written: HashSet<UserId>,
    /// The last look at all users.
    looked: Option<Instant>,
}

impl Behind {
    /// Remembers that this process has written to a user.
    pub(crate) fn note(&self, user: &UserId) {
        for space in self.lock().values_mut() {
            if !space.written.contains(user) {
                space.written.insert(user.clone());
            }
        }
    }

    /// The users that are more than `gap` behind in a space.
    pub(crate) async fn users(
        &self,
        connections: &Connections,
        space: &str,
        gap: u64,
        limit: u32,
    ) -> Result<Vec<UserId>> {
        let (asked, looks) = self.begin(space, gap);
        if asked.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let among = asked.as_deref();
        let found = connections
            .read(|client| async move { read::behind(&client, space, among, gap, limit).await })
            .await;
        let mut spaces = self.lock();
        let space = spaces.entry((space.to_owned(), gap)).or_default();
        match &found {
            // The others wait behind these.
            Ok(users) if users.len() >= limit as usize => space.written.extend(asked.into_iter().flatten()),
            Ok(users) => {
                space.written.extend(users.iter().cloned());
                if looks {
                    space.looked = Some(Instant::now());
                }
            }
            Err(_) => space.written.extend(asked.into_iter().flatten()),
        }
        found
    }

    /// The users to ask about, and whether they are all users (then `None`). Users that are written to from now on are
    /// remembered anew.
    fn begin(&self, space: &str, gap: u64) -> (Option<Vec<UserId>>, bool) {
        let mut spaces = self.lock();
        let space = spaces.entry((space.to_owned(), gap)).or_default();
        let looks = space.looked.is_none_or(|looked| looked.elapsed() > LOOK_EVERY);
        let written = std::mem::take(&mut space.written);
        if looks { (None, true) } else { (Some(written.into_iter().collect()), false) }
    }

    fn lock(&self) -> MutexGuard<'_, Spaces> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
