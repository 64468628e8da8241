//! Text search: the items it finds, the items it never finds, and their order.

use super::fixture::*;
use crate::id::MemoryId;
use crate::memory::Memory;
use crate::store::{Change, Forget, ItemKinds, ItemRef, Keep, Store, TextQuery};
use crate::turn::{Hidden, HiddenReason, NewTurn};

/// Words finds items that share at least one term, turns and memories alike, with positive scores, best first.
pub async fn finds_words_in_turns_and_memories(store: &dyn Store) {
    append(store, &ann(), "s", &["I moved to Hangzhou", "the weather is fine"]).await;
    add(store, &ann(), memory("lives in Hangzhou")).await;
    let hits = hits(store, &ann(), &words("Where is Hangzhou?")).await;
    assert_eq!(hits.len(), 2);
    assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score.is_finite()));
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(found(store, &ann(), &words("weather Paris")).await, ["the weather is fine"]);
}

/// Questions and items are analysed alike: case, width, accents and English endings do not matter.
pub async fn finds_other_forms_of_a_word(store: &dyn Store) {
    let said = "She was RUNNING past the café with two dogs; version v1.2 of foo_bar.rs";
    append(store, &ann(), "s", &[said, "unrelated"]).await;
    for question in ["runs", "Cafe", "ｃａｆé", "dog's", "v1.2", "foo_bar.rs", "bar", "cafe\u{301}"] {
        assert_eq!(found(store, &ann(), &words(question)).await, [said], "{question}");
    }
}

/// Chinese and Japanese words of two characters are found inside a sentence; a lone character is found alone.
pub async fn finds_chinese_words_of_two_characters(store: &dyn Store) {
    append(store, &ann(), "s", &["我们上周去了西湖玩", "他在东边的湖南开会", "茶", "東京タワーに行きました"])
        .await;
    for (question, expected) in [
        ("西湖", "我们上周去了西湖玩"),
        ("去过西湖吗", "我们上周去了西湖玩"),
        ("湖南", "他在东边的湖南开会"),
        ("茶", "茶"),
        ("タワー", "東京タワーに行きました"),
    ] {
        assert_eq!(found(store, &ann(), &words(question)).await, [expected], "{question}");
    }
}

/// Items that were applied before the call are found, whether or not they have been indexed.
pub async fn finds_what_was_just_appended_again_and_again(store: &dyn Store) {
    for number in 0..50 {
        let content = format!("token{number} appears here");
        append(store, &ann(), "s", &[&content]).await;
        assert_eq!(
            found(store, &ann(), &words(&format!("token{number}"))).await,
            std::slice::from_ref(&content)
        );
        assert_eq!(found(store, &ann(), &words("appears")).await.len(), number + 1);
        assert_eq!(found(store, &ann(), &similar(&format!("oken{number} app"), 0.9)).await, [content]);
    }
}

/// More shared terms, and rarer ones, rank higher.
pub async fn ranks_more_and_rarer_terms_higher(store: &dyn Store) {
    let contents = [
        "the cat sat on the mat",
        "a cat sleeps on the sofa",
        "my cat likes fish",
        "your cat hates water",
        "the giraffe sat on the road",
        "the cat and the giraffe are friends",
    ];
    append(store, &ann(), "s", &contents).await;
    let found = found(store, &ann(), &words("cat giraffe")).await;
    assert_eq!(found[..2], [contents[5], contents[4]]);
    assert_eq!(found.len(), 6);
}

/// An item without a common term is not found.
pub async fn finds_nothing_without_a_shared_term(store: &dyn Store) {
    append(store, &ann(), "s", &["I moved to Hangzhou"]).await;
    for question in ["Berlin", "hang", "北京", "xyzzy plugh"] {
        assert!(found(store, &ann(), &words(question)).await.is_empty(), "{question}");
    }
}

