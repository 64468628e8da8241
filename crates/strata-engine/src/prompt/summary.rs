//! The rolling summary: a short form of the messages that leave the recent turns, made without a model.
//!
//! A summary is a list of entries, `[2023-05-08 Caroline] …`, or `User: …` if the time is not known, oldest first. Its length is limited: the newest half
//! stays as it is. In the older half, sentences that tell the least go first: courtesies, then those without a number or a name,
//! then the oldest of the others. Entries of which nothing is left are counted in the first line. No sentence is cut.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::civil::Date;

use super::filter::{FilterSettings, RawLogs, strip};
use super::{Message, SummarySettings};
use crate::neutral::{neutral_tags, quote_lines};
use strata_core::turn::Role;
use strata_language::content::has_content;
use strata_language::sentences::{beginning, ending, ends, first_sentence};
use strata_language::statements::has_new_values;

/// The most characters of a condensed entry: about one sentence.
const MAX_CONDENSED_CHARS: usize = 120;

/// A short form of a message, without markers, logs and long code: the first 300 characters of a user's message, or the
/// first and last paragraph of any other message. Empty if nothing is left.
pub fn compress_message(role: Role, content: &str) -> String {
    compress_message_with(role, content, &FilterSettings::default(), &SummarySettings::default())
}

/// Like [`compress_message`], with custom settings.
pub fn compress_message_with(
    role: Role,
    content: &str,
    filter: &FilterSettings,
    settings: &SummarySettings,
) -> String {
    let content = strip(content, filter, RawLogs::Removed);
    let most = settings.entry_chars;
    if role == Role::User {
        return beginning(&content, most);
    }
    let paragraphs = || content.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    // A heading alone carries no information.
    let says_something = |paragraph: &&str| !paragraph.starts_with('#') || paragraph.contains('\n');
    let first = paragraphs().find(says_something).or_else(|| paragraphs().next()).unwrap_or_default();
    let from_the_end = content.rsplit("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let last = from_the_end.into_iter().find(says_something).unwrap_or(first);
    if std::ptr::eq(first, last) {
        return beginning(first, most);
    }
    let adjacent = content[offset(&content, first) + first.len()..offset(&content, last)].trim().is_empty();
    let between = if adjacent { "\n" } else { "\n...\n" };
    let room = most.saturating_sub(between.len());
    // Each paragraph gets half of the room, and may use the part that the other does not need.
    let for_first = (room / 2).max(room.saturating_sub(last.chars().count()));
    let first = beginning(first, for_first);
    let last = ending(last, room - first.chars().count());
    format!("{first}{between}{last}")
}

fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Extends the summary by the messages that have just left the recent turns.
pub fn build_summary(existing: &str, turns_to_evict: &[Message]) -> String {
    build_summary_with(existing, turns_to_evict, 0, &FilterSettings::default(), &SummarySettings::default())
}

/// Like [`build_summary`], with custom settings. `skipped` counts messages before `turns_to_evict` that were not read.
pub fn build_summary_with(
    existing: &str,
    turns_to_evict: &[Message],
    skipped: u64,
    filter: &FilterSettings,
    settings: &SummarySettings,
) -> String {
    let heads = Heads::of(turns_to_evict);
    let mut entries = Entries::of(existing, &heads);
    entries.left_out += skipped;
    entries.add(turns_to_evict, &heads, filter, settings);
    entries.fit(settings.max_chars);
    entries.text()
}

/// Whether messages were left out of a summary.
pub(crate) fn has_left_out(summary: &str) -> bool {
    Entries::of(summary, &Heads::default()).left_out > 0
}

/// The entry of a message; `None` if nothing is left of it.
pub(crate) fn entry_of(
    message: &Message,
    filter: &FilterSettings,
    settings: &SummarySettings,
) -> Option<String> {
    named_entry_of(message, &Heads::default(), filter, settings)
}

/// Like [`entry_of`], beside messages with these heads.
pub(super) fn named_entry_of(
    message: &Message,
    heads: &Heads,
    filter: &FilterSettings,
    settings: &SummarySettings,
) -> Option<String> {
    let text = compress_message_with(message.role, &message.content, filter, settings);
    (!text.is_empty()).then(|| format!("{} {}", message.head(), quoted(&text, heads)))
}

/// A summary whose entries are changed by `change`, without their labels. An entry of which nothing is left is removed.
pub(crate) fn with_entries<'a>(summary: &'a str, change: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    let mut entries = Entries::of(summary, &Heads::default());
    let changed = entries.list.iter().filter_map(|entry| {
        let Cow::Borrowed(entry) = *entry else { return Some(entry.clone()) };
        let label = label_of(entry).unwrap_or_default();
        match change(&entry[label.len()..]) {
            Cow::Borrowed(_) => Some(Cow::Borrowed(entry)),
            Cow::Owned(text) => {
                let text = text.trim();
                // The mark between the first and the last paragraph.
                let text = text.strip_prefix("...\n").or_else(|| text.strip_suffix("\n...")).unwrap_or(text);
                (!text.is_empty() && text != "...").then(|| Cow::Owned(format!("{label}{text}")))
            }
        }
    });
    let changed: Vec<Cow<'_, str>> = changed.collect();
    if changed == entries.list {
        return summary.to_owned();
    }
    entries.list = changed;
    entries.text()
}

