//! How tests are run: with nextest if it is installed, with the packages and the model that they need.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tools::{self, TestModel};
use crate::workspace::Workspace;

/// The configuration of nextest.
pub(crate) const NEXTEST_CONFIG: &str = "xtask/nextest.toml";

/// The build of [`run`], without running anything: nextest builds with the same command.
pub(crate) const BUILD: &[&str] = &["test", "--no-run", "--workspace"];

/// Runs all tests except those of the documentation. Nextest gives each test its own process.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    if has_nextest() {
        cargo.args(["nextest", "run", "--config-file", NEXTEST_CONFIG]);
    } else {
        cargo.args(["test", "--all-targets"]);
    }
    process::run(with_venv(workspace, cargo.args(["--workspace", "--no-fail-fast"]))?)
}

pub(crate) fn has_nextest() -> bool {
    process::succeeds("cargo", &["nextest", "--version"])
}

/// Tells the tests where the packages are, and whether there is a model.
pub(crate) fn with_venv<'a>(workspace: &Workspace, command: &'a mut Command) -> Result<&'a mut Command> {
    let target = workspace.target()?;
    if tools::test_model(workspace.root(), &target)? == TestModel::Missing {
        command.env("STRATA_TEST_MODEL", "missing");
    }
    let command = command.env("STRATA_TEST_VENV", tools::venv(&target));
    let command = command.env("STRATA_TEST_API_VENV", tools::api_venv(&target));
    let command = command.env("STRATA_TEST_PACKAGES", tools::packages_folder(&target));
    Ok(command.env("STRATA_TEST_NODE", tools::node_folder(&target)))
}
