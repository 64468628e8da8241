//! `cargo xtask check`: everything that a change has to pass, in the order of what fails fastest to say why.
//!
//! It works from a fresh clone on a machine with Rust, git and Python alone. To add a step, add a line to [`steps`].

use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use crate::tools::{self, SystemPackages};
use crate::workspace::Workspace;
use crate::{book, coverage, deny, packages, process, test_run, tidy, torture, training};

/// The text of `--help` about the steps; a test compares it with [`steps`].
const HELP: &str = "\
The steps run in this order until one fails; a table at the end shows what each took.
  format     cargo fmt
  tidy       the house rules (cargo xtask tidy)
  training   the tests of tools/train that need no packages
  tools      the packages and the small model that tests use, into target/venv, venv-apis and node
  deny       licences, sources, duplicate versions and advisories of dependencies (deny.toml);
             builds cargo-deny into target/tools once
  book       the documentation as web pages in target/book, with links that lead somewhere;
             builds mdBook into target/tools once
  clippy     all lints, as errors; of the programs, also with the feature `lite`
  packages   builds all tests; makes the wheel and the npm package with the binary that they use, and
             installs each into a clean environment, in target/packages
  tests      all tests, with nextest where it is installed
  torture    a round of each campaign that kills, as `cargo xtask torture` runs them, and the parsers
  doc tests  the examples in the documentation
  coverage   which lines the tests of language, core and engine reach: printed, never a failure;
             needs llvm-tools

Needs Rust, git and Python 3. `cargo xtask coverage` prints the coverage of all crates.";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Install no system packages; say what is missing instead.
    #[arg(long)]
    no_install: bool,
}

type Step<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

/// The result of a step, and how long it took.
type Outcome = (&'static str, &'static str, Duration);

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let system = if arguments.no_install { SystemPackages::LeaveAlone } else { SystemPackages::Install };
    let (done, failure) = run_steps(&steps(workspace, system));
    print_table(&done);
    match failure {
        Some((name, error)) => Err(error.context(anyhow!("{name} failed"))),
        None => Ok(()),
    }
}

fn steps(workspace: &Workspace, system: SystemPackages) -> Vec<Step<'_>> {
    vec![
        ("format", Box::new(|| cargo(workspace, &["fmt", "--all", "--check"]))),
        ("tidy", Box::new(|| tidy::run(workspace))),
        ("training", Box::new(|| training::run(workspace))),
        ("tools", Box::new(move || install(workspace, system))),
        ("deny", Box::new(|| deny::run(workspace))),
        ("book", Box::new(|| book::run(workspace))),
        ("clippy", Box::new(|| clippy(workspace))),
        ("packages", Box::new(|| packages::run(workspace, &packages::Arguments::default()))),
        ("tests", Box::new(|| test_run::run(workspace))),
        ("torture", Box::new(|| torture::run(workspace, &torture::Arguments::share()))),
        ("doc tests", Box::new(|| cargo(workspace, &["test", "--quiet", "--workspace", "--doc"]))),
        ("coverage", Box::new(|| coverage::print(workspace))),
    ]
}

/// Runs steps until one fails; those after it are not run.
fn run_steps(steps: &[Step<'_>]) -> (Vec<Outcome>, Option<(&'static str, Error)>) {
    let mut done: Vec<Outcome> = Vec::new();
    let mut failure = None;
    for (name, step) in steps {
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
    (done, failure)
}

fn print_table(done: &[Outcome]) {
    let print = |name: &str, word: &str, time: Duration| {
        println!("{name:<12}{word:<10}{:>8.1}", time.as_secs_f64());
    };
    println!("\n{:<12}{:<10}{:>8}", "step", "result", "seconds");
    for (name, word, time) in done {
        print(name, word, *time);
    }
    let word = if done.iter().all(|(_, word, _)| *word == "ok") { "ok" } else { "failed" };
    print("total", word, done.iter().map(|(_, _, time)| *time).sum());
}

fn install(workspace: &Workspace, system: SystemPackages) -> Result<()> {
    tools::install(system)?;
    let target = workspace.target()?;
    tools::make_venv(workspace.root(), &target)?;
    tools::make_api_venv(workspace.root(), &target)?;
    tools::make_node(workspace.root(), &target)?;
    tools::add_model(workspace.root(), &target)
}

/// The lints of everything, and those of the programs without the networks, which take about half a minute of a processor.
fn clippy(workspace: &Workspace) -> Result<()> {
    cargo(workspace, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    cargo(workspace, &["clippy", "--workspace", "--features", "strata/lite", "--", "-D", "warnings"])
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    process::run(workspace.cargo().args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_ends_the_check_and_the_table_shows_the_rest() {
        let steps: Vec<Step<'_>> = vec![
            ("one", Box::new(|| Ok(()))),
            ("two", Box::new(|| Err(anyhow!("broken")))),
            ("three", Box::new(|| Ok(()))),
        ];
        let (done, failure) = run_steps(&steps);
        let words: Vec<&str> = done.iter().map(|(_, word, _)| *word).collect();
        assert_eq!(words, ["ok", "failed", "not run"]);
        assert_eq!(failure.map(|(name, error)| format!("{name}: {error}")), Some("two: broken".to_owned()));
    }

    #[test]
    fn the_help_names_every_step_in_its_order() {
        let workspace = Workspace::locate().unwrap();
        let mut rest = HELP;
        for (name, _) in steps(&workspace, SystemPackages::LeaveAlone) {
            let at = rest
                .find(&format!("\n  {name}  "))
                .unwrap_or_else(|| panic!("{name} is missing or late in\n{HELP}"));
            rest = &rest[at + name.len()..];
        }
    }
}
