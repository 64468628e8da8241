//! `strata-fuzz`: runs targets on changes of their examples, without libFuzzer. `cargo xtask fuzz --plain` calls it.
#![allow(clippy::print_stdout, reason = "a command line prints")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use strata_fuzz::change::{Numbers, changed};
use strata_fuzz::{TARGETS, Target};

/// Run parsers on changed examples until the time is over or one panics.
#[derive(Parser)]
struct Arguments {
    /// The targets to run [default: all]
    targets: Vec<String>,
    /// For how many seconds each of them runs.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The seed of the changes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List the targets and stop.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let Arguments { targets, seconds, seed, list } = Arguments::parse();
    let chosen =
        TARGETS.iter().filter(|target| targets.is_empty() || targets.iter().any(|name| name == target.name));
    let mut failed = false;
    for target in chosen {
        if list {
            println!("{}", target.name);
            continue;
        }
        let (runs, failure) = run(target, Duration::from_secs(seconds), seed);
        failed |= failure.is_some();
        println!(
            "{:<16}{runs:>12} inputs  {}",
            target.name,
            failure.map_or("ok".to_owned(), |input| format!("PANICS on {input:?}"))
        );
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs a target, and returns the number of inputs and the one that it panics on.
fn run(target: &Target, time: Duration, seed: u64) -> (u64, Option<String>) {
    let examples: Vec<Vec<u8>> = target.examples.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut numbers = Numbers::new(seed);
    let end = Instant::now() + time;
    let mut runs = 0;
    while Instant::now() < end {
        let input = changed(&examples, &mut numbers);
        runs += 1;
        if std::panic::catch_unwind(|| (target.run)(&input)).is_err() {
            return (runs, Some(String::from_utf8_lossy(&input).into_owned()));
        }
    }
    (runs, None)
}
