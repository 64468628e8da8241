//! Recall knows what it does not know, and a session hides nothing.

use super::fixture::*;
use crate::recall::RecallRequest;
use strata_core::trace::RetrievalPath;

/// Memories that share one word with a question do not hide the turn that answers it, in whatever session it was said.
#[tokio::test]
async fn a_question_in_a_new_session_finds_the_answer_of_another() {
    for (likes, fact, question) in [
        (
            ["Mara likes rowing", "Mara likes opera", "Mara likes chess"],
            "The code of Mara's shed is 8812.",
            "What is the code of Mara's shed?",
        ),
        (
            ["老周喜欢钓鱼", "老周喜欢京剧", "老周喜欢下棋"],
            "老周车库的密码是5521。",
            "老周车库的密码是多少？",
        ),
    ] {
        let world = World::new();
        for like in likes {
            world.remember(like).await;
        }
        world.say("monday", fact).await;
        for asked in [within(question, "tuesday"), within(question, "monday"), RecallRequest::new(question)] {
            let found = contents(&world.recall(&asked).await);
            assert_eq!(found.first().map(String::as_str), Some(fact), "{asked:?}");
        }
    }
}

/// Between two items that fit equally well, the one of the session comes first.
#[tokio::test]
async fn the_session_is_preferred() {
    let world = World::new();
    world.say("kitchen", "the paint for the wall is green").await;
    world.say("bathroom", "the paint for the wall is grey").await;
    let recall = async |session: &str| {
        let asked =
            RecallRequest { recency_weight: Some(0.0), ..within("which paint for the wall?", session) };
        contents(&world.recall(&asked).await).swap_remove(0)
    };
    assert_eq!(recall("bathroom").await, "the paint for the wall is grey");
}

/// A question about something that was never mentioned is served nothing, and the answer says so.
#[tokio::test]
async fn an_unanswerable_question_is_served_nothing() {
    let world = World::new();
    for text in [
        "We rented a houseboat near Utrecht for the summer",
        "My cousin Ilse repairs violins in Ghent",
        "The oven breaks down whenever I bake bread",
        "我表弟在苏州开了一家书店",
        "上个月我们换了新的热水器",
    ] {
        world.say("s", text).await;
    }
    for question in [
        "What is the registration number of my motorbike?",
        "Which hospital was my daughter born in?",
        "我护照的有效期到什么时候？",
        "他的钢琴老师姓什么？",
    ] {
        let recalled = world.recall(&RecallRequest::new(question)).await;
        assert_eq!(
            (contents(&recalled), recalled.path),
            (Vec::<String>::new(), RetrievalPath::None),
            "{question}"
        );
    }
    let recalled = world.recall(&RecallRequest::new("Who repairs violins in Ghent?")).await;
    assert_eq!(contents(&recalled)[0], "My cousin Ilse repairs violins in Ghent");
    assert!(recalled.items[0].score > 0.7, "{}", recalled.items[0].score);
}

/// The newest statement goes first only among statements of the same subject and attribute.
#[tokio::test]
async fn a_newer_statement_about_somebody_else_does_not_go_first() {
    let world = World::new();
    world.say_on("2024-01-01", "a", "The password of the cabin wifi is pinecone").await;
    world.say_on("2024-02-01", "b", "The password of the office wifi is stapler").await;
    let asked =
        RecallRequest { recency_weight: Some(0.0), ..RecallRequest::new("password of the cabin wifi") };
    assert_eq!(contents(&world.recall(&asked).await)[0], "The password of the cabin wifi is pinecone");
    // The same thing again, with another value.
    world.say_on("2024-03-01", "c", "The password of the cabin wifi is birchbark").await;
    assert_eq!(contents(&world.recall(&asked).await)[0], "The password of the cabin wifi is birchbark");
}
