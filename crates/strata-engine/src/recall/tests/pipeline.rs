//! The stages in order: scope, candidates, time, validity, fallbacks, threshold, order and budget.

use super::fixture::*;
use crate::recall::{Budget, MAX_LIMIT, MAX_QUERY_CHARS, Order, RecallRequest};
use crate::{MemoryEdit, NewMemory};
use strata_core::error::ErrorKind;
use strata_core::id::{ItemId, UserId};
use strata_core::scope::Scope;
use strata_core::store::ItemKinds;
use strata_core::trace::Outcome;
use strata_core::trace::RetrievalPath;

fn by_relevance(query: &str) -> RecallRequest {
    RecallRequest { order: Order::Relevance, limit: Some(50), ..explained(query) }
}

#[tokio::test]
async fn few_hits_in_a_session_are_reported() {
    let world = World::new();
    world.say("a", "the trip went well").await;
    world.say("b", "the next trip is planned").await;
    let recalled = world.recall(&within("trip", "a")).await;
    assert_eq!(recalled.scope, Scope::User);
    let expansion = recalled.expansion.as_deref();
    assert_eq!(expansion, Some("1 full-text hits in the session, fewer than 3"));
    assert_eq!(recalled.items.len(), 2);
    // A neighbour of a hit is not a hit.
    world.say_all("c", &["a trip", "all right", "good"]).await;
    let recalled = world.recall(&within("trip", "c")).await;
    assert!(recalled.expansion.is_some() && recalled.fts_hits == 3, "{recalled:?}");
    // Three hits are enough.
    world.say_all("a", &["a trip by train", "that trip again"]).await;
    let recalled = world.recall(&within("trip", "a")).await;
    assert_eq!(recalled.expansion, None);
    assert!(
        contents(&recalled).iter().any(|text| text == "the next trip is planned"),
        "the session hides nothing"
    );
}

#[tokio::test]
async fn a_cue_is_reported() {
    let world = World::new();
    world.say_all("a", &["one trip", "two trips", "three trips", "旅行一", "旅行二", "旅行三"]).await;
    world.say("b", "the trip to Rome").await;
    for (query, cue) in [
        ("which trip did I take before", Some("the question says «before»")),
        ("What was the trip we talked about?", Some("the question says «we talked»")),
        ("上次的旅行", Some("the question says «上次»")),
        ("以前的旅行", Some("the question says «以前»")),
        ("which trip", None),
        ("旅行", None),
    ] {
        let recalled = world.recall(&within(query, "a")).await;
        assert_eq!(recalled.expansion.as_deref(), cue, "{query}");
        assert_eq!(recalled.scope, Scope::User, "{query}");
    }
}

#[tokio::test]
async fn a_requested_scope_is_kept() {
    let world = World::new();
    world.say("a", "the trip went well").await;
    world.say("b", "the trip before that one").await;
    let unbound = world.remember("every trip is by train").await;
    let request = RecallRequest { scope: Some(Scope::Session), ..within("the trip", "a") };
    let recalled = world.recall(&request).await;
    assert_eq!((recalled.scope, recalled.expansion.as_deref()), (Scope::Session, None));
    let mut found = contents(&recalled);
    found.sort();
    assert_eq!(found, ["every trip is by train", "the trip went well"], "memories that belong to no session");
    // In a session without turns, only memories that belong to no session are visible.
    let empty = RecallRequest { session: Some(session("new")), ..request };
    assert_eq!(ids(&world.recall(&empty).await), [ItemId::Memory(unbound)]);
    let all = RecallRequest { session: Some(session("a")), ..scoped("trip", Scope::User) };
    assert_eq!(world.recall(&all).await.items.len(), 3);
}

