//! Splits normalised text into the pieces that become terms.

use unicode_normalization::char::is_combining_mark;

use super::MAX_TERM_CHARS;

/// Replaces `.`, `_` and `@` inside a word that is also indexed whole, such as `v1.2`. It is a letter (a dental click),
/// because the tokenizers of databases split at everything else.
const CONNECTOR: char = 'ǀ';

/// A piece of text that becomes one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// A word, or a part of a longer identifier.
    Word(&'a str),
    /// A whole identifier, address or version, with each connector written as [`CONNECTOR`].
    Compound(&'a str),
    /// Two neighbouring characters, or a single one, of a script without spaces.
    Unspaced(&'a str),
}

impl<'a> Run<'a> {
    pub(super) fn as_str(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Compound(text) | Self::Unspaced(text) => text,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A character of a word.
    Word,
    /// A character of a script without spaces.
    Unspaced,
    /// A separator.
    Other,
}

/// Calls `emit` with the pieces of `text` in order; a compound comes after its parts.
pub(super) fn for_each_run(text: &str, mut emit: impl FnMut(Run<'_>)) {
    let mut compound = Compound::default();
    let mut rest = text;
    while let Some(start) = rest.find(|c| classify(c) != Class::Other) {
        rest = &rest[start..];
        let class = rest.chars().next().map_or(Class::Other, classify);
        let (run, after) = rest.split_at(rest.find(|c| !continues(class, c)).unwrap_or(rest.len()));
        rest = after;
        if class == Class::Unspaced {
            for_each_pair(run, |pair| emit(Run::Unspaced(pair)));
            continue;
        }
        let word = cut(run);
        emit(Run::Word(word));
        compound.push(word);
        rest = skip_clitic(rest);
        match after_connector(rest) {
            Some(next) => rest = next,
            None => compound.finish(|whole| emit(Run::Compound(whole))),
        }
    }
}

/// Whether `c` continues a run of `class`. A word keeps its combining marks; without them the scripts of India would
/// break in the middle of syllables.
fn continues(class: Class, c: char) -> bool {
    match classify(c) {
        Class::Other => class == Class::Word && is_combining_mark(c),
        other => other == class,
    }
}

fn classify(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Class::Word } else { Class::Other };
    }
    if is_unspaced(c) {
        return if c.is_alphanumeric() || is_combining_mark(c) { Class::Unspaced } else { Class::Other };
    }
    if c.is_alphanumeric() { Class::Word } else { Class::Other }
}

/// Blocks of scripts that do not mark words by spaces. Hangul marks phrases by spaces, not words: its pairs find a noun
/// with any particle after it.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}'        // Thai, Lao
        | '\u{1000}'..='\u{109F}'      // Burmese
        | '\u{1780}'..='\u{17FF}'      // Khmer
        | '\u{3005}'..='\u{3007}'      // iteration mark, closing mark, zero
        | '\u{3040}'..='\u{30FF}'      // kana
        | '\u{31F0}'..='\u{31FF}'      // small kana
        | '\u{3400}'..='\u{4DBF}'      // Han
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'      // Hangul
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// The first [`MAX_TERM_CHARS`] characters.
fn cut(word: &str) -> &str {
    if word.len() <= MAX_TERM_CHARS {
        return word;
    }
    word.char_indices().nth(MAX_TERM_CHARS).map_or(word, |(end, _)| &word[..end])
}

/// The neighbouring pairs of a run, or the run itself if it is one character.
fn for_each_pair(run: &str, mut emit: impl FnMut(&str)) {
    let mut starts = run.char_indices().map(|(start, c)| (start, start + c.len_utf8()));
    let Some((mut before, end)) = starts.next() else { return };
    if end == run.len() {
        emit(run);
    }
    for (start, end) in starts {
        emit(&run[before..end]);
        before = start;
    }
}

/// The text after an English clitic at the start of `rest` (`'s`, `'t`, `'ll` …), which belongs to the word before;
/// `rest` itself if there is none.
pub(super) fn skip_clitic(rest: &str) -> &str {
    let Some(clitic) = rest.strip_prefix(['\'', '’', 'ʼ']) else { return rest };
    let found = ["s", "t", "d", "ll", "m", "re", "ve"].into_iter().find_map(|ending| {
        let after = clitic.strip_prefix(ending)?;
        after.chars().next().is_none_or(|c| classify(c) == Class::Other && c != '_').then_some(after)
    });
    found.unwrap_or(rest)
}

/// The text after a connector that joins the word before `rest` with a word after it.
fn after_connector(rest: &str) -> Option<&str> {
    let next = rest.strip_prefix(['.', '_', '@'])?;
    next.chars().next().is_some_and(|c| classify(c) == Class::Word).then_some(next)
}

/// Collects a word with connectors. It gives up if the word is too long for a name that a person types.
#[derive(Default)]
struct Compound {
    whole: String,
    parts: usize,
}

impl Compound {
    fn push(&mut self, part: &str) {
        if self.parts > 0 && self.whole.len() <= MAX_BYTES {
            self.whole.push(CONNECTOR);
        }
        if self.whole.len() <= MAX_BYTES {
            self.whole.push_str(part);
        }
        self.parts += 1;
    }

    fn finish(&mut self, emit: impl FnOnce(&str)) {
        if self.parts > 1 && self.whole.chars().count() <= MAX_TERM_CHARS {
            emit(&self.whole);
        }
        self.whole.clear();
        self.parts = 0;
    }
}

/// The maximum number of bytes of [`MAX_TERM_CHARS`] characters.
const MAX_BYTES: usize = MAX_TERM_CHARS * 4;
