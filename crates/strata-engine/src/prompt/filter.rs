//! Filters messages for prompts: removes interface markers, raw logs and long code, and limits the length.
//!
//! Each function makes one pass over the text and looks back only a few bytes, so that a megabyte of unterminated
//! markers costs no more than a megabyte of prose. Lengths are counted in characters, and no grapheme is split.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::logs::strip_logs;
use strata_language::secrets::redacted;
use strata_language::sentences::{head_end, tail_start};

/// Replaces a raw log in a recent turn (layered-prompt design).
pub(crate) const RAW_LOG: &str = "[raw log — see findings above]";

/// The most spaces between `<!--` and the name of a marker.
const MAX_MARKER_SPACES: usize = 8;

/// The most passes over a message until nothing changes.
const MAX_PASSES: usize = 16;

/// The parts of messages that are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterSettings {
    /// Names of markers, as in `<!-- NAME:… -->`, that only the interface needs.
    pub markers: Vec<String>,
    /// A code block with more characters is replaced by a note (layered-prompt design).
    pub max_code_chars: usize,
    /// The most characters of a message, half from its beginning and half from its end (layered-prompt design).
    pub max_message_chars: usize,
}

impl Default for FilterSettings {
    fn default() -> Self {
        Self {
            markers: vec!["PLOTLY_CHART".to_owned(), "ATTACHED_IMAGES".to_owned()],
            max_code_chars: 2_000,
            max_message_chars: 3_000,
        }
    }
}

/// The treatment of raw logs, and of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawLogs {
    /// [`RAW_LOG`] replaces them, as in recent turns, which show secrets as they were said.
    Noted,
    /// They are removed, as in summaries and states. These outlive the turn, so no secret stands in them.
    Removed,
}

/// A message in the form of the recent turns: without markers, with notes instead of raw logs and long code, and with
/// at most 3,000 characters. A filtered message stays the same if it is filtered again.
pub fn filter_content(text: &str) -> String {
    filter_content_with(text, &FilterSettings::default())
}

/// Like [`filter_content`], with custom settings.
pub fn filter_content_with(text: &str, settings: &FilterSettings) -> String {
    let pass =
        |text: &str| cap(&strip(text, settings, RawLogs::Noted), settings.max_message_chars).into_owned();
    let mut shown = pass(text);
    // A cut in the middle can join one block's fence with another's end. The text is short now, and one more pass is
    // nearly always the last.
    for _ in 0..MAX_PASSES {
        let again = pass(&shown);
        if again == shown {
            break;
        }
        shown = again;
    }
    shown
}

/// A message without markers, raw logs and long code, at any length. All texts that are derived from a message begin here.
pub(crate) fn strip(text: &str, settings: &FilterSettings, logs: RawLogs) -> String {
    let unmarked = strip_markers(text, &settings.markers);
    let unlogged = strip_logs(&unmarked, logs);
    let stripped = strip_code(&unlogged, settings.max_code_chars);
    let tidied = if stripped.len() == text.len() { stripped.into_owned() } else { tidy(&stripped) };
    match logs {
        RawLogs::Noted => tidied,
        RawLogs::Removed => redacted(&tidied).into_owned(),
    }
}

/// Removes markers. An end belongs to the marker that began last, so that nested markers are removed too. The result
/// holds no marker, not even one that a removal has joined.
fn strip_markers<'a>(text: &'a str, names: &[String]) -> Cow<'a, str> {
    if !text.contains("<!--") {
        return Cow::Borrowed(text);
    }
    let mut left = String::with_capacity(text.len());
    let mut open = Vec::new();
    for part in text.split_inclusive([':', '>']) {
        left.push_str(part);
        if part.ends_with(':') {
            open.extend(marker_start(&left[..left.len() - 1], names));
        } else if left.ends_with("-->") {
            let bare = || marker_start(left[..left.len() - 3].trim_end(), names);
            if let Some(start) = open.pop().or_else(bare) {
                left.truncate(start);
                // The removed text may have held the beginning of other markers.
                while open.last().is_some_and(|other| *other >= start) {
                    open.pop();
                }
            }
        }
    }
    Cow::Owned(left)
}

/// The beginning of a marker whose name ends `text`.
fn marker_start(text: &str, names: &[String]) -> Option<usize> {
    names.iter().filter(|name| !name.is_empty()).find_map(|name| {
        let before = text.strip_suffix(name.as_str())?;
        let spaces = before.bytes().rev().take_while(u8::is_ascii_whitespace).take(MAX_MARKER_SPACES).count();
        Some(before[..before.len() - spaces].strip_suffix("<!--")?.len())
    })
}

