//! Levels, content types and chunks.

use proptest::prelude::*;

use super::*;
use strata_core::ports::EstimatedTokens;

#[test]
fn the_levels_of_the_design() {
    let check = |tokens, level| assert_eq!(Level::of(tokens), level, "{tokens}");
    for (tokens, level) in [(0, Level::None), (99, Level::None), (100, Level::Brief), (499, Level::Brief)] {
        check(tokens, level);
    }
    for (tokens, level) in [(500, Level::Standard), (2_999, Level::Standard), (3_000, Level::Detailed)] {
        check(tokens, level);
    }
    for (tokens, level) in
        [(15_000, Level::Detailed), (15_001, Level::Hierarchical), (u64::MAX, Level::Hierarchical)]
    {
        check(tokens, level);
    }
    assert!(Level::None < Level::Brief && Level::Detailed < Level::Hierarchical);
}

#[test]
fn a_summary_is_a_share_of_its_text() {
    let check = |tokens: u64, target| assert_eq!(Level::of(tokens).target_tokens(tokens), target, "{tokens}");
    check(50, 0);
    check(100, 30);
    check(400, 80);
    check(1_000, 120);
    check(10_000, 700);
    check(1_000_000, 1_000);
}

#[test]
fn a_text_tells_what_it_is() {
    let check = |text: &str, expected| assert_eq!(ContentType::detect(text), expected, "{text}");
    check("User: hello there\nAssistant: hi\nUser: what now?", ContentType::Conversation);
    check("小明：你好\n小红：你也好", ContentType::Conversation);
    check("2024-05-01\nI went to the lake. My feet hurt.\n\n2024-05-02\nI stayed in.", ContentType::Journal);
    check("今天我去了西湖。\n晚上我很累。", ContentType::Journal);
    check("# Installing\n\nRun the script.\n\nIt takes a minute.", ContentType::Document);
    check("See https://example.com for more.\nThe end.", ContentType::Document);
    check("", ContentType::Document);
}

fn cut(text: &str, size: u32, overlap: u32) -> Vec<(&str, &str)> {
    let chunks = chunks(text, size, overlap, &EstimatedTokens);
    chunks
        .iter()
        .map(|chunk| (&text[chunk.all.start..chunk.fresh], &text[chunk.fresh..chunk.all.end]))
        .collect()
}

#[test]
fn a_chunk_ends_where_a_reader_would_pause() {
    let text = "One is here. Two is there.\n\nThree is a paragraph.\n\nFour ends it.";
    assert_eq!(
        cut(text, 16, 4),
        [
            ("", "One is here. Two is there.\n\nThree is a paragraph.\n\n"),
            ("a paragraph.\n\n", "Four ends it.")
        ]
    );
    // A paragraph that does not fit is cut at a sentence, in Chinese too.
    assert_eq!(
        cut("风扇停了。温度升高了。我们换了风扇。", 14, 6),
        [("", "风扇停了。温度升高了。"), ("温度升高了。", "我们换了风扇。")]
    );
    // A sentence that does not fit is cut at any grapheme.
    assert_eq!(cut("👨‍👩‍👧👨‍👩‍👧", 4, 0), [("", "👨‍👩‍👧"), ("", "👨‍👩‍👧")]);
    assert_eq!(cut("", 10, 2), []);
    assert_eq!(cut("short", 10, 2), [("", "short")]);
}

#[test]
fn chunks_of_the_usual_size_overlap() {
    let text: String = (0..2_000).map(|n| format!("Sentence number {n} says something. ")).collect();
    let chunks = chunks(&text, CHUNK_TOKENS, OVERLAP_TOKENS, &EstimatedTokens);
    assert_eq!(chunks.len(), 7, "{chunks:?}");
    for chunk in &chunks[1..] {
        let overlap = &text[chunk.all.start..chunk.fresh];
        assert!((150..=OVERLAP_TOKENS).contains(&EstimatedTokens.count(overlap)), "{overlap}");
        assert!(overlap.starts_with("Sentence") || overlap.starts_with(" Sentence"), "{overlap}");
    }
}

#[test]
fn a_digest_is_of_every_character() {
    assert_eq!(digest(""), "cbf29ce484222325");
    assert_ne!(digest("西湖"), digest("西 湖"));
}

proptest! {
    #[test]
    fn chunks_cover_the_text_and_fit(
        text in "([a-z]{1,9}[ .。!?]|[西湖風]{1,9}[，。]|👨‍👩‍👧|e\u{301}|\n\n|\r\n|\u{301}|[🇨🇳🇩🇪]){0,120}",
        size in 8_u32..60,
        overlap in 0_u32..40,
    ) {
        let chunks = chunks(&text, size, overlap, &EstimatedTokens);
        let mut covered = 0;
        for (place, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(chunk.fresh, covered, "without a hole");
            prop_assert!(chunk.all.start <= chunk.fresh && chunk.fresh < chunk.all.end);
            covered = chunk.all.end;
            let part = &text[chunk.all.clone()];
            let graphemes = part.graphemes(true).count();
            prop_assert!(EstimatedTokens.count(part) <= size || graphemes == 1, "{:?}", part);
            let repeated = EstimatedTokens.count(&text[chunk.all.start..chunk.fresh]);
            prop_assert!(repeated <= overlap);
            if place > 0 {
                prop_assert!(chunk.all.start >= chunks[place - 1].all.start, "only of the chunk before");
            }
            for at in [chunk.all.start, chunk.fresh, chunk.all.end] {
                prop_assert!(is_boundary(&text, at), "a grapheme is split at {}", at);
            }
        }
        prop_assert_eq!(covered, text.len());
        let again: Vec<_> = super::chunks(&text, size, overlap, &EstimatedTokens);
        prop_assert_eq!(again, chunks);
    }
}
