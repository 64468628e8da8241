//! Finds memories that need a person's look: duplicates, unnoticed contradictions, junk, old todos, memories that are
//! never recalled, and secrets.
//!
//! The checks work on statements alone, so that they also serve for memories of another program. They find and explain; the
//! caller decides. Deliberately absent: storage. Start reading at [`examine`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;
use strata_core::error::Result;
use strata_core::memory::MemoryKind;
use strata_core::ports::{PairReading, Relation};
use strata_language::content::is_courtesy;
use strata_language::normalised;
use strata_language::rules::is_question;
use strata_language::secrets::{SecretKind, masked, secrets};
use strata_language::statements::{denies, tells_cause};
use strata_language::text::analyse;

use crate::learning::Learning;

/// An open todo that is older may be done or forgotten.
const STALE_DAYS: i64 = 60;

/// A memory that is younger may still be recalled.
const YOUNG_DAYS: i64 = 30;

/// Fewer answers to a user say nothing about which of the user's memories are of use.
pub const ENOUGH_ANSWERS: usize = 20;

/// The share of terms that two statements must have in common to be compared.
const NEAR: f32 = 0.4;

/// The most statements that one is compared with.
const MOST_NEAR: usize = 8;

/// A term of more statements tells nothing, as the name of the user in each memory.
const MOST_COMMON: usize = 200;

/// The reader's probability from which two statements contradict each other, or say the same.
const SURE: f32 = 0.8;
const VERY_SURE: f32 = 0.95;

/// The pairs that the reader reads at once.
const PAIRS_A_BATCH: usize = 32;

/// A statement to examine.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStatement {
    /// The id, as the caller shows it.
    pub id: String,
    /// The text.
    pub content: String,
    /// The kind.
    pub kind: MemoryKind,
    /// When it was recorded; `None` if that is unknown.
    pub at: Option<Timestamp>,
    /// The user or session to which it belongs. Only statements of the same owner are compared.
    pub owner: String,
    /// Whether it is known to contradict another one, or to say the same as others.
    pub is_related: bool,
    /// Whether an answer has used it.
    pub was_recalled: bool,
    /// The number of its user's answers whose items are known; 0 if there are none or it is another program's.
    pub answers: usize,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProblemKind {
    /// It holds a secret.
    Secret,
    /// Two statements cannot both be true.
    Contradiction,
    /// Two statements say the same.
    Duplicate,
    /// It is not a statement.
    Junk,
    /// A todo that has been open for long.
    StaleTodo,
    /// No answer has used it.
    NeverRecalled,
}

impl ProblemKind {
    /// The name that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StaleTodo => "stale todo",
            Self::NeverRecalled => "never recalled",
            other => other.into(),
        }
    }
}

/// A problem of one statement, or of two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    /// The kind.
    pub kind: ProblemKind,
    /// The place of the statement that a remedy changes.
    #[serde(skip)]
    pub place: usize,
    /// The place of the statement that stays.
    #[serde(skip)]
    pub other: Option<usize>,
    /// Why, in words.
    pub why: String,
    /// Whether the remedy is safe without a person's look.
    pub is_sure: bool,
}

/// The problems of `statements`, the gravest first. The reader of `learning`, if it has one, compares the statements that are
/// near each other; the same words with another value are found without it too.
pub async fn examine(
    learning: &Learning,
    statements: &[StoredStatement],
    now: Timestamp,
) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (place, statement) in statements.iter().enumerate() {
        problems.extend(alone(place, statement, now));
    }
    // Junk is not compared, because it is removed anyway.
    let junk: HashSet<usize> = problems
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Junk)
        .map(|problem| problem.place)
        .collect();
    let mut duplicates = HashSet::new();
    for problem in same_words(statements, &junk) {
        duplicates.insert(problem.place);
        problems.push(problem);
    }
    let skipped: HashSet<usize> = junk.union(&duplicates).copied().collect();
    let pairs = near_pairs(statements, &skipped);
    problems.extend(compared(learning, statements, &pairs).await?);
    problems.sort_by_key(|problem| (problem.kind, problem.place));
    Ok(problems)
}

