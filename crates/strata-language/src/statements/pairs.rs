//! Two things in one statement: «takes warfarin and metformin» without the metformin.

use super::alone::stands_alone;
use super::chinese::is_chinese;
use super::facts::is_verb;
use super::parts::parts;
use super::values::share_content;

/// The most words of the second thing. A longer text is a clause.
const MOST_WORDS: usize = 6;
/// The least number of characters of a Chinese thing.
const LEAST_CHARS: usize = 2;
/// The least number of words of a part that says something alone.
const PART_WORDS: usize = 3;

/// A statement about two things without the one that a sentence speaks about. `None` if the statement has no two things, or if
/// the sentence speaks about both, about neither, or has a list of its own.
pub fn without_one(statement: &str, sentence: &str) -> Option<String> {
    let body = statement.trim_end_matches(['.', '。', '!', '！']);
    let end = &statement[body.len()..];
    let rest = if is_chinese(body) {
        chinese(body, sentence)
    } else {
        english(body, sentence).or_else(|| without_last_part(body, sentence))
    };
    rest.map(|rest| format!("{rest}{end}"))
}

/// «… eggs and milk», «… pork or shellfish».
fn english(body: &str, sentence: &str) -> Option<String> {
    if joint(sentence).is_some() {
        return None;
    }
    let (at, after) = joint(body)?;
    let (before, second) = (&body[..at], &body[after..]);
    let words: Vec<&str> = second.split_whitespace().collect();
    let last = before.split_whitespace().next_back()?;
    let is_range = before.split_whitespace().any(|word| word.eq_ignore_ascii_case("between"));
    let is_clause = words.len() > MOST_WORDS || second.contains([',', ';', ':']);
    if is_range || is_clause || joint(second).is_some() {
        return None;
    }
    // «Leeks and beans are ripe» has one verb for both.
    let has_verb = words.iter().any(|word| is_verb(&word.to_lowercase()));
    match (share_content(last, sentence), share_content(second, sentence)) {
        (false, true) if !has_verb || stands_alone(before) => {
            Some(before.trim_end_matches([',', ';', ' ']).to_owned())
        }
        (true, false) if !has_verb => {
            let start = before.len() - last.len();
            Some(format!("{}{second}", &before[..start]))
        }
        _ => None,
    }
}

/// Where the last «and» or «or» of a text stands, and where the text goes on after it.
fn joint(text: &str) -> Option<(usize, usize)> {
    let ends = [" and ", " or ", " & "].iter().filter_map(|word| Some((text.rfind(word)?, word.len())));
    ends.max().map(|(at, length)| (at, at + length))
}

/// A statement without its last part behind a comma, if the sentence speaks about that part alone.
fn without_last_part(body: &str, sentence: &str) -> Option<String> {
    let parts = parts(body);
    let (last, others) = parts.split_last()?;
    let is_first = others.len() == 1 && others[0].split_whitespace().count() >= PART_WORDS;
    // Two times share their minutes.
    let sentence: String = sentence.chars().filter(|c| !c.is_ascii_digit()).collect();
    let is_about = share_content(last, &sentence) && !share_content(&others.join(" "), &sentence);
    (is_first && is_about).then(|| others[0].trim_end_matches([',', ';']).to_owned())
}

/// 「每天吃降压药和阿司匹林」, 「每周三和周六排练」: a thing is as long as what the sentence repeats of it.
fn chinese(body: &str, sentence: &str) -> Option<String> {
    const JOINTS: [char; 4] = ['和', '跟', '、', '或'];
    if sentence.contains(JOINTS) {
        return None;
    }
    let mut places = body.char_indices().filter(|(_, c)| JOINTS.contains(c));
    let (at, joint) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    let (before, after) = (&body[..at], &body[at + joint.len_utf8()..]);
    let second = repeated(after.char_indices().map(|(at, c)| &after[..at + c.len_utf8()]), sentence);
    let first = repeated(before.char_indices().rev().map(|(at, _)| &before[at..]), sentence);
    match (first, second) {
        (None, Some(second)) => Some(format!("{before}{}", &after[second.len()..])),
        (Some(first), None) => Some(format!("{}{after}", &before[..before.len() - first.len()])),
        _ => None,
    }
}

/// The longest of these growing texts that a sentence repeats.
fn repeated<'t>(texts: impl Iterator<Item = &'t str>, sentence: &str) -> Option<&'t str> {
    let longest = texts.take_while(|text| sentence.contains(text)).last();
    longest.filter(|text| text.chars().count() >= LEAST_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_things_goes() {
        let check = |statement: &str, sentence: &str, expected: Option<&str>| {
            assert_eq!(without_one(statement, sentence).as_deref(), expected, "{statement} / {sentence}");
        };
        let pills = "The user's father takes digoxin and furosemide.";
        check(pills, "he came off the furosemide", Some("The user's father takes digoxin."));
        check(pills, "The digoxin was stopped", Some("The user's father takes furosemide."));
        check(pills, "he takes nothing any more", None);
        check(pills, "he takes digoxin and aspirin now", None);
        check(
            "The user doesn't eat veal or mussels.",
            "I eat mussels again",
            Some("The user doesn't eat veal."),
        );
        check(
            "To do: caulk the deck and order a new mainsail",
            "ordered the mainsail",
            Some("To do: caulk the deck"),
        );
        check("These leeks and spring beans are ripe", "the beans are eaten", None);
        check(
            "The user keeps bees and sold the old boat",
            "bought the boat back",
            Some("The user keeps bees"),
        );
        check("The shop is open between 9 and 11", "it opens at 9 and closes late", None);
        check(
            "Doors open at 18:00, last entry 21:30.",
            "last entry is 21:00 now",
            Some("Doors open at 18:00."),
        );
        check("外公每天吃地高辛和利尿剂。", "利尿剂停了", Some("外公每天吃地高辛。"));
        check("乐队每周二和周五排练，队长是老何", "周二的排练取消了", Some("乐队每周五排练，队长是老何"));
        check("外公吃地高辛和利尿剂", "他住院了", None);
    }
}
