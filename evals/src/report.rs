//! The results of a run: metrics, latencies and rankings.

use std::time::Duration;

use serde::{Serialize, Serializer};
use strata_engine::recall::Order;

use crate::foreign::ForeignReport;
use crate::metrics::{Slot, Summary};

/// The results of one set.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The set.
    pub set: String,
    /// The number of recorded conversations.
    pub conversations: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The number of recorded turns; turns without text are not recorded.
    pub turns: usize,
    /// The number of questions.
    pub questions: usize,
    /// The speed of recording.
    pub ingest: Ingest,
    /// The results of each order.
    pub orders: Vec<OrderReport>,
    /// How well the scores tell answerable from unanswerable questions, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignReport>,
}

/// The results of one order.
#[derive(Debug, Clone, Serialize)]
pub struct OrderReport {
    /// The order.
    pub order: Order,
    /// Whether a cross-encoder reordered the best candidates.
    pub reranked: bool,
    /// The metrics by turns.
    pub turn: Summary,
    /// The metrics by sessions.
    pub session: Summary,
    /// The latency of recall.
    pub latency: Latency,
    /// The rankings, in the order of the questions.
    #[serde(skip)]
    pub run: Vec<RunLine>,
}

/// The ranking of one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunLine {
    /// The question.
    pub question_id: String,
    /// The recalled items, best first.
    #[serde(serialize_with = "slots")]
    pub ranked: Vec<Slot>,
}

fn slots<S: Serializer>(ranked: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Place<'a> {
        One(&'a str),
        Several(&'a [String]),
    }
    serializer.collect_seq(ranked.iter().map(|slot| match slot.as_slice() {
        [one] => Place::One(one),
        several => Place::Several(several),
    }))
}

impl OrderReport {
    /// The rankings as a file with one JSON object per line.
    pub fn run_file(&self) -> serde_json::Result<String> {
        let mut file = String::new();
        for line in &self.run {
            file.push_str(&serde_json::to_string(line)?);
            file.push('\n');
        }
        Ok(file)
    }
}

/// The speed of recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ingest {
    /// Recorded turns per second, over the time spent on recording.
    pub turns_per_second: f64,
    /// The latency of the calls, each with at most one session.
    pub latency: Latency,
}

/// The latency of calls, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The number of calls.
    pub count: usize,
    /// The mean.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

impl Latency {
    /// Computes the latency from the durations of the calls.
    pub fn of(mut calls: Vec<Duration>) -> Self {
        calls.sort();
        let milliseconds = |duration: &Duration| duration.as_secs_f64() * 1000.0;
        // Nearest rank: the smallest value that is at least as large as the given share of the values.
        let percentile = |percent: usize| {
            let rank = (calls.len() * percent).div_ceil(100).max(1);
            calls.get(rank - 1).map_or(0.0, milliseconds)
        };
        let sum: Duration = calls.iter().sum();
        Self {
            count: calls.len(),
            mean_ms: if calls.is_empty() { 0.0 } else { milliseconds(&sum) / calls.len() as f64 },
            p50_ms: percentile(50),
            p90_ms: percentile(90),
            p99_ms: percentile(99),
            max_ms: percentile(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let latency = Latency::of((1..=200).rev().map(Duration::from_millis).collect());
        let found = [latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.max_ms, latency.mean_ms];
        assert_eq!((latency.count, found), (200, [100.0, 180.0, 198.0, 200.0, 100.5]));
        let one = Latency::of(vec![Duration::from_millis(3)]);
        assert_eq!([one.p50_ms, one.p99_ms, one.max_ms], [3.0, 3.0, 3.0]);
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }

    #[test]
    fn a_place_with_one_id_is_written_plainly() {
        let ranked = vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]];
        let line = RunLine { question_id: "q".to_owned(), ranked };
        assert_eq!(serde_json::to_string(&line).unwrap(), r#"{"question_id":"q","ranked":["a",["b","c"]]}"#);
    }
}
