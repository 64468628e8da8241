//! Folds entries that leave the history into the summary, whose size stays bounded.
//!
//! The summary is a heading and one line per entry. When it would grow beyond its limit, the newest lines keep their
//! full length within three quarters of the room, older lines are shortened to about a sentence, and the oldest become
//! a number in one line («… 120 earlier entries»). Text before the heading comes from another author and stays
//! unchanged.

use strata_language::sentences::grapheme_border;

use super::compact::CompactionLimits;
use super::document::HistoryEntry;

/// The heading of compaction's part of a summary.
pub(crate) const SUMMARY_HEADING: &str = "Previous conversation summary:";

const ENTRY: &str = "- ";
const COUNT: &str = "… ";
const COUNT_END: &str = " earlier entries";

/// The summary that begins with the text of `summary` and continues with `entries`.
pub(super) fn fold(summary: &str, entries: &[HistoryEntry], limits: &CompactionLimits) -> String {
    let (foreign, own) = split(summary);
    let mut earlier = 0;
    let mut lines = Vec::new();
    for line in own.lines().filter(|line| !line.trim().is_empty()) {
        match counted(line) {
            Some(count) => earlier += count,
            None => lines.push(line),
        }
    }
    let older = lines.iter().map(|line| LineSource::Line(line));
    let sources: Vec<LineSource<'_>> = older.chain(entries.iter().map(LineSource::Entry)).collect();
    let kept = shorten(&sources, earlier > 0, limits);
    earlier += (sources.len() - kept.len()) as u64;

    let mut text = String::from(foreign.trim_end());
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(SUMMARY_HEADING);
    if earlier > 0 {
        text.push('\n');
        text.push_str(&count_line(earlier));
    }
    for line in kept.iter().rev() {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// The source of a line of the summary.
enum LineSource<'a> {
    /// A line that an earlier compaction wrote.
    Line(&'a str),
    /// An entry that leaves the history now.
    Entry(&'a HistoryEntry),
}

impl LineSource<'_> {
    /// The line with at most this many characters of the message.
    fn line(&self, max_chars: usize) -> String {
        match self {
            Self::Line(line) => {
                let said = line.find(": ").map_or(0, |colon| colon + 2);
                format!("{}{}", &line[..said], cut(&line[said..], max_chars))
            }
            Self::Entry(entry) => {
                let role = cut(&one_line(&entry.role, MAX_ROLE_CHARS), MAX_ROLE_CHARS);
                format!("{ENTRY}{role}: {}", cut(&one_line(&entry.content, max_chars), max_chars))
            }
        }
    }
}

/// The maximum length of a role. Roles are words; a longer text in their place must not fill the summary.
const MAX_ROLE_CHARS: usize = 32;

/// The lines that fit, newest first. It works backwards and stops at the limit, so that ten thousand entries cost no
/// more than the lines that are kept.
fn shorten(sources: &[LineSource<'_>], has_count: bool, limits: &CompactionLimits) -> Vec<String> {
    let fixed = SUMMARY_HEADING.chars().count();
    let room = limits.max_summary_chars.saturating_sub(fixed);
    let in_full = take(sources, room, limits.max_entry_chars);
    let whole = in_full.len() == sources.len();
    let count_chars = count_line(u64::MAX).chars().count() + 1;
    if whole && (!has_count || chars(&in_full) + count_chars <= room) {
        return in_full;
    }
    let room = room.saturating_sub(count_chars);
    let mut lines = take(sources, room / 4 * 3, limits.max_entry_chars);
    let older = &sources[..sources.len() - lines.len()];
    lines.extend(take(older, room.saturating_sub(chars(&lines)), limits.max_short_entry_chars));
    lines
}

/// The newest lines that fit into `room`, newest first.
fn take(sources: &[LineSource<'_>], room: usize, max_chars: usize) -> Vec<String> {
    let mut left = room;
    let mut lines = Vec::new();
    for source in sources.iter().rev() {
        let line = source.line(max_chars);
        let Some(rest) = left.checked_sub(line.chars().count() + 1) else { break };
        left = rest;
        lines.push(line);
    }
    lines
}

fn chars(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count() + 1).sum()
}

/// The text of another author, and the lines below our heading.
fn split(summary: &str) -> (&str, &str) {
    let is_heading = |at: usize| at == 0 || summary.as_bytes()[at - 1] == b'\n';
    let heading = summary.match_indices(SUMMARY_HEADING).map(|(at, _)| at).find(|at| is_heading(*at));
    match heading {
        Some(at) => (&summary[..at], &summary[at + SUMMARY_HEADING.len()..]),
        None => (summary, ""),
    }
}

fn count_line(count: u64) -> String {
    format!("{COUNT}{count}{COUNT_END}")
}

fn counted(line: &str) -> Option<u64> {
    line.strip_prefix(COUNT)?.strip_suffix(COUNT_END)?.parse().ok()
}

/// The beginning of a text on one line, long enough to tell whether the text is longer than `max_chars`.
fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut left = max_chars + 1;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if left == 0 {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
            left -= 1;
        }
        let end = word.char_indices().nth(left).map_or(word.len(), |(end, _)| end);
        line.push_str(&word[..end]);
        left -= word[..end].chars().count();
    }
    line
}

/// At most `max_chars` characters of a line. It ends with a sentence if possible, or else with a word, and never inside
/// a grapheme.
fn cut(line: &str, max_chars: usize) -> String {
    if line.char_indices().nth(max_chars).is_none() {
        return line.to_owned();
    }
    let room = max_chars.saturating_sub(1);
    let limit = line.char_indices().nth(room).map_or(line.len(), |(end, _)| end);
    let limit = grapheme_border(line, limit);
    let head = &line[..limit];
    let half = head.len() / 2;
    let sentence = head
        .char_indices()
        .filter(|(at, c)| {
            let end = at + c.len_utf8();
            matches!(c, '。' | '！' | '？') || (matches!(c, '.' | '!' | '?') && line[end..].starts_with(' '))
        })
        .map(|(at, c)| at + c.len_utf8())
        .next_back();
    let word = || head.rfind(' ').filter(|end| *end > half);
    let end = sentence.filter(|end| *end > half).or_else(word).unwrap_or(limit);
    format!("{}…", line[..grapheme_border(line, end)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_a_sentence_a_word_or_a_grapheme() {
        let check = |text: &str, max: usize, expected: &str| assert_eq!(cut(text, max), expected);
        check("short", 5, "short");
        check("It rains today. It will not tomorrow.", 20, "It rains today.…");
        check("v1.2.3.4.5.6.7.8.9 is out", 10, "v1.2.3.4.…");
        check("one two three four", 12, "one two…");
        check("温度稳定。压力正常，但是流量下降了很多", 8, "温度稳定。…");
        check("温度稳定压力正常流量下降", 6, "温度稳定压…");
        // A flag is two characters and one grapheme, a family seven.
        check("🇩🇪🇫🇷🇮🇹", 4, "🇩🇪…");
        check("👨‍👩‍👧‍👦 here", 5, "…");
    }

    #[test]
    fn a_text_of_many_lines_becomes_one() {
        assert_eq!(one_line(" a\n\tb \r\n c\u{7} d ", 99), "a b c d");
        assert!(one_line(&"x".repeat(1_000), 10).chars().count() >= 11);
    }
}
