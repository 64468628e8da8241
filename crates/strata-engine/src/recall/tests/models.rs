//! Embedders and cross-encoders that work, fail, return wrong results or change. A failing model never makes a recall
//! worse than no model.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::fixture::*;
use crate::recall::{Order, RecallRequest};
use crate::{EmbedItems, Engine, NewMemory};
use strata_core::error::{Error, Result};
use strata_core::id::ItemId;
use strata_core::metric::ErrorStage;
use strata_core::ports::{Embedder, EmbedderCost, Passage, Reranker, TurnInContext};
use strata_core::store::Store;
use strata_core::trace::RetrievalPath;
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

/// An encoder that fails for questions, or returns a vector of another dimension for them.
struct Broken {
    passages: Arc<MeanEncoder>,
    question: Option<usize>,
}

#[async_trait]
impl Embedder for Broken {
    fn model(&self) -> &str {
        self.passages.model()
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Remote
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        self.passages.embed_passages(passages).await
    }

    async fn embed_question(&self, _: &str) -> Result<Vec<f32>> {
        let length = self.question.ok_or_else(|| Error::unavailable("the endpoint takes too long"))?;
        Ok(vec![1.0; length])
    }
}

/// A world with two turns that `mean` has embedded.
async fn embedded_world() -> World {
    let world = World::new();
    world.say("a", "the trip went well").await;
    world.say("b", "the lamp is on").await;
    world
        .engine
        .clone()
        .with_embedder(MeanEncoder::local("mean", 64))
        .maintenance
        .maintain_all()
        .await
        .unwrap();
    world
}

#[tokio::test]
async fn a_failing_or_changed_embedder_does_not_prevent_an_answer() {
    let world = embedded_world().await;
    for question in [None, Some(0), Some(63), Some(65)] {
        let broken = Broken { passages: MeanEncoder::local("mean", 64), question };
        let engine = world.engine.clone().with_embedder(Arc::new(broken));
        let recalled = engine.recall.ask(&world.user, &explained("journey")).await.unwrap();
        assert_eq!(contents(&recalled)[0], "the trip went well", "{question:?}");
        assert_eq!((recalled.vector_hits, recalled.path), (0, RetrievalPath::Vector), "{question:?}");
        let row = engine.requests.get(&world.user, recalled.request_id).await.unwrap();
        assert_eq!(row.error_stage, Some(ErrorStage::Embedding), "{question:?}");
    }
    // A vector of zeros has no direction, which is not a failure.
    let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    let recalled = engine.recall.ask(&world.user, &RecallRequest::new("the of and")).await.unwrap();
    assert_eq!(recalled.error_stage, None);
}

#[tokio::test]
async fn an_encoder_ranks_by_meaning() {
    let world = embedded_world().await;
    let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    let recalled = engine.recall.ask(&world.user, &explained("journey")).await.unwrap();
    assert_eq!((recalled.vector_hits, recalled.path), (2, RetrievalPath::Vector));
    let best = &recalled.trace.as_ref().unwrap().candidates[0];
    assert!(best.encoder.unwrap() > 0.4 && best.mean.is_none(), "{best:?}");
    assert_eq!(contents(&recalled)[0], "the trip went well");
}

#[tokio::test]
async fn each_question_of_a_message_has_its_own_vector() {
    let world = embedded_world().await;
    let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    // The bag of words that stands in for an encoder has lower cosines than one.
    let asked =
        RecallRequest { score_threshold: Some(0.0), ..explained("Some journey made? Some lamp lit?") };
    let recalled = engine.recall.ask(&world.user, &asked).await.unwrap();
    assert_eq!(contents(&recalled), ["the trip went well", "the lamp is on"]);
    let candidates = &recalled.trace.as_ref().unwrap().candidates;
    // With one vector for the whole message, the cosines would be lower.
    assert!(candidates.iter().all(|candidate| candidate.encoder.unwrap() > 0.3), "{candidates:?}");
    assert_eq!(recalled.vector_hits, 2);
    // A failing encoder is called once, and recall goes on without it.
    let broken = Broken { passages: MeanEncoder::local("mean", 64), question: None };
    let engine = world.engine.clone().with_embedder(Arc::new(broken));
    // The bag of words that stands in for an encoder has lower cosines than one.
    let asked =
        RecallRequest { score_threshold: Some(0.0), ..explained("Some journey made? Some lamp lit?") };
    let recalled = engine.recall.ask(&world.user, &asked).await.unwrap();
    assert_eq!((recalled.items.len(), recalled.error_stage), (2, Some(ErrorStage::Embedding)));
}

