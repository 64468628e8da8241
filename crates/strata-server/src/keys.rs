//! API keys: recognised in a request, looked up, checked for their scopes, and counted.
//!
//! A store without keys answers every program on this machine. From the first key on every request needs one, except on routes
//! that are open. An expired key counts as a key, so time alone never opens a server; revoking the last key does. A server that
//! can be reached from elsewhere always needs a key.
//!
//! A header contains one of Strata's keys if its value has the prefix of one. Anything else in `Authorization` is the
//! key of another service, for instance of a model provider. It is neither read nor judged. The identity module
//! decides for which user a request asks. Start reading at [`Keys::admit`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use strata_core::UserId;
use strata_core::key::{ApiKey, KEY_PREFIX, KeyHash, KeyScope, KeySecret, KeyState};
use strata_core::store::{KeyQuery, Page};
use strata_core::{ErrorKind, Result};
use strata_engine::Engine;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::settings::Settings;
use crate::throttle::{Permit, Throttle};

/// The header for Strata's key when `Authorization` holds another service's key.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The header in which Azure's clients send a key.
pub(crate) const AZURE_KEY: HeaderName = HeaderName::from_static("api-key");

/// The most keys in the cache; when it is full, it is emptied.
const MAX_CACHED: usize = 10_000;

/// How long a lookup may take before the last answer counts: a chat should not wait for a store that is away.
const AWAY_AFTER: Duration = Duration::from_secs(1);

/// How old that answer may be. Nobody can revoke a key in a store that is away, but this process alone may be cut off from it.
const KNOWN_WHILE_AWAY: Duration = Duration::from_secs(600);

/// The key that a request presented. It travels in the request's extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    key: Option<Arc<ApiKey>>,
    headers: Vec<HeaderName>,
}

impl Identity {
    /// The key; `None` if the server needs none.
    pub(crate) fn key(&self) -> Option<&ApiKey> {
        self.key.as_deref()
    }

    /// Whether a header contained Strata's key. Such a header is never passed on.
    pub(crate) fn is_ours(&self, header: &HeaderName) -> bool {
        self.headers.contains(header)
    }

