//! The check of `Host` and `Origin`, and CORS.
//!
//! Without keys, listening on loopback is the only protection, and a browser is on loopback too. A page of another site is
//! recognised by its `Origin`; a page whose own name was rebound to 127.0.0.1 is recognised by its `Host`. Both are refused
//! here, before any route. Only pages that the operator has named get CORS headers.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ETAG, HOST, ORIGIN, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower::{Layer, ServiceExt};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::app::App;
use crate::error::ApiError;
use crate::settings::{Reach, Settings};
use crate::telemetry::REQUEST_ID;

/// How long a browser caches the answer to a preflight: short, so that removing an origin from the list takes effect soon.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

/// Lets a request pass if its `Host` is a name of this server and its `Origin` is allowed.
pub(crate) async fn guarded(State(app): State<App>, request: Request, next: Next) -> Response {
    let settings = app.settings();
    if let Err(error) = check(settings, request.uri(), request.headers()) {
        return error.into_response();
    }
    let Some(origin) = named_origin(settings, request.headers()) else { return next.run(request).await };
    let is_preflight = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    match *request.method() {
        // The CORS layer answers every `OPTIONS` request, so it is only given preflights.
        Method::OPTIONS if !is_preflight => next.run(request).await,
        Method::OPTIONS => {
            let response = with_cors(origin, request, next).await;
            (StatusCode::NO_CONTENT, response).into_response()
        }
        _ => with_cors(origin, request, next).await,
    }
}

/// Runs a request of an allowed origin and adds the CORS headers. Credentials are not allowed: Strata has no cookies.
async fn with_cors(origin: HeaderValue, request: Request, next: Next) -> Response {
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::exact(origin))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        // Client libraries send headers of their own, which cannot be listed. The origin alone decides.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([REQUEST_ID, RETRY_AFTER, ETAG])
        .max_age(PREFLIGHT_AGE)
        .vary([ORIGIN]);
    match cors.layer(next).oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The origin of a request, if the operator allows it.
fn named_origin(settings: &Settings, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    settings.cors_origins.iter().any(|named| named == text).then(|| origin.clone())
}

fn check(settings: &Settings, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    // An absolute target replaces `Host` (RFC 9112, 3.2.2). Then both have to be names of this server.
    let named = uri.authority().is_some() || headers.contains_key(HOST);
    let target = uri.authority().map(|authority| Some(authority.as_str()));
    let hosts = || target.into_iter().chain(headers.get_all(HOST).iter().map(|host| host.to_str().ok()));
    let is_ours = |host: Option<&str>| host.is_some_and(|host| is_our_host(settings, host));
    if !(named && hosts().all(is_ours)) {
        return Err(ApiError::forbidden(
            "forbidden_host",
            match settings.reach {
                Reach::Loopback => {
                    "the `Host` header names no loopback address; call this server as `localhost`, `127.0.0.1` or \
                     `[::1]`, or list the name in the setting `allowed_hosts`"
                }
                Reach::Network => {
                    "the `Host` header holds a name that the setting `allowed_hosts` does not list; call this server \
                     by one that it does"
                }
            },
        ));
    }
    // A page that this server has served comes from a name of this server.
    let is_same = |origin: &str| hosts().flatten().any(|host| origin_host(origin) == Some(host));
    let is_ours = |origin: &str| {
        origin_host(origin).is_some_and(is_loopback)
            || settings.cors_origins.iter().any(|named| named == origin)
            || is_same(origin)
    };
    if !headers.get_all(ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(is_ours)) {
        return Err(ApiError::forbidden(
            "forbidden_origin",
            "the `Origin` header names another site; only pages served from this machine, and those in the setting \
             `cors_origins`, may call this server",
        ));
    }
    Ok(())
}

fn is_our_host(settings: &Settings, host: &str) -> bool {
    let is_named = || {
        let name = without_port(host);
        settings.allowed_hosts.iter().any(|named| named.eq_ignore_ascii_case(name))
    };
    // A server on a network does not know all its names; there every request needs a key.
    let is_any = || settings.reach == Reach::Network && settings.allowed_hosts.is_empty();
    is_loopback(host) || is_named() || is_any()
}

