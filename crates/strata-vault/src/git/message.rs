//! The message of a commit: what a person wants to know about it.

use std::collections::HashSet;
use std::path::Path;

use crate::front::Document;
use crate::layout::{self, FileKind, Folder};

/// The most statements that a message lists, and the longest beginning of each.
const LISTED: usize = 10;
const SHOWN_CHARS: usize = 90;

/// The counts of one kind of change.
#[derive(Default)]
struct Counts {
    memories: usize,
    turns: usize,
    summaries: usize,
}

impl Counts {
    fn add(&mut self, folder: Folder) {
        match folder {
            Folder::Facts | Folder::Other => self.memories += 1,
            Folder::Turns(_) => self.turns += 1,
            Folder::Summaries(_) => self.summaries += 1,
        }
    }

    fn words(&self) -> Vec<String> {
        let counted = [
            (self.memories, "memory", "memories"),
            (self.turns, "turn", "turns"),
            (self.summaries, "summary", "summaries"),
        ];
        let words = counted.into_iter().filter(|(count, ..)| *count > 0);
        words.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect()
    }
}

/// The first line of a message and the rest, for the paths that `git diff --name-status -z` names. Files that are `refused` are
/// no memories. Only the files whose statements are listed are read: a change may touch very many.
pub(super) fn describe(root: &Path, staged: &str, refused: &HashSet<String>) -> (String, String) {
    let (mut added, mut changed, mut removed) = (Counts::default(), Counts::default(), Counts::default());
    let (mut lines, mut unusable, mut more) = (Vec::new(), 0, 0);
    let mut parts = staged.split('\0');
    while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
        let Some(place) = layout::place(path).filter(|place| place.file == FileKind::Entry) else { continue };
        // A file among the deleted ones is the end of an item; the file that it was before is removed.
        let counts = match (status, place.deleted) {
            ("A", true) => &mut removed,
            (_, true) | ("D", false) => continue,
            ("A", false) => &mut added,
            _ => &mut changed,
        };
        if refused.contains(path) {
            unusable += 1;
            continue;
        }
        let is_listed = matches!(place.folder, Folder::Facts | Folder::Other);
        if is_listed && lines.len() < LISTED {
            let Some(statement) = statement(root, path) else {
                unusable += 1;
                continue;
            };
            if !statement.is_empty() {
                lines.push(format!("{} {statement}", sign(status, place.deleted)));
            }
        } else if is_listed {
            more += 1;
        }
        counts.add(place.folder);
    }
    let mut words = Vec::new();
    for (verb, counts) in [("Add", &added), ("change", &changed), ("take out", &removed)] {
        let counted = counts.words();
        if !counted.is_empty() {
            words.push(format!("{verb} {}", counted.join(", ")));
        }
    }
    if unusable > 0 {
        words.push(format!(
            "keep {unusable} {} that cannot be used",
            if unusable == 1 { "file" } else { "files" }
        ));
    }
    let subject = words.join("; ");
    let mut subject = if subject.is_empty() { "Update the vault's files".to_owned() } else { subject };
    if let Some(first) = subject.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    (subject, lines.join("\n"))
}

fn sign(status: &str, is_deleted: bool) -> char {
    match (status, is_deleted) {
        (_, true) => '-',
        ("A", _) => '+',
        _ => '*',
    }
}

/// The beginning of an item's text; `None` if the file cannot be read.
fn statement(root: &Path, path: &str) -> Option<String> {
    let path = root.join(path);
    // A link may lead out of the vault.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let body = Document::parse(&bytes).ok()?.body();
    let line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let shown: String = line.chars().take(SHOWN_CHARS).collect();
    Some(if shown.len() < line.len() { format!("{shown}…") } else { shown })
}
