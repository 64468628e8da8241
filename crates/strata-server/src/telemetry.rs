//! The meters of a server, and the header with a request's id.
//!
//! Deliberately absent: recorded text, questions, memories, the names of users and sessions, and the client's
//! software.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use metrics::{Label, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use strata_engine::{EmbeddingProgress, JobRecord, ModelRecord};
use tokio::sync::Notify;

/// The header with an answer's id. `GET /requests` and the log have the same id.
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
const EMBEDDED: &str = "strata_items_embedded_total";
const EMBEDDING_WAITS: &str = "strata_embedding_waiting";
const MODEL_FAILURES: &str = "strata_learning_model_failures_total";
const MODEL_REFUSALS: &str = "strata_learning_model_refusals_total";
const DEAD_JOBS: &str = "strata_jobs_dead_total";
const WITHOUT_MODEL: &str = "strata_summaries_without_model_total";
const TAKEN_OVER: &str = "strata_summaries_taken_over_total";
const COMPACTIONS: &str = "strata_context_compactions_total";
const STABLE: &str = "strata_chat_stable_prefix_ratio";

/// Shares of a prompt.
const SHARE_BUCKETS: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// The server's own meters. They belong to one [`App`], not to the process, so two servers in one program (or two
/// tests) count separately.
pub(crate) struct Meters {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// Told of each answer.
    measured: Notify,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let buckets = [(LATENCY, &LATENCY_BUCKETS[..]), (STABLE, &SHARE_BUCKETS)];
        let builder = buckets.into_iter().try_fold(PrometheusBuilder::new(), |builder, (name, buckets)| {
            builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)
        });
        // Only an empty list of buckets is an error.
        let builder = builder.unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let meters = Self { recorder, handle, measured: Notify::new() };
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
            metrics::describe_counter!(EMBEDDED, "Items embedded by this process.");
            metrics::describe_gauge!(
                EMBEDDING_WAITS,
                "Changes that wait to be embedded, over the 64 users furthest behind."
            );
            metrics::describe_counter!(
                MODEL_FAILURES,
                "How often the learning model could not be used, and the reader did its work."
            );
            metrics::describe_counter!(
                MODEL_REFUSALS,
                "Statements of the learning model with a value that was never said, and changes that the message does not speak about."
            );
            metrics::describe_counter!(DEAD_JOBS, "Jobs that this process gave up, by kind.");
            metrics::describe_counter!(
                WITHOUT_MODEL,
                "Summaries that were made without the model, because it failed, by strategy."
            );
            metrics::describe_counter!(TAKEN_OVER, "Summaries that another worker had left unfinished.");
            metrics::describe_counter!(
                COMPACTIONS,
                "Working contexts compacted by this process, in the background or on request."
            );
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

    pub(crate) fn answered(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let route = Label::new("route", route.to_owned());
        let method = Label::from_static_parts("method", method);
        metrics::with_local_recorder(&self.recorder, || {
            let labels = vec![method.clone(), route.clone(), Label::new("status", status.to_string())];
            metrics::counter!(REQUESTS, labels).increment(1);
            metrics::histogram!(LATENCY, vec![method, route]).record(seconds);
        });
        self.measured.notify_one();
    }

    /// How far the embedding is, as the engine counts it.
    pub(crate) fn embedding(&self, progress: EmbeddingProgress) {
        metrics::with_local_recorder(&self.recorder, || {
            metrics::counter!(EMBEDDED).absolute(progress.embedded);
            metrics::gauge!(EMBEDDING_WAITS).set(progress.waiting as f64);
        });
    }

    /// How the learning model did, as the engine counts it.
    pub(crate) fn learning_model(&self, record: ModelRecord) {
        metrics::with_local_recorder(&self.recorder, || {
            metrics::counter!(MODEL_FAILURES).absolute(record.failures);
            metrics::counter!(MODEL_REFUSALS, "of" => "statement").absolute(record.refused_statements);
            metrics::counter!(MODEL_REFUSALS, "of" => "change").absolute(record.refused_changes);
        });
    }

    /// The failures in the background, as the engine counts it.
    pub(crate) fn jobs(&self, record: JobRecord) {
        metrics::with_local_recorder(&self.recorder, || {
            // Summaries are counted from the start, so that an alert on them has a value.
            let summaries = ("summarise".to_owned(), 0);
            for (kind, count) in [summaries].into_iter().chain(record.dead) {
                metrics::counter!(DEAD_JOBS, "kind" => kind).absolute(count);
            }
            for strategy in ["window", "tree"] {
                let count = record.without_model.get(strategy).copied().unwrap_or(0);
                metrics::counter!(WITHOUT_MODEL, "strategy" => strategy).absolute(count);
            }
            metrics::counter!(TAKEN_OVER).absolute(record.taken_over);
        });
    }

    /// The number of compactions, as the engine counts it.
    pub(crate) fn compactions(&self, count: u64) {
        metrics::with_local_recorder(&self.recorder, || metrics::counter!(COMPACTIONS).absolute(count));
    }

    /// The Prometheus text.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }

    /// Returns when something was measured since the last call.
    pub(crate) async fn measured(&self) {
        self.measured.notified().await;
    }

    /// Folds measurements into their buckets. Otherwise a server whose meters are never read would keep every
    /// measurement.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Counts a request as in flight until this value is dropped: when the request is answered, or when its client
/// disconnects.
pub(crate) struct InFlight<'a>(&'a Meters);

impl<'a> InFlight<'a> {
    pub(crate) fn begin(meters: &'a Meters) -> Self {
        metrics::with_local_recorder(&meters.recorder, || metrics::gauge!(IN_FLIGHT).increment(1.0));
        Self(meters)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        metrics::with_local_recorder(&self.0.recorder, || metrics::gauge!(IN_FLIGHT).decrement(1.0));
    }
}

/// The header with the number of damaged items that recall has passed over.
const UNREADABLE: HeaderName = HeaderName::from_static("x-strata-memory-unreadable");

/// Tells how many stored items are damaged and were passed over, if there are any.
pub(crate) fn tell_unreadable(count: u64, response: &mut Response) {
    if count > 0 {
        response.headers_mut().insert(UNREADABLE, count.into());
    }
}

/// Sets the request id of an answer.
pub(crate) fn set_request_id(response: &mut Response, id: uuid::Uuid) {
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
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
    fn failed_summaries_are_shown() {
        let meters = Meters::new();
        meters.jobs(JobRecord::default());
        let text = meters.render();
        assert!(text.contains(r#"strata_jobs_dead_total{kind="summarise"} 0"#), "{text}");
        let record = JobRecord {
            dead: [("summarise".to_owned(), 2), ("extract".to_owned(), 1)].into(),
            without_model: [("tree", 3)].into(),
            taken_over: 4,
        };
        meters.jobs(record);
        let text = meters.render();
        for line in [
            r#"strata_jobs_dead_total{kind="summarise"} 2"#,
            r#"strata_jobs_dead_total{kind="extract"} 1"#,
            r#"strata_summaries_without_model_total{strategy="window"} 0"#,
            r#"strata_summaries_without_model_total{strategy="tree"} 3"#,
            "strata_summaries_taken_over_total 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_embedding_s_progress_is_shown() {
        let meters = Meters::new();
        meters.embedding(EmbeddingProgress { embedded: 3, waiting: 40 });
        meters.embedding(EmbeddingProgress { embedded: 35, waiting: 8 });
        let text = meters.render();
        assert!(text.contains("strata_items_embedded_total 35"), "{text}");
        assert!(text.contains("strata_embedding_waiting 8"), "{text}");
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
