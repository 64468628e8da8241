use crate::Engine;
use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::Settings;
use strata_core::ErrorKind;
use strata_core::context::HistoryEntry;
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::store::InMemoryStore;
use strata_core::store::conformance::fixture::{ann, at, bob, fresh, session};
use strata_core::turn::NewMessage;
use strata_core::turn::Role;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        at(100)
    }
}

impl IdSource for Fixed {
    fn next(&self) -> uuid::Uuid {
        fresh()
    }
}

impl TokenCounter for Fixed {
    fn count(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}

fn engine() -> Engine {
    let fixed = Arc::new(Fixed);
    let store = Arc::new(InMemoryStore::new());
    Engine::new(store, fixed.clone(), fixed.clone(), fixed, Settings::default())
}

async fn record(engine: &Engine, count: usize) {
    for number in 0..count {
        let message = NewMessage::new(Role::User, format!("message {number}"));
        engine.recording.record(&ann(), &session("s"), vec![message], None).await.unwrap();
    }
}

#[tokio::test]
async fn a_document_round_trips() {
    let engine = engine();
    record(&engine, 2).await;
    let first = engine.memories.add(&ann(), vec![NewMemory::new("likes rain")]).await.unwrap();
    let elsewhere = NewMemory { session: Some(session("other")), ..NewMemory::new("not here") };
    engine.memories.add(&ann(), vec![elsewhere]).await.unwrap();
    let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(served.facts, ["likes rain"]);
    assert_eq!(served.recent_history.len(), 2);
    assert_eq!(served.recent_history[1].token_count, Some(2));
    assert_eq!(engine.contexts.get(&bob(), &session("s")).await.unwrap_err().kind(), ErrorKind::NotFound);

    let mut changed = served.clone();
    changed.facts = vec!["likes snow".to_owned()];
    changed.recent_history.push(HistoryEntry {
        timestamp: 1_708_654_321,
        role: "assistant".to_owned(),
        content: "noted".to_owned(),
        token_count: Some(99),
    });
    changed.tool_stats.total_calls = 3;
    let after =
        engine.contexts.put(&ann(), &session("s"), &changed, Some(served.fingerprint())).await.unwrap();
    assert_eq!(after.recent_history[2].token_count, Some(1), "tokens are counted here");
    changed.recent_history[2].token_count = Some(1);
    assert_eq!(after, changed);
    assert!(engine.memories.get(&ann(), first[0].id).await.unwrap().hidden.is_some());
    let turns = engine.sessions.turns(&ann(), &session("s"), None, 9).await.unwrap();
    assert_eq!((turns[2].role, turns[2].content.as_str()), (Role::Assistant, "noted"));

    let stale = engine.contexts.put(&ann(), &session("s"), &changed, Some(served.fingerprint())).await;
    assert_eq!(stale.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_document_creates_a_missing_session() {
    let engine = engine();
    let empty = ContextData::new("s");
    assert_eq!(engine.contexts.put(&ann(), &session("s"), &empty, None).await.unwrap(), empty);
    let mut context = empty;
    context.long_term_summary = "written elsewhere".to_owned();
    context.recent_history =
        vec![HistoryEntry { role: "user".to_owned(), content: "hi".to_owned(), ..Default::default() }];
    let after = engine.contexts.put(&ann(), &session("s"), &context, None).await.unwrap();
    assert_eq!(after.recent_history.len(), 1, "a summary that was written by hand hides no turn");
    assert_eq!(after.long_term_summary, "written elsewhere");
}

#[tokio::test]
async fn invalid_documents_are_rejected_and_nothing_changes() {
    let engine = engine();
    record(&engine, 1).await;
    let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    let check = async |change: fn(&mut ContextData)| {
        let mut context = served.clone();
        context.facts.push("a fact".to_owned());
        change(&mut context);
        let refused = engine.contexts.put(&ann(), &session("s"), &context, None).await;
        assert!(matches!(refused.unwrap_err().kind(), ErrorKind::Invalid | ErrorKind::Conflict));
        assert_eq!(engine.contexts.get(&ann(), &session("s")).await.unwrap(), served);
    };
    check(|context| context.facts.push(" ".to_owned())).await;
    check(|context| context.facts.push("a\0b".to_owned())).await;
    check(|context| context.long_term_summary = "a\0b".to_owned()).await;
    check(|context| context.recent_history[0].content = "other".to_owned()).await;
    check(|context| context.tool_stats.by_tool = [("a\0b".to_owned(), 1)].into()).await;
}

#[tokio::test]
async fn compaction_of_a_session_summarises_and_keeps_every_turn() {
    let engine = engine();
    record(&engine, 60).await;
    let limits = CompactionLimits::default();
    let (context, compacted) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert!(compacted);
    assert_eq!(context.recent_history.len(), 30);
    assert_eq!(context.recent_history[0].content, "message 30");
    assert!(context.long_term_summary.ends_with("- user: message 29"));
    assert_eq!(engine.sessions.turns(&ann(), &session("s"), None, 99).await.unwrap().len(), 60);
    let (same, again) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert_eq!((same, again), (context, false));

    record(&engine, 21).await;
    let (context, _) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert_eq!(context.recent_history.len(), 30);
    assert_eq!(context.long_term_summary.lines().count(), 52);
    let query = SummaryQuery { session: session("s"), strategy: None, status: None, limit: 9 };
    let versions = engine.store().summaries(&ann(), &query).await.unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(versions[0].base_id, Some(versions[1].id));
    assert_eq!((versions[0].end_seq, versions[1].end_seq), (50, 29));
}

#[tokio::test]
async fn turns_in_the_rolling_summary_are_not_summarised_twice() {
    let engine = engine();
    for number in 0..40 {
        let exchange = vec![
            NewMessage::new(Role::User, format!("question {number}")),
            NewMessage::new(Role::Assistant, format!("answer {number}")),
        ];
        engine.recording.record(&ann(), &session("s"), exchange, None).await.unwrap();
    }
    let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(served.recent_history.len(), 50, "at least so many, whatever the summary covers");
    assert!(!served.long_term_summary.is_empty());
    let limits = CompactionLimits { max_recent_history: 40, ..CompactionLimits::default() };
    let (context, compacted) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert!(compacted);
    assert_eq!(context.recent_history[..], served.recent_history[20..]);
    assert_eq!(context.long_term_summary, served.long_term_summary);

    // Recording goes on, and the history continues after the compaction.
    record(&engine, 1).await;
    let after = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(after.recent_history[..30], context.recent_history[..]);
    assert_eq!(after.recent_history.len(), 31);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_of_documents_lose_nothing() {
    let engine = engine();
    record(&engine, 1).await;
    let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (engine, mut context) = (engine.clone(), served.clone());
            context.tool_stats.total_calls = writer + 1;
            let read = served.fingerprint();
            tokio::spawn(
                async move { engine.contexts.put(&ann(), &session("s"), &context, Some(read)).await },
            )
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
        }
    }
    assert_eq!(won, 1, "all had read the same document");
}
