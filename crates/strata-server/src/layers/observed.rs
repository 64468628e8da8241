//! One structured log line and the meters for each request.
//!
//! A route is logged as its pattern, never as the requested path. Recorded text and names of users are never logged.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::error::{Cause, chain};
use crate::telemetry::{InFlight, REQUEST_ID};

/// Measures a request and writes its log line.
pub(crate) async fn observed(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let _in_flight = InFlight::begin(app.meters());
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;

    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let status = response.status();
    let latency = started.elapsed();
    app.meters().answered(method, route, status.as_u16(), latency.as_secs_f64());

    let request_id = response.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let (status, latency_us) = (status.as_u16(), latency.as_micros() as u64);
    match response.extensions().get::<Cause>() {
        Some(Cause(error)) => {
            let (error, retryable) = (chain(error), error.is_retryable());
            tracing::error!(
                request_id,
                method,
                route,
                status,
                latency_us,
                error,
                retryable,
                "request failed"
            );
        }
        None if status >= 500 => {
            tracing::error!(request_id, method, route, status, latency_us, "request failed");
        }
        None => tracing::info!(request_id, method, route, status, latency_us, "request"),
    }
    response
}

/// A method's name as a label. Clients may invent methods, but the number of labels must stay small.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
