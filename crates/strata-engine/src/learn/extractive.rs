//! Summaries without a model: the most informative sentences, in their original order and wording.
//!
//! A sentence scores by the terms that it shares with the rest of the text. Sentences of the user score higher than
//! those of a reply, the first sentence of a reply higher than the others, and newer sentences higher than older ones.
//! Each speaker's sentences begin with the head of their line, `[2023-05-08 Caroline]`. A question that ends a message is
//! chosen together with its answer, so that no question stands before the answer to another.
//! Pleasantries, logs, markers and long code are excluded (by the filter of [`crate::prompt`]). A sentence whose terms
//! were already chosen is excluded too. The result never exceeds the given number of characters. Nothing is translated,
//! so the language stays.

use std::collections::{HashMap, HashSet};

use crate::prompt::{FilterSettings, RawLogs, label_of, strip};
use strata_core::turn::Role;
use strata_language::sentences::{self, beginning};
use strata_language::text::query_terms;

/// The most characters of one sentence. A longer one is a list or a log that the filter did not recognise.
const MAX_SENTENCE_CHARS: usize = 240;

/// The most characters that are read from one part, half of them from its end. The limit keeps the summary of a pasted
/// book fast.
const MAX_PART_CHARS: usize = 60_000;

/// The most rounds in which sentences are chosen with more room.
const MAX_ROUNDS: usize = 3;

/// A sentence is redundant if this share of its terms was already chosen.
const SAID_ALREADY: f32 = 0.8;

/// One part of the text to summarise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The speaker; `None` for a part of a document or for a summary.
    pub(crate) speaker: Option<Role>,
    /// The beginning of the speaker's line; empty for a part that nobody says.
    pub(crate) head: &'a str,
    /// The text.
    pub(crate) text: &'a str,
}

/// The parts of a text: its paragraphs, each with the head of the line that it belongs to. A line with a head begins a
/// part.
pub(crate) fn parts_of(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut head = "";
    for paragraph in text.split("\n\n") {
        let mut from = 0;
        let mut at = 0;
        for line in paragraph.split_inclusive('\n') {
            if let Some(label) = label_of(line) {
                parts.push(Part { speaker: None, head, text: &paragraph[from..at] });
                (head, from) = (label.trim_end(), at + label.len());
            }
            at += line.len();
        }
        parts.push(Part { speaker: None, head, text: &paragraph[from..] });
    }
    parts.retain(|part| !part.text.trim().is_empty());
    parts
}

struct Sentence {
    part: usize,
    text: String,
    terms: Vec<String>,
    score: f32,
}

/// The most informative sentences, with at most `max_chars` characters in total. Empty if no sentence is informative.
pub(crate) fn summarise(parts: &[Part<'_>], max_chars: usize) -> String {
    let filter = FilterSettings::default();
    let texts: Vec<String> =
        parts.iter().map(|part| strip(&within(part.text), &filter, RawLogs::Removed)).collect();
    let mut sentences = sentences(parts, &texts);
    weigh(&mut sentences, parts);
    let mut summary = String::new();
    let mut room = max_chars;
    // Each part is chosen with room for its head. Heads that are shown once for several parts leave room for more.
    for _ in 0..MAX_ROUNDS {
        let chosen = Choice::new(&sentences, parts, room).chosen();
        let fuller = render(&sentences, &chosen, parts);
        let left = max_chars.checked_sub(fuller.chars().count());
        let Some(left) = left.filter(|_| fuller.len() > summary.len()) else { break };
        summary = fuller;
        room = max_chars + left;
    }
    summary
}

fn within(text: &str) -> std::borrow::Cow<'_, str> {
    let half = MAX_PART_CHARS / 2;
    if text.len() <= MAX_PART_CHARS || text.chars().count() <= MAX_PART_CHARS {
        return text.into();
    }
    let head = text.char_indices().nth(half).map_or(text.len(), |(end, _)| end);
    let tail = text.char_indices().rev().nth(half - 1).map_or(0, |(start, _)| start);
    format!("{}\n\n{}", &text[..head], &text[tail..]).into()
}

