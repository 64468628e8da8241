//! What Strata's OpenAPI document says about the requests of the providers' APIs.

use serde_json::Value;

/// The reason for which a request is invalid by Strata's document.
pub(super) fn problem(path: &str, body: &Value) -> Option<&'static str> {
    let is_list = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_object));
    let is_text = |value: &Value| value.is_string() || value.is_null();
    let is_wrong =
        |name: &str, is_right: &dyn Fn(&Value) -> bool| body.get(name).is_some_and(|value| !is_right(value));
    if is_wrong("stream", &|value| value.is_boolean() || value.is_null()) {
        return Some("`stream` is true or false");
    }
    match path {
        "/v1/responses" if is_wrong("input", &|value| is_text(value) || is_list(value)) => {
            Some("`input` is wrong")
        }
        "/v1/responses" if is_wrong("conversation", &is_conversation) => Some("`conversation` is wrong"),
        "/v1/responses" if is_wrong("previous_response_id", &is_text) => {
            Some("`previous_response_id` is wrong")
        }
        "/v1/messages" | "/api/chat" if is_wrong("messages", &is_list) => Some("`messages` is wrong"),
        "/api/generate" if is_wrong("prompt", &is_text) => Some("`prompt` is wrong"),
        _ => None,
    }
}

/// Whether a value names a conversation, or none.
fn is_conversation(value: &Value) -> bool {
    match value {
        Value::Null | Value::String(_) => true,
        Value::Object(named) => named.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty()),
        _ => false,
    }
}
