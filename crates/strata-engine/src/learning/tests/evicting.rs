//! Eviction and pruning hide entries from recall. The entries stay stored and can be restored.

use super::fixture::*;
use crate::{Ended, NewMemory};
use strata_core::store::{Change, ChangeSet, MemorySelect, Store, session_space};
use strata_core::turn::{HiddenReason, Turn};

fn visible(turns: &[Turn]) -> Vec<u64> {
    turns.iter().filter(|turn| turn.hidden.is_none()).map(|turn| turn.seq).collect()
}

/// Restores turns.
async fn bring_back(world: &World, ids: &[strata_core::id::TurnId]) {
    let change = Change::HideTurns { ids: ids.to_vec(), hidden: None };
    world.store.apply(&world.user, ChangeSet::one(world.engine.now(), change)).await.unwrap();
}

#[tokio::test]
async fn the_oldest_entries_of_a_session_leave_recall() {
    let world = world_with(|settings| settings.learn.max_entries = 4);
    for day in 1..=4 {
        world.say_on(&format!("2024-05-0{day}"), "s", &format!("walk number {day}")).await;
    }
    let bound = NewMemory { session: Some(session("s")), ..NewMemory::new("knows the lake") };
    world.engine.memories.add(&world.user, vec![bound]).await.unwrap();
    world.remember("knows the sea").await;
    world.engine.learning.learn_all().await.unwrap();
    assert_eq!(visible(&turns(&world, "s").await), [1, 2, 3], "five entries, the memory is the newest");

    world.say_on("2024-05-05", "s", "walk number 5").await;
    let learned = world.engine.learning.learn_all().await.unwrap();
    assert!(learned.iter().any(|one| one.kind == "evict" && one.ended == Ended::Done));
    let all = turns(&world, "s").await;
    assert_eq!(visible(&all), [2, 3, 4], "four stay: three turns and the memory");
    assert_eq!(all[0].hidden.unwrap().reason, HiddenReason::Evicted);
    assert_eq!(all[0].content, "walk number 1", "it stays in cold memory");
    assert_eq!(believed(&world).await, ["knows the lake", "knows the sea"]);
    assert!(world.ask("walk number 1").await.iter().all(|text| text != "walk number 1"));

    // A restored turn stays visible.
    bring_back(&world, &[all[0].id]).await;
    world.say_on("2024-05-06", "s", "walk number 6").await;
    world.engine.learning.learn_all().await.unwrap();
    assert_eq!(visible(&turns(&world, "s").await), [0, 3, 4, 5]);
}

#[tokio::test]
async fn an_old_memory_of_the_session_leaves_as_well_and_stays_when_restored() {
    let world = world_with(|settings| settings.learn.max_entries = 2);
    let bound = NewMemory { session: Some(session("s")), ..NewMemory::new("knows the lake") };
    let id = world.engine.memories.add(&world.user, vec![bound]).await.unwrap()[0].id;
    world.clock.forward(60);
    world.say_all("s", &["one", "two", "three"]).await;
    world.engine.learning.learn_all().await.unwrap();
    let memory = world.engine.memories.get(&world.user, id).await.unwrap();
    assert_eq!(memory.hidden.unwrap().reason, HiddenReason::Evicted);
    assert_eq!(visible(&turns(&world, "s").await), [1, 2]);
    world.engine.memories.restore(&world.user, id).await.unwrap();
    world.say("s", "four").await;
    world.engine.learning.learn_all().await.unwrap();
    assert!(world.engine.memories.get(&world.user, id).await.unwrap().is_current());
}

#[tokio::test]
async fn nothing_is_evicted_by_default() {
    let world = world();
    world.say_all("s", &["one"; 600]).await;
    world.engine.learning.learn_all().await.unwrap();
    assert_eq!(visible(&turns(&world, "s").await).len(), 600);
    assert!(jobs_of(&world, "evict").await.is_empty());
}

#[tokio::test]
async fn idle_sessions_are_pruned_and_their_memories_stay() {
    let world = world_with(|settings| settings.learn.prune_after_days = 30);
    learn(&world, "I live in Lisbon", vec![states(&[("The user lives in Lisbon", 1)])]).await;
    world.clock.forward(29 * 86_400);
    world.say("t", "hello").await;
    assert_eq!(world.engine.learning.prune_sessions(&world.user).await.unwrap(), 0);
    world.clock.forward(2 * 86_400);
    assert_eq!(world.engine.learning.prune_sessions(&world.user).await.unwrap(), 1);
    assert!(visible(&turns(&world, "s").await).is_empty());
    assert_eq!(visible(&turns(&world, "t").await), [0]);
    assert_eq!(believed(&world).await, ["The user lives in Lisbon"]);
    let pruned = turns(&world, "s").await;
    bring_back(&world, &[pruned[0].id]).await;
    assert_eq!(visible(&turns(&world, "s").await), [0]);
    assert_eq!(world.engine.learning.prune_sessions(&world.user).await.unwrap(), 0, "it was brought back");
    world.engine.sessions.delete(&world.user, &session("s")).await.unwrap();
    let space = session_space("prune", &session("s"));
    assert_eq!(world.store.progress(&world.user, &space).await.unwrap(), 0);
    assert!(memories(&world, MemorySelect::All).await.is_empty());
}