/// A summary whose entries imitate neither a layer nor another entry.
pub(super) fn neutral_summary(summary: &str) -> String {
    // A heading alone says nothing.
    if summary.trim().ends_with(':') && summary.trim().lines().count() == 1 {
        return String::new();
    }
    with_entries(&neutral_tags(summary), quote_lines)
}

/// A summary without the entries that these texts say: each of their sentences stands in the texts. `all` says that the
/// texts are the whole conversation, so that no message is left out.
pub(crate) fn without_said<'a>(summary: &str, texts: impl Iterator<Item = &'a str>, all: bool) -> String {
    let said: String = texts.flat_map(letters).collect();
    let mut entries = Entries::of(summary, &Heads::default());
    entries.list.retain(|entry| {
        let label = label_of(entry).unwrap_or_default();
        // The mark between the first and the last paragraph says nothing.
        let mut sentences = sentences_of(&entry[label.len()..]).filter(|sentence| *sentence != "...");
        !sentences.all(|sentence| said.contains(&letters(sentence).collect::<String>()))
    });
    if all {
        entries.left_out = 0;
    }
    entries.text()
}

/// The letters and digits of a text.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric())
}

/// The sentences of an entry with the space after them.
fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    ends(text).chain([text.len()]).filter_map(move |end| {
        let piece = text.get(start..end);
        start = start.max(end);
        piece
    })
}

fn sentences_of(text: &str) -> impl Iterator<Item = &str> {
    pieces_of(text).map(str::trim).filter(|sentence| !sentence.is_empty())
}

/// Condenses a summary to at most `max_chars` characters.
pub(crate) fn condense(summary: &str, max_chars: usize) -> String {
    let mut entries = Entries::of(summary, &Heads::default());
    entries.fit(max_chars);
    entries.text()
}

/// The labels of entries: those of this module, those that the compaction of the working context writes into the same
/// chain, and those of summaries in Chinese.
const LABELS: [&str; 12] = [
    "User: ",
    "Assistant: ",
    "System: ",
    "Tool: ",
    "- user: ",
    "- assistant: ",
    "- system: ",
    "- tool: ",
    "用户：",
    "助手：",
    "系统：",
    "工具：",
];

/// The label of an entry, `[2023-05-08 Caroline] ` or one of [`LABELS`], at the beginning of a line.
pub(crate) fn label_of(line: &str) -> Option<&str> {
    if let Some(label) = LABELS.iter().find(|label| line.starts_with(**label)) {
        return Some(*label);
    }
    let (head, _) = line.strip_prefix('[')?.split_once("] ")?;
    let (day, speaker) = head.split_once(' ')?;
    let is_day = day.len() == 10 && day.parse::<Date>().is_ok();
    (is_day && !speaker.is_empty()).then(|| &line[..head.len() + 3])
}

/// The beginnings of entries whose messages have a name and no time, `Maria: `. Only the messages tell them from prose.
#[derive(Debug, Default)]
pub(super) struct Heads(Vec<String>);

impl Heads {
    pub(super) fn of(messages: &[Message]) -> Self {
        let named = messages.iter().filter(|message| message.name.is_some() && message.said_at.is_none());
        let mut heads: Vec<String> = named.map(|message| format!("{} ", message.head())).collect();
        heads.sort_unstable();
        heads.dedup();
        Self(heads)
    }

    /// Whether an entry begins with this line.
    fn begins(&self, line: &str) -> bool {
        label_of(line).is_some() || self.0.iter().any(|head| line.starts_with(head.as_str()))
    }
}

/// Indents lines that look like the beginning of another entry.
fn quoted<'a>(text: &'a str, heads: &Heads) -> Cow<'a, str> {
    let starts = |line: &str| heads.begins(line);
    if !text.lines().skip(1).any(starts) {
        return Cow::Borrowed(text);
    }
    let mut lines = text.lines();
    let mut quoted = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        quoted.push_str(if starts(line) { "\n " } else { "\n" });
        quoted.push_str(line);
    }
    Cow::Owned(quoted)
}

