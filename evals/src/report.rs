//! What a run found: figures, latencies and the run itself.

use std::time::Duration;

use serde::{Serialize, Serializer};
use strata_engine::recall::Order;

use crate::metrics::{Slot, Summary};

/// What a run of one set found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The set.
    pub set: String,
    /// How many conversations were recorded.
    pub conversations: usize,
    /// How many sessions.
    pub sessions: usize,
    /// How many turns; those without text are not recorded.
    pub turns: usize,
    /// How many questions were asked.
    pub questions: usize,
    /// What recording cost.
    pub ingest: Ingest,
    /// What each order brought back.
    pub orders: Vec<OrderReport>,
}

/// What one order brought back.
#[derive(Debug, Clone, Serialize)]
pub struct OrderReport {
    /// The order.
    pub order: Order,
    /// The figures by turns.
    pub turn: Summary,
    /// The figures by sessions.
    pub session: Summary,
    /// What recalling cost.
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
    /// What was brought back, best first.
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
    /// The run as a file: a JSON object a line.
    pub fn run_file(&self) -> serde_json::Result<String> {
        let mut file = String::new();
        for line in &self.run {
            file.push_str(&serde_json::to_string(line)?);
            file.push('\n');
        }
        Ok(file)
    }
}

/// What recording cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ingest {
    /// Turns recorded a second, over the time in which anything was recorded.
    pub turns_per_second: f64,
    /// The calls, each of up to a session.
    pub latency: Latency,
}

/// How long calls took, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many calls.
    pub count: usize,
    /// Their mean.
    pub mean_ms: f64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// Nine of ten took no longer.
    pub p90_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Latency {
    /// From the calls' durations.
    pub fn of(mut calls: Vec<Duration>) -> Self {
        calls.sort();
        let milliseconds = |duration: &Duration| duration.as_secs_f64() * 1000.0;
        // Nearest rank: the smallest value that at least the given share does not exceed.
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
