//! Measures Strata: the store in this process, and the binary in a process of its own. Run it with `cargo xtask bench`.
//!
//! Every comparison is a ratio of two figures of one run, so that it does not depend on a slow or busy machine. The texts come
//! from a seeded word model ([`corpus`]), so that two runs measure the same work. This crate is not shipped. To add a
//! measurement, write a module with a `measure` function and add it to [`GROUPS`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod append;
mod cold;
mod context;
mod corpus;
mod costs;
mod cpu;
mod demo;
mod encoder;
mod engine;
mod fill;
mod inspector;
mod large;
mod learn;
mod postgres;
mod prompt;
mod proxy;
mod reading;
mod recall;
mod report;
mod scale;
mod search;
mod served;
mod server;
mod vault;
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;

use fill::Stores;
use report::{Report, Verdict};

/// Measure Strata.
#[derive(Parser)]
struct Arguments {
    /// The groups to measure [default: all]
    groups: Vec<String>,
    /// The release binary to measure.
    #[arg(long)]
    binary: PathBuf,
    /// The folder for the figures, and for the stores during the run.
    #[arg(long)]
    out: PathBuf,
    /// Use small sizes, to check that everything runs; targets are not judged.
    #[arg(long)]
    quick: bool,
    /// Measure a session of 50,000 turns too, in the group `reading`.
    #[arg(long)]
    long: bool,
    /// The folder of another encoder for the group `encoder` [default: the encoder inside the binary]
    #[arg(long, value_name = "DIR", env = "STRATA_BENCH_ENCODER")]
    encoder: Option<PathBuf>,
    /// List the groups and stop.
    #[arg(long)]
    list: bool,
    /// Append to a PostgreSQL store as one of several processes; the group `postgres` starts them.
    #[arg(long, hide = true)]
    append_to: Option<String>,
}

/// The name of a group, its description, and its function.
type Group = (&'static str, &'static str, fn(&mut Bench, &mut Report) -> Result<()>);

const GROUPS: &[Group] = &[
    ("append", "durable appends: many writers against one", append::measure),
    ("search", "full-text search of one user in a small and a large store", search::measure),
    ("recall", "recall over HTTP with words alone and with the encoder", recall::measure),
    (
        "costs",
        "memory after a day's work, first search after learning, search on the command line, small stores",
        costs::measure,
    ),
    ("cold", "small recalls while large users load", cold::measure),
    ("encoder", "recall over HTTP with Strata's encoder", encoder::measure),
    ("context", "working contexts as files: load, save, compact", context::measure),
    ("prompt", "prompts of long sessions: time and tokens", prompt::measure),
    ("proxy", "chats through the proxy against chats without it", proxy::measure),
    ("learn", "learning: messages a second, what it costs recording, what a model costs", learn::measure),
    (
        "reading",
        "reading: messages a second, from recorded to believed, long sessions, recall meanwhile",
        reading::measure,
    ),
    ("demo", "`strata demo`: from the start of the program to the last answer", demo::measure),
    ("inspector", "the inspector's pages over a large store: time and bytes", inspector::measure),
    ("large", "a large user: points of many sessions, memory of a filtered search", large::measure),
    ("postgres", "the PostgreSQL store beside the embedded one: appends, recall, bytes", postgres::measure),
    ("scale", "a model of 1, 3 and 10 nodes on PostgreSQL, from measured costs", scale::measure),
    (
        "vault",
        "the vault beside the embedded store: appends, saved files, recall, building the index",
        vault::measure,
    ),
    ("serve", "the binary: start to ready, idle memory", served::measure),
];

/// The context of all measurements.
struct Bench {
    runtime: tokio::runtime::Runtime,
    binary: PathBuf,
    stores: Stores,
    encoder: Option<PathBuf>,
    quick: bool,
    long: bool,
}

impl Bench {
    /// Returns `full`, or `quick` in a quick run.
    fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("{missed} targets were missed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurements and returns the number of missed targets.
fn run(arguments: Arguments) -> Result<usize> {
    let Arguments { groups, binary, out, quick, long, encoder, list, append_to } = arguments;
    if list {
        GROUPS.iter().for_each(|(name, what, _)| println!("{name:<10}{what}"));
        return Ok(0);
    }
    let is_known = |group: &&String| append_to.is_some() || GROUPS.iter().any(|(name, ..)| name == *group);
    if let Some(unknown) = groups.iter().find(|group| !is_known(group)) {
        let known: Vec<&str> = GROUPS.iter().map(|(name, ..)| *name).collect();
        bail!("group `{unknown}` is unknown; the groups are {}", known.join(", "));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(address) = append_to {
        runtime.block_on(postgres::process::append(&address, &groups))?;
        return Ok(0);
    }
    let mut bench =
        Bench { runtime, binary, stores: Stores::new(&out.join("stores"))?, encoder, quick, long };
    let mut report = Report::new(quick);
    for (name, what, measure) in GROUPS {
        if groups.is_empty() || groups.iter().any(|group| group == name) {
            eprintln!("{name}: {what}");
            report.begin(name);
            measure(&mut bench, &mut report)?;
        }
    }
    print!("{}", report.table());
    report.write(&out)?;
    Ok(report.rows().iter().filter(|row| row.verdict() == Verdict::Fail).count())
}
