//! Identifiers in a question: an order number, an article number, the beginning of a hash.
//!
//! An encoder blurs them: `hinge48213` and `hinge48231` have nearly the same vector. A rare token of such a form that a
//! question and an item share is the strongest evidence that there is, so the items that have it come first. The rule is
//! about the form of a word, not about its meaning: years and small numbers are no identifiers.

use std::collections::HashMap;

use super::Recall;
use super::candidates::{Candidate, CandidateSet};
use super::exclusions::exclude_hits;
use super::question::Question;
use super::request::{Order, RecallRequest};
use super::store_candidates::{candidate, standing_at, text_query};
use crate::index::{Doc, UserIndex};
use strata_core::error::Result;
use strata_core::store::{TextMatch, TextQuery};
use strata_core::trace::RetrievalPath;
use strata_language::text::for_each_term;

/// The gain of an item that has all identifiers of a question: more than a cosine can make up for.
const IDENTIFIED: f32 = 1.0;

/// An identifier that more than one in this many items have, and more than [`FEW`], tells them apart no longer.
const RARE: usize = 50;
const FEW: usize = 3;

/// The bonus of each item that has an identifier of the question.
fn identified(index: &UserIndex, question: &Question) -> HashMap<Doc, f32> {
    let words = question.words.iter().filter(|word| word.numeric && is_identifier(&word.text));
    let known: Vec<u32> = words.filter_map(|word| index.words.number(&word.text)).collect();
    let mut bonus = HashMap::new();
    for word in &known {
        let postings = index.words.postings(*word);
        if postings.len() > FEW && postings.len() * RARE > index.len() {
            continue;
        }
        for doc in postings.iter() {
            *bonus.entry(*doc).or_insert(0.0) += IDENTIFIED / known.len() as f32;
        }
    }
    bonus
}

/// The gain of a long item that alone has all words of the question: as much as a short item gets for them.
pub(super) const SOLE_WEIGHT: f32 = 0.5;

/// The items that a question names, by an identifier or by a word that only one long item has.
pub(super) struct NamedItems {
    identified: HashMap<Doc, f32>,
    sole: HashMap<Doc, f32>,
}

impl NamedItems {
    /// The items that a question names. An item is long from more than `long` words on.
    pub(super) fn new(index: &UserIndex, question: &Question, long: f32) -> Self {
        Self { identified: identified(index, question), sole: sole_words(index, question, long) }
    }

    /// The bonus of an item for having the question's identifiers.
    pub(super) fn identified(&self, doc: Doc) -> f32 {
        self.identified.get(&doc).copied().unwrap_or(0.0)
    }

    /// The share of the question that is words of this item alone.
    pub(super) fn sole(&self, doc: Doc) -> f32 {
        self.sole.get(&doc).copied().unwrap_or(0.0)
    }

    /// Both as a part of the score.
    pub(super) fn bonus(&self, doc: Doc) -> f32 {
        self.identified(doc) + SOLE_WEIGHT * self.sole(doc)
    }
}

/// From this rarity on, a word that only one item has points at that item. Unknown words are made of rare pieces and get it, and
/// so do names.
const RARE_WORD: f32 = 0.9;

/// The shares of a question's weight that are words of one item alone, of items of more than `long` words. Their length counts
/// against such items, and an encoder does not read them to their end; a rare word that nothing else has is evidence all the same.
fn sole_words(index: &UserIndex, question: &Question, long: f32) -> HashMap<Doc, f32> {
    let full = question.words.iter().map(|word| word.weight).sum::<f32>().max(f32::MIN_POSITIVE);
    let rare = question.words.iter().filter(|word| !word.numeric && word.word.rarity >= RARE_WORD);
    let mut shares = HashMap::new();
    for word in rare {
        let Some(number) = index.words.number(&word.text) else { continue };
        let postings = index.words.postings(number);
        let only = postings.iter().next().filter(|_| postings.len() == 1);
        if let Some(doc) = only.filter(|doc| index.documents[**doc as usize].word_count as f32 > long) {
            *shares.entry(*doc).or_insert(0.0) += word.weight / full;
        }
    }
    shares
}

/// Whether a word with a digit has the form of an identifier: five digits or more, four that are no year, or letters
/// with at least two digits.
fn is_identifier(word: &str) -> bool {
    let digits = word.chars().filter(|c| c.is_numeric()).count();
    let letters = word.chars().count() - digits;
    let is_year = letters == 0 && digits == 4 && (word.starts_with("19") || word.starts_with("20"));
    match letters {
        0 => digits >= 4 && !is_year,
        _ => digits >= 2 && digits + letters >= 4 && !is_measure(word),
    }
}