/// Any text is a valid question, even one that looks like a database's query language or has no terms.
pub async fn takes_any_question(store: &dyn Store) {
    append(store, &ann(), "s", &["I moved to \"Hangzhou\" (China) AND liked it"]).await;
    let long = "moved ".repeat(1_500);
    for question in [
        "",
        " ",
        "?!",
        "\"",
        "Hangzhou\"",
        "Hangzhou AND",
        "NEAR(Hangzhou, 5)",
        "Hangzhou*",
        "^Hangzhou",
        "content:Hangzhou",
        "Hangzhou OR (",
        "-Hangzhou",
        "Hangzhou & !moved",
        "Hangzhou:*B",
        "'",
        "%",
        "_",
        "\\",
        "🦀",
        "\u{301}",
        "the of and",
        "\u{0}",
        &long,
    ] {
        let found_words = found(store, &ann(), &words(question)).await;
        let named = question.contains("Hangzhou") || question.contains("moved");
        assert_eq!(found_words.len(), usize::from(named), "{question:?}");
        hits(store, &ann(), &similar(question, 0.5)).await;
    }
    for question in ["", " ", "\u{301}"] {
        assert!(found(store, &ann(), &similar(question, 0.3)).await.is_empty(), "{question:?}");
    }
}

/// Similar finds items that hold the question as a substring, with the best score.
pub async fn finds_substrings(store: &dyn Store) {
    append(store, &ann(), "s", &["the wavelength was 1550nm", "我们上周去了西湖玩", "100% of_it \\ done"])
        .await;
    for (question, expected) in [
        ("velengt", "the wavelength was 1550nm"),
        ("LENGTH  Was", "the wavelength was 1550nm"),
        ("550n", "the wavelength was 1550nm"),
        ("西湖", "我们上周去了西湖玩"),
        ("湖", "我们上周去了西湖玩"),
        ("0% of", "100% of_it \\ done"),
        ("f_i", "100% of_it \\ done"),
        ("\\ d", "100% of_it \\ done"),
    ] {
        let hits = hits(store, &ann(), &similar(question, 0.9)).await;
        assert_eq!(hits.len(), 1, "{question}");
        assert_eq!(hits[0].item.content(), expected, "{question}");
        assert!(hits[0].score > 0.9 && hits[0].score <= 1.0, "{question}");
    }
}

/// Similar finds words whose trigrams resemble a word of the question; scores go from 0 to 1.
pub async fn finds_misspelt_words(store: &dyn Store) {
    append(store, &ann(), "s", &["she ordered an espresso", "he drank water"]).await;
    add(store, &ann(), memory("works as a receptionist")).await;
    for (question, expected) in [
        ("expresso", "she ordered an espresso"),
        ("an Expresso please", "she ordered an espresso"),
        ("receptionst", "works as a receptionist"),
    ] {
        let hits = hits(store, &ann(), &similar(question, 0.3)).await;
        assert_eq!(hits.iter().map(|hit| hit.item.content()).collect::<Vec<_>>(), [expected], "{question}");
        assert!(hits[0].score > 0.3 && hits[0].score < 1.0, "{question}");
    }
}

/// An item with a similarity below the limit is not found.
pub async fn similar_respects_the_least_similarity(store: &dyn Store) {
    append(store, &ann(), "s", &["she ordered an espresso"]).await;
    let score = hits(store, &ann(), &similar("expresso", 0.1)).await[0].score;
    assert_eq!(found(store, &ann(), &similar("expresso", score - 0.01)).await.len(), 1);
    assert!(found(store, &ann(), &similar("expresso", score + 0.01)).await.is_empty());
}

