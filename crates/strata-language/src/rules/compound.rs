//! Splits compound English sentences into plain ones: «I'm Tomas, 29, a mechanic from Gdansk», «my favourite band used
//! to be Oasis but now it's Blur».
//!
//! Deliberately absent: sentences joined by a conjunction that have subjects of their own; [`super::sentence`] splits
//! them.

use std::sync::LazyLock;

use regex::Captures;

use super::patterns::Patterns;

/// A compound form and its plain sentences. A sentence whose group is missing is left out.
const SHAPES: &[(&str, &[&str])] = &[
    (
        r"^(?:i'm|i am) (?-i:(?P<n>[A-Z][\w-]+)),? (?P<a>\d{1,3})(?: years old)?,(?: and)? (?:i'm |i am )?(?P<j>an? [\w -]+?)(?: (?:from|in) (?-i:(?P<f>[A-Z][\w .-]+)))?$",
        &["My name is {n}", "I am {a} years old", "I am {j}", "I am from {f}"],
    ),
    (
        r"^my name is (?-i:(?P<n>[A-Z][\w-]+(?: [A-Z][\w-]+)?)),(?: (?P<a>\d{1,3})(?: years old)?,)?(?: and)? (?:i'm |i am )?(?P<j>an? [\w -]+?)(?: from (?-i:(?P<f>[A-Z][\w .-]+)))?$",
        &["My name is {n}", "I am {a} years old", "I am {j}", "I am from {f}"],
    ),
    (r"^my allergies(?::| are| include) (?P<l>.+)$", &["I am allergic to {l}"]),
    (
        r"^(?P<s>(?:i|we)(?:'m| am)? (?:\w+ly )?(?:allergic to|like|love|enjoy|hate|dislike|collect)) (?P<l>[\w' -]{2,20}(?:, [\w' -]{2,20})+?,? and [\w' -]{2,20})$",
        &["{s} {l}"],
    ),
    (
        r"^(?P<s>i|we) have(?: got)? (?P<k>an? [\w ]+?), (?-i:(?P<n>[A-Z][\w-]+))(?:, (?:who|which|that|an?|\d).*)?$",
        &["{s} have {k} named {n}"],
    ),
    (
        r"^my (?P<k>[\w ]+?) used to be (?P<o>[^,]+?),? (?:but|and) (?:(?:now|these days) it(?:'s| is)|it(?:'s| is) now|is now|now is) (?P<v>.+)$",
        &["My {k} is {v}, not {o}"],
    ),
    (
        r"^(?P<s>.+? had a (?:baby(?: boy| girl)?|boy|girl|son|daughter))(?:, |,? (?:named|called) |,? and (?:they|we|she|he) (?:called|named) (?:him|her|it|the baby) )(?-i:(?P<n>[A-Z]\w+))$",
        &["{s} named {n}"],
    ),
    (
        r"^(?P<s>i|my \w+(?: (?-i:[A-Z][\w-]+))?|the user) (?P<w>works?)(?P<m> (?:night|day|early|late) shifts| part-time| full-time| nights)? as (?P<j>an? [\w -]+?) (?:at|for) (?P<o>.+)$",
        &["{s} {w}{m} as {j}", "{s} {w} at {o}"],
    ),
];

/// Groups that may be missing although their sentence is kept.
const OPTIONAL: [&str; 1] = ["m"];

/// Words before a comma and an age that are not names.
const NO_NAMES: &str = "german american canadian mexican brazilian indian australian british french dutch italian russian ukrainian greek egyptian nigerian \
    kenyan iranian korean african european asian argentinian chilean colombian peruvian cuban norwegian austrian belgian hungarian romanian \
    bulgarian israeli iraqi pakistani swiss czech thai filipino ghanaian ethiopian moroccan catholic christian muslim jewish buddhist hindu atheist \
    my i we she he they the it but and our so this that single married divorced male female about almost nearly only over under";

static COMPILED: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::new(SHAPES.iter().map(|(shape, _)| format!("(?i){shape}"))));

/// The plain sentences, if this sentence has one of the forms.
pub(super) fn unfold(sentence: &str) -> Option<Vec<String>> {
    let place = COMPILED.matches(sentence).next()?;
    let found = COMPILED.groups(place, sentence)?;
    let name = found.name("n").map_or_else(String::new, |name| name.as_str().to_lowercase());
    if is_no_name(&name) {
        return None;
    }
    // «… at Nokia and live in Espoo»: [`super::sentence`] splits joined clauses by their subjects.
    let joined = |group: &str| {
        found
            .name(group)
            .is_some_and(|said| [" and ", " but ", ", "].iter().any(|join| said.as_str().contains(join)))
    };
    if joined("o") || joined("j") {
        return None;
    }
    let (_, sentences) = SHAPES.get(place)?;
    Some(sentences.iter().filter_map(|sentence| filled(sentence, &found)).collect())
}

/// Whether a word in lower case is known to be something else than a name: a nation, a faith.
pub(crate) fn is_no_name(word: &str) -> bool {
    word.ends_with("ish") || word.ends_with("ese") || NO_NAMES.split_whitespace().any(|no| no == word)
}

fn filled(template: &str, found: &Captures<'_>) -> Option<String> {
    let mut text = template.to_owned();
    for group in ["n", "a", "j", "f", "l", "s", "k", "o", "v", "w", "m"] {
        let place = format!("{{{group}}}");
        if !text.contains(&place) {
            continue;
        }
        let said = match found.name(group) {
            Some(said) if group == "l" => listed(said.as_str()),
            Some(said) => said.as_str().to_owned(),
            None if OPTIONAL.contains(&group) => String::new(),
            None => return None,
        };
        text = text.replace(&place, &said);
    }
    Some(text)
}

/// «cats, pollen and dust» with «and» between all of them: a comma would end the clause.
fn listed(list: &str) -> String {
    let items = list.split(',').flat_map(|part| part.split(" and ")).map(|item| {
        let item = item.trim();
        item.strip_prefix("and ").unwrap_or(item)
    });
    items.filter(|item| !item.is_empty()).collect::<Vec<_>>().join(" and ")
}
