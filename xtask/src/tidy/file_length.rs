//! A source file is short enough to be read in one go.

use super::Problem;
use super::tree::{Crate, File, Tree, is_test_path, without_tests};

/// The most lines of a file without its tests; STYLE asks for a split at about 500.
const MOST_LINES: usize = 500;

/// Above this many lines a file of tests is counted in the summary. It is no limit: a list of cases may be long.
const LONG_TESTS: usize = 600;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let sources = files.iter().filter(|file| file.path.ends_with(".rs") && !is_test_path(&file.path));
    sources
        .map(|file| (file, without_tests(&file.text).lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| {
            Problem::new(
                &file.path,
                format!("has {lines} lines without its tests"),
                format!("split each at a boundary of its subject; the limit is {MOST_LINES} lines"),
            )
        })
        .collect()
}

/// The size of all production code, and how many files of tests are long.
pub(super) fn summary(tree: &Tree) -> String {
    let production = tree.crates.iter().flat_map(Crate::production);
    let lines: usize = production.map(|source| without_tests(&source.text).lines().count()).sum();
    let tests = tree.files.iter().filter(|file| file.path.ends_with(".rs") && is_test_path(&file.path));
    let long = tests.filter(|file| file.text.lines().count() > LONG_TESTS).count();
    format!(
        "production code: {lines} lines; test files over {LONG_TESTS} lines: {long} (printed, not a rule)"
    )
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::{file, tree};
    use super::*;

    fn lines(count: usize) -> String {
        "x();\n".repeat(count)
    }

    fn items(count: usize) -> String {
        "use x;\n".repeat(count)
    }

    fn count(path: &str, text: &str) -> usize {
        check(&[file(path, text)]).len()
    }

    #[test]
    fn length_counts_code_and_leaves_tests_out() {
        let tests = "\n#[cfg(test)]\nmod tests {\n".to_owned() + &lines(900) + "}\n";
        assert_eq!(count("crates/a/src/b.rs", &lines(MOST_LINES)), 0);
        assert_eq!(count("crates/a/src/b.rs", &lines(MOST_LINES + 1)), 1);
        assert_eq!(count("crates/a/src/b.rs", &(lines(MOST_LINES - 1) + &tests)), 0);
        assert_eq!(count("crates/a/tests/b.rs", &lines(5000)), 0);
        assert_eq!(count("crates/a/src/b/tests.rs", &lines(5000)), 0);
        assert_eq!(count("docs/b.md", &lines(5000)), 0);
    }

    #[test]
    fn only_a_module_of_tests_ends_the_code() {
        let text = lines(300) + "\n#[cfg(test)]\nuse a;\n" + &lines(300);
        assert_eq!(count("crates/a/src/b.rs", &text), 1);
    }

    #[test]
    fn the_summary_counts_production_code_and_long_files_of_tests() {
        let tree = tree(
            &["a"],
            &[
                ("crates/a/tests/b.rs", &items(LONG_TESTS + 1)),
                ("crates/a/src/b/tests.rs", &items(LONG_TESTS)),
                ("crates/a/src/b.rs", &(items(LONG_TESTS + 1) + "\n#[cfg(test)]\nmod tests {\n}\n")),
            ],
        );
        assert!(
            summary(&tree).starts_with("production code: 602 lines; test files over 600 lines: 1 "),
            "{}",
            summary(&tree)
        );
    }
}
