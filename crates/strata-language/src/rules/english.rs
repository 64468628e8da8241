//! Reads English sentences: the subject, then auxiliaries and negation, then a verb of the table in its base form.
//!
//! «I'm not living in Lisbon any more» has the subject `user`, the state «no longer» and the predicate `live in
//! Lisbon`. «The user no longer lives in Lisbon» has the same, so messages and memories can be compared. Start reading
//! at [`read`].

mod head;
mod plan;
mod say;
mod subject;
mod table;
mod verbs;
mod words;

use std::sync::LazyLock;

use jiff::Timestamp;

use super::claim::{Arity, Claim, Errand, Hold, ReadClaim, Rule, Verb};
use super::patterns::{Patterns, Rewrites, with_lists};
use super::value;
use crate::Pattern;
use crate::rules::StatementKind;
use crate::time;
use head::PredicateHead;
pub(super) use plan::is_pet;
use subject::Subject;
pub(crate) use verbs::third_person;

/// A table with its compiled patterns.
struct RuleTable {
    rules: &'static [Rule],
    patterns: Patterns,
}

impl RuleTable {
    fn new(rules: &'static [Rule]) -> Self {
        let sources = rules.iter().map(|rule| format!("^(?i:{})$", expand(rule.pattern)));
        Self { rules, patterns: Patterns::new(sources) }
    }

    /// The matches, in the order of the rules.
    fn matches<'t>(&self, predicate: &'t str) -> impl Iterator<Item = RuleMatch<'t>> {
        self.patterns.matches(predicate).filter_map(move |place| self.at(place, predicate))
    }

    fn at<'t>(&self, place: usize, predicate: &'t str) -> Option<RuleMatch<'t>> {
        let (rule, groups) = (self.rules.get(place)?, self.patterns.groups(place, predicate)?);
        let group = |name: &str| groups.name(name).map(|group| group.as_str());
        let (value, tail) = (group("v")?, group("t").unwrap_or_default());
        Some(RuleMatch { place, rule, value, tail, noun: group("n").unwrap_or_default(), old: group("o") })
    }
}

/// A rule that matched, and its groups.
struct RuleMatch<'t> {
    place: usize,
    rule: &'static Rule,
    value: &'t str,
    tail: &'t str,
    noun: &'t str,
    old: Option<&'t str>,
}

/// Replaces the names of word lists in a pattern by the lists.
fn expand(pattern: &str) -> String {
    let lists = [
        ("PLACE", words::PLACE),
        ("NAMED", words::NAMED),
        ("ORG", words::ORG),
        ("KIN", words::KIN),
        ("THING", words::THING),
        ("JOB", words::JOB),
        ("SKILL", words::SKILL),
        ("SPORT", words::SPORT),
        ("LANG", words::LANG),
        ("NUM", words::NUM),
        ("WHEN", words::WHEN),
        ("HEALTH", words::HEALTH),
    ];
    with_lists(pattern, &lists)
}

static RULES: LazyLock<RuleTable> = LazyLock::new(|| RuleTable::new(table::RULES));
static OF_THINGS: LazyLock<RuleTable> = LazyLock::new(|| RuleTable::new(table::OF_THINGS));

static REWRITES: LazyLock<Rewrites> =
    LazyLock::new(|| Rewrites::new(table::REWRITES, |pattern| format!("(?i){pattern}")));

static VAGUE: Pattern = Pattern::made(|| format!("(?i){}", words::VAGUE));
static NO_ERRAND: Pattern = Pattern::made(|| format!("(?i){}", words::NO_ERRAND));

