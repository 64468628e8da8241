//! The ranking features of an item: its terms, its words, its date and its speaker.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use strata_core::hash::fnv32;
use strata_core::lexicon::Lexicon;
use strata_core::store::Item;
use strata_core::turn::Turn;
use strata_language::text;

/// The names of the months as the analyser stems them.
const MONTHS: [&str; 12] = [
    "januari", "februari", "march", "april", "may", "june", "juli", "august", "septemb", "octob", "novemb",
    "decemb",
];

/// The hash of a term. A collision within one user's vocabulary happens for about one in a hundred thousand users, and
/// then one more item matches.
pub(crate) type TermHash = u32;

/// The ranking features of one item.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Features {
    /// Its distinct terms with their counts, including its date and speaker.
    pub(crate) terms: Vec<(TermHash, u8)>,
    /// Its distinct words with their counts.
    pub(crate) words: Vec<(String, u8)>,
    /// The number of its words, including repetitions.
    pub(crate) word_count: u32,
    /// Whether an encoder that knows no Chinese can read it.
    pub(crate) latin: bool,
}

impl Features {
    pub(crate) fn of(item: &Item, lexicon: &dyn Lexicon) -> Self {
        let spoken = spoken(item);
        let mut hashes: Vec<TermHash> = date_terms(item.created_at()).to_vec();
        text::for_each_term(&spoken, |term| hashes.push(term_hash(term)));
        let mut words = Vec::new();
        lexicon.for_each_word(&spoken, &mut |word| words.push(word.to_owned()));
        let word_count = u32::try_from(words.len()).unwrap_or(u32::MAX);
        Self { terms: counted(hashes), words: counted(words), word_count, latin: is_latin(item.content()) }
    }
}

/// The text of an item for ranking and encoders: `speaker: text` for a turn.
pub(crate) fn spoken(item: &Item) -> String {
    match item {
        Item::Turn(turn) => format!("{}: {}", speaker(turn), turn.content),
        Item::Memory(memory) => memory.content.clone(),
        Item::Summary(summary) => summary.text.clone(),
    }
}

/// The speaker of a turn: the name if there is one, otherwise the role.
pub(crate) fn speaker(turn: &Turn) -> &str {
    turn.name.as_deref().unwrap_or_else(|| turn.role.as_str())
}

/// The date of an item as terms: `8`, `may`, `2023`.
fn date_terms(moment: Timestamp) -> [TermHash; 3] {
    let date = moment.to_zoned(TimeZone::UTC).date();
    let month = MONTHS[usize::from(date.month().unsigned_abs()).saturating_sub(1).min(11)];
    [term_hash(&date.day().to_string()), term_hash(month), term_hash(&date.year().to_string())]
}

/// The terms of a question. «May» is a stop word unless it is capitalised like the month.
pub(crate) fn question_terms(question: &str) -> Vec<(TermHash, u8)> {
    let mut hashes = Vec::new();
    text::for_each_term(question, |term| hashes.push(term_hash(term)));
    let may = term_hash("may");
    // The analyser keeps stop words if a question has nothing else.
    if !hashes.contains(&may) && question.split(|c: char| !c.is_alphanumeric()).any(|word| word == "May") {
        hashes.push(may);
    }
    counted(hashes)
}

/// The distinct words of a question with their counts.
pub(crate) fn question_words(question: &str, lexicon: &dyn Lexicon) -> Vec<(String, u8)> {
    let mut words = Vec::new();
    lexicon.for_each_word(question, &mut |word| words.push(word.to_owned()));
    counted(words)
}

/// Whether an encoder that knows no Chinese can read a text: at most a tenth of its letters are Chinese.
pub(crate) fn is_latin(text: &str) -> bool {
    if text.is_ascii() {
        return true;
    }
    let chinese = text.chars().filter(|c| ('\u{3400}'..='\u{9FFF}').contains(c)).count();
    chinese == 0 || chinese * 10 <= text.chars().filter(|c| c.is_alphabetic()).count()
}

fn counted<T: Ord>(mut things: Vec<T>) -> Vec<(T, u8)> {
    things.sort_unstable();
    let mut counted: Vec<(T, u8)> = Vec::with_capacity(things.len());
    for thing in things {
        match counted.last_mut() {
            Some((last, count)) if *last == thing => *count = count.saturating_add(1),
            _ => counted.push((thing, 1)),
        }
    }
    counted
}

/// FNV-1a: terms are short, and no attacker gains anything from a collision.
pub(crate) fn term_hash(term: &str) -> TermHash {
    fnv32(term.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_written_as_the_analyser_writes_them() {
        let names = "January February March April May June July August September October November December";
        for (name, month) in names.split(' ').zip(MONTHS) {
            let terms = question_terms(name);
            assert!(terms.contains(&(term_hash(month), 1)), "{name} does not give the term {month}");
        }
        assert!(question_terms("what may happen in town").iter().all(|(hash, _)| *hash != term_hash("may")));
    }
}
