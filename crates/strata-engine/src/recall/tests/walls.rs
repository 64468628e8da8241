//! Walls between the sessions of one user: neither turns nor memories that were learned from them pass.

use super::fixture::*;
use crate::NewMemory;
use crate::recall::RecallRequest;
use strata_core::id::UserId;
use strata_core::scope::{RecallScope, Scope};
use strata_core::store::{MemoryQuery, MemorySelect, Store};
use strata_core::turn::{NewMessage, Role};

/// A world that learns at once, with or without the index in memory.
fn learning_world(index_max_items: u64, scope: RecallScope) -> World {
    World::with(|settings| {
        settings.learn.delay_secs = Some(0);
        settings.learn.summaries.enable_summarization = false;
        settings.recall.index_max_items = index_max_items;
        settings.recall.scope = scope;
    })
}

/// Two sessions with the same topic, learned from, and memories that belong to none of them.
async fn settled(world: &World) {
    world.say("north", "My gate code is 7731. I live in Tromsø.").await;
    world.say("south", "I like rowing.").await;
    world.say("北", "我喜欢滑雪。").await;
    world.engine.learning.learn_all().await.unwrap();
    world.remember("what I like is a gate code").await;
    let shared = NewMemory::new("I like to live by the sea, with a gate code");
    world.engine.memories.add(&UserId::global(), vec![shared]).await.unwrap();
}

fn confined(query: &str, of: &str) -> RecallRequest {
    RecallRequest {
        within: Some(RecallScope::Session),
        limit: Some(50),
        score_threshold: Some(0.0),
        ..within(query, of)
    }
}

/// What a question in the session `south` is shown.
async fn seen(world: &World, request: &RecallRequest) -> String {
    contents(&world.recall(request).await).join(" | ")
}

#[tokio::test]
async fn a_confined_question_sees_its_session_and_what_belongs_to_all() {
    for index_max_items in [100_000, 0] {
        let world = learning_world(index_max_items, RecallScope::User);
        settled(&world).await;
        let learned = world.store.memories(&world.user, &MemoryQuery::new(MemorySelect::All)).await.unwrap();
        let unbound = learned.iter().filter(|memory| memory.session.is_none()).count();
        assert!(unbound >= 3, "learned memories belong to the user: {learned:?}");
        for query in
            ["where do I live", "what is my gate code", "我喜欢什么", "remember what I said last time"]
        {
            for scope in [None, Some(Scope::User), Some(Scope::Session), Some(Scope::Global)] {
                let seen = seen(&world, &RecallRequest { scope, ..confined(query, "south") }).await;
                for other in ["Tromsø", "7731", "滑雪"] {
                    assert!(!seen.contains(other), "{query} {scope:?}: {seen}");
                }
            }
        }
        let seen_south = seen(&world, &confined("what do I like", "south")).await;
        assert!(seen_south.contains("I like rowing."), "{seen_south}");
        assert!(seen_south.contains("likes rowing"), "what was learned here: {seen_south}");
        assert!(seen_south.contains("what I like is"), "added for no session: {seen_south}");
        assert!(seen_south.contains("by the sea"), "shared by all: {seen_south}");
        let open = RecallRequest { within: None, scope: Some(Scope::User), ..confined("gate code", "south") };
        assert!(seen(&world, &open).await.contains("7731"));
    }
}

#[tokio::test]
async fn the_setting_confines_and_a_request_may_lift_it() {
    let world = learning_world(100_000, RecallScope::Session);
    settled(&world).await;
    let ask = |within| RecallRequest { within, ..confined("what is my gate code", "south") };
    assert!(!seen(&world, &ask(None)).await.contains("7731"));
    assert!(!seen(&world, &ask(Some(RecallScope::Session))).await.contains("7731"));
    assert!(seen(&world, &ask(Some(RecallScope::User))).await.contains("7731"));
    let plain = RecallRequest { session: None, ..ask(None) };
    assert!(seen(&world, &plain).await.contains("7731"), "without a session there is nothing to stay in");
    let row = world.recall(&ask(None)).await;
    assert_eq!((row.scope, row.expansion), (Scope::Session, None));
}

#[tokio::test]
async fn what_is_said_behind_a_wall_changes_no_other_session() {
    let world = World { user: UserId::default(), ..learning_world(100_000, RecallScope::User) };
    world.remember("The user lives in Tromsø.").await;
    for (of, place) in [("east", "Narva"), ("west", "Cork")] {
        let mut message = NewMessage::new(Role::User, format!("I live in {place}."));
        message.notes.owner.in_session = true;
        world.engine.recording.record(&world.user, &session(of), vec![message], None).await.unwrap();
        world.engine.learning.learn_all().await.unwrap();
    }
    let current = MemoryQuery::new(MemorySelect::Current { as_of: None });
    let current = world.store.memories(&world.user, &current).await.unwrap();
    let mut places: Vec<_> = current
        .iter()
        .map(|memory| (memory.session.as_ref().map(|of| of.as_str()), &*memory.content))
        .collect();
    places.sort();
    let sessions: Vec<_> = places.iter().map(|(of, _)| *of).collect();
    assert_eq!(sessions, [None, Some("east"), Some("west")], "{places:?}");
}
