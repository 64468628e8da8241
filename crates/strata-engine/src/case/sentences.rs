//! The sentences of a turn, in the form in which the reader judges their roles.

use strata_core::ports::{SentenceInContext, Speaker};
use strata_core::turn::Role;
use strata_language::sentences::ends;

use crate::prompt::{FilterSettings, RawLogs, is_checklist_line, strip, strip_injected};

/// The most sentences of a turn that are judged: the first ones and the last ones, because conclusions stand at both ends.
const MAX_SENTENCES: usize = 40;

/// The fewest letters and digits of a sentence that can say something.
const MIN_CHARS: usize = 2;

/// A sentence of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) speaker: Speaker,
    pub(crate) text: String,
}

impl Sentence {
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
    let texts = lines.flat_map(sentences_of_line).map(bare);
    let spoken = |text: &String| text.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_CHARS;
    let mut found: Vec<Sentence> = texts.filter(spoken).map(|text| Sentence { speaker, text }).collect();
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
