//! Lists of open todos follow what the reader has learned.

use super::fixture::*;
use super::reading::reading;
use crate::Engine;
use strata_core::ports::Relation;
use strata_core::summary::SummaryPart;
use strata_core::turn::{NewMessage, Role};

/// Records a round, learns from it and summarises it.
async fn round(world: &World, engine: &Engine, of: &str, said: &str) {
    world.clock.forward(3_600);
    let messages = vec![NewMessage::new(Role::User, said), NewMessage::new(Role::Assistant, "Noted.")];
    engine.recording.record(&world.user, &session(of), messages, None).await.unwrap();
    engine.learning.learn_all().await.unwrap();
}

async fn todos(world: &World, engine: &Engine, of: Option<&str>) -> Vec<(String, String, Option<u64>)> {
    let of = of.map(session);
    let points = engine.summaries.structured(&world.user, of.as_ref(), SummaryPart::Todos, 50).await.unwrap();
    points.into_iter().map(|point| (point.session.to_string(), point.text, point.seq)).collect()
}

fn open(of: &str, text: &str, seq: u64) -> (String, String, Option<u64>) {
    (of.to_owned(), text.to_owned(), Some(seq))
}

#[tokio::test]
async fn what_was_finished_in_other_words_leaves_the_list_and_what_only_the_reader_finds_joins_it() {
    let world = world_with(|settings| settings.learn.summaries.enable_summarization = true);
    let pairs = [
        ("kayak", "Varnished", Relation::Ends, 0.95),
        ("visa", "stamp", Relation::Ends, 0.95),
        ("买", "拿到", Relation::Ends, 0.95),
    ];
    let engine = reading(&world, &pairs);
    // Of these, the rules know «need to» and 要 as words of a todo; the reader knows «have to».
    round(&world, &engine, "harbour", "I need to collect my visa.").await;
    round(&world, &engine, "harbour", "I have to sand the kayak.").await;
    round(&world, &engine, "harbour", "The cellar bulbs have to be swapped.").await;
    let all = todos(&world, &engine, None).await;
    assert!(all.iter().any(|(_, text, _)| text.contains("kayak")), "{all:?}");
    assert!(all.contains(&open("harbour", "The cellar bulbs have to be swapped.", 4)), "{all:?}");
    assert_eq!(todos(&world, &engine, Some("harbour")).await, all);
    // One is ended in another session, and in words that no rule knows.
    round(&world, &engine, "quay", "Varnished at last!").await;
    let left = todos(&world, &engine, None).await;
    assert!(left.iter().all(|(_, text, _)| !text.contains("kayak")), "{left:?}");
    assert!(left.contains(&open("harbour", "The cellar bulbs have to be swapped.", 4)), "{left:?}");
    assert_eq!(todos(&world, &engine, Some("quay")).await, []);
}

#[tokio::test]
async fn a_deleted_todo_is_not_listed() {
    let world = world_with(|settings| settings.learn.summaries.enable_summarization = true);
    let engine = reading(&world, &[("drill", "lent", Relation::Ends, 0.95)]);
    round(&world, &engine, "shed", "I have to return the drill.").await;
    round(&world, &engine, "shed", "I have to prune the quince.").await;
    round(&world, &engine, "shed", "Arvid lent it to the neighbours for good.").await;
    let left = todos(&world, &engine, None).await;
    assert!(left.iter().any(|(_, text, _)| text.contains("quince")), "{left:?}");
    assert!(left.iter().all(|(_, text, _)| !text.contains("drill")), "{left:?}");
    let quince = saying(&world, "The user has to prune the quince.").await;
    engine.memories.delete(&world.user, quince.id).await.unwrap();
    assert_eq!(todos(&world, &engine, None).await, []);
}
