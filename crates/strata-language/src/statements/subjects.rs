//! English sentences that leave out the speaker: «Restoring a canoe», «Gonna sell the van», «Love rye bread».

use std::borrow::Cow;

use super::facts::{is_finite, is_past, names_something};
use crate::sentences;

/// Words before the verb.
const LEADING: &str = "also currently now still just really mostly mainly probably definitely always never usually finally recently maybe";
/// Nouns in «-ing» that often begin a sentence.
const NOUNS: &str = "morning evening nothing something anything everything during meeting wedding building heating parking booking dining hearing \
    boarding landing gathering clothing housing lighting briefing screening viewing ceiling pudding sibling string spring according regarding \
    including excluding concerning following considering assuming speaking meaning warning rating setting";
/// Words after a verb in «-ing» that are no part of a name: «planning to», «working on».
const AFTER_VERB: &str = "to on at in with about for from into up out off back down forward over this that more another towards of";
/// Verbs of a liking, and words that no object of theirs begins with.
const LIKES: &str = "love enjoy hate prefer miss";
const NO_OBJECT: &str =
    "is was will can at for of and or from with you your yours you're it this that to hearing seeing how";
/// Words that begin the object of a past.
const OBJECT: &str = "a an the my our some another";
/// Words behind which another clause begins.
const CLAUSE: &str = "because since while when so but which who that as if until where";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// A text with «I» or «I'm» before each sentence that leaves out the speaker.
pub(super) fn with_speaker(said: &str) -> Cow<'_, str> {
    let mut found = String::new();
    let mut from = 0;
    for end in sentences::ends(said).chain([said.len()]) {
        let sentence = &said[std::mem::replace(&mut from, end)..end];
        let body = sentence.trim_start();
        found.push_str(&sentence[..sentence.len() - body.len()]);
        match left_out(body) {
            Some(subject) => {
                let mut letters = body.chars();
                let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
                found.push_str(&format!("{subject} {first}{}", letters.as_str()));
            }
            None => found.push_str(body),
        }
    }
    if found == said { Cow::Borrowed(said) } else { Cow::Owned(found) }
}

/// The speaker, with «am» or «have» if these are missing too; `None` for a sentence that has its subject.
fn left_out(sentence: &str) -> Option<&'static str> {
    let lower = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words: Vec<String> = sentence.split_whitespace().map(lower).collect();
    let marks: Vec<&str> = sentence.split_whitespace().collect();
    let at = words.iter().position(|word| !is_in(LEADING, word))?;
    let is_plain = marks[..=at].iter().all(|word| word.chars().all(char::is_alphabetic));
    let next = words.get(at + 1).filter(|_| is_plain && !sentence.trim_end().ends_with('?'))?;
    match words[at].as_str() {
        "gonna" => Some("I'm"),
        "gotta" => Some("I"),
        "been" => Some("I've"),
        likes if is_in(LIKES, likes) && !is_in(NO_OBJECT, next) => Some("I"),
        past if is_past(past) && past.len() > 2 && is_in(OBJECT, next) => Some("I"),
        _ if is_ongoing(&words[at..], &marks[at..]) => Some("I'm"),
        _ => None,
    }
}

/// Whether a clause begins with what somebody is doing. «Rowing is fun» has a subject: its verb shows it.
fn is_ongoing(words: &[String], marks: &[&str]) -> bool {
    const SHORTEST: usize = 6;
    let verb = words[0].as_str();
    let takes = is_in(AFTER_VERB, &words[1]) || names_something(words, 1);
    let ends = |place: &usize| {
        is_in(CLAUSE, &words[*place])
            || words[*place].is_empty()
            || marks[*place].ends_with([',', ';', ':', '.', '!'])
    };
    let end = (1..words.len()).find(ends).unwrap_or(words.len() - 1);
    verb.ends_with("ing")
        && verb.len() >= SHORTEST
        && !is_in(NOUNS, verb)
        && takes
        && !words[1..=end].iter().any(|word| is_finite(word) || word.contains(['\'', '’']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speaker_who_is_left_out_is_put_in() {
        let check = |said: &str, expected: &str| assert_eq!(with_speaker(said), expected);
        check("Restoring a canoe — it's slow work", "I'm restoring a canoe — it's slow work");
        check("Still looking for tenants in Ulm", "I'm still looking for tenants in Ulm");
        check("Gonna sell the van", "I'm gonna sell the van");
        check("Probably gonna retire in May", "I'm probably gonna retire in May");
        check("Love rye bread", "I love rye bread");
        check("Never had a boat. Been to Oslo once!", "I never had a boat. I've been to Oslo once!");
        check("I row. Bought a canoe in May.", "I row. I bought a canoe in May.");
        for whole in [
            "Restoring boats is my trade",
            "Rowing and baking are what I do",
            "Wedding in May",
            "Meeting with Ana at 10",
            "Training: Tuesdays at 6",
            "Love is blind",
            "Love your boat",
            "Looking for tenants?",
            "I love rye bread",
            "Love",
        ] {
            check(whole, whole);
        }
    }
}