fn sentences(parts: &[Part<'_>], texts: &[String]) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    for (part, text) in texts.iter().enumerate() {
        let mut start = 0;
        let mut place = 0;
        for end in sentences::ends(text).chain([text.len()]).filter(|end| *end > 0) {
            let sentence = text[start.min(end)..end].trim().trim_start_matches(['#', '>', ' ']);
            start = end;
            if sentence.is_empty() || is_pleasantry(sentence) {
                continue;
            }
            let terms = query_terms(sentence);
            let is_mark = !sentence.chars().any(char::is_alphanumeric);
            if is_mark || terms.is_empty() {
                continue;
            }
            let score = match (parts[part].speaker, place) {
                (Some(Role::User), _) if sentence.ends_with(['?', '？']) => 1.1,
                (Some(Role::User), _) => 1.4,
                (None, 0) => 1.2,
                (None, _) => 1.0,
                (Some(_), 0) => 0.85,
                (Some(_), _) => 0.6,
            };
            sentences.push(Sentence { part, text: beginning(sentence, MAX_SENTENCE_CHARS), terms, score });
            place += 1;
        }
    }
    sentences
}

/// Multiplies each sentence's score by the weight of its shared terms and by its recency.
fn weigh(sentences: &mut [Sentence], parts: &[Part<'_>]) {
    let mut counts: HashMap<&str, f32> = HashMap::new();
    for term in sentences.iter().flat_map(|sentence| &sentence.terms) {
        *counts.entry(term).or_default() += 1.0;
    }
    let shares: Vec<f32> = sentences
        .iter()
        .map(|sentence| {
            let shared: f32 = sentence.terms.iter().map(|term| 1.0 + counts[term.as_str()].ln()).sum();
            // A compromise between the sum, which favours long sentences, and the mean, which favours short ones.
            shared / (sentence.terms.len() as f32 + 4.0).sqrt()
        })
        .collect();
    let last = parts.len().max(2) as f32 - 1.0;
    for (sentence, share) in sentences.iter_mut().zip(shares) {
        let is_spoken = parts[sentence.part].speaker.is_some();
        let age = if is_spoken { 0.85 + 0.15 * sentence.part as f32 / last } else { 1.0 };
        let has_number = sentence.text.chars().any(|c| c.is_ascii_digit());
        sentence.score *= share * age * if has_number { 1.1 } else { 1.0 };
    }
}

/// The sentences that are being chosen.
struct Choice<'a> {
    sentences: &'a [Sentence],
    parts: &'a [Part<'a>],
    /// For each part, the sentence that it answers.
    answers: Vec<Option<usize>>,
    is_chosen: Vec<bool>,
    begun: HashSet<usize>,
    said: HashSet<&'a str>,
    room: usize,
}

