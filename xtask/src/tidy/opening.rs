//! Every module opens with `//!` and says what it is for.

use super::Problem;
use super::tree::File;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.path.ends_with(".rs")).filter_map(check_file).collect()
}

fn check_file(file: &File) -> Option<Problem> {
    // The name of a file of unit tests beside its module says everything.
    if file.path.ends_with("/tests.rs") {
        return None;
    }
    let opening = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let says = opening.strip_prefix("//!").is_some_and(|rest| !rest.trim().is_empty());
    (!says).then(|| {
        Problem::at(&file.path, 1, "opens without `//!`", "say in the first line what the module is for")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn every_module_says_what_it_is_for() {
        let count = |path: &str, text: &str| check(&[file(path, text)]).len();
        assert_eq!(count("a/b.rs", "\n//! Says it.\nfn x() {}\n"), 0);
        assert_eq!(count("a/b/tests.rs", "fn x() {}\n"), 0);
        for text in ["fn x() {}\n", "// no\n", "//!\nfn x() {}\n", "", "#![allow(x)]\n//! Late.\n"] {
            assert_eq!(count("a/b.rs", text), 1, "{text:?}");
        }
    }
}
