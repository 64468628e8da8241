//! The rows of the evolution plan's table of upgrade triggers: the value, the threshold, and the setting that helps.

use strata_core::metric::RequestMetric;

use super::advice::{self, Advice};
use super::{InForce, MIN_ITEMS, MIN_REQUESTS, Report, ReportRows};

/// The state of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The value is within its threshold.
    Fine,
    /// The threshold is passed: change the setting.
    Act,
    /// The period has too little data to tell.
    NotEnoughData,
}

impl Verdict {
    /// The name that clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Act => "act",
            Self::NotEnoughData => "not enough data",
        }
    }
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Unit {
    /// A share, from 0 to 1.
    Share,
    /// A number for each week.
    PerWeek,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The name that clients use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// A value of this unit in words.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1} %", value * 100.0),
            Self::PerWeek => format!("{value:.1} a week"),
            Self::Seconds if value < 1.0 => format!("{:.1} ms", value * 1_000.0),
            Self::Seconds => format!("{value:.1} s"),
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Its name, for programs.
    pub name: &'static str,
    /// The metric, in words.
    pub metric: &'static str,
    /// The unit of the value.
    pub unit: Unit,
    /// The value; `None` if there is too little data.
    pub value: Option<f64>,
    /// A larger value passes the threshold.
    pub threshold: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The meaning of a passed threshold.
    pub meaning: &'static str,
    /// The setting to change.
    pub setting: &'static str,
    /// How to change it.
    pub change: String,
    /// The costs of the change.
    pub cost: String,
    /// Why there is too little data.
    pub missing: Option<String>,
}

/// All rows of the table, in its order.
pub(super) fn all(report: &Report, rows: &ReportRows, asking: &[&RequestMetric]) -> Vec<Trigger> {
    let in_force = &rows.in_force;
    let recall = [
        few_hits(report, in_force),
        fallback(report, in_force),
        summaries_only(report, in_force),
        truncation(report, in_force, asking),
        embedding_needed(report, in_force),
    ];
    let stored = rows.items.unwrap_or(MIN_ITEMS);
    let recall = recall
        .into_iter()
        .map(|trigger| if stored < MIN_ITEMS { unjudged(trigger, stored) } else { trigger });
    let others = [complaints(report, in_force), latency(report, in_force), summary_cost(report, in_force)];
    recall.chain(others).collect()
}

/// A trigger of a store that is too small to be judged.
fn unjudged(trigger: Trigger, stored: usize) -> Trigger {
    let items = if stored == 1 { "item is" } else { "items are" };
    let missing = Some(format!("{stored} {items} stored; {MIN_ITEMS} are needed"));
    Trigger { value: None, verdict: Verdict::NotEnoughData, missing, ..trigger }
}

/// The parts of a trigger that are known without its value.
struct Row {
    name: &'static str,
    metric: &'static str,
    unit: Unit,
    threshold: f64,
    meaning: &'static str,
    advice: Advice,
}

impl Row {
    fn judge(self, value: Option<f64>, missing: impl FnOnce() -> String) -> Trigger {
        let Self { name, metric, unit, threshold, meaning, advice: Advice { setting, change, cost } } = self;
        let verdict = match value {
            Some(value) if value > threshold => Verdict::Act,
            Some(_) => Verdict::Fine,
            None => Verdict::NotEnoughData,
        };
        let missing = value.is_none().then(missing);
        Trigger { name, metric, unit, value, threshold, verdict, meaning, setting, change, cost, missing }
    }
}

fn too_few(report: &Report) -> String {
    let requests = if report.requests == 1 { "request" } else { "requests" };
    format!("{} {requests} in the period; {MIN_REQUESTS} are needed", report.requests)
}

fn few_hits(report: &Report, in_force: &InForce) -> Trigger {
    Row {
        name: "few_fts_hits",
        metric: "questions with fewer than 3 full-text hits",
        unit: Unit::Share,
        threshold: 0.3,
        meaning: "the words of questions and answers differ too often for lexical retrieval",
        advice: advice::by_meaning(in_force),
    }
    .judge(report.recall.few_hits, || too_few(report))
}

fn fallback(report: &Report, in_force: &InForce) -> Trigger {
    Row {
        name: "fallback",
        metric: "questions answered by trigrams or by the most recent turns",
        unit: Unit::Share,
        threshold: 0.5,
        meaning: "full text is no longer the main path",
        advice: advice::by_meaning(in_force),
    }
    .judge(report.recall.fallback, || too_few(report))
}

fn summaries_only(report: &Report, in_force: &InForce) -> Trigger {
    Row {
        name: "summaries_only",
        metric: "questions whose context is summaries alone",
        unit: Unit::Share,
        threshold: 0.2,
        meaning: "summaries are not structured enough to be found by what they say",
        advice: advice::learning_model(in_force),
    }
    .judge(report.recall.summaries_only, || too_few(report))
}

fn truncation(report: &Report, in_force: &InForce, asking: &[&RequestMetric]) -> Trigger {
    let cut = asking.iter().filter(|row| row.truncated).count();
    Row {
        name: "truncation",
        metric: "questions from which the budget excluded something",
        unit: Unit::Share,
        threshold: 0.4,
        meaning: "the context budget is too small for what is found",
        advice: advice::larger_budget(in_force, cut as f64 / report.period.days()),
    }
    .judge(report.recall.truncation, || too_few(report))
}

fn embedding_needed(report: &Report, in_force: &InForce) -> Trigger {
    let judged = report.failures.complaints > 0;
    let share = report.failures.meaning as f64 / report.requests.max(1) as f64;
    Row {
        name: "embedding_needed",
        metric: "questions that a person marked as findable by meaning only",
        unit: Unit::Share,
        threshold: 0.1,
        meaning: "recall by words and by the present embedder is insufficient",
        advice: advice::larger_encoder(in_force),
    }
    .judge((judged && report.requests >= MIN_REQUESTS).then_some(share), || match judged {
        true => too_few(report),
        false => "no complaint has been filed; `strata feedback REQUEST --kind meaning` files one".to_owned(),
    })
}

fn complaints(report: &Report, in_force: &InForce) -> Trigger {
    let weekly = report.failures.complaints as f64 * 7.0 / report.period.days();
    // A complaint counts however few requests there are. Their absence says something only if there were requests.
    let known = report.failures.complaints > 0 || report.requests >= MIN_REQUESTS;
    Row {
        name: "complaints",
        metric: "complaints that it forgot",
        unit: Unit::PerWeek,
        threshold: 3.0,
        meaning: "people notice that it forgets; the traces of the requests say where",
        advice: advice::looser_recall(in_force),
    }
    .judge(known.then_some(weekly), || too_few(report))
}

fn latency(report: &Report, in_force: &InForce) -> Trigger {
    let seconds = report.recall.latency.p95.map(|micros| micros as f64 / 1_000_000.0);
    Row {
        name: "p95_latency",
        metric: "95th percentile of the time that recall takes",
        unit: Unit::Seconds,
        threshold: 3.0,
        meaning: "recall needs caching or splitting",
        advice: advice::faster_recall(in_force),
    }
    .judge(seconds, || too_few(report))
}

fn summary_cost(report: &Report, in_force: &InForce) -> Trigger {
    let a_day = report.cost.summaries.tokens() as f64 / report.cost.days;
    Row {
        name: "summary_cost",
        metric: "share of summaries in all tokens of models",
        unit: Unit::Share,
        threshold: 0.25,
        meaning: "summaries are made too often or are too long",
        advice: advice::fewer_summaries(in_force, a_day),
    }
    .judge(report.cost.summary_share(), || "no model was called in the period".to_owned())
}
