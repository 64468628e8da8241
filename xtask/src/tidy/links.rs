//! Relative links of the documentation lead to a file or folder of the repository.

use super::Problem;
use super::tree::File;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files.iter().filter(|file| file.path.ends_with(".md")).flat_map(|page| check_page(page, files)).collect()
}

fn check_page(page: &File, files: &[File]) -> Vec<Problem> {
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
                let what = format!("the link `{link}` leads nowhere");
                problems.push(Problem::at(&page.path, index + 1, what, "correct the link or remove it"));
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
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let count = |link: &str| {
            let page = file("README.md", &format!("[x]({link})"));
            check(&[page, file("CHANGELOG.md", ""), file("crates/a/b.rs", "x")]).len()
        };
        for good in
            ["CHANGELOG.md", "./CHANGELOG.md#top", "crates/a", "crates/a/", "https://example.org", "#here"]
        {
            assert_eq!(count(good), 0, "{good}");
        }
        for bad in ["nothing.md", "crates/b", "../x"] {
            assert_eq!(count(bad), 1, "{bad}");
        }
    }
}
