//! Writes an English claim in the third person.

use super::super::claim::{Hold, Verb, fill};
use super::RuleMatch;
use super::head::PredicateHead;
use super::plan;
use super::subject::Subject;
use super::verbs::third_person;

/// The claim as a sentence that can be understood alone.
pub(super) fn content(
    subject: &Subject,
    head: &PredicateHead,
    found: &RuleMatch<'_>,
    hold: Hold,
    who: &str,
) -> String {
    let (plural, subject, rule) = (plan::is_plural(subject), subject.display(who), found.rule);
    // A past event is told in its original words.
    let as_said = hold == Hold::Once || rule.verb == Verb::Did && rule.say == "{v}";
    if as_said {
        return format!("{subject} {}", in_third_person(&head.as_said()));
    }
    let old = found.old.or(head.old.as_deref());
    // A sentence that names the old value needs no correction at its end.
    let names_old = rule.say.contains("{o}");
    let say = rule.say.replace("{o}", old.unwrap_or_default());
    let said = in_third_person(fill(&say, found.value, found.tail, found.noun).trim());
    let (first, rest) = said
        .split_once(' ')
        .map_or((said.as_str(), String::new()), |(first, rest)| (first, format!(" {rest}")));
    let finite = matches!(rule.verb, Verb::Deed | Verb::Did | Verb::Drop);
    let hold = if rule.verb == Verb::Opposite { hold.flipped() } else { hold };
    let verbs = match hold {
        _ if finite => format!("{first}{rest}"),
        _ if rule.verb == Verb::Plan => format!("{}{rest}", finite_form(first, plural)),
        Hold::Now | Hold::Once => format!("{}{rest}", finite_form(first, plural)),
        Hold::Not if first == "be" => format!("{} not{rest}", finite_form(first, plural)),
        Hold::Not => format!("{} not {first}{rest}", finite_form("do", plural)),
        Hold::NoLonger if head.used_to => format!("used to {first}{rest}"),
        Hold::NoLonger if first == "be" => format!("{} no longer{rest}", finite_form(first, plural)),
        Hold::NoLonger => format!("no longer {}{rest}", finite_form(first, plural)),
        Hold::Planned => format!("{} to {first}{rest}", finite_form("plan", plural)),
    };
    format!("{subject} {verbs}{}", corrected(old.filter(|_| !names_old)))
}

/// The present tense of a verb; the base form for plural subjects.
fn finite_form(base: &str, plural: bool) -> String {
    match base {
        "be" if plural => "are".to_owned(),
        _ if plural => base.to_owned(),
        _ => third_person(base),
    }
}

/// The replaced value. The sentence keeps it, so that a later comparison knows it.
pub(super) fn corrected(old: Option<&str>) -> String {
    old.filter(|old| !old.is_empty())
        .map_or_else(String::new, |old| format!(", not {}", in_third_person(old)))
}

/// Replaces words of the first person by the third: `my` becomes `their`.
pub(in super::super) fn in_third_person(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        let bare = word.trim_end_matches([',', '.', '!', ';', ':']);
        let other = match bare {
            "my" | "My" | "our" | "Our" => "their",
            "me" | "us" => "them",
            "I" | "i" | "we" | "We" => "they",
            "mine" | "ours" => "theirs",
            "myself" | "ourselves" => "themselves",
            "am" if words.last() == Some(&"they") => "are",
            "was" if words.last() == Some(&"they") => "were",
            _ => {
                words.push(word);
                continue;
            }
        };
        words.push(other);
        if bare.len() < word.len() {
            // Punctuation stays with the word before it.
            words.push(&word[bare.len()..]);
        }
    }
    let mut text = String::new();
    for word in words {
        let joins = text.is_empty() || word.starts_with([',', '.', '!', ';', ':']);
        if !joins {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
