//! Standing instructions in prompts and chats: which ones hold in a session, and which ones a wall keeps out.

use crate::NewMemory;
use crate::prompt::{PromptBody, PromptFormat};
use crate::prompting::{ChatQuestion, PromptRequest};
use crate::recall::tests::fixture::{World, session, user};
use strata_core::id::{RequestId, SessionId, TurnId, UserId};
use strata_core::memory::MemoryKind;
use strata_core::ports::IdSource as _;
use strata_core::scope::RecallScope;

/// Adds an instruction that is bound to `bound` and was learned from `sources`.
async fn instruct(world: &World, owner: &UserId, text: &str, bound: Option<&str>, sources: &[TurnId]) {
    let instruction = NewMemory {
        kind: MemoryKind::Instruction,
        session: bound.map(session),
        source_turns: sources.to_vec(),
        ..NewMemory::new(text)
    };
    world.clock.forward(60);
    world.engine.memories.add(owner, vec![instruction]).await.unwrap();
}

/// The prompt, the chat prompt and the proxy's block for a question in a session.
async fn shown(world: &World, of: &str, scope: Option<RecallScope>) -> [String; 3] {
    let prompting = &world.engine.prompting;
    let request = PromptRequest { scope, ..PromptRequest::new(session(of), "what shall I cook tonight?") };
    let flat = prompting.prompt(&world.user, &request).await.unwrap().prompt;
    let chat = PromptRequest { format: PromptFormat::Chat, ..request.clone() };
    let chat = prompting.prompt(&world.user, &chat).await.unwrap().prompt;
    let PromptBody::Messages(messages) = chat.body else { panic!("no messages") };
    let question =
        ChatQuestion { session: session(of), question: request.question, scope, ..ChatQuestion::default() };
    let snapshot = prompting.chat_snapshot(&world.user, &question.session).await.unwrap();
    let id = RequestId(world.ids.next());
    let memory = prompting.chat_memory(&world.user, id, &question, snapshot).await.unwrap();
    let last = messages.last().map(|message| message.content.clone()).unwrap_or_default();
    [flat.text().unwrap().to_owned(), last, memory.block.unwrap_or_default()]
}

async fn check(world: &World, of: &str, scope: Option<RecallScope>, expected: &[&str], hidden: &[&str]) {
    for text in shown(world, of, scope).await {
        for word in expected {
            assert!(text.contains(word), "{of} {scope:?} lacks {word}: {text}");
        }
        for word in hidden {
            assert!(!text.contains(word), "{of} {scope:?} has {word}: {text}");
        }
    }
}

async fn walled_world(scope: RecallScope) -> World {
    let world = World::with(|settings| settings.recall.scope = scope);
    let there = world.say("kiln", "Always measure in Fahrenheit.").await;
    let here = world.say("loft", "Always name the wine.").await;
    instruct(&world, &world.user, "Always measure in Fahrenheit", None, &[there]).await;
    instruct(&world, &world.user, "Always name the wine", None, &[here]).await;
    instruct(&world, &world.user, "Always leave out coriander", None, &[]).await;
    instruct(&world, &world.user, "Always answer in Basque", Some("kiln"), &[]).await;
    instruct(&world, &UserId::global(), "Always mention allergens", None, &[]).await;
    world
}

#[tokio::test]
async fn a_confined_prompt_has_no_instruction_that_was_learned_elsewhere() {
    let everywhere = ["coriander", "allergens"];
    let (confined, open) = (Some(RecallScope::Session), Some(RecallScope::User));
    let world = walled_world(RecallScope::User).await;
    check(&world, "loft", confined, &everywhere, &["Fahrenheit", "Basque"]).await;
    check(&world, "loft", confined, &["wine"], &[]).await;
    check(&world, "kiln", confined, &["Fahrenheit", "Basque", "coriander"], &["wine"]).await;
    check(&world, "new", confined, &everywhere, &["Fahrenheit", "Basque", "wine"]).await;
    check(&world, "new", None, &["Fahrenheit", "wine", "coriander"], &["Basque"]).await;
    let world = walled_world(RecallScope::Session).await;
    check(&world, "new", None, &everywhere, &["Fahrenheit", "Basque", "wine"]).await;
    check(&world, "new", open, &["Fahrenheit", "wine"], &["Basque"]).await;
}

#[tokio::test]
async fn instructions_of_other_sessions_push_out_neither_ones_own_nor_the_shared_ones() {
    let world = World::new();
    instruct(&world, &UserId::global(), "Always mention allergens", None, &[]).await;
    instruct(&world, &world.user, "Always name the wine", Some("loft"), &[]).await;
    let there = world.say("kiln", "a long list of rules").await;
    for number in 0..60 {
        let (bound, learned) = (Some("kiln"), [there]);
        instruct(&world, &world.user, &format!("Always salt dish {number}"), bound, &[]).await;
        instruct(&world, &world.user, &format!("Always pepper dish {number}"), None, &learned).await;
    }
    check(&world, "loft", Some(RecallScope::Session), &["wine", "allergens"], &["salt", "pepper"]).await;
    let standing = world.engine.prompting.standing(&world.user, &session("loft"), None).await;
    assert_eq!(standing.len(), 13, "twelve of the user's own and the shared one");
    assert!(standing.iter().all(|memory| memory.session.as_ref().is_none_or(|of| *of == loft())));
    assert_eq!(standing[0].content, "Always pepper dish 59", "newest first");
    let other = user("bo");
    assert_eq!(world.engine.prompting.standing(&other, &loft(), None).await.len(), 1, "the shared one");
}

fn loft() -> SessionId {
    session("loft")
}
