//! Summaries without a model: the most informative sentences, in their original order and wording.
//!
//! A sentence scores by the terms that it shares with the rest of the text. Sentences of the user score higher than
//! those of a reply, the first sentence of a reply higher than the others, and newer sentences higher than older ones.
//! Pleasantries, logs, markers and long code are excluded (by the filter of [`crate::prompt`]). A sentence whose terms
//! were already chosen is excluded too. The result never exceeds the given number of characters. Nothing is translated,
//! so the language stays.

use std::collections::{HashMap, HashSet};

pub(crate) use crate::line::is_chinese;
use crate::prompt::{FilterSettings, RawLogs, strip};
use strata_core::turn::Role;
use strata_language::sentences::{self, beginning};
use strata_language::text::query_terms;

/// The most characters of one sentence. A longer one is a list or a log that the filter did not recognise.
const MAX_SENTENCE_CHARS: usize = 240;

/// The most characters that are read from one part, half of them from its end. The limit keeps the summary of a pasted
/// book fast.
const MAX_PART_CHARS: usize = 60_000;

/// A sentence is redundant if this share of its terms was already chosen.
const SAID_ALREADY: f32 = 0.8;

/// One part of the text to summarise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The speaker; `None` for a part of a document or for a summary.
    pub(crate) speaker: Option<Role>,
    /// The text.
    pub(crate) text: &'a str,
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
    let speaks_chinese = is_chinese(texts.iter().map(String::as_str));
    let mut sentences = sentences(parts, &texts);
    weigh(&mut sentences, parts);
    let chosen = choose(&sentences, parts, max_chars, speaks_chinese);
    render(&sentences, &chosen, parts, speaks_chinese)
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

/// The indexes of the chosen sentences: first the best one of each part while there is room, then the best of the rest.
fn choose(sentences: &[Sentence], parts: &[Part<'_>], max_chars: usize, chinese: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by(|a, b| sentences[*b].score.total_cmp(&sentences[*a].score).then(a.cmp(b)));
    let mut is_chosen = vec![false; sentences.len()];
    let mut begun = HashSet::new();
    let mut said: HashSet<&str> = HashSet::new();
    let mut room = max_chars;
    for only_new_parts in [true, false] {
        for place in &order {
            let Sentence { part, text, terms, .. } = &sentences[*place];
            if is_chosen[*place] || (only_new_parts && begun.contains(part)) {
                continue;
            }
            let repeated = terms.iter().filter(|term| said.contains(term.as_str())).count();
            if repeated as f32 >= SAID_ALREADY * terms.len() as f32 {
                continue;
            }
            let head = if begun.contains(part) {
                1
            } else {
                label(parts[*part].speaker, chinese).chars().count() + 1
            };
            let cost = text.chars().count() + head;
            if cost > room {
                continue;
            }
            room -= cost;
            begun.insert(*part);
            said.extend(terms.iter().map(String::as_str));
            is_chosen[*place] = true;
        }
    }
    (0..sentences.len()).filter(|place| is_chosen[*place]).collect()
}

fn render(sentences: &[Sentence], chosen: &[usize], parts: &[Part<'_>], chinese: bool) -> String {
    let mut summary = String::new();
    let mut before = None;
    for place in chosen {
        let Sentence { part, text, .. } = &sentences[*place];
        if before == Some(*part) {
            let stands_close = summary.ends_with(['。', '！', '？', '；', '\n']);
            summary.push_str(if stands_close { "" } else { " " });
        } else {
            if before.is_some() {
                summary.push('\n');
            }
            summary.push_str(label(parts[*part].speaker, chinese));
        }
        // A sentence of a list or a quotation may hold several lines.
        summary.push_str(&text.replace('\n', " "));
        before = Some(*part);
    }
    summary
}

/// The label of a speaker, in the language of the text.
pub(crate) fn label(speaker: Option<Role>, chinese: bool) -> &'static str {
    match (speaker, chinese) {
        (None, _) => "",
        (Some(Role::User), false) => "User: ",
        (Some(Role::Assistant), false) => "Assistant: ",
        (Some(Role::System), false) => "System: ",
        (Some(Role::Tool), false) => "Tool: ",
        (Some(Role::User), true) => "用户：",
        (Some(Role::Assistant), true) => "助手：",
        (Some(Role::System), true) => "系统：",
        (Some(Role::Tool), true) => "工具：",
    }
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
        Part { speaker: Some(Role::User), text }
    }

    fn reply(text: &str) -> Part<'_> {
        Part { speaker: Some(Role::Assistant), text }
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
        insta::assert_snapshot!(summarise(&parts, 320), @"
        User: I am planning a trip to Lisbon in May with my sister Ann.
        Assistant: Lisbon is lovely in May. The trams are fun. Bring good shoes for the hills.
        User: We have 1,200 euros and want to stay near the river.
        Assistant: Alfama and Cais do Sodré are near the river. Prices in May begin at 90 euros a night.
        ");
        insta::assert_snapshot!(summarise(&parts, 130), @"
        User: I am planning a trip to Lisbon in May with my sister Ann.
        User: We have 1,200 euros and want to stay near the river.
        ");
    }

    #[test]
    fn chinese_stays_chinese() {
        let parts = [
            user("你好！我打算五月和姐姐去西湖旅行，预算三千元。"),
            reply("好的！五月的西湖很美。建议住在湖边。记得带伞。"),
            user("我们想住在西湖旁边，每晚不超过四百元。"),
        ];
        insta::assert_snapshot!(summarise(&parts, 50), @"
        用户：我打算五月和姐姐去西湖旅行，预算三千元。
        用户：我们想住在西湖旁边，每晚不超过四百元。
        ");
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
        assert_eq!(summarise(&[user(text), user(text), user(text)], 500), format!("User: {text}"));
    }

    proptest! {
        #[test]
        fn a_summary_never_exceeds_its_limit(
            texts in proptest::collection::vec("[a-zA-Z .。!?\n西湖風👨‍👩‍👧]{0,200}", 0..12),
            max_chars in 0_usize..400,
        ) {
            let parts: Vec<_> = texts.iter().enumerate().map(|(n, text)| Part {
                speaker: [Some(Role::User), Some(Role::Assistant), None][n % 3], text,
            }).collect();
            let summary = summarise(&parts, max_chars);
            prop_assert!(summary.chars().count() <= max_chars, "{summary}");
            prop_assert_eq!(summarise(&parts, max_chars), summary);
        }
    }
}
