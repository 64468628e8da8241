//! The records of a recall: its row, its trace, and the answer to «why not this?».

use super::fixture::*;
use crate::recall::{Budget, RecallRequest, Recalled};
use strata_core::error::ErrorKind;
use strata_core::id::{ItemId, MemoryId, RequestId, TurnId};
use strata_core::metric::{ErrorStage, PromptUse, RequestMetric};
use strata_core::scope::Scope;
use strata_core::store::conformance::fixture::request as row;
use strata_core::store::{Change, Store};
use strata_core::trace::RetrievalPath;
use strata_core::trace::{Outcome, Trace};

async fn last_row(world: &World) -> RequestMetric {
    world.engine.requests.list(&world.user, None, 1).await.unwrap().remove(0)
}

#[tokio::test]
async fn every_column_of_a_row_is_filled() {
    let world = World::new();
    world.say("a", "the trip went well").await;
    world.say("b", "a trip by train, with many stops on the way").await;
    world
        .engine
        .clone()
        .with_embedder(MeanEncoder::local("mean", 64))
        .maintenance
        .maintain_all()
        .await
        .unwrap();
    let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    world.clock.step(250);
    let budget = Budget { max_item_chars: 30, ..Budget::default() };
    let request = RecallRequest { budget: Some(budget), explain: true, ..within("which trip", "a") };
    let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
    assert_eq!(engine.requests.waiting(), 1);
    let found = engine.requests.get(&world.user, recalled.request_id).await.unwrap();
    assert_eq!(engine.requests.waiting(), 0);
    assert!(found.latency_retrieval_us >= 250);
    let expected = RequestMetric {
        id: recalled.request_id,
        session: Some(session("a")),
        created_at: found.created_at,
        query: "which trip".to_owned(),
        fts_hits: 2,
        trgm_hits: 0,
        vector_hits: 2,
        used_fallback: false,
        retrieval_path: RetrievalPath::Fts,
        scope: Scope::Session,
        scope_used: Scope::User,
        expansion: Some("1 full-text hits in the session, fewer than 3".to_owned()),
        context_items: 2,
        estimated_tokens: 4 + 7,
        truncated: true,
        latency_retrieval_us: found.latency_retrieval_us,
        latency_llm_us: None,
        error_stage: None,
        late: None,
        unasked: false,
        prompt: PromptUse::default(),
        feedback: Vec::new(),
        trace: Some(serde_json::to_value(recalled.trace.unwrap()).unwrap()),
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_row_says_which_path_served() {
    let world = World::new();
    world.say("s", "I play the xylophone").await;
    world.say("t", "a journey by train").await;
    for (query, path, used_fallback, hits) in [
        ("xylophone", RetrievalPath::Fts, false, (1, 0)),
        ("trip", RetrievalPath::Vector, false, (0, 0)),
        ("xylofone", RetrievalPath::Trgm, true, (0, 1)),
        ("qqqq", RetrievalPath::None, false, (0, 0)),
        ("what did I just say?", RetrievalPath::Window, true, (0, 0)),
        ("thanks!", RetrievalPath::None, false, (0, 0)),
    ] {
        world.recall(&RecallRequest::new(query)).await;
        let found = last_row(&world).await;
        assert_eq!((found.query.as_str(), found.retrieval_path), (query, path));
        assert_eq!(
            (found.used_fallback, (found.fts_hits, found.trgm_hits)),
            (used_fallback, hits),
            "{query}"
        );
        world.clock.forward(1);
    }
    let nobody = world.engine.recall.ask(&user("nobody"), &RecallRequest::new("trip")).await.unwrap();
    assert_eq!((nobody.path, nobody.items.len()), (RetrievalPath::None, 0));
    let found = world.engine.requests.get(&user("nobody"), nobody.request_id).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound, "a question makes no user");
}

#[tokio::test]
async fn a_failed_recall_leaves_a_row_too() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    world.store.close().await.unwrap();
    let failed = world.engine.recall.ask(&world.user, &RecallRequest::new("trip")).await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(world.engine.requests.waiting(), 1);
    let error = world.engine.requests.flush().await.unwrap_err();
    assert_eq!(
        (error.kind(), world.engine.requests.waiting()),
        (ErrorKind::Unavailable, 1),
        "the row stays queued"
    );
    // The store works again.
    let mut requests = world.engine.requests.clone();
    let other = World::new();
    other.say("s", "the trip went well").await;
    requests.store = other.store;
    requests.log.store = std::sync::Arc::clone(&requests.store);
    let rows = requests.list(&world.user, None, 9).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].error_stage, rows[0].context_items), (Some(ErrorStage::Retrieval), 0));
}

