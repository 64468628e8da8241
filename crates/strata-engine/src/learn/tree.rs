//! Adaptive summaries of texts of any length (memory-proxy design, 4.4): the depth of a summary, and the cutting of a
//! text into chunks.
//!
//! The number of tokens decides the level. Long texts become *chunks* of about 3,000 tokens, each of which begins with
//! the last 200 tokens of the previous chunk. Their summaries (L1) are grouped by five (L2), and the groups become one
//! summary (L3). A chunk ends at a paragraph, else at a sentence, else at a grapheme. A chunk's [`digest`] tells
//! whether it has to be summarised again.
//!
//! All functions are pure. [`crate::Summaries`] writes and stores the summaries.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use strata_core::hash::fnv;
use strata_core::ports::TokenCounter;
use strata_language::sentences;

/// The most tokens of a chunk, with its overlap (memory-proxy design: chunks of about 3,000).
pub(crate) const CHUNK_TOKENS: u32 = 3_000;

/// The most tokens that a chunk repeats from the previous chunk.
pub(crate) const OVERLAP_TOKENS: u32 = 200;

/// The number of summaries of one level that become one summary of the next level (memory-proxy design: about 5).
pub(crate) const GROUP: usize = 5;

/// The depth of a summary (memory-proxy design, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Level {
    /// Fewer than 100 tokens: no summary, only facts.
    None,
    /// 100 to 500 tokens: one sentence.
    Brief,
    /// 500 to 3,000 tokens: one paragraph.
    Standard,
    /// 3,000 to 15,000 tokens: chunks, and one summary of their summaries.
    Detailed,
    /// More than 15,000 tokens: L1, L2 and L3.
    Hierarchical,
}

impl Level {
    /// The level of a text with so many tokens. The ranges of the memory-proxy design touch; at a border the deeper
    /// level applies, except that HIERARCHICAL needs more than 15,000.
    pub fn of(tokens: u64) -> Self {
        match tokens {
            0..100 => Self::None,
            100..500 => Self::Brief,
            500..3_000 => Self::Standard,
            3_000..=15_000 => Self::Detailed,
            _ => Self::Hierarchical,
        }
    }

    /// The name of the level in the memory-proxy design.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The number of tokens that a summary should have: 20, 12 or 7 per cent of the text (memory-proxy design), but at
    /// least a sentence and at most a page.
    pub(crate) fn target_tokens(self, tokens: u64) -> u32 {
        let (share, least, most) = match self {
            Self::None => return 0,
            Self::Brief => (20, 30, 100),
            Self::Standard => (12, 80, 360),
            Self::Detailed | Self::Hierarchical => (7, 210, 1_000),
        };
        u32::try_from(tokens * share / 100).unwrap_or(u32::MAX).clamp(least, most)
    }
}

/// The kind of a text. Each kind has its own instructions (memory-proxy design, 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ContentType {
    /// A conversation of several speakers.
    #[default]
    Conversation,
    /// A person's notes about their own days.
    Journal,
    /// Any other text.
    Document,
}

impl ContentType {
    /// The name in templates and rows.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Detects the kind of a text. Lines that begin with a speaker are a conversation; dates and the word «I» are a
    /// journal. Any other text is a document.
    pub(crate) fn detect(text: &str) -> Self {
        let mut lines = 0_u32;
        let (mut spoken, mut personal, mut dated) = (0_u32, 0_u32, 0_u32);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(400) {
            lines += 1;
            spoken += u32::from(has_speaker(line));
            personal += u32::from(is_personal(line));
            dated += u32::from(begins_with_day(line));
        }
        match lines {
            0 => Self::Document,
            _ if spoken >= 2 && spoken * 3 >= lines => Self::Conversation,
            _ if personal * 3 >= lines && (dated > 0 || personal * 2 >= lines) => Self::Journal,
            _ => Self::Document,
        }
    }
}

