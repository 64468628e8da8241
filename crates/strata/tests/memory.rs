//! The façade for Rust programs, each method on a real file that is opened again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the answer")]

use std::sync::{Arc, Mutex};

use strata::ports::{ChatAnswer, ChatModel, ChatRequest};
use strata::prompt::{PromptBody, PromptFormat};
use strata::{Error, ErrorKind, Memory, MemoryBuilder, MemoryKind, RecallRequest, ReplyStatus, Result, Role};
use strata::{NewMemory, NewMessage};
use tempfile::TempDir;

/// A file that is opened again and again.
struct File(TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn builder(&self) -> MemoryBuilder {
        let path = self.0.path().join("notes.db");
        Memory::builder(path.to_str().unwrap()).embedder("words").user("ada").session("trip")
    }

    async fn open(&self) -> Memory {
        self.builder().open().await.unwrap()
    }
}

/// A scripted model that keeps the messages that it received.
#[derive(Default)]
struct Scripted {
    says: Mutex<Vec<Result<&'static str>>>,
    shown: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        let shown: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
        self.shown.lock().unwrap().push(shown.join("\n---\n"));
        let text = self.says.lock().unwrap().remove(0)?.to_owned();
        Ok(ChatAnswer { text, ..ChatAnswer::default() })
    }
}

#[tokio::test]
async fn what_is_added_is_found_and_forgotten() {
    let file = File::new();
    let memory = file.open().await;
    let peanuts = memory.add("Ada is allergic to peanuts").await.unwrap();
    let trains = NewMemory { kind: MemoryKind::Preference, ..NewMemory::new("Ada prefers trains to planes") };
    memory.add_memory(trains).await.unwrap();
    memory.close().await.unwrap();

    let memory = file.open().await;
    let found = memory.search("what is Ada allergic to?").await.unwrap();
    assert_eq!(found[0].item.content(), "Ada is allergic to peanuts");
    let request = RecallRequest { explain: true, ..RecallRequest::new("trains") };
    assert!(memory.recall(&request).await.unwrap().trace.is_some());
    assert_eq!(memory.forget(peanuts.id).await.unwrap().memories, 1);
    assert_eq!(memory.forget(peanuts.id).await.unwrap_err().kind(), ErrorKind::NotFound);
    memory.close().await.unwrap();

    let memory = file.open().await;
    let believed: Vec<_> = memory.memories().await.unwrap().into_iter().map(|one| one.content).collect();
    assert_eq!(believed, ["Ada prefers trains to planes"]);
    memory.close().await.unwrap();
}

#[tokio::test]
async fn what_is_recorded_is_learned_from_until_it_is_closed() {
    let file = File::new();
    let memory = file.open().await;
    let recorded = memory.record([NewMessage::new(Role::User, "I live in Lisbon.")]).await.unwrap();
    assert_eq!(recorded.turns[0].seq, 0);
    // Closing finishes all work, so that nothing is left for the next process.
    memory.close().await.unwrap();

    let memory = file.builder().setting("learn.enabled", "false").open().await.unwrap();
    let believed = memory.memories().await.unwrap();
    assert!(believed.len() == 1 && believed[0].content.contains("Lisbon"), "{believed:?}");
    assert_eq!(believed[0].source_turns, [recorded.turns[0].id]);
    memory.close().await.unwrap();
}

#[tokio::test]
async fn a_prompt_shows_the_session_and_the_rest() {
    let file = File::new();
    let memory = file.open().await;
    memory.record([NewMessage::new(Role::User, "The flat has a view of the river.")]).await.unwrap();
    memory.close().await.unwrap();

    let memory = file.open().await;
    let flat = memory.prompt("what is the view?", PromptFormat::Flat).await.unwrap();
    assert!(matches!(&flat.body, PromptBody::Text(text) if text.contains("view of the river")), "{flat:?}");
    let elsewhere = memory.session("home").unwrap();
    let chat = elsewhere.prompt("what is the view?", PromptFormat::Chat).await.unwrap();
    let PromptBody::Messages(messages) = chat.body else { panic!("a chat has messages") };
    assert!(messages[0].content.contains(" user, today] The flat has a view of the river."), "{messages:?}");
    memory.close().await.unwrap();
}