/// Units and endings that follow a number. A list, because an article number may end with letters as well («48213ab»).
const UNITS: [&str; 84] = [
    "am", "bn", "bp", "bps", "cal", "ch", "chf", "cl", "cm", "cms", "d", "db", "deg", "dl", "dpi", "e", "er",
    "eur", "f", "fps", "ft", "g", "gb", "gbp", "ghz", "gm", "gms", "h", "hp", "hr", "hrs", "hz", "in", "ish",
    "jpy", "k", "kb", "kg", "kgs", "khz", "km", "kmh", "kms", "kph", "kv", "kw", "kwh", "l", "lb", "lbs",
    "m", "mah", "mb", "mg", "mhz", "mi", "min", "ml", "mm", "mph", "ms", "nd", "nm", "oz", "p", "pcs", "pct",
    "pm", "ppm", "pt", "px", "rd", "rpm", "s", "sec", "st", "tb", "th", "usd", "v", "w", "wh", "x", "yd",
];

/// Whether a word is a number with a unit or an ending: «250ml», «12th», «10pm», «90s». In other scripts, up to three
/// letters after a number of at most four digits are taken for a unit.
fn is_measure(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_numeric());
    let digits = word.chars().count() - unit.chars().count();
    if digits == 0 || unit.chars().count() > 3 || !unit.chars().all(char::is_alphabetic) {
        return false;
    }
    match unit.is_ascii() {
        // A single letter after many digits is rather a part of the number.
        true => UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known)) && (unit.len() > 1 || digits <= 4),
        false => digits <= 4,
    }
}

/// How many items may share an identifier in the store's own index, which does not tell how many there are in all. It is as
/// much as a conversation about one order says of it.
const FEW_IN_STORE: usize = 20;

/// The most items that are looked at for the identifiers of a question.
const LOOKED_AT: u32 = 64;

/// The terms of a text that have the form of an identifier. Stores index the same terms.
fn identifier_terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for_each_term(text, |term| {
        let is_new = || terms.iter().all(|known| known != term);
        if term.chars().any(char::is_numeric) && is_identifier(term) && is_new() {
            terms.push(term.to_owned());
        }
    });
    terms
}

impl Recall {
    /// Puts the items first that have a rare identifier of the question, among the candidates of the store's own index. Its
    /// ranking compares by place, so that vectors could push such an item down.
    pub(super) async fn add_identified(
        &self,
        request: &RecallRequest,
        found: &mut CandidateSet,
    ) -> Result<()> {
        let mut asked = identifier_terms(&request.query);
        if asked.is_empty() {
            return Ok(());
        }
        let query = TextQuery {
            text: asked.join(" "),
            ..text_query(request, found.scope, TextMatch::Words, LOOKED_AT as usize)
        };
        let mut hits = self.search_in(&found.owners, query, request).await?;
        if request.order == Order::Served {
            hits = exclude_hits(request, hits).0;
        }
        hits.retain(|hit| found.excluded.iter().all(|(excluded, _)| excluded.id != hit.hit.item.id()));
        let has: Vec<Vec<String>> = hits.iter().map(|hit| identifier_terms(hit.hit.item.content())).collect();
        asked.retain(|term| has.iter().filter(|terms| terms.contains(term)).count() <= FEW_IN_STORE);
        let share = |terms: &[String]| asked.iter().filter(|term| terms.contains(term)).count();
        let best = found.candidates.iter().map(|known| known.relevance).fold(0.0, f32::max);
        let mut first: Vec<(usize, Candidate)> = Vec::new();
        for (hit, terms) in hits.iter().zip(&has).filter(|(_, terms)| share(terms) > 0) {
            let id = hit.hit.item.id();
            let place = found.candidates.iter().position(|known| known.id == id);
            let known = place.map(|place| found.candidates.remove(place));
            let candidate = known.unwrap_or_else(|| candidate(&hit.hit, best));
            first.push((share(terms), Candidate { relevance: candidate.relevance.max(best), ..candidate }));
        }
        if first.is_empty() {
            return Ok(());
        }
        // Stable: items with as many identifiers stay in the store's order.
        first.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
        let top = found.candidates.iter().map(|known| known.score).fold(0.0, f32::max);
        let all = asked.len() as f32;
        let bonus = |share: usize| IDENTIFIED * share as f32 / all;
        let first = first
            .into_iter()
            .map(|(share, known)| Candidate { score: top + bonus(share), ..known })
            .collect::<Vec<_>>();
        found.candidates.splice(0..0, first);
        for (place, candidate) in found.candidates.iter_mut().enumerate() {
            candidate.standing = standing_at(place);
        }
        if found.path == RetrievalPath::None {
            found.path = RetrievalPath::Fts;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_from_years_and_amounts() {
        for word in [
            "hinge48213",
            "48213",
            "0417",
            "a1b2",
            "b767",
            "9f3c1d",
            "20240117",
            "x12y",
            "48213ab",
            "4821ab",
            "48213c",
            "7133kx",
            "880214x",
        ] {
            assert!(is_identifier(word), "{word}");
        }
        for word in [
            "2023", "1999", "250ml", "12th", "90s", "10pm", "7", "417", "v2", "1080p", "10000km", "3000mAh",
            "50000mg", "2023年", "500мл",
        ] {
            assert!(!is_identifier(word), "{word}");
        }
    }
}
