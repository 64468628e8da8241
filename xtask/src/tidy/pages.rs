//! What the documentation must have: the pages that a newcomer looks for, an Unreleased section, a way to every page.

use super::Problem;
use super::tree::File;

/// Pages that a newcomer looks for.
const NEEDED: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    for path in NEEDED.iter().filter(|path| text(path).is_none()) {
        problems.push(Problem::new(*path, "is missing", "write it"));
    }
    if text("CHANGELOG.md")
        .is_some_and(|changes| !changes.lines().any(|line| line.trim() == "## [Unreleased]"))
    {
        problems.push(Problem::new(
            "CHANGELOG.md",
            "has no section `## [Unreleased]`",
            "add the section at the top",
        ));
    }
    let entrances = [text("README.md"), text("ARCHITECTURE.md")];
    for page in files.iter().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md")) {
        if !entrances.iter().flatten().any(|entrance| entrance.contains(&page.path)) {
            problems.push(Problem::new(
                &page.path,
                "is linked from neither README.md nor ARCHITECTURE.md",
                "link it",
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    fn problems(extra: &[(&str, &str)]) -> Vec<Problem> {
        let mut files: Vec<File> = NEEDED.iter().map(|path| file(path, "## [Unreleased]\n")).collect();
        for (path, text) in extra {
            files.retain(|file| file.path != *path);
            files.push(file(path, text));
        }
        check(&files)
    }

    #[test]
    fn the_needed_pages_and_the_unreleased_section_must_be_there() {
        assert_eq!(problems(&[]), []);
        assert_eq!(check(&[]).len(), NEEDED.len());
        assert_eq!(problems(&[("CHANGELOG.md", "## [1.0.0]\n")]).len(), 1);
    }

    #[test]
    fn every_page_can_be_reached() {
        assert_eq!(problems(&[("docs/a.md", "text")]).len(), 1);
        assert_eq!(problems(&[("docs/a.md", "text"), ("README.md", "see [a](docs/a.md)")]), []);
    }
}
