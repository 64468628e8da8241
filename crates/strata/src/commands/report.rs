//! `strata report`: how well memory works, and what to change where it does not.

use jiff::{SignedDuration, Timestamp};
use strata_core::UserId;
use strata_core::moment::parse_moment;
use strata_core::store::Page;
use strata_engine::REPORT_DAYS;
use strata_engine::report::{Latencies, Report, Unit};
use strata_server::wire::ReportResponse;

use super::{Context, JsonArgs, users};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// The most rows of each kind and user that a report reads.
const MAX_ROWS: u32 = 100_000;

/// The most users of a report over all users.
const MAX_USERS: u32 = 10_000;

/// Report how well memory works
///
/// Computes every upgrade trigger of the evolution plan from the requests and jobs of a period: the value, the threshold, a
/// verdict, the setting to change and what it costs. Without `--user`, all users of the store are counted together.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  strata report\n  strata report --days 30 --user ada --json\n  strata report --since 36h"
)]
pub(crate) struct Args {
    /// The length of the period until now, in days
    #[arg(long, value_name = "N", default_value_t = REPORT_DAYS, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
    /// The beginning of the period, instead of `--days`: `7d`, `36h` or a time
    #[arg(long, value_name = "TIME", conflicts_with = "days")]
    since: Option<String>,
    /// Count only this user
    #[arg(long, value_name = "USER")]
    user: Option<UserId>,
    /// Print the cost in money too: the price of a million input tokens
    #[arg(long, value_name = "PRICE", requires = "output_price")]
    input_price: Option<f64>,
    /// The price of a million output tokens
    #[arg(long, value_name = "PRICE", requires = "input_price")]
    output_price: Option<f64>,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) async fn run(args: Args, context: &Context, output: &mut Output) -> Outcome {
    let engine = context.engine_to_read().await?;
    let since = match &args.since {
        Some(text) => moment(text, engine.now())?,
        None => engine.reporting.days_ago(args.days),
    };
    let users = match &args.user {
        Some(user) => {
            users::warn_if_unknown(&engine, user).await?;
            vec![user.clone()]
        }
        None => engine.store().users(Page::first(MAX_USERS)).await?,
    };
    let report = engine.reporting.report(&users, since, MAX_ROWS).await?;
    if args.json.json {
        output.json(&ReportResponse::from(&report))?;
        return Ok(());
    }
    show_figures(&report, &args, output)?;
    show_triggers(&report, output)?;
    show_advice(&report, output)
}

/// Reads `7d`, `36h` or a time.
fn moment(text: &str, now: Timestamp) -> Outcome<Timestamp> {
    let wrong =
        || Failure::usage(format!("`{text}` is not a time; write `7d`, `36h` or `2026-03-01T12:00:00Z`"));
    let hours =
        |digits: &str, each: i64| digits.parse::<i64>().ok().and_then(|count| count.checked_mul(each));
    let ago = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "d")) => hours(digits, 24),
        Some((digits, "h")) => hours(digits, 1),
        _ => return parse_moment(text).map_err(|_| wrong()),
    };
    let ago = ago.filter(|hours| (1..=24 * 3_650).contains(hours)).ok_or_else(wrong)?;
    now.checked_sub(SignedDuration::from_hours(ago)).map_err(|_| wrong())
}

fn show_figures(report: &Report, args: &Args, output: &mut Output) -> Outcome {
    let Report { period, recall, tokens, failures, cost, .. } = report;
    let day = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
    output.line(format_args!(
        "{} to {}, {} requests",
        day(period.since),
        day(period.until),
        report.requests
    ))?;
    if report.is_cut {
        output.line("there were more rows than were read; the period begins where all of them are known")?;
    }
    let percent =
        |share: Option<f64>| share.map_or("not enough data".to_owned(), |share| Unit::Share.words(share));
    let mut rows = vec![
        ["hit rate".to_owned(), percent(recall.hit_rate)],
        ["full-text hit rate".to_owned(), percent(recall.fts_hit_rate)],
        ["fallback".to_owned(), percent(recall.fallback)],
        ["truncation".to_owned(), percent(recall.truncation)],
        ["recall p50, p95, p99".to_owned(), times(&recall.latency)],
        ["model p50, p95, p99".to_owned(), times(&recall.model_latency)],
        ["tokens saved".to_owned(), tokens.words()],
        ["prefix stability".to_owned(), percent(tokens.prefix_stability)],
        ["failed jobs, failed summaries".to_owned(), {
            let dead: u64 = failures.dead_jobs.values().sum();
            format!("{dead}, {}", failures.summaries)
        }],
        ["complaints".to_owned(), failures.complaints.to_string()],
        ["tokens of models a day".to_owned(), format!("{:.0}", cost.tokens_a_day())],
    ];
    if let Some((input, output)) = args.input_price.zip(args.output_price) {
        let price = cost.total().price(input, output) / cost.days;
        rows.push(["cost a day".to_owned(), format!("{price:.4}")]);
    }
    output.line("")?;
    output.table(["FIGURE", "VALUE"], &rows)?;
    Ok(())
}

fn times(latencies: &Latencies) -> String {
    let Latencies { p50: Some(p50), p95: Some(p95), p99 } = latencies else {
        return "not enough data".to_owned();
    };
    let shown = |micros: u64| Unit::Seconds.words(micros as f64 / 1_000_000.0);
    format!("{}, {}, {}", shown(*p50), shown(*p95), p99.map_or("-".to_owned(), shown))
}

fn show_triggers(report: &Report, output: &mut Output) -> Outcome {
    let rows = report.triggers.iter().map(|trigger| {
        let value = trigger.value.map_or("-".to_owned(), |value| trigger.unit.words(value));
        let threshold = format!("> {}", trigger.unit.words(trigger.threshold));
        [trigger.verdict.words().to_owned(), value, threshold, trigger.metric.to_owned()]
    });
    output.line("")?;
    output.table(["VERDICT", "VALUE", "THRESHOLD", "TRIGGER"], &rows.collect::<Vec<_>>())?;
    Ok(())
}

/// Says what to change, and where people have complained.
fn show_advice(report: &Report, output: &mut Output) -> Outcome {
    for trigger in report.passed() {
        output.line("")?;
        output.line(format_args!("{}: {}", trigger.metric, trigger.meaning))?;
        output.line(format_args!("  change: {}", trigger.change))?;
        output.line(format_args!("  cost:   {}", trigger.cost))?;
    }
    let missing: Vec<&String> =
        report.triggers.iter().filter_map(|trigger| trigger.missing.as_ref()).collect();
    if let Some(first) = missing.first() {
        output.line("")?;
        output.line(format_args!(
            "not enough data for {} of {} triggers: {first}",
            missing.len(),
            report.triggers.len()
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_read() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        let read = |text: &str| moment(text, now).ok().map(|at| at.to_string());
        assert_eq!(read("7d").as_deref(), Some("2026-03-03T12:00:00Z"));
        assert_eq!(read("36h").as_deref(), Some("2026-03-09T00:00:00Z"));
        assert_eq!(read("2026-03-01T00:00:00Z").as_deref(), Some("2026-03-01T00:00:00Z"));
        for wrong in ["", "d", "0d", "-1d", "x", "99999999999999999999d", "9999d", "7 d"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
