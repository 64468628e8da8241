//! Whether recall knows what it does not know: the scores of questions that a conversation can answer, beside the scores of
//! questions that it cannot.
//!
//! An unanswerable question is a question of a conversation between other people of the same set, or a question of the category
//! `abstention` asked of its own conversation.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::data::{Conversation, speaker};

/// The next conversation after `own` in which none of its people takes part. A person who takes part in both may have
/// told the other conversation too, and then the question is no foreign one. If the same people are everywhere, it is
/// the next conversation.
pub(crate) fn stranger_to(conversations: &[Conversation], own: usize) -> Option<usize> {
    let people = people(&conversations[own]);
    let mut others = (own + 1..conversations.len()).chain(0..own).peekable();
    let next = others.peek().copied();
    others.find(|other| people.is_disjoint(&self::people(&conversations[*other]))).or(next)
}

/// The names of those who speak. A role is no name.
fn people(conversation: &Conversation) -> BTreeSet<&str> {
    let turns = conversation.sessions.iter().flat_map(|session| &session.turns);
    turns.map(|turn| turn.speaker.as_str()).filter(|name| speaker(name).1.is_some()).collect()
}

/// The scores of answerable and unanswerable questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unanswerable {
    /// Answerable questions, asked of their own conversation.
    pub(crate) own: Vec<Answer>,
    /// The same questions, asked of another conversation.
    pub(crate) foreign: Vec<Answer>,
    /// Questions that nothing in their own conversation answers.
    pub(crate) abstention: Vec<Answer>,
}

/// How recall answers one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    /// The highest score of an item, by relevance; 0 if there is none.
    pub(crate) best: f32,
    /// Whether anything is served at the default threshold.
    pub(crate) is_served: bool,
}

/// How well the best score separates answerable from unanswerable questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForeignReport {
    /// Answerable questions.
    pub own: Group,
    /// The same questions, asked of another conversation. Empty in a set of one conversation.
    pub foreign: Group,
    /// Questions that nothing in their own conversation answers.
    pub abstention: Group,
}

/// The answers to one group of questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The number of questions.
    pub n: usize,
    /// The share of questions that are served anything at the default threshold.
    pub served: f64,
    /// The mean of the best scores.
    pub mean_best: f64,
    /// The probability that an answerable question has a higher best score than a question of this group.
    pub auroc: Option<f64>,
}

impl Unanswerable {
    pub(crate) fn report(&self) -> ForeignReport {
        ForeignReport {
            own: Group { auroc: None, ..group(&self.own, &self.own) },
            foreign: group(&self.own, &self.foreign),
            abstention: group(&self.own, &self.abstention),
        }
    }
}

fn group(own: &[Answer], answers: &[Answer]) -> Group {
    let n = answers.len();
    let share = |sum: f64| if n == 0 { 0.0 } else { sum / n as f64 };
    let best = |answers: &[Answer]| answers.iter().map(|answer| answer.best).collect::<Vec<_>>();
    Group {
        n,
        served: share(answers.iter().filter(|answer| answer.is_served).count() as f64),
        mean_best: share(answers.iter().map(|answer| f64::from(answer.best)).sum()),
        auroc: auroc(&best(own), &best(answers)),
    }
}

/// The area under the ROC curve: the probability that a positive value is higher than a negative one. Equal values count
/// half.
fn auroc(positive: &[f32], negative: &[f32]) -> Option<f64> {
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    let mut sorted = negative.to_vec();
    sorted.sort_by(f32::total_cmp);
    let above = positive.iter().map(|value| {
        let lower = sorted.partition_point(|other| other < value);
        let not_higher = sorted.partition_point(|other| other <= value);
        (lower + not_higher) as f64 / 2.0
    });
    Some(above.sum::<f64>() / (positive.len() * negative.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auroc_counts_pairs_in_order_and_half_of_the_ties() {
        assert_eq!(auroc(&[0.9, 0.8], &[0.1, 0.2]), Some(1.0));
        assert_eq!(auroc(&[0.1], &[0.9]), Some(0.0));
        assert_eq!(auroc(&[0.5, 0.7], &[0.5, 0.6]), Some(0.625));
        assert_eq!(auroc(&[], &[0.5]), None);
    }

    #[test]
    fn a_question_is_foreign_where_nobody_of_its_conversation_speaks() {
        let conversation = |speakers: &[&str]| {
            let turn =
                |speaker: &&str| serde_json::json!({"turn_id": speaker, "speaker": speaker, "text": "hello"});
            let turns: Vec<_> = speakers.iter().map(turn).collect();
            serde_json::from_value::<Conversation>(serde_json::json!({
                "conversation_id": "c", "sessions": [{"session_id": "s", "turns": turns}]
            }))
            .unwrap()
        };
        let shared = [conversation(&["Ada", "Ben"]), conversation(&["Ben", "Cem"]), conversation(&["Dora"])];
        assert_eq!(stranger_to(&shared, 0), Some(2));
        assert_eq!(stranger_to(&shared, 2), Some(0));
        let roles = [conversation(&["user", "assistant"]), conversation(&["user", "assistant"])];
        assert_eq!(stranger_to(&roles, 1), Some(0), "a role is no person");
        assert_eq!(stranger_to(&shared[..1], 0), None);
        assert_eq!(stranger_to(&[shared[0].clone(), shared[1].clone()], 0), Some(1), "nobody else is there");
    }

    #[test]
    fn a_group_without_questions_has_no_figures() {
        let report =
            Unanswerable { own: vec![Answer { best: 0.8, is_served: true }], ..Unanswerable::default() };
        let report = report.report();
        assert_eq!((report.own.n, report.own.served), (1, 1.0));
        assert_eq!((report.foreign.n, report.foreign.served, report.foreign.auroc), (0, 0.0, None));
    }
}
