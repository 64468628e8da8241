//! The figures, as one table for people and one JSON file per group for programs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Whether a figure met its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Pass,
    Fail,
    /// The figure has no target, or the run was too small to judge.
    Printed,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    group: String,
    name: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
    judged: bool,
}

impl Row {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.target {
            Some(Target::AtLeast(least)) if self.judged && self.value >= least => Verdict::Pass,
            Some(Target::AtMost(most)) if self.judged && self.value <= most => Verdict::Pass,
            Some(_) if self.judged => Verdict::Fail,
            _ => Verdict::Printed,
        }
    }
}

/// All figures of a run.
pub(crate) struct Report {
    quick: bool,
    group: String,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(quick: bool) -> Self {
        Self { quick, group: String::new(), rows: Vec::new() }
    }

    /// Starts a group; the following figures belong to it.
    pub(crate) fn begin(&mut self, group: &str) {
        group.clone_into(&mut self.group);
    }

    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: Option<Target>,
    ) {
        let row =
            Row { group: self.group.clone(), name: name.into(), value, unit, target, judged: !self.quick };
        // A group may take minutes: each figure is printed as it comes.
        eprintln!("  {}: {} {unit}", row.name, figure(row.value));
        self.rows.push(row);
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        let mut line = |cells: [&str; 5]| {
            let [name, value, unit, target, verdict] = cells;
            let _ = writeln!(table, "{name:<62}{value:>12} {unit:<9}{target:>12}  {verdict}");
        };
        line(["measure", "value", "unit", "target", "result"]);
        for row in &self.rows {
            let target = match row.target {
                Some(Target::AtLeast(least)) => format!(">= {}", figure(least)),
                Some(Target::AtMost(most)) => format!("<= {}", figure(most)),
                None => String::new(),
            };
            let verdict = match row.verdict() {
                Verdict::Pass => "pass",
                Verdict::Fail => "FAIL",
                Verdict::Printed => "printed",
            };
            line([&format!("{}: {}", row.group, row.name), &figure(row.value), row.unit, &target, verdict]);
        }
        table
    }

    /// Writes `GROUP.json` for each group measured.
    pub(crate) fn write(&self, out: &Path) -> Result<()> {
        let mut groups: Vec<&str> = self.rows.iter().map(|row| row.group.as_str()).collect();
        groups.dedup();
        for group in groups {
            let rows: Vec<_> = self
                .rows
                .iter()
                .filter(|row| row.group == group)
                .map(|row| {
                    json!({
                        "name": row.name, "value": row.value, "unit": row.unit,
                        "target": row.target, "result": row.verdict(),
                    })
                })
                .collect();
            let cores = std::thread::available_parallelism().map_or(0, usize::from);
            let file = json!({ "group": group, "quick": self.quick, "cores": cores, "rows": rows });
            let path = out.join(format!("{group}.json"));
            fs::write(&path, serde_json::to_string_pretty(&file)? + "\n")
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// A number with a sensible number of digits.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "skipped".to_owned(),
        size if size >= 1000.0 => {
            let digits = format!("{value:.0}");
            let mut grouped = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            grouped
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The median of some figures; 0 if there are none.
pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The 99th percentile of some figures; 0 if there are none.
pub(crate) fn p99(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    let place = (figures.len() * 99 / 100).min(figures.len().saturating_sub(1));
    figures.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_its_target_unless_the_run_was_quick() {
        let verdicts = |quick| {
            let mut report = Report::new(quick);
            report.begin("group");
            report.add("a", 5.0, "ms", Some(Target::AtMost(5.0)));
            report.add("b", 5.1, "ms", Some(Target::AtMost(5.0)));
            report.add("c", 3.9, "x", Some(Target::AtLeast(4.0)));
            report.add("d", 1.0, "B", None);
            report.rows().iter().map(Row::verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(false), [Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Printed]);
        assert_eq!(verdicts(true), [Verdict::Printed; 4]);
    }

    #[test]
    fn figures_are_readable() {
        for (value, text) in
            [(1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (8000.0, "8,000"), (1e6, "1,000,000")]
        {
            assert_eq!(figure(value), text);
        }
        assert_eq!(figure(f64::NAN), "skipped");
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(p99(&mut (0..200).map(f64::from).rev().collect::<Vec<_>>()), 198.0);
    }
}