#[tokio::test]
async fn shared_items_are_visible_unless_a_narrower_scope_is_named() {
    let world = World::new();
    world.say("s", "my trip went well").await;
    let shared = vec![NewMemory::new("the company pays every trip")];
    world.engine.memories.add(&UserId::global(), shared).await.unwrap();
    let other = vec![NewMemory::new("bob hates every trip")];
    world.engine.memories.add(&user("bob"), other).await.unwrap();
    assert_eq!(contents(&world.recall(&scoped("trip", Scope::User)).await), ["my trip went well"]);
    let session = RecallRequest { scope: Some(Scope::Session), ..within("trip", "s") };
    assert_eq!(contents(&world.recall(&session).await), ["my trip went well"]);
    for (request, scope) in [
        (RecallRequest::new("trip"), Scope::User),
        (within("trip", "s"), Scope::User),
        (scoped("trip", Scope::Global), Scope::Global),
        (RecallRequest { shared: true, ..scoped("trip", Scope::User) }, Scope::User),
    ] {
        let recalled = world.recall(&request).await;
        let mut found = contents(&recalled);
        found.sort();
        assert_eq!(found, ["my trip went well", "the company pays every trip"]);
        assert_eq!((recalled.scope, recalled.fts_hits), (scope, 2));
    }
    // The shared item is the best of its small index, and still ranks below the answer.
    world.say("s", "the dog sleeps in the flat").await;
    let recalled = world.recall(&RecallRequest::new("where does the dog sleep on a trip")).await;
    assert_eq!(contents(&recalled)[0], "the dog sleeps in the flat", "{recalled:?}");
}

#[tokio::test]
async fn as_of_shows_only_items_known_at_that_time() {
    let world = World::new();
    world.say_on("2024-02-01", "s", "the trip is planned").await;
    world.say_on("2024-04-01", "s", "the trip is over").await;
    world.clock.set("2024-03-01");
    let memory = world.remember("the trip costs 900").await;
    world.clock.set("2024-05-01");
    let edit = MemoryEdit { content: "the trip cost 950".to_owned(), metadata: None };
    world.engine.memories.revise(&world.user, memory, edit).await.unwrap();
    world.clock.set("2024-06-01");
    for (day, expected) in [
        ("2024-01-01", &[][..]),
        ("2024-02-10", &["the trip is planned"]),
        ("2024-03-10", &["the trip costs 900", "the trip is planned"]),
        ("2024-04-10", &["the trip costs 900", "the trip is over", "the trip is planned"]),
        ("2024-05-10", &["the trip cost 950", "the trip is over", "the trip is planned"]),
    ] {
        let request = RecallRequest { as_of: Some(moment(day)), ..by_relevance("trip") };
        let mut found = contents(&world.recall(&request).await);
        found.sort();
        assert_eq!(found, expected, "{day}");
    }
}

#[tokio::test]
async fn closed_memories_are_never_recalled() {
    let world = World::new();
    let old = world.remember("I live in a flat in Rome").await;
    let now = world.remember("I live in a flat in Oslo").await;
    world.close(old).await;
    let deleted = world.remember("I live in a flat in Bonn").await;
    world.engine.memories.delete(&world.user, deleted).await.unwrap();
    let turn = world.say("s", "I live in a flat in Paris").await;
    world.hide(turn).await;
    // A match by words, by meaning and by letters.
    for query in ["flat", "apartment", "flatt"] {
        let found = world.recall(&by_relevance(query)).await;
        assert_eq!(ids(&found), [ItemId::Memory(now)], "{query}");
    }
}

#[tokio::test]
async fn the_newer_of_two_contradicting_statements_comes_first() {
    let world = World::new();
    let old = world.say_on("2024-01-10", "a", "My rent is 900 dollars").await;
    world.say_on("2024-02-01", "b", "The lamp is new").await;
    let new = world.say_on("2024-05-10", "c", "My rent is 950 dollars").await;
    let recalled = world.recall(&by_relevance("How much is my rent?")).await;
    assert_eq!(ids(&recalled)[..2], [ItemId::Turn(new), ItemId::Turn(old)]);
    // Equal scores are in the order of recording. The newer statement moved up by one.
    assert_eq!(traced(&recalled, new.0).unwrap().fresher_by, 1);
    assert_eq!(traced(&recalled, old.0).unwrap().fresher_by, -1);
    // Statements of different speakers are not compared.
    let other = World::new();
    other.say("a", "My rent is 900 dollars").await;
    let message = strata_core::turn::NewMessage {
        name: Some("Bo".to_owned()),
        ..strata_core::turn::NewMessage::new(strata_core::turn::Role::User, "My rent is 950 dollars")
    };
    other.engine.recording.record(&other.user, &session("b"), vec![message], None).await.unwrap();
    let recalled = other.recall(&by_relevance("How much is my rent?")).await;
    assert!(recalled.trace.unwrap().candidates.iter().all(|candidate| candidate.fresher_by == 0));
}

