//! SIGKILL during an import: the next run goes on, and nothing is there twice.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::store::CheckDepth;
use strata_core::store::conformance::fixture::{at, fresh};
use strata_core::{SessionId, UserId};
use strata_engine::Engine;
use strata_engine::Settings;
use strata_import::{self as import, FileOptions, FileProgress, ImportOptions};
use strata_store::{SqliteOptions, SqliteStore};

const FOLDER: &str = "STRATA_TEST_IMPORT_FOLDER";
/// A data export of ChatGPT.
const CHATS: &str = "conversations.json";
const CONVERSATIONS: u32 = 30;
const MESSAGES: u32 = 60;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        at(0)
    }
}

impl IdSource for Fixed {
    fn next(&self) -> uuid::Uuid {
        // Several processes write one store.
        let (_, number) = fresh().as_u64_pair();
        uuid::Uuid::from_u64_pair(0x7000 | u64::from(std::process::id()) << 16, number)
    }
}

impl TokenCounter for Fixed {
    fn count(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

fn engine(folder: &Path) -> Engine {
    let store = SqliteStore::open(folder.join("strata.db"), SqliteOptions::default()).unwrap();
    let fixed = Arc::new(Fixed);
    Engine::new(Arc::new(store), fixed.clone(), fixed.clone(), fixed, Settings::default())
}

/// Nothing on its own: the half of the test below that is killed.
#[tokio::test]
async fn imports_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut output = std::io::stdout();
    let chats = folder.join(CHATS);
    if chats.is_file() {
        let told = |progress: &FileProgress| writeln!(output, "progress {}", progress.items.0).unwrap();
        import::file(&chats, &engine(folder), &FileOptions::default(), told).await.unwrap();
        return;
    }
    import::sqlite(folder.join("source.db"), &engine(folder), &ImportOptions::default(), |progress| {
        writeln!(output, "progress {}", progress.messages).unwrap();
    })
    .await
    .unwrap();
}

fn make_source(path: &Path) {
    let mut conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "CREATE TABLE conversations (id INTEGER PRIMARY KEY, title TEXT, summary TEXT, diagnostic_state TEXT);
         CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation_id INTEGER, role TEXT, content TEXT);",
    )
    .unwrap();
    let transaction = conn.transaction().unwrap();
    for conversation in 0..CONVERSATIONS {
        // Every other one has a state of its own, so that both ways of recording are killed.
        let state = if conversation % 2 == 0 { "{\"device_ip\": \"10.1.1.47\"}" } else { "" };
        let row = params![conversation, format!("title {conversation}"), "", state];
        transaction.execute("INSERT INTO conversations VALUES (?1, ?2, ?3, ?4)", row).unwrap();
    }
    for message in 0..MESSAGES {
        for conversation in 0..CONVERSATIONS {
            let role = if message % 2 == 0 { "user" } else { "assistant" };
            let row = params![conversation, role, format!("said {message}")];
            let sql = "INSERT INTO messages (conversation_id, role, content) VALUES (?1, ?2, ?3)";
            transaction.execute(sql, row).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Counts a process that is killed, for `cargo xtask torture`: one byte in the file `STRATA_TEST_KILLS`.
fn note_kill() {
    if let Some(file) = std::env::var_os("STRATA_TEST_KILLS") {
        let mut file = File::options().create(true).append(true).open(file).unwrap();
        file.write_all(b"k").unwrap();
    }
}

/// Starts an import, and kills it after so many steps.
fn kill_after(folder: &Path, steps: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "imports_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.map_while(Result::ok).filter(|line| line.starts_with("progress")).take(steps).count();
    assert_eq!(seen, steps);
    note_kill();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A conversation as ChatGPT exports it: a tree of messages, here without branches.
fn chat(number: u32) -> Value {
    let mut mapping = serde_json::Map::new();
    for message in 0..MESSAGES {
        let role = if message % 2 == 0 { "user" } else { "assistant" };
        let parent = (message > 0).then(|| format!("m{}", message - 1));
        let said = json!({
            "id": format!("m{message}"), "author": {"role": role}, "create_time": 1_748_000_000 + message,
            "recipient": "all", "metadata": {},
            "content": {"content_type": "text", "parts": [format!("said {message} in {number}")]},
        });
        let node = json!({"id": format!("m{message}"), "message": said, "parent": parent, "children": []});
        mapping.insert(format!("m{message}"), node);
    }
    json!({"id": format!("chat-{number}"), "title": format!("title {number}"), "create_time": 1_748_000_000,
        "mapping": mapping, "current_node": format!("m{}", MESSAGES - 1)})
}

#[tokio::test]
async fn a_killed_import_of_a_file_is_finished_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(CHATS);
    std::fs::write(&path, Value::from_iter((0..CONVERSATIONS).map(chat)).to_string()).unwrap();
    for after in [1, 2, 7, 19] {
        kill_after(folder.path(), after);
    }
    let engine = engine(folder.path());
    let report = import::file(&path, &engine, &FileOptions::default(), |_| {}).await.unwrap();
    assert_eq!(report.turns_added + report.turns_present, u64::from(CONVERSATIONS * MESSAGES));
    assert!(report.turns_present > 0, "the killed runs had brought something");
    for number in 0..CONVERSATIONS {
        let session = SessionId::new(format!("chat-{number}")).unwrap();
        let turns = engine.sessions.turns(&UserId::default(), &session, None, 1_000).await.unwrap();
        let said: Vec<_> = turns.iter().map(|turn| turn.content.clone()).collect();
        let expected = (0..MESSAGES).map(|message| format!("said {message} in {number}"));
        assert_eq!(said, expected.collect::<Vec<_>>());
    }
    assert_eq!(engine.store().check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_killed_import_is_finished_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    make_source(&folder.path().join("source.db"));
    for after in [1, 3, 12, 25, 40] {
        kill_after(folder.path(), after);
    }
    let engine = engine(folder.path());
    let source = folder.path().join("source.db");
    let report = import::sqlite(&source, &engine, &ImportOptions::default(), |_| {}).await.unwrap();
    assert_eq!(report.turns_added + report.turns_present, u64::from(CONVERSATIONS * MESSAGES));
    assert!(report.turns_present > 0, "the killed runs had brought something");
    for conversation in 0..CONVERSATIONS {
        let session = SessionId::new(conversation.to_string()).unwrap();
        let turns = engine.sessions.turns(&UserId::default(), &session, None, 1_000).await.unwrap();
        let said: Vec<_> = turns.iter().map(|turn| turn.content.clone()).collect();
        assert_eq!(said, (0..MESSAGES).map(|message| format!("said {message}")).collect::<Vec<_>>());
        let state = engine.sessions.get(&UserId::default(), &session).await.unwrap().state;
        assert_eq!(state.system_state["title"], format!("title {conversation}"));
        assert_eq!(state.diagnostic.device_ip.is_some(), conversation % 2 == 0);
        assert_eq!(
            state.token_usage.total_output,
            turns.iter().skip(1).step_by(2).map(|t| u64::from(t.token_count)).sum::<u64>()
        );
    }
    let again = import::sqlite(&source, &engine, &ImportOptions::default(), |_| {}).await.unwrap();
    assert_eq!((again.turns_added, again.states_added, again.summaries_added), (0, 0, 0));
    assert_eq!(engine.store().check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}
