//! Chats at once in one session of a real file: each is recorded, whether they come through one process or through many.

#![allow(clippy::unwrap_used, reason = "a test's own functions")]

mod ports;

use std::sync::Arc;

use strata_core::turn::{Follows, NewMessage};
use strata_core::{Role, SessionId, Store, UserId};
use strata_engine::Ending;
use strata_store::{SqliteOptions, SqliteStore};

use ports::Ports;

const CHATS: u64 = 32;

/// Chats through one engine, or through one for each, as programs that share the file have.
async fn chat_at_once(is_shared: bool) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("strata.db"), SqliteOptions::default()).unwrap();
    let (store, ports): (Arc<dyn Store>, _) =
        (Arc::new(store), Arc::new(Ports { step: 1, ..Ports::default() }));
    let open = || ports.engine(Arc::clone(&store));
    let (user, session, shared) = (UserId::default(), SessionId::default(), open());
    let tasks: Vec<_> = (0..CHATS)
        .map(|number| {
            let engine = if is_shared { shared.clone() } else { open() };
            let (user, session) = (user.clone(), session.clone());
            tokio::spawn(async move {
                let asked = [NewMessage::new(Role::User, format!("question {number}"))];
                let exchange = engine.recording.open_exchange(&user, &session, &asked).await.unwrap();
                let reply = NewMessage::new(Role::Assistant, format!("reply to question {number}"));
                engine.recording.close_exchange(&user, exchange, Ending::Complete(reply)).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let turns = shared.sessions.turns(&user, &session, None, 1_000).await.unwrap();
    let places: Vec<u64> = turns.iter().map(|turn| turn.seq).collect();
    assert_eq!(places, (0..2 * CHATS).collect::<Vec<_>>());
    for number in 0..CHATS {
        let place =
            |text: String| turns.iter().find(|turn| turn.content == text).map(|turn| turn.seq).unwrap();
        let asked = place(format!("question {number}"));
        let reply = place(format!("reply to question {number}"));
        assert_eq!(turns[reply as usize].notes.follows, Follows::Turn(asked), "to its own question");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn chats_at_once_in_one_session_are_all_recorded() {
    chat_at_once(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn chats_at_once_of_many_programs_are_all_recorded() {
    chat_at_once(false).await;
}