/// Replaces fenced code blocks of more than `max_chars` characters by a note. A fence without an end is ignored,
/// because the text after it may be the conclusion.
fn strip_code(text: &str, max_chars: usize) -> Cow<'_, str> {
    if !text.contains("```") && !text.contains("~~~") {
        return Cow::Borrowed(text);
    }
    let mut left = String::with_capacity(text.len());
    let mut changed = false;
    let mut copied = 0;
    let mut open: Option<(usize, usize, Fence<'_>)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (offset, offset + line.len());
        offset = end;
        let Some(fence) = Fence::of(line) else { continue };
        match &open {
            None => open = Some((start, end, fence)),
            Some((block, inside, opening)) if fence.closes(opening) => {
                let chars = text[*inside..start].chars().count();
                if chars > max_chars {
                    left.push_str(&text[copied..*block]);
                    let language = opening.info.split_whitespace().next().unwrap_or_default();
                    let language: String =
                        language.chars().filter(|c| c.is_alphanumeric()).take(20).collect();
                    let of = if language.is_empty() { String::new() } else { format!(" of {language}") };
                    left.push_str(&format!("[code block left out: {chars} characters{of}]"));
                    left.push_str(if line.ends_with('\n') { "\n" } else { "" });
                    copied = end;
                    changed = true;
                }
                open = None;
            }
            Some(_) => {}
        }
    }
    left.push_str(&text[copied..]);
    if changed { Cow::Owned(left) } else { Cow::Borrowed(text) }
}

/// A line that begins or ends a code block.
struct Fence<'a> {
    mark: char,
    length: usize,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let bare = line.trim_start_matches(' ');
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = bare.trim_start_matches(mark);
        let length = bare.len() - info.len();
        (length >= 3).then_some(Self { mark, length, info: info.trim() })
    }

    fn closes(&self, opening: &Fence<'_>) -> bool {
        self.mark == opening.mark && self.length >= opening.length && self.info.is_empty()
    }
}

/// Closes the gaps that removals leave: at most one blank line in a row, and none at either end.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.trim().split('\n') {
        if line.trim().is_empty() {
            blank = true;
            continue;
        }
        if !tidied.is_empty() {
            tidied.push_str(if blank { "\n\n" } else { "\n" });
        }
        blank = false;
        tidied.push_str(line.trim_end());
    }
    tidied
}

/// The first and the last half of `max_chars` characters, with a mark between them that counts the missing characters.
fn cap(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let total = text.chars().count();
    let half = max_chars / 2;
    if total <= max_chars || is_capped(text, half) {
        return Cow::Borrowed(text);
    }
    let head = head_end(text, half);
    let tail = tail_start(text, half);
    let missing = text[head..tail].chars().count();
    Cow::Owned(format!("{}{MARK_BEGIN}{missing}{MARK_END}{}", &text[..head], &text[tail..]))
}

const MARK_BEGIN: &str = "\n[… ";
const MARK_END: &str = " characters left out …]\n";

