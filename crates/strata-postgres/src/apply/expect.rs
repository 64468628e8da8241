//! Checking the preconditions of a change set.

use strata_core::SessionId;
use strata_core::store::Expectation;

use super::Writing;
use crate::error::Outcome;
use crate::read;
use crate::row::bound;
use crate::sql::{args, first, one};

impl Writing<'_> {
    /// Fails with a conflict if an expectation does not hold.
    pub(super) async fn expect(&self, expectation: &Expectation) -> Outcome<()> {
        let holds = match expectation {
            Expectation::Session { id, version } => self.session_version(id).await? == *version,
            Expectation::Memories { revision, epoch } => !self.memories_changed(*revision, *epoch).await?,
            Expectation::Progress { space, revision } => {
                read::progress(self.client, self.user, space).await? == *revision
            }
        };
        if holds { Ok(()) } else { Err(expectation.conflict().into()) }
    }

    async fn session_version(&self, session: &SessionId) -> Outcome<u64> {
        let sql = "SELECT version FROM sessions WHERE user_id = $1 AND session = $2";
        let row = first(self.client, sql, args![self.name(), session.as_str()]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.map_or(0, i64::cast_unsigned))
    }

    async fn memories_changed(&self, revision: u64, epoch: u64) -> Outcome<bool> {
        if self.epoch != bound(epoch) {
            return Ok(true);
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM memories WHERE user_id = $1 AND revision > $2)";
        Ok(one(self.client, sql, args![self.name(), bound(revision)]).await?.try_get(0)?)
    }
}
