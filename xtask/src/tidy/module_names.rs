//! A crate, folder or module has a name that says what is inside.

use super::Problem;
use super::tree::File;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "manager", "misc"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let by_path = file.path.trim_end_matches(".rs").split('/');
    let inline = file.text.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix('{').map(str::trim)
    });
    by_path
        .chain(inline)
        .filter(|name| EMPTY_NAMES.contains(name))
        .map(|name| {
            Problem::new(&file.path, format!("`{name}` says nothing as a name"), "name what is in it")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn empty_names_are_refused_as_file_folder_and_inline_module() {
        let count = |path: &str, text: &str| check(&[file(path, text)]).len();
        assert_eq!(count("crates/a/src/context_manager.rs", ""), 0);
        for path in ["crates/a/src/utils.rs", "crates/common/src/lib.rs", "a/helpers/b.rs", "a/manager.rs"] {
            assert_eq!(count(path, ""), 1, "{path}");
        }
        assert_eq!(count("a/b.rs", "pub(crate) mod helpers {\n}\n"), 1);
    }
}
