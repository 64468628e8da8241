//! A database of an older version of the format, and processes of that version which go on writing during the upgrade.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use strata_core::store::conformance::fixture::*;
use strata_core::store::{Change, CheckDepth, Page, PartQuery};
use strata_core::summary::{Strategy, Summary, SummaryPart, SummaryStatus};
use strata_core::{Store, SummaryId};
use strata_postgres::test_server::{Database, database, old_database};
use tokio_postgres::Client;

const WITH_TODO: &str = r#"{"todos": ["buy a fuse"], "facts": []}"#;
const WITHOUT: &str = r#"{"todos": [], "facts": ["the oven is broken"]}"#;

/// The sessions of ann whose current summaries have todos.
async fn todos(store: &dyn Store) -> Vec<String> {
    let query = PartQuery { part: SummaryPart::Todos, page: Page::first(99) };
    let found = store.summaries_with(&ann(), &query).await.unwrap();
    let mut sessions: Vec<String> = found.iter().map(|summary| summary.session.to_string()).collect();
    sessions.sort();
    sessions
}

/// A process of version 3, with the statements by which it writes.
struct Old(Client);

impl Old {
    async fn new(database: &Database) -> Self {
        Self(database.client().await)
    }

    async fn begin_session(&self, session: &str) {
        let sql = "INSERT INTO sessions AS s (user_id, session, created_at, updated_at, next_seq, version)
                   VALUES ('ann', $1, 0, 0, 0, 1)";
        self.0.execute(sql, &[&session]).await.unwrap();
    }

    /// Writes a summary of a session's window that reaches to `end`.
    async fn put(&self, session: &str, id: SummaryId, end: i64, status: &str, structured: Option<&str>) {
        self.0.batch_execute("BEGIN").await.unwrap();
        let raise = "INSERT INTO users AS u (user_id, revision, writes) VALUES ('ann', 1, 1)
                     ON CONFLICT (user_id) DO UPDATE SET revision = u.revision + 1, writes = u.writes + 1
                     RETURNING revision";
        let revision: i64 = self.0.query_one(raise, &[]).await.unwrap().get(0);
        let sql = "INSERT INTO summaries AS s (user_id, session, id, revision, strategy, level, start_seq, end_seq,
                       base_id, status, input_tokens, output_tokens, generation_ms, created_at, updated_at, structured,
                       text)
                   VALUES ('ann', $1, $2, $3, 'window', 0, 0, $4, NULL, $5, 0, 0, NULL, 0, 0, $6, 'they talked')
                   ON CONFLICT (user_id, id) DO UPDATE SET
                       revision = $3, end_seq = $4, status = $5, structured = $6
                   WHERE s.session = $1";
        self.0.execute(sql, &[&session, &id.0, &revision, &end, &status, &structured]).await.unwrap();
        self.0.batch_execute("COMMIT").await.unwrap();
    }

    async fn complete(&self, session: &str, end: i64, structured: &str) {
        self.put(session, SummaryId(fresh()), end, "completed", Some(structured)).await;
    }
}

async fn put(store: &dyn Store, session: &str, end: u64, structured: &str) {
    let structured = Some(serde_json::from_str(structured).unwrap());
    let summary = Summary { strategy: Strategy::Window, structured, ..summary(session, end) };
    apply(store, &ann(), Change::PutSummary(Box::new(summary))).await;
}

#[tokio::test]
async fn summaries_that_an_old_process_writes_count_at_once() {
    let database = old_database(3).await;
    let old = Old::new(&database).await;
    for session in ["a", "b", "c", "d", "e"] {
        old.begin_session(session).await;
    }
    old.complete("a", 1, WITH_TODO).await;
    let begun = SummaryId(fresh());
    old.put("b", begun, 1, "processing", None).await;
    old.complete("d", 1, WITH_TODO).await;
    let store = database.open().await;
    assert_eq!(todos(&store).await, ["a", "d"]);

    // A summary that it had begun before the upgrade, a new one, and one that takes the place of another.
    old.put("b", begun, 1, "completed", Some(WITH_TODO)).await;
    assert_eq!(todos(&store).await, ["a", "b", "d"]);
    old.complete("c", 1, WITH_TODO).await;
    old.complete("d", 2, WITHOUT).await;
    assert_eq!(todos(&store).await, ["a", "b", "c"]);

    // Each version goes on from what the other has written.
    put(&store, "a", 2, WITHOUT).await;
    old.complete("b", 2, "{ damaged").await;
    put(&store, "e", 1, WITH_TODO).await;
    old.complete("e", 2, WITHOUT).await;
    old.complete("a", 3, WITH_TODO).await;
    assert_eq!(todos(&store).await, ["a", "c"]);
    let failed = Summary {
        strategy: Strategy::Window,
        status: SummaryStatus::Failed,
        structured: Some(json!({ "todos": ["nothing"] })),
        ..summary("d", 9)
    };
    apply(&store, &ann(), Change::PutSummary(Box::new(failed))).await;
    assert_eq!(todos(&store).await, ["a", "c"]);
}

