//! The project's own tooling: `cargo xtask check`, `tidy`, `deny`, `coverage`, `torture`, `fuzz`, `bench`, `book` and `dist`.
//!
//! House rules that can be checked are checked here, by code, and continuous integration runs nothing else. Nothing in
//! here is shipped. Start reading at [`check`]; the rules themselves are in [`tidy`].
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

mod bench;
mod book;
mod cargo_tools;
mod check;
mod coverage;
mod deny;
mod dist;
mod fuzz;
mod packages;
mod process;
mod test_run;
mod tidy;
mod tools;
mod torture;
mod training;
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
    /// Check the house rules alone: takes a few seconds, needs no network and prints everything that is wrong.
    Tidy,
    /// Check the dependencies alone, as deny.toml says: licences, sources, duplicate versions and advisories.
    Deny,
    /// Print which lines the tests reach; needs what `check` installs, and `rustup component add llvm-tools`.
    Coverage(coverage::Arguments),
    /// Run the tests of bad days for some minutes, and print one table: kills, failing disks, damage, clocks.
    Torture(torture::Arguments),
    /// Run every parser on random and mutated inputs, for some minutes each.
    Fuzz(fuzz::Arguments),
    /// Measure the release build, print one table and write JSON to target/bench.
    Bench(bench::Arguments),
    /// Make the book of the documentation in target/book.
    Book,
    /// Make the wheel and the npm package for the tests, and install them in target/packages.
    Packages(packages::Arguments),
    /// Make the files of a release in target/dist: wheel, npm package, binary and SHA256SUMS.
    Dist(dist::Arguments),
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let outcome = Workspace::locate().and_then(|workspace| match command {
        Command::Check(arguments) => check::run(&workspace, &arguments),
        Command::Tidy => tidy::run(&workspace),
        Command::Deny => deny::run(&workspace),
        Command::Coverage(arguments) => coverage::run(&workspace, &arguments),
        Command::Torture(arguments) => torture::run(&workspace, &arguments),
        Command::Fuzz(arguments) => fuzz::run(&workspace, &arguments),
        Command::Bench(arguments) => bench::run(&workspace, &arguments),
        Command::Book => book::run(&workspace),
        Command::Packages(arguments) => packages::run(&workspace, &arguments),
        Command::Dist(arguments) => dist::run(&workspace, &arguments),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
