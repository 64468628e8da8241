//! Words that no file of the repository may contain. The list is here and nowhere else.

use super::Problem;
use super::tree::{File, written_lines};

/// Words, and what to do instead.
const WORDS: &[(&str, &str)] = &[
    ("todo!", "unfinished code does not land; finish it or leave it out"),
    ("FIXME", "known defects go to the issue list"),
    ("XXX", "known defects go to the issue list"),
    ("crates.io/", "link to the project, not to a registry"),
    ("pypi.org", "name the package, not the registry"),
    ("pythonhosted.org", "name the package, not the registry"),
    ("npmjs.org", "name the package, not the registry"),
    ("npmjs.com", "name the package, not the registry"),
    ("deb.debian.org", "name the package, not the registry"),
    ("<<<<<<< ", "finish the merge"),
    (">>>>>>> ", "finish the merge"),
];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let lines = written_lines(files, "xtask/src/tidy/words.rs");
    let problems = lines.flat_map(|(file, number, line)| {
        let found = WORDS.iter().filter(move |(word, _)| line.contains(word));
        found.map(move |(word, fix)| Problem::at(&file.path, number, format!("says `{word}`"), *fix))
    });
    problems.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn forbidden_words_are_found_where_they_stand() {
        let count = |text: &str| check(&[file("docs/a.md", text)]).len();
        let problems = check(&[file("a.rs", "fine\n// FIXME later\n")]);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].place, "a.rs:2");
        assert_eq!(count("todo!()"), 1);
        assert_eq!(count("a todo, or `Todo`, or \"todo\" is a memory"), 0);
        assert_eq!(count("see https://pypi.org/project/x"), 1);
    }

    #[test]
    fn what_tools_write_is_left_alone() {
        assert_eq!(check(&[file("Cargo.lock", "https://github.com/rust-lang/crates.io/x")]), []);
    }
}
