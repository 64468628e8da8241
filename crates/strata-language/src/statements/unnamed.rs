//! Things that a sentence speaks of without naming them: «the issue», «both», «I've got many».
//!
//! Such a sentence is complete in its form, and often says something alone. So it is helped by the sentence that names the
//! thing, and never dropped for want of it. Pronouns are the matter of [`context`](super::context).

use super::chinese::is_chinese;
use super::context::{first_named, is_in, lower_words, states_nothing, without_address};
use super::facts::{is_verb, names_something};
use crate::text::is_stop_word;

/// Nouns that name a thing only by its kind.
const GENERAL: &str = "issue issues problem problems case cases technique techniques method methods approach approaches strategy game games match trial trials \
    change changes decision idea ideas place thing things situation percentage amount number numbers process task tasks topic topics question \
    questions answer answers result results conclusion drive event events book books movie film show song songs recipe feature features option \
    options experience challenge challenges difficulty project projects tool tools step steps part parts test tests session sessions meeting \
    course class classes program workshop group team opportunity offer photo photos picture pictures trip device item items error errors bug \
    function code concept concepts requirement requirements proposal application contract incident accident process pattern skill skills";
/// Words before such a noun that make it known.
const DEFINITE: &str = "the this that these those such";
/// Words that may stand between.
const BETWEEN: &str =
    "whole same entire other main new next last first second final latest recent kind of sort";
/// Words behind such a noun that say which one it is.
const SAYS_WHICH: &str = "of for with about in on at to that which who where when from between behind i we you he she they called named by i'm \
    i've we've is: are:";
/// Words that stand for a number of things.
const SHARES: &str = "mine mines many several few both another neither either some most none others";
/// Words for a person's state or for the look of a thing, which name nothing.
const DESCRIBES: &str = "happy sad glad proud nervous scared afraid anxious busy sick ill well fine okay great good nice bad awful terrible wonderful beautiful \
    amazing awesome cool fun hard easy difficult tough new old big small long short late early ready sure able unable lucky grateful hopeful careful \
    calm angry upset lonely alone sorry curious aware close worth little bit lot lots ton tons while quite pretty really super totally definitely \
    honestly actually finally recently yesterday today tomorrow tonight now then soon later lately ago yet still always never ever once twice again \
    maybe probably just only even also too much more most less enough back away home here there everything something anything nothing everyone \
    someone anyone people guys thanks welcome two three four five six seven eight nine ten several many few each every all both some any other own most another";
/// Units of time: «for two years» names no thing.
const TIMES: &str = "second seconds minute minutes hour hours day days night nights week weeks weekend weekends month months year years decade decades time times \
    morning evening afternoon moment while bit lot lots few little blast";

/// Whether a sentence speaks of a thing by its kind alone, or leaves the thing out, so that the sentences before it may say
/// which one it is.
pub fn is_vague(sentence: &str) -> bool {
    if is_chinese(sentence) { chinese_is_vague(sentence) } else { english_is_vague(sentence) }
}

fn english_is_vague(sentence: &str) -> bool {
    let sentence = without_address(sentence);
    let raw: Vec<&str> = sentence.split_whitespace().collect();
    let words = lower_words(sentence);
    let end = first_named(&raw, &words);
    let places = 0..words.len().min(end + 1);
    places.into_iter().any(|place| is_known_kind(&raw, &words, place) || is_share(&raw, &words, place))
        || states_nothing(&words)
}

/// Whether «the issue» begins at a place, with nothing behind it that says which one.
fn is_known_kind(raw: &[&str], words: &[String], place: usize) -> bool {
    if !is_in(DEFINITE, &words[place]) {
        return false;
    }
    let noun = (place + 1..words.len()).find(|at| !is_in(BETWEEN, &words[*at]));
    let Some(noun) = noun.filter(|noun| is_in(GENERAL, &words[*noun])) else { return false };
    let ends = raw[noun].ends_with(['.', ',', '!', ';']);
    ends || words.get(noun + 1).is_none_or(|next| !is_in(SAYS_WHICH, next))
}

/// Whether «both» or «many» stands at a place without what there are several of.
fn is_share(raw: &[&str], words: &[String], place: usize) -> bool {
    let next = words.get(place + 1).map(String::as_str).unwrap_or_default();
    let ends = next.is_empty() || raw[place].ends_with(['.', ',', '!', ';']);
    is_in(SHARES, &words[place])
        && (ends || is_in("are were is was have had can will include includes", next))
}

/// 「这个问题」 and 「都」 without anything before them that they may mean.
fn chinese_is_vague(sentence: &str) -> bool {
    const VAGUE: [&str; 16] = [
        "这个", "這個", "那个", "那個", "这种", "這種", "那种", "那種", "这些", "這些", "那些", "那边",
        "那邊", "那里", "那裡", "它",
    ];
    const NEAR: usize = 8;
    let head: String = sentence.trim().chars().take(NEAR).collect();
    VAGUE.iter().any(|word| head.contains(word))
}

/// Whether a word may name a thing: no word of grammar, no verb, no adverb and no state of a person.
pub(super) fn may_name(word: &str) -> bool {
    const SHORTEST: usize = 3;
    word.chars().count() >= SHORTEST
        && word.chars().all(char::is_alphabetic)
        && !is_stop_word(word)
        && !is_verb(word)
        && !word.ends_with("ly")
        && ![DESCRIBES, TIMES].iter().any(|list| is_in(list, word))
}

/// Whether what begins at a place is a measure, which no pronoun means: «a lot», «two years», «every day».
pub(super) fn is_measure(words: &[String], place: usize) -> bool {
    let is_time = |place: usize| words.get(place).is_some_and(|word| is_in(TIMES, word));
    let is_between = words.get(place + 1).is_some_and(|word| is_in("great good long whole few couple", word));
    is_time(place)
        || names_something(words, place)
            && words.get(place + 1).is_none_or(|next| next != "of")
            && (is_time(place + 1) || is_between && is_time(place + 2))
}

/// Whether a sentence names a thing or a person that a later one may mean.
pub fn names_topic(sentence: &str) -> bool {
    const LEAST_HAN: usize = 4;
    if is_chinese(sentence) {
        return sentence.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST_HAN;
    }
    let words = lower_words(without_address(sentence));
    let names = |place: usize| names_something(&words, place) && !is_measure(&words, place);
    (0..words.len()).any(|place| names(place) || may_name(&words[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_by_its_kind_alone_is_vague() {
        for vague in [
            "The issue only shows up at night.",
            "I solved the whole problem overnight.",
            "Then the trial went on for hours.",
            "I liked both, honestly.",
            "Both were closed.",
            "I still have many.",
            "Better knots for small dinghies in rough and windy harbours",
            "我把这个问题解决了",
            "那边很热闹",
        ] {
            assert!(is_vague(vague), "{vague}");
        }
        for plain in [
            "The problem with my boiler is back.",
            "My boiler broke, and the problem is the valve.",
            "I solved the case of the stolen canoe.",
            "Both of my sons row.",
            "The harbour is closed.",
            "我家的水管坏了",
        ] {
            assert!(!is_vague(plain), "{plain}");
        }
    }

    #[test]
    fn a_topic_is_named() {
        for topic in ["I like jazz.", "My aunt came.", "We went to Ulm.", "我家的猫丢了"] {
            assert!(names_topic(topic), "{topic}");
        }
        for none in ["I was so tired.", "That was really great!", "I did it for two years.", "好的"] {
            assert!(!names_topic(none), "{none}");
        }
    }
}
