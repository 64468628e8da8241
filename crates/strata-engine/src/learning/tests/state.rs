//! The state of a session, read by a reader in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::fixture::*;
use crate::prompt::{History, PromptSettings, SummarySettings};
use crate::{Ended, Engine, PromptRequest};
use strata_core::error::{Error, Result};
use strata_core::ports::{
    CaseRole, PairReading, Reader, Relation, SentenceInContext, SentencePair, SentenceReading, TurnInContext,
};
use strata_core::state::{DiagnosticStatus, State};
use strata_core::turn::{NewMessage, Role};

/// A reader that finds the role of a sentence by a mark at its end, such as `(cause)`, and ends everything that «that»
/// refers to.
#[derive(Default)]
struct Marks {
    fails: bool,
    asked: AtomicUsize,
    contexts: std::sync::Mutex<Vec<String>>,
}

#[async_trait]
impl Reader for Marks {
    fn model(&self) -> &str {
        "marks"
    }

    async fn sentences(&self, sentences: &[SentenceInContext]) -> Result<Vec<SentenceReading>> {
        if self.fails {
            return Err(Error::internal("the network is damaged"));
        }
        let read = |sentence: &SentenceInContext| {
            let roles = [
                ("(fact)", CaseRole::Fact),
                ("(guess)", CaseRole::Hypothesis),
                ("(out)", CaseRole::RuledOut),
                ("(cause)", CaseRole::Cause),
                ("(solved)", CaseRole::Resolved),
                ("(todo)", CaseRole::Todo),
                ("(done)", CaseRole::Done),
            ];
            let role = roles.iter().find(|(mark, _)| sentence.text.contains(mark));
            let mut reading = SentenceReading::default();
            reading.case[role.map_or(CaseRole::Nothing, |(_, role)| *role) as usize] = 1.0;
            reading
        };
        self.asked.fetch_add(sentences.len(), Ordering::SeqCst);
        // Questions about roles have no surroundings but the sentence before.
        let of_roles = sentences.iter().filter(|one| one.previous.contains(": "));
        self.contexts.lock().unwrap().extend(of_roles.map(|one| one.previous.clone()));
        Ok(sentences.iter().map(read).collect())
    }

    async fn relations(&self, pairs: &[SentencePair]) -> Result<Vec<PairReading>> {
        let read = |pair: &SentencePair| {
            let mut reading = PairReading([1.0, 0.0, 0.0, 0.0]);
            if pair.new.starts_with("That") {
                reading = PairReading([0.1, 0.0, 0.0, 0.0]);
                reading.0[Relation::Ends as usize] = 0.9;
            }
            reading
        };
        Ok(pairs.iter().map(read).collect())
    }

    async fn answers(&self, _: &str, turns: &[TurnInContext]) -> Result<Vec<f32>> {
        Ok(vec![0.0; turns.len()])
    }
}

fn reading(world: &World, fails: bool) -> (Engine, Arc<Marks>) {
    let reader = Arc::new(Marks { fails, ..Marks::default() });
    (world.engine.clone().with_reader(Arc::clone(&reader) as Arc<dyn Reader>), reader)
}

async fn said(world: &World, engine: &Engine, role: Role, text: &str) {
    let message = vec![NewMessage::new(role, text)];
    engine.recording.record(&world.user, &session("s"), message, None).await.unwrap();
}

async fn state(world: &World, engine: &Engine) -> State {
    engine.sessions.state(&world.user, &session("s")).await.unwrap()
}

