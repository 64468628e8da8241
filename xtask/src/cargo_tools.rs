//! Programs of the default registry that the checks need, each pinned and built once into `target/tools`.
//!
//! They are built from source, because no package registry has current binaries of them: with little optimisation, for the
//! build takes longer than all their runs together. None takes more than about two minutes on two cores.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// A program of the default registry.
pub(crate) struct CargoTool {
    name: &'static str,
    version: &'static str,
    /// The arguments of `cargo install`.
    flags: &'static [&'static str],
    opt_level: &'static str,
}

/// Judges licences, sources, advisories and duplicate versions of dependencies.
pub(crate) const DENY: CargoTool =
    CargoTool { name: "cargo-deny", version: "0.20.2", flags: &[], opt_level: "1" };

/// Measures which lines the tests reach.
pub(crate) const LLVM_COV: CargoTool =
    CargoTool { name: "cargo-llvm-cov", version: "0.9.1", flags: &[], opt_level: "1" };

/// Makes web pages of the documentation: it runs for a second, so it is not optimised. Its server, search and watcher would bring
/// another hundred crates.
pub(crate) const MDBOOK: CargoTool =
    CargoTool { name: "mdbook", version: "0.5.4", flags: &["--no-default-features"], opt_level: "0" };

/// Runs the parsers under libFuzzer.
pub(crate) const FUZZ: CargoTool =
    CargoTool { name: "cargo-fuzz", version: "0.13.2", flags: &[], opt_level: "1" };

impl CargoTool {
    /// The program of the pinned version: where the user has it already, else from `target/tools`.
    pub(crate) fn program(&self, workspace: &Workspace) -> Result<PathBuf> {
        let folder = workspace.target()?.join("tools");
        let own = folder.join("bin").join(self.name);
        if let Some(program) = [PathBuf::from(self.name), own.clone()].into_iter().find(|it| self.is(it)) {
            return Ok(program);
        }
        println!("building {} {} into {}", self.name, self.version, folder.display());
        process::run(
            workspace
                .cargo()
                .args(["install", "--quiet", "--locked", "--debug", "--force"])
                .args([self.name, "--version", self.version])
                .args(self.flags)
                .arg("--root")
                .arg(&folder)
                .env("CARGO_PROFILE_DEV_DEBUG", "0")
                .env("CARGO_PROFILE_DEV_OPT_LEVEL", self.opt_level),
        )?;
        Ok(own)
    }

    fn is(&self, program: &Path) -> bool {
        // Cargo's subcommands are called with their own name first.
        let subcommand = self.name.strip_prefix("cargo-");
        process::output(Command::new(program).args(subcommand).arg("--version")).is_ok_and(|printed| {
            printed.split_whitespace().any(|word| word.trim_start_matches('v') == self.version)
        })
    }
}
