//! Our own errors under `/v1`, in the shape that OpenAI's clients read.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::ApiError;

/// An error of ours; one of the upstream's is passed on as it came.
pub(crate) struct ProxyError(pub(crate) ApiError);

#[derive(Serialize)]
struct Body {
    error: Detail,
}

#[derive(Serialize)]
struct Detail {
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'static str>,
    code: &'static str,
}

impl<E: Into<ApiError>> From<E> for ProxyError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ProxyError {
    fn into_response(self) -> Response {
        let (_, detail) = self.0.detail();
        let error = Detail { message: detail.message, kind: detail.kind, param: None, code: detail.code };
        self.0.answer(Body { error })
    }
}

/// A failure under `/v1`, ours or the upstream's, which may say more.
pub(crate) fn schema() -> Value {
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

/// Nobody has said where to pass things on to.
pub(crate) fn no_upstream() -> ProxyError {
    ProxyError(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "no_upstream",
        "no upstream is configured; start Strata with `--upstream URL` or set `upstream`, as in \
         `https://api.openai.com/v1`",
    ))
}