#[tokio::test]
async fn the_roles_of_both_speakers_fill_the_state_in_the_background() {
    let world = world();
    let (engine, reader) = reading(&world, false);
    said(&world, &engine, Role::User, "The mill stands still (fact). Maybe the belt slips (guess).").await;
    said(&world, &engine, Role::Assistant, "Check it. I will bring grease (todo).").await;
    assert!(
        state(&world, &engine).await.diagnostic.facts.is_empty(),
        "recording does not wait for the reader"
    );
    engine.learning.learn_all().await.unwrap();
    let now = state(&world, &engine).await;
    assert_eq!(now.diagnostic.facts, ["The mill stands still (fact)"]);
    assert_eq!(now.diagnostic.hypotheses, ["Maybe the belt slips (guess)"]);
    assert_eq!((now.active_tasks.len(), now.observed.judged), (1, 2));
    assert!(reader.contexts.lock().unwrap().contains(&"user: Maybe the belt slips (guess).".to_owned()));

    said(&world, &engine, Role::User, "That was a false trail (out). It was the sluice (cause).").await;
    said(&world, &engine, Role::User, "That is brought (done). The mill turns again (solved).").await;
    said(&world, &engine, Role::Assistant, "Good.").await;
    engine.learning.learn_all().await.unwrap();
    let now = state(&world, &engine).await;
    assert!(now.diagnostic.hypotheses.is_empty(), "{:?}", now.diagnostic);
    assert_eq!(now.diagnostic.root_causes, ["It was the sluice (cause)"]);
    assert_eq!(now.diagnostic.status, DiagnosticStatus::Resolved);
    assert_eq!(now.active_tasks[0].status, "Completed");
    let asked = reader.asked.load(Ordering::SeqCst);
    engine.learning.read_state(&world.user, &session("s")).await.unwrap();
    assert_eq!(reader.asked.load(Ordering::SeqCst), asked, "no turn is judged twice");
}

#[tokio::test]
async fn a_reader_that_fails_leaves_the_state_of_the_patterns() {
    let world = world_with(|settings| settings.learn.max_attempts = 1);
    let (engine, _) = reading(&world, true);
    said(&world, &engine, Role::Assistant, "Root cause: the sluice is shut").await;
    let ended = engine.learning.learn_all().await.unwrap();
    assert!(ended.iter().any(|one| one.kind == "state" && one.ended == Ended::Done), "{ended:?}");
    let now = state(&world, &engine).await;
    assert_eq!(now.diagnostic.root_causes, ["the sluice is shut"]);
    assert_eq!(now.observed.judged, 0, "a later job reads the turn");
}

#[tokio::test]
async fn a_client_that_replaces_the_state_keeps_it() {
    let world = world();
    let (engine, _) = reading(&world, false);
    said(&world, &engine, Role::User, "The mill stands still (fact).").await;
    engine.learning.learn_all().await.unwrap();
    engine.sessions.put_state(&world.user, &session("s"), State::default()).await.unwrap();
    engine.learning.read_state(&world.user, &session("s")).await.unwrap();
    let now = state(&world, &engine).await;
    assert_eq!((now.diagnostic.facts.len(), now.observed.judged), (0, 1));
}

#[tokio::test]
async fn a_long_history_is_judged_job_by_job() {
    let world = world();
    let (engine, _) = reading(&world, false);
    for number in 0..70 {
        said(&world, &engine, Role::User, &format!("Sack {number} is full (fact).")).await;
    }
    engine.learning.learn_all().await.unwrap();
    assert_eq!(state(&world, &engine).await.observed.judged, 70);
    assert!(jobs_of(&world, "state").await.len() >= 3);
}

#[tokio::test]
async fn the_reader_chooses_the_sentences_of_the_summary_unless_a_setting_forbids_it() {
    for by_reader in [true, false] {
        let world = world();
        let summary = SummarySettings { by_reader, ..SummarySettings::default() };
        let settings = PromptSettings {
            summary,
            history: History::Rolling,
            recent_exchanges: 1,
            fold_step: 2,
            ..PromptSettings::default()
        };
        let engine = reading(&world, false).0.with_prompts(settings).unwrap();
        for _ in 0..4 {
            said(&world, &engine, Role::User, "How is it?").await;
            let reply = "Well, let me see about it. The mill stands still (fact). Good luck with that.";
            said(&world, &engine, Role::Assistant, reply).await;
            engine.learning.learn_all().await.unwrap();
        }
        let request = PromptRequest::new(session("s"), "and now?");
        let prompted = engine.prompting.prompt(&world.user, &request).await.unwrap();
        let text = prompted.prompt.text().unwrap();
        let (_, rest) = text.split_once("<conversation_summary>").unwrap();
        let (summary, _) = rest.split_once("</conversation_summary>").unwrap();
        assert!(summary.contains("The mill stands still (fact)."), "{summary}");
        assert_eq!(summary.contains("let me see about it"), !by_reader, "{summary}");
    }
}
