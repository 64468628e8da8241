//! `cargo xtask fuzz`: every parser on random and mutated inputs.
//!
//! With the nightly compiler, libFuzzer looks for inputs that reach new code (`fuzz/`); what it finds stays in `fuzz/corpus` and
//! `fuzz/artifacts`. Without it, or with `--plain`, the program `strata-fuzz` changes the examples of each target at random. The
//! targets are in the crate `strata-fuzz`, whose tests `cargo xtask check` runs.

use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo_tools::FUZZ;
use crate::process;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The targets to run [default: all]
    targets: Vec<String>,
    /// For how many minutes each target runs.
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// Change examples at random instead of looking for new code: needs no nightly compiler.
    #[arg(long)]
    plain: bool,
    /// List the targets and stop.
    #[arg(long)]
    list: bool,
}

impl Arguments {
    /// Every target, for a minute.
    pub(crate) fn every_target() -> Self {
        Self { targets: Vec::new(), minutes: 1, plain: false, list: false }
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let has_nightly = process::succeeds("cargo", &["+nightly", "--version"]);
    if arguments.list || arguments.plain || !has_nightly {
        if !has_nightly && !arguments.plain && !arguments.list {
            println!(
                "there is no nightly compiler (`rustup toolchain install nightly`); the examples are changed at random"
            );
        }
        return plain(workspace, arguments);
    }
    let tool = FUZZ.program(workspace)?;
    let mut failed = Vec::new();
    for target in targets(workspace, &arguments.targets)? {
        let mut fuzz = Command::new(&tool);
        if !fuzz_with(&mut fuzz, workspace, &target, arguments.minutes).status()?.success() {
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("these targets failed, see fuzz/artifacts: {}", failed.join(", "));
    }
    Ok(())
}

fn fuzz_with<'a>(
    fuzz: &'a mut Command,
    workspace: &Workspace,
    target: &str,
    minutes: u64,
) -> &'a mut Command {
    fuzz.current_dir(workspace.root()).env("RUSTUP_TOOLCHAIN", "nightly");
    // Rust's own checks find what goes wrong in safe code; without a sanitizer more inputs are tried.
    fuzz.args(["fuzz", "run", "--dev", "--sanitizer", "none", target, "--"]);
    fuzz.arg(format!("-max_total_time={}", minutes * 60)).args(["-max_len=4096", "-print_final_stats=1"])
}

/// The names of the targets that were asked for, or of all.
fn targets(workspace: &Workspace, asked: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in std::fs::read_dir(workspace.root().join("fuzz/fuzz_targets"))? {
        names.push(file?.file_name().to_string_lossy().trim_end_matches(".rs").to_owned());
    }
    names.sort();
    if let Some(unknown) = asked.iter().find(|name| !names.contains(name)) {
        bail!("target `{unknown}` is unknown; there are {}", names.join(", "));
    }
    names.retain(|name| asked.is_empty() || asked.contains(name));
    Ok(names)
}

/// Runs the program that changes examples at random.
fn plain(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let targets = targets(workspace, &arguments.targets)?;
    let mut fuzz = workspace.cargo();
    fuzz.args(["run", "--quiet", "--package", "strata-fuzz", "--"]);
    fuzz.args(["--seconds", &(arguments.minutes * 60).to_string()]).args(targets);
    if arguments.list {
        fuzz.arg("--list");
    }
    process::run(&mut fuzz)
}
