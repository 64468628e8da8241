//! `GET /sessions/{id}/summaries`: the versions of a session's summaries.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_core::SessionId;
use strata_core::summary::SummaryStats;
use strata_engine::SummaryVersion;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::params::{Limit, SessionPath, UserName, limit};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Params, PathName};
use crate::identity::Caller;
use crate::router::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![("/sessions/{id}/summaries", get(list_summaries))]
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SummariesParams {
    /// Whose session; `default` where nobody says.
    #[param(value_type = Option<UserName>, inline, nullable = false)]
    user_id: Option<String>,
    /// How many at the most.
    #[param(value_type = Option<Limit>, inline, nullable = false)]
    limit: Option<String>,
}

/// The versions of a session's summaries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummariesResponse {
    summaries: Vec<SummaryResponse>,
    /// What the last thousand of them took.
    stats: StatsResponse,
}

/// What making summaries took.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsResponse {
    /// Completed ones whose time is known.
    total_summaries: u64,
    /// Milliseconds of one on average.
    avg_ms: Option<u64>,
    /// Milliseconds of the slowest.
    max_ms: Option<u64>,
    /// Those that are `processing` for more than five minutes.
    stuck: u64,
}

impl From<SummaryStats> for StatsResponse {
    fn from(stats: SummaryStats) -> Self {
        let SummaryStats { total_summaries, avg_ms, max_ms, stuck } = stats;
        Self { total_summaries, avg_ms, max_ms, stuck }
    }
}

/// One version of a summary.
#[derive(Debug, Serialize, ToSchema)]
pub struct SummaryResponse {
    /// Its id.
    id: Uuid,
    /// How it was made: `rolling`, `window` or `tree`.
    strategy: &'static str,
    /// Its level in a tree; 0 elsewhere.
    level: u8,
    /// The first turn that it covers.
    start_seq: u64,
    /// The last turn that it covers.
    end_seq: u64,
    /// The version that it was built on.
    base_id: Option<Uuid>,
    /// How far that version reached.
    base_end_seq: Option<u64>,
    /// How many turns it covers.
    window_size: u64,
    /// How far it is: `processing`, `completed` or `failed`.
    status: &'static str,
    /// Whether it is `processing` for more than five minutes: its job takes it over when the lease has ended.
    stuck: bool,
    /// The text; empty while it is being made.
    text: String,
    /// What was made out beside the text.
    #[schema(value_type = Option<Object>)]
    structured: Option<Value>,
    /// Tokens that went in.
    input_tokens: u32,
    /// Tokens that came out.
    output_tokens: u32,
    /// How long it took, in milliseconds.
    generation_ms: Option<u32>,
    /// When it was begun.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
}

impl From<SummaryVersion> for SummaryResponse {
    fn from(version: SummaryVersion) -> Self {
        let SummaryVersion { summary, base_end_seq, stuck } = version;
        Self {
            id: summary.id.0,
            strategy: summary.strategy.as_str(),
            level: summary.level,
            start_seq: summary.start_seq,
            end_seq: summary.end_seq,
            base_id: summary.base_id.map(|id| id.0),
            base_end_seq,
            window_size: summary.window_size(),
            stuck,
            status: summary.status.as_str(),
            text: summary.text,
            structured: summary.structured,
            input_tokens: summary.input_tokens,
            output_tokens: summary.output_tokens,
            generation_ms: summary.generation_ms,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
        }
    }
}

/// List the versions of a session's summaries
#[utoipa::path(get, path = "/sessions/{id}/summaries", tag = "sessions",
    params(SessionPath, SummariesParams),
    responses((status = 200, description = "the versions, the one that reaches furthest first", body = SummariesResponse),
        (status = 404, description = "the user has no such session")))]
async fn list_summaries(
    State(app): State<App>,
    caller: Caller,
    PathName(id): PathName,
    Params(params): Params<SummariesParams>,
) -> Result<Json<SummariesResponse>, ApiError> {
    let user = caller.user([&params.user_id])?;
    let limit = limit(&params.limit)?;
    let report = app.engine().summaries.report(&user, &SessionId::new(id)?, limit).await?;
    let summaries = report.versions.into_iter().map(SummaryResponse::from).collect();
    Ok(Json(SummariesResponse { summaries, stats: report.stats.into() }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[tokio::test]
    async fn each_version_names_the_one_before() {
        let server = TestServer::new();
        assert_eq!(server.get("/sessions/s/summaries").await.status, 404);
        for batch in 0..5 {
            let said = (0..20).flat_map(|step| {
                let number = batch * 20 + step;
                [
                    json!({"role": "user", "content": format!("Question {number}?")}),
                    json!({"role": "assistant", "content": format!("Answer {number}.")}),
                ]
            });
            let messages: Vec<_> = said.collect();
            server.post("/turns", json!({"session_id": "s", "messages": messages})).await;
        }
        let summaries = server.get("/sessions/s/summaries").await.json()["summaries"].clone();
        let summaries = summaries.as_array().unwrap();
        assert_eq!(summaries.len(), 2, "{summaries:?}");
        assert_eq!(summaries[0]["base_id"], summaries[1]["id"]);
        assert_eq!(summaries[0]["base_end_seq"], summaries[1]["end_seq"]);
        assert!(summaries[0]["end_seq"].as_u64() > summaries[1]["end_seq"].as_u64(), "{summaries:?}");
        assert!(summaries[0]["text"].as_str().unwrap().contains("Question 80?"), "{}", summaries[0]);
        insta::assert_snapshot!("first", serde_json::to_string_pretty(&summaries[1]).unwrap());
        let stats = server.get("/sessions/s/summaries").await.json()["stats"].clone();
        assert_eq!((&stats["total_summaries"], &stats["stuck"]), (&json!(2), &json!(0)));
        let one = server.get("/sessions/s/summaries?limit=1").await.json();
        assert_eq!(one["summaries"].as_array().unwrap(), &summaries[..1]);
        assert_eq!(server.get("/sessions/s/summaries?user_id=eve").await.status, 404);
    }
}
