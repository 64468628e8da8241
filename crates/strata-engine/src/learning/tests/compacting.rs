//! The working contexts of recorded sessions are compacted in the background, by the rules for documents.

use serde_json::{Map, Value};

use super::fixture::*;
use crate::Ended;
use strata_core::state::Task;

async fn history(world: &World) -> Vec<String> {
    let context = world.engine.contexts.get(&world.user, &session("s")).await.unwrap();
    context.recent_history.into_iter().map(|entry| entry.content).collect()
}

/// Says and learns so many exchanges, one after the other.
async fn talk(world: &World, from: usize, to: usize) {
    for number in from..to {
        world.say("s", &format!("What does hive {number} weigh?")).await;
        reply(world, "s", &format!("Hive {number} weighs {} kilos.", 20 + number)).await;
        world.engine.learning.learn_all().await.unwrap();
    }
}

#[tokio::test]
async fn a_long_history_is_compacted_by_itself() {
    let world = world();
    talk(&world, 0, 25).await;
    assert_eq!((history(&world).await.len(), world.engine.contexts.compactions()), (50, 0));
    let mut longest = 0;
    for number in 25..80 {
        talk(&world, number, number + 1).await;
        longest = longest.max(history(&world).await.len());
    }
    // The reply of an exchange is counted with the next message of the user.
    assert!(longest <= 52, "{longest} entries");
    assert_eq!(history(&world).await.last().unwrap(), "Hive 79 weighs 99 kilos.");
    let compactions = world.engine.contexts.compactions();
    assert!((4..=6).contains(&compactions), "{compactions} compactions in 160 turns");
    let ended = jobs_of(&world, "compact").await;
    assert_eq!(ended.len() as u64, compactions);
    assert!(ended.iter().all(|job| job.result.as_ref().unwrap()["compacted"] == true));
}

#[tokio::test]
async fn the_limits_of_length_and_tokens_are_settings() {
    let world = world_with(|settings| {
        settings.compaction.max_tokens = 60;
        settings.compaction.max_recent_history = 1_000;
    });
    talk(&world, 0, 12).await;
    assert!(world.engine.contexts.compactions() >= 1);
    let shown = history(&world).await;
    assert!(shown.len() < 24, "{shown:?}");
    assert_eq!(shown.last().unwrap(), "Hive 11 weighs 31 kilos.");

    let world = world_with(|settings| {
        settings.compaction.max_recent_history = 6;
        settings.compaction.keep_recent_history = 2;
    });
    talk(&world, 0, 5).await;
    assert!(history(&world).await.len() <= 7);
}

#[tokio::test]
async fn completed_tasks_go_by_the_clock() {
    let world = world();
    world.say("s", "hello").await;
    let task = |id: &str, status: &str, updated_at| Task {
        id: id.to_owned(),
        description: "feed the bees".to_owned(),
        status: status.to_owned(),
        progress: 1.0,
        created_at: 0,
        updated_at,
        extra: Map::<String, Value>::new(),
    };
    let now = world.engine.now().as_second();
    let mut state = world.engine.sessions.state(&world.user, &session("s")).await.unwrap();
    state.active_tasks = vec![task("done", "Completed", now), task("open", "Running", now)];
    world.engine.sessions.put_state(&world.user, &session("s"), state).await.unwrap();
    let tasks = async || {
        let state = world.engine.sessions.state(&world.user, &session("s")).await.unwrap();
        state.active_tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    world.clock.forward(23 * 3_600);
    world.say("s", "still here").await;
    world.engine.learning.learn_all().await.unwrap();
    assert_eq!(tasks().await, ["done", "open"]);
    world.clock.forward(2 * 3_600);
    world.say("s", "and now").await;
    let learned = world.engine.learning.learn_all().await.unwrap();
    assert!(learned.iter().any(|one| one.kind == "compact" && one.ended == Ended::Done));
    assert_eq!(tasks().await, ["open"]);
}
