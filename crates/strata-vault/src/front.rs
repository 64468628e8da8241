//! A Markdown file with YAML front matter: reading it, and changing keys of the front matter while every other byte stays.
//!
//! Deliberately left alone: the meaning of the keys ([`super::form`]).

mod wording;

use serde_json::{Map, Value};
use strata_core::nul::check_nul;

use super::conflict;

/// The largest front matter, in bytes. A turn's notes and a client's metadata are in it.
const MAX_FRONT_BYTES: usize = 16 << 20;

/// The most YAML nodes of a front matter, and its greatest depth. Strata's own has a few dozen nodes in two levels.
const MAX_NODES: usize = 2_000;
const MAX_DEPTH: usize = 32;

/// The key that marks a body to be read byte for byte. Without it, empty lines around the text do not count and line ends
/// are `\n`.
const VERBATIM: &str = "verbatim";

/// Why a file cannot be read, with the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub(crate) line: Option<u64>,
    /// The mistake and its remedy.
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line as u64), reason: reason.into() }
    }
}

/// A file's front matter and text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    /// The lines between the fences as they stand in the file; empty if the file has no front matter.
    front: String,
    /// The bytes after the closing fence as they stand in the file.
    raw_body: String,
    /// The keys.
    pub(crate) fields: Map<String, Value>,
}

/// One of Strata's keys with its value as YAML; `None` if the key must be absent.
pub(crate) type Field = (&'static str, Option<String>);

impl Document {
    /// Reads a file's bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            Fault::at(line, "the file is not UTF-8; save it in that encoding")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Err(error) = check_nul("the file", text) {
            let line = text.split('\0').next().unwrap_or_default().matches('\n').count() + 1;
            return Err(Fault::at(line, error.message()));
        }
        let Some((front, raw_body)) = split(text)? else {
            return Ok(Self { front: String::new(), raw_body: text.to_owned(), fields: Map::new() });
        };
        let fields = parse_front(front)?;
        Ok(Self { front: front.to_owned(), raw_body: raw_body.to_owned(), fields })
    }

    /// Whether the text counts byte for byte.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.fields.get(VERBATIM) == Some(&Value::Bool(true))
    }

    /// The text of the file.
    pub(crate) fn body(&self) -> String {
        if self.is_verbatim() {
            return self.raw_body.strip_suffix('\n').unwrap_or(&self.raw_body).to_owned();
        }
        plain(&self.raw_body)
    }

    /// The file with these keys and this text. Keys that are not named stay, with their formatting and comments, and so does
    /// a text that already reads the same.
    pub(crate) fn with(&self, fields: &[Field], body: &str) -> String {
        let keeps_body = self.body() == body && !self.raw_body.is_empty();
        let is_altered = || plain(&format!("{body}\n")) != body;
        // A text with marks like git's would be taken for a conflict.
        let verbatim = if keeps_body {
            self.is_verbatim()
        } else {
            is_altered() || conflict::begun(body.as_bytes()).is_some()
        };
        let mut fields = fields.to_vec();
        fields.push((VERBATIM, verbatim.then(|| "true".to_owned())));
        let front = self.patched(&fields);
        if keeps_body {
            format!("---\n{front}---\n{}", self.raw_body)
        } else {
            format!("---\n{front}---\n{body}\n")
        }
    }

    /// The line of a key in the file, from 1.
    pub(crate) fn line_of(&self, key: &str) -> Option<u64> {
        let line = self.front.lines().position(|line| key_of(line) == Some(key))?;
        Some(line as u64 + 2)
    }

    /// A fault of a key.
    pub(crate) fn fault(&self, key: &str, reason: impl Into<String>) -> Fault {
        Fault { line: self.line_of(key), reason: reason.into() }
    }

    /// The lines of the front matter with these keys. A key that has its value already keeps its line.
    fn patched(&self, fields: &[Field]) -> String {
        let lines = |fields: &[&Field]| -> String {
            fields.iter().filter_map(|(key, value)| Some(format!("{key}: {}\n", value.as_ref()?))).collect()
        };
        let all: Vec<&Field> = fields.iter().collect();
        if self.front.is_empty() {
            return lines(&all);
        }
        let given = parse_front(&lines(&all)).unwrap_or_default();
        let changed: Vec<&Field> =
            all.iter().copied().filter(|(key, _)| self.fields.get(*key) != given.get(*key)).collect();
        let mut wanted = self.fields.clone();
        fields.iter().for_each(|(key, _)| drop(wanted.remove(*key)));
        wanted.extend(given);
        let patched = patched_lines(&self.front, &changed);
        if parse_front(&patched).is_ok_and(|read| read == wanted) {
            return patched;
        }
        // The front matter is in a style that has no line for each key, such as `{id: …}`: it is written anew.
        let foreign = self.fields.iter().filter(|(key, _)| !fields.iter().any(|(name, _)| name == key));
        lines(&all) + &foreign.map(|(key, value)| entry(key, value) + "\n").collect::<String>()
    }
}

