//! What every Rust file must look like: its length, its opening, its name, and what its tests leave alone.

use super::{File, Problem};

/// Above this many lines without tests a file is too long. STYLE asks for a split at about 500; the rest is grace, so
/// that nobody splits a file badly at a bad moment.
const MOST_LINES: usize = 600;

/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "manager", "misc"];

/// What a test may not do, and what it does instead.
const NOT_IN_TESTS: &[(&str, &str)] = &[
    ("#[ignore", "no test is ignored: repair it or remove it"),
    ("thread::sleep", "no test sleeps: wait for what it waits for"),
    ("tokio::time::sleep", "no test sleeps: wait for what it waits for"),
];

/// What a crate's own code may not name, beside what its dependencies already keep out.
const NOT_IN_CRATE: &[(&str, &[&str], &str)] = &[
    (
        "crates/strata-core/src/",
        &["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime"],
        "the core has no files, network, environment, threads or clock: use a port",
    ),
    (
        "crates/strata-server/src/",
        &["std::env", "std::process"],
        "only the binary reads its environment: take a setting",
    ),
    ("crates/strata-store/src/", &["std::env", "std::net"], "a store reads no environment: take an option"),
];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        problems.extend(check_length(file, LONG_FILES));
        problems.extend(check_opening(file));
        problems.extend(check_name(file));
        problems.extend(check_tests(file));
        problems.extend(check_crate(file));
    }
    for (path, _) in LONG_FILES {
        if !files.iter().any(|file| file.path == *path) {
            problems
                .push(Problem::new(*path, "is on the list of long files and does not exist; take it off"));
        }
    }
    problems
}

fn check_length(file: &File, long_files: &[(&str, &str)]) -> Option<Problem> {
    if is_test_file(file) {
        return None;
    }
    let lines = code(file).lines().count();
    let is_listed = long_files.iter().any(|(path, _)| *path == file.path);
    match (lines > MOST_LINES, is_listed) {
        (true, false) => {
            let what = format!(
                "has {lines} lines without its tests; split it (the aim is 500, the most {MOST_LINES})"
            );
            Some(Problem::new(&file.path, what))
        }
        (false, true) => {
            Some(Problem::new(&file.path, "is on the list of long files and is not long; take it off"))
        }
        _ => None,
    }
}

fn check_opening(file: &File) -> Option<Problem> {
    // A file of unit tests beside its module says all with its name.
    if file.path.ends_with("/tests.rs") {
        return None;
    }
    let opening = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let says = opening.strip_prefix("//!").is_some_and(|rest| !rest.trim().is_empty());
    (!says).then(|| Problem::at_line(&file.path, 0, "opens without `//!`; say what the module is for"))
}

fn check_name(file: &File) -> Vec<Problem> {
    let by_path = file.path.trim_end_matches(".rs").split('/');
    let inline = file.text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix('{').map(str::trim)
    });
    by_path
        .chain(inline)
        .filter(|name| EMPTY_NAMES.contains(name))
        .map(|name| {
            Problem::new(&file.path, format!("is called `{name}`, which says nothing; name what is in it"))
        })
        .collect()
}

fn check_tests(file: &File) -> Vec<Problem> {
    // This file must name what it forbids.
    if file.path == "xtask/src/tidy/source.rs" {
        return Vec::new();
    }
    let first = if is_test_file(file) { 0 } else { code(file).lines().count() };
    let lines = file.text.lines().enumerate().skip(first).filter(|(_, line)| !is_comment(line));
    lines
        .flat_map(|(index, line)| NOT_IN_TESTS.iter().map(move |(word, why)| (index, line, word, why)))
        .filter(|(_, line, word, _)| line.contains(*word))
        .map(|(index, _, word, why)| Problem::at_line(&file.path, index, format!("`{word}`: {why}")))
        .collect()
}

fn check_crate(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (folder, words, why) in NOT_IN_CRATE {
        if !file.path.starts_with(folder) || is_test_file(file) {
            continue;
        }
        for (index, line) in code(file).lines().enumerate().filter(|(_, line)| !is_comment(line)) {
            for word in words.iter().filter(|word| line.contains(**word)) {
                problems.push(Problem::at_line(&file.path, index, format!("`{word}`: {why}")));
            }
        }
    }
    problems
}

