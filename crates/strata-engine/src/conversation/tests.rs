//! Chats over the reference store with a scripted model, one test for each branch.

use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::NewMemory;
use crate::recall::tests::fixture::{World, session};
use strata_core::memory::MemoryKind;
use strata_core::metric::RequestMetric;
use strata_core::store::{InMemoryStore, JobQuery, Store};
use strata_core::turn::{HiddenReason, Turn};

/// The model's action after it has sent its pieces.
enum Then {
    Ends,
    Fails,
    ThinksForever,
}

/// A model that sends scripted pieces and keeps the requests.
struct Scripted {
    pieces: &'static [&'static str],
    then: Then,
    asked: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    fn new(pieces: &'static [&'static str], then: Then) -> Self {
        Self { pieces, then, asked: Mutex::default() }
    }

    /// The messages of the last request, as `role: content`.
    fn shown(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let messages = &asked.last().unwrap().messages;
        messages.iter().map(|message| format!("{}: {}", message.role.as_str(), message.content)).collect()
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        self.stream(request, &mut |_| ()).await
    }

    async fn stream(
        &self,
        request: &ChatRequest,
        on_text: &mut (dyn for<'t> FnMut(&'t str) + Send),
    ) -> Result<ChatAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        self.pieces.iter().for_each(|piece| on_text(piece));
        match self.then {
            Then::Ends => {
                let spent = Spent { calls: 1, input_tokens: 7, output_tokens: 3 };
                Ok(ChatAnswer { text: self.pieces.concat(), spent })
            }
            Then::Fails => Err(Error::unavailable("the endpoint answers 503").retryable()),
            Then::ThinksForever => pending().await,
        }
    }
}

/// Lets this many rests pass at once, and never ends another.
struct Rests(AtomicU32);

#[async_trait]
impl Timer for Rests {
    async fn rest(&self, _: Duration) {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            pending::<()>().await;
        }
    }
}

impl World {
    async fn chat(&self, message: &str, model: &Scripted) -> ChatReply {
        self.chat_until(message, model, &mut String::new(), pending()).await.unwrap()
    }

