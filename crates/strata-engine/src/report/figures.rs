//! The figures of a report.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use strata_core::job::{Job, JobStatus};
use strata_core::metric::{FeedbackKind, RequestMetric};
use strata_core::ports::Spent;
use strata_core::trace::RetrievalPath;

use super::{MIN_REQUESTS, Period, day_start, share};
use crate::jobs::JobKind;
use crate::summaries::WITHOUT_MODEL;

/// The fewest values for the 99th percentile: with fewer it is the largest value.
const MIN_FOR_P99: usize = 100;

/// Shares of the requests, and the time that recall takes. A share is missing if there are too few requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecallFigures {
    /// The share of requests that got an item.
    pub hit_rate: Option<f64>,
    /// The share of requests for which full text found something.
    pub fts_hit_rate: Option<f64>,
    /// The share of requests with fewer than three hits of full text.
    pub few_hits: Option<f64>,
    /// The share of requests that used trigrams or the most recent turns.
    pub fallback: Option<f64>,
    /// The share of requests that got summaries only.
    pub summaries_only: Option<f64>,
    /// The share of requests from which the budget excluded something.
    pub truncation: Option<f64>,
    /// The average number of returned items.
    pub items: Option<f64>,
    /// The average number of tokens of the returned items.
    pub item_tokens: Option<f64>,
    /// The time that recall took.
    pub latency: Latencies,
    /// The time that models took to answer.
    pub model_latency: Latencies,
}

impl RecallFigures {
    pub(super) fn of(rows: &[&RequestMetric]) -> Self {
        let average = |value: &dyn Fn(&RequestMetric) -> u32| {
            let sum: u64 = rows.iter().map(|row| u64::from(value(row))).sum();
            (rows.len() >= MIN_REQUESTS).then(|| sum as f64 / rows.len() as f64)
        };
        Self {
            hit_rate: share(rows, |row| row.context_items > 0),
            fts_hit_rate: share(rows, |row| row.fts_hits > 0),
            few_hits: share(rows, |row| row.fts_hits < 3),
            fallback: share(rows, |row| row.used_fallback),
            summaries_only: share(rows, |row| row.retrieval_path == RetrievalPath::SummariesOnly),
            truncation: share(rows, |row| row.truncated),
            items: average(&|row| row.context_items),
            item_tokens: average(&|row| row.estimated_tokens),
            latency: Latencies::of(rows.iter().map(|row| row.latency_retrieval_us).collect()),
            model_latency: Latencies::of(rows.iter().filter_map(|row| row.latency_llm_us).collect()),
        }
    }
}

/// The requests of one day. Its figures are of few requests, so they show a course and are not judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayFigures {
    /// The beginning of the day.
    pub since: Timestamp,
    /// The number of requests that asked recall.
    pub requests: usize,
    /// The share of them that got an item; `None` without requests.
    pub hit_rate: Option<f64>,
    /// The median time that recall took, in microseconds.
    pub p50: Option<u64>,
    /// The 95th percentile of that time.
    pub p95: Option<u64>,
}

/// The most days that are told apart.
const MAX_DAYS: i64 = 366;

/// The requests of each day of a period.
pub(super) fn by_day(rows: &[&RequestMetric], period: Period) -> Vec<DayFigures> {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    let mut days: BTreeMap<i64, Vec<&RequestMetric>> = BTreeMap::new();
    let first = day_start(period.since);
    for row in rows {
        let day = row.created_at.duration_since(first).as_secs() / DAY.as_secs();
        days.entry(day).or_default().push(row);
    }
    let last = period.until.duration_since(first).as_secs() / DAY.as_secs();
    let day = |number: i64| {
        let rows = days.get(&number).map(Vec::as_slice).unwrap_or_default();
        let hits = rows.iter().filter(|row| row.context_items > 0).count();
        let mut times: Vec<u64> = rows.iter().map(|row| row.latency_retrieval_us).collect();
        times.sort_unstable();
        let since = DAY.checked_mul(number as i32).and_then(|later| first.checked_add(later).ok());
        DayFigures {
            since: since.unwrap_or(first),
            requests: rows.len(),
            hit_rate: (!rows.is_empty()).then(|| hits as f64 / rows.len() as f64),
            p50: rank(&times, 50),
            p95: rank(&times, 95),
        }
    };
    (0..=last.clamp(0, MAX_DAYS)).map(day).collect()
}

/// A percentile of sorted values, by nearest rank.
fn rank(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

/// Percentiles of a time in microseconds, by nearest rank. They are missing if there are too few values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The median.
    pub p50: Option<u64>,
    /// The 95th percentile.
    pub p95: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
}

impl Latencies {
    fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let of = |percent, fewest| rank(&micros, percent).filter(|_| micros.len() >= fewest);
        Self { p50: of(50, MIN_REQUESTS), p95: of(95, MIN_REQUESTS), p99: of(99, MIN_FOR_P99) }
    }
}

/// Tokens shown to models, against sending everything.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenFigures {
    /// The requests for which both figures are known.
    pub requests: usize,
    /// The tokens of their sessions: sending everything.
    pub raw: u64,
    /// The tokens that models read.
    pub shown: u64,
    /// The share of tokens that were not sent; negative if memory added more than it left out. `None` if nothing is known.
    pub saved_share: Option<f64>,
    /// The average share of a prompt that equals the beginning of the prompt before it.
    pub prefix_stability: Option<f64>,
}