/// Whether a line begins with a speaker: up to three words and a colon, with text after it.
fn has_speaker(line: &str) -> bool {
    let Some((speaker, said)) = line.split_once([':', '：']) else { return false };
    let speaker = speaker.trim_matches(['*', '[', ']', ' ']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-' | '\'');
    !said.trim().is_empty()
        && !said.starts_with("//")
        && (1..=24).contains(&speaker.chars().count())
        && speaker.split_whitespace().count() <= 3
        && speaker.chars().all(is_name)
        && speaker.chars().any(char::is_alphabetic)
}

fn is_personal(line: &str) -> bool {
    let is_first_person = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
        matches!(
            word,
            "I" | "I'm" | "I’m" | "I've" | "I’ve" | "I'd" | "I’d" | "I'll" | "I’ll" | "My" | "my" | "me"
        )
    };
    line.contains('我') || line.split_whitespace().any(is_first_person)
}

fn begins_with_day(line: &str) -> bool {
    const DAYS: [&str; 24] = [
        "today",
        "yesterday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may ",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "dear diary",
        "今天",
        "昨天",
    ];
    let line = line.trim_start_matches(['#', '*', ' ', '[']);
    let head: String = line.chars().take(12).collect::<String>().to_lowercase();
    let digits = head.chars().take_while(char::is_ascii_digit).count();
    let is_date =
        digits > 0 && head.chars().nth(digits).is_some_and(|c| matches!(c, '-' | '/' | '.' | '月' | '年'));
    is_date || DAYS.iter().any(|day| head.starts_with(day))
}

/// A chunk of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The byte range in the text, with the overlap.
    pub all: Range<usize>,
    /// The byte at which the overlap ends.
    pub fresh: usize,
}

/// Cuts a text into chunks of at most `size` tokens, each of which begins with at most `overlap` tokens of the previous
/// one. Without the overlaps the chunks are the text. `overlap` is limited to less than half of `size`, and `size` to
/// at least 2.
pub fn chunks(text: &str, size: u32, overlap: u32, tokens: &dyn TokenCounter) -> Vec<Chunk> {
    let size = size.max(2);
    let overlap = overlap.min((size - 1) / 2);
    let pieces = pieces(text, size - overlap, tokens);
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut next = 0;
    while next < pieces.len() {
        let fresh = pieces[next].0.start;
        let mut start = chunks.last().map_or(0, |last| overlap_start(text, &last.all, overlap, tokens));
        let mut room = size.saturating_sub(tokens.count(&text[start..fresh]));
        let mut taken = 0;
        while let Some((_, cost)) = pieces.get(next + taken).filter(|(_, cost)| *cost <= room) {
            room -= cost;
            taken += 1;
        }
        taken = taken.max(1);
        // The tokens of the parts are nearly always at least those of the whole. If they are fewer, the chunk takes
        // fewer parts.
        while tokens.count(&text[start..pieces[next + taken - 1].0.end]) > size {
            match taken {
                1 if start == fresh => break,
                1 => start = fresh,
                _ => taken -= 1,
            }
        }
        chunks.push(Chunk { all: start..pieces[next + taken - 1].0.end, fresh });
        next += taken;
    }
    chunks
}

/// The paragraphs of a text with their tokens. A paragraph of more than `most` tokens is split into sentences, and a
/// sentence of more than `most` tokens into parts that fit.
fn pieces(text: &str, most: u32, tokens: &dyn TokenCounter) -> Vec<(Range<usize>, u32)> {
    let mut pieces = Vec::new();
    for paragraph in split(0..text.len(), paragraph_ends(text)) {
        let cost = tokens.count(&text[paragraph.clone()]);
        if cost <= most {
            pieces.push((paragraph, cost));
            continue;
        }
        let ends = sentences::ends(&text[paragraph.clone()]).map(|end| paragraph.start + end);
        let ends: Vec<usize> = ends.filter(|end| is_boundary(text, *end)).collect();
        for sentence in split(paragraph, ends.into_iter()) {
            let cost = tokens.count(&text[sentence.clone()]);
            if cost <= most {
                pieces.push((sentence, cost));
            } else {
                cut_to_fit(text, sentence, most, tokens, &mut pieces);
            }
        }
    }
    pieces
}

