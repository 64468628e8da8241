//! The message of a commit: what a person wants to know about it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::objects::{Changed, Items};
use crate::front::Document;
use crate::layout::{self, FileKind, Folder, Place};

/// The most statements that a message lists, and the longest beginning of each.
const LISTED: usize = 10;
const SHOWN_CHARS: usize = 90;

/// The kinds of change, in the order of a message, with their verbs and signs.
const VERBS: [(Verb, &str, char); 6] = [
    (Verb::Add, "add", '+'),
    (Verb::BringBack, "bring back", '+'),
    (Verb::Change, "change", '*'),
    (Verb::Move, "move", '*'),
    (Verb::TakeOut, "take out", '-'),
    (Verb::Destroy, "destroy", '-'),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    BringBack,
    Change,
    Move,
    TakeOut,
    /// Nothing of the item is left but in the history.
    Destroy,
}

/// The counts of one kind of change.
#[derive(Default, Clone, Copy)]
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

/// The new and the removed files of a commit, for finding those that were moved. Each is named by its item, or by its content if
/// it holds none.
#[derive(Default)]
struct Files<'a> {
    made: HashSet<&'a str>,
    /// Whether each lay among the deleted ones.
    lost: HashMap<&'a str, bool>,
}

impl<'a> Files<'a> {
    fn of(changed: &'a [Changed], items: &'a Items) -> Self {
        let mut files = Self::default();
        for changed in changed {
            let Some(place) = layout::place(&changed.path) else { continue };
            match (&changed.before, &changed.after) {
                (None, Some(made)) => drop(files.made.insert(items.name(made))),
                (Some(lost), None) => drop(files.lost.insert(items.name(lost), place.deleted)),
                _ => {}
            }
        }
        files
    }

    /// What became of the item of a file; `None` if another file of the commit tells it.
    fn verb(&self, changed: &Changed, place: &Place, items: &Items) -> Option<Verb> {
        match (&changed.before, &changed.after, place.deleted) {
            (None, Some(made), is_deleted) => match (self.lost.get(items.name(made)), is_deleted) {
                (Some(true), true) => None,
                (_, true) => Some(Verb::TakeOut),
                (Some(true), false) => Some(Verb::BringBack),
                (Some(false), false) => Some(Verb::Move),
                (None, false) => Some(Verb::Add),
            },
            (Some(_), Some(_), is_deleted) => (!is_deleted).then_some(Verb::Change),
            (Some(lost), None, _) => (!self.made.contains(items.name(lost))).then_some(Verb::Destroy),
            (None, None, _) => None,
        }
    }
}

/// The versions whose items have to be known to tell which files were moved.
pub(super) fn to_identify(changed: &[Changed]) -> HashSet<String> {
    let made = changed.iter().filter(|changed| changed.before.is_none());
    let lost = changed.iter().filter(|changed| changed.after.is_none());
    if made.clone().next().is_none() || lost.clone().next().is_none() {
        return HashSet::new();
    }
    made.chain(lost).filter_map(|changed| changed.after.clone().or_else(|| changed.before.clone())).collect()
}

/// A message on its way.
#[derive(Default)]
struct Message {
    counts: [Counts; VERBS.len()],
    lines: Vec<String>,
    /// Statements that are not listed, and files that are no items.
    more: usize,
    unusable: usize,
}

/// The first line of a message and the rest. Files that are `refused` are no memories. Only the files whose statements are listed
/// are read: a change may touch very many.
pub(super) fn describe(
    root: &Path,
    changed: &[Changed],
    items: &Items,
    refused: &HashSet<String>,
) -> (String, String) {
    let files = Files::of(changed, items);
    let mut message = Message::default();
    for changed in changed {
        let Some(place) = layout::place(&changed.path).filter(|place| place.file == FileKind::Entry) else {
            continue;
        };
        let Some(verb) = files.verb(changed, &place, items) else { continue };
        match refused.contains(&changed.path) {
            true => message.unusable += 1,
            false => message.add(root, &changed.path, verb, place.folder),
        }
    }
    (message.subject(), message.body())
}

impl Message {
    fn add(&mut self, root: &Path, path: &str, verb: Verb, folder: Folder) {
        let is_listed = matches!(folder, Folder::Facts | Folder::Other) && verb != Verb::Destroy;
        if is_listed && self.lines.len() == LISTED {
            self.more += 1;
        } else if is_listed {
            let Some(statement) = statement(root, path) else { return self.unusable += 1 };
            let sign = sign(verb);
            self.lines.extend((!statement.is_empty()).then(|| format!("{sign} {statement}")));
        }
        for ((kind, ..), counts) in VERBS.iter().zip(&mut self.counts) {
            if *kind == verb {
                counts.add(folder);
            }
        }
    }

    fn subject(&self) -> String {
        let counted = VERBS.iter().zip(self.counts.iter().map(Counts::words));
        let counted = counted.filter(|(_, words)| !words.is_empty());
        let mut words: Vec<String> =
            counted.map(|((_, verb, _), words)| format!("{verb} {}", words.join(", "))).collect();
        let files = if self.unusable == 1 { "file" } else { "files" };
        words.extend(
            (self.unusable > 0).then(|| format!("keep {} {files} that cannot be used", self.unusable)),
        );
        let mut subject = words.join("; ");
        match subject.get_mut(..1) {
            Some(first) => first.make_ascii_uppercase(),
            None => "Update the vault's files".clone_into(&mut subject),
        }
        subject
    }

    fn body(mut self) -> String {
        self.lines.extend((self.more > 0).then(|| format!("and {} more", self.more)));
        self.lines.join("\n")
    }
}

fn sign(verb: Verb) -> char {
    VERBS.iter().find(|(kind, ..)| *kind == verb).map_or('*', |(_, _, sign)| *sign)
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