#[tokio::test]
async fn the_oldest_versions_keep_what_they_hold() {
    for version in [1, 2] {
        let database = old_database(version).await;
        let old = Old::new(&database).await;
        for session in ["a", "b"] {
            old.begin_session(session).await;
        }
        old.complete("a", 1, WITH_TODO).await;
        old.complete("b", 1, WITHOUT).await;
        let fill = "INSERT INTO turns (user_id, session, seq, created_at, revision, id, token_count, length,
                        memories_in_session, interrupted, truncated, high_value, role, content, terms)
                    VALUES ('ann', 'a', 0, 5, 1, gen_random_uuid(), 3, 2, 0, false, false, false, 'user',
                        'the oven is warm', '');
                    UPDATE sessions SET next_seq = 1 WHERE session = 'a';
                    UPDATE users SET indexed_items = 1, indexed_terms = 2;
                    INSERT INTO jobs (user_id, id, run_at, created_at, updated_at, attempts, status, session, kind, payload)
                    VALUES ('ann', gen_random_uuid(), 0, 0, 0, 0, 'queued', 'a', 'extract', '{}')";
        old.0.batch_execute(fill).await.unwrap();
        let store = database.open().await;
        assert_eq!(todos(&store).await, ["a"], "version {version}");
        let job = store.lease_job(&lease(9, 99)).await.unwrap().unwrap();
        assert_eq!((job.user, job.session.unwrap().as_str()), (ann(), "a"));
        append(&store, &ann(), "a", &["the bread is in it"]).await;
        let turns = all_turns(&store, &ann(), "a").await;
        let texts: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
        assert_eq!(texts, ["the oven is warm", "the bread is in it"], "version {version}");
        assert_eq!(found(&store, &ann(), &words("bread")).await, ["the bread is in it"]);
        assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
        // A process of the old version goes on, as far as it knows the format.
        old.complete("b", 2, WITH_TODO).await;
        assert_eq!(todos(&store).await, ["a", "b"], "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_process_writes_while_the_format_is_brought_up_to_date() {
    let database = old_database(3).await;
    let first = Old::new(&database).await;
    for session in ["a", "b", "c"] {
        first.begin_session(session).await;
    }
    let over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for session in ["a", "b", "c"] {
        let (old, over) = (Old::new(&database).await, Arc::clone(&over));
        writers.push(tokio::spawn(async move {
            let mut end = 0;
            while !over.load(Ordering::SeqCst) {
                end += 2;
                old.complete(session, end, if end % 4 == 0 { WITH_TODO } else { WITHOUT }).await;
            }
            old.complete(session, end + 2, if session == "b" { WITHOUT } else { WITH_TODO }).await;
        }));
    }
    let (reader, reads_on) = (database.client().await, Arc::clone(&over));
    let reader = tokio::spawn(async move {
        // PostgreSQL may undo the question, as a deadlock; the migration goes on.
        while !reads_on.load(Ordering::SeqCst) {
            let _ =
                reader.query("SELECT count(*) FROM memory JOIN chat_summaries ON memory_id = id", &[]).await;
        }
    });
    // Two processes of this version start, read and write, all at once.
    let (one, two) = tokio::join!(database.open(), database.open());
    for end in 0..20 {
        put(&one, "c", 2 * end + 1, WITH_TODO).await;
        tokio::join!(todos(&one), todos(&two));
    }
    over.store(true, Ordering::SeqCst);
    for task in writers.into_iter().chain([reader]) {
        task.await.unwrap();
    }
    assert_eq!(todos(&two).await, ["a", "c"]);
    assert_eq!(todos(&one).await, ["a", "c"]);
    let unnoted = "SELECT count(*) FROM summaries WHERE noted IS DISTINCT FROM revision";
    assert_eq!(first.0.query_one(unnoted, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_eq!(one.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

/// The number of rows and of entries of indexes that were read.
const READ: &str = "SELECT (SELECT sum(seq_tup_read)::bigint FROM pg_stat_user_tables)
                        + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes),
                    (SELECT sum(idx_scan)::bigint FROM pg_stat_user_indexes WHERE indexrelname LIKE 'sessions%')";

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_todos_are_found_without_reading_all_sessions() {
    let database = database().await;
    let client = database.client().await;
    append(&database.open().await, &ann(), "s", &["one"]).await;
    let fill = "INSERT INTO sessions (user_id, session, created_at, updated_at, next_seq, version, parts)
                SELECT 'ann', 's' || n, n, n, 0, 1, 8 FROM generate_series(1, 20000) n;
                INSERT INTO summaries (user_id, session, id, revision, noted, strategy, level, start_seq, end_seq, status,
                    input_tokens, output_tokens, created_at, updated_at, structured, text)
                SELECT 'ann', 's' || n, gen_random_uuid(), 1, 1, 'window', 0, 0, 1, 'completed', 0, 0, n, n,
                    '{\"todos\": [\"x\"]}', 'they talked' FROM generate_series(1, 20000) n;
                ANALYZE sessions; ANALYZE summaries";
    client.batch_execute(fill).await.unwrap();
    let read = async || {
        let row = database.client().await.query_one(READ, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let store = database.open().await;
    let before = read().await;
    let found = todos(&store).await;
    assert_eq!((found.len(), found.contains(&"s20000".to_owned())), (99, true));
    // The server counts what a connection has read when it ends.
    store.close().await.unwrap();
    loop {
        let now = read().await;
        if now.1 > before.1 {
            assert!(now.0 - before.0 < 2_000, "{} rows were read", now.0 - before.0);
            break;
        }
        tokio::task::yield_now().await;
    }
}
