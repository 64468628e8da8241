//! Checking the preconditions of a change set.

use rusqlite::{OptionalExtension, params};
use strata_core::SessionId;
use strata_core::store::Expectation;

use super::Writing;
use crate::sqlite::error::Outcome;
use crate::sqlite::feed;
use crate::sqlite::row::bound;

impl Writing<'_> {
    /// Fails with a conflict if an expectation does not hold.
    pub(super) fn expect(&self, expectation: &Expectation) -> Outcome<()> {
        let holds = match expectation {
            Expectation::Session { id, version } => self.session_version(id)? == *version,
            Expectation::Memories { revision, epoch } => !self.memories_changed(*revision, *epoch)?,
            Expectation::Progress { space, revision } => {
                feed::progress(self.conn, self.user, space)? == *revision
            }
        };
        if holds { Ok(()) } else { Err(expectation.conflict().into()) }
    }

    fn session_version(&self, session: &SessionId) -> Outcome<u64> {
        let version: Option<i64> = self
            .conn
            .prepare_cached("SELECT version FROM sessions WHERE user_id = ?1 AND name = ?2")?
            .query_row(params![self.user_id, session.as_str()], |row| row.get(0))
            .optional()?;
        Ok(version.map_or(0, i64::cast_unsigned))
    }

    fn memories_changed(&self, revision: u64, epoch: u64) -> Outcome<bool> {
        let mut changed = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM memories WHERE user_id = ?1 AND revision > ?2)
                 OR (SELECT epoch FROM users WHERE id = ?1) <> ?3",
        )?;
        let of = params![self.user_id, bound(revision), bound(epoch)];
        Ok(changed.query_row(of, |row| row.get(0))?)
    }
}
