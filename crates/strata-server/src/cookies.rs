//! The cookies of the inspector: the key of a person who is signed in, and the token of forms. No other route has cookies.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use strata_core::key::KEY_PREFIX;

use crate::keys::API_KEY;

/// The cookie with the key.
pub(crate) const KEY_COOKIE: &str = "strata_inspector";

/// The cookie with the token of forms.
pub(crate) const FORM_COOKIE: &str = "strata_form";

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// A cookie for the inspector alone. `seconds` is its age; `None` keeps it until the browser is closed.
pub(crate) fn set_cookie(name: &str, value: &str, seconds: Option<u32>) -> Option<HeaderValue> {
    let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let cookie = format!("{name}={value}; Path=/inspect; HttpOnly; SameSite=Strict{age}");
    HeaderValue::from_str(&cookie).ok()
}

/// The headers with the key of the cookie, if they hold no other key.
pub(crate) fn with_cookie_key(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let has_key = headers.contains_key(API_KEY) || headers.contains_key(AUTHORIZATION);
    let key = cookie(&headers, KEY_COOKIE).filter(|key| key.starts_with(KEY_PREFIX));
    if let Some(key) = key.and_then(|key| HeaderValue::from_str(key).ok()).filter(|_| !has_key) {
        headers.insert(API_KEY, key);
    }
    headers
}

/// The value of a `Cookie` header without the inspector's cookies; `None` if nothing is left. A browser does not send them
/// to other paths, and a client that does must not have them passed on.
pub(crate) fn without_cookies(value: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = value.to_str() else { return Some(value.clone()) };
    let is_ours = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default().trim();
        name == KEY_COOKIE || name == FORM_COOKIE
    };
    if !text.split(';').any(|pair| is_ours(&pair)) {
        return Some(value.clone());
    }
    let left: Vec<&str> = text.split(';').filter(|pair| !is_ours(pair)).map(str::trim).collect();
    (!left.is_empty()).then(|| HeaderValue::from_str(&left.join("; ")).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookies_stay_here() {
        let left = |value: &str| {
            let left = without_cookies(&HeaderValue::from_str(value).unwrap());
            left.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(left("a=1; b=2").as_deref(), Some("a=1; b=2"));
        assert_eq!(left("a=1; strata_inspector=strata_x; b=2").as_deref(), Some("a=1; b=2"));
        assert_eq!(left("strata_form=1;strata_inspector=strata_x"), None);
    }
}
