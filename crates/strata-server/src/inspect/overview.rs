//! The first page: what is stored, how it grows, how well recall works, and what failed.

use askama::Template;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{Redirect, Response};
use axum::routing::get;
use jiff::SignedDuration;
use strata_core::job::JobStatus;
use strata_core::store::{Growth, GrowthDay, JobQuery, Page};
use strata_engine::REPORT_DAYS;
use strata_engine::report::{Report, Unit};

use super::charts::{Chart, DayValue, chart};
use super::clip::Room;
use super::frame::{Frame, Section, Visitor, counted, day, grouped, moment, quoted};
use super::jobs::DeadJob;
use super::report::TriggerView;
use super::sessions::SessionRow;
use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;

/// The days of the growth charts.
const DAYS: u32 = 30;

/// The rows that the report of the page reads: enough for its shares, and quickly read. A page whose period has more rows says
/// from when on it counts.
pub(super) const PAGE_ROWS: u32 = 2_000;

/// The most waiting jobs that are counted.
const MAX_WAITING: u32 = 1_000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::undocumented("/inspect", get(show)).inspects(),
        Route::undocumented("/inspect/", get(without_slash)).inspects(),
    ]
}

/// An address with a slash at its end, as people write it.
async fn without_slash(uri: Uri) -> Redirect {
    Redirect::permanent(&overview_address(&uri))
}

/// The address of the first page, with the query of another address: it may name the user.
pub(crate) fn overview_address(uri: &Uri) -> String {
    uri.query().map_or_else(|| "/inspect".to_owned(), |query| format!("/inspect?{query}"))
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    tiles: Vec<(String, String, String)>,
    /// The time that the report counts, in words.
    period: String,
    /// The number of rows that were read, if the week has more.
    read: Option<String>,
    charts: Vec<Chart>,
    /// The titles of the charts that have no values yet.
    empty_charts: Vec<&'static str>,
    triggers: Vec<TriggerView>,
    /// The names of the figures that cannot be judged yet.
    unknown: Vec<&'static str>,
    failures: Vec<String>,
    dead_jobs: Vec<DeadJob>,
    /// Files of a vault that cannot be used, with line and reason.
    files: Vec<String>,
    sessions: Vec<SessionRow>,
    is_new: bool,
}

async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let Visitor { user, frame, .. } = visitor;
    let frame = frame.titled(Section::Overview, "Overview");
    let engine = app.engine();
    let start = engine.reporting.day_start(DAYS - 1);
    let growth = engine.reporting.growth(&user, start).await?;
    let since = engine.reporting.days_ago(REPORT_DAYS);
    let report = engine.reporting.report(std::slice::from_ref(&user), since, PAGE_ROWS).await?;
    let waiting = JobQuery { status: Some(JobStatus::Queued), limit: MAX_WAITING + 1, ..JobQuery::default() };
    let waiting = engine.jobs.list(&user, &waiting).await?.len();
    let sessions = engine.sessions.list(&user, Page::first(5)).await?;
    let mut room = Room::new();
    let sessions = sessions.iter().map(|session| SessionRow::new(&frame, session, &mut room)).collect();
    let files = engine.store().unusable_files(&user).await?;
    let files = files.iter().map(|file| quoted(&room.line(file, 400).text)).collect();
    let dates: Vec<String> =
        (0..DAYS).map(|number| day(start + SignedDuration::from_hours(24 * i64::from(number)))).collect();
    let dead_jobs = DeadJob::load(&app, &user, &frame, &mut room).await?;
    let mut charts = growth_charts(&growth, &dates);
    charts.extend(recall_charts(&report));
    let (empty, charts): (Vec<Chart>, Vec<Chart>) = charts.into_iter().partition(|chart| chart.is_empty);
    let (unknown, triggers) = triggers(&report);
    let page = OverviewPage {
        is_new: growth.turns == 0 && growth.memories == 0,
        tiles: tiles(&growth, &report, waiting),
        charts,
        empty_charts: empty.iter().map(|chart| chart.title).collect(),
        period: period(&report),
        read: report.is_cut.then(|| grouped(PAGE_ROWS)),
        triggers,
        unknown: unknown.iter().map(|trigger| trigger.metric).collect(),
        failures: failures(&report, &mut room),
        dead_jobs,
        files,
        sessions,
        frame,
    };
    page.frame.answer(&page)
}

