//! Locates the parts of a JSON text, so that one part can be changed while every other byte stays the same.
//!
//! Parsing and writing the body again would lose details: the order of keys, `1.0` against `1`, fields that do not
//! exist yet. So nothing is written again here: the text is scanned, and edits are inserted. The text must be valid
//! JSON ([`parse`] checks it); the scanner does not check it again.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    /// Its name with the quotes.
    name: Range<usize>,
    /// Its value.
    value: Range<usize>,
}

/// An object, and where its members are.
pub(crate) struct Object<'a> {
    text: &'a str,
    members: Vec<Member>,
}

impl<'a> Object<'a> {
    /// The object at `place`; without members if it is not an object.
    pub(crate) fn at(text: &'a str, place: &Range<usize>) -> Self {
        Self { text, members: members(text, place) }
    }

    /// The text that the object is a part of.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Where the value of a member is.
    pub(crate) fn place(&self, name: &str) -> Option<Range<usize>> {
        member(self.text, &self.members, name).map(|member| member.value.clone())
    }

    /// The value of a member as it is written.
    pub(crate) fn written(&self, name: &str) -> Option<&'a str> {
        self.place(name).map(|place| &self.text[place])
    }

    /// The value of a member, if it is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.place(name).and_then(|place| string(self.text, &place))
    }

    /// The value of a member, if it is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        let place = self.place(name).filter(|place| self.text.as_bytes()[place.start] == b'{')?;
        Some(Self::at(self.text, &place))
    }

    /// The value of a member, parsed; `null` if there is none.
    pub(crate) fn value(&self, name: &str) -> serde_json::Value {
        self.written(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The decoded name of a member, by its place in the order.
    pub(crate) fn name(&self, place: usize) -> Cow<'a, str> {
        string(self.text, &self.members[place].name).unwrap_or_default()
    }

    /// Where the members are, with their names.
    pub(crate) fn places(&self) -> Vec<Range<usize>> {
        self.members.iter().map(|member| member.name.start..member.value.end).collect()
    }
}

/// The text of a body, if it is JSON in UTF-8, and the place of its value.
pub(crate) fn parse(bytes: &[u8]) -> Result<(&str, Range<usize>), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())?;
    let start = skip_space(text.as_bytes(), 0);
    Ok((text, start..skip_value(text.as_bytes(), start)))
}

/// The members of the object at `place`, in their order; empty if it is not an object.
fn members(text: &str, place: &Range<usize>) -> Vec<Member> {
    let bytes = text.as_bytes();
    let mut members = Vec::new();
    let mut at = match bytes.get(place.start) {
        Some(b'{') => skip_space(bytes, place.start + 1),
        _ => return members,
    };
    while at < place.end && bytes[at] == b'"' {
        let name = at..skip_value(bytes, at);
        let colon = skip_space(bytes, name.end);
        let start = skip_space(bytes, colon + 1);
        let value = start..skip_value(bytes, start);
        at = next(bytes, value.end);
        members.push(Member { name, value });
    }
    members
}

/// The elements of the array at `place`; empty if it is not an array.
pub(crate) fn elements(text: &str, place: &Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut elements = Vec::new();
    let mut at = match bytes.get(place.start) {
        Some(b'[') => skip_space(bytes, place.start + 1),
        _ => return elements,
    };
    while at < place.end && bytes[at] != b']' {
        let element = at..skip_value(bytes, at);
        at = next(bytes, element.end);
        elements.push(element);
    }
    elements
}

/// The value of the last member called `name`. If a name is repeated, most JSON parsers use the last one.
fn member<'a>(text: &str, members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().rfind(|member| string(text, &member.name).is_some_and(|found| found == name))
}

/// Of a longer string, only the beginning and the end are decoded: no more of it is read, and a copy of a huge one would
/// take as much memory again.
const MAX_STRING_BYTES: usize = 4 * 1024 * 1024;
const END_BYTES: usize = 1024 * 1024;

/// The string at `place`; `None` if it is not a string. A very long one is cut in its middle.
pub(crate) fn string<'a>(text: &'a str, place: &Range<usize>) -> Option<Cow<'a, str>> {
    let inner = text[place.clone()].strip_prefix('"')?.strip_suffix('"')?;
    if inner.len() <= MAX_STRING_BYTES {
        return decoded(inner);
    }
    let begin = character_from(inner, MAX_STRING_BYTES - END_BYTES);
    let end = character_from(inner, inner.len() - END_BYTES);
    Some(Cow::Owned(format!("{}\n{}", decoded(&inner[..begin])?, decoded(&inner[end..])?)))
}

