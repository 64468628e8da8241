//! English sentences.

use super::verbs::{is_auxiliary, is_base, is_past, is_third};

/// Words that may stand before the subject of a sentence.
const LEADS: &str =
    "also and but so now currently actually well ok okay btw yes yeah oh plus anyway hi hello";
/// Words that may stand between a subject and its verb.
const ADVERBS: &str = "never always also just still often only really now already even rarely hardly sometimes mostly usually generally actually finally \
    currently recently probably then both no longer ever once soon later again maybe basically mainly regularly occasionally";
/// Words after which everything stands under a condition, a question or a report.
const SCOPES: &str = "if when whenever unless whether think thinks thought guess hope hopes believe know knows knew said says say told tell tells heard \
    hear wish suppose imagine assume pretend saying telling asking dreamt dreamed dream whoever whatever wherever that what how why";
/// Words that begin a clause inside another one: what follows belongs to it, unless it has a subject of its own.
const INNER: &str =
    "because since until till while although though which who whose whom where once before after as so than";
/// Words that need the part before them.
const BACKWARD: &str = "it its they them their theirs he she him her his hers there that those one ones both either neither same other others then \
    instead otherwise do does did so such likewise vice";
/// Verbs of the speaker that are followed by another verb in the base form.
const MODAL: &str = "can could will would should must may might shall gotta can't cannot won't";
/// Verbs that do so with «to».
const WITH_TO: &str = "have need want plan got going hope decided used ought like love remember try trying planning meant supposed";
/// Verbs in the base form of what holds, after a past. They are seldom nouns there.
const HOLDS: &str = "live work teach study rent run keep own commute manage lead earn sell coach";
/// How far the verb of a subject may stand from its beginning.
const REACH: usize = 5;
/// The least number of words of a fact with its own subject, and of one without.
const OWN_WORDS: usize = 3;
const VERB_WORDS: usize = 2;

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// A word of the sentence.
struct Word<'s> {
    /// The word with the marks around it.
    raw: &'s str,
    /// The word alone, in lower case.
    lower: String,
    /// Whether it stands in a quotation or in brackets.
    inside: bool,
}

impl Word<'_> {
    /// The word without a contracted verb: «i» of «I'm».
    fn stem(&self) -> &str {
        self.lower.split('\'').next().unwrap_or_default()
    }

    fn ends_with(&self, marks: &[char]) -> bool {
        self.raw.ends_with(marks)
    }

    fn is_name(&self) -> bool {
        self.raw.starts_with(char::is_uppercase) && !matches!(self.stem(), "i" | "my" | "our" | "we")
    }
}

fn words(sentence: &str) -> Vec<Word<'_>> {
    let (mut quoted, mut depth) = (false, 0_i32);
    let word = |raw: &'_ str| -> (bool, String) {
        let opens = raw.starts_with(['"', '“', '«', '(', '[']);
        let closes = raw.trim_end_matches(['.', ',', ';', '!', '?']).ends_with(['"', '”', '»', ')', ']']);
        let inside = quoted || depth > 0 || opens;
        depth += i32::from(raw.starts_with(['(', '['])) - i32::from(closes && raw.contains([')', ']']));
        quoted = (quoted || raw.starts_with(['"', '“', '«'])) && !(closes && raw.contains(['"', '”', '»']));
        let lower = raw.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('’', "'");
        (inside, lower)
    };
    let mut word = word;
    let read = |raw| {
        let (inside, lower) = word(raw);
        Word { raw, lower, inside }
    };
    sentence.split_whitespace().map(read).collect()
}

/// How the verb of a clause goes on in a clause without a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tense {
    /// «I live»: a verb in the same form follows.
    Present,
    /// «I moved».
    Past,
    /// «I have moved»: the auxiliary is carried over with the subject.
    Perfect,
    /// «I have to call»: all before the verb is carried over.
    Infinitive,
    /// «I'm vegan».
    Copula,
    /// No verb is carried over.
    Closed,
}

