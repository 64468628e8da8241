//! Memories from a branch that the client left are taken back.

use super::fixture::*;
use crate::recall::RecallRequest;
use crate::{Ending, MemoryEdit};
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

/// A chat in session `s`. The client sends all of these messages, the user's first, and gets the answer `ok` with a
/// number.
async fn chat(world: &World, engine: &crate::Engine, said: &[&str]) {
    world.clock.forward(60);
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    let messages: Vec<NewMessage> =
        said.iter().zip(roles).map(|(text, role)| NewMessage::new(role, *text)).collect();
    let exchange = engine.recording.open_exchange(&world.user, &session("s"), &messages).await.unwrap();
    let reply = NewMessage::new(Role::Assistant, format!("ok {}", said.len()));
    engine.recording.close_exchange(&world.user, exchange, Ending::Complete(reply)).await.unwrap();
}

#[tokio::test]
async fn an_edited_statement_is_taken_back_and_the_replaced_one_returns() {
    let world = world();
    let engine = &world.engine;
    chat(&world, engine, &["I live in Arles."]).await;
    engine.learning.learn_all().await.unwrap();
    let arles = believed(&world).await;
    assert!(arles.len() == 1 && arles[0].contains("Arles"), "{arles:?}");
    chat(&world, engine, &["I live in Arles.", "ok 1", "I moved to Nimes."]).await;
    engine.learning.learn_all().await.unwrap();
    let nimes = believed(&world).await;
    assert!(nimes.iter().any(|text| text.contains("Nimes")), "{nimes:?}");
    assert!(!nimes.contains(&arles[0]), "{nimes:?}");
    let between = engine.now();
    let nimes = saying(&world, nimes.iter().find(|text| text.contains("Nimes")).unwrap()).await;

    chat(&world, engine, &["I live in Arles.", "ok 1", "What is the weather like?"]).await;
    assert_eq!(believed(&world).await, arles, "at once");
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, arles, "and for good");
    let recalled = world.recall(&RecallRequest::new("Where do I live, in Nimes or in Arles?")).await;
    let texts: Vec<&str> = recalled.items.iter().map(|item| item.item.content()).collect();
    assert!(
        texts.contains(&arles[0].as_str()) && !texts.iter().any(|text| text.contains("Nimes")),
        "{texts:?}"
    );
    let then = RecallRequest { as_of: Some(between), ..RecallRequest::new("Where do I live?") };
    let then = world.recall(&then).await;
    assert!(then.items.iter().any(|item| item.item.content() == nimes.content), "it was believed then");
    assert!(then.items.iter().all(|item| item.item.content() != arles[0]), "and the other was not");

    let told = engine.memories.explain(&world.user, nimes.id).await.unwrap();
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(told[0].contains("took its place") && told[0].contains("“I live in Arles.”"), "{told:#?}");
    let edited = format!(
        "the message that said so was edited, so that it no longer counts and «{}» holds again",
        arles[0]
    );
    assert!(told[1].contains("was believed since") && told[1].contains(&edited), "{told:#?}");
    assert!(told[2].contains("is believed since") && told[2].contains("“I live in Arles.”"), "{told:#?}");
}

#[tokio::test]
async fn a_statement_with_another_source_stays() {
    let world = world();
    let engine = &world.engine;
    chat(&world, engine, &["Good morning.", "ok 1", "I have a dog called Rex."]).await;
    engine.learning.learn_all().await.unwrap();
    let memory = saying(&world, &believed(&world).await[0]).await;
    let edit = MemoryEdit { content: "Has a dog called Rex, a poodle".to_owned(), metadata: None };
    engine.memories.revise(&world.user, memory.id, edit).await.unwrap();
    chat(&world, engine, &["Good morning.", "ok 1", "What is the time?"]).await;
    assert_eq!(believed(&world).await, ["Has a dog called Rex, a poodle"], "a person said so");
    // The statement is repeated on the new branch, so it is learned again.
    chat(&world, engine, &["Good morning.", "ok 1", "What is the time?", "ok 3", "I like figs."]).await;
    engine.learning.learn_all().await.unwrap();
    let before = believed(&world).await;
    assert_eq!(before.len(), 2, "{before:?}");
    chat(&world, engine, &["Good morning.", "ok 1", "What is the time?", "ok 3", "I like figs. Do you?"])
        .await;
    assert_eq!(believed(&world).await, ["Has a dog called Rex, a poodle"]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, before);
}

#[tokio::test]
async fn a_waiting_turn_that_was_edited_away_is_not_learned() {
    let world = world();
    chat(&world, &world.engine, &["Good morning.", "ok 1", "I have a dog called Rex."]).await;
    chat(&world, &world.engine, &["Good morning.", "ok 1", "I have a cat called Tom."]).await;
    world.engine.learning.learn_all().await.unwrap();
    let believed = believed(&world).await;
    assert!(believed.len() == 1 && believed[0].contains("Tom"), "{believed:?}");
}

#[tokio::test]
async fn a_statement_edited_away_during_learning_is_not_learned() {
    let world = std::sync::Arc::new(world());
    chat(&world, &world.engine, &["Good morning.", "ok 1", "I have a dog called Rex."]).await;
    let meanwhile = {
        let world = std::sync::Arc::clone(&world);
        move || -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            let world = std::sync::Arc::clone(&world);
            Box::pin(async move {
                chat(&world, &world.engine, &["Good morning.", "ok 1", "I have a cat called Tom."]).await;
            })
        }
    };
    let text = serde_json::json!({"statements": [{"content": "Has a dog called Rex", "message": 2}]});
    let (engine, model) = with_model(
        &world,
        vec![
            Answer::Meanwhile(Box::new(meanwhile), text.to_string()),
            states(&[("Has a cat called Tom", 2)]),
        ],
    );
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, ["Has a cat called Tom"]);
    assert_eq!(model.calls(), 2);
}
