//! Learning on a real file: many workers, one result.

#![allow(clippy::unwrap_used, reason = "a test's own functions")]

mod ports;

use std::sync::Arc;

use strata_core::job::JobStatus;
use strata_core::store::{JobQuery, MemoryQuery, MemorySelect};
use strata_core::turn::NewMessage;
use strata_core::{Role, SessionId, Store, UserId};
use strata_engine::Engine;
use strata_store::{SqliteOptions, SqliteStore};

use ports::Ports;

/// Lets four workers work until nothing waits, however often they get into each other's way.
async fn drain(engine: &Engine, ports: &Ports, user: &UserId) {
    loop {
        let workers: Vec<_> = (0..4)
            .map(|number| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    while engine.learning.learn_next(&format!("worker {number}")).await.unwrap().is_some() {}
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        let queued = JobQuery { status: Some(JobStatus::Queued), limit: 1, ..JobQuery::default() };
        if engine.jobs.list(user, &queued).await.unwrap().is_empty() {
            return;
        }
        ports.pass(3_600);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_that_say_the_same_leave_one_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("strata.db"), SqliteOptions::default()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let ports = Arc::new(Ports::default());
    let engine = ports.engine(store);
    let user = UserId::default();
    let say = async |text: &str| {
        for number in 0..24 {
            let session = SessionId::new(format!("session {number}")).unwrap();
            let messages =
                vec![NewMessage::new(Role::User, text), NewMessage::new(Role::Assistant, "Noted.")];
            engine.recording.record(&user, &session, messages, None).await.unwrap();
        }
    };
    let all = MemoryQuery::new(MemorySelect::All);
    say("I live in Berlin.").await;
    drain(&engine, &ports, &user).await;
    assert_eq!(engine.memories.list(&user, &all).await.unwrap().len(), 1);

    ports.pass(60);
    say("I moved to Lisbon.").await;
    drain(&engine, &ports, &user).await;
    let memories = engine.memories.list(&user, &all).await.unwrap();
    assert_eq!(memories.len(), 2, "{memories:#?}");
    let current: Vec<_> = memories.iter().filter(|memory| memory.is_current()).collect();
    assert_eq!(current.len(), 1, "{memories:#?}");
    let former = memories.iter().find(|memory| !memory.is_current()).unwrap();
    assert_eq!(former.replaced_by, Some(current[0].id));

    let jobs = engine.jobs.list(&user, &JobQuery { limit: 1_000, ..JobQuery::default() }).await.unwrap();
    assert!(jobs.iter().all(|job| job.status == JobStatus::Done), "{jobs:#?}");
    assert!(jobs.iter().all(|job| job.result.is_some()));
}
