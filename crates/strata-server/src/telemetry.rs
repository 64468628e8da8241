//! What an operator sees of requests: an id on every answer, one structured log line each, and meters.
//!
//! Deliberately absent from both: what was said, asked or remembered, the names of users and sessions, and the client's
//! software. A route is logged as its pattern, never as the path that was called.

use std::error::Error as _;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use metrics::{Label, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use strata_core::Error;

use crate::app::App;
use crate::error::Cause;

/// Names the answer; `GET /requests` and the log know it under this id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-strata-request-id");

/// Seconds, from a recall in memory (half a millisecond) to the request timeout.
const LATENCY_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0];

const REQUESTS: &str = "strata_http_requests_total";
const LATENCY: &str = "strata_http_request_duration_seconds";
const IN_FLIGHT: &str = "strata_http_requests_in_flight";
const TURNS: &str = "strata_turns_recorded_total";
const MEMORIES: &str = "strata_memories_added_total";
const SEARCHES: &str = "strata_searches_total";
const CHATS: &str = "strata_chats_total";
const STABLE: &str = "strata_chat_stable_prefix_ratio";

/// Shares of a prompt.
const SHARE_BUCKETS: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// The server's own meters. They belong to one [`App`], not to the process, so that two servers in one program (or two
/// tests) do not count into each other's.
pub(crate) struct Meters {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let buckets = [(LATENCY, &LATENCY_BUCKETS[..]), (STABLE, &SHARE_BUCKETS)];
        let builder = buckets.into_iter().try_fold(PrometheusBuilder::new(), |builder, (name, buckets)| {
            builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)
        });
        // Only an empty list of buckets is refused.
        let builder = builder.unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let meters = Self { recorder, handle };
        meters.describe();
        meters
    }

    fn describe(&self) {
        metrics::with_local_recorder(&self.recorder, || {
            metrics::describe_counter!(REQUESTS, "Requests answered, by method, route and status.");
            metrics::describe_histogram!(LATENCY, Unit::Seconds, "Time from a request's head to its answer.");
            metrics::describe_gauge!(IN_FLIGHT, "Requests being worked on.");
            metrics::describe_counter!(TURNS, "Turns recorded over HTTP, replays not counted.");
            metrics::describe_counter!(MEMORIES, "Memories added over HTTP.");
            metrics::describe_counter!(SEARCHES, "Searches answered, by the path that gave the result.");
            metrics::describe_counter!(CHATS, "Chats passed on, by what memory and the model did.");
            metrics::describe_histogram!(
                STABLE,
                "How much of a prompt was as in the session's last request."
            );
        });
    }

    pub(crate) fn turns_recorded(&self, count: usize) {
        metrics::with_local_recorder(&self.recorder, || metrics::counter!(TURNS).increment(count as u64));
    }

    pub(crate) fn memories_added(&self, count: usize) {
        metrics::with_local_recorder(&self.recorder, || metrics::counter!(MEMORIES).increment(count as u64));
    }

    pub(crate) fn searched(&self, path: &'static str) {
        metrics::with_local_recorder(&self.recorder, || {
            metrics::counter!(SEARCHES, "path" => path).increment(1)
        });
    }

    pub(crate) fn chatted(&self, memory: &'static str, reply: &'static str) {
        metrics::with_local_recorder(&self.recorder, || {
            metrics::counter!(CHATS, "memory" => memory, "reply" => reply).increment(1)
        });
    }

    pub(crate) fn prompt_stayed(&self, share: f64) {
        metrics::with_local_recorder(&self.recorder, || metrics::histogram!(STABLE).record(share));
    }

    fn answered(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let route = Label::new("route", route.to_owned());
        let method = Label::from_static_parts("method", method);
        metrics::with_local_recorder(&self.recorder, || {
            let labels = vec![method.clone(), route.clone(), Label::new("status", status.to_string())];
            metrics::counter!(REQUESTS, labels).increment(1);
            metrics::histogram!(LATENCY, vec![method, route]).record(seconds);
        });
    }

    /// The Prometheus text.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }

    /// Folds measured times into their buckets. Without it, a server whose meters nobody reads would keep each one.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Counts a request as under way until it is dropped, be it answered or given up by its client.
struct InFlight<'a>(&'a Meters);

impl<'a> InFlight<'a> {
    fn begin(meters: &'a Meters) -> Self {
        metrics::with_local_recorder(&meters.recorder, || metrics::gauge!(IN_FLIGHT).increment(1.0));
        Self(meters)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        metrics::with_local_recorder(&self.0.recorder, || metrics::gauge!(IN_FLIGHT).decrement(1.0));
    }
}

/// Gives the answer its id, measures and logs.
pub(crate) async fn observed(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let _in_flight = InFlight::begin(app.meters());
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;

    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let status = response.status();
    let latency = started.elapsed();
    // A search has its id from recall, under which its trace is kept.
    if !response.headers().contains_key(&REQUEST_ID) {
        set_request_id(&mut response, app.engine().next_id());
    }
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

/// Names an answer.
pub(crate) fn set_request_id(response: &mut Response, id: uuid::Uuid) {
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

/// The error with all its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// A method's name as a label; clients may invent methods, and labels must stay few.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_count_apart() {
        let (one, other) = (Meters::new(), Meters::new());
        one.turns_recorded(3);
        one.answered("GET", "/sessions/{id}", 200, 0.003);
        one.upkeep();
        let text = one.render();
        assert!(text.contains("strata_turns_recorded_total 3"), "{text}");
        assert!(
            text.contains(
                r#"strata_http_requests_total{method="GET",route="/sessions/{id}",status="200"} 1"#
            ),
            "{text}"
        );
        assert!(text.contains(r#"le="0.005"} 1"#), "{text}");
        assert!(!other.render().contains("strata_turns_recorded_total 3"));
    }

    #[test]
    fn a_request_given_up_is_no_longer_in_flight() {
        let meters = Meters::new();
        let in_flight = InFlight::begin(&meters);
        assert!(meters.render().contains("strata_http_requests_in_flight 1"));
        drop(in_flight);
        assert!(meters.render().contains("strata_http_requests_in_flight 0"));
    }
}
