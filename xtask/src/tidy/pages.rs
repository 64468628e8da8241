//! What the documentation must have: an Unreleased section, licences, a way to every page, links that lead somewhere.

use super::{File, Problem};

/// Pages that a newcomer looks for.
const NEEDED: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    for path in NEEDED.iter().filter(|path| text(path).is_none()) {
        problems.push(Problem::new(*path, "is missing"));
    }
    if text("CHANGELOG.md")
        .is_some_and(|changes| !changes.lines().any(|line| line.trim() == "## [Unreleased]"))
    {
        problems.push(Problem::new("CHANGELOG.md", "has no `## [Unreleased]` section; add it at the top"));
    }
    let entrances = [text("README.md"), text("ARCHITECTURE.md")];
    for page in files.iter().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md")) {
        if !entrances.iter().flatten().any(|entrance| entrance.contains(&page.path)) {
            problems.push(Problem::new(
                &page.path,
                "is linked from neither README.md nor ARCHITECTURE.md; link it",
            ));
        }
    }
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        problems.extend(dead_links(page, files));
    }
    problems
}

/// Relative links that lead to no file or folder of the repository.
fn dead_links(page: &File, files: &[File]) -> Vec<Problem> {
    let folder: Vec<&str> = page.path.split('/').collect();
    let folder = &folder[..folder.len() - 1];
    let mut problems = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for (at, mark) in line.match_indices("](") {
            let rest = &line[at + mark.len()..];
            let link = &rest[..rest.find([')', '#', ' ']).unwrap_or(rest.len())];
            if link.is_empty() || link.contains(':') || link.starts_with('/') {
                continue;
            }
            let target = resolve(folder, link);
            let leads =
                files.iter().any(|file| file.path == target || file.path.starts_with(&format!("{target}/")));
            if !leads {
                problems.push(Problem::at_line(
                    &page.path,
                    index,
                    format!("the link `{link}` leads nowhere"),
                ));
            }
        }
    }
    problems
}

fn resolve(folder: &[&str], link: &str) -> String {
    let mut parts: Vec<&str> = folder.to_vec();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(extra: &[(&str, &str)]) -> Vec<String> {
        let mut files: Vec<File> = NEEDED
            .iter()
            .map(|path| File { path: (*path).to_owned(), text: "## [Unreleased]\n".to_owned() })
            .collect();
        for (path, text) in extra {
            files.retain(|file| file.path != *path);
            files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
        }
        check(&files).into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
    }

    #[test]
    fn the_needed_pages_and_the_unreleased_section_must_be_there() {
        assert_eq!(problems(&[]), Vec::<String>::new());
        assert_eq!(check(&[]).len(), NEEDED.len());
        assert_eq!(problems(&[("CHANGELOG.md", "## [1.0.0]\n")]).len(), 1);
    }

    #[test]
    fn every_page_can_be_reached() {
        assert_eq!(problems(&[("docs/a.md", "text")]).len(), 1);
        assert_eq!(
            problems(&[("docs/a.md", "text"), ("README.md", "see [a](docs/a.md)")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn links_lead_somewhere() {
        let link =
            |link: &str| problems(&[("README.md", &format!("[x]({link})")), ("crates/a/b.rs", "x")]).len();
        for good in
            ["CHANGELOG.md", "./CHANGELOG.md#top", "crates/a", "crates/a/", "https://example.org", "#here"]
        {
            assert_eq!(link(good), 0, "{good}");
        }
        for bad in ["nothing.md", "crates/b", "../x"] {
            assert_eq!(link(bad), 1, "{bad}");
        }
    }
}
