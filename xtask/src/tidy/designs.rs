//! No text refers to a design by a number that only its authors can resolve: the five designs have names.

use super::Problem;
use super::tree::{File, written_lines};

const FIX: &str = "use the design's name from docs/designs.md: layered-prompt design, sliding-window design, \
                   context-store design, evolution plan, memory-proxy design";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let in_names = files.iter().filter_map(|file| {
        let found = reference(&file.path)?;
        Some(Problem::new(&file.path, format!("has `{found}` in its name"), FIX))
    });
    let lines = written_lines(files, "xtask/src/tidy/designs.rs");
    let in_lines = lines.filter_map(|(file, number, line)| {
        Some(Problem::at(&file.path, number, format!("says `{}`", reference(line)?), FIX))
    });
    in_lines.chain(in_names).collect()
}

/// The first «document» with a number in a line, however it is written.
fn reference(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let starts = lower.match_indices("doc").map(|(at, _)| at);
    starts.filter(|at| !lower[..*at].ends_with(|before: char| before.is_alphanumeric())).find_map(|at| {
        let rest = &lower[at..];
        let (word, separators): (&str, &[char]) = match rest.starts_with("document") {
            true => ("document", &[' ', '_', '-', '\u{a0}', '#']),
            false => ("doc", &[' ', '\u{a0}', '#']),
        };
        let after = rest[word.len()..].trim_start_matches('s');
        let number = after.trim_start_matches(separators);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        (number.len() < after.len() && digits > 0).then(|| &line[at..line.len() - number.len() + digits])
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::testing::file;
    use super::*;

    #[test]
    fn a_numbered_design_is_found_in_every_spelling() {
        for (text, found) in [
            ("as document 3 says", "document 3"),
            ("Document 2: 50.", "Document 2"),
            ("documents 1 and 4", "documents 1"),
            ("(doc 3)", "doc 3"),
            ("see Docs 0", "Docs 0"),
            ("fn document_2s_usage() {}", "document_2"),
            ("the document, or document 12", "document 12"),
        ] {
            assert_eq!(reference(text), Some(found), "{text}");
        }
    }

    #[test]
    fn other_documents_are_left_alone() {
        for text in [
            "the document",
            "docs[3]",
            "document.1",
            "a docker 3",
            "documented 3 times",
            "doc1",
            "pandoc 3",
            "«doc»",
        ] {
            assert_eq!(reference(text), None, "{text}");
        }
    }

    #[test]
    fn text_and_names_of_all_files_are_read() {
        let problems = check(&[
            file("docs/a.md", "fine\nDocument 1 asks\n"),
            file("a/document_2.json", "{}"),
            file("Cargo.lock", "document 1"),
        ]);
        let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
        assert_eq!(places, ["docs/a.md:2", "a/document_2.json"]);
    }
}
