//! Exclusions: earlier copies of the question, repeated statements, and items that the prompt shows already.

use super::fixture::*;
use crate::index::TextFingerprint;
use crate::recall::{Order, RecallRequest, Shown};
use strata_core::id::{ItemId, TurnId};
use strata_core::trace::Outcome;
use strata_core::trace::RetrievalPath;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

const QUESTION: &str = "What is my locker code?";

/// Asks in a separate session and gets a reply without knowledge.
async fn asked(world: &World, session_name: &str, question: &str, reply: &str) -> TurnId {
    let messages = vec![NewMessage::new(Role::User, question), NewMessage::new(Role::Assistant, reply)];
    let recorded =
        world.engine.recording.record(&world.user, &session(session_name), messages, None).await.unwrap();
    recorded.turns[0].id
}

#[tokio::test]
async fn a_question_asked_many_times_still_finds_its_answer() {
    let world = World::new();
    world.say("s", "By the way, my locker code is 4417 and my bike is a red Gazelle.").await;
    for number in 0..300 {
        world.clock.forward(60);
        asked(&world, &format!("s{number}"), QUESTION, "I do not know that.").await;
        if number % 50 == 49 || number == 7 {
            let found = world.ask(QUESTION).await;
            assert!(found[0].contains("4417"), "asked {number} times: {found:?}");
            assert!(!found.contains(&QUESTION.to_owned()), "{found:?}");
            let replies = found.iter().filter(|text| *text == "I do not know that.").count();
            assert!(replies <= 1, "{found:?}");
        }
    }
    // The same with the store's own index.
    let by_store = World::with(|settings| settings.recall.index_max_items = 1);
    by_store.say("s", "My locker code is 4417.").await;
    for number in 0..60 {
        asked(&by_store, &format!("s{number}"), QUESTION, "I do not know that code.").await;
    }
    let found = by_store.ask(QUESTION).await;
    assert_eq!(found, ["My locker code is 4417.", "I do not know that code."]);
    // The same with a newly loaded index, which knows the exact texts of few items.
    let found = world.another_engine().recall.ask(&world.user, &RecallRequest::new(QUESTION)).await.unwrap();
    assert!(contents(&found)[0].contains("4417"), "{found:?}");
}

/// The question in the prompt matches its own words. It does not count as a hit, so nothing is served.
#[tokio::test]
async fn the_question_itself_is_not_a_hit() {
    for index_max_items in [1_000, 1] {
        let world = World::with(|settings| settings.recall.index_max_items = index_max_items);
        world.say("s", "The kettle is broken.").await;
        asked(&world, "t", "qqqq?", " ").await;
        let texts = [TextFingerprint::new("qqqq?")].into();
        let shown = Shown { texts, ..Shown::default() };
        let recalled = world.recall(&RecallRequest { shown, ..RecallRequest::new("qqqq?") }).await;
        assert_eq!((recalled.path, recalled.fts_hits), (RetrievalPath::None, 0));
        assert!(recalled.items.is_empty(), "{recalled:?}");
    }
}

#[tokio::test]
async fn an_index_from_segments_reads_the_texts_it_needs() {
    let world = World::new();
    world.say("s", "My locker code is 4417.").await;
    for number in 0..400 {
        asked(&world, &format!("s{number}"), QUESTION, &format!("Sorry, number {number}.")).await;
    }
    while world.engine.maintenance.maintain().await.unwrap() {}
    let engine = world.another_engine();
    let recalled = engine.recall.ask(&world.user, &RecallRequest::new(QUESTION)).await.unwrap();
    let found = contents(&recalled);
    assert!(found[0].contains("4417") && !found.contains(&QUESTION.to_owned()), "{found:?}");
}

