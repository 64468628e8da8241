//! A regular expression that is compiled at its first use.
//!
//! A pattern that does not compile never matches. The tests of the rules use every pattern, so they find one.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Match, Regex, RegexBuilder};

/// The bytes in which a thread keeps the states of an expression that it has met. There are hundreds of expressions, and with the
/// library's two megabytes for each of them, a server that learns would hold many times what it remembers.
const CACHE: usize = 256 << 10;

/// The letters and digits of the scripts that are much written, in place of `\w`. All of Unicode's have 770 ranges, and each of them
/// stands in every place of an expression that takes one.
const WORD: &str = r"[0-9A-Z_a-zªµºÀ-ÖØ-öø-ʯ\u{0300}-\u{036F}\u{0370}-\u{0373}Ά-ϿЀ-ӿא-תء-ي\u{0900}-\u{0963}ก-ฺ぀-ヿ㐀-䶿一-鿿가-힣]";
/// The digits in place of `\d`: those of ASCII, and the wide ones of Chinese texts.
const DIGIT: &str = "[0-9０-９]";

/// An expression with its classes of letters and digits, `\w` and `\d`, in a form that takes little memory: those of the scripts that
/// are much written.
pub fn compact(source: &str) -> String {
    source.replace(r"\w", WORD).replace(r"\d", DIGIT)
}

/// A compiled expression that takes little memory.
pub(crate) fn small(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&compact(source)).dfa_size_limit(CACHE).build()
}

/// A regular expression, as the value of a `static`.
#[derive(Debug)]
pub struct Pattern {
    source: Source,
    compiled: OnceLock<Option<Regex>>,
}

#[derive(Debug)]
enum Source {
    Text(Cow<'static, str>),
    Made(fn() -> String),
}

impl Pattern {
    /// A pattern that is written out.
    pub const fn new(source: &'static str) -> Self {
        Self { source: Source::Text(Cow::Borrowed(source)), compiled: OnceLock::new() }
    }

    /// A pattern of a table that was read.
    pub(crate) const fn owned(source: String) -> Self {
        Self { source: Source::Text(Cow::Owned(source)), compiled: OnceLock::new() }
    }

    /// A pattern that is put together from lists of words.
    pub const fn made(source: fn() -> String) -> Self {
        Self { source: Source::Made(source), compiled: OnceLock::new() }
    }

    /// The compiled expression; `None` if it does not compile.
    pub fn get(&self) -> Option<&Regex> {
        let compile = || match &self.source {
            Source::Text(source) => small(source).ok(),
            Source::Made(source) => small(&source()).ok(),
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
    fn letters_and_digits_are_those_of_many_scripts() {
        static WORDS: Pattern = Pattern::new(r"^\w+$");
        for word in
            ["straße", "Łódź", "naïve_2", "Ольга", "Αθήνα", "שלום", "مرحبا", "हिन्दी", "東京", "カナ", "서울"]
        {
            assert!(WORDS.is_match(word), "{word}");
        }
        for other in ["a-b", "a b", "a’b", "“a”", "东京。", "、", "→", "€", "×"] {
            assert!(!WORDS.is_match(other), "{other}");
        }
        static NUMBER: Pattern = Pattern::new(r"^[+\d]\d*$");
        assert!(NUMBER.is_match("+12") && NUMBER.is_match("１２") && !NUMBER.is_match("x"));
    }

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
