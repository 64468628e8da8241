//! The pieces of a message: its sentences, and the clauses of Chinese ones.

use std::sync::LazyLock;

use regex::Regex;

use super::chinese::is_chinese;
use super::quotations::quotations;
use crate::sentences;

/// The maximum number of characters of a message that are read. Longer texts are pasted, not said.
const MAX_CHARS: usize = 6_000;
/// The number of characters from which a part of a Chinese sentence is a clause of its own. A network reads whole
/// English sentences better than their clauses; Chinese sentences run on.
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

/// A sentence or a clause of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its words.
    pub text: String,
    /// The number of its line in the message.
    pub line: usize,
    /// Its form.
    pub form: Form,
}

/// A request that names its material before a colon («translate this: …»).
static NAMES_MATERIAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)\b(?:translate|summari[sz]e|rewrite|reword|rephrase|paraphrase|proofread|correct|fix|edit|polish|shorten|tidy|improve|answer|reply|
            respond|draft|check|review|explain|turn|convert|reformat|simplify|this|these|following|below|attached)\b
        |翻译|翻譯|润色|潤色|改写|改寫|总结|總結|概括|提炼|提煉|回复|回覆|修改|检查|檢查|解释|解釋|校对|校對|整理|[这這]|以下|下面|如下|[转轉]",
    )
    .ok()
});

/// The pieces of a message, in order.
pub fn pieces(message: &str) -> Vec<Piece> {
    let end = message.char_indices().nth(MAX_CHARS).map_or(message.len(), |(end, _)| end);
    let message = &message[..end];
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

/// Adds the pieces of a part of the message, and counts its lines. Material after a colon counts as a line of its own.
fn add(part: &str, form: Form, line: &mut usize, found: &mut Vec<Piece>) {
    for (number, text) in part.split('\n').enumerate() {
        *line += usize::from(number > 0);
        if form == Form::Code {
            push(text, form, *line, found);
            continue;
        }
        let (head, material) = at_colon(text);
        sentences(head, form, *line, found);
        if !material.is_empty() {
            *line += 1;
            sentences(material, form, *line, found);
        }
    }
}

/// A line before and after a colon that follows the name of some material.
fn at_colon(line: &str) -> (&str, &str) {
    let ends = |(at, c): &(usize, char)| match c {
        '：' => true,
        ':' => line[at + 1..].starts_with(|next: char| next.is_whitespace() || !next.is_ascii()),
        _ => false,
    };
    match line.char_indices().find(ends) {
        Some((at, c)) if NAMES_MATERIAL.as_ref().is_some_and(|names| names.is_match(&line[..at])) => {
            line.split_at(at + c.len_utf8())
        }
        _ => (line, ""),
    }
}

fn sentences(line: &str, form: Form, number: usize, found: &mut Vec<Piece>) {
    let mut from = 0;
    for end in sentences::ends(line).chain([line.len()]) {
        let Some(sentence) = line.get(from..end).filter(|sentence| end == line.len() || is_whole(sentence))
        else {
            continue;
        };
        from = end;
        if is_chinese(sentence) {
            clauses(sentence.trim(), |clause| push(clause, form, number, found));
        } else {
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

/// The clauses of a Chinese sentence.
fn clauses(sentence: &str, mut emit: impl FnMut(&str)) {
    let mut found: Vec<String> = Vec::new();
    let mut part = String::new();
    for c in sentence.chars() {
        part.push(c);
        let may_end = matches!(c, '，' | '；' | ',' | ';') || c.is_whitespace();
        if may_end && part.chars().count() >= CHINESE_CLAUSE {
            found.push(std::mem::take(&mut part));
        }
    }
    match found.last_mut() {
        Some(last) if part.trim().chars().count() <= CHINESE_REST => last.push_str(&part),
        _ => found.push(part),
    }
    for clause in found {
        emit(&clause);
    }
}