#[tokio::test]
async fn a_chat_goes_through_memory_and_survives_its_model() {
    let file = File::new();
    let model = Arc::new(Scripted::default());
    *model.says.lock().unwrap() =
        vec![Ok("Lisbon is lovely."), Err(Error::unavailable("the model is away")), Ok("In Lisbon.")];
    let open = async || {
        let builder = file.builder().chat_model(Arc::clone(&model) as Arc<dyn ChatModel>);
        builder.instructions("Be brief.").open().await.unwrap()
    };
    let memory = open().await;
    assert!(memory.has_model());
    let mut heard = String::new();
    let reply = memory.stream("I live in Lisbon.", &mut |piece| heard.push_str(piece)).await.unwrap();
    assert_eq!((reply.text.as_str(), heard.as_str()), ("Lisbon is lovely.", "Lisbon is lovely."));
    heard.clear();
    let reply = memory.stream("And now?", &mut |piece| heard.push_str(piece)).await.unwrap();
    assert_eq!(reply.status, ReplyStatus::Failed { reason: "the model is away".to_owned() });
    assert!(heard.contains("Nothing was lost") && heard == reply.text, "{heard}");
    memory.close().await.unwrap();

    let memory = open().await;
    let reply = memory.session("later").unwrap().chat("Where do I live?").await.unwrap();
    assert_eq!((reply.text.as_str(), reply.status), ("In Lisbon.", ReplyStatus::Complete));
    let shown = model.shown.lock().unwrap().last().unwrap().clone();
    assert!(shown.starts_with("Be brief.\n---\n") && shown.contains("Lisbon"), "{shown}");
    let turns =
        memory.engine().sessions.turns(memory.user_id(), memory.session_id(), None, 10).await.unwrap();
    let said: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(said[..3], ["I live in Lisbon.", "Lisbon is lovely.", "And now?"]);
    assert!(turns[3].hidden.is_some());
    memory.close().await.unwrap();
}

#[tokio::test]
async fn a_reply_can_be_stopped() {
    struct Slow;
    #[async_trait::async_trait]
    impl ChatModel for Slow {
        fn model(&self) -> &str {
            "slow"
        }

        async fn complete(&self, _: &ChatRequest) -> Result<ChatAnswer> {
            std::future::pending().await
        }
    }
    let file = File::new();
    let memory = file.builder().chat_model(Arc::new(Slow)).open().await.unwrap();
    let reply = memory.chat_until("hello", &mut |_| (), std::future::ready(())).await.unwrap();
    assert_eq!(reply.status, ReplyStatus::Interrupted);
    memory.close().await.unwrap();
}

#[tokio::test]
async fn without_a_model_memory_replies() {
    let file = File::new();
    let memory = file.open().await;
    assert!(!memory.has_model());
    let reply = memory.chat("我住在杭州。").await.unwrap();
    assert_eq!(reply.status, ReplyStatus::MemoryAlone);
    assert!(reply.text.contains("杭州"), "{}", reply.text);
    memory.close().await.unwrap();

    let memory = file.open().await;
    let reply = memory.session("later").unwrap().chat("我住在哪里？").await.unwrap();
    assert!(reply.text.contains("杭州"), "{}", reply.text);
    memory.close().await.unwrap();
}

#[tokio::test]
async fn handles_are_of_one_user_and_session() {
    let file = File::new();
    let memory = file.open().await;
    memory.add("Ada is allergic to peanuts").await.unwrap();
    let (eve, home) = (memory.user("eve").unwrap(), memory.session("home").unwrap());
    assert_eq!((eve.user_id().as_str(), eve.session_id().as_str()), ("eve", "default"));
    assert_eq!((home.user_id().as_str(), home.session_id().as_str()), ("ada", "home"));
    assert!(eve.search("peanuts").await.unwrap().is_empty());
    assert_eq!(home.search("peanuts").await.unwrap().len(), 1);
    assert!(memory.user("").is_err() && memory.session("").is_err());
    home.record([NewMessage::new(Role::User, "the key is under the mat")]).await.unwrap();
    assert_eq!(home.forget_session().await.unwrap().turns, 1);
    assert!(
        home.search("key under the mat")
            .await
            .unwrap()
            .iter()
            .all(|found| !found.item.content().contains("mat"))
    );
    let other = memory.clone();
    memory.close().await.unwrap();
    assert!(other.search("peanuts").await.is_err(), "closed for all");
}

#[tokio::test]
async fn what_cannot_be_right_is_refused_when_it_is_opened() {
    let file = File::new();
    let check = async |builder: MemoryBuilder, says: &str| {
        let error = builder.open().await.err().unwrap();
        assert!(error.to_string().contains(says), "{error}");
    };
    check(file.builder().user("*"), "reserved").await;
    check(file.builder().setting("defualt_top_k", "3"), "default_top_k").await;
    check(file.builder().model("api.openai.com", "m"), "https://api.openai.com/v1").await;
    check(Memory::builder("vault:"), "folder is missing").await;
    check(Memory::builder(""), "path is missing").await;
}
