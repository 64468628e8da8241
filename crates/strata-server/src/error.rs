//! Errors as clients see them: a status code and `{"error":{"message","type","code"}}`.
//!
//! This module alone maps the core's error kinds to status codes. Routes that imitate another product report failures
//! in that product's shape: the answer carries its [`ErrorDetail`], and [`crate::compat`] makes the other body from
//! it.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use strata_core::{Error, ErrorKind};
use utoipa::ToSchema;

/// The longest message sent, in characters: a client that sends megabytes does not need them quoted back.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// The failure of a handler.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<u32>,
    challenge: Option<&'static str>,
    cause: Option<Arc<Error>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, challenge: None, cause: None }
    }

    /// The input is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// The request needs a key, or a different one.
    pub(crate) fn unauthorised(
        code: &'static str,
        challenge: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { challenge: Some(challenge), ..Self::new(StatusCode::UNAUTHORIZED, code, message) }
    }

    /// The caller may not do this.
    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// The code of the failure, for a program.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The problem and how to solve it, not longer than a client needs.
    pub(crate) fn message(&self) -> String {
        shortened(self.message.clone())
    }

    /// The cause, for the log only.
    pub(crate) fn cause(&self) -> Option<&Error> {
        self.cause.as_deref()
    }

    /// The status and the body.
    pub(crate) fn detail(&self) -> (StatusCode, ErrorDetail) {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::NOT_FOUND => "not_found_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        (self.status, ErrorDetail { message: self.message(), kind, code: self.code })
    }

    /// The same request may succeed later.
    pub(crate) fn retryable(self) -> Self {
        self.after(1)
    }

    /// The same request may succeed after this many seconds.
    pub(crate) fn after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let (status, code) = match error.kind() {
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            ErrorKind::Conflict => (StatusCode::CONFLICT, "conflict"),
            ErrorKind::Unconditional => (StatusCode::PRECONDITION_REQUIRED, "precondition_required"),
            ErrorKind::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
            ErrorKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            ErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            ErrorKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        // The text of a defect is for the operator: it may name tables and files.
        let message = match error.kind() {
            ErrorKind::Internal => INTERNAL_MESSAGE.to_owned(),
            _ => error.message().to_owned(),
        };
        let retry_after = error.is_retryable().then_some(1);
        let cause = status.is_server_error().then(|| Arc::new(error));
        Self { status, code, message, retry_after, challenge: None, cause }
    }
}

const INTERNAL_MESSAGE: &str =
    "something went wrong inside Strata; look for this answer's `X-Strata-Request-Id` in the server's log";

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error) = self.detail();
        let mut response =
            (status, Json(ErrorResponse { error: error.clone(), detail: None })).into_response();
        response.extensions_mut().insert(error);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(error) = self.cause {
            response.extensions_mut().insert(Cause(error));
        }
        response
    }
}

fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
        message.truncate(end);
        message.push('…');
    }
    message
}

/// The answer to a request whose handler panicked. The panic's message goes only to the server's standard error.
pub(crate) fn panicked(_payload: Box<dyn std::any::Any + Send + 'static>) -> Response {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", INTERNAL_MESSAGE).into_response()
}

/// The answer to an unknown path.
pub(crate) async fn unknown_route() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "unknown_route",
        "there is no such route; `GET /` lists the routes of this server",
    )
}

/// The answer to a method that a route does not support.
pub(crate) async fn wrong_method(method: Method) -> ApiError {
    let shown: String = method.as_str().chars().take(32).collect();
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("this route does not answer to `{shown}`; the `Allow` header lists its methods"),
    )
}

/// An error with all its causes. None of them contains recorded text.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// The cause that the client is not told. It travels with the response to the log.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) Arc<Error>);

/// The body of every failure, on every route.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorResponse {
    /// The failure.
    pub(crate) error: ErrorDetail,
    /// The message again, on the routes that mem0's clients call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) detail: Option<String>,
}

/// A failure.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorDetail {
    /// The problem and how to solve it, for a person.
    pub(crate) message: String,
    /// The class of failure: `invalid_request_error`, `authentication_error`, `permission_error`, `not_found_error`,
    /// `rate_limit_error` or `server_error`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The code of the failure, for a program.
    pub(crate) code: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::body_text;

    #[tokio::test]
    async fn each_kind_of_the_core_has_its_status() {
        for (kind, status, code) in [
            (ErrorKind::NotFound, 404, "not_found"),
            (ErrorKind::Conflict, 409, "conflict"),
            (ErrorKind::Unconditional, 428, "precondition_required"),
            (ErrorKind::Invalid, 400, "invalid"),
            (ErrorKind::TooLarge, 413, "too_large"),
            (ErrorKind::Unavailable, 503, "unavailable"),
            (ErrorKind::Internal, 500, "internal"),
        ] {
            let response = ApiError::from(Error::new(kind, "table `turns`")).into_response();
            assert_eq!(response.status(), status);
            let told = kind == ErrorKind::Unavailable || kind == ErrorKind::Internal;
            assert_eq!(response.extensions().get::<Cause>().is_some(), told, "{kind:?}: the log learns why");
            let body = body_text(response).await;
            assert!(body.contains(&format!("\"code\":\"{code}\"")), "{body}");
            assert_eq!(body.contains("turns"), kind != ErrorKind::Internal, "{body}");
        }
    }

    #[tokio::test]
    async fn a_message_is_cut_between_characters_and_a_retry_is_announced() {
        let error = ApiError::invalid("长".repeat(MAX_MESSAGE_CHARS + 1)).retryable();
        let response = error.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let body = body_text(response).await;
        assert_eq!(body.matches('长').count(), MAX_MESSAGE_CHARS);
        assert!(body.contains("…\""));
    }
}
