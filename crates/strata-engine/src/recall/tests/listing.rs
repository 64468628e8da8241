//! Questions for everything of one kind, and messages that hold a task beside their question.

use super::fixture::*;
use crate::NewMemory;
use crate::recall::{RecallRequest, RecallSettings};
use strata_core::id::MemoryId;
use strata_core::memory::MemoryKind;
use strata_core::scope::RecallScope;
use strata_core::store::ItemKinds;
use strata_core::trace::RetrievalPath;

/// Adds a memory of a kind, a minute after the one before.
async fn remember(world: &World, kind: MemoryKind, text: &str, bound: Option<&str>) -> MemoryId {
    let memory = NewMemory { kind, session: bound.map(session), ..NewMemory::new(text) };
    world.clock.forward(60);
    world.engine.memories.add(&world.user, vec![memory]).await.unwrap()[0].id
}

async fn filled() -> World {
    let world = World::new();
    for (kind, text) in [
        (MemoryKind::Todo, "renew the fishing licence"),
        (MemoryKind::Preference, "oolong over coffee"),
        (MemoryKind::Fact, "the shed has a tin roof"),
        (MemoryKind::Todo, "把雨伞还给老吴"),
        (MemoryKind::Instruction, "answers in verse"),
        (MemoryKind::Schedule, "choir on Thursdays at seven"),
        (MemoryKind::Decision, "no second boat"),
    ] {
        remember(&world, kind, text, None).await;
    }
    world
}

#[tokio::test]
async fn a_question_for_a_kind_is_answered_by_all_current_memories_of_it() {
    let world = filled().await;
    let todos = ["把雨伞还给老吴", "renew the fishing licence"];
    for (question, expected) in [
        ("What is on my to-do list?", &todos[..]),
        ("what are my open tasks", &todos),
        ("我还有什么没做？", &todos),
        ("What do I like?", &["oolong over coffee"]),
        ("我们做了什么决定？", &["no second boat"]),
        ("Which instructions did I give you?", &["answers in verse"]),
        (
            "What are my plans?",
            &["choir on Thursdays at seven", "把雨伞还给老吴", "renew the fishing licence"],
        ),
    ] {
        let recalled = world.recall(&RecallRequest::new(question)).await;
        assert_eq!(contents(&recalled), expected, "{question}");
        assert_ne!(recalled.path, RetrievalPath::None, "{question}");
    }
}

#[tokio::test]
async fn a_list_holds_what_is_current_and_may_be_seen() {
    let world = filled().await;
    let done = remember(&world, MemoryKind::Todo, "oil the gate", None).await;
    world.close(done).await;
    remember(&world, MemoryKind::Todo, "water the ferns of the office", Some("office")).await;
    let asked = "Do I have any todos?";
    let list = async |request: RecallRequest| contents(&world.recall(&request).await);
    assert_eq!(list(RecallRequest::new(asked)).await.len(), 3);
    let walled = RecallRequest { within: Some(RecallScope::Session), ..within(asked, "home") };
    assert_eq!(list(walled).await, ["把雨伞还给老吴", "renew the fishing licence"]);
    let turns =
        RecallRequest { kinds: ItemKinds { memories: false, ..ItemKinds::ALL }, ..RecallRequest::new(asked) };
    assert!(list(turns).await.is_empty());
    let past = RecallRequest { as_of: Some(moment("2024-06-01T12:01")), ..RecallRequest::new(asked) };
    assert_eq!(list(past).await, ["renew the fishing licence"]);
    let first = RecallRequest { limit: Some(1), ..RecallRequest::new(asked) };
    assert_eq!(list(first).await, ["water the ferns of the office"]);
}

#[tokio::test]
async fn a_list_is_found_by_the_stores_own_index_too() {
    let world = World::with(|settings| {
        settings.recall = RecallSettings { index_max_items: 0, ..settings.recall.clone() };
    });
    remember(&world, MemoryKind::Todo, "renew the fishing licence", None).await;
    assert_eq!(world.ask("what are my tasks?").await, ["renew the fishing licence"]);
}

#[tokio::test]
async fn a_question_beside_a_task_is_asked_alone() {
    let world = World::new();
    world.say("a", "My appointment at the optician is on the ninth at half past two").await;
    world.say("a", "我的体检在星期五上午").await;
    for (message, answer) in [
        (
            "Write a limerick about a walrus. Also, when is my appointment at the optician?",
            "My appointment at the optician is on the ninth at half past two",
        ),
        ("帮我写一首关于月亮的诗。另外，我的体检在什么时候？", "我的体检在星期五上午"),
    ] {
        assert_eq!(world.ask(message).await.first().map(String::as_str), Some(answer), "{message}");
        // The message itself, recorded before, is no answer.
        world.say("b", message).await;
        assert_eq!(world.ask(message).await.first().map(String::as_str), Some(answer), "{message}");
    }
    assert!(world.ask("Write a limerick about a walrus at the optician.").await.is_empty());
}
