//! Running the `git` program: in the vault's own repository and nowhere else, and without the programs that the settings of that
//! repository name. A vault may come from another person, and its `.git/config` with it.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::PoisonError;
use std::time::Duration;

use strata_core::{Error, Result};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{Git, repository};

/// How long a command of git may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings for every command: no hooks, no signatures, no cleaning up, no changed line ends, no other repositories.
const SETTINGS: [&str; 11] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.autocrlf=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "merge.default=text",
];

/// Variables that name another repository than that of the vault.
const VARIABLES: [&str; 6] = [
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_EXTERNAL_DIFF",
];

/// The settings that name programs for files with certain attributes, as git compares them.
const DRIVERS: &str = r"^((filter\..*\.(clean|smudge|process|required))|(merge\..*\.(driver|recursive)))$";

/// The variables that hold the values of settings that are switched off, and the values.
const NO_PROGRAM: (&str, &str) = ("STRATA_NO_PROGRAM", "");
const REFUSES: (&str, &str) = ("STRATA_REFUSES", "false");

impl Git {
    /// Finds out which programs the settings name, so that the next commands run none of them. Drivers of differences need no
    /// search: `--no-ext-diff` and `--no-textconv` switch them off.
    pub(super) async fn switch_off_drivers(&self) -> Result<()> {
        let listing = ["config", "--null", "--name-only", "--get-regexp", DRIVERS];
        let output = self.output(&listing, &[], None).await?;
        // Git ends with 1 if there is no such setting.
        if !output.status.success() && output.status.code() != Some(1) {
            return Err(refusal(&listing, &output));
        }
        let names = String::from_utf8_lossy(&output.stdout);
        let names = names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        *self.drivers.lock().unwrap_or_else(PoisonError::into_inner) = names;
        Ok(())
    }

    /// The settings that name programs.
    fn drivers(&self) -> Vec<String> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails if the attributes of the repository have one of these files (names that end in NUL) pass through a program. Without
    /// it, git would keep what the person wants encrypted or kept elsewhere.
    pub(super) async fn expect_unfiltered(&self, paths: &str) -> Result<()> {
        let drivers = self.drivers();
        let is_driver =
            |name: &str| drivers.iter().any(|driver| driver.starts_with(&format!("filter.{name}.")));
        if paths.is_empty() || !drivers.iter().any(|driver| driver.starts_with("filter.")) {
            return Ok(());
        }
        let told = self.said(&["check-attr", "-z", "--stdin", "filter"], paths.as_bytes(), None).await?;
        let told: Vec<&str> = told.split('\0').collect();
        let filtered = told.chunks_exact(3).find(|told| is_driver(told[2]));
        filtered.map_or(Ok(()), |told| {
            Err(Error::conflict(format!(
                "`{}` has the attribute `filter={}`, and Strata runs no programs of a vault's repository; take the attribute out \
                 of `.gitattributes`, or commit with git and set `enable_git_versioning` to false",
                told[0], told[2]
            )))
        })
    }

    pub(super) async fn text(&self, arguments: &[&str]) -> Result<String> {
        self.said(arguments, &[], None).await
    }

    pub(super) async fn said(
        &self,
        arguments: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<String> {
        let output = self.run_with(arguments, input, index).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.run_with(arguments, &[], None).await
    }

    /// Runs git in the vault. Git reads `input`, and works with another `index` than the repository's own.
    pub(super) async fn run_with(
        &self,
        arguments: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<Output> {
        let output = self.output(arguments, input, index).await?;
        if output.status.success() { Ok(output) } else { Err(refusal(arguments, &output)) }
    }

    /// What git prints, and how it ends.
    pub(super) async fn output(
        &self,
        arguments: &[&str],
        input: &[u8],
        index: Option<&Path>,
    ) -> Result<Output> {
        let mut command = self.command();
        command.args(arguments);
        command.envs(index.map(|index| ("GIT_INDEX_FILE", index)));
        command
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, fed(command, input)).await;
        let output = output.map_err(|_| Error::unavailable("git takes too long"))?;
        output.map_err(|error| {
            Error::unavailable("git cannot be run; install it, or set `enable_git_versioning` to false")
                .with_source(error)
        })
    }

    /// Git in the vault's own repository, without hooks, prompts, pagers, networks or programs of the repository's settings.
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for name in self.drivers() {
            let is_program = !name.ends_with(".required") && !name.starts_with("merge.");
            let (variable, _) = if is_program { NO_PROGRAM } else { REFUSES };
            command.arg(format!("--config-env={name}={variable}"));
        }
        command.arg("--no-pager").envs([NO_PROGRAM, REFUSES]);
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        let folder = repository::folder(&self.root);
        // The settings of the repository may name other places.
        command.env("GIT_DIR", &folder).env("GIT_COMMON_DIR", &folder).env("GIT_WORK_TREE", &self.root);
        command
            .current_dir(&self.root)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_EDITOR", "true")
            .env("LC_ALL", "C");
        command
    }
}

pub(super) fn refusal(arguments: &[&str], output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").to_owned();
    let command = arguments.iter().find(|word| !word.starts_with('-')).unwrap_or(&"");
    Error::unavailable(format!("git {command}: {said}"))
}

/// Runs a command that reads `input`.
async fn fed(mut command: Command, input: &[u8]) -> std::io::Result<Output> {
    let mut child = command.spawn()?;
    let pipe = child.stdin.take();
    let feeding = async {
        if let Some(mut pipe) = pipe {
            // A command that ends early says why in its output.
            let _ = pipe.write_all(input).await;
        }
    };
    let ((), output) = tokio::join!(feeding, child.wait_with_output());
    output
}
