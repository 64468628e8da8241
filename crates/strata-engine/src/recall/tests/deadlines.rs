//! Models that answer after the deadline: the answer is worse, but it comes, and the row says which stage was late.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::fixture::*;
use crate::prompting::ChatQuestion;
use crate::recall::{Deadline, RecallRequest};
use crate::{Engine, PromptRequest, prompt::PromptFormat};
use strata_core::error::Result;
use strata_core::id::RequestId;
use strata_core::metric::LateStage;
use strata_core::ports::{
    Embedder, EmbedderCost, IdSource, InlineCompute, Passage, Reranker, Timer, TurnInContext,
};

/// A timer whose rests end when a model was asked. Before, they take for ever.
#[derive(Default)]
struct Hourglass(Notify);

#[async_trait]
impl Timer for Hourglass {
    async fn rest(&self, _: Duration) {
        self.0.notified().await;
    }
}

/// Models that use up all the time that a request has, and count their calls.
struct Slow {
    hourglass: Arc<Hourglass>,
    passages: Arc<MeanEncoder>,
    calls: AtomicUsize,
}

impl Slow {
    fn new(hourglass: &Arc<Hourglass>) -> Arc<Self> {
        let passages = MeanEncoder::local("mean", 64);
        Arc::new(Self { hourglass: Arc::clone(hourglass), passages, calls: AtomicUsize::new(0) })
    }

    async fn think<T>(&self) -> T {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.hourglass.0.notify_one();
        pending().await
    }
}

#[async_trait]
impl Embedder for Slow {
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
        self.think().await
    }
}

#[async_trait]
impl Reranker for Slow {
    fn model(&self) -> &str {
        "slow"
    }

    async fn score(&self, _: &str, _: &[TurnInContext]) -> Result<Vec<f32>> {
        self.think().await
    }
}

/// A world with embedded turns, and an hourglass.
async fn slow_world() -> (World, Arc<Hourglass>) {
    let world = World::new();
    world.say("a", "the ferry leaves at nine").await;
    world.say("b", "渡轮 九点 出发").await;
    world.say("c", "the lamp is on").await;
    world.say("d", "the ferry to the islands is late").await;
    world.say("e", "渡轮 晚点 了").await;
    let embedding = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    embedding.maintenance.maintain_all().await.unwrap();
    (world, Arc::default())
}

/// The engine with the hourglass as its timer.
fn timed(world: &World, hourglass: &Arc<Hourglass>) -> Engine {
    world.engine.clone().with_runtime(Arc::new(InlineCompute), Arc::clone(hourglass) as Arc<dyn Timer>)
}

fn until(hourglass: &Arc<Hourglass>, query: &str) -> RecallRequest {
    let timer = Arc::clone(hourglass) as Arc<dyn Timer>;
    let deadline = Some(Deadline::after(&timer, Duration::from_millis(200)));
    RecallRequest { deadline, rerank: Some(true), ..explained(query) }
}

#[tokio::test]
async fn without_the_embedder_in_time_words_answer() {
    let (world, hourglass) = slow_world().await;
    let slow = Slow::new(&hourglass);
    let engine = timed(&world, &hourglass).with_embedder(slow.clone());
    let recalled =
        engine.recall.ask(&world.user, &until(&hourglass, "when does the ferry leave")).await.unwrap();
    assert_eq!(contents(&recalled)[0], "the ferry leaves at nine");
    assert_eq!((recalled.late, recalled.error_stage), (Some(LateStage::Embedding), None));
    assert_eq!((recalled.vector_hits, slow.calls.load(Ordering::SeqCst)), (0, 1));
    let row = engine.requests.get(&world.user, recalled.request_id).await.unwrap();
    assert_eq!(row.late, Some(LateStage::Embedding));
    // Without an embedder the answer is the same.
    let plain = world.recall(&RecallRequest::new("when does the ferry leave")).await;
    assert_eq!(contents(&plain), contents(&recalled));
    assert_eq!(plain.late, None);
}

#[tokio::test]
async fn an_embedder_in_time_is_used() {
    let (world, hourglass) = slow_world().await;
    let engine = timed(&world, &hourglass).with_embedder(MeanEncoder::local("mean", 64));
    let recalled = engine.recall.ask(&world.user, &until(&hourglass, "which ferry")).await.unwrap();
    assert_eq!((recalled.late, recalled.vector_hits > 0), (None, true));
    let without = RecallRequest { deadline: None, ..until(&hourglass, "which ferry") };
    let without = engine.recall.ask(&world.user, &without).await.unwrap();
    let scores = |recalled: &crate::recall::Recalled| {
        recalled.items.iter().map(|found| (found.item.id(), found.relevance)).collect::<Vec<_>>()
    };
    assert_eq!(scores(&recalled), scores(&without), "a deadline that is kept changes nothing");
}

#[tokio::test]
async fn without_the_cross_encoder_in_time_the_order_stays() {
    let (world, hourglass) = slow_world().await;
    let slow = Slow::new(&hourglass);
    let engine = timed(&world, &hourglass).with_reranker(slow.clone());
    for query in ["when does the ferry leave", "渡轮 几点"] {
        let recalled = engine.recall.ask(&world.user, &until(&hourglass, query)).await.unwrap();
        let plain = world.recall(&RecallRequest::new(query)).await;
        assert_eq!(contents(&recalled), contents(&plain), "{query}");
        assert_eq!(recalled.late, Some(LateStage::Reranking), "{query}");
    }
    assert_eq!(slow.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn after_the_deadline_no_model_is_asked() {
    let (world, hourglass) = slow_world().await;
    let (embedder, reranker) = (Slow::new(&hourglass), Slow::new(&hourglass));
    let engine = timed(&world, &hourglass).with_embedder(embedder.clone()).with_reranker(reranker.clone());
    let recalled =
        engine.recall.ask(&world.user, &until(&hourglass, "when does the ferry leave")).await.unwrap();
    assert_eq!(contents(&recalled)[0], "the ferry leaves at nine");
    assert_eq!(recalled.late, Some(LateStage::Embedding), "the first stage that was late");
    let calls = |model: &Slow| model.calls.load(Ordering::SeqCst);
    assert_eq!((calls(&embedder), calls(&reranker)), (1, 0));
}

#[tokio::test]
async fn prompts_and_chats_pass_their_deadline_on() {
    let (world, hourglass) = slow_world().await;
    let engine = timed(&world, &hourglass).with_embedder(Slow::new(&hourglass));
    let deadline = Some(Duration::from_millis(200));
    let request = PromptRequest {
        format: PromptFormat::Chat,
        deadline,
        ..PromptRequest::new(session("new"), "when does the ferry leave")
    };
    let prompted = engine.prompting.prompt(&world.user, &request).await.unwrap();
    let messages = prompted.prompt.messages().unwrap();
    assert!(messages[0].content.contains("the ferry leaves at nine"), "{messages:?}");
    let row = engine.requests.get(&world.user, prompted.request_id.unwrap()).await.unwrap();
    assert_eq!(row.late, Some(LateStage::Embedding));

    let question = ChatQuestion {
        session: session("other"),
        question: "when does the ferry leave".to_owned(),
        deadline,
        ..ChatQuestion::default()
    };
    let snapshot = engine.prompting.chat_snapshot(&world.user, &question.session).await.unwrap();
    let id = RequestId(world.ids.next());
    let memory = engine.prompting.chat_memory(&world.user, id, &question, snapshot).await.unwrap();
    assert!(memory.block.unwrap().contains("the ferry leaves at nine"));
    assert_eq!((memory.row.late, memory.row.error_stage), (Some(LateStage::Embedding), None));
}
