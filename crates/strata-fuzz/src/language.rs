//! The parsers of `strata-language`: texts of people.

use jiff::Timestamp;
use strata_language::rules::{self, SaidText};
use strata_language::{
    content, cues, secrets as secret, sentences, statements as said, text as words, time as times,
};

/// A moment in the midst of 2026, against which relative times are resolved.
fn now() -> Timestamp {
    Timestamp::from_second(1_780_000_000).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Terms: those of a question are among those of the text.
pub(crate) fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let terms = words::analyse(&text);
    for term in words::query_terms(&text) {
        assert!(terms.contains(&term), "{term}");
    }
    let _ = words::fold(&text);
    let _ = words::SimilarWords::new(&text).score(&text);
}

/// Sentences, pieces and statements.
pub(crate) fn statements(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(text.contains(sentences::first_sentence(&text)));
    for chars in [0, 1, 7, 100] {
        let _ = (sentences::beginning(&text, chars), sentences::ending(&text, chars));
        assert!(text.is_char_boundary(sentences::head_end(&text, chars)));
        assert!(text.is_char_boundary(sentences::tail_start(&text, chars)));
    }
    for end in sentences::ends(&text) {
        assert!(text.is_char_boundary(end));
    }
    for piece in said::pieces(&text) {
        let _ = (said::facts(&piece.text), said::chinese_clauses(&piece.text), said::parts(&piece.text));
        let _ = (
            said::third_person(&piece.text, Some("Ann"), now()),
            said::third_person(&piece.text, None, now()),
        );
        let _ =
            (said::is_instruction(&piece.text), said::says_done(&piece.text), said::refers_back(&piece.text));
        let _ = (
            said::without_done(&text, &piece.text),
            said::tells_cause(&piece.text),
            said::denies(&piece.text),
        );
    }
    let _ = (said::is_housekeeping(&text), said::without_greeting(&text), said::rough_length(&text));
    let _ = (content::has_content(&text), content::is_courtesy(&text), cues::cue(&text));
}

/// The reading rules.
pub(crate) fn rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for name in [None, Some("Ann")] {
        for statement in rules::extract(&SaidText { name, text: &text, at: now() }) {
            assert!((0.0..=1.0).contains(&statement.confidence), "{statement:?}");
        }
    }
}

/// Times that a text names: a span does not end before it begins.
pub(crate) fn time(data: &[u8]) {
    for moment in [now(), Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        let _ = times::parse(&String::from_utf8_lossy(data), moment);
    }
}

/// Secrets: their places are in order, and a masked text holds none of them.
pub(crate) fn secrets(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let found = secret::secrets(&text);
    for pair in found.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{found:?}");
    }
    assert!(found.iter().all(|one| text.get(one.start..one.end).is_some()), "{found:?}");
    let _ = secret::masked(&text);
}
