//! `cargo xtask bench`: builds the release binary and the measuring program once, and lets the latter measure.
//!
//! The measurements are in the crate `strata-bench`, which is not shipped.

use std::path::PathBuf;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which groups to measure; all where none is named. `--list` names them. `reading` prints the figures of reading.
    groups: Vec<String>,
    /// Small sizes, to see that everything runs; targets are not judged.
    #[arg(long)]
    quick: bool,
    /// The folder of Strata's encoder; without it (or STRATA_BENCH_ENCODER) the group `encoder` is skipped.
    #[arg(long, value_name = "DIR")]
    encoder: Option<PathBuf>,
    /// Name the groups and stop.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    process::run(workspace.cargo().args([
        "build",
        "--release",
        "--package",
        "strata",
        "--package",
        "strata-bench",
    ]))?;
    let release = workspace.target()?.join("release");
    let (reading, groups): (Vec<&String>, Vec<&String>) =
        arguments.groups.iter().partition(|group| *group == "reading");
    if !reading.is_empty() {
        let mut eval = std::process::Command::new(release.join("strata"));
        process::run(eval.current_dir(workspace.root()).args(["eval", "evals/reading", "--reading"]))?;
        if groups.is_empty() {
            return Ok(());
        }
    }
    let mut bench = std::process::Command::new(release.join("strata-bench"));
    bench.current_dir(workspace.root());
    bench.arg("--binary").arg(release.join("strata"));
    bench.arg("--out").arg(workspace.target()?.join("bench"));
    if let Some(encoder) = &arguments.encoder {
        // The measuring program runs in the workspace's root.
        bench.arg("--encoder").arg(std::path::absolute(encoder)?);
    }
    if arguments.quick {
        bench.arg("--quick");
    }
    if arguments.list {
        bench.arg("--list");
    }
    process::run(bench.args(groups))
}
