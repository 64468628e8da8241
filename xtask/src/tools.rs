//! What the checks need beside Rust, and how to get it.
//!
//! System packages are installed only by root and only where that was not forbidden; Python packages go into a virtual
//! environment of our own under `target`, pinned. To need another program, add it to [`TOOLS`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A program from the system's packages.
struct Tool {
    name: &'static str,
    why: &'static str,
    /// A command that succeeds where the tool is usable.
    probe: &'static [&'static str],
    /// Debian's packages for it.
    packages: &'static [&'static str],
}

const TOOLS: &[Tool] = &[Tool {
    name: "python3 with venv",
    why: "the tests run clients and fuzzers from the Python world",
    probe: &["python3", "-c", "import venv, ensurepip"],
    packages: &["python3", "python3-venv"],
}];

/// Whether system packages may be installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemPackages {
    Install,
    LeaveAlone,
}

/// Makes sure that every tool is there.
pub(crate) fn install(system: SystemPackages) -> Result<()> {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !is_usable(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages.iter().copied()).collect();
    let wanted: Vec<String> = missing.iter().map(|tool| format!("{} ({})", tool.name, tool.why)).collect();
    let may_install =
        system == SystemPackages::Install && is_root() && process::succeeds("apt-get", &["--version"]);
    if !may_install {
        bail!(
            "missing: {}; install it, on Debian with `sudo apt-get install {}`, and run this again",
            wanted.join(", "),
            packages.join(" ")
        );
    }
    println!("installing {}", packages.join(" "));
    process::run(Command::new("apt-get").args(["update", "-qq"]))?;
    process::run(
        Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(&packages),
    )?;
    match missing.iter().find(|tool| !is_usable(tool)) {
        Some(tool) => bail!("{} still does not work after its packages were installed", tool.name),
        None => Ok(()),
    }
}

fn is_usable(tool: &Tool) -> bool {
    tool.probe.split_first().is_some_and(|(program, arguments)| process::succeeds(program, arguments))
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Where the virtual environment is.
pub(crate) fn venv(target: &Path) -> PathBuf {
    target.join("venv")
}

/// Makes the virtual environment, or keeps one that was made from the same pins.
pub(crate) fn make_venv(root: &Path, target: &Path) -> Result<()> {
    let pins = root.join("xtask/requirements.txt");
    let wanted = fs::read_to_string(&pins).with_context(|| format!("reading {}", pins.display()))?;
    let venv = venv(target);
    // Written last: an installation that was interrupted has no stamp and is made anew.
    let stamp = venv.join("made-from.txt");
    let python = venv.join("bin/python");
    let still_runs = process::succeeds(&python.to_string_lossy(), &["-c", "import schemathesis"]);
    if still_runs && fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
        println!("{} is up to date", venv.display());
        return Ok(());
    }
    println!("making {}", venv.display());
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    process::run(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&pins),
    )?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))
}
