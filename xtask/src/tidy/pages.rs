//! The documentation must have the pages that a newcomer looks for, an Unreleased section and a book of all pages.

use super::Problem;
use super::tree::File;

/// Pages that a newcomer looks for.
const NEEDED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/SUMMARY.md",
];

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
    let contents = text("docs/SUMMARY.md").unwrap_or_default();
    for page in files.iter().filter(|file| is_page(&file.path)) {
        let name = page.path.trim_start_matches("docs/");
        if !contents.contains(&format!("]({name})")) {
            problems.push(Problem::new(&page.path, "is no page of the book", "add it to docs/SUMMARY.md"));
        }
        // The book has nothing beside its pages.
        if page.text.contains("](../") {
            problems.push(Problem::new(
                &page.path,
                "links to a file outside docs",
                "name the file instead, in backticks",
            ));
        }
    }
    problems
}

fn is_page(path: &str) -> bool {
    path.starts_with("docs/") && path.ends_with(".md") && path != "docs/SUMMARY.md"
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
    fn every_page_is_in_the_book_and_stays_inside() {
        assert_eq!(problems(&[("docs/a.md", "text")]).len(), 1);
        let contents = ("docs/SUMMARY.md", "- [a](a.md)");
        assert_eq!(problems(&[("docs/a.md", "text"), contents]), []);
        assert_eq!(problems(&[("docs/a.md", "see [b](../b.md)"), contents]).len(), 1);
    }
}
