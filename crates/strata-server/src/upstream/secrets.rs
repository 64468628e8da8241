//! Strata's keys in what a client sends: they stay here, in whatever header, scheme, cookie or parameter they come.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use strata_core::key::KEY_PREFIX;

use super::paths::decoded;

/// A text behind the prefix of a key with fewer characters is no secret.
const LEAST_SECRET: usize = 12;

/// Removes the headers that hold a key of Strata's. Of cookies, only those that hold one are removed.
pub(crate) fn remove_keys(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers
        .iter()
        .filter(|(_, value)| holds_key(value.as_bytes()))
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        headers.remove(&name);
        for value in values {
            let left = if holds_key(value.as_bytes()) { other_cookies(&name, &value) } else { Some(value) };
            if let Some(left) = left {
                headers.append(name.clone(), left);
            }
        }
    }
}

/// The cookies that hold no key.
fn other_cookies(name: &HeaderName, value: &HeaderValue) -> Option<HeaderValue> {
    let text = value.to_str().ok().filter(|_| *name == COOKIE)?;
    let others: Vec<&str> =
        text.split(';').map(str::trim).filter(|pair| !holds_key(pair.as_bytes())).collect();
    if others.is_empty() { None } else { HeaderValue::from_str(&others.join("; ")).ok() }
}

/// A query without the parameters that hold a key of Strata's.
pub(crate) fn without_keys(query: &str) -> String {
    let pairs: Vec<&str> = query.split('&').filter(|pair| !holds_key(pair.as_bytes())).collect();
    pairs.join("&")
}

/// Whether a text holds a key of Strata's: as it is, percent-encoded, or in Base64, as the scheme `Basic` has it.
pub(super) fn holds_key(text: &[u8]) -> bool {
    if is_key_in(text) || is_key_in(&decoded(text)) {
        return true;
    }
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let words = text.split(|byte| !is_base64(byte)).filter(|word| word.len() > LEAST_SECRET);
    words.into_iter().any(|word| is_key_in(&from_base64(word)))
}

fn is_key_in(text: &[u8]) -> bool {
    let prefix = KEY_PREFIX.as_bytes();
    let begins = text.windows(prefix.len()).enumerate().filter(|(_, part)| part.eq_ignore_ascii_case(prefix));
    begins.into_iter().any(|(at, _)| {
        let rest = &text[at + prefix.len()..];
        rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count() >= LEAST_SECRET
    })
}

/// The bytes of a text in Base64, of either alphabet.
fn from_base64(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "strata_0123456789abcdefghjkmnpqrstvwxyz";

    #[test]
    fn a_key_is_found_in_any_form() {
        let basic = "Basic dXNlcjpzdHJhdGFfMDEyMzQ1Njc4OWFiY2RlZmdoamttbnBxcnN0dnd4eXo=";
        for text in [
            KEY.to_owned(),
            format!("Bearer {KEY}"),
            format!("Digest username=\"a\", key={KEY}"),
            format!("a=b; session={KEY}; c=d"),
            KEY.replace('_', "%5F"),
            KEY.to_uppercase(),
            basic.to_owned(),
        ] {
            assert!(holds_key(text.as_bytes()), "{text}");
        }
        for text in [
            "Bearer sk-proj-abcdefghijklmnop",
            "strata_memory",
            "use strata_x",
            "",
            "Basic dXNlcjpwYXNzd29yZA==",
        ] {
            assert!(!holds_key(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_holds_no_key_stays() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, format!("a=b; k={KEY}; c=d").parse().unwrap());
        headers.append("x-custom", KEY.parse().unwrap());
        headers.append("x-custom", "other".parse().unwrap());
        headers.append("authorization", "Bearer sk-1".parse().unwrap());
        remove_keys(&mut headers);
        assert_eq!(headers[COOKIE], "a=b; c=d");
        assert_eq!(headers.get_all("x-custom").iter().collect::<Vec<_>>(), ["other"]);
        assert_eq!(headers["authorization"], "Bearer sk-1");
        assert_eq!(without_keys(&format!("a=1&api_key={KEY}&b=2")), "a=1&b=2");
    }
}