    async fn chat_until(
        &self,
        message: &str,
        model: &Scripted,
        heard: &mut String,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<ChatReply> {
        let mut on_text = |piece: &str| {
            heard.push_str(piece);
            heard.push('|');
        };
        let (stop, timer) = (pin!(stop), Rests(AtomicU32::new(0)));
        let talk = Talk { model, instructions: None, on_text: &mut on_text, stop, timer: &timer };
        self.engine.conversation.chat(&self.user, &session("s"), message, talk).await
    }

    async fn said(&self) -> Vec<Turn> {
        self.engine.sessions.turns(&self.user, &session("s"), None, 100).await.unwrap()
    }

    async fn row(&self, reply: &ChatReply) -> RequestMetric {
        self.engine.requests.get(&self.user, reply.request_id).await.unwrap()
    }

    async fn awaited(&self) -> usize {
        let query = JobQuery { limit: 100, ..JobQuery::default() };
        let jobs = self.store.jobs(&self.user, &query).await.unwrap();
        jobs.iter().filter(|job| job.kind == "reply").count()
    }
}

#[tokio::test]
async fn a_reply_is_streamed_recorded_and_counted() {
    let world = World::new();
    world.clock.step(1_000);
    let model = Scripted::new(&["Good ", "choice."], Then::Ends);
    let mut heard = String::new();
    let reply = world.chat_until("a journey by train", &model, &mut heard, pending()).await.unwrap();
    assert_eq!((reply.text.as_str(), heard.as_str()), ("Good choice.", "Good |choice.|"));
    assert_eq!(reply.status, ReplyStatus::Complete);
    assert_eq!(reply.spent.output_tokens, 3);
    let said = world.said().await;
    assert_eq!((said[0].role, said[0].content.as_str()), (Role::User, "a journey by train"));
    assert_eq!((said[1].role, said[1].content.as_str()), (Role::Assistant, "Good choice."));
    assert_eq!(world.awaited().await, 0);
    let rows = world.engine.requests.list(&world.user, None, 10).await.unwrap();
    assert_eq!(rows.len(), 1, "one row a request");
    let row = world.row(&reply).await;
    assert_eq!((row.query.as_str(), row.error_stage), ("a journey by train", None));
    assert!(row.latency_llm_us.unwrap() > 0);
}

#[tokio::test]
async fn the_model_is_shown_the_session_and_items_of_others() {
    let world = World::new();
    world.say("other", "the dog sleeps in the flat").await;
    let model = Scripted::new(&["noted"], Then::Ends);
    world.chat("the dog is called Bello", &model).await;
    let reply = world.chat("where does the dog sleep", &model).await;
    let shown = model.shown();
    assert_eq!(shown[..2], ["user: the dog is called Bello", "assistant: noted"]);
    assert_eq!(shown.len(), 3);
    assert!(shown[2].contains("[2024-06-01 user, today] the dog sleeps in the flat"), "{shown:?}");
    assert!(shown[2].ends_with("\n\nwhere does the dog sleep"), "{shown:?}");
    let recalled: Vec<_> = reply.recalled.iter().map(|found| found.item.content()).collect();
    assert_eq!(recalled, ["the dog sleeps in the flat"], "neither the question nor what is shown anyway");
    assert_eq!(world.row(&reply).await.context_items, 1);
}

#[tokio::test]
async fn the_same_words_twice_are_two_turns() {
    let world = World::new();
    let model = Scripted::new(&["ok"], Then::Ends);
    world.chat("yes", &model).await;
    world.chat("yes", &model).await;
    let said: Vec<_> = world.said().await.into_iter().map(|turn| (turn.content, turn.hidden)).collect();
    let turn = |text: &str| (text.to_owned(), None);
    assert_eq!(said, [turn("yes"), turn("ok"), turn("yes"), turn("ok")]);
}

#[tokio::test]
async fn a_failure_is_a_reply_in_the_users_language_and_an_error_turn() {
    let world = World::new();
    let model = Scripted::new(&[], Then::Fails);
    for (message, says) in [("a trip to the sea", "Nothing was lost"), ("我想去旅行", "没有丢失")] {
        let reply = world.chat(message, &model).await;
        assert!(reply.text.contains(says), "{}", reply.text);
        let reason = "the endpoint answers 503".to_owned();
        assert_eq!(reply.status, ReplyStatus::Failed { reason: reason.clone() });
        let row = world.row(&reply).await;
        assert_eq!(row.error_stage, Some(ErrorStage::LlmReply));
        assert!(row.latency_llm_us.is_some());
        let said = world.said().await;
        let [.., question, error] = &said[..] else { panic!("{said:?}") };
        assert_eq!((question.content.as_str(), question.hidden), (message, None));
        assert_eq!(error.hidden.map(|hidden| hidden.reason), Some(HiddenReason::Error));
        assert_eq!((&error.content, &error.metadata["error"]["message"]), (&reply.text, &json!(reason)));
    }
    assert_eq!(world.awaited().await, 0);
    let model = Scripted::new(&["fine"], Then::Ends);
    world.chat("again", &model).await;
    assert!(model.shown().iter().all(|shown| !shown.starts_with("assistant")), "{:?}", model.shown());
}

#[tokio::test]
async fn an_interrupted_reply_keeps_the_part_that_arrived() {
    let world = World::new();
    let reply = world.chat("a trip", &Scripted::new(&["By train, "], Then::Fails)).await;
    assert!(reply.text.starts_with("By train, \n\nSorry"), "{}", reply.text);
    assert!(matches!(reply.status, ReplyStatus::Failed { .. }));
    let said = world.said().await;
    assert_eq!((said[1].content.as_str(), said[1].hidden), ("By train, ", None));
    assert!(said[1].notes.interrupted);
    assert_eq!(world.row(&reply).await.error_stage, Some(ErrorStage::LlmReply));
}

#[tokio::test]
async fn a_reply_that_is_stopped_is_recorded_as_far_as_it_came() {
    let world = World::new();
    for (pieces, hidden) in [(&["By ", "train"][..], None), (&[], Some(HiddenReason::Error))] {
        let model = Scripted::new(pieces, Then::ThinksForever);
        let reply = world.chat_until("a trip", &model, &mut String::new(), ready(())).await.unwrap();
        assert_eq!((reply.text, reply.status), (pieces.concat(), ReplyStatus::Interrupted));
        let turn = world.said().await.pop().unwrap();
        assert_eq!((turn.content, turn.hidden.map(|hidden| hidden.reason)), (pieces.concat(), hidden));
        assert!(turn.notes.interrupted);
    }
    assert_eq!(world.awaited().await, 0);
}

#[tokio::test]
async fn a_reply_that_takes_long_is_held() {
    let world = World::new();
    let model = Scripted::new(&["By train"], Then::ThinksForever);
    // Each hold renews the lease for half a minute.
    let timer = Rests(AtomicU32::new(3));
    let waits = async {
        while timer.0.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        let query = JobQuery { limit: 9, ..JobQuery::default() };
        let jobs = world.store.jobs(&world.user, &query).await.unwrap();
        let job = jobs.iter().find(|job| job.kind == "reply").unwrap();
        let until = job.lease.as_ref().unwrap().until;
        assert!(until > job.created_at + SignedDuration::from_secs(30), "{job:?}");
    };
    world.clock.step(1_000_000);
    let mut on_text = |_: &str| ();
    let talk = Talk {
        model: &model,
        instructions: Some("Be brief."),
        on_text: &mut on_text,
        stop: pin!(waits),
        timer: &timer,
    };
    let reply = world.engine.conversation.chat(&world.user, &session("s"), "a trip", talk).await.unwrap();
    assert_eq!(reply.status, ReplyStatus::Interrupted);
    assert_eq!(model.shown()[0], "system: Be brief.");
}

#[tokio::test]
async fn a_message_that_cannot_be_recorded_is_an_error_and_asks_no_model() {
    let world = World::with(|settings| settings.limits.max_turn_bytes = 8);
    let model = Scripted::new(&["ok"], Then::Ends);
    for (message, says) in
        [(" \n", "the message is empty"), ("much too long", "max_turn_bytes"), ("\0", "NUL")]
    {
        let error = world.chat_until(message, &model, &mut String::new(), pending()).await.unwrap_err();
        assert!(error.message().contains(says), "{error}");
        assert!(world.engine.conversation.chat_alone(&world.user, &session("s"), message).await.is_err());
    }
    assert!(model.asked.lock().unwrap().is_empty());
    assert!(InMemoryStore::session(&world.store, &world.user, &session("s")).await.unwrap().is_none());
}

#[tokio::test]
async fn memory_that_fails_does_not_fail_the_chat() {
    // Recall refuses a request for zero items.
    let world = World::with(|settings| settings.recall.default_top_k = 0);
    let model = Scripted::new(&["By train."], Then::Ends);
    let reply = world.chat("a trip", &model).await;
    assert_eq!((reply.text.as_str(), &reply.status), ("By train.", &ReplyStatus::Complete));
    assert_eq!(world.row(&reply).await.error_stage, Some(ErrorStage::Retrieval));
    let reply = world.engine.conversation.chat_alone(&world.user, &session("s"), "a trip").await.unwrap();
    assert_eq!((reply.status.clone(), reply.recalled.len()), (ReplyStatus::MemoryAlone, 0));
    assert_eq!(world.row(&reply).await.error_stage, Some(ErrorStage::Retrieval));
    assert_eq!(world.said().await.len(), 3);
}

#[tokio::test]
async fn without_a_model_memory_tells_its_memories() {
    let world = World::new();
    let alone = async |message: &str| {
        let reply = world.engine.conversation.chat_alone(&world.user, &session("s"), message).await.unwrap();
        assert_eq!(reply.status, ReplyStatus::MemoryAlone);
        world.clock.forward(60);
        reply
    };
    let reply = alone("I live in Lisbon").await;
    assert!(reply.text.starts_with("Learned: ") && reply.text.contains("Lisbon"), "{}", reply.text);
    assert_eq!(reply.learned.len(), 1);
    let reply = alone("Where do I live?").await;
    assert!(reply.text.starts_with("This is what I remember:\n• "), "{}", reply.text);
    assert!(reply.text.contains("Lisbon"), "{}", reply.text);
    let reply = alone("I live in Porto").await;
    assert!(reply.text.starts_with("Changed: ") && reply.text.contains("before: "), "{}", reply.text);
    assert_eq!(alone("hm").await.text, ENGLISH_NOTED);
    assert!(alone("我对花生过敏").await.text.starts_with("记住了："));
    let reply = alone("我对什么过敏？").await;
    assert!(reply.text.starts_with("我记得这些：\n• [since 2024-06-01] "), "{}", reply.text);
    let roles: Vec<Role> = world.said().await.into_iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User; 6], "memory's own words are not recorded");
    assert_eq!(world.engine.requests.list(&world.user, None, 10).await.unwrap().len(), 6);
    let stranger = strata_core::UserId::new("eve").unwrap();
    let reply =
        world.engine.conversation.chat_alone(&stranger, &session("s"), "Where do I live?").await.unwrap();
    assert_eq!(reply.text, "I don't know. I remember nothing about that yet.");
}

