//! The mistakes of a front matter in words for the person who has written it. The parser speaks to programmers, and counts the
//! lines of the front matter alone.

use serde_saphyr::Error;

/// What the parser finds at the place of a mistake, and the words for it. The first that fits counts.
const MISTAKES: [(&[&str], &str); 7] = [
    (&["tab"], "a tab stands where only spaces can; write spaces"),
    (
        &["quoted scalar", "escape"],
        "a text in quotes does not end, or holds a `\\` that means nothing; close it, or use single quotes",
    ),
    (
        &["bracket", "flow sequence", "flow mapping", "flow construct", "[{"],
        "a `[` or `{` is not closed, or a comma is missing; put a text with these signs in quotes",
    ),
    (
        &["mapping values"],
        "a second `: ` stands in one line, or a line is indented too far; put the value in quotes",
    ),
    (
        &["anchor", "alias", "tag", "directive", "unexpected character", "cannot start any token"],
        "a value begins with a sign that means something else in YAML; put it in quotes",
    ),
    (&["block scalar"], "the lines below a `|` or `>` have to be indented alike"),
    (&["indentation"], "a line begins too far to the left or right; indent it like its neighbours"),
];

/// A mistake that has no words of its own.
const OTHER: &str = "this is no line `key: value`; write one, or put the value in quotes";

/// The mistake, and its remedy.
pub(super) fn of(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => of(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` stands there twice; remove one of the lines")
        }
        Error::DuplicateMappingKey { .. } => "a key stands there twice; remove one of the lines".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => {
            format!(
                "it has more than {} values, or more than {} levels; make it smaller",
                super::MAX_NODES,
                super::MAX_DEPTH
            )
        }
        Error::MultipleDocuments { .. } => "it holds a line `---` or `...`; remove that line".to_owned(),
        Error::UnknownAnchor { .. } | Error::UnsupportedTag { .. } | Error::QuotingRequired { .. } => {
            MISTAKES[4].1.to_owned()
        }
        Error::Eof { .. } => MISTAKES[2].1.to_owned(),
        Error::ExternalMessage { msg, .. } | Error::Message { msg, .. } => of_parser(msg).to_owned(),
        _ => OTHER.to_owned(),
    }
}

fn of_parser(said: &str) -> &'static str {
    let said = said.to_ascii_lowercase();
    let is_it = |signs: &[&str]| signs.iter().any(|sign| has_words(&said, sign));
    MISTAKES.iter().find(|(signs, _)| is_it(signs)).map_or(OTHER, |(_, words)| words)
}

/// Whether a message has these words as words, also in the plural.
fn has_words(said: &str, words: &str) -> bool {
    let is_letter = |character: Option<char>| character.is_some_and(char::is_alphabetic);
    said.match_indices(words).any(|(at, _)| {
        let after = said[at + words.len()..].trim_start_matches('s');
        !is_letter(said[..at].chars().next_back()) && !is_letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use crate::front::Document;

    #[test]
    fn a_mistake_is_told_in_our_own_words_with_one_line() {
        let check = |front: &str, line: u64, words: &str| {
            let fault = Document::parse(format!("---\n{front}\n---\ntext\n").as_bytes()).unwrap_err();
            assert_eq!(fault.line, Some(line), "{front}: {fault:?}");
            assert!(fault.reason.contains(words), "{front}: {fault:?}");
            for foreign in [" at line ", "column", "Policy", "mapping", "scalar", "budget"] {
                assert!(!fault.reason.contains(foreign), "{front}: {fault:?}");
            }
        };
        check("id: a\nkind: fact\nid: b", 4, "the key `id` stands there twice");
        check("id: a\nagent: \"skipper", 3, "a text in quotes does not end");
        check("id: a\nagent: skipper: first mate", 3, "a second `: ` stands in one line");
        check("id: a\ntags: [oar, sail\nkind: fact", 3, "is not closed");
        check("id: a\n\tkind: fact", 3, "a tab stands where only spaces can");
        check("id: a\nmood: @home", 3, "put it in quotes");
        check("id: a\nmood: *high", 3, "put it in quotes");
        check("Only a line between rules", 2, "no line `key: value`");
        check("- a\n- b", 2, "no line `key: value`");
        check("id: a\njust words\nkind: fact", 3, "no line `key: value`");
        check(&format!("tags: [{}]", "x, ".repeat(3_000)), 2, "more than 2000 values");
    }
}