#[tokio::test]
async fn another_wording_of_the_question_is_excluded() {
    let world = World::new();
    world.say("s", "By the way, my locker code is 4417 and my bike is a red Gazelle.").await;
    for (number, wording) in [
        "what's my locker code",
        "Tell me my locker code",
        "What is my locker code again?",
        "Remind me what my locker code is",
        "What was my locker code?",
        "Which locker code?",
    ]
    .into_iter()
    .enumerate()
    {
        asked(&world, &format!("s{number}"), wording, &format!("Sorry, number {number}.")).await;
    }
    let recalled = world.recall(&explained(QUESTION)).await;
    let found = contents(&recalled);
    assert!(found[0].contains("4417"), "{found:?}");
    assert!(found[1..].iter().all(|text| text.starts_with("Sorry")), "{found:?}");
    // Chinese, in simplified and traditional characters.
    let world = World::new();
    world.say("s", "我的柜子密码是4417").await;
    asked(&world, "a", "我的柜子密码是什么？", "我不知道。").await;
    asked(&world, "b", "我的櫃子密碼是什麼？", "我不知道。").await;
    assert_eq!(world.ask("我的柜子密码是什么？").await, ["我的柜子密码是4417"]);
}

#[tokio::test]
async fn a_question_that_contains_a_fact_is_kept() {
    let world = World::new();
    for text in ["My locker code is 4417, right?", "Did you know that my locker code is easy?"] {
        world.say(text, text).await;
    }
    let found = world.ask(QUESTION).await;
    assert_eq!(found.len(), 2, "{found:?}");
    // A statement can have the same words as the question.
    let world = World::new();
    world.say("s", "My locker code is 4417.").await;
    world.say("t", "Is my locker code 4417?").await;
    assert_eq!(world.ask("Is my locker code 4417?").await, ["My locker code is 4417."]);
}

#[tokio::test]
async fn a_statement_finds_itself() {
    let world = World::new();
    world.say("s", "My locker code is 4417.").await;
    assert_eq!(world.ask("My locker code is 4417.").await, ["My locker code is 4417."]);
}

#[tokio::test]
async fn an_earlier_copy_of_a_bare_question_is_never_served() {
    let world = World::new();
    let first = asked(&world, "a", QUESTION, "").await;
    world.clock.forward(60);
    asked(&world, "b", QUESTION, "").await;
    let recalled = world.recall(&explained(QUESTION)).await;
    assert_eq!((ids(&recalled).len(), recalled.path), (0, RetrievalPath::None));
    // A question that says something may be the only trace of it.
    let telling = "Did I tell you that my brother Jonas moved to Oslo?";
    let told = asked(&world, "c", telling, "").await;
    assert_eq!(ids(&world.recall(&explained(telling)).await), [ItemId::Turn(told)]);
    assert_eq!(traced(&recalled, first.0).unwrap().outcome, Outcome::SameQuestion);
    let outcome =
        world.engine.requests.explain(&world.user, recalled.request_id, ItemId::Turn(first)).await.unwrap();
    assert!(outcome.reason.ends_with("it asks the same, which is no answer"), "{outcome:?}");
}

#[tokio::test]
async fn a_repeated_statement_is_served_once() {
    let world = World::new();
    let mut said = Vec::new();
    for number in 0..8 {
        world.clock.forward(60);
        said.push(world.say(&format!("s{number}"), "The trip starts at noon!").await);
    }
    world.say("t", "the trip does not start at noon").await;
    world.say("u", "the trip to Rome in May").await;
    let recalled = world.recall(&explained("When does the trip start? At noon?")).await;
    let mut found = contents(&recalled);
    found.sort();
    assert_eq!(
        found,
        ["The trip starts at noon!", "the trip does not start at noon", "the trip to Rome in May"]
    );
    assert!(ids(&recalled).contains(&ItemId::Turn(said[7])), "the newest");
    let outcome = &traced(&recalled, said[0].0).unwrap().outcome;
    assert_eq!(*outcome, Outcome::SaidAgain(said[7].to_string()));
    // The same words of another speaker are not a repetition.
    let message =
        NewMessage { name: Some("Bo".to_owned()), ..NewMessage::new(Role::User, "The trip starts at noon!") };
    world.engine.recording.record(&world.user, &session("b"), vec![message], None).await.unwrap();
    assert_eq!(world.recall(&RecallRequest::new("When does the trip start? At noon?")).await.items.len(), 4);
    // The order by relevance contains all items.
    let all =
        RecallRequest { order: Order::Relevance, limit: Some(50), ..RecallRequest::new("trip at noon") };
    assert_eq!(world.recall(&all).await.items.len(), 11);
}

