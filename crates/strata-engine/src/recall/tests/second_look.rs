//! The reader is asked where the scores leave in doubt whether anything helps to answer, and nowhere else.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::fixture::*;
use crate::Engine;
use crate::recall::{Deadline, RecallRequest, RecallSettings};
use strata_core::error::{Error, Result};
use strata_core::metric::{ErrorStage, LateStage};
use strata_core::ports::{
    InlineCompute, PairReading, Reader, SentenceInContext, SentencePair, SentenceReading, Timer,
    TurnInContext,
};

/// A reader that gives texts with a word a high judgement and all others a low one, and notes what it has read.
struct Judges {
    word: &'static str,
    read: Mutex<Vec<String>>,
    asked: Mutex<String>,
    fails: bool,
}

impl Judges {
    fn new(word: &'static str) -> Arc<Self> {
        Arc::new(Self { word, read: Mutex::default(), asked: Mutex::default(), fails: false })
    }

    fn read(&self) -> Vec<String> {
        self.read.lock().unwrap().clone()
    }
}

#[async_trait]
impl Reader for Judges {
    fn model(&self) -> &str {
        "judges"
    }

    async fn sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>> {
        Ok(vec![SentenceReading::default(); sentences.len()])
    }

    async fn relations(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>> {
        Ok(vec![PairReading::default(); pairs.len()])
    }

    async fn answers(&self, question: &str, turns: &[TurnInContext]) -> Result<Vec<f32>> {
        question.clone_into(&mut self.asked.lock().unwrap());
        self.read.lock().unwrap().extend(turns.iter().map(|turn| turn.text.clone()));
        match self.fails {
            true => Err(Error::unavailable("the reader is gone")),
            false => Ok(turns.iter().map(|t| if t.text.contains(self.word) { 4.0 } else { -4.0 }).collect()),
        }
    }
}

/// A small store, and a question that shares one word with one of its items: the scores leave a doubt.
async fn doubtful() -> (World, RecallRequest) {
    let world = World::new();
    world.say("a", "the lamp hangs in the kitchen above the long table").await;
    world.say("b", "our trip went well and the boat came back").await;
    let request = explained("which lamp is broken tonight");
    let best = world.recall(&request).await.trace.unwrap().candidates[0].relevance;
    assert!((0.08..0.35).contains(&best), "{best} leaves no doubt");
    (world, request)
}

fn with(world: &World, reader: &Arc<Judges>) -> Engine {
    world.engine.clone().with_reader(Arc::clone(reader) as _)
}

#[tokio::test]
async fn an_answer_in_other_words_is_served_if_the_reader_says_so() {
    let (world, request) = doubtful().await;
    assert!(world.recall(&request).await.items.is_empty());
    let recalled = with(&world, &Judges::new("kitchen")).recall.ask(&world.user, &request).await.unwrap();
    assert_eq!(contents(&recalled), ["the lamp hangs in the kitchen above the long table"]);
    let trace = recalled.trace.unwrap();
    assert_eq!(trace.candidates[0].judged, Some(4.0), "the trace names the judgement");
    let recalled = with(&world, &Judges::new("nothing")).recall.ask(&world.user, &request).await.unwrap();
    assert!(recalled.items.is_empty(), "a low judgement serves nothing");
}

#[tokio::test]
async fn the_reader_is_asked_with_a_question_mark() {
    let (world, request) = doubtful().await;
    let reader = Judges::new("kitchen");
    with(&world, &reader).recall.ask(&world.user, &request).await.unwrap();
    assert_eq!(*reader.asked.lock().unwrap(), "which lamp is broken tonight?");
}

#[tokio::test]
async fn a_clear_answer_and_clearly_none_are_not_read() {
    let (world, _) = doubtful().await;
    let reader = Judges::new("kitchen");
    for clear in ["the lamp hangs in the kitchen", "quarterly taxes of a bakery"] {
        with(&world, &reader).recall.ask(&world.user, &RecallRequest::new(clear)).await.unwrap();
    }
    assert_eq!(reader.read(), Vec::<String>::new());
}

#[tokio::test]
async fn a_large_store_is_not_read() {
    let (world, request) = doubtful().await;
    for part in 0..5 {
        let words: Vec<String> = (0..900).map(|word| format!("harbour{part}x{word}")).collect();
        world.say("c", &words.join(" ")).await;
    }
    let reader = Judges::new("kitchen");
    let recalled = with(&world, &reader).recall.ask(&world.user, &request).await.unwrap();
    let best = recalled.trace.unwrap().candidates[0].relevance;
    assert!((0.08..0.35).contains(&best), "{best} leaves no doubt");
    assert!(reader.read().is_empty());
}

#[tokio::test]
async fn a_setting_or_a_failing_reader_leaves_the_scores() {
    let (world, request) = doubtful().await;
    let plain = world.recall(&request).await.trace.unwrap().candidates[0].relevance;
    let reader = Judges::new("kitchen");
    let off = with(&world, &reader).with_changed_settings(|settings| {
        settings.recall = RecallSettings { second_look: false, ..settings.recall.clone() };
    });
    let recalled = off.recall.ask(&world.user, &request).await.unwrap();
    assert_eq!(recalled.trace.unwrap().candidates[0].relevance, plain);
    assert!(reader.read().is_empty());
    let failing =
        Arc::new(Judges { word: "kitchen", read: Mutex::default(), asked: Mutex::default(), fails: true });
    let recalled = with(&world, &failing).recall.ask(&world.user, &request).await.unwrap();
    assert_eq!((recalled.error_stage, recalled.late), (Some(ErrorStage::Retrieval), None), "the row says so");
    assert_eq!(recalled.trace.unwrap().candidates[0].relevance, plain);
}

/// A reader that uses up all the time that a request has: the timer's rest ends when it is asked.
#[derive(Default)]
struct Dawdles(Arc<Notify>);

#[async_trait]
impl Timer for Dawdles {
    async fn rest(&self, _: Duration) {
        self.0.notified().await;
    }
}

#[async_trait]
impl Reader for Dawdles {
    fn model(&self) -> &str {
        "dawdles"
    }

