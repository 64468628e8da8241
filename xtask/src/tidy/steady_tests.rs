//! No test is ignored and none sleeps.

use super::Problem;
use super::tree::{File, is_comment, is_test_path, without_tests};

/// The things that a test may not do, and the replacement of each.
const NOT_IN_TESTS: &[(&str, &str)] = &[
    ("#[ignore", "repair the ignored test or remove it"),
    ("thread::sleep", "let the test wait for the event itself"),
    ("tokio::time::sleep", "let the test wait for the event itself"),
];

/// This file has to write what it forbids.
const EXEMPT: &str = "xtask/src/tidy/steady_tests.rs";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs") && file.path != EXEMPT);
    rust.flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let first = if is_test_path(&file.path) { 0 } else { without_tests(&file.text).lines().count() };
    let lines = file.text.lines().enumerate().skip(first).filter(|(_, line)| !is_comment(line));
    lines
        .flat_map(|(index, line)| NOT_IN_TESTS.iter().map(move |(word, fix)| (index, line, word, fix)))
        .filter(|(_, line, word, _)| line.contains(*word))
        .map(|(index, _, word, fix)| Problem::at(&file.path, index + 1, format!("`{word}` in a test"), *fix))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn tests_neither_sleep_nor_are_ignored() {
        let count = |path: &str, text: &str| check(&[file(path, text)]).len();
        let sleeping = "fn x() { std::thread::sleep(y); }\n";
        assert_eq!(count("crates/a/src/b.rs", sleeping), 0);
        assert_eq!(count("crates/a/tests/b.rs", sleeping), 1);
        let inside = |line: &str| format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{\n    {line}\n}}\n");
        assert_eq!(count("a/b.rs", &inside("#[ignore]")), 1);
        assert_eq!(count("a/b.rs", &inside("// thread::sleep is bad")), 0);
    }
}
