//! Summaries in recall: as a kind of their own, and in the place of an empty answer.

use super::fixture::*;
use crate::recall::RecallRequest;
use strata_core::id::SummaryId;
use strata_core::ports::IdSource;
use strata_core::store::{Change, ItemKinds};
use strata_core::summary::{Strategy, Summary, SummaryStatus};
use strata_core::trace::RetrievalPath;
use strata_core::turn::Hidden;
use strata_core::turn::HiddenReason;

fn summary(world: &World, of: &str, (start_seq, end_seq): (u64, u64), text: &str) -> Summary {
    let now = world.engine.now();
    Summary {
        id: SummaryId(world.ids.next()),
        session: session(of),
        strategy: Strategy::Window,
        level: 0,
        start_seq,
        end_seq,
        base_id: None,
        status: SummaryStatus::Completed,
        text: text.to_owned(),
        structured: None,
        input_tokens: 40,
        output_tokens: 10,
        generation_ms: None,
        created_at: now,
        updated_at: now,
    }
}

async fn put(world: &World, summary: Summary) {
    world.apply(Change::PutSummary(Box::new(summary))).await;
}

/// A world with a session whose turns recall no longer sees, and its summary.
async fn summarised() -> World {
    let world = World::new();
    let turns = world.say_all("choir", &["the tenor is ill", "then Marek sings the solo in Brno"]).await;
    let hidden = Some(Hidden { reason: HiddenReason::Evicted, at: world.engine.now() });
    world.apply(Change::HideTurns { ids: turns, hidden }).await;
    put(&world, summary(&world, "choir", (0, 1), "The tenor is ill, so Marek sings the solo in Brno.")).await;
    world
}

#[tokio::test]
async fn summaries_stand_in_where_no_turn_and_no_memory_answers() {
    let world = summarised().await;
    let recalled = world.recall(&RecallRequest::new("Who sings the solo in Brno?")).await;
    assert_eq!(contents(&recalled), ["The tenor is ill, so Marek sings the solo in Brno."]);
    assert_eq!(recalled.path, RetrievalPath::SummariesOnly);
    let turn = world.say("choir", "Ilse sings the solo in Brno after all").await;
    let recalled = world.recall(&RecallRequest::new("Who sings the solo in Brno?")).await;
    assert_eq!(ids(&recalled), [strata_core::id::ItemId::Turn(turn)], "a turn answers better than a summary");
    assert_eq!(world.ask("What did the plumber charge?").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_request_for_summaries_gets_the_newest_of_each_session() {
    let world = World::new();
    world.say_all("garden", &["the quinces are ripe", "we pick the quinces on Friday"]).await;
    put(&world, summary(&world, "garden", (0, 0), "The quinces are ripe.")).await;
    put(&world, summary(&world, "garden", (0, 1), "The quinces are ripe and picked on Friday.")).await;
    let asked = RecallRequest {
        kinds: ItemKinds::SUMMARIES,
        score_threshold: Some(0.0),
        ..RecallRequest::new("quinces")
    };
    assert_eq!(contents(&world.recall(&asked).await), ["The quinces are ripe and picked on Friday."]);
    let elsewhere = RecallRequest { session: Some(session("kitchen")), ..asked.clone() };
    let confined = RecallRequest { within: Some(strata_core::scope::RecallScope::Session), ..elsewhere };
    assert!(world.recall(&confined).await.items.is_empty(), "a summary stays behind the wall of its session");
    let again = world.another_engine();
    let recalled = again.recall.ask(&world.user, &asked).await.unwrap();
    assert_eq!(recalled.items.len(), 1, "an index that is loaded anew knows the newest only, too");
}

#[tokio::test]
async fn a_summary_is_not_served_beside_a_turn_that_it_covers() {
    let world = World::new();
    world.say_all("boat", &["the bilge pump leaks", "the anchor chain is 40 metres long"]).await;
    put(&world, summary(&world, "boat", (0, 1), "The bilge pump leaks; the anchor chain is 40 metres."))
        .await;
    let kinds = ItemKinds { summaries: true, ..ItemKinds::ALL };
    let asked = RecallRequest {
        kinds,
        score_threshold: Some(0.0),
        ..RecallRequest::new("How long is the anchor chain?")
    };
    let recalled = world.recall(&asked).await;
    let summaries = recalled.items.iter().filter(|found| found.item.content().contains(';')).count();
    let turns = recalled.items.len() - summaries;
    assert!(summaries == 0 || turns == 0, "{:?}", contents(&recalled));
    assert!(recalled.items[0].item.content().contains("40 metres"));
}
