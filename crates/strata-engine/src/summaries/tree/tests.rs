//! Trees in a store, and summaries of texts of every level.

use super::super::fixture::*;
use super::*;
use crate::Engine;
use strata_core::error::Error;
use strata_core::store::conformance::fixture::{ann, session};
use strata_core::turn::{NewMessage, Role};

/// A paragraph of about 300 tokens.
fn paragraph(number: usize) -> String {
    (0..20)
        .map(|line| format!("Item {number}.{line} of the report describes the pump and its fan. "))
        .collect()
}

async fn record_long(engine: &Engine, turns: std::ops::Range<usize>) {
    for number in turns {
        let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
        say(engine, role, &paragraph(number)).await;
    }
}

/// Computes a step of the tree and applies it.
async fn grow(engine: &Engine) -> Work {
    let stored = engine.sessions.get(&ann(), &session("s")).await.unwrap();
    let withdrawn = engine.summaries.withdrawn(&ann(), &stored).await.unwrap();
    let writer = Writer::new(engine.summaries.model.as_deref(), &withdrawn);
    let work = engine.summaries.grow_tree(&ann(), &stored, writer).await.unwrap();
    let changes: Vec<Change> =
        work.changes.iter().filter(|change| matches!(change, Change::PutSummary(_))).cloned().collect();
    engine.store().apply(&ann(), ChangeSet::new(engine.now(), changes)).await.unwrap();
    work
}

async fn levels(engine: &Engine) -> Vec<(u8, u64, u64)> {
    let mut rows = rows(engine, "tree").await;
    rows.sort_by_key(|row| (row.level, row.end_seq));
    rows.iter().map(|row| (row.level, row.start_seq, row.end_seq)).collect()
}

#[tokio::test]
async fn a_tree_grows_with_its_session() {
    let Fixture { engine, .. } = without_model(|_| ());
    record_long(&engine, 0..8).await;
    summarise(&engine).await;
    assert_eq!(levels(&engine).await, [], "fewer than 3,000 tokens are no tree");
    record_long(&engine, 8..12).await;
    summarise(&engine).await;
    assert_eq!(levels(&engine).await, [(1, 0, 8), (3, 0, 8)], "a leaf of whole turns, and the root");
    record_long(&engine, 12..64).await;
    summarise(&engine).await;
    let found = levels(&engine).await;
    let leaves: Vec<_> = found.iter().filter(|(level, ..)| *level == 1).collect();
    assert_eq!(leaves.len(), 6, "{found:?}");
    for pair in leaves.windows(2) {
        assert_eq!(pair[1].1, pair[0].2 + 1, "no turn is left out");
    }
    assert_eq!(
        found.iter().filter(|(level, ..)| *level == 2).collect::<Vec<_>>(),
        [&(2, 0, 44)],
        "one full group"
    );
    let rows = rows(&engine, "tree").await;
    let roots: Vec<_> = rows.iter().filter(|row| row.level == 3).collect();
    assert!(roots.windows(2).all(|pair| pair[1].base_id == Some(pair[0].id)), "a chain of roots");
    assert_eq!((roots[0].base_id, roots.last().unwrap().end_seq), (None, 53));
    assert!(
        rows.iter().all(|row| row.output_tokens > 0 && row.output_tokens <= row.input_tokens),
        "{rows:?}"
    );
    let about = roots.last().unwrap().structured.clone().unwrap();
    assert_eq!((&about["level"], &about["content"]), (&json!("HIERARCHICAL"), &json!("conversation")));
}

