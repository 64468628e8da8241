//! Writing API keys: adding and revoking.

use strata_core::key::ApiKey;
use strata_core::scope::RecallScope;
use strata_core::{Error, KeyId};

use super::{Writing, unknown};
use crate::error::Outcome;
use crate::row::micros;
use crate::sql::{args, execute};

impl Writing<'_> {
    pub(super) async fn add_key(&self, key: &ApiKey) -> Outcome<()> {
        if key.user != *self.user {
            return Err(Error::invalid(format!("key `{}` names another user than the call", key.id)).into());
        }
        let sql =
            "INSERT INTO keys (user_id, id, hash, name, scopes, prefix, created_at, expires_at, revoked_at,
                       per_minute, concurrent, recall_scope)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let args = args![
            self.name(),
            key.id.0,
            key.hash.0.to_vec(),
            key.name.as_deref(),
            key.scopes.to_string(),
            key.prefix.as_str(),
            micros(key.created_at),
            key.expires_at.map(micros),
            key.revoked_at.map(micros),
            key.limits.per_minute.map(i64::from),
            key.limits.concurrent.map(i64::from),
            key.recall_scope.map(RecallScope::as_str),
        ];
        execute(self.client, sql, args).await.map_err(|fault| {
            fault.or_conflict(|| format!("key `{}` exists already; make another", key.id))
        })?;
        Ok(())
    }

    pub(super) async fn revoke_key(&self, id: KeyId) -> Outcome<()> {
        let sql = "UPDATE keys SET revoked_at = coalesce(revoked_at, $3) WHERE user_id = $1 AND id = $2";
        let changed = execute(self.client, sql, args![self.name(), id.0, micros(self.at)]).await?;
        if changed == 0 { Err(unknown("key", id)) } else { Ok(()) }
    }
}