/// Splits a range at `ends`.
fn split(range: Range<usize>, ends: impl Iterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    ends.filter(move |end| *end < range.end).chain([range.end]).filter_map(move |end| {
        let part = start..end;
        start = end.max(start);
        (!part.is_empty()).then_some(part)
    })
}

/// The ends of the paragraphs, with the blank lines after them.
fn paragraph_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut blank = false;
    let mut offset = 0;
    let mut seen = false;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = offset;
        offset += line.len();
        let was_blank = std::mem::replace(&mut blank, line.trim().is_empty());
        let begins = !blank && was_blank && seen;
        seen |= !blank;
        begins.then_some(start)
    })
}

/// Cuts a range at graphemes into parts of at most `most` tokens. Each part is as long as possible.
fn cut_to_fit(
    text: &str,
    range: Range<usize>,
    most: u32,
    tokens: &dyn TokenCounter,
    pieces: &mut Vec<(Range<usize>, u32)>,
) {
    let ends: Vec<usize> =
        text[range.clone()].grapheme_indices(true).map(|(at, part)| range.start + at + part.len()).collect();
    let (mut start, mut from) = (range.start, 0);
    while from < ends.len() {
        // The length is found by doubling, so that the tokens of a megabyte are not counted at once.
        let fits = |to: usize| tokens.count(&text[start..ends[to]]) <= most;
        let mut step = 1;
        while from + step < ends.len() && fits(from + step) {
            step *= 2;
        }
        let (mut low, mut high) = (from + step / 2, (from + step).min(ends.len() - 1));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        // A grapheme of more than `most` tokens is a part of its own.
        let end = ends[low];
        pieces.push((start..end, tokens.count(&text[start..end])));
        (start, from) = (end, low + 1);
    }
}

/// The beginning of the overlap at the end of a chunk, of at most `overlap` tokens: at a sentence if possible, else at
/// a word.
fn overlap_start(text: &str, chunk: &Range<usize>, overlap: u32, tokens: &dyn TokenCounter) -> usize {
    // A token seldom has more than a few characters, so the search does not go back further.
    let reach = (overlap as usize).saturating_mul(16).min(chunk.len());
    let mut begin = chunk.end - reach;
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    let starts: Vec<usize> =
        text[begin..chunk.end].grapheme_indices(true).map(|(at, _)| begin + at).collect();
    let earliest = starts.partition_point(|start| tokens.count(&text[*start..chunk.end]) > overlap);
    let Some(earliest) = starts.get(earliest).copied().filter(|start| is_boundary(text, *start)) else {
        return chunk.end;
    };
    if earliest == chunk.start {
        return earliest;
    }
    let tail = &text[earliest..chunk.end];
    let serves = |start: &usize| is_boundary(text, *start) && !text[*start..chunk.end].trim().is_empty();
    let sentence = || sentences::ends(tail).map(|end| earliest + end).find(serves);
    let words = tail.char_indices().filter(|(_, c)| c.is_whitespace());
    let word = || words.map(|(at, c)| earliest + at + c.len_utf8()).find(serves);
    let start = sentence().or_else(word).filter(|start| tokens.count(&text[*start..chunk.end]) <= overlap);
    start.unwrap_or(earliest)
}

fn is_boundary(text: &str, at: usize) -> bool {
    GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(false)
}

/// Identifies the text of a chunk: FNV-1a over its bytes, in hexadecimal. It avoids repeated work and is not secure
/// against an attacker.
pub fn digest(text: &str) -> String {
    format!("{:016x}", fnv(text.as_bytes()))
}

#[cfg(test)]
#[path = "tree/tests.rs"]
mod tests;