#[tokio::test]
async fn a_question_that_names_a_time_prefers_items_of_that_time() {
    let world = World::new();
    let mut turns = Vec::new();
    for day in ["2023-07-15", "2024-03-12", "2024-05-16", "2024-05-22", "2024-05-31"] {
        turns.push(world.say_on(day, &format!("on {day}"), "we spoke of the trip").await);
    }
    // 1 June 2024 is a Saturday.
    for (query, expected) in [
        ("what about the trip last March", 1),
        ("the trip two weeks ago", 2),
        ("yesterday's trip", 4),
        ("上个月22号 旅行", 3),
        ("去年夏天 旅行", 0),
        ("昨天 旅行", 4),
    ] {
        let recalled = world.recall(&by_relevance(query)).await;
        let best = &recalled.trace.as_ref().unwrap().candidates[0];
        assert_eq!(best.item, ItemId::Turn(turns[expected]), "{query}: {recalled:#?}");
        assert!(best.timely, "{query}");
    }
    let recalled = world.recall(&by_relevance("which trip today")).await;
    assert!(
        recalled.trace.unwrap().candidates.iter().all(|candidate| !candidate.timely),
        "today is not a named time"
    );
}

#[tokio::test]
async fn an_answer_inherits_from_the_turn_before_it() {
    let world = World::new();
    let turns =
        world.say_all("s", &["Which instrument do you play", "Mostly at weekends", "Good night"]).await;
    world.clock.forward(4_000);
    let later = world.say("s", "Mostly nothing").await;
    let recalled = world.recall(&by_relevance("play an instrument")).await;
    let terms = |turn: strata_core::id::TurnId| traced(&recalled, turn.0).and_then(|found| found.terms);
    let (question, answer) = (terms(turns[0]).unwrap(), terms(turns[1]).unwrap());
    assert!(question > answer && answer > 0.3 * question, "{question} {answer}");
    assert_eq!(terms(turns[2]).unwrap_or(0.0), 0.0, "only direct neighbours inherit");
    assert_eq!(terms(later).unwrap_or(0.0), 0.0);
    assert_eq!(recalled.fts_hits, 1);
}

#[tokio::test]
async fn items_like_the_best_answer_gain_score() {
    let world = World::new();
    let first = world.say("a", "Melanie paints a sunrise").await;
    let second = world.say("b", "a sunrise hangs above my desk").await;
    world.say("c", "nothing else matters").await;
    let recalled = world.recall(&by_relevance("what does Melanie paint")).await;
    assert_eq!(ids(&recalled)[..2], [ItemId::Turn(first), ItemId::Turn(second)]);
    let lifted = traced(&recalled, second.0).unwrap();
    assert_eq!(lifted.terms, Some(0.0));
    assert!(lifted.likeness.unwrap() > 0.0 && lifted.score > 0.0, "{lifted:?}");
}

#[tokio::test]
async fn trigrams_help_if_no_word_matches() {
    let world = World::new();
    world.say("s", "I play the xylophone at home").await;
    world.say("s", "我住在西湖边").await;
    for (query, expected) in [
        ("xylofone", "I play the xylophone at home"),
        ("ylopho", "I play the xylophone at home"),
        ("湖边", "我住在西湖边"),
    ] {
        let recalled = world.recall(&RecallRequest::new(query)).await;
        assert_eq!(contents(&recalled)[0], expected, "{query}");
    }
    let recalled = world.recall(&RecallRequest::new("xylofone")).await;
    assert_eq!((recalled.path, recalled.fts_hits, recalled.trgm_hits), (RetrievalPath::Trgm, 0, 1));
    // One similar word among many says too little to be served, so thousands of items are not compared for it.
    let long = RecallRequest::new("which orchestra bought a xylofone yesterday");
    assert_eq!(world.recall(&long).await.trgm_hits, 0);
    let asked_for = RecallRequest { score_threshold: Some(0.1), ..long };
    assert_eq!(world.recall(&asked_for).await.trgm_hits, 1);
    // One letter would resemble everything, so the trigram search is skipped.
    let recalled = world.recall(&RecallRequest::new("x")).await;
    assert_eq!((recalled.path, recalled.trgm_hits), (RetrievalPath::None, 0));
}

