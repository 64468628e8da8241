//! `cargo xtask check`: everything that a change has to pass, in the order of what fails fastest to say why.
//!
//! It works from a fresh clone on a machine with Rust, git and Python alone.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::tools::{self, SystemPackages, TestModel};
use crate::workspace::Workspace;
use crate::{process, tidy};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Install no system packages; say what is missing instead.
    #[arg(long)]
    no_install: bool,
}

type Step<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let system = if arguments.no_install { SystemPackages::LeaveAlone } else { SystemPackages::Install };
    let steps: Vec<Step<'_>> = vec![
        ("tools", Box::new(|| install(workspace, system))),
        ("format", Box::new(|| cargo(workspace, &["fmt", "--all", "--check"]))),
        (
            "clippy",
            Box::new(|| {
                cargo(workspace, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
            }),
        ),
        ("tests", Box::new(|| tests(workspace))),
        ("doc tests", Box::new(|| cargo(workspace, &["test", "--quiet", "--workspace", "--doc"]))),
        ("tidy", Box::new(|| tidy::run(workspace))),
    ];
    let mut done: Vec<(&str, &str, Duration)> = Vec::new();
    let mut failure = None;
    for (name, step) in &steps {
        if failure.is_some() {
            done.push((name, "not run", Duration::ZERO));
            continue;
        }
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = step();
        let word = if outcome.is_ok() { "ok" } else { "failed" };
        println!("== {name}: {word} in {:.1} s", start.elapsed().as_secs_f64());
        done.push((name, word, start.elapsed()));
        failure = outcome.err().map(|error| (*name, error));
    }
    println!("\n{:<12}{:<10}{:>8}", "step", "result", "seconds");
    for (name, word, time) in &done {
        println!("{name:<12}{word:<10}{:>8.1}", time.as_secs_f64());
    }
    let total: Duration = done.iter().map(|(_, _, time)| *time).sum();
    println!(
        "{:<12}{:<10}{:>8.1}",
        "total",
        if failure.is_some() { "failed" } else { "ok" },
        total.as_secs_f64()
    );
    match failure {
        Some((name, error)) => Err(error.context(anyhow!("{name} failed"))),
        None => Ok(()),
    }
}

fn install(workspace: &Workspace, system: SystemPackages) -> Result<()> {
    tools::install(system)?;
    let target = workspace.target()?;
    tools::make_venv(workspace.root(), &target)?;
    tools::add_model(workspace.root(), &target)
}

/// All tests but the documentation's: with nextest where it is installed, which gives each test its own process.
fn tests(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    if process::succeeds("cargo", &["nextest", "--version"]) {
        cargo.args([
            "nextest",
            "run",
            "--workspace",
            "--no-fail-fast",
            "--config-file",
            "xtask/nextest.toml",
        ]);
    } else {
        cargo.args(["test", "--workspace", "--all-targets", "--no-fail-fast"]);
    }
    process::run(with_venv(workspace, &mut cargo)?)
}

fn with_venv<'a>(workspace: &Workspace, command: &'a mut Command) -> Result<&'a mut Command> {
    let target = workspace.target()?;
    if tools::test_model(workspace.root(), &target)? == TestModel::Missing {
        command.env("STRATA_TEST_MODEL", "missing");
    }
    Ok(command.env("STRATA_TEST_VENV", tools::venv(&target)))
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    process::run(workspace.cargo().args(arguments))
}
