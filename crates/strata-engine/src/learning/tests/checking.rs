//! A model behind the checks: it invents no value, closes nothing that is not spoken about, and is replaced where it fails.

use std::sync::Arc;

use super::fixture::*;
use super::reading::reading;
use crate::{Ended, Engine, MODEL_FAILED, ModelRecord};
use strata_core::ports::{ChatModel, Relation};

/// An engine with a model and a reader.
fn both(
    world: &World,
    answers: Vec<Answer>,
    pairs: &[(&'static str, &'static str, Relation, f32)],
) -> (Engine, Arc<Scripted>) {
    let model = Scripted::new(answers);
    (reading(world, pairs).with_chat_model(Arc::clone(&model) as Arc<dyn ChatModel>), model)
}

fn record(engine: &Engine) -> ModelRecord {
    engine.learning.model_record().unwrap()
}

#[tokio::test]
async fn a_value_that_nobody_said_is_refused_and_the_reader_reads() {
    let world = world();
    world.say("s", "I rent a loft in Graz for 740 a month.").await;
    world.say("s", "I play the cello.").await;
    let answer =
        states(&[("The user rents a loft in Graz for 470 a month", 1), ("The user plays the cello", 2)]);
    let (engine, _) = both(&world, vec![answer], &[]);
    engine.learning.learn_all().await.unwrap();
    let believed = believed(&world).await;
    assert!(believed.iter().all(|memory| !memory.contains("470")), "{believed:?}");
    assert!(believed.iter().any(|memory| memory.contains("740")), "{believed:?}");
    assert!(believed.contains(&"The user plays the cello".to_owned()), "{believed:?}");
    assert_eq!(record(&engine), ModelRecord { refused_statements: 1, ..ModelRecord::default() });
}

