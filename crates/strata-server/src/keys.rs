//! Which requests come in: API keys, recognised, checked for their scope and counted, before any route.
//!
//! A store without keys answers every program on this machine. From the first key on every request needs one, but those
//! that ask whether the server is alive; a key whose time is over guards as well, so that time alone never opens a door,
//! and only taking back the last one does. A server that can be reached from elsewhere always needs one.
//!
//! A header is Strata's if it holds something that begins as a key of Strata's does. Whatever else a client sends in
//! `Authorization` is somebody else's, a model provider's for instance, and is neither read nor judged. For whom a request
//! asks is decided in the identity module. Start reading at [`admitted`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use strata_core::key::{ApiKey, KEY_PREFIX, KeyHash, KeyScope, KeySecret, KeyState};
use strata_core::store::{KeyQuery, Page};

use crate::app::App;
use crate::error::ApiError;
use crate::throttle::{Permit, Throttle};

/// Where a client sends Strata's key when `Authorization` holds another.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The most keys remembered; beyond, all are looked up anew.
const MAX_REMEMBERED: usize = 10_000;

/// What a request has shown itself with. It travels in the request's extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    key: Option<Arc<ApiKey>>,
    headers: Vec<HeaderName>,
}

impl Identity {
    /// The key, where the server wants one.
    pub(crate) fn key(&self) -> Option<&ApiKey> {
        self.key.as_deref()
    }

    /// Whether a header held Strata's key. It is meant for nobody else and is never passed on.
    pub(crate) fn is_ours(&self, header: &HeaderName) -> bool {
        self.headers.contains(header)
    }

    /// Refuses what the key may not do. Without keys everybody may do everything.
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

/// What a request has to be allowed: all of these.
pub(crate) fn scopes_of(method: &Method, route: &str) -> &'static [KeyScope] {
    use KeyScope::{Admin, Read, Write};
    match route {
        "/" | "/openapi.json" => &[],
        // Its tools differ in what they need, and ask for it themselves.
        "/mcp" => &[],
        "/metrics" => &[Admin],
        // They answer a question and happen to have a body.
        "/search" | "/sessions/{id}/prompt" => &[Read],
        "/v2/memories/" | "/v2/memories/search/" | "/v3/memories/" | "/v3/memories/search/" => &[Read],
        // It recalls, and it records.
        "/v1/chat/completions" => &[Read, Write],
        // A route that nobody has thought of here is the harder to enter.
        _ if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) => &[Read],
        _ => &[Write],
    }
}

/// Whether a route answers anybody: what looks after a server has no key, and learns nothing but that it lives.
pub(crate) fn is_open(route: &str) -> bool {
    matches!(route, "/healthz" | "/readyz")
}

/// Lets a request pass with what it has shown, or answers why not.
pub(crate) async fn admitted(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    if is_open(route) {
        return next.run(request).await;
    }
    match app.keys().admit(&app, request.method(), route, request.headers()).await {
        Ok((identity, permit)) => {
            request.extensions_mut().insert(identity);
            let response = next.run(request).await;
            match permit {
                Some(permit) => permit.hold(response),
                None => response,
            }
        }
        Err(error) => error.into_response(),
    }
}

/// The keys that were shown of late, and how much they asked.
#[derive(Default)]
pub(crate) struct Keys {
    remembered: Mutex<Remembered>,
    throttle: Throttle,
}

#[derive(Default)]
struct Remembered {
    /// Whether the store has keys, and when it was asked.
    guarded: Option<(Instant, bool)>,
    /// Only keys that exist: what strangers try takes no room here.
    keys: HashMap<KeyHash, (Instant, Arc<ApiKey>)>,
}

