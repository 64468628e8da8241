//! The paths of requests for an upstream: made plain before they are matched and passed on, and known or not.
//!
//! A path with dot segments, doubled slashes or encoded letters could mean one thing to Strata and another to the
//! upstream. So it is made plain first. A path that would leave the address of the upstream, or hides a dot segment
//! behind encoded slashes, is refused.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::Uri;

use crate::error::ApiError;

/// The first segments of the providers' APIs.
const APIS: [&str; 3] = ["v1", "api", "openai"];

/// The most rounds of decoding: a server may decode a path once more than it should.
const MAX_ROUNDS: usize = 4;

/// The paths behind `/v1` and `/openai/v1` that providers are known to have.
const KNOWN: [&str; 33] = [
    "assistants",
    "audio",
    "batches",
    "chat",
    "classify",
    "completions",
    "complete",
    "containers",
    "conversations",
    "detokenize",
    "edits",
    "embeddings",
    "engines",
    "evals",
    "files",
    "fine_tuning",
    "fine-tunes",
    "images",
    "infill",
    "messages",
    "models",
    "moderations",
    "pooling",
    "realtime",
    "rerank",
    "responses",
    "score",
    "threads",
    "tokenize",
    "uploads",
    "vector_stores",
    "videos",
    "skills",
];

/// The paths behind `/api` that Ollama has.
const OLLAMA: [&str; 15] = [
    "blobs",
    "chat",
    "copy",
    "create",
    "delete",
    "embed",
    "embeddings",
    "generate",
    "ps",
    "pull",
    "push",
    "show",
    "tags",
    "version",
    "me",
];

/// Makes the path of a request to a provider's API plain. Other paths stay as they are.
pub(crate) fn with_plain_path(mut request: Request) -> Request {
    let uri = request.uri();
    if let Ok(Cow::Owned(path)) = plain(uri.path()) {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = format!("{path}{query}").parse().ok();
        if let Some(changed) = parts.path_and_query.is_some().then(|| Uri::from_parts(parts).ok()).flatten() {
            *request.uri_mut() = changed;
        }
    }
    request
}

/// A path of a provider's API without dot segments, doubled slashes and needlessly encoded characters.
pub(super) fn plain(path: &str) -> Result<Cow<'_, str>, ApiError> {
    let refused = || {
        ApiError::invalid(
            "the path has dot segments or control characters; send the plain path of the provider's API",
        )
    };
    let mut segments: Vec<Cow<'_, str>> = Vec::new();
    for segment in path.split('/').skip(1) {
        let segment = unreserved(segment);
        match segment.as_ref() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let is_provider = |segment: &str| APIS.contains(&segment.to_ascii_lowercase().as_str());
    let began = path.split('/').map(unreserved).find(|segment| !matches!(segment.as_ref(), "" | "." | ".."));
    if !began.is_some_and(|first| is_provider(&first)) {
        return Ok(Cow::Borrowed(path));
    }
    if !segments.first().is_some_and(|first| APIS.contains(&first.as_ref()))
        || segments.iter().any(|one| hides(one))
    {
        return Err(refused());
    }
    let last = path.rsplit('/').next().map(unreserved).unwrap_or_default();
    let ends = if matches!(last.as_ref(), "" | "." | "..") && segments.len() > 1 { "/" } else { "" };
    let made = format!("/{}{ends}", segments.join("/"));
    Ok(if made == path { Cow::Borrowed(path) } else { Cow::Owned(made) })
}

/// Whether a provider is known to have a path, so that the configured key may go there.
pub(super) fn is_known(path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    let mut next = || segments.next().unwrap_or_default();
    match next() {
        "v1" => KNOWN.contains(&next()),
        "api" => OLLAMA.contains(&next()),
        "openai" => match next() {
            "v1" => KNOWN.contains(&next()),
            "deployments" => !next().is_empty() && KNOWN.contains(&next()),
            other => KNOWN.contains(&other),
        },
        _ => false,
    }
}