#[tokio::test]
async fn a_row_that_is_already_stored_does_not_block_others() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    // Simulates a caller that was cancelled after the store had written: the first row is stored and still queued.
    let written = RequestMetric { id: RequestId(world.ids.peek()), query: "trip".to_owned(), ..row(0) };
    world.apply(Change::AddRequest(Box::new(written))).await;
    for query in ["trip", "journey", "train"] {
        world.recall(&RecallRequest::new(query)).await;
        world.clock.forward(1);
    }
    assert_eq!(world.engine.requests.waiting(), 3);
    let rows = world.engine.requests.list(&world.user, None, 9).await.unwrap();
    let mut queries: Vec<&str> = rows.iter().map(|row| row.query.as_str()).collect();
    queries.sort_unstable();
    assert_eq!((queries, world.engine.requests.waiting()), (vec!["journey", "train", "trip"], 0));
}

#[tokio::test]
async fn old_rows_are_pruned() {
    let world = World::new();
    world.say("s", "the trip went well").await;
    for day in ["2024-06-01", "2024-06-10", "2024-06-20"] {
        world.clock.set(day);
        world.recall(&RecallRequest::new(format!("trip of {day}"))).await;
    }
    world.engine.requests.flush().await.unwrap();
    world.engine.requests.prune(&world.user, moment("2024-06-10")).await.unwrap();
    let rows = world.engine.requests.list(&world.user, None, 9).await.unwrap();
    let queries: Vec<&str> = rows.iter().map(|row| row.query.as_str()).collect();
    assert_eq!(queries, ["trip of 2024-06-20", "trip of 2024-06-10"]);
}

/// More items than a trace holds, so that every outcome occurs.
async fn busy_world() -> World {
    let world = World::new();
    world.say("s", "trip coffee tea dog").await;
    for number in 0..70 {
        world.say(&format!("t{number}"), &format!("some trip number{number}")).await;
    }
    world
}

fn check_trace(recalled: &Recalled) {
    let trace = recalled.trace.as_ref().unwrap();
    for (candidate, place) in trace.candidates.iter().zip(1..) {
        assert_eq!(candidate.place, place);
        assert_eq!(candidate.served_score.is_some(), candidate.age_days.is_some());
    }
    let served: Vec<(u32, ItemId)> = {
        let served = trace.candidates.iter().filter_map(|candidate| match candidate.outcome {
            Outcome::Served(place) => Some((place, candidate.item)),
            _ => None,
        });
        let mut served: Vec<_> = served.collect();
        served.sort_unstable();
        served
    };
    let expected: Vec<(u32, ItemId)> = (1..).zip(ids(recalled)).collect();
    assert_eq!(served, expected);
    let json = serde_json::to_value(trace).unwrap();
    assert_eq!(&serde_json::from_value::<Trace>(json).unwrap(), trace);
}

#[tokio::test]
async fn a_trace_gives_the_outcome_of_every_candidate() {
    let world = busy_world().await;
    let budget = Budget { max_turns: 4, ..Budget::default() };
    let request = RecallRequest {
        budget: Some(budget),
        limit: Some(6),
        score_threshold: Some(0.2),
        ..explained("trip coffee tea dog")
    };
    let recalled = world.recall(&request).await;
    check_trace(&recalled);
    let trace = recalled.trace.as_ref().unwrap();
    assert_eq!((trace.candidates.len(), trace.fts_hits), (50, 71));
    let count = |wanted: fn(&Outcome) -> bool| {
        trace.candidates.iter().filter(|candidate| wanted(&candidate.outcome)).count()
    };
    assert_eq!(count(|outcome| matches!(outcome, Outcome::Served(_))), 4);
    assert!(count(|outcome| matches!(outcome, Outcome::OverBudget(_))) > 0);
    let strict = RecallRequest { score_threshold: Some(0.9), ..request.clone() };
    let recalled = world.recall(&strict).await;
    check_trace(&recalled);
    let below = recalled.trace.unwrap().candidates;
    assert!(below.iter().filter(|found| found.outcome == Outcome::BelowThreshold).count() > 30);
    // In the order by relevance, no item is below a threshold.
    let request = RecallRequest { order: crate::recall::Order::Relevance, limit: Some(6), ..request };
    let recalled = world.recall(&RecallRequest { budget: None, ..request }).await;
    check_trace(&recalled);
    let trace = recalled.trace.unwrap();
    let left = trace.candidates.iter().filter(|found| found.outcome == Outcome::NotChosen).count();
    assert_eq!(left, 44);
}

