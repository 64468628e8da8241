//! A summary: derived text over a range of a session's turns, with the version it was built on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::id::{SessionId, SummaryId};
use crate::names::{Named, unknown};

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Strategy>)]
pub enum Strategy {
    /// Older turns folded into one text as they leave the recent ones.
    Rolling,
    /// The last so many turns, slid forward.
    Window,
    /// A tree of chunks, groups and one root.
    Tree,
}

impl Strategy {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Strategy {
    const WHAT: &'static str = "strategy";
}

/// How far a summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<SummaryStatus>)]
pub enum SummaryStatus {
    /// Being made; at most one a session.
    Processing,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

impl SummaryStatus {
    /// The name stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for SummaryStatus {
    const WHAT: &'static str = "status";
}

/// Derived text over a range of turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its id.
    pub id: SummaryId,
    /// The session it is about.
    pub session: SessionId,
    /// How it was made.
    pub strategy: Strategy,
    /// Its level in a tree; 0 elsewhere.
    pub level: u8,
    /// The first turn it covers.
    pub start_seq: u64,
    /// The last turn it covers.
    pub end_seq: u64,
    /// The version it was built on.
    pub base_id: Option<SummaryId>,
    /// How far it is.
    pub status: SummaryStatus,
    /// The text; empty while processing.
    pub text: String,
    /// Facts, preferences, decisions, todos and entities, where they were made out.
    pub structured: Option<Value>,
    /// Tokens that went in.
    pub input_tokens: u32,
    /// Tokens that came out.
    pub output_tokens: u32,
    /// How long it took, in milliseconds.
    pub generation_ms: Option<u32>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// After how many seconds a summary that is still `processing` counts as stuck (document 1: five minutes).
pub const STUCK_AFTER_SECS: i64 = 300;

impl Summary {
    /// How many turns it covers.
    pub fn window_size(&self) -> u64 {
        self.end_seq.saturating_sub(self.start_seq) + 1
    }

    /// Whether it should have come to an end by now. Nothing has to be done about it: its job takes it over when the lease
    /// of whoever began it has ended.
    pub fn is_stuck(&self, now: Timestamp) -> bool {
        self.status == SummaryStatus::Processing
            && now.duration_since(self.created_at).as_secs() >= STUCK_AFTER_SECS
    }
}

/// What summaries took (document 1's observability queries).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SummaryStats {
    /// Completed ones whose time is known.
    pub total_summaries: u64,
    /// Milliseconds of one on average.
    pub avg_ms: Option<u64>,
    /// Milliseconds of the slowest.
    pub max_ms: Option<u64>,
    /// Those that should have come to an end by now.
    pub stuck: u64,
}

impl SummaryStats {
    /// What these summaries took.
    pub fn of(summaries: &[Summary], now: Timestamp) -> Self {
        let completed = summaries.iter().filter(|summary| summary.status == SummaryStatus::Completed);
        let times: Vec<u64> = completed.filter_map(|summary| summary.generation_ms).map(u64::from).collect();
        let total_summaries = times.len() as u64;
        Self {
            total_summaries,
            avg_ms: times.iter().sum::<u64>().checked_div(total_summaries),
            max_ms: times.iter().max().copied(),
            stuck: summaries.iter().filter(|summary| summary.is_stuck(now)).count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::fixture::{at, summary};

    #[test]
    fn what_summaries_took_is_counted() {
        let done = |ms| Summary { generation_ms: ms, ..summary("s", 5) };
        let begun = Summary { status: SummaryStatus::Processing, created_at: at(0), ..summary("s", 9) };
        let failed = Summary { status: SummaryStatus::Failed, ..done(Some(9_000)) };
        let rows = [done(Some(100)), done(Some(301)), done(None), failed, begun];
        let stats = SummaryStats::of(&rows, at(300));
        assert_eq!(
            stats,
            SummaryStats { total_summaries: 2, avg_ms: Some(200), max_ms: Some(301), stuck: 1 }
        );
        assert_eq!(SummaryStats::of(&rows, at(299)).stuck, 0);
        assert_eq!(SummaryStats::of(&[], at(0)), SummaryStats::default());
    }
}
