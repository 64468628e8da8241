//! Whether a part of a statement can stand alone: it has a subject and a verb of its own, and does not lean on the words that stood
//! around it.

use super::chinese::is_chinese;
use super::context::{is_in, lacks_referent, lower_words};
use super::facts::{begins_with_subject, is_finite, is_verb};
use super::parts::parts;
use crate::Pattern;
use crate::secrets::{is_secret, redacted};

/// Beginnings that join a clause to another one.
static ENGLISH_JOINED: Pattern = Pattern::new(
    r"^(?i:to|on|in|at|with|for|of|by|from|than|as|like|which|who|whom|whose|that|where|and|but|or|nor|so|then|plus|including|excluding|focusing|especially|because|since|although|though|while|when|if|unless|until|see|currently|rather|not|both)\b",
);
static CHINESE_JOINED: Pattern = Pattern::new(
    "^(?:并|並|但|而|所以|因此|因为|因為|由于|由於|然后|然後|以及|还|還|也|就|才|是|不是|其中|包括|比如|例如|特别是|特別是|尤其|或|和|跟|与|與|的|它|他|她|这|這|那|如果|要是|虽然|雖然|的话|的話)",
);

/// Whether a text is a statement by itself, with a subject and a verb, and no word before it is missing.
pub fn stands_alone(text: &str) -> bool {
    let text = text.trim();
    if is_chinese(text) {
        return !CHINESE_JOINED.is_match(text) && begins_with_subject(text);
    }
    !ENGLISH_JOINED.is_match(text) && has_subject(text) && !lacks_referent(text)
}

/// A statement with its secrets masked, if what is left of it says something; `None` if the statement is about nothing but the
/// secret.
pub fn without_secrets(statement: &str) -> Option<String> {
    let is_plain =
        |part: &String| !is_secret(part) && stands_alone(part.trim_end_matches([',', ';', '，', '；']));
    let redacted = redacted(statement);
    // A part may look like a secret only beside the words before it.
    let parts = parts(&redacted);
    let holds_mask = |part: &String| part.contains("[secret]");
    let is_kept = parts.iter().any(|part| !holds_mask(part) && is_plain(part));
    (is_kept && !is_secret(&redacted)).then(|| redacted.into_owned())
}

/// Whether a verb follows something that may be its subject.
fn has_subject(text: &str) -> bool {
    /// The most words of a subject.
    const SUBJECT: usize = 8;
    const PERSONS: &str = "user i we they you he she i'm we're they're i've we've";
    let words = lower_words(text);
    let is_state = |place: usize| {
        let before = words[place - 1].as_str();
        is_finite(&words[place])
            || words[place].contains('\'') && is_verb(&words[place])
            || is_in(PERSONS, before)
            || words[place].len() > 3 && words[place].ends_with('s') && place + 1 < words.len()
    };
    let is_contracted = words.first().is_some_and(|first| first.contains('\'') && is_verb(first));
    let starts = words.first().is_some_and(|first| !is_finite(first) || is_in(PERSONS, first));
    is_contracted || starts && (1..words.len().min(SUBJECT + 1)).any(is_state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_leaves_the_rest_of_its_statement() {
        let check = |statement: &str, expected: Option<&str>| {
            assert_eq!(without_secrets(statement).as_deref(), expected, "{statement}");
        };
        check(
            "The user's locker is in hall B, and its admin password is Tern-4471x",
            Some("The user's locker is in hall B, and its admin password is [secret]"),
        );
        check("The user's password is Tern-4471x.", None);
        check("用户住在宁波，路由器密码是 qinghai2031。", Some("用户住在宁波，路由器密码是 [secret]。"));
    }

    #[test]
    fn a_part_with_subject_and_verb_stands_alone() {
        for whole in [
            "The user rows on Fridays",
            "The stall number is 41.",
            "Ida sings in Gent",
            "The user's sister teaches Latin",
            "I'm vegan",
            "The pump leaks at night",
            "用户养狗",
            "房租九百",
        ] {
            assert!(stands_alone(whole), "{whole}");
        }
        for part in [
            "to finish the hull by 12 May",
            "Room 4",
            "Thursday at 10",
            "which costs 40 euros",
            "because the rent went up to 900",
            "and the pump leaks",
            "Focusing on the 3 sails",
            "is 41 metres long",
            "it is 41 metres long",
            "并讨论了第3章",
            "是黑色的",
            "因为房租涨到九百",
        ] {
            assert!(!stands_alone(part), "{part}");
        }
    }
}