#[tokio::test]
async fn recent_turns_stand_in_for_a_question_about_the_session() {
    let world = World::new();
    for (day, text) in [("2024-05-03", "three"), ("2024-05-01", "one"), ("2024-05-02", "two")] {
        world.say_on(day, "s", text).await;
    }
    world.remember("a fact").await;
    let recalled = world.recall(&RecallRequest::new("qqqq zzzz")).await;
    assert_eq!((recalled.path, recalled.items.len()), (RetrievalPath::None, 0), "nothing stands in");
    const QUESTION: &str = "what did we talk about?";
    let recalled = world.recall(&RecallRequest { explain: true, ..RecallRequest::new(QUESTION) }).await;
    assert_eq!(recalled.path, RetrievalPath::Window);
    assert_eq!(contents(&recalled), ["three", "two", "one"]);
    let outcomes = recalled.trace.unwrap().candidates;
    assert_eq!(outcomes.iter().filter(|found| matches!(found.outcome, Outcome::Served(_))).count(), 3);
    let memories = RecallRequest { kinds: ItemKinds::MEMORIES, ..RecallRequest::new(QUESTION) };
    let recalled = world.recall(&memories).await;
    assert_eq!((recalled.path, recalled.items.len()), (RetrievalPath::None, 0));
    // With `as_of`, the last turns before that time.
    let request = RecallRequest { as_of: Some(moment("2024-05-02")), ..RecallRequest::new(QUESTION) };
    assert_eq!(contents(&world.recall(&request).await), ["two", "one"]);
}

#[tokio::test]
async fn one_kind_of_items_can_be_asked_for() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    world.remember("the trip was in May").await;
    for (turns, memories, expected) in
        [(true, false, "the trip went well"), (false, true, "the trip was in May")]
    {
        let request = RecallRequest {
            kinds: ItemKinds { turns, memories, summaries: false },
            ..RecallRequest::new("trip")
        };
        assert_eq!(contents(&world.recall(&request).await), [expected]);
    }
}

#[tokio::test]
async fn a_threshold_drops_irrelevant_items() {
    let world = World::new();
    world.say("s", "trip coffee tea dog").await;
    for number in 0..20 {
        world.say(&format!("t{number}"), &format!("some dog, number{number}")).await;
    }
    let below = async |threshold: Option<f32>| {
        let request =
            RecallRequest { score_threshold: threshold, limit: Some(3), ..explained("trip coffee tea dog") };
        let recalled = world.recall(&request).await;
        let candidates = recalled.trace.unwrap().candidates;
        let below = candidates.iter().filter(|found| found.outcome == Outcome::BelowThreshold);
        assert!(below.clone().all(|found| found.relevance < threshold.unwrap_or(0.35)));
        (recalled.items.len(), below.count())
    };
    assert_eq!(below(Some(0.0)).await, (3, 0));
    assert_eq!(below(Some(0.8)).await, (1, 20));
    assert_eq!(below(None).await, (1, 20), "one word of four does not help");
    // In the order by relevance, the threshold does not apply.
    let request = RecallRequest { score_threshold: Some(0.99), ..by_relevance("trip coffee tea dog") };
    assert_eq!(world.recall(&request).await.items.len(), 21);
}