/// Whether a text is a result of [`cap`].
fn is_capped(text: &str, half: usize) -> bool {
    text.find(MARK_BEGIN).is_some_and(|at| {
        let after = &text[at + MARK_BEGIN.len()..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let tail = after[digits..].strip_prefix(MARK_END);
        (1..=20).contains(&digits)
            && text[..at].chars().count() <= half
            && tail.is_some_and(|tail| tail.chars().count() <= half)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(filter_content(input), expected);
    }

    #[test]
    fn markers_are_stripped() {
        check("Here it is.\n<!-- PLOTLY_CHART:{\"a\":[1,2]} -->\nStable.", "Here it is.\n\nStable.");
        check("a <!-- ATTACHED_IMAGES:x.png,y.png --> b", "a  b");
        check("<!--PLOTLY_CHART:x-->", "");
        check("<!-- PLOTLY_CHART -->kept", "kept");
        check("a <!-- a comment: of another kind --> b", "a <!-- a comment: of another kind --> b");
        check("cut off <!-- PLOTLY_CHART:{\"a\":", "cut off <!-- PLOTLY_CHART:{\"a\":");
        check("<!-- PLOTLY<!-- PLOTLY_CHART:x -->_CHART:y --> z", "z");
        check("<!-- PLOTLY_CHART:a <!-- PLOTLY_CHART:b --> c --> d", "d");
        let settings = FilterSettings { markers: vec!["WIDGET".to_owned()], ..FilterSettings::default() };
        let text = "<!-- WIDGET:1 --><!-- PLOTLY_CHART:2 -->";
        assert_eq!(filter_content_with(text, &settings), "<!-- PLOTLY_CHART:2 -->");
    }

    #[test]
    fn raw_logs_are_noted() {
        let log = "[2026-02-19 23:24:45] PID out=45.1\n[2026-02-19 23:24:46.391] PID out=45.2\n";
        check(&format!("Before\n{log}After"), &format!("Before\n{RAW_LOG}\nAfter"));
        check(&format!("Before\n{log}\n  at frame 1\n{log}"), &format!("Before\n{RAW_LOG}"));
        check("[2026-02-19T23:24:45] alone", RAW_LOG);
        check(&format!("```\n{log}```\nAfter"), &format!("```\n{RAW_LOG}\n```\nAfter"));
        check(
            "The fan stopped at [2026-02-19 23:24:45], then",
            "The fan stopped at [2026-02-19 23:24:45], then",
        );
        check("INFO [2026-02-19 23:24:45] a\nWARN [2026-02-19 23:24:46] b", RAW_LOG);
        check("[2026-02-19] a date", "[2026-02-19] a date");
        let settings = FilterSettings::default();
        assert_eq!(strip(&format!("A\n{log}\n- B"), &settings, RawLogs::Removed), "A\n\n- B");
    }

    #[test]
    fn long_code_is_noted() {
        let code = "x = 1\n".repeat(400);
        check(
            &format!("See\n```python\n{code}```\nDone"),
            "See\n[code block left out: 2400 characters of python]\nDone",
        );
        let short = "x = 1\n".repeat(300);
        let text = format!("See\n```python\n{short}```\nDone");
        check(&text, &text);
        let unclosed = format!("See\n```\n{short}Done");
        check(&unclosed, &unclosed);
        check(&format!("````\n```\n{code}```\n````"), "[code block left out: 2408 characters]");
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let shown =
            filter_content(&format!("{}{}{}", "头".repeat(1_500), "中".repeat(777), "尾".repeat(1_500)));
        let expected =
            format!("{}\n[… 777 characters left out …]\n{}", "头".repeat(1_500), "尾".repeat(1_500));
        assert_eq!(shown, expected);
        check(&"好".repeat(3_000), &"好".repeat(3_000));
        // The family emoji has five characters. A cut at the 1,500th would split it.
        let family = "👨‍👩‍👧";
        let shown = filter_content(&format!("{}{family}{}", "a".repeat(1_498), "b".repeat(3_000)));
        assert!(shown.starts_with(&format!("{}\n[… ", "a".repeat(1_498))), "{shown}");
    }

    /// Each of these inputs would take hours if a function read the rest of the text again for each piece.
    #[test]
    fn ten_megabytes_of_nonsense_are_read_once() {
        let pieces = [
            "<!-- PLOTLY_CHART:",
            "<!--",
            "-->",
            "<!-- PLOTLY_CHART:-->",
            "[",
            "[[2026-02-19 23:24:4",
            " [2026-02-19 23:24:45] x\n\n",
            "```\n",
            "~~~a\n````\n",
            "\u{301}",
            "🇩",
            "👨\u{200d}",
            "\n",
            "\n[… 1",
        ];
        for piece in pieces {
            let text = piece.repeat(10_000_000 / piece.len());
            let shown = filter_content(&text);
            assert!(shown.chars().count() <= 3_100, "{piece:?}");
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("<!-- PLOTLY_CHART:".to_owned()),
            Just("<!--".to_owned()),
            Just("-->".to_owned()),
            Just("[2026-02-19 23:24:45] x".to_owned()),
            Just("\n".to_owned()),
            Just("\n```\n".to_owned()),
            Just("\n[… 12 characters left out …]\n".to_owned()),
            Just("👨‍👩‍👧e\u{301}🇩🇪".to_owned()),
            "[ a-z西]{0,40}",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn filtering_twice_changes_nothing(text in hostile(), max_message_chars in 0_usize..200, max_code_chars in 0_usize..40) {
            let settings = FilterSettings { max_message_chars, max_code_chars, ..FilterSettings::default() };
            let once = filter_content_with(&text, &settings);
            prop_assert_eq!(filter_content_with(&once, &settings), once);
        }

        #[test]
        fn no_cap_splits_a_grapheme(text in hostile(), max in 2_usize..60) {
            let capped = cap(&text, max);
            if capped != text && !is_capped(&text, max / 2) {
                let (head, tail) = (head_end(&text, max / 2), tail_start(&text, max / 2));
                let borders: Vec<_> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
                prop_assert!(borders.contains(&head) && borders.contains(&tail) && head <= tail);
                prop_assert!(capped.chars().count() <= max + 60);
            }
        }
    }
}