#[tokio::test]
async fn an_encoder_without_chinese_is_not_used_for_chinese() {
    let hits = async |encoder_reads_chinese: bool, query: &str| {
        let world = World::with(|settings| settings.recall.encoder_reads_chinese = encoder_reads_chinese);
        world.say("a", "the trip went well").await;
        world.say("b", "旅行很好").await;
        let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
        engine.maintenance.maintain_all().await.unwrap();
        let recalled = engine.recall.ask(&world.user, &RecallRequest::new(query)).await.unwrap();
        assert_eq!(recalled.items.len(), 2, "{query}");
        recalled.vector_hits
    };
    assert_eq!(hits(false, "the journey").await, 1, "the Chinese turn is ranked by words");
    assert_eq!(hits(false, "旅行").await, 0);
    assert_eq!(hits(true, "the journey").await, 2);
    assert_eq!(hits(true, "旅行").await, 2);
}

/// The embedded items out of a turn, a marked turn, a hidden turn and a memory.
async fn embedded(embed: EmbedItems, cost: EmbedderCost) -> Vec<String> {
    let world = World::with(|settings| settings.embed = embed);
    let mut marked = NewMessage::new(Role::User, "marked");
    marked.notes.high_value = true;
    world.engine.recording.record(&world.user, &session("s"), vec![marked], None).await.unwrap();
    world.say("s", "turn").await;
    let hidden = world.say("s", "hidden").await;
    world.hide(hidden).await;
    world.remember("memory").await;
    let encoder = Arc::new(MeanEncoder { name: "mean", dimension: 8, cost });
    world.engine.clone().with_embedder(encoder).maintenance.maintain_all().await.unwrap();
    let vectors = world.store.vectors_since(&world.user, "mean", 0).await.unwrap();
    let is_embedded = |id: ItemId| vectors.iter().any(|stored| stored.vector.item == id);
    let items = all_items(&world.store, &world.user).await;
    let mut found: Vec<String> =
        items.iter().filter(|item| is_embedded(item.id())).map(|item| item.content().to_owned()).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_paid_embedder_embeds_derived_items_only() {
    let (all, derived) = (["marked", "memory", "turn"], ["marked", "memory"]);
    assert_eq!(embedded(EmbedItems::Auto, EmbedderCost::Local).await, all);
    assert_eq!(embedded(EmbedItems::Auto, EmbedderCost::Remote).await, derived);
    assert_eq!(embedded(EmbedItems::Derived, EmbedderCost::Local).await, derived);
    assert_eq!(embedded(EmbedItems::All, EmbedderCost::Remote).await, all);
}

/// An encoder that records the sizes of its batches, and at first fails or returns too few vectors.
struct Noting {
    inner: Arc<MeanEncoder>,
    calls: AtomicUsize,
    largest: AtomicUsize,
    fails: usize,
}

#[async_trait]
impl Embedder for Noting {
    fn model(&self) -> &str {
        "mean"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> Result<Vec<Vec<f32>>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        self.largest.fetch_max(passages.len(), Ordering::SeqCst);
        let mut vectors = self.inner.embed_passages(passages).await?;
        match call {
            _ if call >= self.fails => {}
            0 => return Err(Error::unavailable("not now")),
            _ => drop(vectors.pop()),
        }
        Ok(vectors)
    }

    async fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        self.inner.embed_question(question).await
    }
}

