//! `strata demo`: the time of the first minute, from the start of the program until every question has its answer.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Bench;
use crate::report::{Report, Target, median};

/// The most seconds that a newcomer waits.
const MOST_SECONDS: f64 = 10.0;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let folder = bench.stores.fresh("demo");
    std::fs::create_dir_all(&folder)?;
    let mut times = Vec::new();
    let mut questions = 0;
    for _ in 0..bench.size(5, 1) {
        let start = Instant::now();
        let output = Command::new(&bench.binary)
            .args(["demo", "--no-serve", "--json"])
            .current_dir(&folder)
            .env("TMPDIR", &folder)
            .output()
            .context("starting the demo")?;
        times.push(start.elapsed().as_secs_f64());
        ensure!(output.status.success(), "the demo failed: {}", String::from_utf8_lossy(&output.stderr));
        let shown: Value = serde_json::from_slice(&output.stdout).context("reading the demo's answers")?;
        questions = shown["questions"].as_array().map_or(0, Vec::len);
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    report.add(
        format!("`strata demo`, {questions} questions, median"),
        median(&mut times),
        "s",
        Some(Target::AtMost(MOST_SECONDS)),
    );
    report.add("`strata demo`, the slowest", slowest, "s", Some(Target::AtMost(MOST_SECONDS)));
    Ok(())
}