impl TokenFigures {
    pub(super) fn of(rows: &[RequestMetric]) -> Self {
        let known = rows.iter().filter_map(|row| Some((row.prompt.raw_tokens?, row.prompt.input_tokens?)));
        let (mut requests, mut raw, mut shown) = (0, 0_u64, 0_u64);
        for (row_raw, row_shown) in known {
            (requests, raw, shown) =
                (requests + 1, raw.saturating_add(row_raw), shown.saturating_add(row_shown));
        }
        let stable: Vec<f32> = rows.iter().filter_map(|row| row.prompt.stable_share).collect();
        let sum: f64 = stable.iter().copied().map(f64::from).sum();
        Self {
            requests,
            raw,
            shown,
            saved_share: (raw > 0).then(|| 1.0 - shown as f64 / raw as f64),
            prefix_stability: (!stable.is_empty()).then(|| sum / stable.len() as f64),
        }
    }

    /// The tokens that were not sent; negative if memory added more than it left out.
    pub fn saved(&self) -> i128 {
        i128::from(self.raw) - i128::from(self.shown)
    }

    /// The tokens that were not sent, in words.
    pub fn words(&self) -> String {
        match (self.saved_share, self.saved()) {
            (None, _) => "not enough data".to_owned(),
            (Some(_), saved @ ..0) => {
                format!("none: short sessions, to which memory added {} tokens", -saved)
            }
            (Some(share), saved) => format!("{saved} of {} ({})", self.raw, super::Unit::Share.words(share)),
        }
    }
}

/// The failures in the period.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailureFigures {
    /// Requests with a stage that failed, by the stage.
    pub requests: BTreeMap<&'static str, u64>,
    /// Jobs that were given up, by their kind.
    pub dead_jobs: BTreeMap<String, u64>,
    /// Jobs that have failed and wait for another attempt.
    pub retried_jobs: u64,
    /// Summaries that were given up, and summaries that were made without the model that should have made them.
    pub summaries: u64,
    /// Complaints that it forgot something.
    pub complaints: u64,
    /// Requests with a complaint that only the meaning could have found the item.
    pub meaning: u64,
    /// The last error of a job, with its time.
    pub last_error: Option<(Timestamp, String)>,
}

impl FailureFigures {
    pub(super) fn of(rows: &[RequestMetric], jobs: &[Job]) -> Self {
        let mut figures = Self::default();
        for row in rows {
            if let Some(stage) = row.error_stage {
                *figures.requests.entry(stage.as_str()).or_default() += 1;
            }
            figures.complaints += row.feedback.len() as u64;
            let is_meaning = row.feedback.iter().any(|feedback| feedback.kind == FeedbackKind::Meaning);
            figures.meaning += u64::from(is_meaning);
        }
        for job in jobs {
            let is_dead = job.status == JobStatus::Dead;
            if is_dead {
                *figures.dead_jobs.entry(job.kind.clone()).or_default() += 1;
            }
            let has_failed = job.last_error.is_some();
            figures.retried_jobs += u64::from(has_failed && job.status == JobStatus::Queued);
            let made_without = job.result.as_ref().is_some_and(|result| result.get(WITHOUT_MODEL).is_some());
            figures.summaries += u64::from(is_summary(job) && (is_dead || made_without));
        }
        let failed = jobs.iter().filter(|job| job.status != JobStatus::Done);
        let last = failed.filter_map(|job| Some((job.updated_at, job.last_error.clone()?)));
        figures.last_error = last.max_by_key(|(at, _)| *at);
        figures
    }
}

fn is_summary(job: &Job) -> bool {
    job.kind == JobKind::Summarise.as_str()
}

/// Calls of models and their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    /// Calls.
    pub calls: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
}

impl Spending {
    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    fn add(&mut self, calls: u64, input_tokens: u64, output_tokens: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
    }

    /// The price in the currency of the prices, which are for a million tokens.
    pub fn price(&self, input_price: f64, output_price: f64) -> f64 {
        (self.input_tokens as f64 * input_price + self.output_tokens as f64 * output_price) / 1_000_000.0
    }
}

/// The costs of models in the period.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostFigures {
    /// Chats: tokens that the models report.
    pub chats: Spending,
    /// Learning without summaries.
    pub learning: Spending,
    /// Summaries.
    pub summaries: Spending,
    /// The length of the period in days.
    pub days: f64,
}

impl CostFigures {
    pub(super) fn of(rows: &[RequestMetric], jobs: &[Job], period: Period) -> Self {
        let mut cost = Self { days: period.days(), ..Self::default() };
        for row in rows {
            // Without a report of the model, no model is known to have been called.
            if let Some(output) = row.prompt.output_tokens {
                cost.chats.add(1, row.prompt.input_tokens.unwrap_or(0), output);
            }
        }
        for job in jobs {
            let spent = job.result.as_ref().and_then(|result| result.get("spent"));
            let spent = spent.and_then(|spent| serde_json::from_value::<Spent>(spent.clone()).ok());
            let Some(spent) = spent else { continue };
            let part = if is_summary(job) { &mut cost.summaries } else { &mut cost.learning };
            part.add(u64::from(spent.calls), spent.input_tokens, spent.output_tokens);
        }
        cost
    }

    /// Everything together.
    pub fn total(&self) -> Spending {
        let mut total = self.chats;
        for part in [self.learning, self.summaries] {
            total.add(part.calls, part.input_tokens, part.output_tokens);
        }
        total
    }

    /// The tokens of a day, on average.
    pub fn tokens_a_day(&self) -> f64 {
        self.total().tokens() as f64 / self.days
    }

    /// The share of summaries in all tokens; `None` if no model was called.
    pub fn summary_share(&self) -> Option<f64> {
        let total = self.total().tokens();
        (total > 0).then(|| self.summaries.tokens() as f64 / total as f64)
    }
}