#[tokio::test]
async fn a_later_trace_adds_no_row() {
    let world = busy_world().await;
    let recalled = world.recall(&RecallRequest::new("trip coffee")).await;
    world.clock.forward(60);
    world.say("s", "coffee trip coffee trip").await;
    let rows = world.engine.requests.list(&world.user, None, 9).await.unwrap().len();
    let trace = world.engine.requests.trace(&world.user, recalled.request_id).await.unwrap();
    let served = trace.candidates.iter().filter(|found| matches!(found.outcome, Outcome::Served(_)));
    let mut served: Vec<ItemId> = served.map(|candidate| candidate.item).collect();
    let mut expected = ids(&recalled);
    served.sort_unstable();
    expected.sort_unstable();
    assert_eq!(served, expected, "as of that time");
    assert_eq!(world.engine.requests.list(&world.user, None, 9).await.unwrap().len(), rows);
}

struct Question {
    world: World,
    asked: RequestId,
}

impl Question {
    async fn why(&self, item: ItemId) -> String {
        self.world.engine.requests.explain(&self.world.user, self.asked, item).await.unwrap().reason
    }
}

/// «Why was this not recalled?» has an answer for every item, with and without a stored trace.
#[tokio::test]
async fn a_missing_item_is_always_explained() {
    for explain in [true, false] {
        let world = busy_world().await;
        let best = world.say("s", "my trip with coffee, cake, bread and cheese").await;
        let hidden = world.say("s", "a hidden trip with coffee").await;
        world.hide(hidden).await;
        let closed = world.remember("a trip with coffee, once").await;
        world.close(closed).await;
        let far = world.say("far", "the lamp is broken").await;
        let other = World { user: user("bob"), engine: world.engine.clone(), ..World::new() };
        let foreign = other.say("s", "my trip with coffee").await;
        world.clock.forward(1);
        let request = RecallRequest {
            explain,
            ..RecallRequest::new("trip with coffee, cake, bread, cheese, honey and plums")
        };
        let asked = world.recall(&request).await;
        world.clock.forward(1);
        let after = world.say("s", "a later trip with coffee").await;
        let question = Question { world, asked: asked.request_id };

        let why = question.why(ItemId::Turn(best)).await;
        assert!(why.contains("served as number"), "{why}");
        let trace = question.world.engine.requests.trace(&question.world.user, question.asked).await.unwrap();
        let weak = trace.candidates.iter().find(|found| found.outcome == Outcome::BelowThreshold).unwrap();
        assert!(question.why(weak.item).await.contains("not relevant enough"));
        assert!(question.why(ItemId::Turn(hidden)).await.contains("out of recall since"));
        assert!(question.why(ItemId::Memory(closed)).await.contains("it was true until"));
        assert!(question.why(ItemId::Turn(far)).await.contains("too far"));
        assert!(question.why(ItemId::Turn(after)).await.contains("after the request"));
        // A memory's id may be given as a turn's id, because people copy ids without their kind.
        let explained = question.why(ItemId::Turn(TurnId(closed.0))).await;
        assert!(explained.contains("it was true until"));
        for unknown in [ItemId::Turn(foreign), ItemId::Memory(MemoryId(uuid::Uuid::from_u128(9_999_999)))] {
            let Question { world, asked } = &question;
            let error = world.engine.requests.explain(&world.user, *asked, unknown).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
        let error =
            question.world.engine.requests.explain(&user("bob"), question.asked, ItemId::Turn(best)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound, "another user's request");
    }
}

#[tokio::test]
async fn an_item_of_another_session_is_explained() {
    let world = World::new();
    world.say("a", "the trip went well").await;
    let other = world.say("b", "the trip to Rome").await;
    let request = RecallRequest { scope: Some(Scope::Session), explain: true, ..within("trip", "a") };
    let asked = world.recall(&request).await;
    let question = Question { world, asked: asked.request_id };
    assert!(question.why(ItemId::Turn(other)).await.contains("another session"));
}

#[tokio::test]
async fn a_turn_hidden_after_the_request_was_visible_to_it() {
    let world = World::new();
    let turn = world.say("a", "the trip went well").await;
    world.clock.forward(1);
    let asked = world.recall(&RecallRequest::new("trip")).await;
    world.clock.forward(1);
    world.hide(turn).await;
    let question = Question { world, asked: asked.request_id };
    assert!(question.why(ItemId::Turn(turn)).await.contains("served as number 1"));
}
