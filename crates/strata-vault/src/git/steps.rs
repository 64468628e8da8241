//! The steps of a history: which commits belong together, and which of them an undo or a redo without a name takes back.

use std::collections::{HashMap, HashSet};

/// The sentences by which a commit says which one it takes back, as git does, and which ones of a person it completes.
pub(super) const REVERTS: &str = "This reverts commit ";
pub(super) const COMPLETES: &str = "This completes commit ";

/// How first lines say that a commit takes another one back, and the verb of the commit that takes it back in turn.
const QUOTING: [(&str, &str, &str); 4] = [
    ("Undo “", "”", "Redo"),
    ("Revert \"", "\"", "Redo"),
    ("Redo “", "”", "Undo"),
    ("Reapply \"", "\"", "Undo"),
];

/// A step through the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Undo,
    Redo,
}

/// A commit, with those that it takes back and those that it completes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Logged {
    id: String,
    reverts: Vec<String>,
    completes: Vec<String>,
}

/// Commits that are taken back together: one of Strata, or commits of a person with what Strata has made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// The commits, the newest one first.
    pub(super) ids: Vec<String>,
    /// The commits that these take back.
    pub(super) reverts: Vec<String>,
}

impl Logged {
    /// Reads one commit of a log: its id, and its message.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (id, message) = text.trim_start().split_once('\n')?;
        let (reverts, completes) = (named(message, REVERTS), named(message, COMPLETES));
        Some(Self { id: id.to_owned(), reverts, completes })
    }
}

/// The commits that lines of a message name. A statement that the message lists may hold the same words, but begins no line.
fn named(message: &str, sentence: &str) -> Vec<String> {
    let rests = message.lines().filter_map(|line| line.strip_prefix(sentence));
    let ids = rests.map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>());
    ids.filter(|id| id.len() >= 40).collect()
}

impl Unit {
    pub(super) fn of_one(id: String) -> Self {
        Self { ids: vec![id], reverts: Vec::new() }
    }

    pub(super) fn newest(&self) -> &str {
        self.ids.first().map_or("HEAD", String::as_str)
    }

    /// The first commit, whose message says what the others complete.
    pub(super) fn oldest(&self) -> &str {
        self.ids.last().map_or("HEAD", String::as_str)
    }

    fn is_plain(&self) -> bool {
        self.reverts.is_empty()
    }
}

/// The units of a log, which has the newest commit first.
pub(super) fn units(log: &[Logged]) -> Vec<Unit> {
    let known: HashMap<&str, &Logged> = log.iter().map(|commit| (commit.id.as_str(), commit)).collect();
    let mut completed: HashSet<&str> = HashSet::new();
    let mut units = Vec::new();
    for commit in log {
        if completed.contains(commit.id.as_str()) {
            continue;
        }
        let mut unit = Unit { ids: vec![commit.id.clone()], reverts: commit.reverts.clone() };
        for part in commit.completes.iter().filter_map(|id| known.get(id.as_str())) {
            completed.insert(&part.id);
            unit.ids.push(part.id.clone());
            unit.reverts.extend(part.reverts.iter().cloned());
        }
        units.push(unit);
    }
    units
}

/// The unit that a step takes back, none of those whose newest commits are `passed`. A commit that is taken back does nothing, so
/// it takes nothing back either.
pub(super) fn target<'a>(units: &'a [Unit], step: Step, passed: &HashSet<String>) -> Option<&'a Unit> {
    let plain = units.iter().filter(|unit| unit.is_plain()).flat_map(|unit| &unit.ids);
    let plain: HashSet<&str> = plain.map(String::as_str).collect();
    let mut gone: HashSet<&str> = HashSet::new();
    for unit in units.iter() {
        if unit.ids.iter().any(|id| gone.contains(id.as_str())) {
            continue;
        }
        let is_wanted = match step {
            Step::Undo => unit.is_plain(),
            Step::Redo => unit.reverts.iter().any(|id| plain.contains(id.as_str())),
        };
        if is_wanted && !passed.contains(unit.newest()) {
            return Some(unit);
        }
        gone.extend(unit.reverts.iter().map(String::as_str));
    }
    None
}