/// The subject of a clause, with what else of it is carried over.
#[derive(Debug, Clone, PartialEq)]
struct Subject {
    /// The words that are carried over before a verb of the same form, and before an auxiliary.
    carried: String,
    alone: String,
    tense: Tense,
    /// Whether it is the speaker.
    first: bool,
}

pub(super) fn facts(sentence: &str) -> Vec<String> {
    let words = words(sentence);
    let is_whole = sentence.ends_with('?')
        || words.first().is_none_or(|word| is_scope(word) || is_in(INNER, &word.lower));
    if is_whole {
        return Vec::new();
    }
    let end: &str = if sentence.ends_with('.') { "." } else { "" };
    let found = errands(&words).or_else(|| clauses(&words));
    let close = |(place, fact): (usize, &String), all: usize| {
        if place + 1 == all { fact.clone() } else { format!("{fact}{end}") }
    };
    let found = found.unwrap_or_default();
    found.iter().enumerate().map(|one| close(one, found.len())).collect()
}

fn is_scope(word: &Word<'_>) -> bool {
    is_in(SCOPES, &word.lower)
}

fn text(words: &[Word<'_>]) -> String {
    const TRAILING: &str =
        "and but so thankfully luckily fortunately unfortunately sadly then also now however currently";
    let last = words.iter().rposition(|word| !is_in(TRAILING, &word.lower));
    // «…, but thankfully» belongs to the clause after it.
    let end = last.filter(|last| words[*last].ends_with(&[',', ';'])).map_or(words.len(), |last| last + 1);
    let text = words[..end].iter().map(|word| word.raw).collect::<Vec<_>>().join(" ");
    text.trim_end_matches([',', ';', '-', '–', '—', ' ']).to_owned()
}

/// A bare list of things to do: each item begins with a verb.
fn errands(words: &[Word<'_>]) -> Option<Vec<String>> {
    let label = words.iter().position(|word| word.ends_with(&[':']));
    let is_label = |at: &usize| {
        *at < 4
            && words[..=*at]
                .iter()
                .any(|word| matches!(word.stem(), "todo" | "to-do" | "todos" | "tasks" | "errands"))
    };
    let from = label.filter(is_label).map_or(0, |at| at + 1);
    let mut items: Vec<(usize, usize)> = Vec::new();
    let mut start = from;
    for at in from..words.len() {
        let joins = words[at].lower == "and";
        if joins || at > from && words[at - 1].ends_with(&[',', ';']) {
            if start < at {
                items.push((start, at));
            }
            start = at + usize::from(joins);
        }
    }
    items.push((start, words.len()));
    let is_item = |(from, to): &(usize, usize)| {
        let item = &words[*from..*to];
        let is_verb = item.first().is_some_and(|first| is_base(&first.lower) && !first.inside);
        is_verb
            && item.len() >= VERB_WORDS
            && !item.iter().any(|word| is_in(BACKWARD, &word.lower) || is_scope(word))
    };
    if items.len() < 2 || items.len() < 3 && from == 0 || !items.iter().all(is_item) {
        return None;
    }
    let label = if from == 0 { String::new() } else { format!("{} ", text(&words[..from])) };
    Some(items.into_iter().map(|(from, to)| format!("{label}{}", text(&words[from..to]))).collect())
}

/// The clauses of a sentence with a subject; `None` if it is one.
fn clauses(words: &[Word<'_>]) -> Option<Vec<String>> {
    let mut subject = subject(words)?;
    let mut found: Vec<String> = Vec::new();
    let (mut from, mut prefix) = (0, String::new());
    let mut at = 1;
    while at < words.len() {
        let Some(start) = joint(words, at) else {
            at += 1;
            continue;
        };
        let left = &words[from..at];
        let carried = prefix.split_whitespace().count();
        match next_clause(words, start, at, left, carried, &subject) {
            Some((carried, new)) => {
                found.push(format!("{prefix}{}", text(left)));
                prefix = carried;
                subject = new;
                from = start;
                at = start + 1;
            }
            None => at += 1,
        }
    }
    found.push(format!("{prefix}{}", text(&words[from..])));
    Some(found)
}

/// The first word of the clause after a joint before or at `at`.
fn joint(words: &[Word<'_>], at: usize) -> Option<usize> {
    if words[at].inside {
        return None;
    }
    let joins =
        matches!(words[at].lower.as_str(), "and" | "but") || matches!(words[at].raw, "-" | "–" | "—" | "&");
    let start = at + usize::from(joins);
    (start < words.len() && (joins || words[at - 1].ends_with(&[',', ';']))).then_some(start)
}

/// The words that the clause at `start` takes over and its subject, if it can stand alone beside what is left of it.
fn next_clause(
    words: &[Word<'_>],
    start: usize,
    joint: usize,
    left: &[Word<'_>],
    carried: usize,
    before: &Subject,
) -> Option<(String, Subject)> {
    // «I'm vegan» has three words.
    let is_contracted =
        |word: &&Word<'_>| is_in("i we he she it they", word.stem()) && word.stem() != word.lower;
    let contracted = left.iter().filter(is_contracted).count();
    if left.iter().any(is_scope) || left.len() + contracted + carried < OWN_WORDS {
        return None;
    }
    let end = (start + 1..words.len()).find(|at| self::joint(words, *at).is_some()).unwrap_or(words.len());
    let right = &words[start..end];
    // «…, and the deadline is Friday» needs what it is the deadline of.
    let is_backward = |word: &Word<'_>| is_in(BACKWARD, &word.lower) || word.lower == "together";
    if right[0].lower == "the" || right.iter().any(is_backward) {
        return None;
    }
    let is_inner = left.iter().any(|word| is_in(INNER, &word.lower));
    let has_mark = words[joint - 1].ends_with(&[',', ';']);
    // «Lotte and I are away»
    let is_both = matches!(right[0].stem(), "i")
        && right.get(1).is_some_and(|word| is_in("are aren't were weren't", &word.lower));
    // «…, and me and my crew were away»
    let is_pair = joint >= 2 && words[joint - 2].lower == "and" && !words[joint - 1].ends_with(&[',', ';']);
    if is_both || is_pair || opens_condition(left) {
        return None;
    }
    if let Some(own) = own_subject(right) {
        return (right.len() >= OWN_WORDS && (!is_inner || has_mark)).then_some((String::new(), own));
    }
    // Without «and», a verb follows a comma in a list of verbs alone.
    let is_listed =
        words[joint].lower == "and" || words[joint].lower == "but" || closes_with_and(words, start);
    let carried_here = if carried == 0 { before.carried.split_whitespace().count() } else { 0 };
    let is_bare = before.tense == Tense::Infinitive && left.len() < carried_here + VERB_WORDS;
    // A pronoun between them may be the subject instead.
    let is_doubtful = left.iter().any(|word| matches!(word.stem(), "he" | "she" | "it" | "they"));
    if is_inner || is_bare || is_doubtful || right.len() < VERB_WORDS || !is_listed {
        return None;
    }
    continued(right, before).map(|carried| (carried, before.clone()))
}

/// Whether a clause ends in another one that belongs to what follows: «I rowed, and while it rained, …».
fn opens_condition(left: &[Word<'_>]) -> bool {
    const OPENS: &str = "while although though when if once as since because before after until unless";
    let last = left.iter().rposition(|word| is_in(OPENS, &word.lower)).filter(|at| *at > 0);
    last.is_some_and(|at| {
        left[at - 1].ends_with(&[',', ';']) || matches!(left[at - 1].lower.as_str(), "and" | "but")
    })
}

fn closes_with_and(words: &[Word<'_>], start: usize) -> bool {
    let last = (start..words.len()).rev().find_map(|at| joint(words, at).map(|from| (at, from)));
    last.is_some_and(|(at, from)| {
        words[at].lower == "and"
            && words
                .get(from)
                .is_some_and(|word| is_base(&word.lower) || is_third(&word.lower) || is_past(&word.lower))
    })
}

/// The words that are carried over to a clause that begins with its verb.
fn continued(right: &[Word<'_>], before: &Subject) -> Option<String> {
    let verb = right.iter().find(|word| !is_in(ADVERBS, &word.lower))?;
    let lower = verb.lower.as_str();
    let carried = match before.tense {
        Tense::Infinitive if is_base(lower) && verb.raw == lower => Some(&before.carried),
        Tense::Perfect if is_past(lower) => Some(&before.carried),
        Tense::Past if is_past(lower) => Some(&before.alone),
        // «I moved to Bari and teach Latin»: what was done, and what holds since.
        Tense::Past if before.first && is_in(HOLDS, lower) && verb.raw == lower => Some(&before.alone),
        Tense::Present | Tense::Copula if before.first && is_base(lower) && lower != "have" => {
            Some(&before.alone)
        }
        Tense::Present | Tense::Copula if !before.first && is_third(lower) => Some(&before.alone),
        Tense::Infinitive => None,
        _ if is_auxiliary(lower) && agrees(lower, before.first) && right.len() > VERB_WORDS => {
            Some(&before.alone)
        }
        _ => None,
    };
    carried.map(|carried| format!("{carried} "))
}

fn agrees(auxiliary: &str, first: bool) -> bool {
    match auxiliary {
        "am" | "have" | "haven't" | "do" | "don't" => first,
        "is" | "has" | "hasn't" | "does" | "doesn't" | "isn't" => !first,
        "are" | "were" | "aren't" | "weren't" => false,
        _ => true,
    }
}

/// Whether a text begins with a verb of the third person.
pub(super) fn begins_with_verb(text: &str) -> bool {
    let first = words(text).into_iter().find(|word| !is_in(ADVERBS, &word.lower));
    first.is_some_and(|word| is_third(&word.lower) || is_auxiliary(&word.lower) && agrees(&word.lower, false))
}

/// The name with which a statement begins, if a verb follows it.
pub(super) fn named_subject(statement: &str) -> Option<&str> {
    let mut words = statement.split_whitespace();
    let name = words.next().filter(|name| name.chars().all(char::is_alphabetic))?;
    let is_name =
        name.starts_with(char::is_uppercase) && !matches!(name, "I" | "It" | "This" | "That" | "There");
    let verb = words.next().map(str::to_lowercase)?;
    (is_name && (is_third(&verb) || matches!(verb.as_str(), "is" | "was" | "had"))).then_some(name)
}

/// The subject of the first clause.
fn subject(words: &[Word<'_>]) -> Option<Subject> {
    let from = words.iter().position(|word| !is_in(LEADS, &word.lower))?;
    let first = &words[from];
    // «Moved to Porto and …»
    let next = words.get(from + 1).map(|word| word.lower.as_str()).unwrap_or_default();
    if first.lower.len() > 4 && is_past(&first.lower) && is_in("to in from at the a my our", next) {
        return Some(Subject {
            carried: "I".to_owned(),
            alone: "I".to_owned(),
            tense: Tense::Past,
            first: true,
        });
    }
    own_subject(&words[from..])
}

/// The subject of a clause that names it.
fn own_subject(words: &[Word<'_>]) -> Option<Subject> {
    let first = words.first().filter(|word| !word.inside)?;
    match first.stem() {
        "i" | "we" if words.len() > 1 => Some(of_speaker(words)),
        "im" | "ive" => Some(of_speaker(words)),
        "my" | "our" => of_other(words, 2),
        "the" => of_other(words, 2),
        _ if first.is_name() => of_other(words, 1),
        _ => None,
    }
}

fn of_speaker(words: &[Word<'_>]) -> Subject {
    let pronoun = words[0].raw.split(['\'', '’']).next().unwrap_or_default();
    let pronoun = pronoun.trim_start_matches(|c: char| !c.is_alphabetic());
    let pronoun = if pronoun.len() > 2 { pronoun.get(..1).unwrap_or(pronoun) } else { pronoun };
    let contracted = words[0].lower.split_once('\'').map(|(_, ending)| ending);
    let is_short = |short: &str| words[0].lower == short;
    let at = (1..words.len()).find(|at| !is_in(ADVERBS, &words[*at].lower)).unwrap_or(words.len());
    let word = |at: usize| words.get(at).map(|word| word.lower.as_str()).unwrap_or_default();
    let (verb, next) = (word(at), word(at + 1));
    let is_denied = verb.ends_with("n't")
        || next == "not"
        || words[1..at.min(words.len())].iter().any(|word| word.lower == "never");
    let to = |at: usize| text(&words[..at.min(words.len())]);
    let (tense, carried) = match (contracted, verb) {
        _ if is_denied => (Tense::Closed, String::new()),
        (Some("m" | "re"), "going") | (None, "am") if next == "to" => (Tense::Infinitive, to(at + 2)),
        (Some("m" | "re"), _) | (None, "am" | "are" | "was" | "were") => (Tense::Copula, String::new()),
        _ if is_short("im") => (Tense::Copula, String::new()),
        (Some("ve"), "got") if next == "to" => (Tense::Infinitive, to(at + 2)),
        (Some("ve"), verb) if is_past(verb) => (Tense::Perfect, to(at)),
        (Some("ll"), _) => (Tense::Infinitive, to(at)),
        (Some(_), _) => (Tense::Closed, String::new()),
        (None, verb) if is_in(MODAL, verb) => (Tense::Infinitive, to(at + 1)),
        (None, verb) if is_in(WITH_TO, verb) && next == "to" => (Tense::Infinitive, to(at + 2)),
        (None, "have") if is_past(next) => (Tense::Perfect, to(at + 1)),
        (None, verb) if is_past(verb) => (Tense::Past, pronoun.to_owned()),
        (None, verb) if is_auxiliary(verb) && verb != "have" => (Tense::Closed, String::new()),
        (None, _) => (Tense::Present, pronoun.to_owned()),
    };
    Subject { carried, alone: pronoun.to_owned(), tense, first: true }
}

/// A subject that is not the speaker: its verb stands within reach.
fn of_other(words: &[Word<'_>], least: usize) -> Option<Subject> {
    let reach = words.len().min(REACH + 1);
    let at = (least..reach).find(|at| {
        let lower = &words[*at].lower;
        words[*at].raw.starts_with(char::is_lowercase)
            && (is_auxiliary(lower) || is_third(lower) || is_moving(lower))
    })?;
    let is_plain = |word: &Word<'_>| {
        !word.inside && !word.ends_with(&[',', ';', ':']) && !is_in("and or but to who which", &word.lower)
    };
    if !words[..at].iter().all(is_plain) || at + 1 >= words.len() {
        return None;
    }
    let verb = words[at].lower.as_str();
    let next = words.get(at + 1).map(|word| word.lower.as_str()).unwrap_or_default();
    let alone = text(&words[..at]);
    let tense = match verb {
        "is" | "was" => Tense::Copula,
        "has" if is_past(next) || next == "been" || next == "to" => Tense::Closed,
        verb if verb.ends_with("n't") || is_in(MODAL, verb) => Tense::Closed,
        verb if is_past(verb) => Tense::Past,
        verb if is_third(verb) => Tense::Present,
        _ => Tense::Closed,
    };
    Some(Subject { carried: alone.clone(), alone, tense, first: false })
}

/// Pasts that are seldom participles after a noun.
fn is_moving(word: &str) -> bool {
    is_in(
        "moved started turned died changed joined finished passed graduated went came got bought sold left became quit",
        word,
    )
}