#[tokio::test]
async fn recency_changes_the_order_and_diversity_the_choice() {
    let world = World::new();
    let old = world.say_on("2023-06-01", "a", "trip with coffee").await;
    let again = world.say_on("2023-06-02", "b", "trip with coffee again").await;
    let new = world.say_on("2024-05-30", "c", "the trip was a mess").await;
    let order = async |recency_weight: f32, mmr_lambda: f32, limit: u32| {
        let request = RecallRequest {
            limit: Some(limit),
            recency_weight: Some(recency_weight),
            mmr_lambda: Some(mmr_lambda),
            score_threshold: Some(0.0),
            ..RecallRequest::new("coffee trip")
        };
        let found = ids(&world.recall(&request).await);
        let name = |id: &ItemId| match id {
            ItemId::Turn(turn) if *turn == old => "old",
            ItemId::Turn(turn) if *turn == again => "again",
            ItemId::Turn(turn) if *turn == new => "new",
            _ => "?",
        };
        found.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    // Of the two near-duplicates, the newer one comes first in all orders.
    assert_eq!(order(0.0, 1.0, 3).await, "again old new", "by relevance alone");
    assert_eq!(order(1.0, 1.0, 3).await, "new again old", "by age alone");
    assert_eq!(order(0.0, 0.3, 3).await, "again old new", "diversity chooses and does not reorder");
    assert_eq!(order(0.0, 0.1, 2).await, "again new", "the second says nothing new");
}

#[tokio::test]
async fn a_budget_limits_the_result() {
    let world = World::new();
    let text = format!("trip {}", "word ".repeat(249));
    for number in 0..10 {
        world.say(&format!("s{number}"), &format!("{text}{number}")).await;
    }
    let budget = |max_tokens, max_turns, max_item_chars| Budget { max_tokens, max_turns, max_item_chars };
    let recall = async |budget| {
        let request = RecallRequest {
            budget: Some(budget),
            limit: Some(20),
            score_threshold: Some(0.0),
            ..explained("trip")
        };
        let recalled = world.recall(&request).await;
        let over =
            |found: &&strata_core::trace::TraceCandidate| matches!(found.outcome, Outcome::OverBudget(_));
        let over = recalled.trace.as_ref().unwrap().candidates.iter().filter(over).count();
        (recalled.items.len(), recalled.tokens, recalled.truncated, over)
    };
    // 251 words each.
    assert_eq!(recall(budget(2_000, 6, 1_500)).await, (6, 6 * 251, true, 4));
    assert_eq!(recall(budget(600, 6, 1_500)).await, (2, 502, true, 8));
    assert_eq!(recall(budget(9_999, 99, 1_500)).await, (10, 2_510, false, 0));
    let (items, tokens, truncated, over) = recall(budget(2_000, 20, 100)).await;
    assert!(items == 10 && tokens < 300 && truncated && over == 0, "{tokens}");
    // A question has the budget of the settings, also one that names a number of items.
    let plain = world.recall(&RecallRequest::new("trip")).await;
    assert_eq!((plain.items.len(), plain.truncated), (5, false));
    let request = RecallRequest { limit: Some(9), score_threshold: Some(0.0), ..RecallRequest::new("trip") };
    let counted = world.recall(&request).await;
    assert_eq!((counted.items.len(), counted.tokens, counted.truncated), (7, 7 * 251, true));
    // An order for benchmarks has none.
    let ranked = world.recall(&RecallRequest { order: Order::Relevance, ..request }).await;
    assert_eq!((ranked.items.len(), ranked.truncated), (9, false));
}

#[tokio::test]
async fn a_larger_limit_gives_more_short_items_and_never_more_tokens() {
    let world = World::new();
    for number in 0..60 {
        world.say(&format!("s{number}"), &format!("the trip to place{number}")).await;
        world.say(&format!("s{number}"), &format!("旅行 地点{number}")).await;
    }
    for (query, limit) in [("trip", 10), ("trip", 20), ("trip", 50), ("旅行", 10), ("旅行", 40)] {
        let request =
            RecallRequest { limit: Some(limit), score_threshold: Some(0.0), ..RecallRequest::new(query) };
        let recalled = world.recall(&request).await;
        assert_eq!(recalled.items.len(), limit as usize, "{query}");
        assert!(recalled.tokens <= 2_000, "{}", recalled.tokens);
    }
}

#[tokio::test]
async fn a_shortened_item_says_so() {
    let world = World::new();
    world.say("s", &format!("trip {}", "long ".repeat(400))).await;
    let recalled = world.recall(&RecallRequest::new("trip")).await;
    let shortened = recalled.items[0].shortened.as_deref().unwrap();
    assert_eq!(shortened.chars().count(), 1_500);
    assert!(shortened.ends_with('…') && recalled.truncated);
    assert_eq!(recalled.tokens, shortened.split_whitespace().count() as u32);
}

#[tokio::test]
async fn an_invalid_request_is_refused() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    let refused = async |request: RecallRequest, kind: ErrorKind, expected: &str| {
        let error = world.engine.recall.ask(&world.user, &request).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected), "{error}");
    };
    let plain = RecallRequest::new("trip");
    for wrong in [f32::NAN, -0.01, 1.01, f32::INFINITY] {
        let threshold = RecallRequest { score_threshold: Some(wrong), ..plain.clone() };
        refused(threshold, ErrorKind::Invalid, "`score_threshold`").await;
        let recency = RecallRequest { recency_weight: Some(wrong), ..plain.clone() };
        refused(recency, ErrorKind::Invalid, "`recency_weight`").await;
        let lambda = RecallRequest { mmr_lambda: Some(wrong), ..plain.clone() };
        refused(lambda, ErrorKind::Invalid, "`mmr_lambda`").await;
    }
    for limit in [0, MAX_LIMIT + 1] {
        refused(RecallRequest { limit: Some(limit), ..plain.clone() }, ErrorKind::Invalid, "limit").await;
    }
    refused(RecallRequest::new(" \n"), ErrorKind::Invalid, "empty").await;
    let long = "x".repeat(MAX_QUERY_CHARS + 1);
    refused(RecallRequest::new(long), ErrorKind::TooLarge, "10001 characters").await;
    refused(scoped("trip", Scope::Session), ErrorKind::Invalid, "needs a session").await;
    assert_eq!(world.engine.requests.waiting(), 0);
    // The ends of the ranges are valid.
    for share in [0.0, 1.0] {
        let request = RecallRequest {
            score_threshold: Some(share),
            recency_weight: Some(share),
            mmr_lambda: Some(share),
            limit: Some(MAX_LIMIT),
            ..plain.clone()
        };
        let served = usize::from(share == 0.0);
        assert_eq!(world.recall(&request).await.items.len(), served, "no item helps for certain");
    }
}