/// The file up to its unit tests, which stand at the end.
fn code(file: &File) -> &str {
    match file
        .text
        .match_indices("\n#[cfg(test)]\n")
        .find(|(at, mark)| opens_module(&file.text[at + mark.len()..]))
    {
        Some((at, _)) => &file.text[..at + 1],
        None => &file.text,
    }
}

fn opens_module(text: &str) -> bool {
    let line = text.lines().find(|line| !line.starts_with("#[")).unwrap_or_default();
    line.starts_with("mod ") && line.ends_with('{')
}

fn is_test_file(file: &File) -> bool {
    file.path.contains("/tests/") || file.path.ends_with("/tests.rs") || file.path.ends_with("_tests.rs")
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn count(path: &str, text: &str) -> usize {
        check(&[file(path, text)]).len()
    }

    #[test]
    fn length_counts_code_and_leaves_tests_out() {
        let lines = |count: usize| "//! A module.\n".to_owned() + &"x();\n".repeat(count - 1);
        let tests = "\n#[cfg(test)]\nmod tests {\n".to_owned() + &"y();\n".repeat(900) + "}\n";
        assert_eq!(count("crates/a/src/b.rs", &lines(MOST_LINES)), 0);
        assert_eq!(count("crates/a/src/b.rs", &lines(MOST_LINES + 1)), 1);
        assert_eq!(count("crates/a/src/b.rs", &(lines(MOST_LINES - 1) + &tests)), 0);
        assert_eq!(count("crates/a/tests/b.rs", &lines(5000)), 0);
        assert_eq!(count("crates/a/src/b.rs", &(lines(300) + "\n#[cfg(test)]\nuse a;\n" + &lines(300))), 1);
    }

    #[test]
    fn a_listed_file_may_be_long_and_must_be() {
        let list = [("a.rs", "because")];
        assert_eq!(check_length(&file("a.rs", &"x\n".repeat(700)), &list), None);
        assert!(check_length(&file("a.rs", "x\n"), &list).is_some());
    }

    #[test]
    fn every_module_says_what_it_is_for() {
        assert_eq!(count("a/b.rs", "\n//! Says it.\nfn x() {}\n"), 0);
        for text in ["fn x() {}\n", "// no\n", "//!\nfn x() {}\n", "", "#![allow(x)]\n//! Late.\n"] {
            assert_eq!(count("a/b.rs", text), 1, "{text:?}");
        }
    }

    #[test]
    fn empty_names_are_refused_as_file_folder_and_inline_module() {
        assert_eq!(count("crates/a/src/context_manager.rs", "//! A module.\n"), 0);
        for path in ["crates/a/src/utils.rs", "crates/common/src/lib.rs", "a/helpers/b.rs", "a/manager.rs"] {
            assert_eq!(count(path, "//! A module.\n"), 1, "{path}");
        }
        assert_eq!(count("a/b.rs", "//! A module.\npub(crate) mod helpers {\n}\n"), 1);
    }

    #[test]
    fn tests_neither_sleep_nor_are_ignored() {
        let sleeping = "//! A module.\nfn x() { std::thread::sleep(y); }\n";
        assert_eq!(count("crates/a/src/b.rs", sleeping), 0);
        assert_eq!(count("crates/a/tests/b.rs", sleeping), 1);
        assert_eq!(
            count("a/b.rs", "//! A module.\n\n#[cfg(test)]\nmod tests {\n    #[ignore]\n    fn x() {}\n}\n"),
            1
        );
        assert_eq!(
            count("a/b.rs", "//! A module.\n\n#[cfg(test)]\nmod tests {\n    // thread::sleep is bad\n}\n"),
            0
        );
    }

    #[test]
    fn the_core_touches_nothing_outside() {
        assert_eq!(count("crates/strata-core/src/a.rs", "//! A module.\nuse std::fs;\n"), 1);
        assert_eq!(count("crates/strata/src/a.rs", "//! A module.\nuse std::fs;\n"), 0);
        assert_eq!(
            count(
                "crates/strata-core/src/a.rs",
                "//! No `std::fs`.\n\n#[cfg(test)]\nmod t {\nuse std::fs;\n}\n"
            ),
            0
        );
    }
}