impl<'a> Choice<'a> {
    fn new(sentences: &'a [Sentence], parts: &'a [Part<'a>], max_chars: usize) -> Self {
        Self {
            answers: answered_questions(sentences, parts),
            is_chosen: vec![false; sentences.len()],
            begun: HashSet::new(),
            said: HashSet::new(),
            room: max_chars,
            sentences,
            parts,
        }
    }

    /// The indexes of the chosen sentences: first the best one of each part while there is room, then the best of the
    /// rest.
    fn chosen(mut self) -> Vec<usize> {
        let score = |place: &usize| self.sentences[*place].score;
        let mut order: Vec<usize> = (0..self.sentences.len()).collect();
        order.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
        for only_new_parts in [true, false] {
            for place in &order {
                let is_begun = only_new_parts && self.begun.contains(&self.sentences[*place].part);
                if !self.is_chosen[*place] && !is_begun && !self.is_redundant(*place) {
                    self.take(*place, &order);
                }
            }
        }
        (0..self.sentences.len()).filter(|place| self.is_chosen[*place]).collect()
    }

    fn is_redundant(&self, place: usize) -> bool {
        let terms = &self.sentences[place].terms;
        let repeated = terms.iter().filter(|term| self.said.contains(term.as_str())).count();
        repeated as f32 >= SAID_ALREADY * terms.len() as f32
    }

    /// Chooses a sentence with the question or the answer that belongs to it, if there is room for both.
    fn take(&mut self, place: usize, order: &[usize]) {
        let other = self.question_of(place).or_else(|| self.answer_to(place, order));
        let taken: Vec<usize> = [Some(place), other].into_iter().flatten().collect();
        let mut begun = self.begun.clone();
        let cost: usize = taken.iter().map(|place| self.cost(*place, &mut begun)).sum();
        let Some(left) = self.room.checked_sub(cost) else { return };
        (self.room, self.begun) = (left, begun);
        for place in taken {
            self.said.extend(self.sentences[place].terms.iter().map(String::as_str));
            self.is_chosen[place] = true;
        }
    }

    /// The characters of a sentence, with the head of its line if it begins one.
    fn cost(&self, place: usize, begun: &mut HashSet<usize>) -> usize {
        let Sentence { part, text, .. } = &self.sentences[place];
        let head = if begun.insert(*part) { self.parts[*part].head.chars().count() + 1 } else { 0 };
        text.chars().count() + head + 1
    }

    /// The question that a sentence belongs to, if it is not chosen yet.
    fn question_of(&self, place: usize) -> Option<usize> {
        self.answers[self.sentences[place].part].filter(|question| !self.is_chosen[*question])
    }

    /// The best sentence of the answer to a question.
    fn answer_to(&self, question: usize, order: &[usize]) -> Option<usize> {
        let answers = |place: &&usize| self.answers[self.sentences[**place].part] == Some(question);
        order.iter().find(answers).copied()
    }
}

/// For each part, the question at the end of what the speaker before has said.
fn answered_questions(sentences: &[Sentence], parts: &[Part<'_>]) -> Vec<Option<usize>> {
    let last_of = |part: usize| sentences.iter().rposition(|sentence| sentence.part == part);
    let asks = |place: &usize| sentences[*place].text.ends_with(['?', '？']);
    let mut answers: Vec<Option<usize>> = vec![None; parts.len()];
    for part in 1..parts.len() {
        let (before, now) = (parts[part - 1].head, parts[part].head);
        answers[part] = match before == now {
            true => answers[part - 1],
            false if before.is_empty() || now.is_empty() => None,
            false => last_of(part - 1).filter(asks),
        };
    }
    answers
}

fn render(sentences: &[Sentence], chosen: &[usize], parts: &[Part<'_>]) -> String {
    let mut summary = String::new();
    let mut before: Option<usize> = None;
    for place in chosen {
        let Sentence { part, text, .. } = &sentences[*place];
        let head = parts[*part].head;
        let goes_on = |before: usize| before == *part || (!head.is_empty() && parts[before].head == head);
        if before.is_some_and(goes_on) {
            let stands_close = summary.ends_with(['。', '！', '？', '；', '\n']);
            summary.push_str(if stands_close { "" } else { " " });
        } else {
            summary.push_str(if before.is_some() { "\n" } else { "" });
            summary.push_str(head);
            summary.push_str(if head.is_empty() { "" } else { " " });
        }
        // A sentence of a list or a quotation may hold several lines.
        summary.push_str(&text.replace('\n', " "));
        before = Some(*part);
    }
    summary
}

/// Whether a sentence is only a greeting, thanks or a confirmation.
fn is_pleasantry(sentence: &str) -> bool {
    const CHINESE: [&str; 14] = [
        "你好",
        "您好",
        "谢谢",
        "謝謝",
        "好的",
        "好",
        "嗯",
        "再见",
        "不客气",
        "早上好",
        "晚安",
        "没问题",
        "辛苦了",
        "是的",
    ];
    const ENGLISH: [&str; 26] = [
        "hi",
        "hello",
        "hey",
        "thanks",
        "thank you",
        "thanks a lot",
        "thank you very much",
        "ok",
        "okay",
        "sure",
        "yes",
        "no problem",
        "great",
        "bye",
        "goodbye",
        "good morning",
        "good night",
        "you're welcome",
        "sounds good",
        "got it",
        "of course",
        "certainly",
        "hi there",
        "hello there",
        "cool",
        "nice",
    ];
    let bare = sentence.trim_matches(|c: char| !c.is_alphanumeric());
    bare.chars().count() <= 20
        && (CHINESE.contains(&bare) || ENGLISH.iter().any(|word| bare.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(text: &str) -> Part<'_> {
        Part { speaker: Some(Role::User), head: "[2031-04-02 Jorun]", text }
    }

    fn reply(text: &str) -> Part<'_> {
        Part { speaker: Some(Role::Assistant), head: "[2031-04-02 assistant]", text }
    }

    #[test]
    fn the_most_informative_sentences_stay_in_order() {
        let parts = [
            user("Hi! I am planning a trip to Lisbon in May with my sister Ann."),
            reply("Great! Lisbon is lovely in May. The trams are fun. Bring good shoes for the hills."),
            user("Thanks. We have 1,200 euros and want to stay near the river."),
            reply("Alfama and Cais do Sodré are near the river. Prices in May begin at 90 euros a night."),
            user("OK"),
        ];
        insta::assert_snapshot!(summarise(&parts, 370), @"
        [2031-04-02 Jorun] I am planning a trip to Lisbon in May with my sister Ann.
        [2031-04-02 assistant] Lisbon is lovely in May. The trams are fun. Bring good shoes for the hills.
        [2031-04-02 Jorun] We have 1,200 euros and want to stay near the river.
        [2031-04-02 assistant] Alfama and Cais do Sodré are near the river. Prices in May begin at 90 euros a night.
        ");
        insta::assert_snapshot!(summarise(&parts, 155), @"[2031-04-02 Jorun] I am planning a trip to Lisbon in May with my sister Ann. We have 1,200 euros and want to stay near the river.");
    }

    #[test]
    fn chinese_stays_chinese() {
        let parts = [
            user("你好！我打算五月和姐姐去西湖旅行，预算三千元。"),
            reply("好的！五月的西湖很美。建议住在湖边。记得带伞。"),
            user("我们想住在西湖旁边，每晚不超过四百元。"),
        ];
        insta::assert_snapshot!(summarise(&parts, 82), @"[2031-04-02 Jorun] 我打算五月和姐姐去西湖旅行，预算三千元。我们想住在西湖旁边，每晚不超过四百元。");
    }

    #[test]
    fn a_text_without_information_has_no_summary() {
        assert_eq!(summarise(&[], 100), "");
        assert_eq!(summarise(&[user("Hi!"), reply("Hello! …"), user("谢谢。")], 100), "");
        assert_eq!(summarise(&[user("Something to say.")], 0), "");
    }

    #[test]
    fn redundant_sentences_are_left_out() {
        let text = "The fan of pump 3 has stopped.";
        assert_eq!(
            summarise(&[user(text), user(text), user(text)], 500),
            format!("[2031-04-02 Jorun] {text}")
        );
    }

    #[test]
    fn a_question_stands_before_its_own_answer_alone() {
        let parts = [
            user("Which oil does the lathe take?"),
            reply("Sure. The lathe takes ISO 68 oil, about two litres."),
            user("How long may the belt be?"),
            reply("OK."),
            user("The chuck was bought in Gdansk in 1987 and weighs 31 kilograms."),
            reply("A chuck of 31 kilograms needs the larger crane."),
        ];
        let whole = summarise(&parts, 1_000);
        assert!(
            whole.contains("Which oil does the lathe take?\n[2031-04-02 assistant] The lathe takes ISO 68"),
            "{whole}"
        );
        for most in 0..400 {
            let summary = summarise(&parts, most);
            let oil = (summary.contains("Which oil"), summary.contains("ISO 68"));
            assert_eq!(oil.0, oil.1, "{most}: {summary}");
            assert!(summary.chars().count() <= most, "{most}: {summary}");
        }
    }

    #[test]
    fn a_text_of_speakers_keeps_their_heads() {
        let text = "[2031-04-02 Jorun] The lathe came from Gdansk.\n\nIt weighs two tons.\n[2031-04-03 Pia] I paid for it.";
        let parts: Vec<(&str, &str)> =
            parts_of(text).iter().map(|part| (part.head, part.text.trim())).collect();
        assert_eq!(
            parts,
            [
                ("[2031-04-02 Jorun]", "The lathe came from Gdansk."),
                ("[2031-04-02 Jorun]", "It weighs two tons."),
                ("[2031-04-03 Pia]", "I paid for it."),
            ]
        );
        assert_eq!(
            summarise(&parts_of(text), 200),
            "[2031-04-02 Jorun] The lathe came from Gdansk. It weighs two tons.\n[2031-04-03 Pia] I paid for it."
        );
        assert_eq!(parts_of("One.\n\nTwo.").len(), 2);
    }

    proptest! {
        #[test]
        fn a_summary_never_exceeds_its_limit(
            texts in proptest::collection::vec("[a-zA-Z .。!?\n西湖風👨‍👩‍👧]{0,200}", 0..12),
            max_chars in 0_usize..400,
        ) {
            let parts: Vec<_> = texts.iter().enumerate().map(|(n, text)| Part {
                speaker: [Some(Role::User), Some(Role::Assistant), None][n % 3],
                head: ["[2031-04-02 Pia]", "[2031-04-02 assistant]", ""][n % 3],
                text,
            }).collect();
            let summary = summarise(&parts, max_chars);
            prop_assert!(summary.chars().count() <= max_chars, "{summary}");
            prop_assert_eq!(summarise(&parts, max_chars), summary);
        }
    }
}