    /// Fails if the key lacks the scope. Without keys every call is allowed.
    pub(crate) fn require(&self, scope: KeyScope) -> Result<(), ApiError> {
        match &self.key {
            Some(key) if !key.scopes.contain(scope) => Err(ApiError::forbidden(
                "insufficient_scope",
                format!(
                    "this key has the scopes `{}`, and this needs `{}`; use a key that has it",
                    key.scopes,
                    scope.as_str()
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// The scopes that a route needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needed {
    /// All of these.
    pub(crate) scopes: &'static [KeyScope],
    /// This one instead, if there is one.
    pub(crate) instead: Option<KeyScope>,
}

impl Needed {
    /// Whether a key may call the route without the right to see what is stored: the route writes, and is no chat. The
    /// tools of MCP check their scopes themselves.
    pub(crate) fn shows_nothing(self) -> bool {
        !self.scopes.is_empty() && !self.scopes.contains(&KeyScope::Read) && self.instead.is_none()
    }

    fn check(self, identity: &Identity) -> Result<(), ApiError> {
        match self.instead.map(|scope| identity.require(scope)) {
            Some(Ok(())) => Ok(()),
            _ => self.scopes.iter().try_for_each(|scope| identity.require(*scope)),
        }
    }
}

/// The keys that were used recently, and the requests of each.
#[derive(Default)]
pub(crate) struct Keys {
    cache: Mutex<KeyCache>,
    throttle: Throttle,
}

#[derive(Default)]
struct KeyCache {
    /// Whether the store has keys.
    guarded: Option<Known<bool>>,
    /// Only keys that exist: invalid secrets are not cached.
    keys: HashMap<KeyHash, Known<Arc<ApiKey>>>,
}

/// An answer of the store.
#[derive(Debug, Clone)]
struct Known<T> {
    value: T,
    /// When the store has given it.
    learned: Instant,
    /// When the store was asked last; it may have been away.
    asked: Instant,
}

impl<T> Known<T> {
    fn is_fresh(&self, settings: &Settings) -> bool {
        self.asked.elapsed() < settings.keys_remembered
    }

    /// Whether it counts while the store is away.
    fn is_trusted(&self, now: Instant) -> bool {
        now.duration_since(self.learned) < KNOWN_WHILE_AWAY
    }

    /// What the store answers, or, while it is away, what it has answered before.
    async fn ask(known: Option<Self>, asking: impl Future<Output = Result<T>>) -> Result<Self> {
        let asked = Instant::now();
        let new = |value| Self { value, learned: asked, asked };
        let Some(known) = known.filter(|known| known.is_trusted(asked)) else {
            return asking.await.map(new);
        };
        match timeout(AWAY_AFTER, asking).await {
            Ok(Ok(value)) => Ok(new(value)),
            Ok(Err(error)) if error.kind() != ErrorKind::Unavailable => Err(error),
            _ => Ok(Self { asked, ..known }),
        }
    }
}

impl Keys {
    /// Checks the key of a request: it exists, is live, has the scopes, and is within its own limits.
    pub(crate) async fn admit(
        &self,
        (engine, settings): (&Engine, &Settings),
        needed: Needed,
        headers: &HeaderMap,
    ) -> Result<(Identity, Option<Permit>), ApiError> {
        let presented = PresentedKey::read(headers)?;
        let key = match presented.secret {
            Some(secret) => self.live_key(engine, settings, &secret).await?,
            None if self.is_guarded(engine, settings).await? => {
                return Err(ApiError::unauthorised(
                    "missing_api_key",
                    r#"Bearer realm="strata""#,
                    "this server needs a key; send `Authorization: Bearer strata_…` or `X-API-Key: strata_…`, \
                     and make one with `strata keys create`",
                ));
            }
            None => return Ok((Identity::default(), None)),
        };
        let identity = Identity { key: Some(Arc::clone(&key)), headers: presented.headers };
        needed.check(&identity)?;
        let permit = self.throttle.enter(&key, engine.now())?;
        Ok((identity, permit))
    }

    /// Drops what is cached of a user's keys.
    pub(crate) fn forget(&self, user: &UserId) {
        let mut cache = self.lock();
        cache.keys.retain(|_, key| key.value.user != *user);
        cache.guarded = None;
    }

    fn lock(&self) -> MutexGuard<'_, KeyCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a secret, if it is valid.
    async fn live_key(
        &self,
        engine: &Engine,
        settings: &Settings,
        secret: &KeySecret,
    ) -> Result<Arc<ApiKey>, ApiError> {
        let known = self.lock().keys.get(&secret.hash()).cloned();
        let key = match known {
            Some(known) if known.is_fresh(settings) => known.value,
            known => self.look_up(engine, secret, known).await?,
        };
        match key.state(engine.now()) {
            KeyState::Live => Ok(key),
            KeyState::Expired => {
                Err(invalid("this key's time is over; make another with `strata keys create`"))
            }
            KeyState::Revoked => Err(invalid("this key was revoked; use another")),
        }
    }

    async fn look_up(
        &self,
        engine: &Engine,
        secret: &KeySecret,
        known: Option<Known<Arc<ApiKey>>>,
    ) -> Result<Arc<ApiKey>, ApiError> {
        let known = known.map(|Known { value, learned, asked }| Known { value: Some(value), learned, asked });
        let asking = async { Ok(engine.keys.find(secret).await?.map(Arc::new)) };
        let Known { value, learned, asked } = Known::ask(known, asking).await?;
        let mut cache = self.lock();
        let Some(key) = value else {
            cache.keys.remove(&secret.hash());
            return Err(invalid("no such key; `strata keys list` shows those there are"));
        };
        if cache.keys.len() >= MAX_CACHED {
            cache.keys.clear();
        }
        cache.keys.insert(secret.hash(), Known { value: Arc::clone(&key), learned, asked });
        Ok(key)
    }

    /// Whether a key is needed.
    async fn is_guarded(&self, engine: &Engine, settings: &Settings) -> Result<bool, ApiError> {
        if settings.always_needs_key() {
            return Ok(true);
        }
        let known = self.lock().guarded.clone();
        if let Some(known) = known.as_ref().filter(|known| known.is_fresh(settings)) {
            return Ok(known.value);
        }
        let query = KeyQuery::unrevoked(Page::first(1));
        let asking = async { Ok(!engine.keys.list(&query).await?.is_empty()) };
        let known = Known::ask(known, asking).await?;
        let guarded = known.value;
        self.lock().guarded = Some(known);
        Ok(guarded)
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::unauthorised("invalid_api_key", r#"Bearer realm="strata", error="invalid_token""#, message)
}

/// A key as it was sent.
#[derive(Debug, Default)]
struct PresentedKey {
    secret: Option<KeySecret>,
    headers: Vec<HeaderName>,
}

impl PresentedKey {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut presented = Self::default();
        for name in [API_KEY, AZURE_KEY, AUTHORIZATION] {
            for value in headers.get_all(&name) {
                let Some(text) = value.to_str().ok().and_then(|text| candidate(&name, text)) else {
                    continue;
                };
                let secret = KeySecret::parse(text)
                    .ok_or_else(|| invalid("this begins like a key and is none; look whether it was cut"))?;
                if presented.secret.as_ref().is_some_and(|other| *other != secret) {
                    return Err(ApiError::invalid("two different keys of Strata are given; send one"));
                }
                presented.secret = Some(secret);
                presented.headers.push(name.clone());
            }
        }
        Ok(presented)
    }
}

/// The value of a header, if it has the prefix of Strata's keys.
fn candidate<'a>(name: &HeaderName, text: &'a str) -> Option<&'a str> {
    let text = if *name == AUTHORIZATION {
        let (scheme, rest) = text.trim().split_once(' ')?;
        // mem0's clients send the scheme `Token`.
        let known = ["Bearer", "Token"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        known.then(|| rest.trim())?
    } else {
        text.trim()
    };
    text.starts_with(KEY_PREFIX).then_some(text)
}

#[cfg(test)]
mod tests;