/// Hidden turns and memories are never found; restored ones are found again.
pub async fn never_finds_what_is_hidden(store: &dyn Store) {
    let error = Some(Hidden { reason: HiddenReason::Error, at: at(0) });
    let ids = append_turns(
        store,
        &ann(),
        "s",
        vec![turn("tea one"), NewTurn { hidden: error, ..turn("tea error") }, turn("tea two")],
    )
    .await;
    let known = add(store, &ann(), memory("tea known")).await;
    for query in [words("tea"), similar("tea", 0.9)] {
        assert_eq!(found_sorted(store, &ann(), &query).await, ["tea known", "tea one", "tea two"]);
    }
    apply(store, &ann(), Change::HideTurns { ids: vec![ids[0]], hidden: deleted(1) }).await;
    apply(store, &ann(), Change::HideMemory { id: known, hidden: deleted(1) }).await;
    for query in [words("tea"), similar("tea", 0.9)] {
        assert_eq!(found_sorted(store, &ann(), &query).await, ["tea two"]);
    }
    apply(store, &ann(), Change::HideTurns { ids: vec![ids[0]], hidden: None }).await;
    apply(store, &ann(), Change::HideMemory { id: known, hidden: None }).await;
    for query in [words("tea"), similar("tea", 0.9)] {
        assert_eq!(found_sorted(store, &ann(), &query).await, ["tea known", "tea one", "tea two"]);
    }
}

/// A closed memory is never found as current, with or without a replacement.
pub async fn never_finds_what_is_closed_or_replaced(store: &dyn Store) {
    let old = add(store, &ann(), memory("home is Berlin")).await;
    let new = add(store, &ann(), memory("home is Hangzhou")).await;
    let dropped = add(store, &ann(), memory("home is wanted")).await;
    apply(store, &ann(), Change::CloseMemory { id: old, valid_to: at(1), replaced_by: Some(new) }).await;
    apply(store, &ann(), Change::CloseMemory { id: dropped, valid_to: at(1), replaced_by: None }).await;
    for query in [words("home Berlin"), similar("home", 0.9)] {
        assert_eq!(found(store, &ann(), &query).await, ["home is Hangzhou"]);
    }
}

/// A revised memory is found by its new statement; the old statement is history.
pub async fn finds_a_revised_memory_by_its_new_words_only(store: &dyn Store) {
    let id = add(store, &ann(), memory("likes tea")).await;
    let change = Change::ReviseMemory {
        id,
        archive_as: MemoryId(fresh()),
        content: "likes coffee".to_owned(),
        metadata: None,
    };
    apply_at(store, &ann(), 1, change).await;
    assert!(found(store, &ann(), &words("tea")).await.is_empty());
    assert!(found(store, &ann(), &similar("tea", 0.9)).await.is_empty());
    assert_eq!(found(store, &ann(), &words("coffee")).await, ["likes coffee"]);
    assert_eq!(found(store, &ann(), &words("like")).await, ["likes coffee"]);
}

/// Forgotten items are not found, and do not influence the scores of others.
pub async fn never_finds_what_was_forgotten(store: &dyn Store) {
    append(store, &ann(), "gone", &["tea one", "tea two"]).await;
    append(store, &ann(), "kept", &["tea three"]).await;
    let id = add(store, &ann(), memory("tea known")).await;
    apply(store, &ann(), Change::Forget(Forget::Session(session("gone")))).await;
    apply(store, &ann(), Change::Forget(Forget::Memory(id))).await;
    for query in [words("tea"), similar("tea", 0.9)] {
        assert_eq!(found(store, &ann(), &query).await, ["tea three"]);
    }
}

/// A session restricts the search to its own items and to memories that are bound to no session.
pub async fn restricts_to_a_session_and_unbound_memories(store: &dyn Store) {
    append(store, &ann(), "s", &["tea in s"]).await;
    append(store, &ann(), "t", &["tea in t"]).await;
    for (of, content) in [(Some("s"), "tea of s"), (Some("t"), "tea of t"), (None, "tea of all")] {
        add(store, &ann(), Memory { session: of.map(session), ..memory(content) }).await;
    }
    for query in [words("tea"), similar("tea", 0.9)] {
        let in_s = TextQuery { session: Some(session("s")), ..query.clone() };
        assert_eq!(found_sorted(store, &ann(), &in_s).await, ["tea in s", "tea of all", "tea of s"]);
        let nowhere = TextQuery { session: Some(session("never")), ..query.clone() };
        assert_eq!(found_sorted(store, &ann(), &nowhere).await, ["tea of all"]);
        assert_eq!(found(store, &ann(), &query).await.len(), 5);
    }
}

