//! Memories in dispute: shown as such, the newer one first, until one of them is closed.

use super::fixture::*;
use crate::prompt::PromptBody;
use crate::{ChatQuestion, PromptRequest};
use strata_core::id::{MemoryId, RequestId};
use strata_core::memory::MemoryNotes;
use strata_core::ports::IdSource as _;
use strata_core::store::{Change, Item};

const OLDER: &str = "Ilse pays 40 euros a month for her allotment garden";
const NEWER: &str = "Ilse pays 55 euros for the allotment";

/// Two memories that may contradict each other, told two months apart.
async fn disputed() -> (World, MemoryId, MemoryId) {
    let world = World::new();
    world.clock.set("2024-03-01");
    let older = world.remember(OLDER).await;
    world.clock.set("2024-05-01");
    let newer = world.remember(NEWER).await;
    world.clock.set("2024-06-01");
    for (id, other) in [(older, newer), (newer, older)] {
        let notes = MemoryNotes { disputed: Some(other), ..MemoryNotes::default() };
        world.apply(Change::NoteMemory { id, notes }).await;
    }
    (world, older, newer)
}

/// The block that the proxy puts in front of a question, and the prompt's text.
async fn shown(world: &World) -> (String, String) {
    let question = ChatQuestion {
        session: session("plot"),
        question: "how many euros does Ilse pay a month for her allotment garden".to_owned(),
        ..ChatQuestion::default()
    };
    let prompting = &world.engine.prompting;
    let snapshot = prompting.chat_snapshot(&world.user, &question.session).await.unwrap();
    let id = RequestId(world.ids.next());
    let block = prompting.chat_memory(&world.user, id, &question, snapshot).await.unwrap().block.unwrap();
    let request = PromptRequest {
        format: crate::prompt::PromptFormat::Chat,
        ..PromptRequest::new(session("plot"), question.question)
    };
    let PromptBody::Messages(messages) = prompting.prompt(&world.user, &request).await.unwrap().prompt.body
    else {
        panic!("no messages")
    };
    (block, messages.last().unwrap().content.clone())
}

#[tokio::test]
async fn both_sides_are_marked_and_the_newer_one_comes_first() {
    let (world, _, newer) = disputed().await;
    // The older one has more words of the question.
    let found = world.ask("how many euros does Ilse pay a month for her allotment garden").await;
    assert_eq!(found, [NEWER, OLDER]);
    let (block, prompt) = shown(&world).await;
    for text in [block, prompt] {
        let (first, second) = (text.find("55 euros").unwrap(), text.find("40 euros").unwrap());
        assert!(first < second, "{text}");
        assert!(text.contains(&format!("[since 2024-05-01, disputed] {NEWER}")), "{text}");
        assert!(text.contains(&format!("[since 2024-03-01, disputed] {OLDER}")), "{text}");
    }
    let one = world.engine.memories.get(&world.user, newer).await.unwrap();
    assert!(one.in_dispute_with().is_some());
}

#[tokio::test]
async fn a_dispute_ends_with_one_of_its_sides() {
    let (world, older, newer) = disputed().await;
    world.close(older).await;
    let (block, prompt) = shown(&world).await;
    for text in [block, prompt] {
        assert!(
            text.contains(&format!("[since 2024-05-01] {NEWER}")) && !text.contains("disputed"),
            "{text}"
        );
    }
    let request = crate::recall::RecallRequest::new("how many euros does Ilse pay for the allotment");
    let recalled = world.recall(&request).await;
    let Item::Memory(memory) = &recalled.items[0].item else { panic!("no memory") };
    assert_eq!((memory.id, memory.notes.disputed), (newer, None));
    let one = world.engine.memories.get(&world.user, newer).await.unwrap();
    assert_eq!(one.in_dispute_with(), None);
}
