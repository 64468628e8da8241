//! The patterns of a table, compiled together.

use regex::{Captures, Regex, RegexSet, RegexSetBuilder};

/// Patterns that are tried together: one pass says which of them match, and only those are asked for their groups.
pub(super) struct Patterns {
    set: RegexSet,
    each: Vec<Regex>,
}

impl Patterns {
    pub(super) fn new(sources: impl Iterator<Item = String>) -> Self {
        let sources: Vec<String> = sources.collect();
        let set = RegexSetBuilder::new(&sources).size_limit(64 << 20).dfa_size_limit(16 << 20).build();
        // A pattern that does not compile is found by the tests, which use every one of them.
        let each = sources.iter().filter_map(|source| Regex::new(source).ok()).collect();
        Self { set: set.unwrap_or_else(|_| RegexSet::empty()), each }
    }

    /// The places of the patterns that match, the first one first.
    pub(super) fn matches(&self, text: &str) -> impl Iterator<Item = usize> + use<> {
        self.set.matches(text).into_iter()
    }

    /// The groups of the pattern at a place.
    pub(super) fn groups<'t>(&self, place: usize, text: &'t str) -> Option<Captures<'t>> {
        self.each.get(place)?.captures(text)
    }
}

/// Patterns with what is written in the place of each.
pub(super) struct Rewrites {
    patterns: Patterns,
    table: &'static [(&'static str, &'static str)],
}

impl Rewrites {
    /// `source` makes a regular expression of a pattern in the table.
    pub(super) fn new(
        table: &'static [(&'static str, &'static str)],
        source: impl Fn(&str) -> String,
    ) -> Self {
        Self { patterns: Patterns::new(table.iter().map(|(pattern, _)| source(pattern))), table }
    }

    /// The text as the first pattern that matches rewrites it.
    pub(super) fn apply(&self, text: &str) -> String {
        let rewritten = self.patterns.matches(text).next().and_then(|place| {
            let (pattern, (_, to)) = (self.patterns.each.get(place)?, self.table.get(place)?);
            Some(pattern.replace(text, *to).into_owned())
        });
        rewritten.unwrap_or_else(|| text.to_owned())
    }
}

/// A pattern with word lists in the places of their names.
pub(super) fn with_lists(pattern: &str, lists: &[(&str, &str)]) -> String {
    lists
        .iter()
        .fold(pattern.to_owned(), |pattern, (name, list)| pattern.replace(name, &format!("(?:{list})")))
}
