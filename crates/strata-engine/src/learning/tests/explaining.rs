//! The history of a conflict is explained in sentences.

use super::fixture::*;

#[tokio::test]
async fn a_conflict_is_explained_in_words() {
    let world = world();
    world.say_on("2024-05-01", "s", "I live   in Berlin").await;
    let (engine, _) = with_model(&world, vec![states(&[("The user lives in Berlin", 1)])]);
    engine.learning.learn_all().await.unwrap();
    let long = format!("I moved to Lisbon now {}", "and so on ".repeat(30));
    world.say_on("2024-05-20", "s", &long).await;
    let (engine, _) =
        with_model(&world, vec![states(&[("The user lives in Lisbon", 1)]), decides(&["DELETE 2", "ADD"])]);
    engine.learning.learn_all().await.unwrap();
    let id = saying(&world, "The user lives in Berlin").await.id;
    let steps = world.engine.memories.explain(&world.user, id).await.unwrap();
    let told: Vec<String> = steps.iter().map(ToString::to_string).collect();
    let turns = turns(&world, "s").await;
    let cut = format!("{}…", long.chars().take(119).collect::<String>());
    assert_eq!(
        told,
        [
            format!(
                "«The user lives in Berlin» was believed since 2024-05-01 (turn {} on 2024-05-01: “I live in Berlin”), \
             until 2024-05-20, when «The user lives in Lisbon» took its place (turn {} on 2024-05-20: “{cut}”).",
                turns[0].id, turns[1].id
            ),
            format!(
                "«The user lives in Lisbon» is believed since 2024-05-20 (turn {} on 2024-05-20: “{cut}”).",
                turns[1].id
            ),
        ]
    );
    world.engine.memories.delete(&world.user, steps[1].memory.id).await.unwrap();
    let steps = world.engine.memories.explain(&world.user, id).await.unwrap();
    assert!(steps[1].to_string().ends_with("; it was deleted on 2024-06-01."), "{}", steps[1]);
    assert!(
        world
            .engine
            .memories
            .explain(&world.user, strata_core::id::MemoryId(world.engine.next_id()))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn the_end_of_a_todo_is_explained() {
    let world = world();
    let todo = r#"[{"content": "The user has to buy milk", "kind": "todo", "message": 1}]"#;
    learn(&world, "I have to buy milk", vec![says(todo)]).await;
    learn(&world, "I bought milk", vec![states(&[("The user bought milk", 1)]), decides(&["DONE 2", "ADD"])])
        .await;
    let id = saying(&world, "The user has to buy milk").await.id;
    let steps = world.engine.memories.explain(&world.user, id).await.unwrap();
    assert!(
        steps[0].to_string().contains("it was done by 2024-06-01, when «The user bought milk»"),
        "{}",
        steps[0]
    );
}
