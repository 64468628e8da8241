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
    let after = engine
        .contexts
        .put(&ann(), &session("s"), &changed, IfMatch::Document(served.fingerprint()))
        .await
        .unwrap();
    assert_eq!(after.recent_history[2].token_count, Some(1), "tokens are counted here");
    changed.recent_history[2].token_count = Some(1);
    assert_eq!(after, changed);
    assert!(engine.memories.get(&ann(), first[0].id).await.unwrap().hidden.is_some());
    let turns = engine.sessions.turns(&ann(), &session("s"), None, 9).await.unwrap();
    assert_eq!((turns[2].role, turns[2].content.as_str()), (Role::Assistant, "noted"));

    let stale =
        engine.contexts.put(&ann(), &session("s"), &changed, IfMatch::Document(served.fingerprint())).await;
    assert_eq!(stale.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_document_creates_a_missing_session() {
    let engine = engine();
    let empty = ContextData::new("s");
    assert_eq!(engine.contexts.put(&ann(), &session("s"), &empty, IfMatch::Absent).await.unwrap(), empty);
    let mut context = empty;
    context.long_term_summary = "written elsewhere".to_owned();
    context.recent_history =
        vec![HistoryEntry { role: "user".to_owned(), content: "hi".to_owned(), ..Default::default() }];
    let after = engine.contexts.put(&ann(), &session("s"), &context, IfMatch::Absent).await.unwrap();
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
        let refused = engine.contexts.put(&ann(), &session("s"), &context, IfMatch::Any).await;
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

/// Another compaction that has read the session before is refused then.
#[tokio::test]
async fn a_compaction_raises_the_version_of_its_session() {
    let engine = engine();
    record(&engine, 60).await;
    let before = engine.sessions.get(&ann(), &session("s")).await.unwrap();
    let limits = CompactionLimits::default();
    assert!(engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap().1);
    let after = engine.sessions.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(after.state, before.state);
    assert!(after.version > before.version, "{} and {}", after.version, before.version);
}

async fn talk(engine: &Engine, exchanges: std::ops::Range<usize>) {
    for number in exchanges {
        let exchange = vec![
            NewMessage::new(Role::User, format!("question {number}")),
            NewMessage::new(Role::Assistant, format!("answer {number}")),
        ];
        engine.recording.record(&ann(), &session("s"), exchange, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_recorded_conversation_is_compacted_by_length_again_and_again() {
    let engine = engine();
    let limits = CompactionLimits::default();
    talk(&engine, 0..25).await;
    assert!(
        !engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap().1,
        "50 entries are allowed"
    );
    let mut next = 25;
    for _ in 0..4 {
        // The rolling summary follows the turns all the while.
        while engine.contexts.get(&ann(), &session("s")).await.unwrap().recent_history.len() <= 50 {
            talk(&engine, next..next + 1).await;
            next += 1;
        }
        let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
        let (context, compacted) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
        assert!(compacted, "{} entries", served.recent_history.len());
        assert_eq!(context.recent_history[..], served.recent_history[served.recent_history.len() - 30..]);
        assert_eq!(context.recent_history[29].content, format!("answer {}", next - 1), "the newest stay");
        assert_eq!(context.long_term_summary, served.long_term_summary, "nothing is summarised twice");
        let turns = engine.sessions.turns(&ann(), &session("s"), None, 999).await.unwrap();
        assert_eq!(turns.len(), 2 * next, "turns stay");
    }
    assert_eq!(engine.contexts.compactions(), 4);
}

#[tokio::test]
async fn a_recorded_conversation_is_compacted_by_tokens() {
    let engine = engine();
    let limits = CompactionLimits { max_tokens: 40, ..CompactionLimits::default() };
    talk(&engine, 0..10).await;
    assert!(
        !engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap().1,
        "40 tokens are allowed"
    );
    record(&engine, 2).await;
    let (context, compacted) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert!(compacted);
    assert_eq!(context.recent_history.len(), 11);
    assert_eq!(context.recent_history[10].content, "message 1");
    assert!(context.long_term_summary.contains("question 0"), "{}", context.long_term_summary);
}

#[tokio::test]
async fn only_entries_that_no_summary_covers_are_added_to_it() {
    let engine = engine();
    talk(&engine, 0..20).await;
    let served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    let limits =
        CompactionLimits { max_recent_history: 3, keep_recent_history: 2, ..CompactionLimits::default() };
    let (context, _) = engine.contexts.compact(&ann(), &session("s"), &limits).await.unwrap();
    assert_eq!(context.recent_history[..], served.recent_history[38..]);
    for number in 0..19 {
        let said =
            context.long_term_summary.lines().filter(|line| line.ends_with(&format!("question {number}")));
        assert_eq!(said.count(), 1, "question {number}\n{}", context.long_term_summary);
    }
}

#[tokio::test]
async fn versions_after_a_compaction_are_moved_on_in_place() {
    let engine = engine();
    talk(&engine, 0..30).await;
    engine.contexts.compact(&ann(), &session("s"), &CompactionLimits::default()).await.unwrap();
    talk(&engine, 30..55).await;
    let context = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(context.recent_history.len(), 80, "the history goes on after the compaction");
    let query = SummaryQuery { session: session("s"), strategy: None, status: None, limit: 99 };
    let versions = engine.store().summaries(&ann(), &query).await.unwrap();
    assert_eq!(versions.len(), 3, "before, with, and after the compaction");
}

#[tokio::test]
async fn without_a_condition_nothing_is_removed() {
    let engine = engine();
    record(&engine, 1).await;
    engine.memories.add(&ann(), vec![NewMemory::new("rows on Tuesdays")]).await.unwrap();
    let mut served = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    served.extra.insert("theme".to_owned(), "dark".into());
    served = engine.contexts.put(&ann(), &session("s"), &served, IfMatch::Absent).await.unwrap();
    let check = async |change: fn(&mut ContextData), field: &str| {
        let mut context = served.clone();
        change(&mut context);
        let refused =
            engine.contexts.put(&ann(), &session("s"), &context, IfMatch::Absent).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unconditional);
        assert!(refused.message().contains(field), "{refused}");
        assert_eq!(engine.contexts.get(&ann(), &session("s")).await.unwrap(), served, "nothing changes");
    };
    check(|context| context.facts.clear(), "`facts`").await;
    check(|context| context.extra.clear(), "`other fields`").await;
    // A fact that was added since the document was read is not in it.
    engine.memories.add(&ann(), vec![NewMemory::new("sold the canoe")]).await.unwrap();
    let refused = engine.contexts.put(&ann(), &session("s"), &served, IfMatch::Absent).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unconditional);
    // With the consent to replace any document it goes.
    let after = engine.contexts.put(&ann(), &session("s"), &served, IfMatch::Any).await.unwrap();
    assert_eq!(after.facts, ["rows on Tuesdays"]);
}

#[tokio::test]
async fn a_fact_of_another_session_is_never_removed() {
    let engine = engine();
    record(&engine, 1).await;
    let said = NewMessage::new(Role::User, "我女儿在学大提琴");
    let elsewhere = engine.recording.record(&ann(), &session("other"), vec![said], None).await.unwrap();
    let here = engine.sessions.turns(&ann(), &session("s"), None, 9).await.unwrap();
    let memory = |text: &str, sources| NewMemory { source_turns: sources, ..NewMemory::new(text) };
    let memories = vec![
        memory("daughter learns the cello", vec![elsewhere.turns[0].id]),
        memory("said here", vec![here[0].id]),
        memory("said in both", vec![here[0].id, elsewhere.turns[0].id]),
        memory("written by hand", Vec::new()),
    ];
    engine.memories.add(&ann(), memories).await.unwrap();
    let mut context = engine.contexts.get(&ann(), &session("s")).await.unwrap();
    assert_eq!(context.facts.len(), 4);
    let read = IfMatch::Document(context.fingerprint());
    context.facts.clear();
    let after = engine.contexts.put(&ann(), &session("s"), &context, read).await.unwrap();
    assert_eq!(after.facts, ["daughter learns the cello", "said in both"]);
    // Nothing more would go, so that no condition is needed.
    engine.contexts.put(&ann(), &session("s"), &context, IfMatch::Absent).await.unwrap();
    // The document of a new session cannot know the facts.
    let new = ContextData::new("new");
    let after = engine.contexts.put(&ann(), &session("new"), &new, IfMatch::Absent).await.unwrap();
    assert_eq!(after.facts, ["daughter learns the cello", "said in both"]);
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
            tokio::spawn(async move {
                engine.contexts.put(&ann(), &session("s"), &context, IfMatch::Document(read)).await
            })
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