/// The problems of a statement by itself.
fn alone(place: usize, statement: &StoredStatement, now: Timestamp) -> Vec<Problem> {
    let problem = |kind, why: String| Problem {
        kind,
        place,
        other: None,
        why,
        is_sure: kind != ProblemKind::NeverRecalled,
    };
    let mut problems = Vec::new();
    let found = secrets(&statement.content);
    let kinds: BTreeSet<&str> = found.iter().map(|secret| secret.kind.as_str()).collect();
    if !kinds.is_empty() {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        // The number of an account may well be what a person wants to be reminded of.
        let is_sure = found.iter().any(|secret| secret.kind != SecretKind::Account);
        let held = problem(ProblemKind::Secret, format!("holds {}", kinds.join(" and ")));
        problems.push(Problem { is_sure, ..held });
    }
    if let Some(why) = junk(&statement.content) {
        problems.push(problem(ProblemKind::Junk, why.to_owned()));
        return problems;
    }
    let days = statement.at.map(|at| now.duration_since(at).as_hours() / 24);
    if let Some(days) = days.filter(|days| statement.kind == MemoryKind::Todo && *days >= STALE_DAYS) {
        problems.push(problem(ProblemKind::StaleTodo, format!("has been open for {days} days")));
    }
    let is_old = days.is_some_and(|days| days >= YOUNG_DAYS);
    if is_old
        && statement.answers >= ENOUGH_ANSWERS
        && !statement.was_recalled
        && statement.kind != MemoryKind::Instruction
    {
        problems.push(problem(
            ProblemKind::NeverRecalled,
            format!("no one of {} answers used it", statement.answers),
        ));
    }
    problems
}

/// Phrases that models say about themselves.
const BOILERPLATE: [&str; 8] = [
    "as an ai language model",
    "as an ai assistant",
    "i'm just an ai",
    "i cannot assist with",
    "is there anything else i can help",
    "作为一个人工智能",
    "作为ai助手",
    "作为一个ai",
];

/// Why a text is not a statement.
fn junk(content: &str) -> Option<&'static str> {
    let text = content.trim();
    let lower = text.to_lowercase();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_address = !text.contains(char::is_whitespace)
        && (lower.starts_with("http://") || lower.starts_with("https://"));
    let is_markup = text.starts_with('<') && text.ends_with('>') || text.starts_with("```");
    let is_data =
        (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'));
    Some(match () {
        () if letters < 2 => "has no words",
        () if is_address => "is an address and says nothing about it",
        () if is_markup || is_data => "is code or data and not a statement",
        () if BOILERPLATE.iter().any(|phrase| lower.contains(phrase)) => "is what a model says about itself",
        // Many programs leave out the subject, so that statements begin like questions: «Is allergic to peanuts».
        () if is_question(text) && text.ends_with(['?', '？']) => "is a question and not a statement",
        () if is_courtesy(text) => "is a courtesy and says nothing",
        () => return None,
    })
}

/// Statements in the same words: all but the newest.
fn same_words(statements: &[StoredStatement], without: &HashSet<usize>) -> Vec<Problem> {
    let mut groups: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (place, statement) in statements.iter().enumerate().filter(|(place, _)| !without.contains(place)) {
        groups.entry((&statement.owner, normalised(&statement.content))).or_default().push(place);
    }
    let mut problems = Vec::new();
    for mut group in groups.into_values().filter(|group| group.len() > 1) {
        group.sort_by_key(|place| statements[*place].at);
        let Some(newest) = group.pop() else { continue };
        problems.extend(group.into_iter().map(|place| Problem {
            kind: ProblemKind::Duplicate,
            place,
            other: Some(newest),
            why: "says the same in the same words as".to_owned(),
            is_sure: true,
        }));
    }
    problems
}

