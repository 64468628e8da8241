//! The report: how well memory works in a period, and what to change where it does not.

use std::collections::BTreeMap;

use jiff::Timestamp;
use strata_engine::report::{
    CostFigures, DayFigures, FailureFigures, Latencies, RecallFigures, Report, Spending, TokenFigures,
    Trigger,
};

response! {
    /// How well memory works in a period.
    pub ReportResponse from (report: Report) {
        /// The beginning of the period.
        since: Timestamp = report.period.since,
        /// The end of the period.
        until: Timestamp = report.period.until,
        /// The number of requests that asked recall.
        requests: usize = report.requests,
        /// Whether there were more rows than were read. Then the period begins with the oldest row that was read.
        cut: bool = report.is_cut,
        /// Shares of the requests, and the time that recall takes.
        recall: RecallFiguresResponse = (&report.recall).into(),
        /// The requests of each day, the oldest first.
        days: Vec<DayFiguresResponse> = report.days.iter().map(DayFiguresResponse::from).collect(),
        /// Tokens shown to models, against sending everything.
        tokens: TokenFiguresResponse = (&report.tokens).into(),
        /// The failures.
        failures: FailureFiguresResponse = (&report.failures).into(),
        /// The costs of models.
        cost: CostFiguresResponse = (&report.cost).into(),
        /// The upgrade triggers, in the order of the evolution plan's table.
        triggers: Vec<TriggerResponse> = report.triggers.iter().map(TriggerResponse::from).collect(),
    }
}

response! {
    /// Shares from 0 to 1, averages and times. A figure is `null` if the period has too few requests.
    pub(crate) RecallFiguresResponse from (figures: RecallFigures) {
        /// The share of requests that got an item.
        hit_rate: Option<f64> = figures.hit_rate,
        /// The share of requests for which full text found something.
        fts_hit_rate: Option<f64> = figures.fts_hit_rate,
        /// The share of requests with fewer than three hits of full text.
        few_fts_hits: Option<f64> = figures.few_hits,
        /// The share of requests that used trigrams or the most recent turns.
        fallback: Option<f64> = figures.fallback,
        /// The share of requests that got summaries only.
        summaries_only: Option<f64> = figures.summaries_only,
        /// The share of requests from which the budget excluded something.
        truncation: Option<f64> = figures.truncation,
        /// The average number of returned items.
        items: Option<f64> = figures.items,
        /// The average number of tokens of the returned items.
        item_tokens: Option<f64> = figures.item_tokens,
        /// The time that recall took.
        latency_ms: LatenciesResponse = (&figures.latency).into(),
        /// The time that models took to answer.
        model_latency_ms: LatenciesResponse = (&figures.model_latency).into(),
    }
}

response! {
    /// The requests of one day.
    pub(crate) DayFiguresResponse from (day: DayFigures) {
        /// The beginning of the day.
        since: Timestamp = day.since,
        /// The number of requests that asked recall.
        requests: usize = day.requests,
        /// The share of them that got an item.
        hit_rate: Option<f64> = day.hit_rate,
        /// The median time that recall took, in milliseconds.
        p50_ms: Option<f64> = day.p50.map(milliseconds),
        /// The 95th percentile of that time.
        p95_ms: Option<f64> = day.p95.map(milliseconds),
    }
}

response! {
    /// Percentiles of a time, in milliseconds.
    pub(crate) LatenciesResponse from (latencies: Latencies) {
        /// The median.
        p50: Option<f64> = latencies.p50.map(milliseconds),
        /// The 95th percentile.
        p95: Option<f64> = latencies.p95.map(milliseconds),
        /// The 99th percentile.
        p99: Option<f64> = latencies.p99.map(milliseconds),
    }
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

response! {
    /// Tokens shown to models, against sending everything.
    pub(crate) TokenFiguresResponse from (figures: TokenFigures) {
        /// The requests for which both figures are known.
        requests: usize = figures.requests,
        /// The tokens of their sessions: sending everything.
        raw: u64 = figures.raw,
        /// The tokens that models read.
        shown: u64 = figures.shown,
        /// The share of tokens that were not sent; negative if memory added more than it left out.
        saved_share: Option<f64> = figures.saved_share,
        /// The average share of a prompt that equals the beginning of the prompt before it.
        prefix_stability: Option<f64> = figures.prefix_stability,
    }
}

response! {
    /// The failures.
    pub(crate) FailureFiguresResponse from (figures: FailureFigures) {
        /// Requests with a stage that failed, by the stage.
        requests: BTreeMap<&'static str, u64> = figures.requests.clone(),
        /// Jobs that were given up, by their kind.
        dead_jobs: BTreeMap<String, u64> = figures.dead_jobs.clone(),
        /// Jobs that have failed and wait for another attempt.
        retried_jobs: u64 = figures.retried_jobs,
        /// Summaries that were given up, or made without the model that should have made them.
        summaries: u64 = figures.summaries,
        /// Complaints that it forgot something.
        complaints: u64 = figures.complaints,
    }
}

response! {
    /// The costs of models in the period.
    pub(crate) CostFiguresResponse from (cost: CostFigures) {
        /// Chats.
        chats: SpendingResponse = (&cost.chats).into(),
        /// Learning without summaries.
        learning: SpendingResponse = (&cost.learning).into(),
        /// Summaries.
        summaries: SpendingResponse = (&cost.summaries).into(),
        /// All tokens of a day, on average.
        tokens_a_day: f64 = cost.tokens_a_day(),
    }
}

response! {
    /// Calls of models and their tokens.
    pub(crate) SpendingResponse from (spending: Spending) {
        /// Calls.
        calls: u64 = spending.calls,
        /// Tokens that models read.
        input_tokens: u64 = spending.input_tokens,
        /// Tokens that models wrote.
        output_tokens: u64 = spending.output_tokens,
    }
}

response! {
    /// One upgrade trigger.
    pub(crate) TriggerResponse from (trigger: Trigger) {
        /// Its name.
        name: &'static str = trigger.name,
        /// The metric, in words.
        metric: &'static str = trigger.metric,
        /// The unit of the value and of the threshold: `share`, `per_week` or `seconds`.
        unit: &'static str = trigger.unit.as_str(),
        /// The value; `null` if there is too little data.
        value: Option<f64> = trigger.value,
        /// A larger value passes the threshold.
        threshold: f64 = trigger.threshold,
        /// The verdict: `fine`, `act` or `not_enough_data`.
        verdict: &'static str = trigger.verdict.as_str(),
        /// The meaning of a passed threshold.
        meaning: &'static str = trigger.meaning,
        /// The setting to change.
        setting: &'static str = trigger.setting,
        /// How to change it.
        change: String = trigger.change.clone(),
        /// The costs of the change.
        cost: String = trigger.cost.clone(),
        /// Why there is too little data.
        missing: Option<String> = trigger.missing.clone(),
    }
}
