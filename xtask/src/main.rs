//! The project's own tooling: `cargo xtask check`, `tidy` and `bench`.
//!
//! House rules that can be checked are checked here, by code, and continuous integration runs nothing else. Nothing in
//! here is shipped. Start reading at [`check`]; the rules themselves are in [`tidy`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod bench;
mod check;
mod process;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use workspace::Workspace;

/// Strata's own tooling.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing, then run every check that a change has to pass.
    Check(check::Arguments),
    /// Check the house rules alone; takes a second and needs no network.
    Tidy,
    /// Measure the release build, print one table and write JSON to target/bench.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let outcome = Workspace::locate().and_then(|workspace| match command {
        Command::Check(arguments) => check::run(&workspace, &arguments),
        Command::Tidy => tidy::run(&workspace),
        Command::Bench(arguments) => bench::run(&workspace, &arguments),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
