//! Answers to keys without the scope `read`: they tell what was done, and nothing that is stored.
//!
//! A call that writes mostly answers with what it has changed, for instance with the memory that a new one replaces. A key
//! without `read` gets the ids, counts and events of such an answer alone, and an empty text for each memory. The fields that stay are listed here, so the
//! answer of a new route is withheld until somebody has thought about it.

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use strata_core::Error;

use crate::error::ApiError;

/// The fields that hold nothing of what was said. `message` is a fixed sentence, `note` too. Kinds, scopes and times are not
/// among them: they tell about memories that the key has not written.
const PLAIN: [&str; 22] = [
    "results",
    "id",
    "event",
    "turns",
    "seq",
    "count",
    "deleted",
    "removed",
    "memories",
    "summaries",
    "sessions",
    "requests",
    "states",
    "jobs",
    "vectors",
    "message",
    "note",
    "compacted",
    "replayed",
    "status",
    "session_id",
    "user_id",
];

/// The text of a memory. It is empty, because clients expect the field.
const TEXT: &str = "memory";

/// An answer without stored content. Failures and answers that are not JSON stay as they are.
pub(super) async fn withheld(response: Response) -> Response {
    let is_json = |response: &Response| {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("application/json"))
    };
    if !response.status().is_success() || !is_json(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let Ok(mut answer) = serde_json::from_slice::<Value>(&bytes) else {
        return ApiError::from(Error::internal("an answer is not JSON")).into_response();
    };
    withhold(&mut answer);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(answer.to_string()))
}

/// Removes all fields from a value that may hold stored content.
pub(crate) fn withhold(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(withhold),
        Value::Object(fields) => {
            if let Some(text) = fields.get_mut(TEXT).filter(|text| text.is_string()) {
                *text = Value::from("");
            }
            fields.retain(|name, _| name == TEXT || PLAIN.contains(&name.as_str()));
            fields.values_mut().for_each(withhold);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_listed_fields_stay() {
        let mut answer = json!({
            "results": [{"id": "1", "memory": "likes tea", "event": "UPDATE", "previous_memory": "likes milk",
                "kind": "preference", "scope": "user", "valid_from": "2026-03-01T10:00:00Z",
                "created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z"}],
            "context": {"facts": ["a"], "session_id": "s"},
            "removed": {"memories": 2, "note": "fixed"},
            "future": "unknown",
        });
        withhold(&mut answer);
        let expected = json!({
            "results": [{"id": "1", "memory": "", "event": "UPDATE"}],
            "removed": {"memories": 2, "note": "fixed"},
        });
        assert_eq!(answer, expected);
    }
}