/// `host` without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.is_empty() => name,
        _ => host,
    }
}

/// The host of an origin, with its port if it has one.
fn origin_host(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

/// Whether `host`, with or without a port, is a name or an address of loopback.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => {
                return address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
                    && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
            }
            None => return false,
        },
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    port.is_none_or(is_port)
        && (name.eq_ignore_ascii_case("localhost")
            || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback()))
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn loopback_has_few_names() {
        for host in ["localhost", "LocalHost:8100", "127.0.0.1", "127.8.9.1:1", "[::1]", "[::1]:8100"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "localhost@example.com",
            "127.0.0.1.example.com",
            "128.0.0.1",
            "0.0.0.0",
            "[::2]",
            "[::1",
            "[::1]x",
            "::1",
            "localhost:",
            "localhost:+80",
            "localhost:99999",
            "localhost:80:80",
            "127.1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[track_caller]
    fn passes(settings: &Settings, uri: &str, pairs: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        check(settings, &uri.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let settings = Settings::default();
        let check = |uri: &str, pairs: &[(&'static str, &str)]| passes(&settings, uri, pairs);
        assert!(check("/", &[("host", "localhost:8100")]));
        assert!(check("/", &[("host", "localhost"), ("origin", "http://127.0.0.1:3000")]));
        assert!(check("http://localhost/", &[]));
        assert!(!check("/", &[]), "no host");
        assert!(!check("/", &[("host", "evil.example")]));
        assert!(!check("/", &[("host", "localhost"), ("host", "evil.example")]));
        assert!(!check("http://evil.example/", &[("host", "localhost")]));
        assert!(!check("http://localhost/", &[("host", "evil.example")]));
        assert!(!check("/", &[("host", "evil.example"), ("origin", "http://evil.example")]), "rebound");
        for origin in
            ["null", "https://evil.example", "file://", "localhost", "http://localhost.evil.example"]
        {
            assert!(!check("/", &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn names_and_pages_that_were_listed_may_come() {
        let settings = Settings {
            allowed_hosts: vec!["memory.example".to_owned()],
            cors_origins: vec!["https://app.example".to_owned()],
            ..Settings::default()
        };
        let check = |host: &str, origin: &str| passes(&settings, "/", &[("host", host), ("origin", origin)]);
        assert!(check("memory.example", "https://app.example"));
        assert!(check("Memory.Example:443", "https://app.example"));
        assert!(check("localhost", "https://app.example"));
        assert!(check("memory.example:8100", "https://memory.example:8100"), "its own pages");
        for (host, origin) in [
            ("memory.example.evil", "https://app.example"),
            ("other.example", "https://app.example"),
            ("memory.example", "https://app.example:444"),
            ("memory.example", "http://app.example"),
            ("memory.example", "https://app.example.evil"),
            ("memory.example", "https://APP.example"),
            ("memory.example", "*"),
            ("memory.example", "null"),
        ] {
            assert!(!check(host, origin), "{host} {origin}");
        }
    }

    #[test]
    fn on_a_network_any_name_will_do_until_some_are_listed() {
        let mut settings = Settings { reach: Reach::Network, ..Settings::default() };
        assert!(passes(&settings, "/", &[("host", "10.0.0.7:8100")]));
        assert!(passes(&settings, "/", &[("host", "a.example"), ("origin", "http://a.example")]));
        assert!(!passes(&settings, "/", &[("host", "a.example"), ("origin", "http://b.example")]));
        assert!(!passes(&settings, "/", &[]));
        settings.allowed_hosts = vec!["a.example".to_owned(), "[2001:db8::1]".to_owned()];
        assert!(passes(&settings, "/", &[("host", "a.example")]));
        assert!(passes(&settings, "/", &[("host", "[2001:db8::1]:8100")]));
        assert!(passes(&settings, "/", &[("host", "127.0.0.1:8100")]), "the machine's own health check");
        assert!(!passes(&settings, "/", &[("host", "10.0.0.7:8100")]));
    }
}
