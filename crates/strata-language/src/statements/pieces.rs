//! The pieces of a message: its sentences, and the clauses of Chinese ones where a sentence is too much at once.

use super::chinese::is_chinese;
use super::lists::with_joined_lists;
use super::quotations::quotations;
use crate::sentences;

/// The maximum number of characters of a message that are read. Longer texts are pasted, not said.
const MAX_CHARS: usize = 6_000;
/// The number of characters from which a part of a Chinese sentence is a clause of its own.
const CHINESE_CLAUSE: usize = 12;
/// The number of characters up to which the rest of a Chinese sentence belongs to the clause before it.
const CHINESE_REST: usize = 3;

/// The form of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Plain text.
    Plain,
    /// A long quotation.
    Quotation,
    /// Fenced code.
    Code,
}

/// A sentence of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its words.
    pub text: String,
    /// The number of its line in the message.
    pub line: usize,
    /// Its form.
    pub form: Form,
}

/// The pieces of a message, in order.
pub fn pieces(message: &str) -> Vec<Piece> {
    let message = &*with_joined_lists(beginning(message));
    let mut found = Vec::new();
    let (mut line, mut from) = (0, 0);
    for (range, form) in quotations(message) {
        add(&message[from..range.start], Form::Plain, &mut line, &mut found);
        from = range.end;
        add(&message[range], form, &mut line, &mut found);
    }
    add(&message[from..], Form::Plain, &mut line, &mut found);
    found
}

/// The part of a message that is read: it ends with a sentence.
fn beginning(message: &str) -> &str {
    let Some((most, _)) = message.char_indices().nth(MAX_CHARS) else { return message };
    let last = sentences::ends(message).take_while(|end| *end <= most).last();
    &message[..last.unwrap_or(most)]
}

/// Whether some pieces are Chinese and others are not.
pub fn mix_scripts(pieces: &[Piece]) -> bool {
    let mut scripts = pieces.iter().map(|piece| is_chinese(&piece.text));
    let first = scripts.next();
    scripts.any(|other| Some(other) != first)
}

/// Adds the pieces of a part of the message, and counts its lines.
fn add(part: &str, form: Form, line: &mut usize, found: &mut Vec<Piece>) {
    for (number, text) in part.split('\n').enumerate() {
        *line += usize::from(number > 0);
        if form == Form::Code {
            push(text, form, *line, found);
        } else {
            sentences(text, form, *line, found);
        }
    }
}

fn sentences(line: &str, form: Form, number: usize, found: &mut Vec<Piece>) {
    let mut from = 0;
    for end in sentences::ends(line).chain([line.len()]) {
        let sentence = line.get(from..end).filter(|sentence| end == line.len() || is_whole(sentence));
        if let Some(sentence) = sentence {
            from = end;
            push(sentence, form, number, found);
        }
    }
}

fn push(text: &str, form: Form, line: usize, found: &mut Vec<Piece>) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        found.push(Piece { text: text.to_owned(), line, form });
    }
}

/// Whether a sentence is not cut after an abbreviation, an initial or the number of a list item.
fn is_whole(sentence: &str) -> bool {
    const SHORT: &str = "st prof etc jr sr inc ltd co b c";
    if sentence.ends_with('；') {
        return false;
    }
    let Some(before) = sentence.strip_suffix('.') else { return true };
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_first = word.len() == before.trim_start().len();
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
    let is_short = SHORT.split(' ').any(|short| short.eq_ignore_ascii_case(word));
    !(is_initial || is_short || is_first && word.chars().count() < 3)
}

/// The clauses of a Chinese sentence, which runs on with commas; one for a short sentence or another language.
pub fn chinese_clauses(sentence: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut depth = 0_i32;
    let mut characters = sentence.chars().peekable();
    while let Some(c) = characters.next() {
        let before = part.chars().next_back();
        part.push(c);
        match c {
            '“' | '「' | '『' | '（' | '(' => depth += 1,
            '”' | '」' | '』' | '）' | ')' => depth -= 1,
            _ => {}
        }
        // A blank beside Latin letters is one between words.
        let is_latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_gap = c.is_whitespace() && !is_latin(before) && !is_latin(characters.peek().copied());
        let may_end = depth <= 0 && (matches!(c, '，' | '；' | ',' | ';') || is_gap);
        if may_end && is_chinese(sentence) && part.chars().count() >= CHINESE_CLAUSE {
            found.push(std::mem::take(&mut part));
        }
    }
    match found.last_mut() {
        Some(last) if part.trim().chars().count() <= CHINESE_REST => last.push_str(&part),
        _ => found.push(part),
    }
    found.into_iter().map(|clause| clause.trim().to_owned()).collect()
}

/// About how many word pieces a text has: one for each short word, mark and Chinese character.
pub fn rough_length(text: &str) -> usize {
    let marks = text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).count();
    let han = text.chars().filter(|c| ('\u{3400}'..='\u{9fff}').contains(c)).count();
    let words = text.split(|c: char| !c.is_alphanumeric() || ('\u{3400}'..='\u{9fff}').contains(&c));
    let words = words.filter(|word| !word.is_empty()).map(|word| 1 + word.chars().count() / 8);
    marks + han + words.sum::<usize>()
}
