//! Summaries: the versions of a session's summaries, and the points in them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use strata_core::summary::SummaryStats;
use strata_engine::{StructuredPoint, SummaryReport, SummaryVersion};
use utoipa::ToSchema;
use uuid::Uuid;

response! {
    /// The versions of a session's summaries.
    pub SummariesResponse from (report: SummaryReport) {
        summaries: Vec<SummaryResponse> = report.versions.iter().map(SummaryResponse::from).collect(),
        /// The cost of the last thousand of them.
        stats: StatsResponse = (&report.stats).into(),
    }
}

response! {
    /// The cost of making summaries.
    pub(crate) StatsResponse from (stats: SummaryStats) {
        /// Completed summaries whose time is known.
        total_summaries: u64 = stats.total_summaries,
        /// The average time, in milliseconds.
        avg_ms: Option<u64> = stats.avg_ms,
        /// The longest time, in milliseconds.
        max_ms: Option<u64> = stats.max_ms,
        /// Summaries that have been `processing` for more than five minutes.
        stuck: u64 = stats.stuck,
    }
}

response! {
    /// One version of a summary.
    pub(crate) SummaryResponse from (version: SummaryVersion) {
        /// Its id.
        id: Uuid = version.summary.id.0,
        /// How it was made: `rolling`, `window` or `tree`.
        strategy: &'static str = version.summary.strategy.as_str(),
        /// Its level in a tree; 0 for other strategies.
        level: u8 = version.summary.level,
        /// The first turn that it covers.
        start_seq: u64 = version.summary.start_seq,
        /// The last turn that it covers.
        end_seq: u64 = version.summary.end_seq,
        /// The version that it was built on.
        base_id: Option<Uuid> = version.summary.base_id.map(|id| id.0),
        /// The last turn that the version in `base_id` covers.
        base_end_seq: Option<u64> = version.base_end_seq,
        /// How many turns it covers.
        window_size: u64 = version.summary.window_size(),
        /// The status: `processing`, `completed` or `failed`.
        status: &'static str = version.summary.status.as_str(),
        /// Whether it has been `processing` for more than five minutes. Its job makes it again when the lease has
        /// ended.
        stuck: bool = version.stuck,
        /// The text; empty while it is being made.
        text: String = version.summary.text.clone(),
        /// The structured part of the summary.
        #[schema(value_type = Option<Object>)]
        structured: Option<Value> = version.summary.structured.clone(),
        /// The tokens of the input.
        input_tokens: u32 = version.summary.input_tokens,
        /// The tokens of the output.
        output_tokens: u32 = version.summary.output_tokens,
        /// How long it took, in milliseconds.
        generation_ms: Option<u32> = version.summary.generation_ms,
        /// When it was started.
        created_at: Timestamp = version.summary.created_at,
        /// When it last changed.
        updated_at: Timestamp = version.summary.updated_at,
    }
}

/// The points in summaries.
#[derive(Debug, Serialize, ToSchema)]
pub struct PointsResponse {
    points: Vec<PointResponse>,
}

impl<'a> FromIterator<&'a StructuredPoint> for PointsResponse {
    fn from_iter<I: IntoIterator<Item = &'a StructuredPoint>>(points: I) -> Self {
        Self { points: points.into_iter().map(PointResponse::from).collect() }
    }
}

response! {
    /// One point in a summary.
    pub(crate) PointResponse from (point: StructuredPoint) {
        /// The point.
        text: String = point.text.clone(),
        /// The session it is about.
        session_id: String = point.session.to_string(),
        /// The last turn of that session that the summary covers; `null` for a summary that Strata did not write.
        seq: Option<u64> = point.seq,
        /// The summary that contains it.
        summary_id: Uuid = point.summary.0,
    }
}