impl Keys {
    async fn admit(
        &self,
        app: &App,
        method: &Method,
        route: &str,
        headers: &HeaderMap,
    ) -> Result<(Identity, Option<Permit>), ApiError> {
        let shown = Shown::read(headers)?;
        let key = match shown.secret {
            Some(secret) => self.live_key(app, &secret).await?,
            None if self.is_guarded(app).await? => {
                return Err(ApiError::unauthorised(
                    "missing_api_key",
                    r#"Bearer realm="strata""#,
                    "this server needs a key; send `Authorization: Bearer strata_…` or `X-API-Key: strata_…`, \
                     and make one with `strata keys create`",
                ));
            }
            None => return Ok((Identity::default(), None)),
        };
        let identity = Identity { key: Some(Arc::clone(&key)), headers: shown.headers };
        for scope in scopes_of(method, route) {
            identity.require(*scope)?;
        }
        let permit = self.throttle.enter(&key, app.engine().now())?;
        Ok((identity, permit))
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a secret, if it is good now.
    async fn live_key(&self, app: &App, secret: &KeySecret) -> Result<Arc<ApiKey>, ApiError> {
        let hash = secret.hash();
        let fresh = |since: &Instant| since.elapsed() < app.settings().keys_remembered;
        let remembered = self.lock().keys.get(&hash).filter(|(since, _)| fresh(since)).cloned();
        let key = match remembered {
            Some((_, key)) => key,
            None => {
                let asked = Instant::now();
                let found = app.engine().keys.find(secret).await?;
                let mut remembered = self.lock();
                let Some(key) = found else {
                    remembered.keys.remove(&hash);
                    return Err(invalid("no such key; `strata keys list` shows those there are"));
                };
                if remembered.keys.len() >= MAX_REMEMBERED {
                    remembered.keys.clear();
                }
                let key = Arc::new(key);
                remembered.keys.insert(hash, (asked, Arc::clone(&key)));
                key
            }
        };
        match key.state(app.engine().now()) {
            KeyState::Live => Ok(key),
            KeyState::Expired => {
                Err(invalid("this key's time is over; make another with `strata keys create`"))
            }
            KeyState::Revoked => Err(invalid("this key was revoked; use another")),
        }
    }

    /// Whether a key is needed.
    async fn is_guarded(&self, app: &App) -> Result<bool, ApiError> {
        if app.settings().always_needs_key() {
            return Ok(true);
        }
        if let Some((since, guarded)) = self.lock().guarded
            && since.elapsed() < app.settings().keys_remembered
        {
            return Ok(guarded);
        }
        let asked = Instant::now();
        let guarded = !app.engine().keys.list(&KeyQuery::unrevoked(Page::first(1))).await?.is_empty();
        self.lock().guarded = Some((asked, guarded));
        Ok(guarded)
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::unauthorised("invalid_api_key", r#"Bearer realm="strata", error="invalid_token""#, message)
}

/// A key as it was sent.
#[derive(Debug, Default)]
struct Shown {
    secret: Option<KeySecret>,
    headers: Vec<HeaderName>,
}

impl Shown {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut shown = Self::default();
        for name in [API_KEY, AUTHORIZATION] {
            for value in headers.get_all(&name) {
                let Some(text) = value.to_str().ok().and_then(|text| candidate(&name, text)) else {
                    continue;
                };
                let secret = KeySecret::parse(text)
                    .ok_or_else(|| invalid("this begins like a key and is none; look whether it was cut"))?;
                if shown.secret.as_ref().is_some_and(|other| *other != secret) {
                    return Err(ApiError::invalid("two different keys of Strata are given; send one"));
                }
                shown.secret = Some(secret);
                shown.headers.push(name.clone());
            }
        }
        Ok(shown)
    }
}

/// What a header holds, if it looks like a key of Strata's.
fn candidate<'a>(name: &HeaderName, text: &'a str) -> Option<&'a str> {
    let text = if *name == AUTHORIZATION {
        let (scheme, rest) = text.trim().split_once(' ')?;
        // `Token` is what mem0's clients send.
        let known = ["Bearer", "Token"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        known.then(|| rest.trim())?
    } else {
        text.trim()
    };
    text.starts_with(KEY_PREFIX).then_some(text)
}

#[cfg(test)]
mod tests;
