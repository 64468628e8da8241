//! What a person installs: the wheel and the npm package that `cargo xtask check` builds, in clean environments.
//!
//! [`clients`] checks the typed clients against the server, [`pages`] runs the README and the pages of the book as a newcomer
//! would, and [`deployment`] reads the files for containers and systemd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says what it could not test")]

mod clients;
mod deployment;
mod pages;
mod rust;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

/// The folder with the packages, and with environments that they are installed in.
fn packages() -> PathBuf {
    let folder = match std::env::var_os("STRATA_TEST_PACKAGES") {
        Some(path) => path.into(),
        None => root().join("target/packages"),
    };
    assert!(
        folder.join("venv/bin/strata").is_file(),
        "no packages at {}; `cargo xtask check` makes them, or name a folder in `STRATA_TEST_PACKAGES`",
        folder.display()
    );
    folder.canonicalize().unwrap()
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A program of the virtual environment with tools.
fn tool(name: &str) -> PathBuf {
    let program = support::venv().join("bin").join(name);
    assert!(program.is_file(), "no {}; `cargo xtask check` installs it", program.display());
    program
}

/// The one file of a folder whose name ends so.
fn only_file(folder: &Path, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = files.filter(|path| path.to_string_lossy().ends_with(ending));
    let file = found.next().unwrap_or_else(|| panic!("no {ending} in {}", folder.display()));
    assert_eq!(found.next(), None, "one {ending} in {}", folder.display());
    file
}
