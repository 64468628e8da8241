//! Learning while the caller waits.

use std::sync::Arc;

use super::fixture::*;
use crate::{Ended, Event};
use strata_core::turn::{Metadata, NewMessage, Owner, Role};

fn message(text: &str) -> Vec<NewMessage> {
    vec![NewMessage::new(Role::User, text), NewMessage::new(Role::Assistant, "noted")]
}

#[tokio::test]
async fn messages_are_recorded_and_learned_from_at_once() {
    let world = world_with(|settings| {
        settings.learn.delay_secs = None;
        settings.learn.summaries.enable_summarization = false;
    });
    let (engine, _) = with_model(
        &world,
        vec![
            states(&[("The user lives in Berlin", 1)]),
            states(&[("The user lives in Lisbon", 1)]),
            decides(&["UPDATE 2", "ADD"]),
            states(&[("The user lives in Lisbon", 1)]),
        ],
    );
    let (user, s) = (world.user.clone(), session("s"));
    let events = engine.learning.infer(&user, &s, message("I live in Berlin"), None).await.unwrap();
    assert_eq!((events.len(), events[0].event), (1, Event::Add));
    assert_eq!(events[0].memory, "The user lives in Berlin");
    let events = engine.learning.infer(&user, &s, message("I live in Lisbon"), None).await.unwrap();
    assert_eq!((events.len(), events[0].event), (1, Event::Update));
    assert_eq!(events[0].previous.as_deref(), Some("The user lives in Berlin"));
    assert_eq!(events[0].id, saying(&world, "The user lives in Lisbon").await.id);
    let events = engine.learning.infer(&user, &s, message("Lisbon, as I said"), None).await.unwrap();
    assert_eq!((events.len(), events[0].event), (1, Event::None));
    assert_eq!(turns(&world, "s").await.len(), 6);
    // The enqueued job finds nothing left to do.
    world.clock.forward(60);
    let learned = engine.learning.learn_all().await.unwrap();
    assert!(learned.iter().all(|one| one.ended == Ended::Done && one.events.is_empty()), "{learned:?}");
    assert_eq!(believed(&world).await, ["The user lives in Lisbon"]);
}

#[tokio::test]
async fn a_repeated_call_returns_the_earlier_result() {
    let world = world();
    let (engine, model) = with_model(&world, vec![states(&[("The user lives in Berlin", 1)])]);
    let (user, s) = (world.user.clone(), session("s"));
    let first = engine.learning.infer(&user, &s, message("I live in Berlin"), Some("key")).await.unwrap();
    let again = engine.learning.infer(&user, &s, message("I live in Berlin"), Some("key")).await.unwrap();
    assert_eq!(first, again);
    assert_eq!((model.calls(), turns(&world, "s").await.len()), (1, 2));
}

#[tokio::test]
async fn the_result_of_a_faster_worker_is_returned() {
    let world = Arc::new(world());
    let (worker, _) = with_model(&world, vec![states(&[("The user lives in Berlin", 1)])]);
    let meanwhile = Answer::Meanwhile(
        Box::new(move || {
            let worker = worker.clone();
            Box::pin(async move {
                worker.learning.learn_all().await.unwrap();
            })
        }),
        r#"["The user dwells in Berlin"]"#.to_owned(),
    );
    let (engine, _) = with_model(&world, vec![meanwhile]);
    let events =
        engine.learning.infer(&world.user, &session("s"), message("I live in Berlin"), None).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].event, events[0].memory.as_str()), (Event::Add, "The user lives in Berlin"));
    assert_eq!(believed(&world).await, ["The user lives in Berlin"]);
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_does_not_fail_the_call() {
    let world = world();
    let (engine, _) = with_model(&world, Vec::new());
    engine.learning.infer(&world.user, &session("s"), message("My name is Ann"), None).await.unwrap();
    assert_eq!(turns(&world, "s").await.len(), 2);
}

#[tokio::test]
async fn earlier_turns_cost_the_caller_no_model_call() {
    let world = world_with(|settings| settings.learn.enabled = false);
    world.say_all("s", &["I like tea."; 40]).await;
    let (engine, model) =
        with_model(&world, vec![states(&[("The user lives in Berlin", 1)]), decides(&["NONE", "ADD"])]);
    let events =
        engine.learning.infer(&world.user, &session("s"), message("I live in Berlin"), None).await.unwrap();
    assert!(events.iter().any(|event| event.memory == "The user lives in Berlin"), "{events:?}");
    assert_eq!(model.calls(), 2);
    assert_eq!(believed(&world).await.len(), 2);
}

#[tokio::test]
async fn a_memory_has_the_metadata_of_its_message() {
    let world = world();
    let (user, s) = (world.user.clone(), session("s"));
    let mut attached = Metadata::new();
    attached.insert("topic", "home".into());
    let owner =
        Owner { agent: Some("cook".to_owned()), in_session: true, apart: false, metadata: attached.clone() };
    let mut said = message("I live in Berlin");
    said[0].notes.owner = owner;
    let (engine, _) = with_model(&world, vec![states(&[("The user lives in Berlin", 1)])]);
    engine.learning.infer(&user, &s, said, None).await.unwrap();
    let memory = saying(&world, "The user lives in Berlin").await;
    assert_eq!((memory.agent.as_deref(), memory.session), (Some("cook"), Some(s)));
    assert_eq!(memory.metadata, attached);
}
