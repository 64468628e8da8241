//! A regular expression that is compiled at its first use.
//!
//! A pattern that does not compile never matches. The tests of the rules use every pattern, so they find one.

use std::sync::OnceLock;

use regex::{Captures, Match, Regex, RegexBuilder};

/// The bytes in which a thread keeps the states of an expression that it has met. There are hundreds of expressions, and with the
/// library's two megabytes for each of them, a server that learns would hold many times what it remembers.
const CACHE: usize = 256 << 10;

/// A compiled expression; `None` if it does not compile.
pub(crate) fn compiled(source: &str) -> Option<Regex> {
    RegexBuilder::new(source).dfa_size_limit(CACHE).build().ok()
}

/// A regular expression, as the value of a `static`.
#[derive(Debug)]
pub struct Pattern {
    source: Source,
    compiled: OnceLock<Option<Regex>>,
}

#[derive(Debug)]
enum Source {
    Text(&'static str),
    Made(fn() -> String),
}

impl Pattern {
    /// A pattern that is written out.
    pub const fn new(source: &'static str) -> Self {
        Self { source: Source::Text(source), compiled: OnceLock::new() }
    }

    /// A pattern that is put together from lists of words.
    pub const fn made(source: fn() -> String) -> Self {
        Self { source: Source::Made(source), compiled: OnceLock::new() }
    }

    /// The compiled expression; `None` if it does not compile.
    pub fn get(&self) -> Option<&Regex> {
        let compile = || match self.source {
            Source::Text(source) => compiled(source),
            Source::Made(source) => compiled(&source()),
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Whether the text has a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text))
    }

    /// The first match.
    pub fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.get()?.find(text)
    }

    /// The groups of the first match.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.get()?.captures(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_does_not_compile_matches_nothing() {
        static WHOLE: Pattern = Pattern::new("^a(?<rest>.*)$");
        static MADE: Pattern = Pattern::made(|| format!("{}+", "b"));
        static BROKEN: Pattern = Pattern::new("(");
        assert!(WHOLE.is_match("ab") && !WHOLE.is_match("b"));
        assert_eq!(
            WHOLE.captures("abc").and_then(|found| found.name("rest")).map(|rest| rest.as_str()),
            Some("bc")
        );
        assert_eq!(MADE.find("abb").map(|found| found.range()), Some(1..3));
        assert!(BROKEN.get().is_none() && !BROKEN.is_match("(") && BROKEN.find("(").is_none());
    }
}
