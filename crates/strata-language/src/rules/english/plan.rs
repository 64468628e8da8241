//! Plans with a time, and deaths.

use jiff::Timestamp;

use super::super::claim::{Arity, Claim, Hold, ReadClaim, Verb};
use super::super::value;
use super::head::PredicateHead;
use super::subject::{self, Subject};
use super::{is_vague, points_back, say, without_times, words};
use crate::Pattern;
use crate::rules::StatementKind;
use crate::time;

/// A plan with a time: «I'm flying to Tokyo next Friday», «I have a meeting with Ana tomorrow».
pub(super) fn planned(
    subject: &Subject,
    head: &PredicateHead,
    whole: &str,
    bare: &str,
    who: &str,
    at: Timestamp,
) -> Vec<ReadClaim> {
    static APPOINTED: Pattern = Pattern::made(|| {
        format!(r"(?i)^have (?:an?|my|our|their) (?:[\w'-]+ ){{0,3}}?(?:{})\b", words::APPOINTMENT)
    });
    static WEEKDAY: Pattern = Pattern::new(r"(?i)\bon (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b");
    let is = |pattern: &Pattern| pattern.is_match(whole);
    let told = matches!(head.hold_of(Verb::State), Some(Hold::Now | Hold::Planned));
    let dated = told && time::parse(whole, at).iter().any(|span| span.end > at);
    let appointed = dated && !head.progressive && !head.future && is(&APPOINTED);
    let journey = head.progressive && (dated || told && is(&WEEKDAY)) && head.is_journey();
    let sure = head.planned || head.future && dated || journey || appointed;
    if !sure
        || !matches!(subject, Subject::User | Subject::Kin { .. })
        || head.negated
        || points_back(whole)
        || is_vague(whole)
        || whole.len() < 8
    {
        return Vec::new();
    }
    let claim = Claim {
        subject: subject.key(),
        slot: "plan".to_owned(),
        value: value::terms(bare),
        detail: Default::default(),
        old: head.old.as_deref().map(value::terms),
        arity: Arity::Many,
        hold: Hold::Planned,
        errand: None,
    };
    let will = if appointed { whole.replacen("have", "has", 1) } else { format!("plans to {whole}") };
    let content = format!("{} {}", subject.display(who), say::in_third_person(&will));
    vec![ReadClaim { claim, content, kind: StatementKind::Fact, confidence: 0.8, begins: false }]
}

/// «My dog Biscuit died yesterday», «my father passed away in 2010».
pub(super) fn death(subject: &Subject, head: &PredicateHead, who: &str, at: Timestamp) -> Option<ReadClaim> {
    let away = head.verb == "pass" && head.rest.trim_start().starts_with("away");
    if head.verb != "die" && !away || head.hold_of(Verb::End) != Some(Hold::NoLonger) {
        return None;
    }
    let (owner, noun, name) = match subject {
        Subject::Kin { owner, noun, name, is_name: false } => {
            (owner.to_lowercase(), value::noun(noun), name.as_deref())
        }
        Subject::Named(name) => ("user".to_owned(), String::new(), Some(name.as_str())),
        _ => return None,
    };
    let claim = Claim {
        subject: owner,
        slot: "death".to_owned(),
        value: value::terms(name.unwrap_or_default()),
        detail: value::terms(&noun),
        old: None,
        arity: Arity::Many,
        hold: Hold::Now,
        errand: None,
    };
    // A year is absolute; «yesterday» is not.
    let said = head.as_said();
    let said = if said.contains(|c: char| c.is_ascii_digit()) { said } else { without_times(&said, at) };
    let content = format!("{} {}", subject.display(who), say::in_third_person(&said));
    let confidence = if matches!(subject, Subject::Named(_)) { 0.7 } else { 0.9 };
    Some(ReadClaim { claim, content, kind: StatementKind::Fact, confidence, begins: false })
}

/// Whether this noun names an animal.
pub(in super::super) fn is_pet(noun: &str) -> bool {
    let noun = noun.replace(' ', "-");
    words::PETS.split_whitespace().any(|pet| pet == noun)
}

/// Whether the verb of this subject is plural.
pub(super) fn is_plural(subject: &Subject) -> bool {
    matches!(subject, Subject::Kin { noun, name: None, is_name: false, .. } if subject::is_plural(noun))
}