/// The first line of the commit that takes back one with this first line, and what is in force or not afterwards.
pub(super) fn taken_back(subject: &str) -> (String, &str) {
    let quoted = QUOTING.iter().find_map(|(open, close, verb)| {
        let inner = subject.strip_prefix(open)?.strip_suffix(close)?;
        Some((format!("{verb} “{inner}”"), inner))
    });
    quoted.unwrap_or_else(|| (format!("Undo “{subject}”"), subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: char) -> String {
        name.to_string().repeat(40)
    }

    fn log(commits: &[(char, Option<char>, &str)]) -> Vec<Unit> {
        let logged = |(commit, reverts, completes): &(char, Option<char>, &str)| Logged {
            id: id(*commit),
            reverts: reverts.map(id).into_iter().collect(),
            completes: completes.chars().map(id).collect(),
        };
        units(&commits.iter().map(logged).collect::<Vec<_>>())
    }

    fn check(commits: &[(char, Option<char>, &str)], undo: Option<char>, redo: Option<char>) {
        let log = log(commits);
        let newest = |step| target(&log, step, &HashSet::new()).map(|unit| unit.newest().to_owned());
        assert_eq!((newest(Step::Undo), newest(Step::Redo)), (undo.map(id), redo.map(id)), "{commits:?}");
    }

    #[test]
    fn undo_goes_back_and_redo_forth() {
        let (a, b) = (('a', None, ""), ('b', None, ""));
        let (c, d) = (('c', Some('b'), ""), ('d', Some('a'), ""));
        // The newest commit stands first.
        check(&[], None, None);
        check(&[b, a], Some('b'), None);
        check(&[c, b, a], Some('a'), Some('c'));
        check(&[d, c, b, a], None, Some('d'));
        check(&[('e', Some('c'), ""), c, b, a], Some('b'), None);
        check(&[('f', Some('d'), ""), d, c, b, a], Some('a'), Some('c'));
        check(&[('d', None, ""), c, b], Some('d'), Some('c'));
    }

    #[test]
    fn commits_of_a_person_and_what_strata_makes_of_them_are_one_step() {
        let (a, b, mine) = (('a', None, ""), ('b', None, ""), ('m', None, ""));
        check(&[('s', None, "m"), mine, a], Some('s'), None);
        assert_eq!(log(&[('s', None, "nm"), ('n', None, ""), mine])[0].oldest(), id('m'));
        check(&[('u', Some('s'), ""), ('s', None, "m"), mine, a], Some('a'), Some('u'));
        // The person has reverted `b` with git, and Strata has written a tombstone.
        check(&[('s', None, "r"), ('r', Some('b'), ""), b, a], Some('a'), Some('s'));
    }

    #[test]
    fn a_commit_names_the_ones_that_it_takes_back_and_completes() {
        let id = id('0');
        let read = |message: &str| Logged::read(&format!("\n{id}\n{message}")).unwrap();
        let plain = Logged { id: id.clone(), ..Logged::default() };
        assert_eq!(read("Add 1 memory\n\n+ This reverts commit law\n"), plain);
        assert_eq!(read(&format!("Add 1 memory\n\n+ Git says: This reverts commit {id}.\n")), plain);
        let (reverting, completing) =
            (format!("This reverts commit {id}.\n"), format!("This completes commit {id}.\n"));
        let both = read(&format!("Revert \"Add\"\n\n{reverting}{completing}"));
        assert_eq!(both, Logged { reverts: vec![id.clone()], completes: vec![id.clone()], id });
    }

    #[test]
    fn a_first_line_says_what_is_in_force_afterwards() {
        for (subject, expected, inner) in [
            ("Add 1 memory", "Undo “Add 1 memory”", "Add 1 memory"),
            ("Undo “Add 1 memory”", "Redo “Add 1 memory”", "Add 1 memory"),
            ("Redo “Add 1 memory”", "Undo “Add 1 memory”", "Add 1 memory"),
            ("Revert \"Move 2 turns\"", "Redo “Move 2 turns”", "Move 2 turns"),
        ] {
            assert_eq!(taken_back(subject), (expected.to_owned(), inner));
        }
    }
}
