//! What no file of the repository may say. The list is here and nowhere else.

use super::{File, Problem};

/// Words, and why they may not stand in the repository.
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
    ("<<<<<<< ", "a merge was not finished"),
    (">>>>>>> ", "a merge was not finished"),
];

/// Beginnings of absolute paths that exist on one machine only.
const PATHS: &[&str] = &["/home/", "/root/", "/Users/", "/work/", "C:\\Users\\"];

/// Paths of people who do not exist, for examples and tests.
const INVENTED: &[&str] = &["/home/ada/", "/home/me/"];

/// Files whose words are not ours: this list, and what tools write.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs", "Cargo.lock"];

/// The longest line that is looked at: longer ones are data.
const MOST_CHARS: usize = 2_000;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let files = files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str()));
    files
        .flat_map(|file| {
            file.text.lines().enumerate().flat_map(|(index, line)| check_line(file, index, line))
        })
        .collect()
}

fn check_line(file: &File, index: usize, line: &str) -> Vec<Problem> {
    if line.len() > MOST_CHARS {
        return Vec::new();
    }
    let words = WORDS
        .iter()
        .filter(|(word, _)| line.contains(word))
        .map(|(word, why)| Problem::at_line(&file.path, index, format!("`{word}`: {why}")));
    let paths = PATHS.iter().filter(|path| names_path(line, path)).map(|path| {
        Problem::at_line(
            &file.path,
            index,
            format!("`{path}`: a path of one machine; make it relative or a parameter"),
        )
    });
    words.chain(paths).collect()
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
    use super::*;

    fn count(text: &str) -> usize {
        check(&[File { path: "docs/a.md".to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn forbidden_words_are_found_where_they_stand() {
        let problems = check(&[File { path: "a.rs".to_owned(), text: "fine\n// FIXME later\n".to_owned() }]);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].place, "a.rs:2");
        assert_eq!(count("todo!()"), 1);
        assert_eq!(count("a todo, or `Todo`, or \"todo\" is a memory"), 0);
        assert_eq!(count("see https://pypi.org/project/x"), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
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

    #[test]
    fn what_tools_write_is_left_alone() {
        let lock = File {
            path: "Cargo.lock".to_owned(),
            text: "https://github.com/rust-lang/crates.io/x".to_owned(),
        };
        assert_eq!(check(&[lock]), Vec::new());
    }
}
