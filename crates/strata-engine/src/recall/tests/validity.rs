//! Validity, named times, thresholds and turns without text.

use super::fixture::*;
use crate::recall::{Order, RecallRequest};
use strata_core::id::ItemId;
use strata_core::store::{Change, ItemKinds, MemoryQuery, MemorySelect, Store};
use strata_core::trace::RetrievalPath;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

/// Records a turn on a day and learns from it.
async fn tell(world: &World, day: &str, text: &str) -> strata_core::id::TurnId {
    world.clock.set(day);
    let turn = world.say_on(day, &format!("on {day}"), text).await;
    world.engine.learning.learn_all().await.unwrap();
    turn
}

async fn current(world: &World) -> Vec<String> {
    let query = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memories = world.store.memories(&world.user, &query).await.unwrap();
    memories.into_iter().map(|memory| memory.content).collect()
}

#[tokio::test]
async fn replaced_statements_rank_after_their_replacements() {
    for (first, then, questions) in [
        ("I live in Ghent.", "I moved to Bruges.", &["Where do I live?", "What city do I live in?"][..]),
        ("I work at Siemens.", "Actually, I work at Bosch now.", &["Where do I work?"]),
        ("My manager is Tom.", "My manager is now Lucy.", &["Who is my manager?"]),
        ("我住在成都。", "我搬到重庆了。", &["我住在哪里？", "Where does the user live?"]),
        ("I live in Ghent.", "I moved to Bruges.", &["我住在哪里？", "I live in Ghent"]),
    ] {
        let world = World::new();
        let stale = tell(&world, "2024-03-01", first).await;
        tell(&world, "2024-04-20", then).await;
        world.clock.set("2024-06-01");
        let current = current(&world).await;
        let [current] = &current[..] else { panic!("{then}: {current:?}") };
        let engines = [&world.engine, &world.another_engine()];
        for (question, engine) in
            questions.iter().flat_map(|question| engines.map(|engine| (question, engine)))
        {
            for order in [Order::Served, Order::Relevance] {
                let request = RecallRequest {
                    order,
                    limit: Some(9),
                    score_threshold: Some(0.0),
                    ..explained(question)
                };
                let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
                let found = contents(&recalled);
                let place = |text: &str| found.iter().position(|other| other == text);
                let (old, new) = (place(first), place(current));
                assert!(new.is_some() && (old.is_none() || new < old), "{question} {order:?}: {found:?}");
                let candidate = traced(&recalled, stale.0).unwrap();
                assert!(candidate.replaced_by.is_some(), "{question} {order:?}: {candidate:?}");
                assert!(candidate.reason().contains("; it was replaced by `"), "{}", candidate.reason());
            }
        }
        // At an earlier time, nothing was replaced.
        let then = RecallRequest { as_of: Some(moment("2024-04-01")), ..explained(questions[0]) };
        let recalled = world.recall(&then).await;
        assert_eq!(traced(&recalled, stale.0).unwrap().replaced_by, None, "{first}");
    }
}

#[tokio::test]
async fn an_index_from_segments_knows_replacements() {
    let world = World::new();
    let stale = tell(&world, "2024-03-01", "I live in Ghent.").await;
    tell(&world, "2024-04-20", "I moved to Bruges.").await;
    for number in 0..300 {
        world.say("s", &format!("note number {number}")).await;
    }
    while world.engine.maintenance.maintain().await.unwrap() {}
    let engine = world.another_engine();
    let recalled = engine.recall.ask(&world.user, &explained("Where do I live?")).await.unwrap();
    assert_eq!(contents(&recalled)[0], "The user lives in Bruges");
    assert!(traced(&recalled, stale.0).unwrap().replaced_by.is_some());
}

#[tokio::test]
async fn a_turn_with_a_current_memory_is_not_outdated() {
    let world = World::new();
    let turn = tell(&world, "2024-03-01", "I live in Ghent. My manager is Tom.").await;
    tell(&world, "2024-04-20", "I moved to Bruges.").await;
    let recalled = world.recall(&explained("Who is my manager?")).await;
    assert_eq!(traced(&recalled, turn.0).unwrap().replaced_by, None);
    // Without memories among the kinds, nothing replaces the turn.
    let kinds = ItemKinds { memories: false, ..ItemKinds::ALL };
    let turns = RecallRequest { kinds, ..explained("Where do I live?") };
    assert!(world.recall(&turns).await.items.iter().all(|found| matches!(found.item.id(), ItemId::Turn(_))));
}

