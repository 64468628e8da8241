//! The whole path without a model: the rules learn from conversations.

use super::fixture::*;
use strata_core::memory::TodoState;
use strata_core::store::MemorySelect;

async fn tell(world: &World, day: &str, text: &str) {
    world.clock.set(day);
    world.say_on(day, "s", text).await;
    world.engine.learning.learn_all().await.unwrap();
}

#[tokio::test]
async fn a_changed_statement_is_replaced_and_stays_readable() {
    for (first, then) in [
        ("I live in Berlin.", "I moved to Lisbon."),
        ("我住在柏林。", "我搬到里斯本了。"),
        ("I work at Siemens.", "Actually, I work at Bosch now."),
        ("My favourite colour is red.", "My favourite colour is blue now."),
    ] {
        let world = world();
        tell(&world, "2024-05-01", first).await;
        let before = believed(&world).await;
        assert_eq!(before.len(), 1, "{first}: {before:?}");
        tell(&world, "2024-05-20", then).await;
        let after = believed(&world).await;
        assert_eq!(after.len(), 1, "{then}: {after:?}");
        assert_ne!(before, after, "{then}");
        assert_eq!(believed_at(&world, Some("2024-05-10")).await, before, "{then}");
        let all = memories(&world, MemorySelect::All).await;
        let old = all.iter().find(|memory| memory.content == before[0]).unwrap();
        assert_eq!(
            old.replaced_by,
            all.iter().find(|memory| memory.content == after[0]).map(|memory| memory.id)
        );
    }
}

#[tokio::test]
async fn a_later_message_of_one_batch_corrects_an_earlier_one() {
    let world = world();
    world.say_all("s", &["I live in Berlin.", "I like tea.", "I moved to Lisbon."]).await;
    world.engine.learning.learn_all().await.unwrap();
    let (believed, all) = (believed(&world).await, memories(&world, MemorySelect::All).await);
    assert_eq!((believed.len(), all.len()), (2, 3), "{all:#?}");
    assert!(believed.iter().all(|content| !content.contains("Berlin")), "{believed:?}");
}

#[tokio::test]
async fn a_repeated_statement_adds_nothing() {
    let world = world();
    for day in ["2024-05-01", "2024-05-02", "2024-05-03"] {
        tell(&world, day, "I live in Berlin.").await;
        world.say("other", "I live in Berlin!").await;
        world.engine.learning.learn_all().await.unwrap();
    }
    assert_eq!(memories(&world, MemorySelect::All).await.len(), 1);
}

#[tokio::test]
async fn a_todo_is_done() {
    for (todo, done) in
        [("I have to call the dentist.", "I called the dentist."), ("我要交季度报告。", "季度报告已经交了。")]
    {
        let world = world();
        tell(&world, "2024-05-01", todo).await;
        let open: Vec<_> = memories(&world, MemorySelect::All).await;
        assert_eq!(
            open.iter().map(|memory| memory.todo()).collect::<Vec<_>>(),
            [Some(TodoState::Open)],
            "{open:?}"
        );
        tell(&world, "2024-05-02", done).await;
        let all = memories(&world, MemorySelect::All).await;
        assert!(all.iter().any(|memory| memory.todo() == Some(TodoState::Done)), "{all:#?}");
    }
}

#[tokio::test]
async fn small_talk_is_not_remembered() {
    let world = world();
    let texts = [
        "Hello!",
        "What time is it?",
        "Thanks a lot",
        "Error: connection refused",
        "你好",
        "今天天气怎么样？",
    ];
    world.say_all("s", &texts).await;
    world.engine.learning.learn_all().await.unwrap();
    assert!(believed(&world).await.is_empty());
}

#[tokio::test]
async fn a_conflict_is_found_among_many_memories() {
    let world = world();
    tell(&world, "2024-05-01", "I live in Berlin.").await;
    for number in 0..150 {
        world.remember(&format!("The user likes dish number {number} of the canteen in Lisbon")).await;
    }
    tell(&world, "2024-05-20", "I moved to Lisbon.").await;
    let believed = believed(&world).await;
    assert!(believed.iter().all(|content| !content.contains("Berlin")), "{believed:?}");
    assert_eq!(believed.len(), 151);
}

#[tokio::test]
async fn a_speaker_who_introduces_themselves_has_a_name() {
    for (said, expected) in [
        ("Hi, I'm Orla. Can you help me with a rota?", &["The user's name is Orla"][..]),
        ("Bartek here.", &["The user's name is Bartek"]),
        ("大家好，我是陈若琳。", &["用户叫陈若琳"]),
        ("Hello, I'm Danish.", &[]),
        ("Translate this into French: \"Hi, I'm Orla.\"", &[]),
    ] {
        let world = world();
        tell(&world, "2024-05-01", said).await;
        assert_eq!(believed(&world).await, expected, "{said}");
    }
}