#[tokio::test]
async fn items_are_embedded_in_batches_and_again_after_a_failure() {
    let world = World::new();
    for number in 0..100 {
        world.say("s", &format!("turn number {number}")).await;
    }
    // Segments are written first, so that only embedding remains to be done.
    world.engine.maintenance.maintain_all().await.unwrap();
    let inner = MeanEncoder::local("mean", 8);
    let noting = Arc::new(Noting { inner, calls: 0.into(), largest: 0.into(), fails: 2 });
    let engine = world.engine.clone().with_embedder(Arc::clone(&noting) as Arc<dyn Embedder>);
    for _ in 0..2 {
        assert!(engine.maintenance.maintain().await.is_err());
        assert_eq!(world.store.progress(&world.user, "mean").await.unwrap(), 0);
        assert!(engine.recall.ask(&world.user, &RecallRequest::new("number")).await.is_ok());
    }
    engine.maintenance.maintain_all().await.unwrap();
    assert_eq!(noting.largest.load(Ordering::SeqCst), 32);
    let recalled = engine.recall.ask(&world.user, &RecallRequest::new("number")).await.unwrap();
    assert_eq!((recalled.vector_hits, recalled.error_stage), (100, None));
    let calls = noting.calls.load(Ordering::SeqCst);
    engine.maintenance.maintain_all().await.unwrap();
    assert_eq!(noting.calls.load(Ordering::SeqCst), calls, "nothing is embedded twice");
}

/// The vectors of shared items count, also for a user without vectors.
#[tokio::test]
async fn shared_items_are_compared_by_vectors_too() {
    let world = World::new();
    let engine = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    let shared = vec![NewMemory::new("the trip is paid for")];
    engine.memories.add(&strata_core::UserId::global(), shared).await.unwrap();
    engine.maintenance.maintain_all().await.unwrap();
    let request = scoped("journey", strata_core::scope::Scope::Global);
    let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
    assert_eq!((recalled.vector_hits, recalled.items.len()), (1, 1));
}

/// A cross-encoder that prefers later candidates, or misbehaves. It records what it reads.
enum Judge {
    Reversing(Mutex<Vec<TurnInContext>>),
    Failing,
    TooFew,
    NoNumber,
}

#[async_trait]
impl Reranker for Judge {
    fn model(&self) -> &str {
        "judge"
    }

    fn reads(&self) -> (usize, usize) {
        (30, 100)
    }

    async fn score(&self, _: &str, items: &[TurnInContext]) -> Result<Vec<f32>> {
        match self {
            Self::Reversing(read) => {
                *read.lock().unwrap() = items.to_vec();
                Ok((0..items.len()).map(|place| 10.0 * place as f32).collect())
            }
            Self::Failing => Err(Error::unavailable("no model")),
            Self::TooFew => Ok(vec![1.0]),
            Self::NoNumber => Ok(vec![f32::NAN; items.len()]),
        }
    }
}

fn reversing() -> Arc<Judge> {
    Arc::new(Judge::Reversing(Mutex::default()))
}

/// A request that asks for a cross-encoder, in the order of relevance.
fn judged(query: &str) -> RecallRequest {
    RecallRequest { order: Order::Relevance, rerank: Some(true), ..explained(query) }
}

async fn judged_world(judge: Arc<Judge>) -> (World, Engine) {
    let world = World::new();
    for (number, text) in [
        "a trip by train along the coast",
        "photos of our trip hang upstairs",
        "that trip was far too expensive",
        "Ann slept through her whole trip",
    ]
    .iter()
    .enumerate()
    {
        world.say(&format!("s{number}"), text).await;
    }
    let engine = world.engine.clone().with_reranker(judge);
    (world, engine)
}

fn by_relevance(recalled: &crate::recall::Recalled) -> Vec<(ItemId, f32)> {
    recalled.items.iter().map(|found| (found.item.id(), found.relevance)).collect()
}