/// The claims of a clause. A clause in the first person is about `who`.
pub(super) fn read(clause: &str, who: &str, at: Timestamp) -> Vec<ReadClaim> {
    let clause = rewrite(&head::expand_contractions(clause));
    let Some((subject, predicate)) = subject::parse(&clause) else { return Vec::new() };
    let Some(head) = head::parse(predicate) else { return Vec::new() };
    let whole = format!("{}{}", head.verb, head.rest);
    let bare = without_times(&whole, at);
    if let Some(death) = plan::death(&subject, &head, who, at) {
        return vec![death];
    }
    match &subject {
        Subject::Thing { .. } => claims_about_thing(&subject, &head, &whole, who),
        Subject::Kin { noun, .. } => {
            let named = name_of(noun, &subject, &head, who);
            if named.is_empty() {
                claims_about_person(&subject, &head, &whole, &bare, who, at)
            } else {
                named
            }
        }
        Subject::User | Subject::Named(_) => claims_about_person(&subject, &head, &whole, &bare, who, at),
    }
}

/// The sentence in the form that the tables read.
fn rewrite(clause: &str) -> String {
    REWRITES.apply(clause)
}

/// The text without its time expressions and the prepositions before them.
fn without_times(text: &str, at: Timestamp) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut from = 0;
    for span in time::parse(text, at) {
        bare.push_str(text.get(from..span.text.start).unwrap_or_default());
        from = span.text.end;
    }
    if from == 0 {
        return text.to_owned();
    }
    bare.push_str(text.get(from..).unwrap_or_default());
    let mut bare = bare.trim_end().trim_end_matches(',').trim_end();
    const LEADS: [&str; 14] = [
        " since", " in", " on", " at", " for", " from", " until", " by", " back", " around", " early",
        " late", " during", " the",
    ];
    while let Some(shorter) = LEADS.iter().find_map(|lead| bare.strip_suffix(lead)) {
        bare = shorter;
    }
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// «My wife is Anne», «my cat is called Biscuit», «my sister's name is Hanna».
fn name_of(noun: &str, subject: &Subject, head: &PredicateHead, who: &str) -> Vec<ReadClaim> {
    static NAME: Pattern =
        Pattern::made(|| format!("^(?:(?:called|named) (?<a>.+)|(?:now )?(?<b>{}))$", words::NAMED));
    let Subject::Kin { owner, is_name, .. } = subject else { return Vec::new() };
    if head.verb != "be" || head.hold_of(Verb::State) != Some(Hold::Now) {
        return Vec::new();
    }
    let rest = head.rest.trim();
    let found = NAME.captures(rest);
    let Some(name) = found.and_then(|found| found.name("a").or_else(|| found.name("b"))) else {
        return Vec::new();
    };
    if name.as_str().is_empty() || is_vague(name.as_str()) {
        return Vec::new();
    }
    let single = words::SINGLE.split_whitespace().any(|one| one == noun);
    let claim = Claim {
        subject: owner.to_lowercase(),
        slot: format!("name of {}", value::noun(noun)),
        value: value::terms(name.as_str()),
        detail: Default::default(),
        old: head.old.as_deref().map(value::terms),
        arity: if single || head.changed && *is_name { Arity::One } else { Arity::Many },
        hold: Hold::Now,
        errand: None,
    };
    let owner = subject::owner_display(owner, who);
    let content =
        format!("{owner}'s {noun} is named {}{}", name.as_str(), say::corrected(head.old.as_deref()));
    vec![ReadClaim { claim, content, kind: StatementKind::Fact, confidence: 0.9, begins: false }]
}