const ENGLISH_NOTED: &str = "Noted, word for word. Ask me about it whenever you like.";

/// A turn with several facts is shown if the question asks for one that did not become a memory.
#[tokio::test]
async fn a_turn_is_shown_beside_a_memory_that_tells_only_a_part_of_it() {
    for (said, question, answer) in [
        (
            "I'm a nurse but Tomas works as a baker, and Wren has a pollen allergy.",
            "who has a pollen allergy?",
            "Wren",
        ),
        ("我是护士，不过小川开面包店，阿雯对花粉过敏。", "谁对花粉过敏？", "阿雯"),
    ] {
        let world = World::new();
        let alone = async |message: &str| {
            world.engine.conversation.chat_alone(&world.user, &session("s"), message).await
        };
        let learned = alone(said).await.unwrap().learned;
        assert!(!learned.is_empty(), "{said}");
        world.clock.forward(60);
        let reply = alone(question).await.unwrap();
        assert!(reply.text.contains(answer), "{}", reply.text);
    }
    // A memory that tells all of its turn stands for it.
    let world = World::new();
    let alone =
        async |message: &str| world.engine.conversation.chat_alone(&world.user, &session("s"), message).await;
    alone("I live in Trondheim.").await.unwrap();
    world.clock.forward(60);
    let reply = alone("Where do I live?").await.unwrap();
    assert_eq!(reply.text.matches("Trondheim").count(), 1, "{}", reply.text);
}