#[tokio::test]
async fn summaries_by_a_model_are_batched_and_counted() {
    let Fixture { engine, model, .. } =
        with_model(|settings| settings.summaries.window.memory_summarize_after_seq = 0);
    record_long(&engine, 0..12).await;
    model.says("leaf 0");
    let work = grow(&engine).await;
    assert_eq!(work.spent.calls, 1, "for twelve turns");
    let asked = model.take_asked();
    assert!(asked[0].starts_with("The text below is one part of something longer"), "{}", asked[0]);
    assert!(asked[0].contains("user] Item 0.0 of the report") && !asked[0].contains("Item 10.0"));
    assert_eq!(
        rows(&engine, "tree").await.last().unwrap().text,
        "leaf 0",
        "the root of one leaf is that leaf"
    );
    assert_eq!(grow(&engine).await.spent.calls, 0, "nothing is due");
    // With five leaves and a group, the root is extended instead of made from all leaves.
    record_long(&engine, 12..60).await;
    for name in ["leaf 1", "leaf 2", "leaf 3", "leaf 4", "leaf 5", "group 0", "root 1"] {
        model.says(name);
    }
    grow(&engine).await;
    let asked = model.take_asked();
    assert!(
        asked[0].contains("Item 9.19") && asked[0].contains("Item 10.0"),
        "it begins with the end before: {}",
        asked[0]
    );
    assert!(
        asked[5].contains(r#"{"part":1,"text":"leaf 0"}"#) && asked[5].contains("leaf 4"),
        "{}",
        asked[5]
    );
    assert!(asked[6].contains(r#"{"summary":"leaf 0"}"#) && asked[6].contains("leaf 5"), "{}", asked[6]);
}

#[tokio::test]
async fn leaves_that_a_crash_left_are_not_made_again() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    record_long(&engine, 0..22).await;
    model.says("leaf 0");
    model.says("leaf 1");
    let stored = engine.sessions.get(&ann(), &session("s")).await.unwrap();
    // The root fails, but the leaves are stored.
    let nothing = Withdrawn::default();
    let writer = Writer::new(engine.summaries.model.as_deref(), &nothing);
    assert!(engine.summaries.grow_tree(&ann(), &stored, writer).await.is_err());
    assert_eq!(levels(&engine).await, [(1, 0, 8), (1, 9, 17)]);
    model.take_asked();
    assert!(engine.summaries.tree_is_due(&ann(), &stored).await.unwrap());
    model.says("root");
    grow(&engine).await;
    let asked = model.take_asked();
    assert_eq!(asked.len(), 1, "only the root: {asked:?}");
    assert!(asked[0].contains("leaf 0") && asked[0].contains("leaf 1"));
    assert_eq!(levels(&engine).await.last(), Some(&(3, 0, 17)));
}

#[tokio::test]
async fn logs_alone_make_no_leaf_and_no_new_root() {
    let Fixture { engine, model, .. } =
        with_model(|settings| settings.summaries.window.memory_summarize_after_seq = 0);
    record_long(&engine, 0..12).await;
    model.says("leaf 0");
    grow(&engine).await;
    let log: String = (0..60)
        .map(|n| format!("[2026-02-19 23:24:{n:02}] the pump says nothing of interest here\n"))
        .collect();
    for _ in 0..6 {
        say(&engine, Role::Tool, &log).await;
    }
    model.take_asked();
    grow(&engine).await;
    assert_eq!(model.take_asked().len(), 0);
    assert_eq!(levels(&engine).await, [(1, 0, 8), (3, 0, 8)]);
}

#[tokio::test]
async fn a_pasted_book_becomes_several_leaves_of_one_turn() {
    let Fixture { engine, .. } = without_model(|_| ());
    let book: String = (0..60).map(|number| format!("{}\n\n", paragraph(number))).collect();
    say(&engine, Role::User, &book).await;
    round(&engine).await;
    let work = grow(&engine).await;
    assert!(work.changes.iter().any(|change| matches!(change, Change::EnqueueOnce(_))), "it goes on later");
    assert_eq!(levels(&engine).await.iter().filter(|row| **row == (1, 0, 0)).count(), MAX_LEAVES);
}

#[tokio::test]
async fn a_root_holds_the_facts_learned_since_the_last_one() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    record_long(&engine, 0..52).await;
    for _ in 0..6 {
        model.says("text");
    }
    grow(&engine).await;
    let new = NewMessage::new(Role::User, "x");
    let turn = engine.recording.record(&ann(), &session("s"), vec![new], None).await.unwrap().turns[0].id;
    let memory = strata_core::store::conformance::fixture::memory("The user has a boat");
    let now = engine.now();
    let memory =
        strata_core::memory::Memory { source_turns: vec![turn], recorded_at: now, valid_from: now, ..memory };
    engine.store().apply(&ann(), ChangeSet::one(now, Change::AddMemory(Box::new(memory)))).await.unwrap();
    record_long(&engine, 53..64).await;
    model.take_asked();
    for _ in 0..9 {
        model.says("text");
    }
    grow(&engine).await;
    let asked = model.take_asked();
    assert!(asked.last().unwrap().contains(r#"{"fact":"The user has a boat"}"#), "{asked:?}");
}

#[tokio::test]
async fn a_text_is_summarised_as_deep_as_it_is_long() {
    let Fixture { engine, .. } = without_model(|_| ());
    let of = |paragraphs: usize| {
        let text: String = (0..paragraphs).map(|number| format!("{}\n\n", paragraph(number))).collect();
        text.trim().to_owned()
    };
    for (text, level, nodes) in [
        ("Hello.".to_owned(), Level::None, 0),
        (of(1), Level::Brief, 0),
        (of(5), Level::Standard, 0),
        (of(20), Level::Detailed, 2),
        (of(70), Level::Hierarchical, 10),
    ] {
        let summary = engine.summaries.summarise_text(&text, None).await.unwrap();
        assert_eq!(summary.level, level);
        assert!(summary.nodes.len() >= nodes, "{level:?}: {}", summary.nodes.len());
        assert_eq!(summary.text.is_empty(), level == Level::None);
        assert!(summary.output_tokens < summary.input_tokens);
        let groups = summary.nodes.iter().filter(|node| node.level == 2).count();
        let leaves = summary.nodes.len() - groups;
        assert_eq!(groups, if level == Level::Hierarchical { leaves.div_ceil(GROUP) } else { 0 });
    }
}

#[tokio::test]
async fn a_model_is_asked_by_level() {
    let Fixture { engine, model, .. } = with_model(|_| ());
    model.says("one sentence");
    let summary = engine.summaries.summarise_text(&paragraph(0), Some(ContentType::Journal)).await.unwrap();
    assert_eq!((summary.text.as_str(), summary.spent.calls), ("one sentence", 1));
    assert!(model.take_asked()[0].starts_with("Say in a single sentence"));
    model.says("");
    model.says("I'm sorry, I can't.");
    assert!(engine.summaries.summarise_text(&paragraph(0), None).await.is_err(), "a refusal is no summary");
}

#[tokio::test]
async fn chinese_has_a_tree_as_well() {
    let Fixture { engine, .. } = without_model(|_| ());
    let text: String = (0..100)
        .map(|n| format!("第{n}天我们沿着西湖走了很久，看到了断桥和雷峰塔，晚上住在湖边的客栈。"))
        .collect();
    let summary = engine.summaries.summarise_text(&text, None).await.unwrap();
    assert_eq!(summary.level, Level::Detailed);
    assert!(summary.text.contains("西湖") && summary.output_tokens < 400, "{}", summary.text);
}

/// Turns of about 300 tokens each, with one fact in each.
async fn record_report(engine: &Engine, turns: std::ops::Range<usize>) {
    for number in turns {
        let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
        let fact = format!("Vine {number} carries {} grapes. ", 100 + number);
        say(engine, role, &format!("{fact}{}", paragraph(number))).await;
    }
}

#[tokio::test]
async fn a_model_that_is_dead_or_useless_leaves_the_tree_to_the_rules() {
    let refusal = || Reply::Says("I'm sorry, I cannot help with that.".to_owned());
    let failure = || Reply::Fails(Error::unavailable("the model did not answer in time").retryable());
    for useless in [true, false] {
        let Fixture { engine, model, clock } = with_model(|settings| {
            settings.max_attempts = 3;
            settings.summaries.window.memory_summarize_after_seq = 10_000;
            settings.summaries.window.summarise_every_user_turns = 0;
        });
        record_report(&engine, 0..22).await;
        // The first leaf succeeds before the model breaks down.
        model.says("The vines were counted.");
        for _ in 0..40 {
            model.will(if useless { refusal() } else { failure() });
        }
        let mut ends = Vec::new();
        for _ in 0..6 {
            ends.extend(summarise(&engine).await.into_iter().map(|learned| learned.ended));
            clock.advance(4_000);
        }
        assert!(!ends.iter().any(|ended| matches!(ended, crate::Ended::Dead { .. })), "{ends:?}");
        let rows = rows(&engine, "tree").await;
        let root = rows.iter().find(|row| row.level == 3).unwrap();
        let note = |row: &Summary| row.structured.as_ref().unwrap().get("without_model").cloned();
        assert!(note(root).is_some(), "{root:?}");
        assert!(root.text.contains("The vines were counted."), "what the model made stays: {}", root.text);
        assert!(root.text.contains("grapes"), "{}", root.text);
        let leaves: Vec<bool> =
            rows.iter().filter(|row| row.level == 1).map(|row| note(row).is_some()).collect();
        assert_eq!(leaves, [false, true]);
        let record = engine.jobs.record();
        assert_eq!((record.without_model.get("tree"), record.dead.len()), (Some(&1), 0), "{record:?}");
    }
}

#[tokio::test]
async fn a_deleted_statement_leaves_the_next_root() {
    for speaks in [false, true] {
        let Fixture { engine, model, .. } = if speaks { with_model(|_| ()) } else { without_model(|_| ()) };
        let secret = "My neighbour Odile pays me 700 francs for the cider press.";
        say(&engine, Role::User, secret).await;
        record_long(&engine, 1..13).await;
        let memory =
            crate::NewMemory::new("Odile the neighbour pays the user 700 francs for the cider press");
        let id = engine.memories.add(&ann(), vec![memory]).await.unwrap()[0].id;
        model.says("The pump has a fan. Odile, a neighbour, pays 700 francs for the cider press.");
        grow(&engine).await;
        let root = |rows: Vec<Summary>| rows.into_iter().rfind(|row| row.level == 3).unwrap();
        let before = root(rows(&engine, "tree").await);
        assert!(before.text.contains("Odile"), "{}", before.text);
        engine.memories.delete(&ann(), id).await.unwrap();
        model.take_asked();
        record_long(&engine, 13..44).await;
        for _ in 0..4 {
            model.says("The pump was repaired. Odile the neighbour pays 700 francs for the cider press.");
        }
        grow(&engine).await;
        let after = root(rows(&engine, "tree").await);
        assert_ne!(after.id, before.id);
        assert!(!after.text.contains("Odile"), "{}", after.text);
        let asked = model.take_asked().join("\n");
        assert_eq!(asked.matches("Odile").count(), 0, "the model does not see it again: {asked}");
    }
}
