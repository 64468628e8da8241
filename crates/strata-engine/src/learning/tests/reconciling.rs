//! Reconciliation: a contradiction never loses both statements, nothing is stored twice, and as-of reads return the
//! belief of that time.

use std::sync::Arc;

use super::fixture::*;
use crate::{Event, MemoryEdit, NewMemory};
use strata_core::memory::{MemoryKind, TodoState};
use strata_core::store::MemorySelect;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

const BERLIN: &str = "The user lives in Berlin";
const LISBON: &str = "The user lives in Lisbon";

/// A user lives in Berlin since the first of May, and on the tenth of June moves to Lisbon.
async fn moved(answers: Vec<Answer>) -> (World, Arc<Scripted>) {
    let world = world();
    world.say_on("2024-05-01", "s", "I live in Berlin").await;
    let (engine, _) = with_model(&world, vec![states(&[(BERLIN, 1)])]);
    engine.learning.learn_all().await.unwrap();
    world.clock.set("2024-06-10");
    world.say_on("2024-06-10", "s", "I live in Lisbon now").await;
    let mut script = vec![states(&[(LISBON, 1)])];
    script.extend(answers);
    let (engine, model) = with_model(&world, script);
    engine.learning.learn_all().await.unwrap();
    (world, model)
}

#[tokio::test]
async fn a_contradiction_closes_the_old_and_adds_the_new_together() {
    for event in ["UPDATE 2", "DELETE 2"] {
        let (world, model) = Box::pin(moved(vec![decides(&[event, "ADD"])])).await;
        assert_eq!(model.calls(), 2);
        assert!(model.data(1).contains(r#"{"id":1,"kind":"fact","since":"2024-05-01""#), "{}", model.data(1));
        assert_eq!(believed(&world).await, [LISBON], "{event}");
        let (old, new) = (saying(&world, BERLIN).await, saying(&world, LISBON).await);
        assert_eq!(old.replaced_by, Some(new.id));
        assert_eq!(old.valid_to, Some(new.valid_from));
        for (day, expected) in [
            ("2024-04-30", vec![]),
            ("2024-05-02", vec![BERLIN]),
            ("2024-06-09", vec![BERLIN]),
            ("2024-06-10", vec![LISBON]),
        ] {
            assert_eq!(believed_at(&world, Some(day)).await, expected, "{event} {day}");
        }
        let events = jobs_of(&world, "extract").await.remove(0).result.unwrap()["events"].clone();
        let events: Vec<_> = events.as_array().unwrap().iter().map(|event| event["event"].clone()).collect();
        let expected =
            if event.starts_with('U') { vec![Event::Update] } else { vec![Event::Add, Event::Delete] };
        assert_eq!(events, expected.iter().map(|event| event.as_str()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn no_statement_is_lost_for_any_model_answer() {
    let cases: Vec<(&str, Vec<Answer>, usize)> = vec![
        ("both stay", vec![decides(&["NONE", "ADD"])], 2),
        ("the statement is dropped although it ends a memory", vec![decides(&["DELETE 2", "NONE 1"])], 2),
        ("missing enumeration, mended", vec![decides(&["NONE"]), decides(&["UPDATE 2", "ADD"])], 3),
        ("missing enumeration twice", vec![decides(&["DELETE 2"]), decides(&["DELETE 2"])], 3),
        ("wrong ids twice", vec![decides(&["NONE", "ADD", "ADD"]), says(r#"[{"id": "x"}]"#)], 3),
        (
            "prose around",
            vec![says(r#"Well: [{"id": 1, "event": "DELETE", "by": 2}, {"id": 2, "event": "ADD"}] there."#)],
            2,
        ),
        ("a refusal", vec![says("I cannot."), says("No.")], 3),
        ("empty", vec![says(""), says("")], 3),
        ("an error", vec![Answer::Refuses], 2),
        ("a time-out", vec![Answer::Unreachable], 2),
        ("a disconnect when mending", vec![says("?"), Answer::Unreachable], 3),
        ("an event that is not listed", vec![decides(&["EXPLODE", "ADD"]), decides(&["NONE", "DELETE"])], 3),
    ];
    for (name, answers, calls) in cases {
        let (world, model) = Box::pin(moved(answers)).await;
        assert_eq!(model.calls(), calls, "{name}");
        let (old, new) = (saying(&world, BERLIN).await, saying(&world, LISBON).await);
        assert!(new.is_current(), "{name}: what was just said is lost");
        assert!(
            old.is_current() || old.replaced_by == Some(new.id),
            "{name}: nobody took the old one's place"
        );
        assert_eq!(turns(&world, "s").await.len(), 2, "{name}");
        let job = jobs_of(&world, "extract").await.remove(0);
        assert_eq!(job.result.unwrap()["spent"]["calls"], calls, "{name}");
    }
}

#[tokio::test]
async fn an_exact_duplicate_is_not_added_and_no_model_is_asked() {
    let world = world();
    learn(&world, "I live in Berlin", vec![states(&[(BERLIN, 1)])]).await;
    let (_, model) =
        learn(&world, "I said I live in Berlin", vec![states(&[("the user lives in berlin.", 1)])]).await;
    assert_eq!(model.calls(), 1);
    assert_eq!(believed(&world).await, [BERLIN]);
    let (_, model) = learn(
        &world,
        "Berlin is where I live",
        vec![states(&[("The user's home is Berlin", 1)]), decides(&["NONE", "NONE 1"])],
    )
    .await;
    assert_eq!(model.calls(), 2);
    assert_eq!(believed(&world).await, [BERLIN]);
}

#[tokio::test]
async fn two_sessions_at_once_store_a_statement_once() {
    let world = Arc::new(world());
    world.remember("The user likes Berlin").await;
    world.clock.forward(60);
    world.say("s", "I live in Berlin").await;
    world.say("t", "Berlin is where I live").await;
    let (other, _) = with_model(&world, vec![states(&[(BERLIN, 1)]), decides(&["NONE", "ADD"])]);
    let meanwhile = Answer::Meanwhile(
        Box::new(move || {
            let other = other.clone();
            Box::pin(async move {
                assert_eq!(
                    other.learning.learn_next("other").await.unwrap().unwrap().events[0].event,
                    Event::Add
                );
            })
        }),
        r#"[{"id": 1, "event": "NONE"}, {"id": 2, "event": "ADD"}]"#.to_owned(),
    );
    let (engine, model) = with_model(&world, vec![states(&[(BERLIN, 1)]), meanwhile]);
    let learned = engine.learning.learn_next("w").await.unwrap().unwrap();
    assert_eq!(learned.events.iter().map(|event| event.event).collect::<Vec<_>>(), [Event::None]);
    assert_eq!(model.calls(), 2);
    assert_eq!(saying(&world, BERLIN).await.valid_to, None);
}

#[tokio::test]
async fn memories_that_change_during_a_model_call_are_read_again() {
    let world = Arc::new(world());
    let by_hand = NewMemory { valid_from: Some(moment("2024-05-01")), ..NewMemory::new(BERLIN) };
    let id = world.engine.memories.add(&world.user, vec![by_hand]).await.unwrap()[0].id;
    world.clock.forward(60);
    world.say("s", "I live in Lisbon now").await;
    let edited = Arc::clone(&world);
    let edits = Answer::Meanwhile(
        Box::new(move || {
            let world = Arc::clone(&edited);
            Box::pin(async move {
                let edit = MemoryEdit { content: "The user has a flat in Berlin".to_owned(), metadata: None };
                world.engine.memories.revise(&world.user, id, edit).await.unwrap();
            })
        }),
        r#"[{"id": 1, "event": "DELETE", "by": 2}, {"id": 2, "event": "ADD"}]"#.to_owned(),
    );
    let (engine, model) = with_model(&world, vec![states(&[(LISBON, 1)]), edits, decides(&["NONE", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(model.calls(), 3, "extraction is not paid for twice");
    assert_eq!(believed(&world).await, ["The user has a flat in Berlin", LISBON]);
}

#[tokio::test]
async fn an_earlier_statement_that_is_read_later_does_not_win() {
    let world = world();
    world.say_on("2024-05-20", "new", "I live in Lisbon").await;
    let (engine, _) = with_model(&world, vec![states(&[(LISBON, 1)])]);
    engine.learning.learn_all().await.unwrap();
    world.say_on("2024-05-01", "old", "I live in Berlin").await;
    let (engine, _) = with_model(&world, vec![states(&[(BERLIN, 1)]), decides(&["UPDATE 2", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, [LISBON]);
    assert_eq!(believed_at(&world, Some("2024-05-10")).await, [BERLIN]);
    assert_eq!(saying(&world, BERLIN).await.replaced_by, Some(saying(&world, LISBON).await.id));
}

#[tokio::test]
async fn a_change_is_believed_from_the_time_of_the_message() {
    let world = world();
    world.say_on("2024-05-01", "s", "I live in Berlin").await;
    let (engine, _) = with_model(&world, vec![states(&[(BERLIN, 1)])]);
    engine.learning.learn_all().await.unwrap();
    world.say_on("2024-05-20", "s", "I have lived in Lisbon since 2019").await;
    let answer = format!(r#"[{{"content": "{LISBON}", "message": 1, "since": "2019-01-01"}}]"#);
    let (engine, _) = with_model(&world, vec![says(answer), decides(&["DELETE 2", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed_at(&world, Some("2024-05-10")).await, [BERLIN], "nobody knew better then");
    assert_eq!(believed_at(&world, Some("2024-05-20")).await, [LISBON]);
    assert_eq!(saying(&world, LISBON).await.valid_from, "2019-01-01T00:00:00Z".parse().unwrap());
}

#[tokio::test]
async fn a_todo_lives_and_ends() {
    for (event, end) in [("DONE 2", TodoState::Done), ("DROPPED 2", TodoState::Dropped)] {
        let world = world();
        let todo = r#"[{"content": "The user has to buy milk", "kind": "todo", "message": 1}]"#;
        learn(&world, "I have to buy milk", vec![says(todo)]).await;
        let open = saying(&world, "The user has to buy milk").await;
        assert_eq!((open.kind, open.todo()), (MemoryKind::Todo, Some(TodoState::Open)));
        let answers = vec![states(&[("The user bought milk", 1)]), decides(&[event, "ADD"])];
        learn(&world, "The milk is settled", answers).await;
        assert_eq!(believed(&world).await, ["The user bought milk"]);
        let ended = saying(&world, "The user has to buy milk").await;
        assert_eq!(ended.todo(), Some(end));
        assert_eq!(ended.replaced_by, Some(saying(&world, "The user bought milk").await.id));
    }
}

#[tokio::test]
async fn agents_keep_their_memories_apart() {
    let world = world();
    let told = |agent: &str| NewMessage {
        notes: for_agent(agent),
        ..NewMessage::new(Role::User, "I live in Berlin")
    };
    let both = vec![told("coach"), told("cook")];
    world.engine.recording.record(&world.user, &session("s"), both, None).await.unwrap();
    let (engine, model) = with_model(&world, vec![states(&[(BERLIN, 1)]), states(&[(BERLIN, 1)])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(model.calls(), 2, "a batch an agent");
    let mut agents: Vec<_> =
        memories(&world, MemorySelect::All).await.into_iter().map(|memory| memory.agent.unwrap()).collect();
    agents.sort();
    assert_eq!(agents, ["coach", "cook"]);
}

#[tokio::test]
async fn a_replacement_of_a_user_memory_is_a_user_memory() {
    let world = world_with(|settings| settings.learn.into = crate::learn::LearnInto::Session);
    world.remember(BERLIN).await;
    world.clock.forward(60);
    learn(&world, "I live in Lisbon", vec![states(&[(LISBON, 1)]), decides(&["DELETE 2", "ADD"])]).await;
    assert_eq!(saying(&world, LISBON).await.session, None);
}

#[tokio::test]
async fn a_model_is_shown_a_small_neighbourhood() {
    let world = world();
    for number in 0..60 {
        world.remember(&format!("The user likes tea number {number}")).await;
    }
    let statements: Vec<String> =
        (60..72).map(|number| format!("The user likes tea number {number}")).collect();
    let texts: Vec<String> = (0..4)
        .map(|place| format!("I like the teas {}, {} and {}", 60 + 3 * place, 61 + 3 * place, 62 + 3 * place))
        .collect();
    world.say_all("s", &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let stated: Vec<(&str, u32)> =
        statements.iter().zip(0..).map(|(text, place)| (text.as_str(), place / 3 + 1)).collect();
    let (engine, model) = with_model(&world, vec![states(&stated)]);
    engine.learning.learn_all().await.unwrap();
    let lines = model.data(1).lines().filter(|line| line.starts_with('{')).count();
    assert!(lines <= 20 + 12, "{lines}");
    assert_eq!(believed(&world).await.len(), 72, "nothing is lost although the model cannot be reached");
}

#[tokio::test]
async fn a_fact_that_was_said_under_a_clock_ahead_does_not_beat_a_later_correction() {
    let world = world();
    // The clock is a year ahead while the first fact is said and learned, and right again for the second.
    world.clock.set("2025-06-01");
    world.say_on("2025-06-01", "s", "I live in Berlin").await;
    let (engine, _) = with_model(&world, vec![states(&[(BERLIN, 1)])]);
    engine.learning.learn_all().await.unwrap();
    world.clock.set("2024-06-10");
    world.say_on("2024-06-10", "s", "I live in Lisbon now").await;
    let (engine, _) = with_model(&world, vec![states(&[(LISBON, 1)]), decides(&["UPDATE 2", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, [LISBON]);
    assert_eq!(saying(&world, BERLIN).await.replaced_by, Some(saying(&world, LISBON).await.id));
}