/// A text without the empty lines around it and with `\n` as line end.
fn plain(text: &str) -> String {
    text.replace("\r\n", "\n").trim_matches('\n').trim_end().to_owned()
}

/// The front matter and what follows it; `None` if the file has none.
fn split(text: &str) -> Result<Option<(&str, &str)>, Fault> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return Ok(None) };
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            if end - first.len() > MAX_FRONT_BYTES {
                return Err(Fault::at(1, format!("the front matter is larger than {MAX_FRONT_BYTES} bytes")));
            }
            return Ok(Some((&text[first.len()..end], &text[end + line.len()..])));
        }
        end += line.len();
    }
    Err(Fault::at(1, "the front matter has no end; close it with a line `---`"))
}

fn parse_front(front: &str) -> Result<Map<String, Value>, Fault> {
    read_front(front).map_err(|error| {
        let (line, error) = first_mistake(front, error);
        Fault::at(line, format!("the front matter cannot be read: {}", wording::of(&error)))
    })
}

fn read_front(front: &str) -> Result<Map<String, Value>, serde_saphyr::Error> {
    if front.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Map::new());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_depth: MAX_DEPTH, max_aliases: 64, max_anchors: 64, max_documents: 1 },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(front, options)
}

/// The most lines of a front matter in which a mistake is looked for. Strata's own has about twenty.
const MOST_SEARCHED: usize = 200;

/// The line of the file with the first mistake, and the mistake: behind the last line that can be read with all before it. The
/// parser goes on to where it has to give up, which for quotes and brackets that are not closed is some later line.
fn first_mistake(front: &str, error: serde_saphyr::Error) -> (usize, serde_saphyr::Error) {
    // The lines of the file begin with the fence.
    let told = error.location().and_then(|location| usize::try_from(location.line()).ok()).unwrap_or(0) + 1;
    let lines: Vec<&str> = front.split_inclusive('\n').take(told).collect();
    if lines.len() > MOST_SEARCHED {
        return (told, error);
    }
    let read = |count: usize| read_front(&lines[..count].concat());
    let readable = (0..lines.len()).rev().find(|count| read(*count).is_ok()).unwrap_or(0);
    match read(lines.len().min(readable + 1)) {
        Err(first) => (readable + 2, first),
        Ok(_) => (told, error),
    }
}

/// Replaces the lines of each key, adds the lines of keys that are not there and removes those of keys without a value.
fn patched_lines(front: &str, fields: &[&Field]) -> String {
    let mut patched = String::with_capacity(front.len());
    let mut written: Vec<&str> = Vec::new();
    let mut in_ours = false;
    for line in front.split_inclusive('\n') {
        if let Some(key) = key_of(line) {
            let ours = fields.iter().find(|(name, _)| *name == key);
            in_ours = ours.is_some();
            if let Some((name, value)) = ours
                && !written.contains(name)
            {
                written.push(name);
                patched.extend(value.as_ref().map(|value| format!("{name}: {value}\n")));
            }
        } else if line.trim().is_empty() || line.starts_with('#') {
            // A comment or an empty line between two keys belongs to the person.
            in_ours = false;
        }
        if !in_ours {
            patched.push_str(line);
        }
    }
    if !patched.is_empty() && !patched.ends_with('\n') {
        patched.push('\n');
    }
    let missing = fields.iter().filter(|(name, _)| !written.contains(name));
    patched.extend(missing.filter_map(|(name, value)| Some(format!("{name}: {}\n", value.as_ref()?))));
    patched
}

/// The key that begins on this line, if it is one at the top level.
fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let quoted = key.len() > 1
        && (key.starts_with('"') && key.ends_with('"') || key.starts_with('\'') && key.ends_with('\''));
    let key = if quoted { &key[1..key.len() - 1] } else { key };
    let is_name = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']);
    (is_name && ends && !key.starts_with('-')).then_some(key)
}

/// The longest key that YAML takes without a mark before it is 1,024 characters.
const MAX_PLAIN_KEY: usize = 1_000;

/// A key of a person with its value, as YAML on one line or, if the key is very long, on two.
fn entry(key: &str, value: &Value) -> String {
    let key = text(key);
    if key.chars().count() > MAX_PLAIN_KEY {
        return format!("? {key}\n: {}", flow(value));
    }
    format!("{key}: {}", flow(value))
}

