use proptest::prelude::*;

use super::similar::Trigrams;
use super::*;

fn check(text: &str, expected: &str) {
    assert_eq!(analyse(text).join(" "), expected, "{text:?}");
}

#[test]
fn english_words_are_stemmed_and_lose_their_stop_words() {
    check("The dogs were RUNNING to the café", "dog run cafe");
    check("Bart's friends don't like it", "bart friend don like");
    check("Bart’s o'clock, we'll", "bart o clock");
    check("generously organised relational", "generous organi relat");
    check("cans and wills", "cans wills");
}

#[test]
fn a_text_of_stop_words_keeps_them() {
    check("To be, or not to be", "to be or not to be");
    check("the who?", "the who");
    check("The Who played", "play");
}

#[test]
fn one_spelling_stands_for_all() {
    check("ＣＡＦÉ cafe\u{301} Café", "cafe cafe cafe");
    check("Straße STRASSE", "strass strass");
    check("İstanbul ΟΔΟΣ οδος", "istanbul οδοσ οδοσ");
    check("Łódź smørrebrød ﬁne", "lodz smorrebrod fine");
    check("co\u{AD}operate", "cooper");
    check("がが か\u{3099}", "がが が");
}

#[test]
fn unspaced_scripts_become_pairs() {
    check("去了西湖", "去了 了西 西湖");
    check("茶", "茶");
    check("第3名", "第 3 名");
    check("用Rust写", "用 rust 写");
    check("東京タワー・大阪", "东京 京タ タワ ワー 大阪");
    check("한국어", "한국 국어");
    check("ไทย", "ไท ทย");
    check("你好，世界。", "你好 世界");
}

#[test]
fn words_of_other_scripts_stay_whole() {
    check("привет МИР", "привет мир");
    check("हिन्दी", "हिन्दी");
    check("مرحبا بالعالم", "مرحبا بالعالم");
}

#[test]
fn identifiers_are_found_whole_and_by_part() {
    check("foo_bar.rs", "foo bar rs fooǀbarǀrs");
    check("v1.2 3.5", "v1 2 v1ǀ2 3 5 3ǀ5");
    check("ann@example.com.", "ann exampl com annǀexampleǀcom");
    check("wait...what end. Next", "wait end next");
    check("__init__", "init");
    check("550e8400-e29b", "550e8400 e29b");
}

/// Random texts rarely contain a character whose normal form has another normal form, so this checks all characters.
#[test]
fn every_character_has_one_form() {
    for c in '\0'..='\u{2FFFF}' {
        let text = c.to_string();
        let folded = fold(&text);
        assert_eq!(fold(&folded), folded, "{c:?}");
        let terms = analyse(&text);
        assert_eq!(analyse(&terms.join(" ")), terms, "{c:?}");
    }
}

#[test]
fn long_words_are_cut() {
    let long = "西".repeat(10) + &"x".repeat(1_000);
    let terms = analyse(&long);
    assert_eq!(terms.last().map(|term| term.chars().count()), Some(MAX_TERM_CHARS));
    let dotted = ["part"; 100].join(".");
    assert!(analyse(&dotted).iter().all(|term| term == "part"));
}

#[test]
fn query_terms_are_distinct_and_in_order() {
    assert_eq!(query_terms("tea Teas green TEA"), ["tea", "green"]);
}

/// Each of these texts would take minutes if the cost were more than linear.
#[test]
fn hostile_texts_are_analysed() {
    const SIZE: usize = 100_000;
    for piece in
        ["(", "'", "a'", "a.", "_", "\u{301}", "\u{5b0}", "a\u{301}", "x", "西", "’s", "\u{200d}", "ǀ", "is "]
    {
        let text = piece.repeat(SIZE / piece.len());
        let mut terms = 0;
        for_each_term(&text, |_| terms += 1);
        assert!(terms <= SIZE);
        assert!(fold(&text).len() <= text.len());
    }
}