#[tokio::test]
async fn a_value_of_the_reply_or_of_an_earlier_message_may_be_told() {
    let world = world();
    world.say("s", "My cousin Ilse sells boats.").await;
    let (engine, _) = both(&world, vec![states(&[("The user's cousin Ilse sells boats", 1)])], &[]);
    engine.learning.learn_all().await.unwrap();
    reply(&world, "s", "Does she live in Kiel?").await;
    world.say("s", "Yes, since May.").await;
    let (engine, model) =
        both(&world, vec![states(&[("Ilse lives in Kiel", 1)]), decides(&["NONE", "ADD"])], &[]);
    engine.learning.learn_all().await.unwrap();
    assert!(believed(&world).await.contains(&"Ilse lives in Kiel".to_owned()));
    let data = model.data(0);
    assert!(data.contains("for context alone") && data.contains("My cousin Ilse"), "{data}");
    assert!(data.contains(r#""answers":"Does she live in Kiel?""#), "{data}");
}

#[tokio::test]
async fn a_change_may_name_what_the_memory_says() {
    let world = world();
    world.remember("The user rents a loft in Graz for 740 a month").await;
    world.say("s", "the rent of the loft went up to 790").await;
    let told = "The user rents a loft in Graz for 790 a month";
    let (engine, _) = both(&world, vec![states(&[(told, 1)]), decides(&["NONE", "ADD"])], &[]);
    engine.learning.learn_all().await.unwrap();
    assert!(believed(&world).await.contains(&told.to_owned()));
    assert_eq!(record(&engine), ModelRecord::default());
}

#[tokio::test]
async fn a_plan_closes_nothing_that_the_message_does_not_speak_about() {
    let world = world();
    for (text, told) in [
        ("I live in Ghent.", "The user lives in Ghent"),
        ("I keep bees.", "The user keeps bees"),
        ("I teach physics.", "The user teaches physics"),
    ] {
        learn(&world, text, vec![states(&[(told, 1)]), decides(&["NONE", "ADD"])]).await;
    }
    let mut before = believed(&world).await;
    before.sort();
    assert_eq!(before, ["The user keeps bees", "The user lives in Ghent", "The user teaches physics"]);
    world.say("s", "I moved to Bruges.").await;
    let plan = decides(&["DELETE 4", "DELETE 4", "DELETE 4", "ADD"]);
    let change = ("The user lives in Ghent", "The user moved to Bruges", Relation::Replaces, 0.9);
    let (engine, _) = both(&world, vec![states(&[("The user moved to Bruges", 1)]), plan], &[change]);
    engine.learning.learn_all().await.unwrap();
    let mut after = believed(&world).await;
    after.sort();
    assert_eq!(after, ["The user keeps bees", "The user moved to Bruges", "The user teaches physics"]);
    assert_eq!(record(&engine).refused_changes, 2);
}

#[tokio::test]
async fn a_statement_with_something_new_is_no_repetition() {
    let world = world();
    learn(&world, "I have a dog.", vec![states(&[("The user has a dog", 1)])]).await;
    let answers = vec![states(&[("The user has a dog named Bruno", 1)]), decides(&["NONE", "NONE 1"])];
    learn(&world, "My dog is called Bruno, I have a dog named Bruno.", answers).await;
    assert!(believed(&world).await.contains(&"The user has a dog named Bruno".to_owned()));
}

#[tokio::test]
async fn without_a_usable_model_the_reader_learns_at_once() {
    for failure in [Answer::Unreachable, Answer::Refuses, says("no JSON here")] {
        let world = world();
        world.say("s", "I rent a loft in Graz.").await;
        let (engine, model) = both(&world, vec![failure], &[]);
        assert_eq!(engine.learning.learn_next("w").await.unwrap().unwrap().ended, Ended::Done);
        assert_eq!(believed(&world).await, ["The user rents a loft in Graz."]);
        assert!(model.calls() <= 2, "a model that fails is not asked for a plan too");
        let result = jobs_of(&world, "extract").await.pop().unwrap().result.unwrap();
        assert_ne!(result["extracted_by"], "scripted");
        assert!(result[MODEL_FAILED].is_string(), "{result}");
        assert_eq!(record(&engine).failures, 1);
    }
}

/// Learns three memories with nothing in common, then a message with a model's statement and plan.
async fn planned(
    said: &str,
    told: &str,
    plan: &[&str],
    pairs: &[(&'static str, &'static str, Relation, f32)],
) -> (Vec<String>, u64) {
    let world = world();
    for text in
        ["The user likes rowing", "The user likes sour cherries", "The user's violin is from Mirecourt"]
    {
        world.remember(text).await;
    }
    world.say("s", said).await;
    let (engine, _) = both(&world, vec![states(&[(told, 1)]), decides(plan)], pairs);
    engine.learning.learn_all().await.unwrap();
    (believed(&world).await, record(&engine).refused_changes)
}

const ALL: [&str; 4] = ["DELETE 4", "DELETE 4", "DELETE 4", "ADD"];

#[tokio::test]
async fn a_model_cannot_close_memories_by_repeating_them_in_its_statement() {
    let told = "The user gave up rowing, sour cherries and the violin from Mirecourt";
    let (after, refused) = Box::pin(planned("i bought a green lamp for the hall", told, &ALL, &[])).await;
    assert!(after.contains(&"The user likes rowing".to_owned()), "{after:?}");
    assert!(after.contains(&"The user likes sour cherries".to_owned()), "{after:?}");
    assert!(after.contains(&"The user's violin is from Mirecourt".to_owned()), "{after:?}");
    assert_eq!(refused, 3);
}

#[tokio::test]
async fn the_way_of_telling_is_no_common_subject() {
    let weak = [("likes", "likes", Relation::Replaces, 0.1)];
    let (after, refused) = Box::pin(planned("i like skating", "The user likes skating", &ALL, &weak)).await;
    assert_eq!(after.len(), 4, "{after:?}");
    assert_eq!(refused, 3);
}

#[tokio::test]
async fn a_statement_that_might_change_all_memories_changes_the_surest() {
    let pairs = [
        ("rowing", "other things now", Relation::Ends, 0.6),
        ("cherries", "other things now", Relation::Ends, 0.5),
        ("violin", "other things now", Relation::Ends, 0.4),
    ];
    let told = "The user does other things now";
    let (after, refused) = Box::pin(planned("i do other things now", told, &ALL, &pairs)).await;
    assert_eq!(refused, 2, "{after:?}");
    assert!(!after.contains(&"The user likes rowing".to_owned()), "{after:?}");
}

#[tokio::test]
async fn what_the_message_speaks_about_is_closed() {
    let told = "The user gave up rowing and sour cherries";
    let pairs = [("rowing", "gave up", Relation::Ends, 0.5), ("cherries", "gave up", Relation::Ends, 0.4)];
    let (after, refused) = Box::pin(planned("i gave up rowing and sour cherries", told, &ALL, &pairs)).await;
    assert_eq!(refused, 1, "the violin stays");
    assert!(!after.iter().any(|memory| memory == "The user likes rowing"), "{after:?}");
    assert!(!after.iter().any(|memory| memory == "The user likes sour cherries"), "{after:?}");
    assert!(after.contains(&"The user's violin is from Mirecourt".to_owned()), "{after:?}");
}
