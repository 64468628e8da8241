//! Messages that ask several things at once.
//!
//! «Where does my sister work? And when is the trade fair?» ranked as one question lets the half with more matches fill
//! the whole list. So each question in the message is ranked by itself, and the answers are interleaved. The items of a
//! list are treated in the same way. A message that mostly states something stays one question, because its statements
//! name the topic of its questions.

use std::collections::HashSet;

use super::rank::Ranked;
use strata_language::sentences;

/// The minimum share of a message's letters that its questions, or the items of its list, must have.
const LEAST_ASKED: f32 = 2.0 / 3.0;
const LEAST_LISTED: f32 = 0.5;

/// The maximum number of single questions. A message with more is a text about one topic, and the encoder would have to
/// embed each question.
pub(crate) const MAX_QUESTIONS: usize = 4;

/// The questions of a message that consists of several, or the items of its list. Empty if the message asks one thing.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let makes_up = |parts: &[&str], least: f32| {
        parts.len() > 1
            && parts.iter().map(|part| letters(part)).sum::<usize>() as f32 >= least * letters(text) as f32
    };
    if text.contains('\n') {
        let listed: Vec<&str> = text.lines().filter_map(list_item).collect();
        if makes_up(&listed, LEAST_LISTED) {
            return listed;
        }
    }
    if text.matches(['?', '？']).nth(1).is_none() {
        return Vec::new();
    }
    let mut start = 0;
    let ends = sentences::ends(text).chain([text.len()]);
    let sentences: Vec<&str> = ends.map(|end| &text[std::mem::replace(&mut start, end)..end]).collect();
    let asked: Vec<&str> = sentences.into_iter().filter(|sentence| is_question(sentence)).collect();
    if makes_up(&asked, LEAST_ASKED) { asked } else { Vec::new() }
}

fn is_question(sentence: &str) -> bool {
    letters(sentence) > 0 && sentence.contains(['?', '？'])
}

/// The text of a list item, if the line starts with a list marker: a dash, or a letter or number before a stop.
fn list_item(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(item) = line.strip_prefix(['-', '*', '•']) {
        return Some(item.trim());
    }
    let line = line.strip_prefix('(').unwrap_or(line);
    let (mark, item) = line.split_once(['.', ')', '、', ':', '：'])?;
    let numbered = (1..=2).contains(&mark.len()) && mark.bytes().all(|byte| byte.is_ascii_digit());
    let lettered = mark.len() == 1 && mark.bytes().all(|byte| byte.is_ascii_alphabetic());
    ((numbered || lettered) && !item.is_empty()).then(|| item.trim())
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// Interleaves the answers to several questions: the best answer to each, then the second best to each, and so on. Each
/// list is sorted, best first.
///
/// The best answers count the same, whatever share of their question they match. The scores of the first question set
/// the scale.
pub(crate) fn interleave(mut lists: Vec<Vec<Ranked>>) -> Vec<Ranked> {
    let best = |list: &[Ranked]| list.first().map_or(0.0, |item| item.score);
    let scale = lists.first().map_or(0.0, |list| best(list));
    for list in &mut lists {
        let own = best(list);
        if own > 0.0 {
            list.iter_mut().for_each(|item| item.score *= scale / own);
        }
    }
    let longest = lists.iter().map(Vec::len).max().unwrap_or_default();
    let mut taken = HashSet::new();
    let mut merged: Vec<Ranked> = Vec::with_capacity(longest);
    for place in 0..longest {
        for item in lists.iter().filter_map(|list| list.get(place)) {
            if taken.insert(item.doc) {
                // Scores must not rise along the list.
                let score = merged.last().map_or(item.score, |last| last.score.min(item.score));
                merged.push(Ranked { score, ..item.clone() });
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::rank::ScoreParts;

    #[test]
    fn a_message_of_questions_asks_several_things() {
        for (text, several) in [
            ("Where does my sister work? And when is the trade fair?", true),
            ("我妈妈在哪儿上班？另外，发布会是什么时候？", true),
            ("Where does she work, and when is the fair?", false),
            ("Where does my sister work?", false),
            ("My sister has a new job in Lyon and likes it. Where did she work before? Do you know?", false),
            ("What is https://example.org/?a=1&b=2 about?", false),
            ("Really?? Why?!", true),
            ("Which came first?\nA. the trip to Rome\nB. the broken lamp\nC. the new job", true),
            ("Bring in order:\n1) the trip to Rome\n2) the broken lamp", true),
            ("哪个最早？\n- 罗马之旅\n- 换了工作", true),
            ("What was I told?\n- by Ann", false),
            ("It began at 9:30 and went on and on.\nIt ended at 11:00.\nWas I there?", false),
            ("Ann: where is it?\nBob: no idea at all, I have not seen it.\nAnn: so who has it?", false),
            ("??", false),
            ("", false),
        ] {
            assert_eq!(split(text).len() > 1, several, "{text}");
        }
        assert_eq!(split("Who? Me? Yes.").len(), 0);
        assert_eq!(split("Who came? What did they eat?"), ["Who came?", " What did they eat?"]);
    }

    fn ranked(items: &[(u32, f32)]) -> Vec<Ranked> {
        let item = |&(doc, score)| Ranked {
            doc,
            score,
            relevance: 0.0,
            standing: 0.0,
            parts: ScoreParts::default(),
        };
        items.iter().map(item).collect()
    }

    #[test]
    fn answers_are_interleaved() {
        let merged = interleave(vec![ranked(&[(1, 0.8), (2, 0.7), (3, 0.6)]), ranked(&[(2, 0.2), (4, 0.1)])]);
        let places: Vec<(u32, f32)> = merged.iter().map(|item| (item.doc, item.score)).collect();
        assert_eq!(places, [(1, 0.8), (2, 0.8), (4, 0.4), (3, 0.4)]);
    }

    proptest! {
        #[test]
        fn no_answer_is_lost_or_duplicated(lists in prop::collection::vec(prop::collection::vec((0_u32..20, 0.0_f32..1.0), 0..12), 0..5)) {
            let lists: Vec<Vec<Ranked>> = lists
                .into_iter()
                .map(|mut list| {
                    list.sort_by(|a, b| b.1.total_cmp(&a.1));
                    ranked(&list)
                })
                .collect();
            let all: HashSet<u32> = lists.iter().flatten().map(|item| item.doc).collect();
            let merged = interleave(lists);
            prop_assert_eq!(merged.len(), all.len());
            prop_assert_eq!(merged.iter().map(|item| item.doc).collect::<HashSet<_>>(), all);
            prop_assert!(merged.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}
