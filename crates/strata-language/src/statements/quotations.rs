//! The quotations of a message, and its fenced code.

use std::ops::Range;

use super::pieces::Form;

/// Pairs of quotation marks, the least number of characters between them, and whether they may span lines.
const MARKS: [(char, char, usize, bool); 6] = [
    ('“', '”', 12, true),
    ('"', '"', 12, false),
    ('«', '»', 12, true),
    ('「', '」', 8, true),
    ('『', '』', 8, true),
    ('\'', '\'', 24, false),
];
const FENCE: &str = "```";
/// The number of words, or of Chinese characters, from which a quotation is something that was said or written. Shorter
/// ones are names and titles.
const SPOKEN_WORDS: usize = 5;
const SPOKEN_HAN: usize = 9;

/// The long quotations of a text and its fenced code, in order, with their marks.
pub(super) fn quotations(text: &str) -> Vec<(Range<usize>, Form)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let end = match fence_end(text, at) {
            Some(end) => Some((end, Form::Code)),
            None => quotation_end(text, at, c).map(|end| (end, Form::Quotation)),
        };
        match end {
            Some((end, form)) => {
                found.push((at..end, form));
                at = end;
            }
            None => at += c.len_utf8(),
        }
    }
    found
}

fn fence_end(text: &str, at: usize) -> Option<usize> {
    let inside = text[at..].strip_prefix(FENCE)?;
    let from = at + FENCE.len();
    Some(inside.find(FENCE).map_or(text.len(), |end| from + end + FENCE.len()))
}

fn quotation_end(text: &str, at: usize, c: char) -> Option<usize> {
    let (_, close, least, lines) = *MARKS.iter().find(|(open, ..)| *open == c)?;
    let from = at + c.len_utf8();
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    // An apostrophe inside a word opens nothing and closes nothing.
    if close == '\'' && is_letter(text[..at].chars().next_back()) {
        return None;
    }
    let rest = &text[from..];
    let ends = rest.char_indices().find(|(place, other)| {
        *other == close && !(close == '\'' && is_letter(rest[place + 1..].chars().next()))
    });
    let inside = &rest[..ends?.0];
    let is_one = lines || !inside.contains('\n');
    (is_one && inside.chars().count() >= least && is_spoken(inside))
        .then(|| from + inside.len() + close.len_utf8())
}

fn is_spoken(inside: &str) -> bool {
    let han = inside.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    if is_title(inside) {
        return false;
    }
    han >= SPOKEN_HAN || inside.split_whitespace().count() >= SPOKEN_WORDS
}

/// Whether the words between quotation marks are the title of a work: all but short ones begin with a capital, and no
/// sentence ends inside.
fn is_title(inside: &str) -> bool {
    const SHORT: usize = 3;
    let is_capital = |word: &str| {
        let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
        letters.chars().count() <= SHORT || letters.starts_with(char::is_uppercase)
    };
    let body = inside.trim_end_matches(['.', ',', '!', '?']);
    inside.starts_with(char::is_uppercase)
        && body.split_whitespace().any(|word| word.chars().count() > SHORT)
        && body.split_whitespace().all(is_capital)
        && !body.contains(['.', '!', '?', ':', ';', '\n', '@'])
}