/// «My rent is now 900», «the dentist appointment was moved to Friday».
fn claims_about_thing(subject: &Subject, head: &PredicateHead, whole: &str, who: &str) -> Vec<ReadClaim> {
    let Subject::Thing { owner, noun, display } = subject else { return Vec::new() };
    if head.hold_of(Verb::State).is_none_or(|hold| !matches!(hold, Hold::Now | Hold::Once)) || head.modal {
        return Vec::new();
    }
    for RuleMatch { rule, value: raw, .. } in OF_THINGS.matches(whole) {
        // «My rent was 800» is past; «the meeting was moved» is not.
        if rule.verb == Verb::State && head.hold_of(Verb::State) != Some(Hold::Now) {
            continue;
        }
        let plain = value::without_article(raw);
        if noun.contains("favourite") && points_back(raw) {
            continue;
        }
        if is_vague(raw) || !subject::may_have(noun, owner.is_some(), rule.slot, raw) {
            continue;
        }
        let slot = if noun.contains("birthday") { noun.clone() } else { rule.slot.replace("{n}", noun) };
        let claim = Claim {
            subject: owner.as_deref().unwrap_or("user").to_lowercase(),
            slot: value::slot(&slot),
            value: value::terms(plain),
            detail: Default::default(),
            old: head.old.as_deref().map(value::terms),
            arity: Arity::One,
            hold: Hold::Now,
            errand: None,
        };
        let subject = match owner {
            Some(owner) => format!("{}'s {display}", subject::owner_display(owner, who)),
            None => format!("The {display}"),
        };
        // An appointment that was moved «to Friday» is «on Friday»; other days and hours stay as they are.
        let said =
            if rule.verb == Verb::Begin && rule.say == "be on {v}" { when(raw) } else { raw.to_owned() };
        let said = say::in_third_person(&prefix_of(whole, raw, &said));
        let content = format!("{subject} is {said}{}", say::corrected(head.old.as_deref()));
        return vec![ReadClaim { claim, content, kind: StatementKind::Fact, confidence: 0.9, begins: false }];
    }
    Vec::new()
}

/// The value with its preposition: «on Friday», «at 5 pm», «in June»; other values stay as they are.
fn when(value: &str) -> String {
    let first = value.split_whitespace().next().unwrap_or_default().to_lowercase();
    if first.ends_with("day")
        || first.starts_with(|c: char| c.is_ascii_digit()) && !first.ends_with("am") && !first.ends_with("pm")
    {
        format!("on {value}")
    } else {
        value.to_owned()
    }
}

/// The value with the preposition before it («on Tuesday»), unless it was rephrased.
fn prefix_of(whole: &str, raw: &str, said: &str) -> String {
    if said != raw {
        return said.to_owned();
    }
    let before = whole.strip_suffix(raw).unwrap_or_default().trim_end();
    match ["for", "on", "at", "in"].into_iter().find(|lead| before.ends_with(&format!(" {lead}"))) {
        Some("for") => when(said),
        Some(lead) => format!("{lead} {said}"),
        None => said.to_owned(),
    }
}

/// The claims about a person.
fn claims_about_person(
    subject: &Subject,
    head: &PredicateHead,
    whole: &str,
    bare: &str,
    who: &str,
    at: Timestamp,
) -> Vec<ReadClaim> {
    if head.modal {
        return Vec::new();
    }
    // Some rules need the time that was removed («born in 1988»).
    let again = if bare == whole { "" } else { whole };
    for found in RULES.matches(bare).chain(RULES.matches(again)) {
        let rule = found.rule;
        let Some(hold) = head.hold_of(rule.verb) else { continue };
        if !is_fit(rule, subject, &found, hold) {
            continue;
        }
        // An age cannot be planned.
        if hold == Hold::Planned && rule.slot == "age" {
            return Vec::new();
        }
        // Plans, todos and past events keep their times; a state is described as it is now.
        let timed = matches!(hold, Hold::Planned | Hold::Once)
            || matches!(rule.verb, Verb::Todo | Verb::Did | Verb::Deed | Verb::Plan)
            || ["routine", "training"].contains(&rule.slot);
        let full = if timed && whole != bare { RULES.at(found.place, whole) } else { None };
        let full = full.filter(|full| !full.value.is_empty());
        let spoken = full.as_ref().unwrap_or(&found);
        let confidence = if matches!(subject, Subject::Named(_)) { 0.7 } else { confidence_of(rule) };
        let begins = rule.verb == Verb::Begin || head.since;
        return pieces(rule, found.value, spoken.value)
            .into_iter()
            .map(|(value, said)| {
                let claim = claim(subject, head, &RuleMatch { value, ..found }, hold);
                let content = say::content(subject, head, &RuleMatch { value: said, ..*spoken }, hold, who);
                ReadClaim { claim, content, kind: kind(rule, hold), confidence, begins }
            })
            .collect();
    }
    plan::planned(subject, head, whole, bare, who, at)
}

