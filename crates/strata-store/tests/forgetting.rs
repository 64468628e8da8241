//! Forgetting leaves no byte behind: neither in the file nor in its log, whatever had been where before, and whether the
//! store is busy or idle.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use strata_core::store::conformance::fixture::{
    add, ann, append, apply, bob, found, job, lease, memory, object, request, session, summary, words,
};
use strata_core::store::{Change, CheckDepth, Forget};
use strata_core::{Error, Store};
use strata_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// What is said in the session that is forgotten and nowhere else. It is looked for without its last letters, whatever the
/// analysis of words makes of them.
const SECRET: &str = "zanzibarquuxly";
const SOUGHT: &[u8] = b"zanzibarqu";

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

/// Waits until the index has followed. Asking the store would keep the writer from being quiet.
async fn all_indexed(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT (SELECT count(*) FROM turns WHERE row > (SELECT upto FROM indexed WHERE kind = 0))
                    + (SELECT count(*) FROM memories WHERE row > (SELECT upto FROM indexed WHERE kind = 1))";
    while conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
        tokio::task::yield_now().await;
    }
}

/// The files of the folder in which the secret is found.
fn holding_it(folder: &TempDir) -> Vec<String> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let holding = files.filter(|path| {
        let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
        bytes.windows(SOUGHT.len()).any(|window| window == SOUGHT)
    });
    holding.map(|path| path.display().to_string()).collect()
}

/// Ann tells the secret in session `s`, in everything that a session has; and there is much else, indexed in many small parts,
/// so that the index has moved it from one place to another.
async fn filled(path: &Path) -> SqliteStore {
    let store = open(path);
    for round in 0..12 {
        let said: Vec<String> =
            (0..8).map(|word| format!("round {round} word{round}x{word} bread and salt")).collect();
        append(&store, &bob(), "kept", &said.iter().map(String::as_str).collect::<Vec<_>>()).await;
        if round % 6 == 0 {
            let long = format!("{SECRET}{round} {}", "a long story ".repeat(1_000));
            append(&store, &ann(), "s", &[&format!("I keep the {SECRET} in round{round}"), &long]).await;
        }
        append(&store, &ann(), "other", &[&format!("an other thing of round{round}")]).await;
        all_indexed(path).await;
    }
    let mut told = summary("s", 1);
    told.text = format!("Ann keeps the {SECRET}.");
    apply(&store, &ann(), Change::PutSummary(Box::new(told))).await;
    let mut asked = request(1);
    asked.session = Some(session("s"));
    asked.query = format!("where is the {SECRET}?");
    apply(&store, &ann(), Change::AddRequest(Box::new(asked))).await;
    let mut work = job(Some("s"), 5);
    work.payload = serde_json::json!({ "note": SECRET });
    apply(&store, &ann(), Change::EnqueueJob(Box::new(work))).await;
    store
}

/// What was not forgotten is found, and the store is well.
async fn works_on(path: &Path) {
    let store = open(path);
    all_indexed(path).await;
    assert_eq!(found(&store, &bob(), &words("word7x3")).await.len(), 1);
    assert_eq!(found(&store, &bob(), &words("salt")).await.len(), 96);
    let health = store.check(CheckDepth::Thorough).await.unwrap();
    assert_eq!(health.problems, Vec::<String>::new());
    append(&store, &bob(), "kept", &["a plum afterwards"]).await;
    assert_eq!(found(&store, &bob(), &words("plum")).await, ["a plum afterwards"]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_forgotten_session_leaves_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    let mut learned = memory(&format!("Keeps the {SECRET}"));
    learned.session = Some(session("s"));
    add(&store, &ann(), learned).await;
    store.close().await.unwrap();
    assert!(!holding_it(&folder).is_empty(), "the secret was never there");

    let store = open(&path);
    apply(&store, &ann(), Change::Forget(Forget::Session(session("s")))).await;
    store.close().await.unwrap();
    assert_eq!(holding_it(&folder), Vec::<String>::new());
    works_on(&path).await;
    let store = open(&path);
    assert_eq!(found(&store, &ann(), &words("round6")).await, ["an other thing of round6"]);
}

#[tokio::test]
async fn a_forgotten_memory_leaves_no_byte_of_its_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = open(&path);
    let mut secret = memory(&format!("The {SECRET} is in the cellar"));
    secret.metadata = object(serde_json::json!({ "note": SECRET }));
    let id = add(&store, &ann(), secret).await;
    let kept = add(&store, &ann(), memory("Likes tea")).await;
    all_indexed(&path).await;
    let revised = Change::ReviseMemory {
        id,
        archive_as: strata_core::MemoryId(strata_core::store::conformance::fixture::fresh()),
        content: format!("The {SECRET} is in the attic"),
        metadata: None,
    };
    apply(&store, &ann(), revised).await;
    all_indexed(&path).await;
    apply(&store, &ann(), Change::Forget(Forget::Memory(id))).await;
    store.close().await.unwrap();
    assert_eq!(holding_it(&folder), Vec::<String>::new());
    let store = open(&path);
    assert_eq!(found(&store, &ann(), &words("tea")).await, ["Likes tea"]);
    assert!(store.check(CheckDepth::Thorough).await.unwrap().problems.is_empty());
    assert_ne!(kept, id);
}

