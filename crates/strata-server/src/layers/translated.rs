//! Failures in the dialect of their route.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::compat;
use crate::error::ErrorDetail;
use crate::route::{Rules, RulesByPath};

/// Writes a failure in the shape that the clients of its route read. It is outside of everything that may refuse a request, so a
/// missing key or a limit is told in that shape too. Failures that an upstream answered pass as they are.
pub(crate) async fn translated(State(rules): State<RulesByPath>, request: Request, next: Next) -> Response {
    let dialect = Rules::of(&request, rules).dialect;
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ErrorDetail>() {
        Some(error) => compat::failure(dialect, error, response),
        None => response,
    }
}