/// The triggers that cannot be judged yet, and the others.
fn triggers(report: &Report) -> (Vec<TriggerView>, Vec<TriggerView>) {
    report.triggers.iter().map(TriggerView::new).partition(|trigger| trigger.class == "unknown")
}

/// The time that a report counts: the last days, or the time from which on all rows were read.
fn period(report: &Report) -> String {
    match report.is_cut {
        true => format!("since {}", moment(report.period.since)),
        false => format!("in the last {REPORT_DAYS} days"),
    }
}

fn tiles(growth: &Growth, report: &Report, waiting: usize) -> Vec<(String, String, String)> {
    let new = |count: fn(&GrowthDay) -> u64| -> u64 { growth.days.iter().map(count).sum() };
    let recent = |count| format!("{} in {DAYS} days", grouped(new(count)));
    let hit_rate = report.recall.hit_rate.map(|rate| format!("{} got an item", Unit::Share.words(rate)));
    let hit_rate = hit_rate.unwrap_or_else(|| "not enough for a hit rate".to_owned());
    let requests = match report.is_cut {
        true => format!("Requests {}", period(report)),
        false => "Requests this week".to_owned(),
    };
    let tile = |label: &str, value: String, hint: String| (label.to_owned(), value, hint);
    vec![
        tile("Sessions", grouped(growth.sessions), String::new()),
        tile("Turns", grouped(growth.turns), recent(|day| day.turns)),
        tile("Memories", grouped(growth.memories), recent(|day| day.memories)),
        tile(&requests, grouped(report.requests as u64), hit_rate),
        tile("Jobs waiting", waiting_words(waiting), String::new()),
    ]
}

fn waiting_words(waiting: usize) -> String {
    match waiting > MAX_WAITING as usize {
        true => format!("over {}", grouped(MAX_WAITING)),
        false => grouped(waiting as u64),
    }
}

fn growth_charts(growth: &Growth, dates: &[String]) -> Vec<Chart> {
    let values = |count: fn(&GrowthDay) -> u64| -> Vec<DayValue> {
        let value = |number: usize| {
            let day = growth.days.iter().find(|day| day.day as usize == number);
            Some(day.map_or(0.0, |day| count(day) as f64))
        };
        dates
            .iter()
            .enumerate()
            .map(|(number, day)| DayValue { day: day.clone(), value: value(number) })
            .collect()
    };
    let words = |value: f64| grouped(value as u64);
    vec![
        chart("Turns a day", &values(|day| day.turns), None, words),
        chart("Memories a day", &values(|day| day.memories), None, words),
    ]
}

fn recall_charts(report: &Report) -> Vec<Chart> {
    let rates: Vec<DayValue> = report
        .days
        .iter()
        .map(|figures| DayValue { day: day(figures.since), value: figures.hit_rate })
        .collect();
    let seconds = |micros: u64| micros as f64 / 1_000_000.0;
    let times: Vec<DayValue> = report
        .days
        .iter()
        .map(|figures| DayValue { day: day(figures.since), value: figures.p95.map(seconds) })
        .collect();
    vec![
        chart("Hit rate a day", &rates, Some(1.0), |value| Unit::Share.words(value)),
        chart("Recall, 95th percentile a day", &times, None, |value| Unit::Seconds.words(value)),
    ]
}

/// The failures of the last days, a sentence each.
fn failures(report: &Report, room: &mut Room) -> Vec<String> {
    let failures = &report.failures;
    let was = |count: u64| if count == 1 { "was" } else { "were" };
    let mut sentences = Vec::new();
    for (kind, count) in &failures.dead_jobs {
        let jobs = counted(*count, "job", "jobs");
        sentences.push(format!("{jobs} of the kind “{kind}” {} given up.", was(*count)));
    }
    if failures.retried_jobs > 0 {
        let jobs = counted(failures.retried_jobs, "job", "jobs");
        sentences.push(format!("{jobs} failed and will be tried again."));
    }
    if failures.summaries > 0 {
        let summaries = counted(failures.summaries, "summary", "summaries");
        sentences.push(format!("{summaries} failed, or {} made without the model.", was(failures.summaries)));
    }
    for (stage, count) in &failures.requests {
        let requests = counted(*count, "request", "requests");
        sentences.push(format!("{requests} had a failure at the stage “{stage}”."));
    }
    if let Some((at, error)) = &failures.last_error {
        let error = quoted(&room.line(error, 300).text);
        sentences.push(format!("The last error of a job, {}: {error}", moment(*at)));
    }
    sentences
}
