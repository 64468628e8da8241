//! A report as Markdown tables.

use std::fmt::Write as _;

use strata_engine::recall::Order;

use crate::foreign::{ForeignReport, Group};
use crate::metrics::{Metrics, NAMES, Summary};
use crate::report::{Latency, OrderReport, Report};

/// The report as text: one table for each order and level, in percent, then the latencies.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let Report { set, conversations, sessions, turns, questions, .. } = report;
    let _ = writeln!(
        text,
        "# {set}: {conversations} conversations, {sessions} sessions, {turns} turns, {questions} questions"
    );
    for order in &report.orders {
        let name = order_name(order);
        push_table(&mut text, &format!("{name}, by turns"), &order.turn);
        push_table(&mut text, &format!("{name}, by sessions"), &order.session);
    }
    if let Some(foreign) = &report.foreign {
        push_foreign(&mut text, foreign);
    }
    let _ =
        writeln!(text, "\n| latency, ms | n | mean | p50 | p90 | p99 | max |\n|---|---|---|---|---|---|---|");
    for order in &report.orders {
        push_latency(&mut text, &format!("recall, {}", order_name(order)), &order.latency);
    }
    push_latency(&mut text, "record, a call", &report.ingest.latency);
    let _ = writeln!(text, "\nrecorded {:.0} turns a second", report.ingest.turns_per_second);
    text
}

fn order_name(order: &OrderReport) -> &'static str {
    match (order.order, order.reranked) {
        (Order::Relevance, false) => "relevance",
        (Order::Relevance, true) => "relevance, reranked",
        (Order::Served, false) => "served",
        (Order::Served, true) => "served, reranked",
    }
}

fn push_table(text: &mut String, title: &str, summary: &Summary) {
    let names: Vec<&str> =
        NAMES.into_iter().filter(|name| summary.overall.metrics.contains_key(name)).collect();
    let mut rows = vec![row(title, "n", names.iter().map(|name| (*name).to_owned()))];
    let figures = |label: &str, n: String, metrics: &Metrics| {
        row(label, &n, names.iter().map(|name| percent(metrics.get(name).copied())))
    };
    for (category, row) in &summary.categories {
        rows.push(figures(category, row.n.to_string(), &row.metrics));
    }
    rows.push(figures("**overall**", summary.overall.n.to_string(), &summary.overall.metrics));
    rows.push(figures("± 95 %", String::new(), &summary.ci95));
    rows.push(figures("macro", String::new(), &summary.macro_mean));
    push_rows(text, &rows);
}

fn row(label: &str, n: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [label.to_owned(), n.to_owned()].into_iter().chain(cells).collect()
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}", 100.0 * value))
}

/// Appends rows in aligned columns; the first row is the head.
fn push_rows(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    text.push('\n');
    for (number, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let (dashes, end) = ("-".repeat(width + 1), if column == 0 { '-' } else { ':' });
                let _ = write!(text, "|{dashes}{end}");
            }
            text.push_str("|\n");
        }
    }
}

fn push_foreign(text: &mut String, foreign: &ForeignReport) {
    let head = ["questions", "n", "served", "mean best score", "AUROC"].map(str::to_owned).to_vec();
    let group = |name: &str, group: &Group| {
        let cells = [Some(group.served), Some(group.mean_best), group.auroc].map(percent);
        row(name, &group.n.to_string(), cells.into_iter())
    };
    let rows = [
        head,
        group("own", &foreign.own),
        group("of another conversation", &foreign.foreign),
        group("abstention", &foreign.abstention),
    ];
    push_rows(text, &rows);
}

fn push_latency(text: &mut String, name: &str, latency: &Latency) {
    let Latency { count, mean_ms, p50_ms, p90_ms, p99_ms, max_ms } = latency;
    let _ = writeln!(
        text,
        "| {name} | {count} | {mean_ms:.2} | {p50_ms:.2} | {p90_ms:.2} | {p99_ms:.2} | {max_ms:.2} |"
    );
}
