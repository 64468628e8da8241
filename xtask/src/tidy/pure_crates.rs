//! Names that a crate's own code may not use, beside those that its dependencies already keep out.

use super::Problem;
use super::tree::{File, is_comment, is_test_path, without_tests};

/// Crates, what their code may not name, and what it does instead.
const NOT_IN_CRATE: &[(&[&str], &[&str], &str)] = &[
    (
        &["crates/strata-language/src/", "crates/strata-core/src/", "crates/strata-engine/src/"],
        &["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime"],
        "these crates have no files, network, environment, threads or clock: use a port",
    ),
    (
        &["crates/strata-server/src/"],
        &["std::env", "std::process"],
        "only the binary reads its environment: take a setting",
    ),
    (
        &["crates/strata-store/src/"],
        &["std::env", "std::net"],
        "a store reads no environment: take an option",
    ),
];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (folders, words, fix) in NOT_IN_CRATE {
        let is_meant = folders.iter().any(|folder| file.path.starts_with(folder));
        if !is_meant || is_test_path(&file.path) {
            continue;
        }
        for (index, line) in
            without_tests(&file.text).lines().enumerate().filter(|(_, line)| !is_comment(line))
        {
            for word in words.iter().filter(|word| names(line, word)) {
                problems.push(Problem::at(&file.path, index + 1, format!("names `{word}`"), *fix));
            }
        }
    }
    problems
}

/// Whether a line names an item, as a path or in the braces of a `use`.
fn names(line: &str, word: &str) -> bool {
    let in_braces = |(module, item): (&str, &str)| {
        let inside = line.split_once(&format!("{module}::{{")).map(|(_, inside)| inside);
        inside.is_some_and(|inside| {
            inside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|name| name == item)
        })
    };
    line.contains(word) || word.rsplit_once("::").is_some_and(in_braces)
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn the_inner_crates_touch_nothing_outside() {
        let count = |path: &str, text: &str| check(&[file(path, text)]).len();
        for package in ["strata-language", "strata-core", "strata-engine"] {
            assert_eq!(count(&format!("crates/{package}/src/a.rs"), "use std::fs;\n"), 1, "{package}");
        }
        assert_eq!(count("crates/strata-core/src/a.rs", "use std::{collections::HashMap, fs};\n"), 1);
        assert_eq!(count("crates/strata-core/src/a.rs", "use std::{fmt, fsx};\n"), 0);
        assert_eq!(count("crates/strata-core/src/a/tests.rs", "use std::fs;\n"), 0);
        assert_eq!(count("crates/strata/src/a.rs", "use std::fs;\n"), 0);
        let in_tests = "//! No `std::fs`.\n\n#[cfg(test)]\nmod t {\nuse std::fs;\n}\n";
        assert_eq!(count("crates/strata-core/src/a.rs", in_tests), 0);
    }
}
