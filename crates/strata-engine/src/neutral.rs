//! Stored content inside a prompt: it cannot imitate the tags of a prompt's layers, nor the lines with which the layers
//! list items.
//!
//! A tag is recognised in any spelling that a model may take for it: in capitals, with spaces or characters without
//! width inside, in full-width, mathematical or look-alike letters, or with its bracket written as an entity. The bracket
//! of such a tag becomes `(`. A line that begins like an item (`[2023-05-08 Caroline]`, `[system]`) or like a speaker
//! (`System:`) is quoted with `> `. All other text stays as it is.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The names of the tags without separators. A tag that begins with one of them is neutralised.
const TAGS: [&str; 5] =
    ["stratamemory", "conversationsummary", "recentconversation", "standinginstructions", "relevantmemories"];

/// The profiles and the layer of tasks that Strata brings along.
const SHIPPED_CONTEXTS: [&str; 7] =
    ["coding", "diagnostic", "household", "incident", "research", "support", "task"];

/// A longer name is none of ours. The limit bounds the search after each bracket.
const MAX_NAME_CHARS: usize = 200;

/// Words with which a line names a speaker, folded.
const SPEAKERS: [&str; 16] = [
    "system",
    "user",
    "assistant",
    "tool",
    "developer",
    "human",
    "ai",
    "strata",
    "系统",
    "用户",
    "助手",
    "工具",
    "開發者",
    "系統",
    "用戶",
    "开发者",
];

/// A text in which no tag and no line can be taken for the prompt's own.
pub fn neutral(text: &str) -> String {
    let mut safe = neutral_tags(text).into_owned();
    // The mark of a quoted line may close a tag that the line before it has begun.
    while let Cow::Owned(quoted) = quote_lines(&safe) {
        safe = neutral_tags(&quoted).into_owned();
    }
    safe
}

/// A text in which no tag can be taken for the prompt's own.
pub(crate) fn neutral_tags(text: &str) -> Cow<'_, str> {
    let openers: Vec<Range<usize>> =
        brackets(text, '<').filter(|bracket| begins_tag(&text[bracket.end..])).collect();
    if openers.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut from = 0;
    for opener in openers {
        safe.push_str(&text[from..opener.start]);
        safe.push('(');
        from = opener.end;
    }
    safe.push_str(&text[from..]);
    Cow::Owned(safe)
}

/// A text in which no line begins like an item or a speaker.
pub(crate) fn quote_lines(text: &str) -> Cow<'_, str> {
    let starts: Vec<usize> = line_starts(text).filter(|start| begins_item(&text[*start..])).collect();
    if starts.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 2 * starts.len());
    let mut from = 0;
    for start in starts {
        quoted.push_str(&text[from..start]);
        quoted.push_str("> ");
        from = start;
    }
    quoted.push_str(&text[from..]);
    Cow::Owned(quoted)
}

/// A character as a reader sees it: the plain lower-case letters that it stands for. Marks and characters without width
/// stand for nothing.
fn folded(c: char) -> impl Iterator<Item = char> {
    let seen = (!is_unseen(c)).then_some(c);
    seen.into_iter()
        .nfkd()
        .filter(|c| !is_combining_mark(*c) && !is_unseen(*c))
        .flat_map(char::to_lowercase)
        .map(plain_letter)
}

/// Invisible characters, which have no width in a line: controls of format and of direction, joiners, variation selectors, tags.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || (c.is_control() && !is_break(c) && c != '\t')
}

