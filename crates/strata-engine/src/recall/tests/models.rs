//! Embedders and cross-encoders that work, fail, return wrong results or change. A failing model never makes a recall
//! worse than no model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::fixture::*;
use crate::recall::{Order, RecallRequest};
use crate::{EmbedItems, Engine, NewMemory};
use strata_core::error::{Error, Result};
use strata_core::id::ItemId;
use strata_core::metric::ErrorStage;
use strata_core::ports::{Embedder, EmbedderCost, Passage, Reranker};
use strata_core::store::Store;
use strata_core::trace::Outcome;
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

/// A cross-encoder that prefers later candidates, or misbehaves.
enum Judge {
    Reversing,
    Failing,
    TooFew,
    NoNumber,
}

#[async_trait]
impl Reranker for Judge {
    fn model(&self) -> &str {
        "judge"
    }

    async fn score(&self, _: &str, texts: &[String]) -> Result<Vec<f32>> {
        match self {
            Self::Reversing => Ok((0..texts.len()).map(|place| place as f32 - 1.0).collect()),
            Self::Failing => Err(Error::unavailable("no model")),
            Self::TooFew => Ok(vec![1.0]),
            Self::NoNumber => Ok(vec![f32::NAN; texts.len()]),
        }
    }
}

async fn judged_world(judge: Judge) -> (World, Engine) {
    let world = World::new();
    for (number, text) in ["trip trip trip", "trip trip", "trip", "a trip then"].iter().enumerate() {
        world.say(&format!("s{number}"), text).await;
    }
    let engine = world.engine.clone().with_reranker(Arc::new(judge));
    (world, engine)
}

#[tokio::test]
async fn a_cross_encoder_decides_the_order() {
    let (world, engine) = judged_world(Judge::Reversing).await;
    let request = RecallRequest { order: Order::Relevance, limit: Some(1), ..explained("trip") };
    let plain = world.recall(&request).await;
    let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
    // The cross-encoder reads three times the wanted number: logits -1, 0 and 1 for the first three.
    let sigmoid = 1.0 / (1.0 + (-1.0_f32).exp());
    assert!((recalled.items[0].relevance - sigmoid).abs() < 1e-6);
    let before: Vec<ItemId> = plain.trace.unwrap().candidates.iter().map(|found| found.item).collect();
    let trace = recalled.trace.unwrap();
    let after: Vec<ItemId> = trace.candidates.iter().map(|found| found.item).collect();
    assert_eq!(after, [before[2], before[1], before[0], before[3]]);
    let outcomes: Vec<&Outcome> = trace.candidates.iter().map(|found| &found.outcome).collect();
    let left = &Outcome::NotChosen;
    assert_eq!(outcomes, [&Outcome::Served(1), left, left, left]);
    assert_eq!(trace.candidates.iter().map(|found| found.place).collect::<Vec<_>>(), [1, 2, 3, 4]);
    // In the served order, the logit -1 is below the threshold: its sigmoid is 0.27.
    let served = RecallRequest { order: Order::Served, limit: Some(5), ..request };
    let recalled = engine.recall.ask(&world.user, &served).await.unwrap();
    assert_eq!(recalled.items.len(), 3);
    let below = recalled.trace.unwrap().candidates.pop().unwrap();
    assert_eq!((below.item, below.outcome), (before[0], Outcome::BelowThreshold));
}

#[tokio::test]
async fn a_failing_cross_encoder_changes_nothing() {
    for judge in [Judge::Failing, Judge::TooFew, Judge::NoNumber] {
        let (world, engine) = judged_world(judge).await;
        let request = RecallRequest { order: Order::Relevance, ..RecallRequest::new("trip") };
        let plain = world.recall(&request).await;
        let recalled = engine.recall.ask(&world.user, &request).await.unwrap();
        assert_eq!(recalled.items, plain.items);
        let row = engine.requests.get(&world.user, recalled.request_id).await.unwrap();
        assert_eq!(row.error_stage, Some(ErrorStage::Retrieval));
    }
}

#[tokio::test]
async fn a_cross_encoder_is_not_called_without_candidates() {
    let (world, engine) = judged_world(Judge::NoNumber).await;
    let recalled = engine.recall.ask(&user("nobody"), &RecallRequest::new("trip")).await.unwrap();
    assert_eq!((recalled.items.len(), recalled.error_stage), (0, None));
    drop(world);
}
