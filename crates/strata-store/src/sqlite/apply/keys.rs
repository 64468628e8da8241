//! Writing API keys: adding and revoking.

use rusqlite::params;
use strata_core::key::ApiKey;
use strata_core::scope::RecallScope;
use strata_core::{Error, KeyId};

use super::super::error::{Fault, Outcome};
use super::super::row::micros;
use super::{Writing, unknown};

impl Writing<'_> {
    pub(super) fn add_key(&self, key: &ApiKey) -> Outcome<()> {
        if key.user != *self.user {
            return Err(Error::invalid(format!("key `{}` names another user than the call", key.id)).into());
        }
        self.conn
            .prepare_cached(
                "INSERT INTO keys (user_id, id, hash, name, scopes, prefix, created_at, expires_at, revoked_at,
                     per_minute, concurrent, recall_scope)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                self.user_id,
                key.id.0.as_bytes(),
                key.hash.0,
                key.name,
                key.scopes.to_string(),
                key.prefix,
                micros(key.created_at),
                key.expires_at.map(micros),
                key.revoked_at.map(micros),
                key.limits.per_minute,
                key.limits.concurrent,
                key.recall_scope.map(RecallScope::as_str),
            ])
            .map_err(|error| {
                Fault::from(error).or_conflict(|| format!("key `{}` exists already; make another", key.id))
            })?;
        Ok(())
    }

    pub(super) fn revoke_key(&self, id: KeyId) -> Outcome<()> {
        let changed = self
            .conn
            .prepare_cached(
                "UPDATE keys SET revoked_at = coalesce(revoked_at, ?3) WHERE user_id = ?1 AND id = ?2",
            )?
            .execute(params![self.user_id, id.0.as_bytes(), micros(self.at)])?;
        if changed == 0 { Err(unknown("key", id)) } else { Ok(()) }
    }
}