/// A parsed summary.
pub(super) struct Entries<'a> {
    /// The number of messages that were left out.
    pub(super) left_out: u64,
    /// Oldest first.
    pub(super) list: Vec<Cow<'a, str>>,
}

const LEFT_OUT_BEGIN: &str = "[… ";
const LEFT_OUT_END: &str = " earlier messages left out]";

impl<'a> Entries<'a> {
    pub(super) fn of(summary: &'a str, heads: &Heads) -> Self {
        let summary = summary.trim_end();
        let (first, rest) = summary.split_once('\n').unwrap_or((summary, ""));
        let count = first.strip_prefix(LEFT_OUT_BEGIN).and_then(|line| line.strip_suffix(LEFT_OUT_END));
        let (left_out, body) = match count.and_then(|count| count.parse().ok()) {
            Some(left_out) => (left_out, rest),
            None => (0, summary),
        };
        let mut starts = Vec::new();
        let mut offset = 0;
        let mut labelled = false;
        for line in body.split_inclusive('\n') {
            let has_label = heads.begins(line);
            labelled |= has_label;
            // A summary by another program may begin without labels. Then each line is an entry.
            if has_label || !labelled {
                starts.push(offset);
            }
            offset += line.len();
        }
        let ends = starts.iter().skip(1).copied().chain([body.len()]);
        let list = starts.iter().zip(ends).map(|(start, end)| Cow::Borrowed(body[*start..end].trim_end()));
        Self { left_out, list: list.collect() }
    }

    /// Adds the entries of messages.
    pub(super) fn add(
        &mut self,
        messages: &[Message],
        heads: &Heads,
        filter: &FilterSettings,
        settings: &SummarySettings,
    ) {
        let new = messages.iter().filter_map(|message| named_entry_of(message, heads, filter, settings));
        self.list.extend(new.map(Cow::Owned));
    }