/// A value of a person in YAML's flow style.
fn flow(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, value)| entry(key, value)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// Words that YAML's older versions read as something else than text.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// A text as a YAML scalar: bare if it is a plain word or a UUID, otherwise in double quotes.
pub(crate) fn text(value: &str) -> String {
    let is_uuid = value.len() == 36 && uuid::Uuid::parse_str(value).is_ok();
    let is_word = value.len() <= 64
        && value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && !RESERVED.contains(&value.to_ascii_lowercase().as_str());
    if is_uuid || is_word {
        return value.to_owned();
    }
    let json = Value::from(value).to_string();
    let mut quoted = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => quoted.push(other),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Document {
        Document::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_persons_formatting_survives_a_change() {
        let file = "---\n# mine\nid: a  # the id\ntags:\n- one\n- two\nkind: 'fact'\n\nnested: {x: [1, 2]}\n---\n\nText here.\n\n";
        let patched = parse(file)
            .with(&[("kind", Some("event".to_owned())), ("seq", Some("3".to_owned()))], "Text here.");
        assert_eq!(
            patched,
            "---\n# mine\nid: a  # the id\ntags:\n- one\n- two\nkind: event\n\nnested: {x: [1, 2]}\nseq: 3\n---\n\nText here.\n\n"
        );
        let removed = parse(&patched).with(&[("kind", None), ("seq", None)], "New.");
        assert_eq!(
            removed,
            "---\n# mine\nid: a  # the id\ntags:\n- one\n- two\n\nnested: {x: [1, 2]}\n---\nNew.\n"
        );
    }

    #[test]
    fn a_key_over_several_lines_is_replaced_whole() {
        let file = "---\nsources:\n- a\n- b\nnote: >\n  two\n  lines\nkeep: yes\n---\nx\n";
        let patched = parse(file).with(&[("sources", Some("[c]".to_owned())), ("note", None)], "x");
        assert_eq!(patched, "---\nsources: [c]\nkeep: yes\n---\nx\n");
    }

    #[test]
    fn a_front_matter_in_flow_style_is_written_anew() {
        let patched =
            parse("---\n{id: a, mine: [1, 2]}\n---\nx\n").with(&[("id", Some("b".to_owned()))], "x");
        let read = parse(&patched);
        assert_eq!(Value::Object(read.fields), json!({"id": "b", "mine": [1, 2]}), "{patched}");
    }

    #[test]
    fn a_very_long_key_of_a_person_survives() {
        let long = "\\".repeat(700);
        for file in
            [format!("---\n {long}: mine\n---\nx\n"), format!("---\n{{a: [{{{long}: mine}}]}}\n---\nx\n")]
        {
            let document = parse(&file);
            let read = parse(&document.with(&[("id", Some("b".to_owned()))], "x"));
            let mut wanted = document.fields.clone();
            wanted.insert("id".to_owned(), json!("b"));
            assert_eq!(Value::Object(read.fields), Value::Object(wanted));
        }
    }

    #[test]
    fn line_ends_and_empty_lines_of_an_editor_do_not_count() {
        assert_eq!(parse("---\r\nid: a\r\n---\r\n\r\none\r\ntwo\r\n").body(), "one\ntwo");
        assert_eq!(parse("\u{feff}---\nid: a\n---\n\n\ntext\n\n").body(), "text");
        assert_eq!(parse("no front matter\n").body(), "no front matter");
    }

    #[test]
    fn a_fault_names_its_line() {
        let check = |bytes: &[u8], line: u64, reason: &str| {
            let fault = Document::parse(bytes).unwrap_err();
            assert_eq!(fault.line, Some(line), "{fault:?}");
            assert!(fault.reason.contains(reason), "{fault:?}");
        };
        check(b"---\nid: a\nb: [1\n---\nx", 3, "cannot be read");
        check(b"---\nid: a\n", 1, "no end");
        check(b"ok\n\xff\xfe", 2, "UTF-8");
        check(b"ok\n\nx\0", 3, "NUL");
        check(b"---\nid: a\nid: b\n---\n", 3, "the key `id` stands there twice");
    }

    #[test]
    fn a_yaml_bomb_is_refused() {
        let mut bomb = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..20 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(", ")));
        }
        bomb.push_str("---\nx");
        assert!(Document::parse(bomb.as_bytes()).is_err());
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(5_000), "]".repeat(5_000));
        assert!(Document::parse(deep.as_bytes()).is_err());
        let wide = format!("---\na: [{}]\n---\n", "x, ".repeat(100_000));
        assert!(Document::parse(wide.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_comes_back(body in "(?s)[^\0]{0,200}", value in "(?s)[^\0]{0,60}") {
            let written = Document::default().with(&[("key", Some(text(&value)))], &body);
            let read = parse(&written);
            prop_assert_eq!(&read.body(), &body);
            prop_assert_eq!(read.fields["key"].as_str(), Some(value.as_str()));
            // A later change of a key leaves the text alone.
            let changed = parse(&read.with(&[("key", Some("other".to_owned()))], &body));
            prop_assert_eq!(changed.body(), body);
        }

        #[test]
        fn text_that_looks_like_front_matter_comes_back(lines in proptest::collection::vec("(---|\\.\\.\\.|id: x|\r|# h|- a|)", 0..8), end in "[\r\n]{0,3}") {
            let body = format!("{}{end}", lines.join("\n"));
            let read = parse(&Document::default().with(&[("id", Some("a".to_owned()))], &body));
            prop_assert_eq!(read.body(), body);
        }
    }
}