/// A corrected statement keeps its id, and none of the turns that said the former one.
#[tokio::test]
async fn a_corrected_statement_ranks_before_the_turn_that_said_the_former_one() {
    let world = World::new();
    let stale = tell(&world, "2024-03-01", "I live in Ghent.").await;
    let all = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let memory = world.store.memories(&world.user, &all).await.unwrap().remove(0);
    // The index is in memory when the statement is corrected.
    assert_eq!(
        traced(&world.recall(&explained("Where do I live?")).await, stale.0).unwrap().replaced_by,
        None
    );
    let revise = Change::ReviseMemory {
        id: memory.id,
        archive_as: strata_core::id::MemoryId(uuid::Uuid::from_u128(0x5150)),
        content: "The user lives in Namur".to_owned(),
        metadata: None,
    };
    let at = moment("2024-04-20");
    world.store.apply(&world.user, strata_core::store::ChangeSet::one(at, revise)).await.unwrap();
    world.clock.set("2024-06-01");
    for engine in [&world.engine, &world.another_engine()] {
        for question in ["Where do I live?", "I live in Ghent"] {
            let recalled = engine.recall.ask(&world.user, &explained(question)).await.unwrap();
            assert_eq!(contents(&recalled)[0], "The user lives in Namur", "{question}");
            assert!(traced(&recalled, stale.0).unwrap().replaced_by.is_some());
        }
    }
}

#[tokio::test]
async fn a_repeated_and_replaced_statement_is_outdated() {
    let world = World::new();
    tell(&world, "2024-03-01", "I live in Ghent.").await;
    tell(&world, "2024-03-20", "I live in Ghent!").await;
    tell(&world, "2024-04-20", "I moved to Bruges.").await;
    world.clock.set("2024-06-01");
    let found = world.ask("Where do I live?").await;
    assert_eq!(found[0], "The user lives in Bruges", "{found:?}");
}

#[tokio::test]
async fn a_named_time_beats_recency() {
    let world = World::new();
    world.clock.set("2024-11-15");
    let august = world.say_on("2024-08-04", "a", "I climbed the Matterhorn").await;
    let november = world.say_on("2024-11-04", "b", "I climbed the Eiger").await;
    // Among unrelated items, both are relevant.
    for text in ["the dog sleeps", "tea is ready", "a red lamp"] {
        world.say_on("2024-11-05", text, text).await;
    }
    for question in
        ["What have I climbed in August?", "what climbed in August", "climbed 八月", "climbed 今年夏天"]
    {
        let recalled = world.recall(&explained(question)).await;
        assert_eq!(ids(&recalled)[0], ItemId::Turn(august), "{question}: {recalled:#?}");
    }
    let recalled = world.recall(&RecallRequest::new("What have I climbed?")).await;
    assert_eq!(
        ids(&recalled)[0],
        ItemId::Turn(november),
        "without a named time, the newest comes first: {recalled:#?}"
    );
}

#[tokio::test]
async fn a_requested_threshold_applies_to_recent_turns() {
    let world = World::new();
    world.say("s", "the dog sleeps").await;
    let ask = async |score_threshold| {
        let request = RecallRequest { score_threshold, ..RecallRequest::new("what did I just say?") };
        let recalled = world.recall(&request).await;
        (recalled.path, recalled.items.len())
    };
    assert_eq!(ask(None).await, (RetrievalPath::Window, 1));
    assert_eq!(ask(Some(0.5)).await, (RetrievalPath::None, 0));
    assert_eq!(ask(Some(0.01)).await.1, 0);
    assert_eq!(ask(Some(0.0)).await.1, 1, "a threshold of 0 accepts everything");
}

#[tokio::test]
async fn a_turn_without_text_is_never_recalled() {
    let world = World::new();
    world.say("s", "the user likes the assistant").await;
    let blank = |role| NewMessage::new(role, " \n");
    for number in 0..10 {
        let messages = vec![blank(Role::User), blank(Role::Assistant)];
        world
            .engine
            .recording
            .record(&world.user, &session(&format!("b{number}")), messages, None)
            .await
            .unwrap();
    }
    for question in ["user", "assistant", "qqqq zzzz"] {
        for score_threshold in [None, Some(0.0)] {
            let request = RecallRequest { score_threshold, ..RecallRequest::new(question) };
            let found = contents(&world.recall(&request).await);
            assert!(found.iter().all(|text| !text.trim().is_empty()), "{question}: {found:?}");
        }
    }
    assert_eq!(world.ask("user").await, ["the user likes the assistant"]);
}

/// A question for a number that only the outdated turn tells is answered by the statement that holds now as well.
#[tokio::test]
async fn an_outdated_turn_is_not_served_without_its_replacement() {
    let world = World::new();
    let turn = tell(&world, "2024-03-01", "I live in Ghent at number 41.").await;
    let learned = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let old = world.store.memories(&world.user, &learned).await.unwrap();
    let new = world.remember("The user lives in Bruges").await;
    for memory in &old {
        let change =
            Change::CloseMemory { id: memory.id, valid_to: world.engine.now(), replaced_by: Some(new) };
        world.apply(change).await;
    }
    assert!(!old.is_empty());
    let question = "What number do I live at in Ghent, and how many?";
    let recalled =
        world.recall(&RecallRequest { score_threshold: Some(0.1), ..RecallRequest::new(question) }).await;
    let found = ids(&recalled);
    assert!(found.contains(&ItemId::Turn(turn)), "{recalled:#?}");
    assert_eq!(found.first(), Some(&ItemId::Memory(new)), "{recalled:#?}");
}
