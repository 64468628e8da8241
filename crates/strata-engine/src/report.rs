//! The report: how well memory works, computed from the rows of a period, and what to change where it does not.
//!
//! All functions are pure. [`crate::Reporting`] reads the rows. The thresholds and their meaning come from the evolution
//! plan's table of upgrade triggers; [`triggers`] has one function for each of its rows. A figure is missing if the period
//! has too few rows to compute it. Start reading at [`Report::of`].

mod advice;
mod figures;
#[cfg(test)]
mod tests;
mod triggers;

use jiff::Timestamp;
use strata_core::job::Job;
use strata_core::metric::RequestMetric;

use crate::learn::LearnSettings;
use crate::maintenance::EmbedItems;
use crate::recall::RecallSettings;

pub use figures::{
    CostFigures, DayFigures, FailureFigures, Latencies, RecallFigures, Spending, TokenFigures,
};
pub use triggers::{Trigger, Unit, Verdict};

/// The fewest requests that a share or a percentile is computed from. With fewer, one request more or less moves a share
/// by more than five points, which is the distance between most of the plan's thresholds.
pub(crate) const MIN_REQUESTS: usize = 20;

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its beginning.
    pub since: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

impl Period {
    /// Its length in days, at least a minute.
    pub fn days(&self) -> f64 {
        self.until.duration_since(self.since).as_secs_f64().max(60.0) / 86_400.0
    }
}

/// The fewest stored items with which recall is judged. The plan counts a question with fewer than 3 hits as a poor one, which a
/// smaller store cannot avoid.
pub(crate) const MIN_ITEMS: usize = 3;

/// The parts and settings in force. The advice starts from them, so that it names no value that is in force already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InForce {
    /// Whether an embedder compares by meaning.
    pub embeds: bool,
    /// Whether a cross-encoder reads the best candidates.
    pub reranks: bool,
    /// Whether a model learns and writes summaries.
    pub learns_by_model: bool,
    /// Which items are embedded.
    pub embed: EmbedItems,
    /// The settings of recall.
    pub recall: RecallSettings,
    /// The settings of learning.
    pub learn: LearnSettings,
}

/// The rows that a report is computed from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportRows {
    /// The number of stored turns and memories, counted up to a few; `None` if it is unknown.
    pub items: Option<usize>,
    /// The parts and settings in force.
    pub in_force: InForce,
    /// The requests of the period.
    pub requests: Vec<RequestMetric>,
    /// The jobs whose last change is in the period.
    pub jobs: Vec<Job>,
    /// If there were more rows of the period than were read: the moment from which on none is missing.
    pub complete_since: Option<Timestamp>,
}

impl ReportRows {
    /// Adds the newest rows of a user. If there are as many as the `limit` of each kind, older rows were not read. That matters only
    /// if the oldest row that was read lies in the period: jobs are kept for longer.
    pub fn add(&mut self, requests: Vec<RequestMetric>, jobs: Vec<Job>, asked: Period, limit: u32) {
        let oldest = |count: usize, oldest: Option<Timestamp>| oldest.filter(|_| count >= limit as usize);
        let ends = [
            oldest(requests.len(), requests.iter().map(|row| row.created_at).min()),
            oldest(jobs.len(), jobs.iter().map(|job| job.created_at).min()),
        ];
        let cut = ends.into_iter().flatten().filter(|end| *end > asked.since);
        self.complete_since = cut.chain(self.complete_since).max();
        self.requests.extend(requests);
        self.jobs.extend(jobs.into_iter().filter(|job| job.updated_at >= asked.since));
    }
}

/// How well memory works in a period.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The period. If older rows were not read, it begins where all rows are known.
    pub period: Period,
    /// The number of requests that asked recall.
    pub requests: usize,
    /// Whether there were more rows than were read.
    pub is_cut: bool,
    /// Shares of the requests, and the time that recall takes.
    pub recall: RecallFigures,
    /// The requests of each day (UTC) of the period, oldest first. The first and the last day may be parts of days.
    pub days: Vec<DayFigures>,
    /// Tokens shown to models, against sending everything.
    pub tokens: TokenFigures,
    /// The failures.
    pub failures: FailureFigures,
    /// The costs of models.
    pub cost: CostFigures,
    /// The rows of the evolution plan's table.
    pub triggers: Vec<Trigger>,
}

impl Report {
    /// Computes the report of a period.
    pub fn of(rows: &ReportRows, asked: Period) -> Self {
        let Some(since) = rows.complete_since.filter(|since| *since > asked.since) else {
            return Self::of_all(rows, asked, false);
        };
        // Rates are right only over a time of which all rows are known.
        let mut rows = rows.clone();
        rows.requests.retain(|row| row.created_at >= since);
        rows.jobs.retain(|job| job.updated_at >= since);
        Self::of_all(&rows, Period { since, ..asked }, true)
    }

    fn of_all(rows: &ReportRows, period: Period, is_cut: bool) -> Self {
        let asking: Vec<&RequestMetric> = rows.requests.iter().filter(|row| has_asked(row)).collect();
        let mut report = Self {
            period,
            requests: asking.len(),
            is_cut,
            recall: RecallFigures::of(&asking),
            days: figures::by_day(&asking, period),
            tokens: TokenFigures::of(&rows.requests),
            failures: FailureFigures::of(&rows.requests, &rows.jobs),
            cost: CostFigures::of(&rows.requests, &rows.jobs, period),
            triggers: Vec::new(),
        };
        report.triggers = triggers::all(&report, rows, &asking);
        report
    }

    /// The triggers whose threshold is passed.
    pub fn passed(&self) -> impl Iterator<Item = &Trigger> {
        self.triggers.iter().filter(|trigger| trigger.verdict == Verdict::Act)
    }
}

/// The first moment of a day in UTC.
pub(crate) fn day_start(at: Timestamp) -> Timestamp {
    let seconds = at.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(86_400)).unwrap_or(at)
}

/// Whether a row is of a request that asked recall in words.
fn has_asked(row: &RequestMetric) -> bool {
    !row.unasked && !row.query.trim().is_empty()
}

/// The share of the rows that `is_so` holds for; `None` if there are too few rows.
fn share(rows: &[&RequestMetric], is_so: impl Fn(&RequestMetric) -> bool) -> Option<f64> {
    let enough = rows.len() >= MIN_REQUESTS;
    enough.then(|| rows.iter().filter(|row| is_so(row)).count() as f64 / rows.len() as f64)
}