#[tokio::test]
async fn without_an_answer_memory_says_so_in_the_users_language() {
    let world = World::new();
    world.say_all("s", &["The kettle is broken.", "ok", "Where is the boat moored?"]).await;
    for (question, says) in
        [("What colour is the tractor?", "I don't know."), ("拖拉机是什么颜色的？", "我不知道。")]
    {
        let reply = world.engine.conversation.chat_alone(&world.user, &session("s"), question).await.unwrap();
        assert!(reply.text.starts_with(says), "{}", reply.text);
        assert!(reply.recalled.is_empty());
    }
}

/// The beginnings of lines count: two texts that fit the budget by themselves do not fit it as lines.
#[tokio::test]
async fn lines_are_counted_as_they_are_shown() {
    let world = World::with(|settings| settings.recall.budget.max_tokens = 8);
    world.say("other", "the dog sleeps well").await;
    world.say("third", "our dog sleeps long").await;
    let model = Scripted::new(&["noted"], Then::Ends);
    let reply = world.chat("where does the dog sleep", &model).await;
    let shown = model.shown();
    assert_eq!(shown[0].matches("dog sleeps").count(), 1, "{shown:?}");
    let row = world.row(&reply).await;
    assert_eq!((row.context_items, row.estimated_tokens, row.truncated), (1, 6, true));
}

/// A standing instruction guides a model. It answers a question only if the question asks for instructions.
#[tokio::test]
async fn a_standing_instruction_answers_no_unrelated_question() {
    let world = World::new();
    let instruction =
        NewMemory { kind: MemoryKind::Instruction, ..NewMemory::new("Always give temperatures in kelvin") };
    world.engine.memories.add(&world.user, vec![instruction]).await.unwrap();
    let alone = async |question: &str| {
        world.engine.conversation.chat_alone(&world.user, &session("s"), question).await.unwrap().text
    };
    for question in ["Where is the canoe moored?", "我的独木舟停在哪里？"] {
        let text = alone(question).await;
        assert!(text.starts_with("I don't know.") || text.starts_with("我不知道。"), "{question}: {text}");
    }
    let text = alone("Which instructions have I given you?").await;
    assert!(text.contains("Always give temperatures in kelvin"), "{text}");
    // Said right before the question, it is no answer either.
    let said = world.say("t", "Always call me captain.").await;
    let instruction = NewMemory {
        kind: MemoryKind::Instruction,
        source_turns: vec![said],
        ..NewMemory::new("Always call the user captain")
    };
    world.engine.memories.add(&world.user, vec![instruction]).await.unwrap();
    let reply =
        world.engine.conversation.chat_alone(&world.user, &session("t"), "Where is the canoe moored?").await;
    assert!(reply.unwrap().text.starts_with("I don't know."));
}
