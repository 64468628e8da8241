//! Where the workspace is, which files it has, and what `cargo metadata` says about its crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;

/// The checkout this binary was built from.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn locate() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("xtask is not inside a workspace")?.to_owned();
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds: honours `CARGO_TARGET_DIR` and configuration, as cargo itself does.
    pub(crate) fn target(&self) -> Result<PathBuf> {
        #[derive(Deserialize)]
        struct Target {
            target_directory: PathBuf,
        }
        let target: Target = self.read_metadata(&["--no-deps", "--offline"])?;
        Ok(target.target_directory)
    }

    /// `cargo`, to be run in the workspace's root.
    pub(crate) fn cargo(&self) -> Command {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        if std::env::var_os("CI").is_some() {
            // Nothing is compiled a second time there, and what incremental compilation keeps takes half of the disk.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// The files under version control, and those that would be on the next `git add`, sorted. Build folders of any name are
    /// left out: cargo marks each with a `CACHEDIR.TAG`.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut git = Command::new("git");
        git.current_dir(&self.root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listing = process::output(&mut git).context("listing the files needs git and a clone")?;
        let mut files: Vec<PathBuf> =
            listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
        leave_caches_out(&mut files);
        files.retain(|file| self.root.join(file).is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The dependency graph as it is built here. Reads what is on this machine; only a clone that was never built asks
    /// the network.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let version = process::output(Command::new("rustc").arg("-vV"))?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("`rustc -vV` names no host")?;
        let here = ["--filter-platform", host];
        self.read_metadata(&[&here[..], &["--offline"]].concat()).or_else(|_| self.read_metadata(&here))
    }

    fn read_metadata<T: serde::de::DeserializeOwned>(&self, arguments: &[&str]) -> Result<T> {
        let mut cargo = self.cargo();
        cargo.args(["metadata", "--format-version", "1"]).args(arguments);
        let json = process::output(&mut cargo)?;
        serde_json::from_str(&json).context("reading what `cargo metadata` printed")
    }
}

fn leave_caches_out(files: &mut Vec<PathBuf>) {
    let tags = files.iter().filter(|file| file.ends_with("CACHEDIR.TAG"));
    let caches: Vec<PathBuf> = tags.filter_map(|tag| Some(tag.parent()?.to_owned())).collect();
    files.retain(|file| !caches.iter().any(|cache| file.starts_with(cache)));
}

/// The part of `cargo metadata` that the rules need.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) resolve: Resolve,
}

/// One crate.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
}

/// Which crate uses which.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// One crate's edges.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Edge>,
}

/// One edge of the graph.
#[derive(Deserialize)]
pub(crate) struct Edge {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<EdgeKind>,
}

/// The purpose of an edge: `None` is an ordinary dependency, else `dev` or `build`.
#[derive(Deserialize)]
pub(crate) struct EdgeKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    pub(crate) fn name(&self, id: &str) -> Result<&str> {
        match self.packages.iter().find(|package| package.id == id) {
            Some(package) => Ok(&package.name),
            None => bail!("`cargo metadata` names no package `{id}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_folder_of_any_name_is_left_out() {
        let names =
            ["a.rs", "target-2/CACHEDIR.TAG", "target-2/debug/build/x.rs", "target-2.md", "fuzz/b.rs"];
        let mut files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        leave_caches_out(&mut files);
        assert_eq!(files, ["a.rs", "target-2.md", "fuzz/b.rs"].map(PathBuf::from));
    }
}
