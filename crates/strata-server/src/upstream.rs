//! The state of the proxy: the connections to the upstream, and the data kept for sessions between two requests.

mod background;
mod choice;
mod owed;
mod paths;
mod secrets;
mod sessions;
mod spill;
mod stored;
mod unnamed;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use strata_http::{Proxy, is_proxy_unreachable};
use tokio::sync::Semaphore;

use crate::cookies::without_cookies;
use crate::error::{ApiError, chain};
use crate::keys::{API_KEY, AZURE_KEY, Identity};
use crate::settings::{ProxySettings, Secret, UpstreamApi, UpstreamSettings, UpstreamUrl};
pub(crate) use background::{BackgroundId, BackgroundReplies};
pub(crate) use choice::{Asked, Upstreams};
pub(crate) use owed::Debt;
pub(crate) use paths::{decoded, with_plain_path};
pub(crate) use secrets::{remove_keys, without_keys};
pub(crate) use sessions::{Injected, PromptHistories, PromptPrint, hash};
pub use spill::forget_in as forget_kept_chats;
pub(crate) use spill::{Spill, Spilled, SpilledExchange, set_aside};
pub(crate) use stored::StoredPath;
pub(crate) use unnamed::UnnamedClients;

/// Headers for a single connection (RFC 9110, 7.6.1), which are not passed on.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The prefix of Strata's own headers.
const OWN: &str = "x-strata-";

/// The most concurrent recordings: more than ever run at once.
const MAX_RECORDINGS: u32 = 1 << 20;

/// The pause before a chat is sent again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The state that all requests to the proxy share.
pub(crate) struct ProxyState {
    pub(crate) upstreams: Upstreams,
    pub(crate) histories: PromptHistories,
    pub(crate) unnamed: UnnamedClients,
    /// Replies that clients will fetch later.
    pub(crate) background: BackgroundReplies,
    /// Each recording holds a permit. If all are free, nothing is being recorded.
    pub(crate) recordings: Arc<Semaphore>,
    /// The exchanges that could not be recorded yet.
    pub(crate) spill: Spill,
}

impl ProxyState {
    pub(crate) fn new(settings: &ProxySettings) -> Self {
        Self {
            upstreams: Upstreams::new(settings),
            histories: PromptHistories::default(),
            unnamed: UnnamedClients::default(),
            background: BackgroundReplies::default(),
            recordings: Arc::new(Semaphore::new(MAX_RECORDINGS as usize)),
            spill: Spill::new(settings.spill.clone()),
        }
    }

    /// Waits until all exchanges that have passed are recorded, at most for this time. Replies that were not fetched are
    /// given up.
    pub(crate) async fn finish(&self, most: Duration) {
        self.background.give_up();
        if tokio::time::timeout(most, self.recordings.acquire_many(MAX_RECORDINGS)).await.is_err() {
            tracing::error!("some replies could not be recorded before the server stopped");
        }
    }
}

/// A server of models.
pub(crate) struct Upstream {
    /// Its place in the list.
    pub(crate) number: usize,
    pub(crate) api: UpstreamApi,
    client: strata_http::Client<Body>,
    url: UpstreamUrl,
    proxy: Option<Proxy>,
    key: Option<Secret>,
    timeout: Duration,
    retries: u32,
}

/// Whether Strata reads the answer when it passes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerUse {
    /// The answer is read, so it must not be compressed.
    Read,
    /// The answer passes unread.
    Pass,
}

impl Upstream {
    fn new(number: usize, settings: &UpstreamSettings, timeout: Duration) -> Self {
        let UpstreamSettings { url, key, api, transport, .. } = settings.clone();
        let timeout = settings.timeout.unwrap_or(timeout);
        Self {
            number,
            api,
            client: strata_http::client(&transport),
            url,
            proxy: transport.proxy,
            key,
            timeout,
            retries: settings.retries,
        }
    }