/// The text inside a JSON string.
fn decoded(inner: &str) -> Option<Cow<'_, str>> {
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let read = |inner: &str| serde_json::from_str::<String>(&format!("\"{inner}\"")).ok();
    read(inner).or_else(|| read(&without_lone_surrogates(inner))).map(Cow::Owned)
}

/// The inside of a JSON string with the replacement character for each half of a surrogate pair. A program that cuts a text
/// after so many units of UTF-16 may cut a character.
fn without_lone_surrogates(inner: &str) -> String {
    let unit = |at: usize| {
        let digits = inner.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(inner.len());
    let mut at = 0;
    while let Some(escape) = inner[at..].find('\\').map(|found| at + found) {
        mended.push_str(&inner[at..escape]);
        let (length, is_whole) = match (unit(escape), unit(escape + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, true),
            (Some(0xd800..=0xdfff), _) => (6, false),
            (Some(_), _) => (6, true),
            (None, _) => (2, true),
        };
        let end = (escape + length).min(inner.len());
        mended.push_str(if is_whole { &inner[escape..end] } else { "\u{fffd}" });
        at = end;
    }
    mended.push_str(&inner[at..]);
    mended
}

/// The first place, from `least` on, at which a character of the inside of a JSON string begins.
fn character_from(inner: &str, least: usize) -> usize {
    let bytes = inner.as_bytes();
    let mut at = 0;
    while at < least.min(bytes.len()) {
        at += match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        // The second half of a surrogate pair belongs to the first.
        let is_second = |half: &[u8]| {
            half.starts_with(b"\\u") && matches!(half[2..], [b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..])
        };
        if bytes.get(at..at + 4).is_some_and(is_second) {
            at += 6;
        }
    }
    (at..=bytes.len()).find(|at| inner.is_char_boundary(*at)).unwrap_or(bytes.len())
}

/// A text, escaped for the inside of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Changes to a text: each replaces a range.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn insert(&mut self, at: usize, text: String) {
        self.0.push((at..at, text));
    }

    /// Removes some elements of a list, together with the commas that are no longer needed. `all` are the places of
    /// all elements, in their order.
    pub(crate) fn remove(&mut self, all: &[Range<usize>], is_removed: impl Fn(usize) -> bool) {
        let mut last_kept: Option<usize> = None;
        let mut place = 0;
        while place < all.len() {
            if !is_removed(place) {
                last_kept = Some(place);
                place += 1;
                continue;
            }
            let end = (place..all.len()).find(|place| !is_removed(*place));
            let range = match (last_kept, end) {
                // Up to the next element that stays.
                (_, Some(end)) => all[place].start..all[end].start,
                // From the end of the last element that stays.
                (Some(kept), None) => all[kept].end..all[all.len() - 1].end,
                (None, None) => all[place].start..all[all.len() - 1].end,
            };
            self.0.push((range, String::new()));
            place = end.unwrap_or(all.len());
        }
    }

    /// The position of `at` in the changed text, before insertions at that position.
    pub(crate) fn moved(&self, at: usize) -> usize {
        let before = self.0.iter().filter(|(range, _)| range.start < at);
        before.fold(at, |moved, (range, new)| moved + new.len() - range.len())
    }

    /// The pieces of the text with the changes; `length` is that of the text. Insertions at the same position keep the
    /// order in which they were added.
    pub(crate) fn pieces(mut self, length: usize) -> Vec<Piece> {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut pieces = Vec::with_capacity(2 * self.0.len() + 1);
        let mut at = 0;
        for (range, new) in self.0 {
            pieces.push(Piece::Kept(at..range.start.max(at)));
            pieces.push(Piece::New(new));
            at = range.end.max(at);
        }
        pieces.push(Piece::Kept(at..length));
        pieces
    }
}

/// A piece of a changed text.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A range of the text, unchanged.
    Kept(Range<usize>),
    /// A text that was inserted.
    New(String),
}

