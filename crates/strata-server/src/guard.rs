//! Who may talk to a local server: programs on this machine, never a web page from elsewhere.
//!
//! Without keys, being on loopback is the only protection, and a browser is on loopback too. A page of another site
//! shows itself by its `Origin`; a page that had its own name rebound to 127.0.0.1 shows itself by its `Host`. Both are
//! refused here, before any route, and no CORS header is ever sent.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// Lets a request pass if it comes from this machine and knows it.
pub(crate) async fn local_only(request: Request, next: Next) -> Response {
    match check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let host_is_local = match uri.authority() {
        // An absolute target replaces `Host` (RFC 9112, 3.2.2), which then has to agree in being local.
        Some(authority) => is_loopback(authority.as_str()) && all_local(headers, &HOST, is_loopback),
        None => headers.contains_key(HOST) && all_local(headers, &HOST, is_loopback),
    };
    if !host_is_local {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "forbidden_host",
            "the `Host` header names no loopback address; call this server as `localhost`, `127.0.0.1` or `[::1]`",
        ));
    }
    if !all_local(headers, &ORIGIN, origin_is_loopback) {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "forbidden_origin",
            "the `Origin` header names another site; only pages served from this machine may call this server",
        ));
    }
    Ok(())
}

fn all_local(headers: &HeaderMap, name: &HeaderName, is_local: fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(is_local))
}

fn origin_is_loopback(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(is_loopback)
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
    use super::*;
    use axum::http::HeaderValue;

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

    #[test]
    fn a_page_of_another_site_is_refused() {
        let check = |uri: &str, pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            }
            check(&uri.parse().unwrap(), &headers).is_ok()
        };
        assert!(check("/", &[("host", "localhost:8100")]));
        assert!(check("/", &[("host", "localhost"), ("origin", "http://127.0.0.1:3000")]));
        assert!(check("http://localhost/", &[]));
        assert!(!check("/", &[]), "no host");
        assert!(!check("/", &[("host", "evil.example")]));
        assert!(!check("/", &[("host", "localhost"), ("host", "evil.example")]));
        assert!(!check("http://evil.example/", &[("host", "localhost")]));
        assert!(!check("http://localhost/", &[("host", "evil.example")]));
        for origin in
            ["null", "https://evil.example", "file://", "localhost", "http://localhost.evil.example"]
        {
            assert!(!check("/", &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }
}