/// Only items of the requested kinds are found.
pub async fn restricts_to_kinds(store: &dyn Store) {
    append(store, &ann(), "s", &["tea said"]).await;
    add(store, &ann(), memory("tea known")).await;
    for query in [words("tea"), similar("tea", 0.9)] {
        for (turns, memories, expected) in [
            (true, true, vec!["tea known", "tea said"]),
            (true, false, vec!["tea said"]),
            (false, true, vec!["tea known"]),
            (false, false, vec![]),
        ] {
            let query = TextQuery { kinds: ItemKinds { turns, memories, summaries: false }, ..query.clone() };
            assert_eq!(found_sorted(store, &ann(), &query).await, expected);
        }
    }
}

/// Items that fail a query's test are left out, and the limit counts those that remain.
pub async fn keeps_items_that_pass_the_test(store: &dyn Store) {
    append(store, &ann(), "s", &["tea tea tea said", "tea tea with a word more"]).await;
    add(store, &ann(), memory("tea known in other words than that")).await;
    let is_memory = |item: ItemRef<'_>| matches!(item, ItemRef::Memory(_));
    let is_long = |item: ItemRef<'_>| matches!(item, ItemRef::Turn(turn) if turn.content.contains("more"));
    for query in [words("tea"), similar("tea", 0.9)] {
        let keep = Some(Keep::new(is_memory));
        let kept = TextQuery { keep, limit: 1, ..query.clone() };
        assert_eq!(found(store, &ann(), &kept).await, ["tea known in other words than that"]);
        let kept = TextQuery { keep: Some(Keep::new(is_long)), ..query };
        assert_eq!(found(store, &ann(), &kept).await, ["tea tea with a word more"]);
    }
}

/// A search as of a moment finds turns said by then and memories believed then.
pub async fn sees_what_could_be_seen_then(store: &dyn Store) {
    let said = |content: &str, second| NewTurn { created_at: at(second), ..turn(content) };
    append_turns(store, &ann(), "s", vec![said("home said early", 10), said("home said late", 40)]).await;
    let id = add(store, &ann(), Memory { recorded_at: at(20), ..memory("home is Berlin") }).await;
    let change = Change::ReviseMemory {
        id,
        archive_as: MemoryId(fresh()),
        content: "home is Hangzhou".to_owned(),
        metadata: None,
    };
    apply_at(store, &ann(), 30, change).await;
    for query in [words("home"), similar("home", 0.9)] {
        for (second, expected) in [
            (9, vec![]),
            (10, vec!["home said early"]),
            (20, vec!["home is Berlin", "home said early"]),
            (30, vec!["home is Hangzhou", "home said early"]),
            (40, vec!["home is Hangzhou", "home said early", "home said late"]),
        ] {
            let query = TextQuery { as_of: Some(at(second)), ..query.clone() };
            assert_eq!(found_sorted(store, &ann(), &query).await, expected, "at {second}");
        }
    }
}

/// A limit keeps the best, after all restrictions.
pub async fn gives_no_more_than_the_limit(store: &dyn Store) {
    append(store, &ann(), "other", &["tea tea tea"; 30]).await;
    let ids = append(store, &ann(), "s", &["tea tea tea"; 30]).await;
    append(store, &ann(), "s", &["some tea among quite a few other words"; 3]).await;
    apply(store, &ann(), Change::HideTurns { ids, hidden: deleted(1) }).await;
    let query = TextQuery { session: Some(session("s")), ..words("tea") };
    for (limit, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (u32::MAX, 3)] {
        assert_eq!(found(store, &ann(), &TextQuery { limit, ..query.clone() }).await.len(), expected);
    }
}
