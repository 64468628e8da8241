//! Whether a prompt tells what a message said.
//!
//! An answer in words is told if the words stand in the prompt. A whole message is told if one line of the prompt holds
//! most of its terms, rare ones counting more: a line that keeps the name and the number tells it, one that shares only
//! common words does not.

use std::collections::{HashMap, HashSet};

use strata_core::turn::NewMessage;
use strata_language::text::{analyse, fold};

use super::Evidence;

/// The share of a message's weight that a line has to hold.
const ENOUGH: f64 = 0.6;

/// The tags of what recall finds in a flat prompt.
const RECALLED: (&str, &str) = ("<relevant_memories>", "</relevant_memories>");

/// The terms of a conversation's messages, with their weights.
pub(super) struct Coverage {
    messages: Vec<HashSet<String>>,
    weights: HashMap<String, f64>,
}

impl Coverage {
    pub(super) fn new(messages: &[NewMessage]) -> Self {
        let messages: Vec<HashSet<String>> =
            messages.iter().map(|message| analyse(&message.content).into_iter().collect()).collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for term in messages.iter().flatten() {
            *counts.entry(term.clone()).or_default() += 1;
        }
        let all = messages.len() as f64;
        let weights = counts.into_iter().map(|(term, count)| (term, (1.0 + all / count as f64).ln()));
        Self { weights: weights.collect(), messages }
    }

    /// The share of the evidence that a prompt tells.
    pub(super) fn tells(&self, prompt: &str, evidence: &Evidence) -> f64 {
        match evidence {
            Evidence::Words(words, _) => f64::from(u8::from(fold(prompt).contains(&fold(words)))),
            Evidence::Messages(places) => {
                let lines: Vec<HashSet<String>> =
                    prompt.lines().map(|line| analyse(line).into_iter().collect()).collect();
                let told = places.iter().filter(|place| self.is_told(**place, &lines)).count();
                told as f64 / places.len().max(1) as f64
            }
        }
    }

    fn is_told(&self, message: usize, lines: &[HashSet<String>]) -> bool {
        let terms = &self.messages[message];
        let weight = |term: &String| self.weights.get(term).copied().unwrap_or(0.0);
        let all: f64 = terms.iter().map(weight).sum();
        lines.iter().any(|line| terms.intersection(line).map(weight).sum::<f64>() >= ENOUGH * all)
    }
}

/// A flat prompt without what recall found.
pub(super) fn without_recall(prompt: &str) -> String {
    match (prompt.find(RECALLED.0), prompt.find(RECALLED.1)) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{}", &prompt[..start], &prompt[end + RECALLED.1.len()..])
        }
        _ => prompt.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_core::turn::Role;

    #[test]
    fn a_line_tells_a_message_by_its_rare_terms() {
        let said = ["The keel bolts are 316 steel, 22 mm.", "The mast is fine.", "The sails are fine, too."];
        let messages: Vec<NewMessage> = said.iter().map(|text| NewMessage::new(Role::User, *text)).collect();
        let coverage = Coverage::new(&messages);
        let first = Evidence::Messages(vec![0]);
        assert_eq!(coverage.tells("User: keel bolts 316 steel 22 mm", &first), 1.0);
        assert_eq!(coverage.tells("User: the mast and the sails are fine", &first), 0.0);
        assert_eq!(coverage.tells("keel bolts\n316 steel\n22 mm", &first), 0.0, "one line has to tell it");
        assert_eq!(coverage.tells("the KEEL is blue", &Evidence::Words("Keel is".to_owned(), 0)), 1.0);
    }

    #[test]
    fn what_recall_found_is_cut_out() {
        let text = "question\n\n<relevant_memories>\n[day] a\n</relevant_memories>\n\n<x>b</x>";
        assert_eq!(without_recall(text), "question\n\n\n\n<x>b</x>");
        assert_eq!(without_recall("nothing"), "nothing");
    }
}
