//! The one HTTP client: model endpoints, downloads and the proxy's upstream are called with it, over `http://` and
//! `https://`.
//!
//! It builds connections and nothing else. Timeouts of a whole call, retries and error texts belong to the callers.

use std::time::Duration;

use hyper::body::Body;
use hyper::header::{HeaderValue, InvalidHeaderValue};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Servers close theirs after a minute or so, and a request that meets
/// a closing connection is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// A client that keeps connections open between requests. It is cheap to clone.
pub type Client<B> = legacy::Client<HttpsConnector<HttpConnector>, B>;

/// A client with a pool of connections of its own. Certificates are checked against a list inside the binary, so that it
/// works in a bare container too.
pub fn client<B>() -> Client<B>
where
    B: Body<Data: Send> + Send,
{
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_timer(TokioTimer::new())
        .build(connector)
}

/// The value of an `Authorization` header that carries a key. Logs do not show it.
pub fn bearer(key: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))?;
    value.set_sensitive(true);
    Ok(value)
}
