//! The address of an HTTP proxy, with the credentials for it.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;

/// The alphabet of Base64 (RFC 4648, 4).
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// An HTTP proxy: `http://proxy.example:3128`, `https://` if it is reached over TLS, with `USER:PASSWORD@` in front of the
/// name if it asks for them. The credentials are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The address, without the credentials.
    address: Uri,
    /// The value of `Proxy-Authorization`.
    credentials: Option<HeaderValue>,
}

/// A text that is not the address of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyError;

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use the address of an HTTP proxy, as in `http://proxy.example:3128`")
    }
}

impl std::error::Error for ProxyError {}

impl Proxy {
    pub(crate) fn address(&self) -> &Uri {
        &self.address
    }

    pub(crate) fn credentials(&self) -> Option<HeaderValue> {
        self.credentials.clone()
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(ProxyError)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(basic(credentials).ok_or(ProxyError)?), place),
            None => (None, rest),
        };
        let address: Uri = format!("{scheme}://{place}/").parse().map_err(|_| ProxyError)?;
        let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&address.scheme());
        let is_plain = address.path_and_query().is_some_and(|path| path.as_str() == "/");
        let is_named = address.host().is_some_and(|host| !host.is_empty());
        if is_http && is_plain && is_named { Ok(Self { address, credentials }) } else { Err(ProxyError) }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address.to_string().trim_end_matches('/'))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The value of `Proxy-Authorization` for `USER:PASSWORD`, in which `%40` stands for `@`.
fn basic(credentials: &str) -> Option<HeaderValue> {
    let mut bytes = Vec::with_capacity(credentials.len());
    let mut rest = credentials.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits =
            tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    if !bytes.contains(&b':') {
        bytes.push(b':');
    }
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(&bytes))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|place| u32::from(group.get(place).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for place in 0..4 {
            let sign = BASE64[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(sign) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown_without_its_credentials() {
        let check = |text: &str, shown: &str, credentials: Option<&str>| {
            let proxy: Proxy = text.parse().unwrap();
            assert_eq!(proxy.to_string(), shown, "{text}");
            assert_eq!(format!("{proxy:?}"), shown, "{text}");
            assert_eq!(proxy.credentials().as_ref().map(|value| value.to_str().unwrap()), credentials);
        };
        check("http://proxy.example:3128", "http://proxy.example:3128", None);
        check(" https://proxy.example/ ", "https://proxy.example", None);
        check("http://[::1]:8080", "http://[::1]:8080", None);
        check("http://ann:secret@p:1", "http://p:1", Some("Basic YW5uOnNlY3JldA=="));
        check("http://ann:a%40b%3A@p:1", "http://p:1", Some("Basic YW5uOmFAYjo="));
        check("http://ann@p:1", "http://p:1", Some("Basic YW5uOg=="));
        check("http://ann:100%@p:1", "http://p:1", Some("Basic YW5uOjEwMCU="));
        for wrong in
            ["", "proxy:3128", "socks5://p:1", "http://", "http://p/path", "http://p?x", "http://:80"]
        {
            assert_eq!(wrong.parse::<Proxy>(), Err(ProxyError), "{wrong}");
        }
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let check = |text: &str, expected: &str| assert_eq!(base64(text.as_bytes()), expected);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foob", "Zm9vYg==");
        check("fooba", "Zm9vYmE=");
        check("foobar", "Zm9vYmFy");
        check("\u{fb}\u{ff}", "w7vDvw==");
    }
}
