//! `cargo xtask coverage`: which lines the tests reach. The figures are printed and not judged.
//!
//! It builds everything once more, instrumented, and runs all tests in that build. The check prints only the crates whose
//! tests need nothing but themselves.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo_tools::LLVM_COV;
use crate::workspace::Workspace;
use crate::{process, test_run};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run the tests of these crates alone; all crates where none is named.
    #[arg(long = "package", short, value_name = "CRATE")]
    packages: Vec<String>,
    /// Write a page for each file to target/llvm-cov/html instead of printing a table.
    #[arg(long)]
    html: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    find_llvm_tools()?;
    let mut coverage = Command::new(LLVM_COV.program(workspace)?);
    coverage.current_dir(workspace.root()).arg("llvm-cov");
    if test_run::has_nextest() {
        coverage.args(["nextest", "--config-file", test_run::NEXTEST_CONFIG]);
    }
    coverage.arg(if arguments.html { "--html" } else { "--summary-only" });
    // Files of tests would count as covered code.
    coverage.args(["--no-fail-fast", "--ignore-filename-regex", "(/tests/|tests\\.rs$)"]);
    match arguments.packages.as_slice() {
        [] => coverage.arg("--workspace"),
        packages => coverage.args(packages.iter().flat_map(|name| ["--package", name])),
    };
    process::run(test_run::with_venv(workspace, &mut coverage)?)
}

/// The crates whose coverage the check prints: their tests start no process.
const CHECKED: [&str; 3] = ["strata-language", "strata-core", "strata-engine"];

/// Prints the coverage of some crates, or why it cannot. That is never a failure.
pub(crate) fn print(workspace: &Workspace) -> Result<()> {
    let packages = CHECKED.map(str::to_owned).to_vec();
    if let Err(error) = run(workspace, &Arguments { packages, html: false }) {
        println!("coverage is not printed: {error:#}");
    }
    Ok(())
}

/// LLVM's own programs, of the version that rustc is built with: a part of the toolchain that has to be asked for, unless
/// the environment names other ones.
fn find_llvm_tools() -> Result<()> {
    let is_named = |variable: &str| std::env::var_os(variable).is_some();
    if is_named("LLVM_COV") && is_named("LLVM_PROFDATA") {
        return Ok(());
    }
    let libraries = process::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let folder = PathBuf::from(libraries.trim());
    let folder = folder.parent().context("`rustc --print target-libdir` names no folder")?.join("bin");
    let missing: Vec<&str> =
        ["llvm-cov", "llvm-profdata"].into_iter().filter(|name| !folder.join(name).is_file()).collect();
    if !missing.is_empty() {
        bail!(
            "coverage needs {}, which this toolchain does not have; run `rustup component add llvm-tools`, or name \
             programs that fit `rustc -vV`'s LLVM version in LLVM_COV and LLVM_PROFDATA",
            missing.join(" and ")
        );
    }
    Ok(())
}
