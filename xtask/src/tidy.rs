//! `cargo xtask tidy`: the house rules that code can check. Pure Rust, no network, about a second.
//!
//! Each rule is a function from what it looks at to the problems it sees, so that its tests need no checkout. Where to
//! start: [`edges`] holds the crates' boundaries, [`source`] what a Rust file must look like, [`words`] what no file may
//! say, [`pages`] what the documentation must have.

mod edges;
mod pages;
mod source;
mod words;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A text file of the repository.
pub(crate) struct File {
    /// Its path from the root, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What is wrong, where, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) place: String,
    pub(crate) what: String,
}

impl Problem {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    pub(crate) fn at_line(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{path}:{}", index + 1), what)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = read_files(workspace)?;
    let metadata = workspace.metadata()?;
    let mut problems = edges::check(&metadata)?;
    problems.extend(source::check(&files));
    problems.extend(words::check(&files));
    problems.extend(pages::check(&files));
    for Problem { place, what } in &problems {
        println!("{place}: {what}");
    }
    match problems.len() {
        0 => {
            println!("{} files and {} crates are tidy", files.len(), metadata.members().count());
            Ok(())
        }
        count => bail!("{count} house rules are broken; CONTRIBUTING.md says why they exist"),
    }
}

/// Every file that is text; the others are data and have no rules.
fn read_files(workspace: &Workspace) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in workspace.files()? {
        let bytes =
            fs::read(workspace.root().join(&path)).with_context(|| format!("reading {}", path.display()))?;
        if bytes.contains(&0) {
            continue;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: slashed(&path), text });
        }
    }
    Ok(files)
}

fn slashed(path: &std::path::Path) -> String {
    path.components().collect::<PathBuf>().to_string_lossy().replace('\\', "/")
}
