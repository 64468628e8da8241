//! The compiled patterns of a table.

use regex::{Captures, RegexSet, RegexSetBuilder};

use crate::pattern::{Pattern, compact};

/// The bytes in which a thread keeps the states of a set of patterns that it has met.
const CACHE: usize = 1 << 20;

/// Patterns that are tried together: one pass finds the patterns that match, and only those are compiled by themselves and extract
/// their groups.
pub(super) struct Patterns {
    set: RegexSet,
    each: Vec<Pattern>,
}

impl Patterns {
    pub(super) fn new(sources: impl Iterator<Item = String>) -> Self {
        let sources: Vec<String> = sources.map(|source| compact(&source)).collect();
        let set = RegexSetBuilder::new(&sources).size_limit(64 << 20).dfa_size_limit(CACHE).build();
        // The tests use every pattern, so they find one that does not compile.
        let each = sources.into_iter().map(Pattern::owned).collect();
        Self { set: set.unwrap_or_else(|_| RegexSet::empty()), each }
    }

    /// The indexes of the patterns that match, in their order.
    pub(super) fn matches(&self, text: &str) -> impl Iterator<Item = usize> + use<> {
        self.set.matches(text).into_iter()
    }

    /// The groups of the pattern at an index.
    pub(super) fn groups<'t>(&self, place: usize, text: &'t str) -> Option<Captures<'t>> {
        self.each.get(place)?.captures(text)
    }
}

/// Patterns with their replacements.
pub(super) struct Rewrites {
    patterns: Patterns,
    table: &'static [(&'static str, &'static str)],
}

impl Rewrites {
    /// `source` turns a pattern of the table into a regular expression.
    pub(super) fn new(
        table: &'static [(&'static str, &'static str)],
        source: impl Fn(&str) -> String,
    ) -> Self {
        Self { patterns: Patterns::new(table.iter().map(|(pattern, _)| source(pattern))), table }
    }

    /// The text after the first pattern that matches has rewritten it.
    pub(super) fn apply(&self, text: &str) -> String {
        let rewritten = self.patterns.matches(text).next().and_then(|place| {
            let (pattern, (_, to)) = (self.patterns.each.get(place)?.get()?, self.table.get(place)?);
            Some(pattern.replace(text, *to).into_owned())
        });
        rewritten.unwrap_or_else(|| text.to_owned())
    }
}

/// Replaces the names of word lists in a pattern by the lists.
pub(super) fn with_lists(pattern: &str, lists: &[(&str, &str)]) -> String {
    lists
        .iter()
        .fold(pattern.to_owned(), |pattern, (name, list)| pattern.replace(name, &format!("(?:{list})")))
}
