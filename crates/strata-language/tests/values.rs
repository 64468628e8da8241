//! No value of a sentence is lost or invented, in English and Chinese: told in the third person, cut into facts, joined from parts,
//! and with the question that it answers.
#![allow(clippy::unwrap_used, reason = "a failing test says where")]

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use strata_language::statements::{facts, in_reply_to, joined, parts, third_person, without_reply};

/// Names that stand for a value in every sentence.
const NAMES: [&str; 6] = ["Malmö", "Ilse", "GitLab", "青岛", "老秦", "周敏"];

const ENGLISH: &[&str] = &[
    "I",
    "my",
    "we",
    "Ilse",
    "live in",
    "Malmö",
    "sell",
    "moved to",
    "and",
    "but",
    "on 7 May",
    "at 8:15",
    "keep",
    "GitLab",
    "for 450 euros",
    "bees,",
    "because",
    "has",
    "room 12B",
    "three",
    "\"call",
    "me\"",
    "my sister",
    "works",
    "plays",
    "(since 2019)",
    "or",
    "which",
    "is",
];

const CHINESE: &[&str] = &[
    "我",
    "我的",
    "我们",
    "老秦",
    "周敏",
    "住在",
    "青岛",
    "，",
    "。",
    "和",
    "但是",
    "搬到了",
    "房租是",
    "4500元",
    "早上8点15",
    "卖蜂蜜",
    "因为",
    "养了3只猫",
    "在12B房间",
    "她",
    "上班",
    "“别打给",
    "我”",
    "2019年",
    "、",
    "的妹妹",
    "每周二",
    "喜欢",
    "GitLab",
];

fn sentence(words: &'static [&'static str], between: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(select(words), 1..16).prop_map(move |words| words.join(between))
}

fn any_sentence() -> impl Strategy<Value = String> {
    prop_oneof![sentence(ENGLISH, " "), sentence(CHINESE, "")]
}

fn at() -> Timestamp {
    "2026-03-17T12:00:00Z".parse().unwrap()
}

/// The runs of digits and the names in a text.
fn values(text: &str) -> Vec<&str> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    digits.chain(NAMES.into_iter().filter(|name| text.contains(name))).collect()
}

/// A told text without the dates that make «on Tuesday» absolute, which are brackets that the sentence does not have.
fn without_dates(told: &str, said: &str) -> String {
    let mut rest = told;
    let mut left = String::new();
    while let Some(from) = rest.find(['(', '（']) {
        let open = rest[from..].chars().next().map_or(1, char::len_utf8);
        let Some(length) = rest[from..].find([')', '）']) else { break };
        let inside = &rest[from + open..from + length];
        let close = rest[from + length..].chars().next().map_or(1, char::len_utf8);
        left.push_str(&rest[..from]);
        if said.contains(inside) {
            left.push_str(inside);
        }
        rest = &rest[from + length + close..];
    }
    left + rest
}

fn holds(what: &str, of: &str, result: &str) -> Result<(), TestCaseError> {
    for value in values(of) {
        prop_assert!(result.contains(value), "{what} lost {value}: {of} → {result}");
    }
    Ok(())
}

fn invents_nothing(what: &str, of: &str, result: &str) -> Result<(), TestCaseError> {
    let result = without_dates(result, of);
    for value in values(&result) {
        prop_assert!(of.contains(value), "{what} invented {value}: {of} → {result}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_sentence_in_the_third_person_keeps_its_values(said in any_sentence()) {
        let told = third_person(&said, None, at());
        holds("the third person", &said, &told)?;
        invents_nothing("the third person", &said, &told)?;
        let named = third_person(&said, Some("Okoro"), at());
        holds("the third person", &said, &named)?;
        invents_nothing("the third person", &said, &named)?;
    }

    #[test]
    fn the_facts_of_a_sentence_keep_its_values(said in any_sentence()) {
        let cut = facts(&said);
        holds("the facts", &said, &cut.join(" "))?;
        for fact in &cut {
            invents_nothing("a fact", &said, fact)?;
            let told = third_person(fact, None, at());
            holds("a fact in the third person", fact, &told)?;
            invents_nothing("a fact in the third person", &said, &told)?;
        }
    }

    #[test]
    fn parts_and_their_join_keep_values(said in any_sentence()) {
        let cut = parts(&said);
        holds("the parts", &said, &cut.join(" "))?;
        let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
        if let Some(whole) = joined(&cut) {
            holds("the join", &said, &whole)?;
            invents_nothing("the join", &said, &whole)?;
        }
    }

    #[test]
    fn a_quoted_answer_keeps_the_values_of_both(said in any_sentence(), asked in any_sentence()) {
        let quoted = in_reply_to(&said, &asked);
        holds("the answer", &said, &quoted)?;
        holds("the question", &asked, &quoted)?;
        invents_nothing("the answer", &format!("{said} {asked}"), &quoted)?;
        holds("the answer alone", &said, &without_reply(&quoted))?;
    }
}
