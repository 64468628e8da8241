//! OpenAI's wire formats: [`completions`], [`responses`], and the events of [`realtime`] conversations.

pub(crate) mod completions;
pub(crate) mod realtime;
pub(crate) mod responses;

use serde::Serialize;

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