fn claim(subject: &Subject, head: &PredicateHead, found: &RuleMatch<'_>, hold: Hold) -> Claim {
    let rule = found.rule;
    let mut slot = value::slot(&rule.slot.replace("{n}", &value::noun(found.noun)));
    if ["home", "origin", "birthplace"].contains(&slot.as_str()) && is_country(found.value) {
        slot.push_str(" country");
    }
    let arity = match rule.arity {
        // Two sentences about «my colleague» may be about two colleagues.
        Arity::One | Arity::Soft if subject.is_one_of_several() => Arity::Many,
        Arity::Soft if head.changed => Arity::One,
        // «I have a husband named Jo»: there is only one husband.
        Arity::Many if words::SINGLE.split_whitespace().any(|one| one == found.noun) => Arity::One,
        arity => arity,
    };
    let errand = match rule.verb {
        Verb::Todo if hold.denies() => Some(Errand::Dropped),
        Verb::Todo => Some(Errand::Open),
        Verb::Did => Some(Errand::Done),
        Verb::Drop => Some(Errand::Dropped),
        _ => None,
    };
    let old = found.old.or(head.old.as_deref()).filter(|old| !old.is_empty());
    Claim {
        subject: subject.key(),
        slot,
        value: value::terms(found.value),
        detail: value::terms(found.tail),
        old: old.map(value::terms),
        arity,
        hold,
        errand,
    }
}

/// The values of a list («tea and coffee»), each with its displayed form.
fn pieces<'t>(rule: &Rule, value: &'t str, said: &'t str) -> Vec<(&'t str, &'t str)> {
    const LISTS: [&str; 7] = ["like", "language", "allergy", "fear", "plays", "collects", "health"];
    if !LISTS.contains(&rule.slot) || value != said {
        return vec![(value, said)];
    }
    let parts: Vec<&str> = value
        .split(',')
        .flat_map(|part| part.split(" and "))
        .map(|part| part.trim().strip_prefix("and ").unwrap_or(part.trim()))
        .filter(|part| !part.is_empty())
        .collect();
    if parts.len() < 2 || parts.iter().any(|part| part.split_whitespace().count() > 3) {
        return vec![(value, said)];
    }
    parts.into_iter().map(|part| (part, part)).collect()
}

/// Whether the rule may make a memory of this value: some values mean nothing without their context.
fn is_fit(rule: &Rule, subject: &Subject, found: &RuleMatch<'_>, hold: Hold) -> bool {
    let (ends, value) = (rule.verb == Verb::End, found.value);
    if value.is_empty() && !hold.denies() {
        return false;
    }
    if value.chars().count() > 160 || value.split_whitespace().count() > 25 || is_vague(value) {
        return false;
    }
    // «lives in Porto and likes tea»: the rest is another claim, and the end of one must not end the other.
    let joins = |(_, after): (&str, &str)| after.starts_with(char::is_lowercase);
    if rule.arity == Arity::One && value.split_once(" and ").is_some_and(joins) {
        return false;
    }
    match rule.slot {
        "{n}" => matches!(subject, Subject::Named(_)),
        "todo" if rule.verb == Verb::Todo => {
            matches!(subject, Subject::User) && !NO_ERRAND.is_match(value) && !points_back(value)
        }
        "todo" if rule.verb == Verb::Did => {
            let second = value.split_whitespace().nth(1).unwrap_or_default();
            matches!(subject, Subject::User)
                && !["up", "out", "in", "for", "on", "with", "to", "back", "at"].contains(&second)
        }
        "decision" | "decision for {n}" => {
            matches!(subject, Subject::User)
                && !points_back(value)
                && !["up ", "out ", "from "].iter().any(|start| value.starts_with(start))
        }
        "todo" => matches!(subject, Subject::User),
        "goal" | "plan" => matches!(subject, Subject::User) && !points_back(value),
        // Only food and drinks that a person avoids say something about the person.
        "eat" => hold.denies(),
        "home" | "origin" | "birthplace" | "childhood" => ends || value::may_be_a_place(value),
        "field" => !value.contains(" to ") && value.split_whitespace().count() <= 3,
        "learning" => !value.starts_with("about") && !value.starts_with("more") && !value.starts_with("new "),
        "like" => value.split_whitespace().count() <= 10 && is_general(value) && !ends_pointing_back(value),
        "has" if rule.say == "have any {v}" => hold.denies(),
        "uses" => hold != Hold::Once && !points_back(value),
        "routine" | "training" => hold == Hold::Now && !points_back(value),
        "children" => hold == Hold::Now,
        "has" => ![" for ", " of ", " with ", " in "].iter().any(|word| value.contains(word)),
        "employer" => !["the moment", "home", "night", "least", "all", "a time", "hours"].contains(&value),
        _ => true,
    }
}

