//! A summary: text derived from a range of a session's turns, with the version it was built on.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::id::{SessionId, SummaryId};
use crate::names::{Named, unknown};

/// The strategy that made a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<Strategy>)]
pub enum Strategy {
    /// Older turns folded into one text as they leave the recent turns.
    Rolling,
    /// A window over the last turns, which moves forward.
    Window,
    /// A tree of chunks, groups and one root.
    Tree,
}

impl Strategy {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for Strategy {
    const WHAT: &'static str = "strategy";
}

/// The state of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<SummaryStatus>)]
pub enum SummaryStatus {
    /// In progress; at most one per session.
    Processing,
    /// Done.
    Completed,
    /// Failed for good.
    Failed,
}

impl SummaryStatus {
    /// The name that stores and clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Named for SummaryStatus {
    const WHAT: &'static str = "status";
}

/// A part of [`Summary::structured`]: a list under the name of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown::<SummaryPart>)]
pub enum SummaryPart {
    /// Facts.
    Facts,
    /// Preferences and wishes about how something is done.
    Preferences,
    /// Decisions.
    Decisions,
    /// Open tasks.
    Todos,
    /// People, places and things that the text is about.
    Entities,
}

impl SummaryPart {
    /// All parts, in the order of the evolution plan.
    pub const ALL: [Self; 5] = [Self::Facts, Self::Preferences, Self::Decisions, Self::Todos, Self::Entities];

    /// The name in stored rows and in answers.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The bit of the part, for stores that note which parts a summary has.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Named for SummaryPart {
    const WHAT: &'static str = "part";
}

/// Text derived from a range of turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its id.
    pub id: SummaryId,
    /// The session of the summary.
    pub session: SessionId,
    /// The strategy that made it.
    pub strategy: Strategy,
    /// Its level in a tree; 0 for other strategies.
    pub level: u8,
    /// The first turn it covers.
    pub start_seq: u64,
    /// The last turn it covers.
    pub end_seq: u64,
    /// The version it was built on.
    pub base_id: Option<SummaryId>,
    /// Its state.
    pub status: SummaryStatus,
    /// The text; empty while it is in progress.
    pub text: String,
    /// Facts, preferences, decisions, todos and entities, if they were extracted.
    pub structured: Option<Value>,
    /// Input tokens.
    pub input_tokens: u32,
    /// Output tokens.
    pub output_tokens: u32,
    /// The duration in milliseconds.
    pub generation_ms: Option<u32>,
    /// The time at which it was begun.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
}

/// The number of seconds after which a summary that is still `processing` counts as stuck (the sliding-window design:
/// five minutes).
const STUCK_AFTER_SECS: i64 = 300;

/// The level of a tree's root (L3 in the memory-proxy design).
const ROOT_LEVEL: u8 = 3;

/// The field of [`Summary::structured`] that names the model that wrote the text.
pub const MODEL_FIELD: &str = "model";

impl Summary {
    /// Whether it is the root of a session's tree.
    pub fn is_root(&self) -> bool {
        self.strategy == Strategy::Tree && self.level == ROOT_LEVEL
    }

    /// The model that wrote the text; `None` if it was made without one.
    pub fn model(&self) -> Option<&str> {
        self.structured.as_ref()?.get(MODEL_FIELD)?.as_str()
    }

    /// Whether a part of it is a list with entries.
    pub fn has(&self, part: SummaryPart) -> bool {
        let list = self.structured.as_ref().and_then(|structured| structured.get(part.as_str()));
        list.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    }

    /// The number of turns it covers.
    pub fn window_size(&self) -> u64 {
        self.end_seq.saturating_sub(self.start_seq) + 1
    }

    /// Whether the summary is stuck. No action is needed: another worker takes its job over when the lease ends.
    pub fn is_stuck(&self, now: Timestamp) -> bool {
        self.status == SummaryStatus::Processing
            && now.duration_since(self.created_at).as_secs() >= STUCK_AFTER_SECS
    }
}

/// The durations of summaries (the observability queries of the sliding-window design).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SummaryStats {
    /// The number of completed summaries with a known duration.
    pub total_summaries: u64,
    /// The average duration in milliseconds.
    pub avg_ms: Option<u64>,
    /// The longest duration in milliseconds.
    pub max_ms: Option<u64>,
    /// The number of stuck summaries.
    pub stuck: u64,
}

impl SummaryStats {
    /// The durations of these summaries.
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
    fn the_durations_of_summaries_are_counted() {
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
