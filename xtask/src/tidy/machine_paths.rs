//! No file names an absolute path that exists on one machine only.

use super::Problem;
use super::tree::File;

/// Beginnings of such paths.
const PATHS: &[&str] = &["/home/", "/root/", "/Users/", "/work/", "C:\\Users\\"];

/// Paths of people who do not exist, for examples and tests.
const INVENTED: &[&str] = &["/home/ada/", "/home/me/"];

/// Files whose paths are not ours: this list, and what tools write.
const EXEMPT: &[&str] = &["xtask/src/tidy/machine_paths.rs", "Cargo.lock"];

/// The longest line that is looked at: longer ones are data.
const MOST_CHARS: usize = 2_000;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let files = files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str()));
    files.flat_map(check_file).collect()
}

fn check_file(file: &File) -> impl Iterator<Item = Problem> {
    let lines = file.text.lines().enumerate().filter(|(_, line)| line.len() <= MOST_CHARS);
    lines.flat_map(move |(index, line)| {
        PATHS.iter().filter(move |path| names_path(line, path)).map(move |path| {
            Problem::at(&file.path, index + 1, format!("names `{path}`"), "make it relative or a parameter")
        })
    })
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