fn kind(rule: &Rule, hold: Hold) -> StatementKind {
    // «Does not like» is a preference too; a plan to live somewhere is a fact.
    if hold == Hold::Planned && rule.kind == StatementKind::Preference {
        StatementKind::Fact
    } else {
        rule.kind
    }
}

/// The confidence of a rule: a direct statement is surer than a conclusion from an event.
fn confidence_of(rule: &Rule) -> f32 {
    match rule.verb {
        Verb::State | Verb::Opposite | Verb::Todo | Verb::Deed => 0.9,
        Verb::Begin | Verb::End | Verb::Drop | Verb::Plan => 0.8,
        Verb::Did => 0.7,
    }
}

fn is_country(value: &str) -> bool {
    let value = value.to_lowercase();
    let value = value.strip_prefix("the ").unwrap_or(&value);
    words::COUNTRIES.split_whitespace().any(|country| country == value)
}

/// Whether a value is liked in general: «the sea» may be, «the colour» belongs to a particular thing.
fn is_general(value: &str) -> bool {
    let Some(noun) = value.strip_prefix("the ") else { return value != "to" };
    noun.starts_with(char::is_uppercase) || words::GENERAL.split_whitespace().any(|general| general == noun)
}

fn ends_pointing_back(value: &str) -> bool {
    value.rsplit(' ').next().is_some_and(points_back)
}

fn points_back(value: &str) -> bool {
    static POINTS_BACK: Pattern = Pattern::new(words::POINTS_BACK);
    POINTS_BACK.is_match(value)
}

fn is_vague(value: &str) -> bool {
    VAGUE.is_match(value)
}

/// The third person of a sentence that no rule reads.
pub(super) fn in_its_own_words(text: &str, who: &str) -> String {
    let text = head::expand_contractions(text);
    let (first, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let (second, after) = rest.split_once(' ').unwrap_or((rest, ""));
    match first.to_lowercase().as_str() {
        "i" | "we" => {
            let verb = match second {
                "am" | "are" => "is".to_owned(),
                "was" | "were" | "can" | "will" | "had" | "must" | "never" | "always" => second.to_owned(),
                _ if matches!(
                    verbs::lemma(second),
                    Some((_, verbs::Form::Past | verbs::Form::Participle))
                ) =>
                {
                    second.to_owned()
                }
                _ => verbs::third_person(second),
            };
            format!("{who} {verb} {}", say::in_third_person(after)).trim_end().to_owned()
        }
        "my" | "our" => format!("{who}'s {}", say::in_third_person(rest)),
        _ => {
            let text = say::in_third_person(&text);
            let mut letters = text.chars();
            letters.next().map_or_else(String::new, |letter| letter.to_uppercase().chain(letters).collect())
        }
    }
}
