//! The sentences of a turn, in the form in which the reader judges their roles.

use std::cmp::Reverse;

use strata_core::ports::{SentenceInContext, Speaker};
use strata_core::turn::Role;
use strata_language::sentences::ends;
use strata_language::statements::{is_bare, lacks_referent};

use super::cues::drops_supposition;
use super::foreign::Foreign;
use crate::prompt::{FilterSettings, RawLogs, is_checklist_line, strip, strip_injected};

/// The most sentences of a turn that are judged: the first ones and the last ones, because conclusions stand at both ends.
const MAX_SENTENCES: usize = 40;

/// The fewest letters and digits of a sentence that can say something.
const MIN_CHARS: usize = 2;

/// Words that join two statements of which neither is the reason of the other.
const JOINTS: [&str; 12] = [
    ", and ",
    ", but ",
    ", while ",
    ", whereas ",
    "; ",
    "，不过",
    "，但是",
    "，但",
    "，而且",
    "，可是",
    "，倒是",
    "；",
];

/// The fewest letters of a part of a sentence that says something. Chinese characters count three times.
const LEAST_PART: usize = 12;

/// A sentence of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) speaker: Speaker,
    pub(crate) text: String,
    /// Whether it is a part of what the speaker quotes or pastes.
    pub(crate) is_material: bool,
}

impl Sentence {
    /// A speaker's own sentence.
    pub(crate) fn new(speaker: Speaker, text: impl Into<String>) -> Self {
        Self { speaker, text: text.into(), is_material: false }
    }

    /// The sentence as the reader was trained to see the one before.
    fn as_context(&self) -> String {
        format!("{}: {}", self.speaker.as_str(), self.text)
    }

    /// The question to the reader. Before and after stay empty: the role of a sentence was learned with nothing but the
    /// sentence before it, of either speaker.
    pub(crate) fn after(&self, before: Option<&Self>) -> SentenceInContext {
        SentenceInContext {
            speaker: self.speaker,
            text: self.text.clone(),
            previous: before.map(Self::as_context).unwrap_or_default(),
            ..SentenceInContext::default()
        }
    }
}

/// The sentences of a turn without logs, code, headings and checklists; none for a tool's result or a system message.
pub(crate) fn sentences(role: Role, content: &str, filter: &FilterSettings) -> Vec<Sentence> {
    let speaker = match role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Assistant,
        Role::System | Role::Tool => return Vec::new(),
    };
    let said = strip(&strip_injected(content), filter, RawLogs::Removed);
    let lines = without_code(&said).filter(|line| !is_apart(line));
    let texts = lines.flat_map(sentences_of_line).map(bare).flat_map(apart_from_dropped);
    let spoken = |text: &String| text.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_CHARS;
    let foreign = if speaker == Speaker::User { Foreign::of(&said) } else { Foreign::default() };
    let is_own = |text: &String| spoken(text) && !foreign.is_planted(text);
    let sentence = |text: String| Sentence { speaker, is_material: foreign.is_material(&text), text };
    let mut found: Vec<Sentence> = texts.filter(is_own).map(sentence).collect();
    let over = found.len().saturating_sub(MAX_SENTENCES);
    let middle = MAX_SENTENCES / 2;
    found.drain(middle.min(found.len())..(middle + over).min(found.len()));
    found
}

/// The lines outside of fenced code.
fn without_code(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// The sentences of a line. A quotation stays in its sentence, and a semicolon ends none.
fn sentences_of_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for end in ends(line).chain([line.len()]) {
        let sentence = &line[from..end.max(from)];
        let words = sentence.chars().filter(|c| c.is_alphanumeric()).count();
        if end == line.len() || (words >= MIN_CHARS && !sentence.ends_with('；')) {
            found.push(sentence);
            from = end;
        }
    }
    found
}

/// Cuts «The fuse is ruled out, and the battery has a weak cell» in two: what is dropped, and what is said beside it.
fn apart_from_dropped(text: String) -> Vec<String> {
    for (at, length) in joints(&text) {
        let (before, after) = (text[..at].trim(), text[at + length..].trim());
        let drops = [before, after].map(drops_supposition);
        if drops[0] != drops[1] && [before, after].into_iter().all(stands_alone) {
            return vec![before.to_owned(), after.to_owned()];
        }
    }
    vec![text]
}

/// The places of the words that join two statements, with their lengths.
fn joints(text: &str) -> Vec<(usize, usize)> {
    let found = JOINTS.iter().flat_map(|joint| text.match_indices(joint));
    let mut places: Vec<(usize, usize)> = found.map(|(at, joint)| (at, joint.len())).collect();
    // «，但是» is longer than «，但» at the same place.
    places.sort_unstable_by_key(|(at, length)| (*at, Reverse(*length)));
    places
}

/// Whether a part of a sentence says something without the other part.
fn stands_alone(part: &str) -> bool {
    let letters: usize =
        part.chars().filter(|c| c.is_alphanumeric()).map(|c| if c.is_ascii() { 1 } else { 3 }).sum();
    letters >= LEAST_PART && !is_bare(part) && !lacks_referent(part)
}

/// Whether a line is no sentence: a heading, a row of a table, or an item of a checklist, which is a task by its form.
fn is_apart(line: &str) -> bool {
    let bare = line.trim();
    bare.starts_with('#') || (bare.starts_with('|') && bare.ends_with('|')) || is_checklist_line(line)
}

/// A sentence without the marks of a list or of emphasis.
fn bare(text: &str) -> String {
    let text = text.trim();
    let item =
        text.strip_prefix(['-', '*', '•', '·', '>']).filter(|rest| rest.starts_with(' ')).unwrap_or(text);
    let rest = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (rest.len() < item.len()).then(|| rest.strip_prefix(['.', ')', '、'])).flatten();
    let item = numbered.filter(|rest| rest.starts_with(' ')).unwrap_or(item);
    item.trim().replace("**", "")
}
