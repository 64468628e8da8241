//! Summaries: the versions of a session's, and the points that they make.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::summary::SummaryStats;
use strata_engine::{StructuredPoint, SummaryReport, SummaryVersion};
use utoipa::ToSchema;
use uuid::Uuid;

/// The versions of a session's summaries.
#[derive(Debug, Serialize, ToSchema)]
pub struct SummariesResponse {
    summaries: Vec<SummaryResponse>,
    /// The cost of the last thousand of them.
    stats: StatsResponse,
}

impl From<&SummaryReport> for SummariesResponse {
    fn from(report: &SummaryReport) -> Self {
        let summaries = report.versions.iter().map(SummaryResponse::from).collect();
        Self { summaries, stats: (&report.stats).into() }
    }
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

impl From<&SummaryStats> for StatsResponse {
    fn from(stats: &SummaryStats) -> Self {
        let SummaryStats { total_summaries, avg_ms, max_ms, stuck } = *stats;
        Self { total_summaries, avg_ms, max_ms, stuck }
    }
}

/// One version of a summary.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SummaryResponse {
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
    /// The structured part of the summary.
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

impl From<&SummaryVersion> for SummaryResponse {
    fn from(version: &SummaryVersion) -> Self {
        let SummaryVersion { summary, base_end_seq, stuck } = version;
        Self {
            id: summary.id.0,
            strategy: summary.strategy.as_str(),
            level: summary.level,
            start_seq: summary.start_seq,
            end_seq: summary.end_seq,
            base_id: summary.base_id.map(|id| id.0),
            base_end_seq: *base_end_seq,
            window_size: summary.window_size(),
            stuck: *stuck,
            status: summary.status.as_str(),
            text: summary.text.clone(),
            structured: summary.structured.clone(),
            input_tokens: summary.input_tokens,
            output_tokens: summary.output_tokens,
            generation_ms: summary.generation_ms,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
        }
    }
}

/// The points that summaries make.
#[derive(Debug, Serialize, ToSchema)]
pub struct PointsResponse {
    points: Vec<PointResponse>,
}

impl FromIterator<StructuredPoint> for PointsResponse {
    fn from_iter<I: IntoIterator<Item = StructuredPoint>>(points: I) -> Self {
        Self { points: points.into_iter().map(PointResponse::from).collect() }
    }
}

/// One of the points that a summary makes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PointResponse {
    /// The point.
    text: String,
    /// The session it is about.
    session_id: String,
    /// The turn of that session up to which it was said; `null` for a summary that Strata did not write.
    seq: Option<u64>,
    /// The summary that makes it.
    summary_id: Uuid,
}

impl From<StructuredPoint> for PointResponse {
    fn from(point: StructuredPoint) -> Self {
        let StructuredPoint { session, summary, text, seq } = point;
        Self { text, session_id: session.into(), seq, summary_id: summary.0 }
    }
}