/// A segment whose encoded letters, digits, `-`, `.`, `_` and `~` are decoded, which changes nothing (RFC 3986, 6.2.2.2).
fn unreserved(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let mut plain = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let byte = rest.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok()).map(char::from);
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, '-' | '.' | '_' | '~') => {
                plain.push(byte);
                rest = &rest[3..];
            }
            _ => {
                plain.push('%');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Whether a segment hides a dot segment or a control character behind encoded characters.
fn hides(segment: &str) -> bool {
    let mut bytes = segment.as_bytes().to_vec();
    for _ in 0..MAX_ROUNDS {
        if bytes.iter().any(|byte| byte.is_ascii_control()) {
            return true;
        }
        let mut parts = bytes.split(|byte| matches!(byte, b'/' | b'\\'));
        if parts.any(|part| matches!(part, b"." | b"..") || part.starts_with(b"..;")) {
            return true;
        }
        let decoded = decoded(&bytes);
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    // A path that is encoded that often is not a name.
    true
}

/// Bytes in which `%41` is decoded once.
pub(crate) fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_made_plain() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(plain(path).ok().as_deref(), expected, "{path}");
        };
        check("/v1/chat/completions", Some("/v1/chat/completions"));
        check("//v1//chat/completions", Some("/v1/chat/completions"));
        check("/v1/./chat/x/../completions", Some("/v1/chat/completions"));
        check("/v1/%63hat/completions", Some("/v1/chat/completions"));
        check("/v1/models/org%2Fmodel", Some("/v1/models/org%2Fmodel"));
        check("/v1/files/", Some("/v1/files/"));
        check("/v1/files/x/..", Some("/v1/files/"));
        check("/v1/files/é%20b", Some("/v1/files/é%20b"));
        check("/v1/../admin", None);
        check("/v1/%2e%2e/admin", None);
        check("/v1/x/../../admin", None);
        check("/v1/../../v1/../root", None);
        check("/v1/..%2f..%2fadmin", None);
        check("/v1/..%5cadmin", None);
        check("/v1/%252e%252e%252fadmin", None);
        check("/v1/..;/admin", None);
        check("/v1/a%00b", None);
        check("/v1/a%0d%0ab", None);
        check("/V1/models", None);
        // Strata's own paths have names of any form.
        check("/sessions/..%2Fann%2Fwalks", Some("/sessions/..%2Fann%2Fwalks"));
        check("/sessions//x", Some("/sessions//x"));
    }

    #[test]
    fn known_paths_are_those_of_the_providers() {
        for path in [
            "/v1/chat/completions",
            "/v1/models",
            "/v1/messages/count_tokens",
            "/v1/responses/r_1",
            "/api/tags",
            "/openai/deployments/d/chat/completions",
            "/openai/v1/responses",
            "/openai/files",
        ] {
            assert!(is_known(path), "{path}");
        }
        for path in [
            "/v1/organization/admin_api_keys",
            "/v1",
            "/v1/",
            "/api/v1/users",
            "/openai/deployments/d",
            "/admin",
            "/v1/keys",
        ] {
            assert!(!is_known(path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_path_stays_under_its_api(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "/", "v1", "..", ".", "%2e", "%2E", "%2f", "%5C", "\\", "admin", "%25", "2e", ";", "x", "/v1/",
                ]),
                0..14,
            )
        ) {
            let path = format!("/v1/{}", pieces.concat());
            if let Ok(made) = plain(&path) {
                prop_assert!(made.starts_with("/v1/") || made == "/v1", "{path} {made}");
                let mut seen = made.as_bytes().to_vec();
                for _ in 0..3 {
                    let text = String::from_utf8_lossy(&seen).into_owned();
                    prop_assert!(!text.split(['/', '\\']).any(|part| part == ".."), "{path} {made}");
                    seen = decoded(&seen);
                }
                prop_assert!(!made.contains("//"), "{path} {made}");
                prop_assert_eq!(plain(&made).ok().map(Cow::into_owned), Some(made.into_owned()));
            }
        }
    }
}
