//! The packages that carry the binary: a wheel for Python and a tarball for npm.
//!
//! Both take a binary that exists already. Maturin has no option for that: it runs `cargo rustc` and takes the program that
//! cargo names. So it gets a stand-in for cargo that names ours. Otherwise the check would compile everything once more, because
//! the tests are built with other features, and a release would compile the same program twice. The sources are in `packages/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::tools::{node_folder, packages_folder, venv};
use crate::workspace::Workspace;
use crate::{process, test_run};

/// How small the packages are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// For tests: they install the packages once.
    Fast,
    Best,
}

#[derive(Default, clap::Args)]
pub(crate) struct Arguments {
    /// Package this program instead of the one that the tests use.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The check's step: builds the tests, and packages with the binary that they use.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let built = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => built_by(workspace, test_run::BUILD)?,
    };
    let out = packages_folder(&workspace.target()?);
    clear(&out)?;
    let binary = stripped(&built, &out)?;
    build(workspace, &binary, &out, Compression::Fast)?;
    fs::remove_file(&binary)?;
    install(&out)
}

/// Installs each package into an environment that has nothing else; the tests run what they find there.
fn install(out: &Path) -> Result<()> {
    let venv = out.join("venv");
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    process::run(
        Command::new(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"])
            .arg(package(out, ".whl")?),
    )?;
    let node = out.join("node");
    fs::create_dir(&node)?;
    fs::write(node.join("package.json"), "{ \"private\": true }\n")?;
    process::run(
        Command::new("npm")
            .current_dir(&node)
            .args(["install", "--offline", "--no-audit", "--no-fund", "--silent"])
            .arg(package(out, ".tgz")?),
    )
}

fn package(out: &Path, ending: &str) -> Result<PathBuf> {
    let files = fs::read_dir(out)?.collect::<Result<Vec<_>, _>>()?;
    let found = files.iter().map(fs::DirEntry::path).find(|path| path.to_string_lossy().ends_with(ending));
    found.with_context(|| format!("{} has no package {ending}", out.display()))
}

/// Makes both packages.
pub(crate) fn build(
    workspace: &Workspace,
    binary: &Path,
    out: &Path,
    compression: Compression,
) -> Result<()> {
    build_wheel(workspace, binary, out, compression)?;
    build_npm(workspace, binary, out)
}

/// The binary that a build of cargo's makes, as cargo itself says.
pub(crate) fn built_by(workspace: &Workspace, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(arguments).args(["--message-format", "json-render-diagnostics"]);
    let messages = process::stdout(&mut cargo)?;
    let executable = messages.lines().filter_map(executable_in).next_back();
    executable.with_context(|| format!("`cargo {}` built no program `strata`", arguments.join(" ")))
}

fn executable_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_ours = message["target"]["name"] == "strata"
        && message["target"]["kind"] == json!(["bin"])
        && message["profile"]["test"] == false;
    if is_ours { message["executable"].as_str().map(PathBuf::from) } else { None }
}

/// A copy without symbols, or the whole binary where the machine has no `strip`.
fn stripped(binary: &Path, out: &Path) -> Result<PathBuf> {
    let copy = out.join("strata");
    let done = process::run(Command::new("strip").arg("-o").arg(&copy).arg(binary));
    if done.is_err() {
        copy_file(binary, &copy)?;
    }
    Ok(copy)
}

fn build_wheel(workspace: &Workspace, binary: &Path, out: &Path, compression: Compression) -> Result<()> {
    let shim = out.join("cargo-stand-in");
    fs::create_dir_all(&shim).with_context(|| format!("making {}", shim.display()))?;
    write_stand_in(workspace, binary, &shim)?;
    let mut path = vec![shim.clone()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut maturin = Command::new(venv(&workspace.target()?).join("bin/maturin"));
    maturin.current_dir(workspace.root().join("packages/python"));
    maturin
        .env("PATH", std::env::join_paths(path)?)
        .args(["build", "--quiet", "--offline", "--out"])
        .arg(out);
    if compression == Compression::Fast {
        maturin.args(["--compression-level", "1"]);
    }
    process::run(&mut maturin)?;
    fs::remove_dir_all(&shim).with_context(|| format!("removing {}", shim.display()))
}

/// A program `cargo` that says of every build that it made our binary, and leaves everything else to the real one.
fn write_stand_in(workspace: &Workspace, binary: &Path, shim: &Path) -> Result<()> {
    let message = shim.join("message.json");
    let text = format!(
        "{}\n{}\n",
        artifact(workspace, binary)?,
        json!({"reason": "build-finished", "success": true})
    );
    fs::write(&message, text).with_context(|| format!("writing {}", message.display()))?;
    let real = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\nrustc|build) exec cat '{}' ;;\n*) PATH=${{PATH#*:}} exec '{}' \"$@\" ;;\nesac\n",
        message.display(),
        Path::new(&real).display()
    );
    let program = shim.join("cargo");
    fs::write(&program, script).with_context(|| format!("writing {}", program.display()))?;
    process::run(Command::new("chmod").arg("+x").arg(&program))
}

