//! Routes that imitate other products: mem0's hosted service, and the APIs of model providers ([`chat`]).
//!
//! Foreign paths, wire formats and error shapes are known only in this module. The requests end in the same use-cases
//! as Strata's own routes.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod mem0;
pub(crate) mod ollama;
pub(crate) mod openai;

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::error::{ErrorDetail, ErrorResponse};
use crate::route::Dialect;

/// Strata's failure, written in a dialect. `answer` is the same failure in Strata's own shape.
pub(crate) fn failure(dialect: Dialect, error: ErrorDetail, answer: Response) -> Response {
    let body = match dialect {
        Dialect::Strata | Dialect::Page => return answer,
        Dialect::Mem0 => {
            let detail = Some(error.message.clone());
            Json(ErrorResponse { error, detail }).into_response()
        }
        Dialect::OpenAi => Json(openai::failure(error)).into_response(),
        Dialect::Anthropic => Json(anthropic::failure(error)).into_response(),
        Dialect::Ollama => Json(ollama::failure(error)).into_response(),
    };
    let (mut parts, _) = answer.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body.into_body())
}
