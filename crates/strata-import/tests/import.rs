//! Importing a conversation database: what becomes of it, twice, half, grown, odd and broken.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;
use strata_core::ports::{Clock, IdSource, TokenCounter};
use strata_core::state::DiagnosticStatus;
use strata_core::store::conformance::fixture::{at, fresh};
use strata_core::store::{InMemoryStore, Page, SummaryQuery};
use strata_core::{ErrorKind, Role, SessionId, Turn, UserId};
use strata_engine::Engine;
use strata_engine::Settings;
use strata_import::{self as import, BadRows, ImportOptions, ImportProgress, ImportReport};
use tempfile::TempDir;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        at(0)
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
    Engine::new(Arc::new(InMemoryStore::new()), fixed.clone(), fixed.clone(), fixed, Settings::default())
}

/// A database of the program of the layered-prompt design, before its two new columns.
const BEFORE: &str = "
    CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT, created_at TEXT DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, conversation_id TEXT NOT NULL, role TEXT NOT NULL,
        content TEXT NOT NULL, timestamp TEXT DEFAULT CURRENT_TIMESTAMP);
    INSERT INTO conversations VALUES ('c1', 'Temperature', '2026-02-19 23:00:00'), ('c2', NULL, '2026-02-20 08:00:00'),
        ('c3', 'Nothing said', '2026-02-21 08:00:00');
    INSERT INTO messages (conversation_id, role, content, timestamp) VALUES
        ('c1', 'user', '10.1.1.47 plot temp control', '2026-02-19 23:24:45'),
        ('c2', 'user', 'hello', '2026-02-20 08:00:01'),
        ('c1', 'assistant', 'Downloaded InstrumentDebug_2026-02-19_23-24-45.39.log.', '2026-02-19 23:25:00'),
        ('c1', 'user', '那 kp 可以調高嗎？', '2026-02-19 23:26:00'),
        ('c1', 'assistant', '目前 kp ~0.09，可以適度調高到 0.12-0.15', '2026-02-19 23:27:00');
";

/// The schema change of the layered-prompt design, and the values that its program writes into the new columns.
const AFTER: &str = r#"
    ALTER TABLE conversations ADD COLUMN summary TEXT DEFAULT '';
    ALTER TABLE conversations ADD COLUMN diagnostic_state TEXT DEFAULT '';
    UPDATE conversations SET summary = 'User: 10.1.1.47 plot temp control
Assistant: PID controller maintaining setpoints.',
        diagnostic_state = '{"device_ip": "10.1.1.47", "device_name": "zspr 052",
            "last_log_file": "InstrumentDebug_2026-02-19_23-24-45.39.log",
            "downloaded_logs": ["InstrumentDebug_2026-02-19_23-24-45.39.log"],
            "findings": ["PID controller stable, PI-dominant (kd ≈ 0)"], "hypotheses": [], "root_causes": [],
            "status": "investigating"}'
        WHERE id = 'c1';
"#;

