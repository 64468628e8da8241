//! API keys: created once, found by their secret, revoked.

use crate::clock::to_micros;
use jiff::Timestamp;
use std::sync::Arc;
use strata_core::ports::{Clock, IdSource};
use strata_core::store::Store;

use strata_core::error::{Error, Result};
use strata_core::id::{KeyId, UserId, check_name};
use strata_core::key::{ApiKey, KeyLimits, KeySecret, Scopes, SecretSource};
use strata_core::scope::RecallScope;
use strata_core::store::{Change, ChangeSet, KeyQuery, Page};

/// A key to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewKey {
    /// The key's user; [`UserId::global`] for a key that is not bound to a user.
    pub user: UserId,
    /// A name that says what the key is for.
    pub name: Option<String>,
    /// The key's permissions.
    pub scopes: Scopes,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
    /// The key's rate limits.
    pub limits: KeyLimits,
    /// How far the key's questions in a session look, instead of the setting.
    pub recall_scope: Option<RecallScope>,
}

impl NewKey {
    /// A key of `user` that may read and write, without an expiry or limits.
    pub fn new(user: UserId) -> Self {
        Self {
            user,
            name: None,
            scopes: Scopes::default(),
            expires_at: None,
            limits: KeyLimits::default(),
            recall_scope: None,
        }
    }
}

/// API keys: created once, found by their secret, revoked.
#[derive(Clone)]
pub struct Keys {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
}

impl Keys {
    /// Creates a key. The secret is returned only here: the store holds its hash.
    pub async fn create(&self, new: NewKey, source: &dyn SecretSource) -> Result<(ApiKey, KeySecret)> {
        let NewKey { user, name, scopes, expires_at, limits, recall_scope } = new;
        let now = self.clock.now();
        if let Some(name) = &name {
            check_name(name, "key")
                .map_err(|error| Error::invalid(error.message().replace("key id", "the key's name")))?;
        }
        if scopes == Scopes::NONE {
            return Err(Error::invalid("the key has no scope; give it at least one"));
        }
        if let Some(end) = expires_at.filter(|end| *end <= now) {
            return Err(Error::invalid(format!(
                "the key would expire at `{end}`, which is in the past; choose a later time"
            )));
        }
        for (what, limit) in
            [("requests a minute", limits.per_minute), ("requests at once", limits.concurrent)]
        {
            if limit == Some(0) {
                return Err(Error::invalid(format!(
                    "a limit of `0` {what} allows no request; leave the limit out or give at least 1"
                )));
            }
        }
        let secret = KeySecret::generate(source)?;
        let key = ApiKey {
            id: KeyId(self.ids.next()),
            user,
            name,
            scopes,
            hash: secret.hash(),
            prefix: secret.prefix(),
            created_at: now,
            expires_at: expires_at.map(to_micros),
            revoked_at: None,
            limits,
            recall_scope,
        };
        self.store.apply(&key.user, ChangeSet::one(now, Change::AddKey(Box::new(key.clone())))).await?;
        Ok((key, secret))
    }

    /// The key of a secret, also a revoked or expired one; `None` if no key has this secret.
    pub async fn find(&self, secret: &KeySecret) -> Result<Option<ApiKey>> {
        let hash = secret.hash();
        let key = self.store.key_by_hash(&hash).await?;
        // The duration of the lookup reveals at most how a hash begins, and no attacker can choose a secret by its
        // hash. The found hash is compared in constant time, so that access does not depend on how a store compares
        // values.
        Ok(key.filter(|key| key.hash.matches(&hash)))
    }

    /// Keys of all users, newest first.
    pub async fn list(&self, query: &KeyQuery) -> Result<Vec<ApiKey>> {
        self.store.keys(query).await
    }

    /// Revokes a key for good; *not found* if no key has this id.
    pub async fn revoke(&self, id: KeyId) -> Result<ApiKey> {
        let query = KeyQuery { id: Some(id), user: None, revoked: true, page: Page::first(1) };
        let key = self.store.keys(&query).await?.pop();
        let key = key.ok_or_else(|| {
            Error::not_found(format!("key `{id}` does not exist; `strata keys list` shows those that do"))
        })?;
        let now = self.clock.now();
        self.store.apply(&key.user, ChangeSet::one(now, Change::RevokeKey { id })).await?;
        Ok(ApiKey { revoked_at: Some(key.revoked_at.unwrap_or(now)), ..key })
    }
}
