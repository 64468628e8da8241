//! All kinds of model answers: no fact is lost, none is stored twice, and the raw turn stays.

use super::fixture::*;
use crate::Ended;
use crate::learn::Said;
use crate::learn::rules;
use strata_core::memory::{Memory, MemoryKind};
use strata_core::store::MemorySelect;
use strata_core::turn::NewMessage;
use strata_core::turn::{Hidden, HiddenReason, Role};

const SAID: &str = "My name is Ann and I live in Lisbon.";

/// The memories that the rules make of the same turns.
async fn by_rules(world: &World) -> Vec<String> {
    let turn = turns(world, "s").await.remove(0);
    let said = Said { turn: turn.id, name: None, text: &turn.content, at: turn.created_at };
    let mut contents: Vec<String> =
        rules::extract(&said).into_iter().map(|statement| statement.content).collect();
    contents.sort();
    assert!(!contents.is_empty(), "the rules make nothing of it");
    contents
}

/// The name, the answers, the expected memories (`None`: those of the rules), and the number of calls.
type Case = (&'static str, Vec<Answer>, Option<&'static [&'static str]>, usize);

#[tokio::test]
async fn an_answer_is_parsed_or_repaired_or_the_rules_decide() {
    let good = || states(&[("The user lives in Lisbon", 1)]);
    let lisbon: Option<&'static [&'static str]> = Some(&["The user lives in Lisbon"]);
    let cases: Vec<Case> = vec![
        ("good", vec![good()], lisbon, 1),
        ("nothing to say", vec![states(&[])], Some(&[]), 1),
        ("fenced", vec![says("```json\n[\"The user lives in Lisbon\"]\n```")], lisbon, 1),
        ("prose around", vec![says("Sure: [\"The user lives in Lisbon\"]. Anything else?")], lisbon, 1),
        (
            "twice in one answer",
            vec![states(&[("The user lives in Lisbon", 1), ("the user lives in lisbon.", 1)])],
            lisbon,
            1,
        ),
        ("a wrong message", vec![states(&[("The user lives in Lisbon", 99)])], lisbon, 1),
        ("mended", vec![says("I would say Lisbon."), good()], lisbon, 2),
        ("empty, then mended", vec![says(""), good()], lisbon, 2),
        ("cut off, then mended", vec![says("{\"statements\": [\"The us"), good()], lisbon, 2),
        ("a refusal twice", vec![says("I cannot help with that."), says("I cannot.")], None, 2),
        ("not mended", vec![says("[1]"), says("[2]")], None, 2),
        ("refused by the server", vec![Answer::Refuses], None, 1),
        ("refused when mending", vec![says("?"), Answer::Refuses], None, 2),
    ];
    for (name, answers, expected, calls) in cases {
        let world = world();
        let (turn, model) = learn(&world, SAID, answers).await;
        let expected = match expected {
            Some(expected) => expected.iter().map(|text| (*text).to_owned()).collect(),
            None => by_rules(&world).await,
        };
        assert_eq!(believed(&world).await, expected, "{name}");
        assert_eq!(model.calls(), calls, "{name}");
        assert_eq!(turns(&world, "s").await[0].content, SAID, "{name}");
        for memory in memories(&world, MemorySelect::All).await {
            assert_eq!(memory.source_turns, [turn], "{name}");
        }
        let job = jobs_of(&world, "extract").await.pop().unwrap();
        assert_eq!(job.result.unwrap()["spent"]["calls"], calls, "{name}");
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_asked_again_and_then_the_rules_decide() {
    let world = world();
    world.say("s", SAID).await;
    let (engine, model) = with_model(&world, Vec::new());
    for _ in 0..4 {
        let learned = engine.learning.learn_next("w").await.unwrap().unwrap();
        assert!(matches!(learned.ended, Ended::Retried { .. }), "{learned:?}");
        assert!(believed(&world).await.is_empty());
        world.clock.forward(60);
    }
    assert_eq!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Done);
    assert_eq!(model.calls(), 5);
    assert_eq!(believed(&world).await, by_rules(&world).await);
    assert_eq!(jobs_of(&world, "extract").await[0].result.as_ref().unwrap()["extracted_by"], "rules");
}

#[tokio::test]
async fn a_model_that_comes_back_loses_nothing_and_repeats_nothing() {
    let world = world();
    world.say("s", SAID).await;
    let answers =
        vec![Answer::Unreachable, says("?"), Answer::Unreachable, states(&[("The user lives in Lisbon", 1)])];
    let (engine, _) = with_model(&world, answers);
    engine.learning.learn_all().await.unwrap();
    world.clock.forward(60);
    engine.learning.learn_all().await.unwrap();
    world.clock.forward(60);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, ["The user lives in Lisbon"]);
}

#[tokio::test]
async fn only_visible_turns_of_the_user_are_read() {
    let world = world();
    let message = |role, text: &str| NewMessage::new(role, text);
    let hidden = Some(Hidden { reason: HiddenReason::Error, at: world.engine.now() });
    let messages = vec![
        message(Role::System, "be brief"),
        message(Role::User, "I live in Lisbon"),
        message(Role::Assistant, "noted: Lisbon is far"),
        message(Role::Tool, "tool output"),
        NewMessage { hidden, ..message(Role::User, "an error happened") },
        message(Role::User, "  "),
    ];
    world.engine.recording.record(&world.user, &session("s"), messages, None).await.unwrap();
    let (engine, model) = with_model(&world, vec![states(&[("The user lives in Lisbon", 1)])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(model.calls(), 1);
    let data = model.data(0);
    assert!(data.contains("I live in Lisbon"), "{data}");
    for other in ["brief", "noted", "tool output", "an error", "\"message\":2"] {
        assert!(!data.contains(other), "{data}");
    }
    let schema = model.asked.lock().unwrap()[0].schema.clone();
    assert_eq!(schema.unwrap().name, "statements");
}

#[tokio::test]
async fn a_statement_keeps_its_kind_confidence_time_agent_and_turn() {
    let world = world();
    let told = NewMessage {
        created_at: Some(moment("2024-05-08")),
        notes: for_agent("coach"),
        ..NewMessage::new(Role::User, "Since March I want to run a marathon")
    };
    let turn =
        world.engine.recording.record(&world.user, &session("s"), vec![told], None).await.unwrap().turns[0]
            .id;
    let answer = r#"[{"content": "用户想跑马拉松", "kind": "preference", "confidence": 0.7, "message": 1, "since": "2024-03-01"}]"#;
    let (engine, _) = with_model(&world, vec![says(answer)]);
    engine.learning.learn_all().await.unwrap();
    let memory = saying(&world, "用户想跑马拉松").await;
    assert_eq!(memory.kind, MemoryKind::Preference);
    assert_eq!(memory.confidence, 0.7);
    assert_eq!(memory.valid_from, "2024-03-01T00:00:00Z".parse().unwrap());
    assert_eq!(memory.recorded_at, moment("2024-05-08"), "it is known since it was said");
    assert_eq!((memory.source_turns, memory.agent), (vec![turn], Some("coach".to_owned())));
    assert_eq!((memory.session, memory.hidden), (None, None));
}

#[tokio::test]
async fn learned_memories_can_be_bound_to_their_session() {
    let world = world_with(|settings| settings.learn.into = crate::learn::LearnInto::Session);
    learn(&world, "I live in Lisbon", vec![states(&[("The user lives in Lisbon", 1)])]).await;
    assert_eq!(saying(&world, "The user lives in Lisbon").await.session, Some(session("s")));
    // Another session has a batch of its own.
    world.say("t", "I live in Lisbon").await;
    let (engine, model) = with_model(&world, vec![states(&[("The user lives in Lisbon", 1)])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(model.calls(), 1, "no neighbours, no reconciliation");
    let bound: Vec<Memory> = memories(&world, MemorySelect::All).await;
    assert_eq!(bound.len(), 2);
}
