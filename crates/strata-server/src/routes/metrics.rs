//! `GET /metrics`: the meters, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use strata_core::key::KeyScope;

use crate::app::App;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(__path_read_metrics, read_metrics).needs(&[KeyScope::Admin]).unlimited()]
}

/// Read the meters
///
/// Requests by route and status, latencies, recorded turns, searches by retrieval path, how far the embedding of recorded
/// items is, how often the learning model could not be used or was refused, jobs that were given up, summaries that were made
/// without the model, and how many working contexts were compacted, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Prometheus' text format", body = String, content_type = "text/plain")))]
async fn read_metrics(State(app): State<App>) -> impl IntoResponse {
    if let Some(progress) = app.engine().maintenance.embedding() {
        app.meters().embedding(progress);
    }
    if let Some(record) = app.engine().learning.model_record() {
        app.meters().learning_model(record);
    }
    app.meters().jobs(app.engine().jobs.record());
    app.meters().compactions(app.engine().contexts.compactions());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.meters().render())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn meters_count_routes_not_paths() {
        let server = TestServer::new();
        server.post("/turns", json!({"messages": [{"role": "user", "content": "green tea"}]})).await;
        server.post("/search", json!({"query": "tea"})).await;
        server.get("/sessions/secret-name").await;
        server.get("/nowhere").await;
        let answer = server.get("/metrics").await;
        assert!(answer.header("content-type").unwrap().starts_with("text/plain"));
        for line in [
            "strata_turns_recorded_total 1",
            r#"strata_searches_total{path="fts"} 1"#,
            r#"strata_http_requests_total{method="POST",route="/turns",status="201"} 1"#,
            r#"strata_http_requests_total{method="GET",route="/sessions/{id}",status="404"} 1"#,
            r#"strata_http_requests_total{method="GET",route="unmatched",status="404"} 1"#,
            r#"strata_http_request_duration_seconds_count{method="POST",route="/search"} 1"#,
            "strata_http_requests_in_flight 1",
        ] {
            assert!(answer.body.lines().any(|found| found == line), "{line}\n{}", answer.body);
        }
        assert!(!answer.body.contains("secret-name"));
    }
}