/// The message of cargo about a program that it has built.
fn artifact(workspace: &Workspace, binary: &Path) -> Result<Value> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&process::output(&mut cargo)?)?;
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    let Some(package) = packages.iter().find(|package| package["name"] == "strata") else {
        bail!("`cargo metadata` names no package `strata`");
    };
    let targets = package["targets"].as_array().unwrap_or(&empty);
    let target = targets.iter().find(|target| target["kind"] == json!(["bin"]));
    Ok(json!({
        "reason": "compiler-artifact",
        "package_id": package["id"],
        "manifest_path": package["manifest_path"],
        "target": target.context("the package `strata` has no program")?,
        "profile": {"opt_level": "3", "debuginfo": 0, "debug_assertions": false, "overflow_checks": false, "test": false},
        "features": [],
        "filenames": [binary],
        "executable": binary,
        "fresh": true,
    }))
}

fn build_npm(workspace: &Workspace, binary: &Path, out: &Path) -> Result<()> {
    let source = workspace.root().join("packages/npm");
    let stage = out.join("npm");
    clear(&stage)?;
    let tsc = node_folder(&workspace.target()?).join("node_modules/.bin/tsc");
    process::run(Command::new(tsc).arg("-p").arg(&source).arg("--outDir").arg(stage.join("dist")))?;
    fs::create_dir(stage.join("bin"))?;
    copy_file(binary, &stage.join("bin/strata"))?;
    copy_file(&source.join("README.md"), &stage.join("README.md"))?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy_file(&workspace.root().join(licence), &stage.join(licence))?;
    }
    let manifest = fs::read_to_string(source.join("package.json"))?;
    let manifest = for_this_machine(&manifest, &version(workspace)?)?;
    fs::write(stage.join("package.json"), manifest)?;
    process::run(
        Command::new("npm").current_dir(&stage).args(["pack", "--silent", "--pack-destination"]).arg(out),
    )?;
    fs::remove_dir_all(&stage).with_context(|| format!("removing {}", stage.display()))
}

/// The manifest of a package with a binary for one kind of machine.
fn for_this_machine(manifest: &str, version: &str) -> Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest).context("reading packages/npm/package.json")?;
    // Node's names.
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    manifest["version"] = json!(version);
    manifest["os"] = json!([system]);
    manifest["cpu"] = json!([processor]);
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}

/// The version of all crates.
pub(crate) fn version(workspace: &Workspace) -> Result<String> {
    let manifest = fs::read_to_string(workspace.root().join("Cargo.toml"))?;
    let manifest: toml::Table = manifest.parse().context("reading Cargo.toml")?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    version.map(str::to_owned).context("Cargo.toml names no version of the workspace")
}

/// An empty folder.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_messages_name_the_program_and_not_its_tests() {
        let message = |kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact",
                "target": {"name": "strata", "kind": [kind]},
                "profile": {"test": test},
                "executable": "target/debug/strata",
            })
            .to_string()
        };
        assert_eq!(executable_in(&message("bin", false)), Some(PathBuf::from("target/debug/strata")));
        assert_eq!(executable_in(&message("bin", true)), None);
        assert_eq!(executable_in(&message("lib", false)), None);
        assert_eq!(executable_in("warning: no JSON"), None);
    }

    #[test]
    fn the_manifest_gets_version_and_machine() {
        let manifest = for_this_machine(r#"{"name": "a", "version": "0.0.0"}"#, "1.2.3").unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["version"], "1.2.3");
        assert_eq!(manifest["os"].as_array().map(Vec::len), Some(1));
        assert_eq!(manifest["cpu"].as_array().map(Vec::len), Some(1));
    }
}