fn database(script: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("instrument gpt%1?.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(script).unwrap();
    conn.close().unwrap();
    (folder, path)
}

async fn run(path: &Path, engine: &Engine) -> ImportReport {
    import::sqlite(path, engine, &ImportOptions::default(), |_| {}).await.unwrap()
}

async fn refused(script: &str) -> String {
    let (_folder, path) = database(script);
    let error = import::sqlite(&path, &engine(), &ImportOptions::default(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    error.message().to_owned()
}

fn user() -> UserId {
    UserId::default()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn turns(engine: &Engine, of: &str) -> Vec<Turn> {
    engine.sessions.turns(&user(), &session(of), None, 10_000).await.unwrap()
}

/// All files of a folder with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn a_database_without_the_new_columns() {
    let (folder, path) = database(BEFORE);
    let before = files(folder.path());
    let engine = engine();
    let report = run(&path, &engine).await;
    assert_eq!((report.conversations, report.messages, report.turns_added), (3, 5, 5));
    assert_eq!((report.summaries_added, report.states_added, report.skipped), (0, 2, 0));
    assert_eq!(files(folder.path()), before, "the source is only read");

    let said = turns(&engine, "c1").await;
    assert_eq!(
        said.iter().map(|turn| turn.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::User, Role::Assistant]
    );
    assert_eq!(said[2].content, "那 kp 可以調高嗎？");
    assert_eq!(said[0].created_at.to_string(), "2026-02-19T23:24:45Z");
    assert_eq!(said[0].metadata["import"]["conversation"], "c1");
    let found = engine.sessions.get(&user(), &session("c1")).await.unwrap();
    assert_eq!(found.state.system_state["title"], "Temperature");
    assert_eq!(
        found.state.diagnostic.device_ip.as_deref(),
        Some("10.1.1.47"),
        "read like any other recording"
    );
    assert!(found.state.token_usage.total_output > 0);
    assert_eq!(engine.sessions.get(&user(), &session("c3")).await.unwrap().turn_count, 0);
}

#[tokio::test]
async fn a_database_with_the_new_columns() {
    let (_folder, path) = database(&format!("{BEFORE}{AFTER}"));
    let engine = engine();
    let report = run(&path, &engine).await;
    assert_eq!((report.turns_added, report.summaries_added), (5, 1));
    let state = engine.sessions.get(&user(), &session("c1")).await.unwrap().state;
    assert_eq!(state.diagnostic.device_name.as_deref(), Some("zspr 052"));
    assert_eq!(state.diagnostic.findings, ["PID controller stable, PI-dominant (kd ≈ 0)"]);
    assert_eq!(state.diagnostic.status, DiagnosticStatus::Investigating);
    assert!(state.token_usage.total_output > 0, "usage is counted all the same");
    assert!(state.extra.is_empty());
    let query = SummaryQuery { session: session("c1"), strategy: None, status: None, limit: 9 };
    let summaries = engine.store().summaries(&user(), &query).await.unwrap();
    assert_eq!(summaries.len(), 1);
    assert!(summaries[0].text.ends_with("PID controller maintaining setpoints."));
    assert_eq!((summaries[0].start_seq, summaries[0].end_seq), (0, 0));
}

#[tokio::test]
async fn a_summary_covers_all_but_the_last_three_exchanges() {
    let mut script = format!("{BEFORE}{AFTER}");
    for number in 0..20 {
        script += &format!(
            "INSERT INTO messages (conversation_id, role, content) VALUES ('c1', '{}', 'm{number}');",
            if number % 2 == 0 { "user" } else { "assistant" }
        );
    }
    let (_folder, path) = database(&script);
    let engine = engine();
    run(&path, &engine).await;
    let query = SummaryQuery { session: session("c1"), strategy: None, status: None, limit: 9 };
    assert_eq!(engine.store().summaries(&user(), &query).await.unwrap()[0].end_seq, 24 - 6 - 1);
}

#[tokio::test]
async fn a_second_run_imports_nothing_and_a_grown_source_only_what_is_new() {
    let (_folder, path) = database(&format!("{BEFORE}{AFTER}"));
    let engine = engine();
    run(&path, &engine).await;
    let head = engine.store().head(&user()).await.unwrap();
    let again = run(&path, &engine).await;
    assert_eq!((again.turns_added, again.turns_present), (0, 5));
    assert_eq!((again.summaries_added, again.states_added), (0, 0));
    assert_eq!(engine.store().head(&user()).await.unwrap(), head);

    // Strata has gone on meanwhile, and so has the other program.
    let mut state = engine.sessions.get(&user(), &session("c1")).await.unwrap().state;
    state.diagnostic.status = DiagnosticStatus::Resolved;
    engine.sessions.put_state(&user(), &session("c1"), state).await.unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "INSERT INTO messages (conversation_id, role, content) VALUES ('c1', 'user', 'thanks'), ('c2', 'user', 'bye')",
    )
    .unwrap();
    let grown = run(&path, &engine).await;
    assert_eq!((grown.turns_added, grown.turns_present), (2, 5));
    assert_eq!(turns(&engine, "c1").await.last().unwrap().content, "thanks");
    let state = engine.sessions.get(&user(), &session("c1")).await.unwrap().state;
    assert_eq!(state.diagnostic.status, DiagnosticStatus::Resolved, "what Strata knows is not written over");
}

#[tokio::test]
async fn two_databases_that_count_from_one_are_kept_apart() {
    let script = |said: &str| {
        format!(
            "CREATE TABLE conversations (id INTEGER PRIMARY KEY); INSERT INTO conversations VALUES (1);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation_id INTEGER, role TEXT, content TEXT);
             INSERT INTO messages VALUES (1, 1, 'user', '{said}'), (2, 1, 'user', 'more of {said}');"
        )
    };
    let (_one, first) = database(&script("bread"));
    let (_two, second) = database(&script("salt"));
    let engine = engine();
    run(&first, &engine).await;
    let error = import::sqlite(&second, &engine, &ImportOptions::default(), |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        error.message().contains("row `1` of table `messages`") && error.message().contains("prefix"),
        "{error}"
    );
    let skip = ImportOptions { bad_rows: BadRows::Skip, ..ImportOptions::default() };
    let report = import::sqlite(&second, &engine, &skip, |_| {}).await.unwrap();
    assert_eq!((report.turns_added, report.problems.len()), (0, 1));
    assert_eq!(turns(&engine, "1").await.len(), 2);

    let prefixed = ImportOptions { session_prefix: "old:".to_owned(), ..ImportOptions::default() };
    let report = import::sqlite(&second, &engine, &prefixed, |_| {}).await.unwrap();
    assert_eq!(report.turns_added, 2);
    assert_eq!(turns(&engine, "old:1").await[0].content, "salt");
}

#[tokio::test]
async fn other_names_of_columns_are_understood() {
    let (_folder, path) = database(
        "CREATE TABLE Conversations (uuid TEXT, name TEXT, started_at REAL);
         CREATE TABLE Messages (chat_id TEXT, sender TEXT, \"text\" TEXT, ts INTEGER, seq INTEGER, PRIMARY KEY (chat_id, ts))
             WITHOUT ROWID;
         ALTER TABLE Messages ADD COLUMN id TEXT;
         INSERT INTO Conversations VALUES ('a', 'One', 1708654000.5);
         INSERT INTO Messages VALUES ('a', 'AI', 'second', 1708654322000, 2, 'm2'),
             ('a', 'Human', 'first', 1708654323000, 1, 'm1'), ('a', 'function', NULL, 1708654324000, 3, 'm3'),
             ('lost', 'human', 'nobody knows this conversation', 1708654325000, 1, 'm1');",
    );
    let engine = engine();
    let mut shown = Vec::new();
    let report = import::sqlite(&path, &engine, &ImportOptions::default(), |progress| shown.push(*progress))
        .await
        .unwrap();
    assert_eq!((report.conversations, report.turns_added), (2, 4));
    let total = ImportProgress { conversations: 2, total_conversations: 2, messages: 4, total_messages: 4 };
    assert_eq!(shown.last(), Some(&total));
    assert!(shown.windows(2).all(|pair| pair[0].messages <= pair[1].messages));
    let said = turns(&engine, "a").await;
    let said: Vec<_> =
        said.iter().map(|turn| (turn.role, turn.content.as_str(), turn.created_at.as_second())).collect();
    assert_eq!(
        said,
        [
            (Role::User, "first", 1_708_654_323),
            (Role::Assistant, "second", 1_708_654_322),
            (Role::Tool, "", 1_708_654_324)
        ]
    );
    assert_eq!(turns(&engine, "lost").await.len(), 1);
}

#[tokio::test]
async fn a_message_without_a_time_follows_the_one_before() {
    let (_folder, path) = database(
        "CREATE TABLE conversations (id TEXT, created_at TEXT); CREATE TABLE messages
             (conversation_id TEXT, role TEXT, content TEXT, created_at TEXT);
         INSERT INTO conversations VALUES ('a', '2024-02-23 02:00:00');
         INSERT INTO messages VALUES ('a', 'user', 'x', NULL), ('a', 'user', 'y', '2024-02-23 02:12:01'),
             ('a', 'user', 'z', '');",
    );
    let engine = engine();
    run(&path, &engine).await;
    let said: Vec<_> = turns(&engine, "a").await.iter().map(|turn| turn.created_at.to_string()).collect();
    assert_eq!(said, ["2024-02-23T02:00:00Z", "2024-02-23T02:12:01Z", "2024-02-23T02:12:01Z"]);
}

#[tokio::test]
async fn what_is_no_conversation_database_is_refused_with_a_reason() {
    let said = refused("CREATE TABLE notes (text); CREATE TABLE messages (id);").await;
    assert!(said.contains("no table `conversations`") && said.contains("`messages`, `notes`"), "{said}");
    let said = refused("CREATE TABLE conversations (id);").await;
    assert!(said.contains("no table `messages`"), "{said}");
    let said =
        refused("CREATE TABLE conversations (id); CREATE TABLE messages (conversation_id, role, blah);")
            .await;
    assert!(said.contains("`content`, `text`") && said.contains("`blah`"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let missing = import::sqlite(&path, &engine(), &ImportOptions::default(), |_| {}).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(!path.exists());
    for content in ["", "bread and salt", "SQLite format 3\0 and then nothing of the kind"] {
        std::fs::write(&path, content.repeat(50)).unwrap();
        let error = import::sqlite(&path, &engine(), &ImportOptions::default(), |_| {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{content:?}: {error}");
        assert!(error.message().contains("notes.txt"), "{error}");
    }
}

#[tokio::test]
async fn a_bad_row_is_named_and_may_be_skipped() {
    let bad = |row: &str| {
        format!("{BEFORE} INSERT INTO messages (id, conversation_id, role, content, timestamp) VALUES {row};")
    };
    let check = async |row: &str, words: [&str; 2]| {
        let script = bad(row);
        let said = refused(&script).await;
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        let (_folder, path) = database(&script);
        let engine = engine();
        let skip = ImportOptions { bad_rows: BadRows::Skip, ..ImportOptions::default() };
        let report = import::sqlite(&path, &engine, &skip, |_| {}).await.unwrap();
        assert_eq!(
            (report.turns_added, report.skipped, report.problems.len()),
            (5, 1, 1),
            "{:?}",
            report.problems
        );
        assert!(report.problems[0].contains(words[1]), "{:?}", report.problems);
    };
    check("(77, 'c1', 'narrator', 'x', NULL)", ["row `77` of table `messages`", "`narrator`"]).await;
    check("(77, 'c1', 'user', 'x', 'yesterday')", ["row `77` of table `messages`", "`yesterday`"]).await;
    check("(77, 'c1', 'user', x'ff00ff', NULL)", ["row `77` of table `messages`", "content is not text"])
        .await;
    check("(77, 'c1', 'user', 'a' || char(0) || 'b', NULL)", ["row `77` of table `messages`", "NUL"]).await;

    let said =
        refused(&format!("{BEFORE}{AFTER} UPDATE conversations SET diagnostic_state = '{{' WHERE id = 'c2'"))
            .await;
    assert!(
        said.contains("row `c2` of table `conversations`") && said.contains("`diagnostic_state`"),
        "{said}"
    );
    let said = refused(&format!("{BEFORE} UPDATE messages SET conversation_id = x'ff' WHERE id = 2")).await;
    assert!(said.contains("`messages`"), "{said}");
}

#[tokio::test]
async fn fields_of_a_diagnosis_that_strata_does_not_know_are_kept() {
    let script = format!(
        "{BEFORE}{AFTER} UPDATE conversations SET diagnostic_state =
             '{{\"device_ip\": null, \"status\": \"\", \"findings\": [\"f\"], \"mood\": \"calm\"}}' WHERE id = 'c2';"
    );
    let (_folder, path) = database(&script);
    let engine = engine();
    run(&path, &engine).await;
    let state = engine.sessions.get(&user(), &session("c2")).await.unwrap().state;
    assert_eq!(state.diagnostic.findings, ["f"]);
    assert_eq!(state.extra["diagnostic_state"]["mood"], "calm");
}

#[tokio::test]
async fn a_database_with_a_write_ahead_log_is_left_as_it_is() {
    let (folder, path) = database(&format!("PRAGMA journal_mode = WAL; {BEFORE}"));
    let before = files(folder.path());
    assert_eq!(before.len(), 1, "the log is gone when the last connection closes");
    let engine = engine();
    assert_eq!(run(&path, &engine).await.turns_added, 5);
    assert_eq!(files(folder.path()), before);

    // While the other program is running, what it has written so far is in the log.
    let other = Connection::open(&path).unwrap();
    other
        .execute("INSERT INTO messages (conversation_id, role, content) VALUES ('c1', 'user', 'live')", [])
        .unwrap();
    let before = files(folder.path());
    assert!(before.len() > 1);
    assert_eq!(run(&path, &engine).await.turns_added, 1);
    assert_eq!(files(folder.path()).get(&path), before.get(&path));
    other
        .execute("INSERT INTO messages (conversation_id, role, content) VALUES ('c1', 'user', 'on')", [])
        .unwrap();
}

#[tokio::test]
async fn a_folder_of_users_stays_apart() {
    let (_folder, path) = database(BEFORE);
    let engine = engine();
    run(&path, &engine).await;
    let ann = UserId::new("ann").unwrap();
    let options = ImportOptions { user: ann.clone(), ..ImportOptions::default() };
    assert_eq!(import::sqlite(&path, &engine, &options, |_| {}).await.unwrap().turns_added, 5);
    assert_eq!(engine.sessions.list(&ann, Page::first(9)).await.unwrap().len(), 3);
}
