//! Looks for users with work. While nothing is committed, they need not be made again.
//!
//! A worker looks once a second, also in a process to which nothing happens. Reading all users each time would cost a large
//! store much, and each read would wake another thread. SQLite tells a connection in a microsecond whether any other one, of
//! whichever process, has committed since.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use strata_core::UserId;

use super::error::Outcome;

/// What the last looks have found.
#[derive(Default)]
pub(super) struct Stillness(Mutex<Looks>);

#[derive(Default)]
struct Looks {
    /// A connection that does nothing else: what it is told counts the commits of others since it asked before.
    conn: Option<Connection>,
    /// What each look has found, with the version of the content before it.
    found: HashMap<String, (i64, Vec<UserId>)>,
}

impl Stillness {
    /// What this look has found, if nothing was committed since. Never waits.
    pub(super) fn known(&self, look: &str) -> Option<Vec<UserId>> {
        let looks = self.0.try_lock().ok()?;
        let (before, found) = looks.found.get(look)?;
        (looks.version() == Some(*before)).then(|| found.clone())
    }

    /// The version of the content, which a look has to learn before it begins. The connection is opened if it is missing.
    pub(super) fn version(&self, open: impl FnOnce() -> Outcome<Connection>) -> Option<i64> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.conn.is_none() {
            looks.conn = Some(open().ok()?);
        }
        let version = looks.version();
        if version.is_none() {
            // The next look begins anew.
            *looks = Looks::default();
        }
        version
    }

    /// Notes what a look has found in the content of this version, or later.
    pub(super) fn note(&self, look: String, version: Option<i64>, found: &[UserId]) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = version.filter(|_| looks.conn.is_some()) {
            looks.found.insert(look, (version, found.to_vec()));
        }
    }

    pub(super) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Looks::default();
    }
}

impl Looks {
    /// `None` if it cannot be told now.
    fn version(&self) -> Option<i64> {
        let conn = self.conn.as_ref()?;
        conn.busy_timeout(Duration::ZERO).ok()?;
        conn.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_made_again_after_a_commit_of_anybody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("still.db");
        let open = || Ok(Connection::open(&path)?);
        let other = open().unwrap();
        other.pragma_update(None, "journal_mode", "WAL").unwrap();
        other.execute_batch("CREATE TABLE t (x)").unwrap();
        let still = Stillness::default();
        let ada = [UserId::new("ada").unwrap()];
        assert_eq!(still.known("boats"), None);
        let version = still.version(open);
        still.note("boats".to_owned(), version, &ada);
        for _ in 0..2 {
            assert_eq!((still.known("boats"), still.known("sails")), (Some(ada.to_vec()), None));
        }
        other.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(still.known("boats"), None);
        // A commit between the version and the look: the look may have missed it.
        let version = still.version(open);
        other.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        still.note("boats".to_owned(), version, &[]);
        assert_eq!(still.known("boats"), None);
        let version = still.version(open);
        still.note("boats".to_owned(), version, &[]);
        assert_eq!(still.known("boats"), Some(Vec::new()));
        still.close();
        assert_eq!(still.known("boats"), None);
    }
}
