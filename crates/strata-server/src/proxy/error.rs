//! Our own errors under `/v1`, in the shape that OpenAI's clients read.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

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

/// Nobody has said where to pass things on to.
pub(crate) fn no_upstream() -> ProxyError {
    ProxyError(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "no_upstream",
        "no upstream is configured; start Strata with `--upstream URL` or set `upstream`, as in \
         `https://api.openai.com/v1`",
    ))
}