impl Piece {
    /// The bytes of the piece. `text` is the unchanged one.
    pub(crate) fn bytes<'p>(&'p self, text: &'p [u8]) -> &'p [u8] {
        match self {
            Self::Kept(range) => &text[range.clone()],
            Self::New(new) => new.as_bytes(),
        }
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The start of the next element after the comma, or of the closing bracket.
fn next(bytes: &[u8], end: usize) -> usize {
    let at = skip_space(bytes, end);
    match bytes.get(at) {
        Some(b',') => skip_space(bytes, at + 1),
        _ => at,
    }
}

/// The end of the value that begins at `at`.
fn skip_value(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => {
            let mut depth = 0;
            let mut at = at;
            while at < bytes.len() {
                match bytes[at] {
                    b'"' => {
                        at = skip_string(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            at
        }
        _ => {
            let rest = &bytes[at.min(bytes.len())..];
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            at + rest.iter().position(is_end).unwrap_or(rest.len())
        }
    }
}

fn skip_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_are() {
        let text = r#" { "a" : [1, "x\"]", {"b": []} ] , "\u0061" : -1.50e+3,"c":"" } "#;
        let (text, place) = parse(text.as_bytes()).unwrap();
        let found = members(text, &place);
        let values: Vec<&str> = found.iter().map(|member| &text[member.value.clone()]).collect();
        assert_eq!(values, [r#"[1, "x\"]", {"b": []} ]"#, "-1.50e+3", r#""""#]);
        assert_eq!(
            &text[member(text, &found, "a").unwrap().value.clone()],
            "-1.50e+3",
            "the last one counts"
        );
        let items = elements(text, &found[0].value);
        let items: Vec<&str> = items.into_iter().map(|item| &text[item]).collect();
        assert_eq!(items, ["1", r#""x\"]""#, r#"{"b": []}"#]);
        assert_eq!(string(text, &found[2].value).as_deref(), Some(""));
        assert!(members("[]", &(0..2)).is_empty() && elements("{}", &(0..2)).is_empty());
        assert!(members("{ }", &(0..3)).is_empty() && elements("[ ]", &(0..3)).is_empty());
        for wrong in [&b"{"[..], b"", b"{\"a\":1}x", b"\"\xff\"", b"{'a':1}"] {
            assert!(parse(wrong).is_err());
        }
    }

    #[test]
    fn things_of_a_list_go_with_their_commas() {
        let check = |removed: &[usize], expected: &str| {
            let text = "[ 0 , 1,2 ,3 ]";
            let mut edits = Edits::default();
            edits.remove(&elements(text, &(0..text.len())), |place| removed.contains(&place));
            let pieces = edits.pieces(text.len());
            let bytes: Vec<u8> =
                pieces.iter().flat_map(|piece| piece.bytes(text.as_bytes()).to_vec()).collect();
            assert_eq!(bytes, expected.as_bytes(), "{expected}");
        };
        check(&[], "[ 0 , 1,2 ,3 ]");
        check(&[0], "[ 1,2 ,3 ]");
        check(&[1, 2], "[ 0 , 3 ]");
        check(&[3], "[ 0 , 1,2 ]");
        check(&[0, 3], "[ 1,2 ]");
        check(&[2, 3], "[ 0 , 1 ]");
        check(&[0, 1, 2, 3], "[  ]");
    }

    #[test]
    fn a_huge_string_is_read_at_its_beginning_and_its_end() {
        let filler = [r"\u4e2d", r"\ud83e\udd80", "\u{4e2d}", r#"\""#, "a", r"\n"].concat();
        let inner = format!("begin{}end", filler.repeat(2 * MAX_STRING_BYTES / filler.len()));
        for shift in 0..filler.len() {
            let text = format!("\"{}{inner}\"", "x".repeat(shift));
            let read = string(&text, &(0..text.len())).unwrap();
            assert!(read.len() < MAX_STRING_BYTES && read.trim_start_matches('x').starts_with("begin"));
            assert!(read.ends_with("end") && !read.contains('\u{fffd}'));
        }
        let plain = format!("\"{}\"", "b".repeat(2 * MAX_STRING_BYTES));
        assert_eq!(string(&plain, &(0..plain.len())).unwrap().len(), MAX_STRING_BYTES + 1);
    }
}
