//! The subject of an English sentence: the user, a relative or pet, a named person, or a thing.

use super::super::value;
use super::verbs::{Form, lemma};
use super::words;
use crate::Pattern;

/// The subject of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// The speaker, or «the user».
    User,
    /// A person with a name.
    Named(String),
    /// A relative, pet or contact of a person: sister, cat, landlord.
    Kin {
        /// The owner: `user` or a name.
        owner: String,
        /// The relation: `sister`.
        noun: String,
        /// The name, if it is given beside the noun.
        name: Option<String>,
        /// Whether the subject is the name itself: «sister's name».
        is_name: bool,
    },
    /// A thing that belongs to a person, or that is known without an owner: an appointment, a budget.
    Thing {
        /// The owner; none for «the».
        owner: Option<String>,
        /// The normal form of the noun: the slot.
        noun: String,
        /// The noun as it was said.
        display: String,
    },
}

impl Subject {
    /// The key for comparison.
    pub(super) fn key(&self) -> String {
        match self {
            Self::User => "user".to_owned(),
            Self::Named(name) => name.to_lowercase(),
            Self::Kin { owner, noun, name, .. } => match name {
                Some(name) => {
                    format!("{}'s {} {}", owner.to_lowercase(), value::noun(noun), name.to_lowercase())
                }
                None => format!("{}'s {}", owner.to_lowercase(), value::noun(noun)),
            },
            Self::Thing { owner, noun, .. } => format!("{}'s {noun}", owner.as_deref().unwrap_or("user")),
        }
    }

    /// Whether the same words may name other people too.
    pub(super) fn is_one_of_several(&self) -> bool {
        let Self::Kin { noun, name: None, .. } = self else { return false };
        let noun = value::noun(noun);
        words::SEVERAL.split_whitespace().any(|several| several == noun)
    }

    /// The displayed form in the third person; `who` names the user.
    pub(super) fn display(&self, who: &str) -> String {
        match self {
            Self::User => who.to_owned(),
            Self::Named(name) => name.clone(),
            Self::Kin { owner, noun, name, .. } => {
                let name = name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
                format!("{}'s {noun}{name}", owner_display(owner, who))
            }
            Self::Thing { owner: Some(owner), display, .. } => {
                format!("{}'s {display}", owner_display(owner, who))
            }
            Self::Thing { owner: None, display, .. } => format!("The {display}"),
        }
    }
}

/// The displayed form of an owner's name.
pub(super) fn owner_display(owner: &str, who: &str) -> String {
    if owner == "user" { who.to_owned() } else { owner.to_owned() }
}

/// Capitalised words at the beginning of sentences that name no person.
const NO_PERSON: &str = "it he she they this that these those there here what who when where why how everyone everybody nobody someone somebody anyone people one \
    you your his her their its today tomorrow yesterday now then thanks thank yes no yeah ok okay sure hi hello hey please life work music \
    love time money nothing something everything anything all some most many both each any another other such lol haha wow great good nice \
    cool oh ah well so and but or if because as at in on for from with by to of the a an not never always maybe perhaps probably error \
    warning info debug note todo mine ours which whose while since until after before i";

/// The subject and the text after it; none if the subject is unknown.
pub(super) fn parse(clause: &str) -> Option<(Subject, &str)> {
    static OWNED: Pattern = Pattern::new(r"^(?i:(?<user>my|our|(?:the )?user's) |(?<the>the ))");
    static NAMED: Pattern = Pattern::new(r"^(?<name>[A-Z][\w-]*(?: [A-Z][\w-]*){0,3})(?<owns>'s)? ");
    let first = clause.split_whitespace().next()?.to_lowercase();
    if matches!(first.as_str(), "i" | "we" | "user") {
        return Some((Subject::User, clause[first.len()..].trim_start()));
    }
    if let Some(rest) = strip_word(clause, "the user") {
        return Some((Subject::User, rest));
    }
    if let Some(found) = OWNED.captures(clause) {
        let rest = &clause[found[0].len()..];
        return owned(found.name("user").map(|_| "user".to_owned()), rest);
    }
    // Notes without a subject («Lives in Lisbon») are about the user.
    if matches!(lemma(&first), Some((_, Form::Third)))
        && first != "is"
        && clause.starts_with(char::is_uppercase)
    {
        return Some((Subject::User, clause));
    }
    let found = NAMED.captures(clause)?;
    let (name, rest) = (&found["name"], &clause[found[0].len()..]);
    if NO_PERSON.split_whitespace().any(|word| word == first) {
        return None;
    }
    if found.name("owns").is_some() {
        return owned(Some(name.to_owned()), rest);
    }
    let verb = rest.split_whitespace().next()?;
    let finite = ["no", "used", "will", "also", "now", "does", "did"].contains(&verb)
        || matches!(lemma(verb), Some((_, Form::Third | Form::Past)));
    finite.then(|| (Subject::Named(name.to_owned()), rest))
}

fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let head = text.get(..word.len())?;
    let rest = text[word.len()..].strip_prefix(' ')?;
    head.eq_ignore_ascii_case(word).then_some(rest)
}

/// «sister lives in Oslo», «new phone is a Fairphone», after the owner.
fn owned(owner: Option<String>, rest: &str) -> Option<(Subject, &str)> {
    static KIN: Pattern = Pattern::made(|| {
        format!(
            r"^(?i:(?:(?:new|current|old|own|older|younger|elder|eldest|youngest|little|big|late|dear|lovely|beloved|pet) )*)(?<noun>(?i:{}))(?:,? (?<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?),?)?(?<is>'s name)?$",
            words::KIN
        )
    });
    let (noun, predicate) = split_at_verb(rest)?;
    if let Some(found) = KIN.captures(noun) {
        let owner = owner?;
        let name = found.name("name").map(|name| name.as_str().to_owned());
        let is_name = found.name("is").is_some();
        return Some((Subject::Kin { owner, noun: found["noun"].to_lowercase(), name, is_name }, predicate));
    }
    let display = noun.strip_prefix("new ").or_else(|| noun.strip_prefix("current ")).unwrap_or(noun);
    if display.split_whitespace().count() > 5 {
        return None;
    }
    Some((
        Subject::Thing { owner, noun: value::slot(&display.to_lowercase()), display: display.to_owned() },
        predicate,
    ))
}

/// Whether a noun names several people or animals.
pub(super) fn is_plural(noun: &str) -> bool {
    words::PLURAL.split_whitespace().any(|plural| plural == noun)
}

/// A noun phrase and the predicate after it. The predicate begins at the first word that can only be a verb there.
fn split_at_verb(text: &str) -> Option<(&str, &str)> {
    let (mut at, mut several) = (0, false);
    for (place, word) in text.split(' ').enumerate() {
        let lower = word.to_lowercase();
        let verb = matches!(
            lower.as_str(),
            "is" | "are"
                | "was"
                | "were"
                | "has"
                | "have"
                | "will"
                | "does"
                | "did"
                | "used"
                | "can"
                | "would"
                | "might"
                | "no"
        ) || matches!(lemma(&lower), Some((_, Form::Third | Form::Past)))
            || matches!(lower.as_str(), "live" | "work" | "love" | "like" | "also" | "now" | "just")
            || several && matches!(lemma(&lower), Some((_, Form::Base)));
        several = is_plural(&lower);
        if place > 0 && verb {
            return Some((text[..at].trim_end(), &text[at..]));
        }
        at += word.len() + 1;
    }
    None
}

/// Whether a thing with this noun may have this value. Allowed are nouns that are known to have values, favourites,
/// appointments with a time, and any noun with a name or a number as its value.
pub(super) fn may_have(noun: &str, owned: bool, slot: &str, value: &str) -> bool {
    static ATTRIBUTE: Pattern = Pattern::made(|| list(words::ATTRIBUTE));
    static APPOINTMENT: Pattern = Pattern::made(|| list(words::APPOINTMENT));
    static AMOUNT: Pattern = Pattern::made(|| list(words::AMOUNT));
    static NAME: Pattern = Pattern::made(|| format!("^{}$", words::NAMED));
    let is = |list: &Pattern| list.is_match(noun);
    let number = value.contains(|c: char| c.is_ascii_digit()) && value.split_whitespace().count() <= 6;
    if slot == "{n} when" {
        return is(&APPOINTMENT);
    }
    let about_words = noun
        .rsplit(' ')
        .next()
        .is_some_and(|last| words::NO_ATTRIBUTE.split_whitespace().any(|no| no == last));
    let clause = ["whether", "that", "how", "what", "why", "if", "when", "where", "who"];
    if about_words || value.split_whitespace().next().is_some_and(|first| clause.contains(&first)) {
        return false;
    }
    if noun.contains("favourite") {
        return owned && value.split_whitespace().count() <= 8;
    }
    let number = number || value::number(value).is_some();
    if is(&AMOUNT) && number {
        return true;
    }
    let telling = number || value.contains('@') || NAME.is_match(value::without_article(value));
    const PLAIN: &str = "major religion nationality hometown goal hobby password job role title thesis-topic star-sign blood-type diet nickname degree editor";
    let plain = PLAIN.split_whitespace().any(|one| one == noun.replace(' ', "-"))
        && value.split_whitespace().count() <= 4;
    owned && (telling && !noun.ends_with("day") || noun == "birthday" || is(&ATTRIBUTE) && plain)
}

fn list(words: &str) -> String {
    format!("(?i)(?:^| )(?:{words})$")
}
