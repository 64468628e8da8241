//! OpenAI's wire format. [`request`] reads the request of a chat completion and changes only the few bytes that
//! concern memory; [`reply`] reads the answers while they pass.

pub(crate) mod reply;
pub(crate) mod request;
mod splice;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::ErrorDetail;

/// A failure in the shape that OpenAI's clients read.
#[derive(Serialize)]
pub(crate) struct FailureResponse {
    error: Failure,
}

#[derive(Serialize)]
struct Failure {
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'static str>,
    code: &'static str,
}

/// One of Strata's failures. A failure of the upstream is passed on unchanged.
pub(crate) fn failure(error: ErrorDetail) -> FailureResponse {
    let ErrorDetail { message, kind, code } = error;
    FailureResponse { error: Failure { message, kind, param: None, code } }
}

/// The schema of a failure under `/v1`. A failure of the upstream may have more fields.
pub(crate) fn failure_schema() -> Value {
    json!({
        "type": "object",
        "description": "A failure in the shape of OpenAI's. One of the upstream's is passed on as it came.",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type"],
                "properties": {
                    "message": { "type": "string", "description": "what went wrong, for a person" },
                    "type": { "type": ["string", "null"], "description": "the class of failure" },
                    "param": { "type": ["string", "null"], "description": "the field that is to blame" },
                    "code": { "type": ["string", "integer", "null"], "description": "the failure, for a program" },
                },
            },
        },
    })
}

/// The schema of a request: the fields that Strata reads. The upstream checks the others.
pub(crate) fn request_schema() -> Value {
    let name = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$" });
    let user = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": r"^(?!\*$)[^\x00-\x1f\x7f-\x9f]+$" });
    let share = json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 });
    json!({
        "type": "object",
        "description": "OpenAI's request with a few fields of Strata's own, which are not passed on.",
        "required": ["messages"],
        "properties": {
            "messages": { "type": "array", "items": { "type": "object" } },
            "stream": { "type": ["boolean", "null"] },
            "user": user,
            "user_id": user,
            "memory_id": name,
            "session_id": name,
            "run_id": name,
            "memory_top_k": {
                "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
                "description": "The most items. It never raises the tokens of the setting `max_context_tokens`.",
            },
            "memory_recency_weight": share,
            "memory_score_threshold": share,
            "memory_rerank": {
                "type": ["boolean", "null"],
                "description": "Whether a cross-encoder reads the best candidates with the question and reorders them, instead of the setting `recall.rerank`.",
            },
            "memory_scope": {
                "type": ["string", "null"], "enum": ["session", "user", null],
                "description": "How far recall looks, instead of the setting `recall.scope`: `session` keeps to the session, `user` looks at all of the user's sessions. Without a user, or with a key whose recall scope is `session`, recall always keeps to the session.",
            },
        },
        "additionalProperties": true,
    })
}