#[tokio::test]
async fn a_forgotten_user_leaves_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    apply(&store, &ann(), Change::Forget(Forget::User)).await;
    store.close().await.unwrap();
    assert_eq!(holding_it(&folder), Vec::<String>::new());
    works_on(&path).await;
}

#[tokio::test]
async fn what_a_crash_left_is_scrubbed_by_whoever_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    apply(&store, &ann(), Change::Forget(Forget::User)).await;
    drop(store);
    assert!(!holding_it(&folder).is_empty(), "nothing was left to do");
    works_on(&path).await;
    assert_eq!(holding_it(&folder), Vec::<String>::new());
}

#[tokio::test]
async fn a_reader_that_needs_the_log_only_puts_it_off() -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    store.close().await?;
    let options = SqliteOptions { busy_timeout: std::time::Duration::ZERO, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options)?;
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM turns").unwrap();
    apply(&store, &ann(), Change::Forget(Forget::User)).await;
    store.close().await?;
    // The reader still sees what it saw.
    let turns: i64 = reader.query_row("SELECT count(*) FROM turns", [], |row| row.get(0)).unwrap();
    assert_eq!(turns, 12 * 9 + 4);
    drop(reader);
    works_on(&path).await;
    assert_eq!(holding_it(&folder), Vec::<String>::new());
    Ok(())
}

/// The time within which forgotten bytes are gone while the store works.
const SOON: Duration = Duration::from_secs(2);

/// The files that still hold the secret [`SOON`] after `since`.
async fn left_after(folder: &TempDir, since: Instant) -> Vec<String> {
    loop {
        let holding = holding_it(folder);
        if holding.is_empty() || since.elapsed() > SOON {
            return holding;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_store_is_scrubbed_as_soon_as_an_idle_one() {
    for is_busy in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strata.db");
        let store = Arc::new(filled(&path).await);
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..3 {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            tasks.spawn(async move {
                // Learners look for work, and clients write and search without a pause.
                while !stop.load(Ordering::Relaxed) {
                    store.lease_job(&lease(0, 1)).await.unwrap();
                    if is_busy {
                        append(&*store, &bob(), &format!("s{number}"), &["one more word"]).await;
                        found(&*store, &bob(), &words("salt")).await;
                    } else {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        assert!(!holding_it(&folder).is_empty(), "the secret was never there");
        apply(&*store, &ann(), Change::Forget(Forget::Session(session("s")))).await;
        assert_eq!(left_after(&folder, Instant::now()).await, Vec::<String>::new(), "busy: {is_busy}");
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let store = Arc::into_inner(store).unwrap();
        assert_eq!(found(&store, &bob(), &words("salt")).await.len(), 96);
        let health = store.check(CheckDepth::Thorough).await.unwrap();
        assert_eq!(health.problems, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_another_process_forgot_and_could_not_scrub_is_scrubbed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strata.db");
    let store = filled(&path).await;
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM turns").unwrap();
    let other = open(&path);
    apply(&other, &ann(), Change::Forget(Forget::User)).await;
    drop(other);
    reader.execute_batch("COMMIT").unwrap();
    assert!(!holding_it(&folder).is_empty(), "nothing was left to do");
    // The next write of this process tells it.
    append(&store, &bob(), "kept", &["a plum"]).await;
    assert_eq!(left_after(&folder, Instant::now()).await, Vec::<String>::new());
}