/// The Latin letter that a letter or sign of another script looks like.
fn plain_letter(c: char) -> char {
    match c {
        'а' | 'α' | 'ɑ' => 'a',
        'с' | 'ϲ' => 'c',
        'е' | 'ε' => 'e',
        'і' | 'ι' | 'ı' => 'i',
        'м' | 'μ' => 'm',
        'п' | 'η' => 'n',
        'о' | 'ο' => 'o',
        'г' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'һ' => 'h',
        'ԁ' => 'd',
        'ӏ' => 'l',
        '‹' | '˂' | '❮' | '⟨' | '〈' | '\u{2329}' => '<',
        '⁄' | '∕' | '⧸' => '/',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        _ => c,
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Where a line begins: at the beginning of the text and after each break.
fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let breaks = text.char_indices().filter(|(_, c)| is_break(*c)).map(|(at, c)| at + c.len_utf8());
    std::iter::once(0).chain(breaks)
}

/// The places of a bracket, in any spelling.
fn brackets(text: &str, wanted: char) -> impl Iterator<Item = Range<usize>> {
    text.char_indices().filter_map(move |(at, c)| {
        let length = if c == '&' {
            entity(&text[at..], wanted)?
        } else {
            (folded(c).next()? == wanted).then(|| c.len_utf8())?
        };
        Some(at..at + length)
    })
}

/// The length of the entity at the beginning of a text, if it stands for `wanted`. An ampersand may be an entity itself.
fn entity(text: &str, wanted: char) -> Option<usize> {
    let mut rest = text.strip_prefix('&')?;
    while let Some(more) = strip_ignoring_case(rest, "amp;").or_else(|| strip_ignoring_case(rest, "#38;")) {
        rest = more;
    }
    let after = match rest.strip_prefix('#') {
        Some(number) => {
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
            let code = u32::from_str_radix(&digits[..end], radix).ok()?;
            let c = char::from_u32(code)?;
            (folded(c).next()? == wanted).then(|| &digits[end..])?
        }
        None => {
            let names: &[&str] = if wanted == '<' { &["lt"] } else { &["lbrack", "lsqb"] };
            names.iter().find_map(|name| strip_ignoring_case(rest, name))?
        }
    };
    let after = after.strip_prefix(';').unwrap_or(after);
    Some(text.len() - after.len())
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Whether the text after a bracket is the name of a layer's tag.
fn begins_tag(text: &str) -> bool {
    let mut all = String::new();
    // The name up to the first space after it.
    let mut word = String::new();
    let (mut spaced_before, mut word_ended) = (false, false);
    let mut ended_by = None;
    for c in text.chars().take(MAX_NAME_CHARS).flat_map(seen) {
        match c {
            '/' | '\\' | '!' | '?' if all.is_empty() => {}
            c if c.is_whitespace() => {
                spaced_before |= all.is_empty();
                word_ended |= !all.is_empty();
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') => {
                if c.is_alphanumeric() {
                    all.push(c);
                }
                if !word_ended {
                    word.push(c);
                }
            }
            other => {
                ended_by = Some(other);
                break;
            }
        }
    }
    let is_closed = matches!(ended_by, Some('>' | '&'));
    let is_note = word == "note" && (is_closed || !spaced_before) || all == "note" && is_closed;
    let is_context = [&word, &all].into_iter().any(|name| is_context(name));
    is_note || is_context || TAGS.iter().any(|tag| all.starts_with(tag))
}

/// Whether a name begins like that of a profile's layer. A name without a separator is one of those that Strata brings
/// along.
fn is_context(name: &str) -> bool {
    let is_shipped =
        |profile: &&str| name.strip_prefix(*profile).is_some_and(|rest| rest.starts_with("context"));
    let mut places = name.match_indices("context").map(|(at, _)| &name[..at]);
    places.any(|before| before.len() > 1 && before.ends_with(['_', '-', '.']))
        || SHIPPED_CONTEXTS.iter().any(is_shipped)
}

/// A character as it is seen; a space for each kind of space.
fn seen(c: char) -> impl Iterator<Item = char> {
    let space = (c.is_whitespace() || is_break(c)).then_some(' ');
    let letters = space.is_none().then(|| folded(c)).into_iter().flatten();
    space.into_iter().chain(letters)
}

/// Whether a line begins like an item or a speaker, behind spaces and the mark of a list.
fn begins_item(text: &str) -> bool {
    let end = text.char_indices().find(|(_, c)| is_break(*c)).map_or(text.len(), |(at, _)| at);
    let line = &text[..end];
    let is_mark =
        |c: char| c.is_whitespace() || is_unseen(c) || matches!(c, '-' | '*' | '+' | '•' | '·' | '–' | '#');
    let line = line.trim_start_matches(is_mark);
    let Some(first) = line.chars().next() else { return false };
    let opener = if first == '&' { entity(line, '[') } else { opens_head(first).then(|| first.len_utf8()) };
    match opener {
        Some(length) => is_head(&line[length..], !matches!(first, '[' | '［' | '&')),
        None => is_speaker(line),
    }
}

/// Whether a character opens something in brackets.
fn opens_head(c: char) -> bool {
    matches!(c, '【' | '〔' | '〖' | '⟦' | '❲' | '﹝' | '⁅') || folded(c).next() == Some('[')
}

fn closes_head(c: char) -> bool {
    matches!(c, '】' | '〕' | '〗' | '⟧' | '❳' | '﹞' | '⁆') || folded(c).next() == Some(']')
}

/// Whether a character is a bracket with which a tag or the head of an item could begin or end.
pub(crate) fn is_bracket(c: char) -> bool {
    let is_angle = folded(c).any(|c| matches!(c, '<' | '>')) || matches!(c, '›' | '˃' | '❯' | '⟩' | '〉');
    is_angle || opens_head(c) || closes_head(c)
}

/// Whether the text behind an opening bracket is the head of an item. Check boxes, links, lists of values and, with
/// `is_rare`, headings in other brackets are not.
fn is_head(text: &str, is_rare: bool) -> bool {
    let folded: String = text.chars().flat_map(seen).collect();
    let Some(close) = folded.find(closes_head).or_else(|| folded.find("&#93;")) else { return false };
    let (inside, after) = folded.split_at(close);
    let inside = inside.trim();
    if has_day(inside)
        || names_speaker(inside)
        || inside.starts_with("since ")
        || inside.starts_with("summary of ")
    {
        return true;
    }
    let is_link = after.chars().nth(1) == Some('(');
    let is_value =
        inside.starts_with(['"', '\'', '{', '[', '\\']) || !inside.chars().any(char::is_alphabetic);
    !(is_rare || is_link || is_value || inside.chars().count() <= 1)
}

/// Whether a text holds a day: `2023-05-08`, `2023/5/8`, `2023年5月`.
fn has_day(text: &str) -> bool {
    let letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    letters.windows(6).any(|six| {
        six[..4].iter().all(char::is_ascii_digit)
            && matches!(six[4], '-' | '/' | '.' | '年')
            && six[5].is_ascii_digit()
    })
}

/// Whether a text begins with the name of a role.
fn names_speaker(text: &str) -> bool {
    let squeezed: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let is_first = |name: &&str| {
        text.strip_prefix(*name)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric) || !name.is_ascii())
    };
    SPEAKERS.iter().any(|name| is_first(name) || squeezed == **name)
}

/// Whether a line begins with a role and a colon.
fn is_speaker(line: &str) -> bool {
    // The longest role has nine letters.
    let start: String = line.chars().take(40).flat_map(seen).collect();
    let Some((name, _)) = start.split_once(':').filter(|_| !start.starts_with('>')) else { return false };
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    SPEAKERS.contains(&name.as_str())
}

#[cfg(test)]
mod tests;