/// Pairs of statements that share many terms, the older one first.
fn near_pairs(statements: &[StoredStatement], without: &HashSet<usize>) -> Vec<(usize, usize)> {
    let terms: Vec<HashSet<String>> =
        statements.iter().map(|statement| analyse(&statement.content).into_iter().collect()).collect();
    let mut by_term: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (place, statement) in statements.iter().enumerate().filter(|(place, _)| !without.contains(place)) {
        for term in &terms[place] {
            by_term.entry((&statement.owner, term)).or_default().push(place);
        }
    }
    let mut pairs = HashSet::new();
    for (place, statement) in statements.iter().enumerate().filter(|(place, _)| !without.contains(place)) {
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for term in &terms[place] {
            let others =
                by_term.get(&(statement.owner.as_str(), term.as_str())).map_or(&[][..], Vec::as_slice);
            for other in others.iter().filter(|other| **other != place && others.len() <= MOST_COMMON) {
                *shared.entry(*other).or_default() += 1;
            }
        }
        let likeness = |other: usize, count: usize| {
            count as f32 / terms[place].len().min(terms[other].len()).max(1) as f32
        };
        let mut near: Vec<(usize, f32)> =
            shared.into_iter().map(|(other, count)| (other, likeness(other, count))).collect();
        near.retain(|(other, share)| {
            *share >= NEAR && !(statements[*other].is_related && statement.is_related)
        });
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (other, _) in near.into_iter().take(MOST_NEAR) {
            let older_first = (statements[place].at, place) <= (statements[other].at, other);
            pairs.insert(if older_first { (place, other) } else { (other, place) });
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable();
    pairs
}

/// The problems of pairs, by the reader or else by their words alone.
async fn compared(
    learning: &Learning,
    statements: &[StoredStatement],
    pairs: &[(usize, usize)],
) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for batch in pairs.chunks(PAIRS_A_BATCH) {
        let texts: Vec<(&str, &str)> = batch
            .iter()
            .map(|(old, new)| (statements[*old].content.as_str(), statements[*new].content.as_str()))
            .collect();
        let readings = learning.compare(&texts).await?;
        for (number, (old, new)) in batch.iter().enumerate() {
            let is_lasting = stays_true(&statements[*old], texts[number].1);
            let read =
                readings.as_ref().and_then(|readings| judged(*old, *new, readings.get(number)?, is_lasting));
            let by_words = || {
                (!is_lasting && has_other_value(texts[number].0, texts[number].1))
                    .then(|| contradiction(*old, *new, false))
            };
            problems.extend(read.or_else(by_words));
        }
    }
    // A statement is mended once, and then looked at again: first in the way that is safe.
    problems.sort_by_key(|problem| !problem.is_sure);
    let mut seen = HashSet::new();
    problems.retain(|problem| seen.insert(problem.place));
    Ok(problems)
}

/// The problem of a pair. A statement that is lasting is out of date by nothing that came later.
fn judged(old: usize, new: usize, reading: &PairReading, is_lasting: bool) -> Option<Problem> {
    if reading.change() >= SURE {
        return (!is_lasting).then(|| contradiction(old, new, true));
    }
    (reading.of(Relation::Repeats) >= VERY_SURE).then(|| Problem {
        kind: ProblemKind::Duplicate,
        place: old,
        other: Some(new),
        why: "says the same as".to_owned(),
        is_sure: true,
    })
}

/// Whether a statement tells of the past or gives a cause, and a later one does not deny it: what was done about a cause
/// does not make the cause untrue.
fn stays_true(old: &StoredStatement, new: &str) -> bool {
    (old.kind == MemoryKind::Event || tells_cause(&old.content)) && !denies(new)
}

fn contradiction(old: usize, new: usize, is_sure: bool) -> Problem {
    let why = if is_sure { "is out of date by" } else { "may be out of date by" }.to_owned();
    Problem { kind: ProblemKind::Contradiction, place: old, other: Some(new), why, is_sure }
}

/// Whether two statements have the same words but for one place near their end: «lives in Oslo», «lives in Bergen».
fn has_other_value(old: &str, new: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let text = normalised(text);
        match text.contains(' ') {
            true => text.split(' ').map(str::to_owned).collect(),
            false => text.chars().map(String::from).collect(),
        }
    };
    let (old, new) = (words(old), words(new));
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = (old.len() - before).min(new.len() - before);
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let changed = (old.len() - before - after).max(new.len() - before - after);
    before >= 3 && (1..=2).contains(&changed) && before + after > changed
}

