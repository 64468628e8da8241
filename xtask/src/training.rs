//! Runs the tests of `tools/train` that need Python alone: those of the formats and of the questions made from them. The
//! others need the networks' packages, and their page says how to run them.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::Workspace;

/// The tests without packages.
const TESTS: [&str; 2] = ["tests.test_formats", "tests.test_questions"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root().join("tools/train");
    process::run(
        Command::new("python3")
            .args(["-m", "unittest", "--quiet"])
            .args(TESTS)
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_are_named_exist() {
        let workspace = Workspace::locate().unwrap();
        for test in TESTS {
            let file = format!("tools/train/{}.py", test.replace('.', "/"));
            assert!(workspace.root().join(&file).is_file(), "{file}");
        }
    }
}