    /// The longest pause between two pieces of an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Passes a chat on, and again if the setting `retries` says so, as long as nothing was answered.
    pub(crate) async fn send_again(
        &self,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: impl Fn() -> Body,
    ) -> Result<Response<Incoming>, ApiError> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..self.retries {
            let answer = self.send(method.clone(), uri, headers.clone(), body()).await;
            match answer {
                Ok(answer) if !is_overloaded(answer.status()) => return Ok(answer),
                Ok(answer) => tracing::warn!(status = answer.status().as_u16(), "a chat is sent again"),
                Err(error) if error.detail().0 != StatusCode::BAD_GATEWAY => return Err(error),
                Err(_) => tracing::warn!("a chat is sent again"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.send(method, uri, headers, body()).await
    }

    /// Passes a request on and waits for the head of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Response<Incoming>, ApiError> {
        let query = uri.query().map(without_keys).filter(|query| !query.is_empty());
        let Some(target) = self.url.target(&paths::plain(uri.path())?, query.as_deref()) else {
            return Err(ApiError::invalid("the path cannot be passed on; check how it is encoded"));
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = headers;
        match tokio::time::timeout(self.timeout, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                tracing::warn!(error = %chain(&error), "the upstream cannot be reached");
                let message = self.unreached(is_proxy_unreachable(&error));
                Err(ApiError::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", message).retryable())
            }
            Err(_) => {
                let message = format!(
                    "the upstream did not answer within {} s (setting `upstream_timeout_secs`)",
                    self.timeout.as_secs_f32()
                );
                Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", message))
            }
        }
    }

    /// The remedy for a request that did not reach the upstream. The setting to look at is that of the server which did not answer.
    fn unreached(&self, at_proxy: bool) -> String {
        let url = &self.url;
        match &self.proxy {
            Some(proxy) if at_proxy => format!(
                "the proxy `{proxy}` in front of the upstream `{url}` cannot be reached; see that it runs and that `upstream_proxy` is \
                 right"
            ),
            Some(proxy) => format!(
                "the upstream `{url}` cannot be reached through the proxy `{proxy}`; see that the upstream runs, and that `upstream` and \
                 `upstream_proxy` are right"
            ),
            None => {
                format!(
                    "the upstream `{url}` cannot be reached; see that it runs and that `upstream` is right"
                )
            }
        }
    }

    /// Whether all clients come to the upstream as one: with the configured key, or without any.
    pub(crate) fn is_shared(&self, parts: &Parts) -> bool {
        let sent = self.headers(parts, AnswerUse::Pass);
        let is_their_own = [AUTHORIZATION, API_KEY, AZURE_KEY].iter().any(|name| sent.contains_key(name));
        self.key.is_some() || !is_their_own
    }

    /// The headers of a request of Strata's own, on behalf of a client whose credentials are not meant for this upstream.
    pub(crate) fn bare_headers(&self, parts: &Parts) -> HeaderMap {
        let mut sent = HeaderMap::new();
        for name in [ACCEPT, USER_AGENT] {
            if let Some(value) =
                parts.headers.get(&name).filter(|value| !secrets::holds_key(value.as_bytes()))
            {
                sent.insert(name, value.clone());
            }
        }
        if let Some(key) = &self.key {
            KeyHeader::of(self.api, parts).insert(key, &mut sent);
        }
        sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        sent
    }

    /// The headers of a request for the upstream.
    pub(crate) fn headers(&self, parts: &Parts, answer: AnswerUse) -> HeaderMap {
        let mut sent = end_to_end(&parts.headers);
        // The client library sets these for the upstream's own name and for the body.
        for name in [HOST, CONTENT_LENGTH, EXPECT] {
            sent.remove(name);
        }
        // Strata's own headers, above all keys, are not passed on. The key of another service is meant for the
        // upstream.
        let identity = parts.extensions.get::<Identity>();
        let is_ours = |name: &HeaderName| {
            name.as_str().starts_with(OWN) || identity.is_some_and(|identity| identity.is_ours(name))
        };
        let ours: Vec<HeaderName> = sent.keys().filter(|name| is_ours(name)).cloned().collect();
        for name in ours {
            sent.remove(name);
        }
        let cookies: Vec<HeaderValue> = sent.get_all(COOKIE).iter().filter_map(without_cookies).collect();
        sent.remove(COOKIE);
        for cookie in cookies {
            sent.append(COOKIE, cookie);
        }
        remove_keys(&mut sent);
        // Elsewhere the key would give every client the rights of its owner.
        if let Some(key) = self.key.as_ref().filter(|_| paths::is_known(parts.uri.path())) {
            KeyHeader::of(self.api, parts).insert(key, &mut sent);
        }
        if answer == AnswerUse::Read {
            sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        sent
    }
}

/// Whether an upstream says that it did not work on a request, and may later.
fn is_overloaded(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE) || status.as_u16() == 529
}

/// How an API takes its key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyHeader {
    Bearer,
    /// Anthropic's `x-api-key`.
    Anthropic,
    /// Azure's `api-key`.
    Azure,
}

impl KeyHeader {
    /// The form that the upstream's API has; if it speaks several, the path and the headers tell.
    fn of(api: UpstreamApi, parts: &Parts) -> Self {
        let path = parts.uri.path();
        match api {
            UpstreamApi::Azure => return Self::Azure,
            // Its imitation of OpenAI's API takes keys as OpenAI does.
            UpstreamApi::Anthropic if !path.ends_with("/chat/completions") => return Self::Anthropic,
            _ => {}
        }
        if path.starts_with("/v1/messages") || parts.headers.contains_key("anthropic-version") {
            return Self::Anthropic;
        }
        if path.starts_with("/openai/") { Self::Azure } else { Self::Bearer }
    }

    /// Puts a key into the headers, in place of the client's.
    fn insert(self, key: &Secret, headers: &mut HeaderMap) {
        for name in [AUTHORIZATION, API_KEY, AZURE_KEY] {
            headers.remove(name);
        }
        let plain = || {
            let mut value = HeaderValue::from_str(key.expose())?;
            value.set_sensitive(true);
            Ok(value)
        };
        let (name, value) = match self {
            Self::Bearer => (AUTHORIZATION, strata_http::bearer(key.expose())),
            Self::Anthropic => (API_KEY, plain()),
            Self::Azure => (AZURE_KEY, plain()),
        };
        if let Ok(value) = value {
            headers.insert(name, value);
        }
    }
}

/// The headers that are meant for the other end.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !HOP_BY_HOP.contains(name) && !named.iter().any(|named| named == name.as_str()) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The headers of an answer for the client. If the upstream is a Strata too, its request id is dropped.
pub(crate) fn answer_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end(headers);
    let theirs: Vec<HeaderName> =
        passed.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in theirs {
        passed.remove(name);
    }
    passed
}
