//! The report as a page.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use strata_engine::REPORT_DAYS;
use strata_engine::report::{Latencies, Report, Trigger, Unit, Verdict};

use super::charts::share_width;
use super::frame::{Frame, Section, Visitor, grouped, moment};
use super::overview::PAGE_ROWS;
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::undocumented("/inspect/report", get(show)).inspects()]
}

/// A trigger as pages show it.
pub(super) struct TriggerView {
    pub(super) metric: &'static str,
    pub(super) value: String,
    pub(super) threshold: String,
    pub(super) verdict: &'static str,
    /// The class of the verdict in the style sheet.
    pub(super) class: &'static str,
    pub(super) meaning: &'static str,
    pub(super) setting: &'static str,
    pub(super) change: String,
    pub(super) cost: String,
    pub(super) missing: Option<String>,
    /// The widths of the value's bar and of the part before the threshold, of 100.
    pub(super) bar: Option<(String, String)>,
}

impl TriggerView {
    pub(super) fn new(trigger: &Trigger) -> Self {
        let full = trigger.value.unwrap_or(0.0).max(trigger.threshold * 2.0);
        let width = |value: f64| share_width(value, full, 100.0);
        let plain = |text: &str| text.replace('`', "");
        Self {
            metric: trigger.metric,
            value: trigger.value.map_or("–".to_owned(), |value| trigger.unit.words(value)),
            threshold: trigger.unit.words(trigger.threshold),
            verdict: trigger.verdict.words(),
            class: match trigger.verdict {
                Verdict::Fine => "fine",
                Verdict::Act => "act",
                Verdict::NotEnoughData => "unknown",
            },
            meaning: trigger.meaning,
            setting: trigger.setting,
            change: plain(&trigger.change),
            cost: plain(&trigger.cost),
            missing: trigger.missing.as_deref().map(plain),
            bar: trigger.value.map(|value| (width(value), width(trigger.threshold))),
        }
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage {
    frame: Frame,
    /// Address, label, and whether it is the present period.
    choices: Vec<(String, String, bool)>,
    period: (String, String),
    requests: String,
    is_cut: bool,
    figures: Vec<(&'static str, String, &'static str)>,
    triggers: Vec<TriggerView>,
    acting: usize,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, asked, .. } = visitor;
    let days = asked.days.parse().unwrap_or(REPORT_DAYS).clamp(1, 365);
    let reporting = &app.engine().reporting;
    let report = reporting.report(&[user], reporting.days_ago(days), PAGE_ROWS).await?;
    let frame = frame.titled(Section::Report, "Report");
    let choice = |count: u32| {
        let label = if count == 1 { "1 day".to_owned() } else { format!("{count} days") };
        (frame.href_with("/inspect/report", &format!("days={count}")), label, count == days)
    };
    let page = ReportPage {
        choices: [1, 7, 30, 90].map(choice).into(),
        period: (moment(report.period.since), moment(report.period.until)),
        requests: grouped(report.requests as u64),
        is_cut: report.is_cut,
        figures: figures(&report),
        triggers: report.triggers.iter().map(TriggerView::new).collect(),
        acting: report.passed().count(),
        frame,
    };
    page.frame.answer(&page)
}

const TOO_LITTLE: &str = "not enough data";

/// The figures: a name, a value, and what it means.
fn figures(report: &Report) -> Vec<(&'static str, String, &'static str)> {
    let Report { recall, tokens, failures, cost, .. } = report;
    let share = |share: Option<f64>| share.map_or(TOO_LITTLE.to_owned(), |share| Unit::Share.words(share));
    let dead: u64 = failures.dead_jobs.values().sum();
    vec![
        ("Hit rate", share(recall.hit_rate), "questions that got an item"),
        ("Full-text hit rate", share(recall.fts_hit_rate), "questions whose words were found"),
        ("Fallback", share(recall.fallback), "trigrams or the most recent turns instead"),
        ("Truncation", share(recall.truncation), "the budget excluded something"),
        ("Recall p50 · p95 · p99", times(&recall.latency), "time that recall takes"),
        ("Model p50 · p95 · p99", times(&recall.model_latency), "time until models have answered"),
        ("Tokens saved", tokens.words(), "against sending the whole session"),
        ("Prefix stability", share(tokens.prefix_stability), "of a prompt equals the prompt before it"),
        ("Failed jobs", grouped(dead), "given up after all attempts"),
        ("Failed summaries", grouped(failures.summaries), "given up, or made without their model"),
        ("Complaints", grouped(failures.complaints), "“it forgot”, filed by people"),
        ("Tokens a day", grouped(cost.tokens_a_day().round() as u64), "all calls of models together"),
    ]
}

fn times(latencies: &Latencies) -> String {
    let (Some(p50), Some(p95)) = (latencies.p50, latencies.p95) else { return TOO_LITTLE.to_owned() };
    let shown = |micros: u64| Unit::Seconds.words(micros as f64 / 1_000_000.0);
    format!("{} · {} · {}", shown(p50), shown(p95), latencies.p99.map_or("–".to_owned(), shown))
}
