//! Statements that hold a secret: the turn stays as it was said, and nothing is learned from it.

use super::fixture::*;
use crate::learn::LearnSecrets;

/// Messages whose secret must not become a memory, in both languages.
const SAID: [&str; 4] = [
    "My password is hunter2-Xy9.",
    "I use the API key sk-a1B2c3D4e5F6a7B8c9D0.",
    "我的密码是 qingdao2024。",
    "I live in a house with the wifi password \"swordfish\".",
];

#[tokio::test]
async fn a_secret_is_not_learned_and_its_turn_stays() {
    for said in SAID {
        let world = world();
        world.say("s", said).await;
        world.say("s", "I live in Graz.").await;
        world.engine.learning.learn_all().await.unwrap();
        let believed = believed(&world).await;
        assert!(
            believed.iter().all(|memory| strata_language::secrets::secrets(memory).is_empty()),
            "{believed:?}"
        );
        assert!(believed.iter().any(|memory| memory.contains("Graz")), "{believed:?}");
        assert_eq!(turns(&world, "s").await[0].content, said);
    }
}

#[tokio::test]
async fn a_models_statement_is_checked_too() {
    let world = world();
    world.say("s", "The door of the shed opens with PIN: 4711").await;
    let (engine, _) = with_model(&world, vec![states(&[("The PIN of the shed is 4711", 1)])]);
    engine.learning.learn_all().await.unwrap();
    assert!(believed(&world).await.is_empty());
    let done = jobs_of(&world, "extract").await;
    assert_eq!(done[0].result.as_ref().unwrap()["secrets_skipped"], 1, "{done:?}");
}

#[tokio::test]
async fn the_setting_keeps_them() {
    let world = world_with(|settings| settings.learn.secrets = LearnSecrets::Keep);
    world.say("s", "The door of the shed opens with PIN: 4711").await;
    let (engine, _) = with_model(&world, vec![states(&[("The PIN of the shed is 4711", 1)])]);
    engine.learning.learn_all().await.unwrap();
    assert_eq!(believed(&world).await, ["The PIN of the shed is 4711"]);
}

#[tokio::test]
async fn the_explanation_says_why() {
    let world = world();
    let explained = world
        .engine
        .learning
        .explain(&world.user, &session("s"), "My password is hunter2-Xy9.")
        .await
        .unwrap();
    for sentence in &explained.sentences {
        assert!(sentence.statement.is_none(), "{explained:?}");
        assert!(sentence.put_aside.is_some_and(|reason| reason.contains("learn.secrets")), "{explained:?}");
    }
}