    async fn sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>> {
        Ok(vec![SentenceReading::default(); sentences.len()])
    }

    async fn relations(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>> {
        Ok(vec![PairReading::default(); pairs.len()])
    }

    async fn answers(&self, _: &str, _: &[TurnInContext]) -> Result<Vec<f32>> {
        self.0.notify_one();
        pending().await
    }
}

#[tokio::test]
async fn a_late_reader_leaves_the_scores_and_is_named() {
    let (world, request) = doubtful().await;
    let plain = world.recall(&request).await.trace.unwrap().candidates[0].relevance;
    let slow = Arc::new(Dawdles::default());
    let timer = Arc::clone(&slow) as Arc<dyn Timer>;
    let engine = world.engine.clone().with_runtime(Arc::new(InlineCompute), Arc::clone(&timer));
    let request =
        RecallRequest { deadline: Some(Deadline::after(&timer, Duration::from_millis(9))), ..request };
    let recalled = engine.with_reader(slow).recall.ask(&world.user, &request).await.unwrap();
    assert_eq!((recalled.error_stage, recalled.late), (None, Some(LateStage::SecondLook)));
    assert_eq!(recalled.trace.unwrap().candidates[0].relevance, plain);
}

/// The reader likes the words of the outdated turn; what replaced it is served before it all the same.
#[tokio::test]
async fn a_judgement_serves_no_outdated_turn_alone() {
    let world = World::new();
    world.say("a", "I live in Ghent.").await;
    world.engine.learning.learn_all().await.unwrap();
    world.clock.forward(86_400);
    world.say("b", "I moved to Bruges.").await;
    world.engine.learning.learn_all().await.unwrap();
    let request = explained("Ghent or where abouts tonight then");
    let recalled = with(&world, &Judges::new("Ghent")).recall.ask(&world.user, &request).await.unwrap();
    let candidates = &recalled.trace.as_ref().unwrap().candidates;
    for judgement in [4.0, -4.0] {
        assert!(candidates.iter().any(|found| found.judged == Some(judgement)), "{candidates:#?}");
    }
    let found = contents(&recalled);
    assert!(found.contains(&"I live in Ghent.".to_owned()), "{found:?}");
    assert_eq!(found[0], "The user lives in Bruges", "{found:?}");
}

/// With vectors, a question is read even if its words match an item well: it may be about the same thing and not answered.
#[tokio::test]
async fn a_question_is_read_in_spite_of_its_words() {
    let world = World::new();
    world.say("a", "the tall lamp in the kitchen hangs above the long table near our window").await;
    world.say("b", "our journey went well and the boat came back").await;
    let embedded = world.engine.clone().with_embedder(MeanEncoder::local("mean", 64));
    embedded.maintenance.maintain_all().await.unwrap();
    let ask = async |query: &str, reader: &Arc<Judges>| {
        let engine = embedded.clone().with_reader(Arc::clone(reader) as _);
        contents(&engine.recall.ask(&world.user, &RecallRequest::new(query)).await.unwrap())
    };
    let question = "which lamp hangs in the kitchen?";
    assert_eq!(ask(question, &Judges::new("lamp")).await.len(), 1);
    assert!(ask(question, &Judges::new("nothing")).await.is_empty(), "the reader sees no answer");
    let unread = Judges::new("nothing");
    assert_eq!(ask("the lamp in the kitchen above the long table", &unread).await.len(), 1);
    assert!(unread.read().is_empty(), "what is no question and fits clearly is not read");
}
