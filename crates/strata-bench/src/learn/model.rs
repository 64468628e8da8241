//! The cost of a model per turn with the default settings: a conversation of 200 turns, forty seconds between two exchanges, and
//! a model whose answers are as long as those of a real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_core::ports::{ChatAnswer, ChatModel, ChatRequest, Clock, Spent, TokenCounter};
use strata_core::store::InMemoryStore;
use strata_core::turn::NewMessage;
use strata_core::{Role, SessionId, Store, UserId};
use strata_engine::Ended;
use strata_models::Tokenizer;

use super::chat::Chat;
use crate::report::{Report, Target};
use crate::{Bench, engine};

const TURNS: usize = 200;
const SECONDS_BETWEEN: i64 = 40;

pub(crate) fn measure(bench: &mut Bench, report: &mut Report) -> Result<()> {
    let spent = bench.runtime.block_on(converse())?;
    let turns = TURNS as f64;
    let tokens = (spent.input_tokens + spent.output_tokens) as f64;
    report.add("a model's calls a turn", f64::from(spent.calls) / turns, "calls", Some(Target::AtMost(1.0)));
    report.add("a model's tokens a turn", tokens / turns, "tokens", Some(Target::AtMost(1_500.0)));
    Ok(())
}

async fn converse() -> Result<Spent> {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let clock = Arc::new(Later(AtomicI64::new(1_770_000_000)));
    let engine = engine::at(&store, clock.clone()).with_chat_model(Arc::new(Scripted));
    let (user, session) = (UserId::new("measured")?, SessionId::new("talk")?);
    let mut chat = Chat::new(1);
    let mut spent = Spent::default();
    for _ in 0..TURNS / 2 {
        let exchange = vec![
            NewMessage::new(Role::User, chat.user()),
            NewMessage::new(Role::Assistant, chat.assistant()),
        ];
        engine.recording.record(&user, &session, exchange, None).await?;
        clock.0.fetch_add(SECONDS_BETWEEN, Ordering::Relaxed);
        while let Some(learned) = engine.learning.learn_next("bench").await? {
            ensure!(matches!(learned.ended, Ended::Done | Ended::Later { .. }), "a job failed: {learned:?}");
            spent += learned.spent;
        }
    }
    Ok(spent)
}

/// A clock that is moved by hand.
struct Later(AtomicI64);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }
}

/// A model that repeats the statements and finds no contradictions.
struct Scripted;

#[async_trait]
impl ChatModel for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, request: &ChatRequest) -> strata_core::Result<ChatAnswer> {
        let count = |text: &str| u64::from(Tokenizer::default().count(text));
        let data = request.messages.last().map(|message| message.content.as_str()).unwrap_or_default();
        let lines: Vec<Value> = data.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let text = match request.schema.as_ref().map(|schema| schema.name) {
            Some("statements") => statements(&lines).to_string(),
            Some("memories") => all_stays(data).to_string(),
            Some(_) => {
                json!({ "summary": summary(), "facts": ["They met."], "preferences": [], "decisions": [],
                "todos": [], "entities": [] })
                .to_string()
            }
            None => summary(),
        };
        let input_tokens = request.messages.iter().map(|message| count(&message.content)).sum();
        let output_tokens = count(&text);
        Ok(ChatAnswer { text, spent: Spent { calls: 1, input_tokens, output_tokens } })
    }
}

/// A statement for every message that is neither a question nor short.
fn statements(lines: &[Value]) -> Value {
    let statement = |line: &Value| {
        let text = line["text"].as_str().filter(|text| !text.contains('?') && text.chars().count() > 12)?;
        let content: String = text.chars().take(80).collect();
        let number = &line["message"];
        Some(
            json!({ "content": content, "kind": "fact", "confidence": 0.9, "message": number, "since": null }),
        )
    };
    json!({ "statements": lines.iter().filter_map(statement).collect::<Vec<_>>() })
}

fn all_stays(data: &str) -> Value {
    let (known, new) = data.split_once("New statements:").unwrap_or((data, ""));
    let events = |text: &str, event: &str| -> Vec<Value> {
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.map(|line| json!({ "id": line["id"], "event": event, "by": null })).collect()
    };
    let all = [events(known, "NONE"), events(new, "ADD")].concat();
    json!({ "memories": all })
}

/// About 130 tokens.
fn summary() -> String {
    "The user and the assistant went through the plan again and settled what is left to do. ".repeat(8)
}