#[tokio::test]
async fn each_question_of_a_message_is_answered() {
    let world = World::new();
    for number in 0..40 {
        let text = if number < 3 { "the trip to Rome by night train" } else { "something else" };
        world.say(&format!("session {number}"), &format!("{text}, {number}")).await;
    }
    world.say("lamp", "an old friend has the lamp").await;
    let first_two = async |query: &str| contents(&world.recall(&by_relevance(query)).await)[..2].to_vec();
    let lamp = "an old friend has the lamp".to_owned();
    let trip = "When did the night train trip to Rome begin";
    assert!(!first_two(&format!("{trip} and who has the lamp?")).await.contains(&lamp));
    assert_eq!(first_two(&format!("{trip}? And who has the lamp?")).await[1], lamp);
    // A statement asks nothing, and a question without words of its own gets no answers of its own.
    assert!(
        !first_two(&format!("{trip}? The lamp is what my friend has, I think, and so on."))
            .await
            .contains(&lamp)
    );
    assert!(!first_two(&format!("{trip}? Lamp?")).await.contains(&lamp));
    // A question without a match gets none either.
    let recalled = world.recall(&by_relevance("Xyzzy plugh frotz? Who has the lamp?")).await;
    assert_eq!(contents(&recalled)[0], lamp);
    assert!(recalled.items[0].relevance > 0.9, "{recalled:?}");
    // A pronoun refers to a name in another question.
    world.say("bob", "Bob likes tea with cold milk, sugar").await;
    world.say("ann", "Ann likes tea every rainy morning").await;
    world.say("birthday", "Ann has her birthday in June").await;
    let answers =
        contents(&world.recall(&by_relevance("When has Ann her birthday? Likes she some tea?")).await);
    assert_eq!(answers[..2], ["Ann has her birthday in June", "Ann likes tea every rainy morning"]);
}

#[tokio::test]
async fn a_statement_of_a_clock_ahead_counts_as_older_than_what_was_said_after_it() {
    let world = World::new();
    world.say_on("2024-02-01", "a", "The lamp is new").await;
    // The clock was a year ahead when this was said.
    world.clock.set("2025-05-01");
    let wrong = world.say_on("2025-05-01", "b", "My rent is 900 dollars").await;
    world.clock.set("2024-06-01");
    let right = world.say_on("2024-05-10", "c", "My rent is 950 dollars").await;
    let recalled = world.recall(&by_relevance("How much is my rent?")).await;
    assert_eq!(ids(&recalled)[..2], [ItemId::Turn(right), ItemId::Turn(wrong)]);
}

#[tokio::test]
async fn a_memory_and_its_turn_are_served_once() {
    let world = World::new();
    let remember = async |content: &str| {
        world.engine.memories.add(&world.user, vec![crate::NewMemory::new(content)]).await.unwrap();
    };
    let ask = async |question: &str, limit: u32| {
        let request = RecallRequest { limit: Some(limit), ..RecallRequest::new(question) };
        contents(&world.recall(&request).await)
    };
    world.say("s", "the lamp is a present").await;
    remember("a present: the lamp").await;
    assert_eq!(ask("lamp present", 5).await.len(), 2, "there is room for both");
    world.say("u", "the lamp by the sea").await;
    let two = ask("lamp present", 2).await;
    assert!(two.contains(&"the lamp by the sea".to_owned()), "{two:?}");
    // A turn that says more stays beside a memory that ranks higher, and stands for two memories.
    let turn = "the old friend has tea in the house by the sea";
    world.say("t", turn).await;
    remember("old friend").await;
    remember("tea in the house").await;
    assert_eq!(ask("old friend tea house", 2).await, [turn]);
}
