//! Cuts a text of ASCII characters into words as the patterns of the encodings do, without a regular expression, which takes
//! most of the time of counting. Where other characters decide, the pattern does.

/// How an encoding cuts letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// A word is a run of letters (`cl100k`).
    Any,
    /// A word ends where a capital follows a small letter, and takes a contraction with it (`o200k`).
    ByCase,
}

/// The end of the first word, if it is letters with at most one space before them, and nothing but ASCII letters and the
/// character after them decides about it.
pub(super) fn word(bytes: &[u8], letters: Letters) -> Option<usize> {
    let start = usize::from(bytes.first() == Some(&b' '));
    let run = |from: usize, is: fn(&u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| is(byte)).count()
    };
    let end = match letters {
        Letters::Any => run(start, u8::is_ascii_alphabetic),
        Letters::ByCase => run(run(start, u8::is_ascii_uppercase), u8::is_ascii_lowercase),
    };
    match bytes.get(end) {
        _ if end == start => None,
        // A letter of another alphabet or an accent may belong to the word, and an apostrophe may begin a contraction.
        Some(next) if !next.is_ascii() || *next == b'\'' => None,
        _ => Some(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_letters_are_cut() {
        let check = |text: &str, letters: Letters, expected: Option<usize>| {
            assert_eq!(word(text.as_bytes(), letters), expected, "{text}");
        };
        check("pump runs", Letters::Any, Some(4));
        check(" pump", Letters::ByCase, Some(5));
        check("GETvalue next", Letters::ByCase, Some(8));
        check("pumpRuns", Letters::ByCase, Some(4));
        check("pumpRuns", Letters::Any, Some(8));
        check("HTTP/1", Letters::ByCase, Some(4));
        for text in ["", " ", "  pump", "12", "it's", "caf\u{e9}", "'s", "naive\u{301}"] {
            for letters in [Letters::Any, Letters::ByCase] {
                check(text, letters, None);
            }
        }
    }
}