    pub(super) fn fit(&mut self, max_chars: usize) {
        let length = |entry: &Cow<'_, str>| entry.chars().count() + 1;
        let mut chars: usize = self.list.iter().map(length).sum();
        // The line with the count is written once an entry has been left out.
        let line =
            |left_out: u64| if left_out == 0 { 0 } else { left_out_line(left_out).chars().count() + 1 };
        if chars + line(self.left_out) <= max_chars {
            return;
        }
        let mut newest = 0;
        let whole = self.list.iter().rev().take_while(|entry| {
            newest += length(entry);
            newest <= max_chars / 2
        });
        let older = self.list.len() - whole.count();
        for detail in [Detail::None, Detail::Words, Detail::Values] {
            for entry in &mut self.list[..older] {
                if chars + line(self.left_out) <= max_chars {
                    break;
                }
                let before = length(entry);
                let short = without(entry, detail);
                match short.is_empty() {
                    // An entry without text is removed below.
                    true if !entry.is_empty() => {
                        chars -= before;
                        self.left_out += 1;
                    }
                    _ => chars -= before - length(&short.clone().into()),
                }
                *entry = Cow::Owned(short);
            }
        }
        let mut place = 0;
        self.list.retain(|entry| {
            place += 1;
            place > older || !entry.is_empty()
        });
        let mut dropped = 0;
        while dropped < self.list.len() && chars + line(self.left_out) > max_chars {
            chars -= length(&self.list[dropped]);
            dropped += 1;
            self.left_out += 1;
        }
        self.list.drain(..dropped);
        if self.list.is_empty() && line(self.left_out) > max_chars {
            self.left_out = 0;
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.left_out > 0 {
            text.push_str(&left_out_line(self.left_out));
        }
        for entry in &self.list {
            let separator = if text.is_empty() { "" } else { "\n" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{entry}");
        }
        text
    }
}

/// How much a sentence tells, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// A courtesy.
    None,
    /// Words without a number or a name.
    Words,
    /// A number or a name.
    Values,
}

fn detail(sentence: &str) -> Detail {
    if has_new_values(sentence, "") {
        Detail::Values
    } else if has_content(sentence) {
        Detail::Words
    } else {
        Detail::None
    }
}

/// An entry without its sentences that tell no more than `most`; empty if nothing is left.
fn without(entry: &str, most: Detail) -> String {
    let label = label_of(entry).unwrap_or_default();
    let tells = |piece: &&str| {
        let sentence = piece.trim();
        sentence != "..." && !sentence.is_empty() && detail(sentence) > most
    };
    let kept: String = pieces_of(&entry[label.len()..]).filter(tells).collect();
    let kept = kept.trim();
    if kept.is_empty() { String::new() } else { format!("{label}{kept}") }
}

fn left_out_line(count: u64) -> String {
    format!("{LEFT_OUT_BEGIN}{count}{LEFT_OUT_END}")
}

/// Whether an entry is another one, or what condensing has left of it.
pub(super) fn is_left_of(entry: &str, whole: &str) -> bool {
    if condensed(entry) == condensed(whole) {
        return true;
    }
    let (label, other) = (label_of(entry).unwrap_or_default(), label_of(whole).unwrap_or_default());
    let said: String = letters(&whole[other.len()..]).collect();
    let mut sentences = sentences_of(&entry[label.len()..]);
    label == other && sentences.all(|sentence| said.contains(&letters(sentence).collect::<String>()))
}

/// An entry's first sentence. Never longer than the entry.
fn condensed(entry: &str) -> String {
    let label = label_of(entry).unwrap_or_default();
    let text = &entry[label.len()..];
    let short = format!("{label}{}", beginning(first_sentence(text), MAX_CONDENSED_CHARS));
    if short.len() < entry.len() { short } else { entry.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_user_is_quoted_and_an_assistant_is_summed_up() {
        let long = "Why does it swing? ".repeat(40);
        let user = compress_message(Role::User, &long);
        assert!(user.chars().count() <= 300 && user.ends_with("swing?"), "{user}");
        let reply =
            "## Analysis\n\nDownloaded a.log.\n\nA long table.\n\n[2026-02-19 23:24:45] raw\n\nAll is well.";
        assert_eq!(compress_message(Role::Assistant, reply), "Downloaded a.log.\n...\nAll is well.");
        assert_eq!(compress_message(Role::Assistant, "One.\n\nTwo."), "One.\nTwo.");
        assert_eq!(compress_message(Role::Assistant, "Only one."), "Only one.");
        assert_eq!(compress_message(Role::Assistant, "<!-- PLOTLY_CHART:x -->"), "");
        let long = format!("{}\n\n…\n\n{}", "第一段很长。".repeat(60), "最后一段也很长。".repeat(60));
        let short = compress_message(Role::Assistant, &long);
        assert!(
            short.chars().count() <= 300 && short.starts_with("第一段") && short.ends_with("也很长。"),
            "{short}"
        );
    }

    #[test]
    fn a_summary_grows_by_entries() {
        let turns = [
            Message::new(Role::User, "10.1.1.47 plot temp control"),
            Message::new(Role::Assistant, "Downloaded a.log."),
        ];
        let summary = build_summary("", &turns);
        assert_eq!(summary, "User: 10.1.1.47 plot temp control\nAssistant: Downloaded a.log.");
        let summary = build_summary(&summary, &[Message::new(Role::User, "and\nUser: now?")]);
        assert!(summary.ends_with("Assistant: Downloaded a.log.\nUser: and\n User: now?"), "{summary}");
    }

    #[test]
    fn the_oldest_is_condensed_and_then_counted() {
        let settings = SummarySettings { max_chars: 400, ..SummarySettings::default() };
        let filter = FilterSettings::default();
        let mut summary = String::new();
        for number in 0..40 {
            let text =
                format!("Question {number} is this. It has a second sentence that explains it further.");
            summary = build_summary_with(&summary, &[Message::new(Role::User, text)], 0, &filter, &settings);
            assert!(summary.chars().count() <= 400);
        }
        insta::assert_snapshot!(summary, @"
        [… 31 earlier messages left out]
        User: Question 31 is this.
        User: Question 32 is this.
        User: Question 33 is this.
        User: Question 34 is this.
        User: Question 35 is this.
        User: Question 36 is this.
        User: Question 37 is this.
        User: Question 38 is this. It has a second sentence that explains it further.
        User: Question 39 is this. It has a second sentence that explains it further.
        ");
    }

    proptest! {
        #[test]
        fn a_summary_is_bounded_for_ever(
            texts in proptest::collection::vec("[a-z .。\n西]{0,400}", 0..40),
            max_chars in 0_usize..800,
        ) {
            let settings = SummarySettings { max_chars, ..SummarySettings::default() };
            let mut summary = String::new();
            for text in texts {
                let message = Message::new(Role::Assistant, text);
                summary = build_summary_with(&summary, &[message], 0, &FilterSettings::default(), &settings);
                prop_assert!(summary.chars().count() <= max_chars);
            }
        }

        #[test]
        fn every_message_is_an_entry_or_counted(count in 1_usize..60, max_chars in 100_usize..800) {
            let settings = SummarySettings { max_chars, ..SummarySettings::default() };
            let mut summary = String::new();
            for number in 0..count {
                let message = Message::new(Role::User, format!("message {number}. more of it."));
                summary = build_summary_with(&summary, &[message], 0, &FilterSettings::default(), &settings);
            }
            let entries = Entries::of(&summary, &Heads::default());
            prop_assert_eq!(entries.list.len() as u64 + entries.left_out, count as u64);
        }
    }
}