#[tokio::test]
async fn a_cross_encoder_changes_the_order_and_no_score() {
    let (world, engine) = judged_world(reversing()).await;
    let request = judged("trip");
    let plain = world.recall(&request).await;
    let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
    let mut reversed = by_relevance(&plain);
    reversed.reverse();
    assert_eq!(by_relevance(&recalled), reversed);
    let trace = recalled.trace.unwrap();
    let traced: Vec<ItemId> = trace.candidates.iter().map(|found| found.item).collect();
    assert_eq!(traced, reversed.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    assert_eq!(trace.candidates.iter().map(|found| found.place).collect::<Vec<_>>(), [1, 2, 3, 4]);
    // The best candidate of the cross-encoder is served, however few are wanted.
    let one = RecallRequest { order: Order::Served, limit: Some(1), score_threshold: Some(0.0), ..request };
    let recalled = engine.recall.ask(&world.user, &one).await.unwrap();
    assert_eq!(recalled.items[0].item.id(), reversed[0].0);
}

#[tokio::test]
async fn only_a_request_that_asks_for_it_is_reranked() {
    let (world, engine) = judged_world(reversing()).await;
    let plain = by_relevance(&world.recall(&judged("trip")).await);
    let on = engine.clone().with_changed_settings(|settings| settings.recall.rerank = true);
    for (engine, rerank, is_reranked) in
        [(&engine, None, false), (&engine, Some(false), false), (&on, None, true), (&on, Some(false), false)]
    {
        let request = RecallRequest { rerank, ..judged("trip") };
        let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
        assert_eq!(by_relevance(&recalled) != plain, is_reranked, "{rerank:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_too_long_to_be_read_is_not_reranked() {
    let (world, engine) = judged_world(reversing()).await;
    let request = judged(&format!("{} trip", "hello there ".repeat(20)));
    let plain = by_relevance(&world.recall(&request).await);
    assert_eq!(plain.len(), 4);
    assert_eq!(by_relevance(&engine.recall.ask(&world.user, &request).await.unwrap()), plain);
}

#[tokio::test]
async fn a_cross_encoder_reads_the_best_twenty_with_the_turns_before_them() {
    let world = World::new();
    for number in 0..24 {
        world.say("s", &format!("aside number {number}")).await;
        world.say("s", &format!("harbour m{number} p{number} q{number} r{number}")).await;
    }
    let judge = reversing();
    let engine = world.engine.clone().with_reranker(Arc::clone(&judge) as _);
    let request = RecallRequest { limit: Some(24), ..judged("harbour") };
    let plain = by_relevance(&world.recall(&request).await);
    let recalled = by_relevance(&engine.recall.ask(&world.user, &request).await.unwrap());
    let ids = |of: &[(ItemId, f32)]| of.iter().map(|(id, _)| *id).collect::<BTreeSet<_>>();
    assert_eq!(ids(&recalled[..20]), ids(&plain[..20]));
    assert_ne!(recalled[..20], plain[..20]);
    assert_eq!(recalled[20..], plain[20..]);
    let Judge::Reversing(read) = judge.as_ref() else { panic!("another judge") };
    let read = read.lock().unwrap();
    assert_eq!(read.len(), 20);
    assert!(read.iter().all(|item| item.text.starts_with("user: harbour")), "{read:?}");
    assert!(read.iter().all(|item| item.before.starts_with("user: aside number")), "{read:?}");
}

#[tokio::test]
async fn a_cross_encoder_does_not_put_an_old_statement_before_its_update() {
    let world = World::new();
    world.say("a", "my locker number is 17").await;
    world.say("b", "my locker number is 52").await;
    world.say("c", "the locker room smells").await;
    let engine = world.engine.clone().with_reranker(reversing());
    let recalled = engine.recall.ask(&world.user, &judged("what is my locker number?")).await.unwrap();
    assert_eq!(
        contents(&recalled),
        ["the locker room smells", "my locker number is 52", "my locker number is 17"]
    );
}

#[tokio::test]
async fn a_failing_cross_encoder_changes_nothing() {
    for judge in [Judge::Failing, Judge::TooFew, Judge::NoNumber] {
        let (world, engine) = judged_world(Arc::new(judge)).await;
        let request = RecallRequest { explain: false, ..judged("trip") };
        let plain = world.recall(&request).await;
        let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
        assert_eq!(recalled.items, plain.items);
        let row = engine.requests.get(&world.user, recalled.request_id).await.unwrap();
        assert_eq!(row.error_stage, Some(ErrorStage::Retrieval));
    }
}

#[tokio::test]
async fn a_cross_encoder_is_not_called_without_candidates() {
    let (world, engine) = judged_world(Arc::new(Judge::NoNumber)).await;
    let recalled = engine.recall.ask(&user("nobody"), &judged("trip")).await.unwrap();
    assert_eq!((recalled.items.len(), recalled.error_stage), (0, None));
    drop(world);
}
