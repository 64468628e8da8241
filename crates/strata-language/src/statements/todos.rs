//! Several things to do in one statement: «the filter needs changing, and the user has to ring the roofer» without the filter.

use super::chinese::is_chinese;
use super::facts::{is_base, with_subject};
use super::parts::{joined, parts};
use super::values::content_terms;
use crate::Pattern;

/// What says that something is still to be done.
static ENGLISH: Pattern = Pattern::new(
    r"(?i)\b(?:needs?|has|have|had|got|ought|wants?|going|plans?|supposed) to\b|\b(?:needs?|wants?) \w+ing\b|\b(?:must|should|gotta|still)\b|\bdon['’]t forget\b|\bremember to\b|\bto do\b",
);
static CHINESE: Pattern = Pattern::new(
    "(?:^|[^不只重主需想])要[^是不么麼求紧緊好]|需要|必须|必須|应该|應該|该.{1,4}了|該.{1,4}了|记得|記得|别忘|別忘|打算|准备|準備|^(?:还|還|也|又)?(?:得|该|該)",
);
/// The beginning of a statement up to the verb of what is to be done.
static LEAD: Pattern = Pattern::new(
    r"(?i)^[^,;]*?\b(?:(?:needs?|has|have|got|ought|wants?|going|plans?|supposed) to|must|should|to do:|todo:|don['’]t forget to|remembers? to) (?:also |still |then )?",
);
/// Words that join a part to those before it.
static JOINED: Pattern = Pattern::new(
    r"(?i)^(?:(?:and|but|also|then|so|plus)\s+)+|^(?:另外|然后|然後|而且|并且|並且|再就是|还有|還有)[，,]?|^[还還也]",
);
/// Says that everything is done.
static ALL: Pattern =
    Pattern::new(r"(?i)\b(?:all|both|everything|whole list)\b|[都全]|两件|兩件|两样|兩樣|所有|一起");

/// A statement of several things to do without those that a sentence speaks about. `None` if the sentence speaks about none
/// of them or about all, or if what is left would be nothing to do.
pub fn without_done(statement: &str, sentence: &str) -> Option<String> {
    let parts = parts(statement);
    let about: Vec<usize> = parts.iter().map(|part| shared(part, sentence)).collect();
    let most = about.iter().copied().max().unwrap_or_default();
    let is_done = |place: &usize| 2 * about[*place] > most;
    let (done, left): (Vec<usize>, Vec<usize>) = (0..parts.len()).partition(is_done);
    if most == 0 || done.is_empty() || left.is_empty() || ALL.is_match(sentence) {
        return None;
    }
    let left: Vec<&str> = left.iter().map(|place| without_join(&parts[*place])).collect();
    let is_open = |part: &&str| is_to_be_done(part) || statement.starts_with(*part) && LEAD.is_match(part);
    if !left.iter().all(is_open) {
        return None;
    }
    let rest = joined(&left)?;
    let body = statement.trim_end_matches(['.', '。']);
    let end = if rest.ends_with(['.', '。']) { "" } else { &statement[body.len()..] };
    Some(format!("{}{end}", with_lead(statement, &rest)))
}

/// The number of words with content that a part shares with a sentence. Pairs of Chinese characters count beside their
/// characters.
fn shared(part: &str, sentence: &str) -> usize {
    let terms = content_terms(sentence);
    content_terms(part).iter().filter(|term| terms.contains(term)).count()
}

fn without_join(part: &str) -> &str {
    JOINED.find(part).map_or(part, |join| &part[join.end()..])
}

/// Whether a part of a statement names something that is to be done.
pub(super) fn is_to_be_done(part: &str) -> bool {
    if is_chinese(part) {
        return CHINESE.is_match(part);
    }
    let mut words = part.split_whitespace().map(str::to_lowercase);
    let first = words.next().unwrap_or_default();
    let verb = if first == "to" { words.next().unwrap_or_default() } else { first };
    is_base(&verb) || ENGLISH.is_match(part)
}

/// The rest of a statement with the beginning that it lost: «ring the roofer» after «the user has to fix the gate».
fn with_lead(statement: &str, rest: &str) -> String {
    let mut words = rest.split_whitespace().map(str::to_lowercase);
    let is_verb = words.next().is_some_and(|first| is_base(&first));
    let lead = LEAD.find(statement).filter(|_| is_verb && !statement.starts_with(rest));
    match lead {
        Some(lead) => {
            let mut letters = rest.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
            format!("{}{first}{}", lead.as_str(), letters.as_str())
        }
        None => with_speaker(statement, rest),
    }
}

/// The rest of a statement with the speaker before it, if the statement has one.
fn with_speaker(statement: &str, rest: &str) -> String {
    const TO_DO: [char; 6] = ['要', '得', '该', '該', '需', '必'];
    let user = ["用户", "用戶"].into_iter().find(|user| statement.starts_with(user));
    match user.filter(|_| rest.starts_with(TO_DO)) {
        Some(user) => format!("{user}{rest}"),
        None => with_subject(statement, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_leaves_the_rest() {
        let check = |statement: &str, sentence: &str, expected: Option<&str>| {
            assert_eq!(without_done(statement, sentence).as_deref(), expected, "{statement} / {sentence}");
        };
        check("屋顶要补，还要给漆匠回个信", "屋顶补好了", Some("要给漆匠回个信"));
        check("屋顶要补，还要给漆匠回个信。", "漆匠的信回了", Some("屋顶要补。"));
        check("用户要续签护照，还得给船换机油", "护照续好了", Some("用户得给船换机油"));
        check("屋顶要补，还要给漆匠回个信", "屋顶和信都弄好了", None);
        check("屋顶要补，听说要下雨", "雨停了", Some("屋顶要补"));
        check("屋顶要补，因为漏水", "漏水停了", Some("屋顶要补"));
        let gate = "The user has to oil the gate and ring the roofer.";
        check(gate, "The gate is oiled", Some("The user has to ring the roofer."));
        check(
            gate,
            "Rang the roofer this morning, roofer comes Monday",
            Some("The user has to oil the gate."),
        );
        check(gate, "Both are done", None);
        check(gate, "I planted leeks", None);
        check("The user needs to oil the gate, which is rusty", "The gate is oiled", None);
        check(
            "The pump wants greasing, and the user still needs to pay the berth.",
            "Greased the pump at last",
            Some("The user still needs to pay the berth."),
        );
    }
}
