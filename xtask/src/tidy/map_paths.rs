//! Every path that ARCHITECTURE.md names exists: a map with paths that have moved sends its reader nowhere.
//!
//! A path is a text in backticks with a slash or the ending `.rs`. The map shortens paths (`recall/rank.rs`), so a path
//! exists where the path of a file has it as whole components. A `*` at the end stands for the rest of a name.

use super::Problem;
use super::tree::File;

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.path == MAP).flat_map(|map| check_map(map, files)).collect()
}

fn check_map(map: &File, files: &[File]) -> Vec<Problem> {
    let lines = map.text.lines().enumerate();
    let paths = lines.flat_map(|(index, line)| paths(line).map(move |path| (index + 1, path)));
    paths
        .filter(|(_, path)| !files.iter().any(|file| is_in(path, &file.path)))
        .map(|(line, path)| {
            Problem::at(MAP, line, format!("no file has the path `{path}`"), "write the path as it is now")
        })
        .collect()
}

/// The texts of a line that stand in backticks and look like paths. Paths of HTTP begin with a slash.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let is_path = text.contains('/') || text.ends_with(".rs");
        is_path && !text.starts_with('/') && text.chars().all(is_of_a_path)
    })
}

fn is_of_a_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '*')
}

/// Whether a file's path has the named one in it, from the beginning of a component to the end of one. A module may be
/// named without its `.rs`.
fn is_in(named: &str, path: &str) -> bool {
    let path = format!("/{path}");
    let start = format!("/{}", named.trim_end_matches(['/', '*']));
    path.match_indices(&start).any(|(at, _)| {
        let rest = &path[at + start.len()..];
        named.ends_with('*') || rest.is_empty() || rest == ".rs" || rest.starts_with('/')
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    fn count(text: &str) -> usize {
        let files =
            [file(MAP, text), file("crates/a/src/recall/rank.rs", ""), file("crates/a/tests/b.rs", "")];
        check(&files).len()
    }

    #[test]
    fn a_path_that_no_file_has_is_found() {
        for text in [
            "see `recall/order.rs`",
            "`rank` and `a/src/rank.rs`",
            "`recall/rank.r`",
            "`call/rank.rs`",
            "`gone.rs`",
            "`recall/x*`",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(check(&[file("docs/a.md", "`gone.rs`")]), []);
    }

    #[test]
    fn a_path_may_be_short_a_folder_or_a_beginning() {
        for text in [
            "`recall/rank.rs`, `rank.rs` and `crates/a/src/recall/`",
            "`recall/rank`",
            "`a/src/rec*`",
            "`/v1/chat` and `a / b`",
            "`Store::apply` and gone.rs",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
