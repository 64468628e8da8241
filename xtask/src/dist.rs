//! `cargo xtask dist`: the files of a release, for the machine that runs it, with their checksums, in `target/dist`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::packages::{self, Compression, clear, copy_file};
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// The files beside the binary in its archive.
const BESIDE: &[&str] =
    &["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "packages/strata.service"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Package this program instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let target = workspace.target()?;
    tools::make_venv(workspace.root(), &target)?;
    tools::make_node(workspace.root(), &target)?;
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => packages::built_by(workspace, &["build", "--release", "--locked", "--package", "strata"])?,
    };
    let out = target.join("dist");
    clear(&out)?;
    packages::build(workspace, &binary, &out, Compression::Best)?;
    archive(workspace, &binary, &out)?;
    let sums = checksums(&out)?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    println!("{} has the files of the release and SHA256SUMS", out.display());
    Ok(())
}

/// The binary alone, for people who want neither Python nor Node.
fn archive(workspace: &Workspace, binary: &Path, out: &Path) -> Result<()> {
    let name = format!("strata-{}-{}", packages::version(workspace)?, host()?);
    let folder = out.join(&name);
    clear(&folder)?;
    copy_file(binary, &folder.join("strata"))?;
    for file in BESIDE {
        let from = workspace.root().join(file);
        copy_file(&from, &folder.join(from.file_name().unwrap_or_default()))?;
    }
    process::run(Command::new("tar").current_dir(out).args(["-czf", &format!("{name}.tar.gz"), &name]))?;
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))
}

/// The kind of machine, as Rust names it.
fn host() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

/// The lines that `sha256sum --check` reads.
fn checksums(out: &Path) -> Result<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let (program, arguments): (&str, &[&str]) = if process::succeeds("sha256sum", &["--version"]) {
        ("sha256sum", &[])
    } else {
        ("shasum", &["-a", "256"])
    };
    process::output(Command::new(program).current_dir(out).args(arguments).args(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_can_be_checked() {
        let out = std::env::temp_dir().join(format!("strata-dist-{}", std::process::id()));
        clear(&out).unwrap();
        fs::write(out.join("b"), "two").unwrap();
        fs::write(out.join("a"), "").unwrap();
        let sums = checksums(&out).unwrap();
        fs::remove_dir_all(&out).unwrap();
        let names: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(
            sums.starts_with("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 "),
            "{sums}"
        );
    }

    #[test]
    fn the_archive_takes_files_that_exist() {
        let workspace = Workspace::locate().unwrap();
        for file in BESIDE {
            assert!(workspace.root().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn an_archive_is_checked_unpacked_and_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let workspace = Workspace::locate().unwrap();
        let folder = std::env::temp_dir().join(format!("strata-archive-{}", std::process::id()));
        let (out, unpacked) = (folder.join("dist"), folder.join("unpacked"));
        clear(&out).unwrap();
        clear(&unpacked).unwrap();
        let binary = folder.join("program");
        fs::write(&binary, "#!/bin/sh\necho strata, unpacked\n").unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        archive(&workspace, &binary, &out).unwrap();
        fs::write(folder.join("SHA256SUMS"), checksums(&out).unwrap()).unwrap();
        let script = "cd dist && sha256sum --check --strict ../SHA256SUMS && tar -xzf ./*.tar.gz -C ../unpacked \
                      && cd ../unpacked/strata-* && test -f README.md && ./strata";
        let ran = process::output(Command::new("sh").args(["-c", script]).current_dir(&folder)).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(ran.contains(".tar.gz: OK") && ran.ends_with("strata, unpacked\n"), "{ran}");
    }
}