#[tokio::test]
async fn a_session_of_repeated_questions_expands_the_scope() {
    let world = World::new();
    world.say("elsewhere", "My locker code is 4417.").await;
    for number in 0..5 {
        asked(&world, "s", QUESTION, &format!("Sorry, number {number}.")).await;
    }
    let recalled = world.recall(&within(QUESTION, "s")).await;
    assert_eq!(contents(&recalled)[0], "My locker code is 4417.", "{recalled:?}");
    assert!(recalled.expansion.is_some());
}

#[tokio::test]
async fn items_shown_in_the_prompt_are_excluded() {
    let world = World::new();
    let answer = world.say("elsewhere", "the trip goes to Rome").await;
    let mut texts = Vec::new();
    for number in 0..80 {
        texts.push(format!("Where does the trip go to, and the trip number {number}?"));
    }
    let said = world.say_all("s", &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let question = "Where does the trip go to?";
    let shown =
        Shown { texts: texts.iter().map(|text| TextFingerprint::new(text)).collect(), ..Shown::default() };
    // Shown items are not hits, so the session has too few.
    let by_text = RecallRequest { shown, ..within(question, "s") };
    assert_eq!(ids(&world.recall(&by_text).await), [ItemId::Turn(answer)]);
    let shown = Shown { items: said.iter().map(|id| ItemId::Turn(*id)).collect(), ..Shown::default() };
    let by_id = RecallRequest { shown, explain: true, ..within(question, "s") };
    let recalled = world.recall(&by_id).await;
    assert_eq!(ids(&recalled), [ItemId::Turn(answer)]);
    assert_eq!(traced(&recalled, said[0].0).unwrap().outcome, Outcome::Shown);
}

/// Courtesies and bare questions match their own words and answer nothing, whoever says them.
#[tokio::test]
async fn items_without_content_are_never_served() {
    for index_max_items in [1_000, 1] {
        let world = World::with(|settings| settings.recall.index_max_items = index_max_items);
        for (number, text) in
            ["Thanks for the trip, Jonas!", "Where is the trip?", "ok, the trip?", "行程呢？"]
                .into_iter()
                .enumerate()
        {
            world.say(&format!("s{number}"), text).await;
        }
        let answer = world.say("t", "The trip goes to Lyon.").await;
        let recalled = world.recall(&explained("trip")).await;
        let served: Vec<_> = contents(&recalled);
        assert!(!served.iter().any(|text| text.starts_with("Where") || text.starts_with("ok")), "{served:?}");
        assert!(ids(&recalled).contains(&ItemId::Turn(answer)));
        let trace = recalled.trace.unwrap();
        let excluded = trace.candidates.iter().filter(|found| found.outcome == Outcome::NoContent);
        assert!(excluded.clone().count() >= 1, "{trace:?}");
        assert!(excluded.clone().all(|found| found.reason() == "excluded: no content"));
    }
}

/// An index that was loaded from segments does not know the texts of its items. It reads the short ones.
#[tokio::test]
async fn a_loaded_index_reads_items_that_may_have_no_content() {
    let world = World::new();
    world.say_all("s", &["Where is the trip?", "The trip goes to Lyon.", "Lyon"]).await;
    while world.engine.maintenance.maintain().await.unwrap() {}
    let engine = world.another_engine();
    let recalled = engine.recall.ask(&world.user, &RecallRequest::new("trip")).await.unwrap();
    assert_eq!(contents(&recalled)[0], "The trip goes to Lyon.");
    assert!(!contents(&recalled).contains(&"Where is the trip?".to_owned()), "{recalled:?}");
}

/// A short answer stays: only its words say whether it has content.
#[tokio::test]
async fn a_short_answer_is_served() {
    let world = World::new();
    world.say_all("s", &["Which town does the trip go to?", "Lyon"]).await;
    assert_eq!(world.ask("Lyon").await, ["Lyon"]);
}

/// A greeting asks for nothing, even if earlier greetings have the same words.
#[tokio::test]
async fn a_greeting_finds_nothing() {
    let world = World::new();
    world.say_all("s", &["hello, good morning from the trip", "早上好，我在旅行"]).await;
    for greeting in ["hello", "good morning!", "Thanks!", "早上好", "ok"] {
        let recalled = world.recall(&RecallRequest::new(greeting)).await;
        assert_eq!((recalled.path, recalled.items.len()), (RetrievalPath::None, 0), "{greeting}");
    }
}