#[test]
fn folding_normalises_and_joins_white_space() {
    assert_eq!(fold("  Grüße\t\n AN　Alle "), "grusse an alle");
    assert_eq!(fold(" \n"), "");
}

fn trigram_similarity(a: &str, b: &str) -> f32 {
    Trigrams::of(a).similarity(&Trigrams::of(b))
}

#[test]
fn trigrams_compare_like_pg_trgm() {
    // The results of `SELECT similarity(a, b)`.
    for (a, b, expected) in [
        ("espresso", "expresso", 0.5),
        ("word", "words", 0.571_429),
        ("same", "same", 1.0),
        ("abc", "xyz", 0.0),
    ] {
        assert!((trigram_similarity(a, b) - expected).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn similar_words_finds_substrings_and_misspellings() {
    let similar = SimilarWords::new("the Expresso");
    assert_eq!(similar.score("I like the  expresso best"), 1.0);
    assert_eq!(similar.score("an espresso"), 0.5);
    // A common stop word does not count.
    assert!(similar.score("the end") < 0.2);
    assert_eq!(SimilarWords::new("").score("anything"), 0.0);
    assert_eq!(SimilarWords::new("湖").score("去了西湖玩"), 1.0);
}

/// Texts that mix scripts, marks, connectors and English words more often than random characters do.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-zA-Z]{1,12}(ing|ed|ies|ly|s|ness|ational|y)?",
        "[._@'’ ǀ-]",
        "[\u{4e00}-\u{4e20}]{1,4}",
        "[ぁ-んァ-ヶー]{1,4}",
        "[\u{300}-\u{30a}\u{3099}\u{200d}]",
        "[àéîøßÆŁİſﬁ]{1,3}",
        prop::sample::select(STOP_WORDS.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
        Just(" ".to_owned()),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn analysing_terms_again_changes_nothing(text in text()) {
        let terms = analyse(&text);
        prop_assert_eq!(analyse(&terms.join(" ")), terms);
    }

    #[test]
    fn terms_are_short_and_a_tokenizer_would_leave_them_whole(text in text()) {
        for term in analyse(&text) {
            prop_assert!(!term.is_empty());
            prop_assert!(term.chars().count() <= MAX_TERM_CHARS);
            let plain = |c: char| c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c);
            prop_assert!(term.chars().all(plain), "{:?}", term);
        }
    }

    #[test]
    fn form_and_case_do_not_matter(text in text()) {
        use unicode_normalization::UnicodeNormalization;
        let terms = analyse(&text);
        prop_assert_eq!(&analyse(&text.nfd().collect::<String>()), &terms);
        prop_assert_eq!(&analyse(&text.nfc().collect::<String>()), &terms);
        prop_assert_eq!(&analyse(&text.to_lowercase()), &terms);
    }

    #[test]
    fn folding_twice_changes_nothing(text in text()) {
        let folded = fold(&text);
        prop_assert_eq!(fold(&folded), folded);
    }

    #[test]
    fn an_item_is_similar_to_any_of_its_parts(text in text(), range in (0..40_usize, 1..20_usize)) {
        let folded = fold(&text);
        let part: String = folded.chars().skip(range.0).take(range.1).collect();
        prop_assume!(!fold(&part).is_empty());
        // A part may begin or end between a letter and its mark; then it is another text.
        prop_assume!(folded.contains(&fold(&part)));
        prop_assert_eq!(SimilarWords::new(&part).score(&text), 1.0);
    }

    #[test]
    fn similarity_is_symmetric_and_bounded(a in "\\PC{0,12}", b in "\\PC{0,12}") {
        let similarity = trigram_similarity(&a, &b);
        prop_assert!((0.0..=1.0).contains(&similarity));
        prop_assert_eq!(similarity, trigram_similarity(&b, &a));
        prop_assert_eq!(trigram_similarity(&a, &a), 1.0);
    }
}
