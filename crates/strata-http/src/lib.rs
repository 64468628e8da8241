//! The one HTTP client: model endpoints, downloads and the proxy's upstream are called with it, over `http://` and
//! `https://`, directly or through an HTTP proxy.
//!
//! It builds connections and nothing else. Timeouts of a whole call, retries and error texts belong to the callers. It reads
//! no environment variables: [`Transport`] says how a server is reached.

mod authorities;
mod connector;
mod proxy;

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Body;
use hyper::header::{HeaderValue, InvalidHeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::Scheme;
use hyper::{HeaderMap, Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use authorities::Authorities;
use connector::{Connector, ProxyUnreachable};
pub use proxy::{Proxy, ProxyError};

/// How long a connection is kept for the next request. Servers close theirs after a minute or so, and a request that meets
/// a closing connection is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Whether a request failed because the proxy in front of the server cannot be reached.
pub fn is_proxy_unreachable(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<ProxyUnreachable>())
}

/// How a server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transport {
    /// The HTTP proxy in front of the server; without one, the connection is direct.
    pub proxy: Option<Proxy>,
    /// The certificate authorities that are trusted beside the public ones.
    pub authorities: Authorities,
}

/// A client that keeps connections open between requests. It is cheap to clone.
#[derive(Clone)]
pub struct Client<B> {
    pool: legacy::Client<HttpsConnector<Connector>, B>,
    /// The credentials for the proxy.
    credentials: Option<HeaderValue>,
}

/// A client with a pool of connections of its own. Certificates are checked against a list inside the binary, so that it
/// works in a bare container too, and against the authorities of `transport`.
pub fn client<B>(transport: &Transport) -> Client<B>
where
    B: Body<Data: Send> + Send,
{
    let tls = Arc::new(transport.authorities.client_config());
    let connector = HttpsConnector::from((Connector::new(transport.proxy.as_ref(), &tls), tls));
    let pool = legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_timer(TokioTimer::new())
        .build(connector);
    Client { pool, credentials: transport.proxy.as_ref().and_then(Proxy::credentials) }
}

impl<B> Client<B>
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static,
{
    /// Sends a request. The answer begins when the result resolves.
    pub fn request(&self, mut request: Request<B>) -> legacy::ResponseFuture {
        self.authorize(request.uri().clone(), request.headers_mut());
        self.pool.request(request)
    }
}

impl<B> Client<B> {
    /// A proxy reads the head of a plain request, and only that: in a tunnel, the credentials would reach the server.
    fn authorize(&self, uri: Uri, headers: &mut HeaderMap) {
        if let Some(credentials) = self.credentials.as_ref().filter(|_| uri.scheme() == Some(&Scheme::HTTP)) {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
    }
}

/// The value of an `Authorization` header that carries a key. Logs do not show it.
pub fn bearer(key: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))?;
    value.set_sensitive(true);
    Ok(value)
}
