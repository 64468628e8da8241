//! No file names an absolute path that exists on one machine only.

use super::Problem;
use super::tree::{File, written_lines};

/// Beginnings of such paths.
const PATHS: &[&str] = &["/home/", "/root/", "/Users/", "/work/", "C:\\Users\\"];

/// Paths of people who do not exist, for examples and tests.
const INVENTED: &[&str] = &["/home/ada/", "/home/me/"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let lines = written_lines(files, "xtask/src/tidy/machine_paths.rs");
    let problems = lines.flat_map(|(file, number, line)| {
        PATHS.iter().filter(move |path| names_path(line, path)).map(move |path| {
            Problem::at(&file.path, number, format!("names `{path}`"), "make it relative or a parameter")
        })
    });
    problems.collect()
}

/// Whether the path begins in this line: `a/home/b` is no such path, and neither is an address's.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        if INVENTED.iter().any(|invented| line[at..].starts_with(invented)) {
            return false;
        }
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| {
            !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '}' | '$' | '*'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found() {
        let count = |text: &str| check(&[file("docs/a.md", text)]).len();
        for text in ["cd /home/you/x", "`/root/.cargo`", "sqlite:/Users/a/b.db", "=/work/x", "/work/x"] {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in [
            "https://example.org/home/x",
            "$HOME/work/x",
            "/home/ada/x",
            "from home/work/ on",
            "../work/x",
            "a/home/b",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