/// A statement as a report shows it: its secrets are masked.
pub fn shown(content: &str) -> String {
    masked(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(id: &str, content: &str, day: i64) -> StoredStatement {
        StoredStatement {
            id: id.to_owned(),
            content: content.to_owned(),
            kind: MemoryKind::Fact,
            at: Timestamp::from_second(day * 86_400).ok(),
            owner: "mara".to_owned(),
            is_related: false,
            was_recalled: false,
            answers: 50,
        }
    }

    fn kinds(problems: &[Problem]) -> Vec<(ProblemKind, usize)> {
        problems.iter().map(|problem| (problem.kind, problem.place)).collect()
    }

    #[test]
    fn junk_says_nothing() {
        for text in [
            "???",
            "12345",
            "https://example.org/x",
            "What time is it in Perth?",
            "Thanks!",
            "谢谢你！",
            "<div>x</div>",
            "{\"a\": 1}",
            "As an AI language model I have no opinion on soup.",
            "明天几点开会？",
        ] {
            assert!(junk(text).is_some(), "{text}");
        }
        for text in [
            "Mara plays the cello",
            "玛拉住在成都",
            "The gate code changes in May",
            "Mara's site is https://example.org",
            "Has to renew the ferry pass before June",
            "Is allergic to lupins",
            "Does not eat shellfish",
            "Can't swim",
            "What matters to Mara is quiet",
        ] {
            assert_eq!(junk(text), None, "{text}");
        }
    }

    #[test]
    fn a_statement_alone_may_be_a_secret_stale_or_unused() {
        let now = Timestamp::from_second(100 * 86_400).unwrap();
        let check = |statement: &StoredStatement, expected: &[ProblemKind]| {
            let found: Vec<_> = alone(0, statement, now).into_iter().map(|problem| problem.kind).collect();
            assert_eq!(found, expected, "{}", statement.content);
        };
        let secret = statement("1", "Mara's card is 4539 5787 6362 1486", 99);
        check(&secret, &[ProblemKind::Secret]);
        let todo = StoredStatement {
            kind: MemoryKind::Todo,
            was_recalled: true,
            ..statement("2", "Mara has to call the roofer", 10)
        };
        check(&todo, &[ProblemKind::StaleTodo]);
        check(&StoredStatement { at: Timestamp::from_second(80 * 86_400).ok(), ..todo }, &[]);
        let unused = statement("3", "Mara's first bicycle was green", 10);
        check(&unused, &[ProblemKind::NeverRecalled]);
        check(&StoredStatement { answers: 19, ..unused.clone() }, &[]);
        check(&StoredStatement { was_recalled: true, ..unused }, &[]);
    }

    #[test]
    fn the_older_of_two_equal_statements_is_the_duplicate() {
        let all = [
            statement("new", "Mara plays the cello.", 9),
            statement("old", "mara plays the  cello", 3),
            StoredStatement { owner: "other".into(), ..statement("foreign", "Mara plays the cello", 1) },
        ];
        let found = same_words(&all, &HashSet::new());
        assert_eq!(kinds(&found), [(ProblemKind::Duplicate, 1)]);
        assert_eq!(found[0].other, Some(0));
    }

    #[test]
    fn only_near_statements_of_one_owner_are_compared() {
        let all = [
            statement("a", "Mara rents a flat in Leipzig", 1),
            statement("b", "Mara rents a flat in Dresden", 5),
            statement("c", "The cello needs new strings", 2),
            StoredStatement { owner: "other".into(), ..statement("d", "Mara rents a flat in Halle", 1) },
        ];
        assert_eq!(near_pairs(&all, &HashSet::new()), [(0, 1)]);
        let related = all.map(|one| StoredStatement { is_related: true, ..one });
        assert!(near_pairs(&related, &HashSet::new()).is_empty());
    }

    #[test]
    fn a_cause_is_not_out_of_date_by_what_was_done_about_it() {
        let mut reading = PairReading::default();
        reading.0[Relation::Replaces as usize] = 0.97;
        let check = |old: &StoredStatement, new: &str, expected: bool| {
            let problem = judged(0, 1, &reading, stays_true(old, new));
            assert_eq!(problem.is_some(), expected, "{} / {new}", old.content);
        };
        for (cause, later, denial) in [
            (
                "The cello buzzed because its bridge was cracked.",
                "The cello has a new bridge and sounds clear.",
                "It wasn't the bridge after all, the cello buzzed from a loose peg.",
            ),
            (
                "大提琴有杂音，原因是琴马裂了。",
                "大提琴换了新琴马，声音很干净。",
                "其实不是琴马的问题，是弦轴松了。",
            ),
        ] {
            check(&statement("cause", cause, 1), later, false);
            check(&statement("cause", cause, 1), denial, true);
        }
        let event =
            StoredStatement { kind: MemoryKind::Event, ..statement("e", "Mara sold the cello in May", 1) };
        check(&event, "Mara has a new cello", false);
        check(&statement("home", "Mara rents a flat in Leipzig", 1), "Mara moved to Dresden", true);
    }

    #[test]
    fn another_value_in_the_same_words_may_be_a_contradiction() {
        let check = |old: &str, new: &str, expected: bool| {
            assert_eq!(has_other_value(old, new), expected, "{old} / {new}")
        };
        check("Mara rents a flat in Leipzig", "Mara rents a flat in Dresden", true);
        check("玛拉现在住在成都", "玛拉现在住在重庆", true);
        check("Mara rents a flat in Leipzig", "Mara plays the cello in Leipzig", false);
        check("Mara likes tea", "Mara likes coffee", false);
        check("The gate code changes in May", "The gate code changes in May", false);
    }
}
