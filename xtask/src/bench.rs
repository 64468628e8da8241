//! `cargo xtask bench`: builds the release binary and the measuring program once, and lets the latter measure.
//!
//! The measurements are in the crate `strata-bench`, which is not shipped.

use std::path::PathBuf;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which groups to measure; all where none is named. `--list` names them. `reading` prints what is read right, too.
    groups: Vec<String>,
    /// Small sizes, to see that everything runs; targets are not judged.
    #[arg(long)]
    quick: bool,
    /// Measure a session of 50,000 turns too, in the group `reading`.
    #[arg(long)]
    long: bool,
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
    if arguments.groups.iter().any(|group| group == "reading") {
        let mut eval = std::process::Command::new(release.join("strata"));
        process::run(eval.current_dir(workspace.root()).args(["eval", "evals/reading", "--reading"]))?;
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
    if arguments.long {
        bench.arg("--long");
    }
    process::run(bench.args(&arguments.groups))
}
