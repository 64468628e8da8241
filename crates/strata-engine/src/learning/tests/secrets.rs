//! Statements that hold a secret: the turn stays as it was said, and nothing is learned from it.

use std::collections::HashSet;

use super::fixture::*;
use crate::learn::LearnSecrets;
use strata_core::store::{Store, SummaryQuery};
use strata_core::turn::{NewMessage, Role};

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
async fn a_secret_does_not_take_the_rest_of_its_sentence_with_it() {
    let world = world();
    let told = "The locker is in hall B, and its admin password is Tern-4471x";
    world.say("s", &format!("{told}.")).await;
    let (engine, _) = with_model(&world, vec![states(&[(told, 1)])]);
    engine.learning.learn_all().await.unwrap();
    let kept = "The locker is in hall B, and its admin password is [secret]";
    assert_eq!(believed(&world).await, [kept]);
    let done = jobs_of(&world, "extract").await;
    assert!(done[0].result.as_ref().unwrap().get("secrets_skipped").is_none(), "{done:?}");
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
        assert!(sentence.left_out.is_some_and(|reason| reason.contains("learn.secrets")), "{explained:?}");
    }
}

/// A session whose every kind of derived text could repeat a secret.
async fn telling_secrets(world: &World) {
    let told = [
        "The root cause is the router. Its admin password is Lake-4471x, and the guest one is open.",
        "TODO: write PIN: 9034 on the back of the meter",
        "- [ ] 把门禁密码：山高月小水落 抄给阿姨",
        "I decided to keep the passphrase: marble otter violin dusk",
        "根因是路由器，密码是 qinghai2031，记得换。",
    ];
    for round in 0..60 {
        let filler = "The lantern by the mill was lit again. ".repeat(12);
        let text = format!("{} It was round {round}. {filler}", told[round % told.len()]);
        let reply = format!("Noted: {}", told[(round + 1) % told.len()]);
        let said = vec![NewMessage::new(Role::User, text), NewMessage::new(Role::Assistant, reply)];
        world.engine.recording.record(&world.user, &session("s"), said, None).await.unwrap();
        world.clock.forward(60);
        world.engine.learning.learn_all().await.unwrap();
    }
}

#[tokio::test]
async fn no_text_that_is_derived_from_turns_repeats_a_secret() {
    let world = world_with(|settings| settings.learn.summaries.enable_summarization = true);
    telling_secrets(&world).await;
    let stored = world.store.session(&world.user, &session("s")).await.unwrap().unwrap();
    let query = SummaryQuery { session: session("s"), strategy: None, status: None, limit: 100 };
    let summaries = world.store.summaries(&world.user, &query).await.unwrap();
    let strategies: HashSet<_> = summaries.iter().map(|summary| summary.strategy.as_str()).collect();
    assert!(strategies.len() == 3, "{strategies:?}");
    let derived = format!("{:?}\n{summaries:#?}", stored.state);
    for secret in ["Lake-4471x", "9034", "山高月小", "marble otter", "qinghai2031"] {
        assert!(!derived.contains(secret), "{secret} in {derived}");
    }
    assert!(derived.contains("the back of the meter"), "{derived}");
    let found = world.ask("What is the admin password of the router?").await;
    assert!(found.iter().any(|text| text.contains("Lake-4471x")), "{found:?}");
}
