//! What several processes on one database may rely on: each test opens several stores, as processes would.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::sync::Arc;
use std::time::Duration;

use strata_core::job::JobOutcome;
use strata_core::store::conformance::fixture::*;
use strata_core::store::{Change, ChangeSet, CheckDepth, TurnQuery};
use strata_core::{ErrorKind, Store};
use strata_postgres::test_server::{Durability, Server, database, empty_database};
use strata_postgres::{PostgresOptions, PostgresStore};

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_at_once_migrate_once() {
    let database = empty_database().await;
    let starts: Vec<_> = (0..6).map(|_| tokio::spawn(PostgresStore::open(database.options()))).collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let store = database.open().await;
    append(&store, &ann(), "s", &["one"]).await;
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'turns'::regclass";
    let count: i64 = database.client().await.query_one(partitions, &[]).await.unwrap().get(0);
    assert_eq!(count, 2);
}

#[tokio::test]
async fn a_database_of_another_program_or_a_later_strata_is_refused() {
    let other = empty_database().await;
    other.client().await.batch_execute("CREATE TABLE users (name text)").await.unwrap();
    let error = PostgresStore::open(other.options()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("another program"), "{error}");
    let tables = "SELECT count(*) FROM pg_class WHERE relname = 'strata_format'";
    let count: i64 = other.client().await.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(count, 0, "a refused database stays as it is");

    // A view with the name of one of ours, which must not be replaced.
    let views = empty_database().await;
    let client = views.client().await;
    for name in ["memory", "chat_turns", "memories_structured"] {
        client.batch_execute(&format!("CREATE VIEW {name} AS SELECT 7 AS answer")).await.unwrap();
        let error = PostgresStore::open(views.options()).await.err().unwrap();
        assert!(error.message().contains(&format!("`{name}`")), "{error}");
        let answer = client.query_one(&format!("SELECT answer FROM {name}"), &[]).await.unwrap();
        assert_eq!(answer.get::<_, i32>(0), 7);
        client.batch_execute(&format!("DROP VIEW {name}")).await.unwrap();
    }

    let later = database().await;
    let client = later.client().await;
    // A later version that this one may still use, as during an upgrade, and one that it may not.
    client.batch_execute("UPDATE strata_format SET version = 900").await.unwrap();
    append(&later.open().await, &ann(), "s", &["one"]).await;
    client.batch_execute("UPDATE strata_format SET oldest_reader = 900").await.unwrap();
    let error = PostgresStore::open(later.options()).await.err().unwrap();
    assert!(error.message().contains("newer Strata"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_worked_on_by_one_process_at_a_time() {
    let database = database().await;
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(database.open().await));
    }
    for number in 0..30 {
        let job = strata_core::job::Job { user: ann(), ..job(Some(&format!("s{}", number % 3)), 0) };
        apply(&*stores[0], &ann(), Change::EnqueueJob(Box::new(job))).await;
    }
    let workers: Vec<_> = (0..9)
        .map(|worker| {
            let store = Arc::clone(&stores[worker % 3]);
            tokio::spawn(async move { work(&store).await })
        })
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    assert_eq!(done, 30);
}

/// Takes and ends jobs until none is open, and returns how many. No other job of the session is leased meanwhile.
async fn work(store: &PostgresStore) -> usize {
    let mut done = 0;
    loop {
        let Some(job) = store.lease_job(&lease(1, 1_000)).await.unwrap() else {
            let open = strata_core::store::JobQuery { limit: 99, ..Default::default() };
            let jobs = store.jobs(&ann(), &open).await.unwrap();
            if jobs.iter().all(|job| job.status == strata_core::job::JobStatus::Done) {
                return done;
            }
            continue;
        };
        let query = strata_core::store::JobQuery {
            session: job.session.clone(),
            status: Some(strata_core::job::JobStatus::Leased),
            limit: 99,
            ..Default::default()
        };
        assert_eq!(store.jobs(&ann(), &query).await.unwrap().len(), 1, "a session has two workers");
        let lease = job.lease.clone().unwrap().id;
        let finish = Change::FinishJob { id: job.id, lease, outcome: JobOutcome::done() };
        store.apply(&ann(), ChangeSet::one(at(2), finish)).await.unwrap();
        done += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_users_job_is_found_without_reading_the_jobs_of_another() {
    let database = database().await;
    let store = database.open().await;
    let client = database.client().await;
    apply(&store, &ann(), Change::EnqueueJob(Box::new(job(Some("s"), 0)))).await;
    let many = "INSERT INTO jobs (user_id, id, run_at, created_at, updated_at, attempts, status, session, kind, payload)
                SELECT user_id, gen_random_uuid(), run_at, created_at, updated_at, attempts, status, 's' || n, kind, payload
                FROM jobs, generate_series(1, 20000) n";
    client.batch_execute(many).await.unwrap();
    client.batch_execute("ANALYZE jobs").await.unwrap();
    let other = strata_core::job::Job { user: bob(), ..job(None, 5) };
    apply(&store, &bob(), Change::EnqueueJob(Box::new(other))).await;
    for user in [bob(), ann(), bob()] {
        let served = strata_core::store::LeaseRequest { after: Some(user.clone()), ..lease(9, 99) };
        let next = store.lease_job(&served).await.unwrap().unwrap().user;
        assert_eq!(next, if user == bob() { ann() } else { bob() });
    }
    // The server counts what a connection has read when it ends.
    store.close().await.unwrap();
    let read = "SELECT coalesce(sum(idx_scan), 0)::bigint, coalesce(sum(seq_tup_read), 0)::bigint
                    + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'jobs')
                FROM pg_stat_user_tables WHERE relname = 'jobs'";
    loop {
        let row = client.query_one(read, &[]).await.unwrap();
        if row.get::<_, i64>(0) > 5 {
            assert!(row.get::<_, i64>(1) < 1_000, "{} rows were read", row.get::<_, i64>(1));
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_hears_of_a_job_that_another_one_enqueued() {
    let database = database().await;
    let (one, two) = (database.open().await, Arc::new(database.open().await));
    let heard = tokio::spawn({
        let two = Arc::clone(&two);
        async move {
            // The first notice says that the listener is ready.
            two.job_enqueued().await;
            two.job_enqueued().await;
        }
    });
    // Until the other one has heard it: a notice before it listens is lost.
    while !heard.is_finished() {
        apply(&one, &ann(), Change::EnqueueJob(Box::new(job(Some("s"), 0)))).await;
        tokio::task::yield_now().await;
    }
    heard.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_a_server_that_is_restarted() {
    let database = Server::start(Durability::Durable).database().await;
    let store = Arc::new(database.open().await);
    append(&*store, &ann(), "s", &["one"]).await;
    database.server().stop_immediately();
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { append(&*store, &ann(), "s", &["two"]).await }
    });
    let reading = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.head(&ann()).await.unwrap() }
    });
    assert_eq!(store.check(CheckDepth::Quick).await.unwrap_err().kind(), ErrorKind::Unavailable);
    database.server().resume();
    assert_eq!(writing.await.unwrap().len(), 1);
    assert!(reading.await.unwrap().revision > 0);
    let query = TurnQuery::Range { session: session("s"), after: None, limit: 9 };
    assert_eq!(store.turns(&ann(), &query).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_call_that_waits_too_long_fails_and_may_be_tried_again() {
    let database = database().await;
    let address = "postgres://test@127.0.0.1:1/nowhere?sslmode=disable".parse().unwrap();
    let away = PostgresOptions { patience: Duration::from_millis(60), ..PostgresOptions::new(address) };
    let error = PostgresStore::open(away).await.err().unwrap();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));

    // Another transaction holds the user's row for longer than a statement may take.
    let limit = Duration::from_millis(200);
    let store = PostgresStore::open(PostgresOptions { statement_timeout: limit, ..database.options() }).await;
    let store = store.unwrap();
    append(&store, &ann(), "s", &["one"]).await;
    let client = database.client().await;
    client.batch_execute("BEGIN; UPDATE users SET writes = writes").await.unwrap();
    let change = ChangeSet::one(at(0), appending("s", vec![turn("two")]));
    let error = store.apply(&ann(), change.clone()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.apply(&ann(), change).await.unwrap().turns[0].seq, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_no_longer_waits_leaves_no_open_transaction() {
    let database = database().await;
    let store = Arc::new(database.open().await);
    append(&*store, &ann(), "s", &["one"]).await;
    let client = database.client().await;
    client.batch_execute("BEGIN; UPDATE users SET writes = writes").await.unwrap();
    let blocked: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { append(&*store, &ann(), "s", &["lost"]).await })
        })
        .collect();
    let waiting =
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    for task in blocked {
        task.abort();
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    append(&*store, &ann(), "s", &["two"]).await;
    let texts: Vec<String> =
        all_turns(&*store, &ann(), "s").await.into_iter().map(|turn| turn.content).collect();
    assert_eq!((texts[0].as_str(), texts[texts.len() - 1].as_str()), ("one", "two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn users_whose_rows_are_held_keep_no_other_user_waiting() {
    const HELD: usize = 12;
    let database = database().await;
    let options = PostgresOptions { statement_timeout: Duration::from_secs(8), ..database.options() };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let names: Vec<_> = (0..60).map(|number| user(&format!("user{number:02}"))).collect();
    // The last ones are new users.
    for name in &names[..40] {
        append(&*store, name, "s", &["the first entry"]).await;
    }
    let client = database.client().await;
    let hold = format!("BEGIN; UPDATE users SET writes = writes WHERE user_id < 'user{HELD}'");
    client.batch_execute(&hold).await.unwrap();
    let writes = |of: usize| {
        let (store, name) = (Arc::clone(&store), names[of % names.len()].clone());
        let session = format!("s{}", of / names.len());
        tokio::spawn(async move { append(&*store, &name, &session, &["another entry"]).await })
    };
    // Users are held before the others come, and at the same time as they come.
    let mut held: Vec<_> = (0..HELD).map(writes).collect();
    wait_for_a_lock(&database.client().await, Duration::ZERO).await;
    let mut free = Vec::new();
    for of in 0..3 * names.len() {
        let is_held = of % names.len() < HELD;
        if is_held { held.push(writes(of)) } else { free.push(writes(of)) }
    }
    for write in free {
        write.await.unwrap();
    }
    assert!(held.iter().all(|write| !write.is_finished()));
    client.batch_execute("ROLLBACK").await.unwrap();
    for write in held {
        write.await.unwrap();
    }
    for name in &names {
        let turns = all_turns(&*store, name, "s0").await;
        assert!(turns.iter().enumerate().all(|(place, turn)| turn.seq == place as u64));
    }
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

/// Waits until somebody in the database has waited for a lock for some time. A transaction would see one state of the activity,
/// so it needs a client of its own.
async fn wait_for_a_lock(watcher: &tokio_postgres::Client, time: Duration) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
             AND clock_timestamp() - query_start > interval '{} milliseconds'",
        time.as_millis()
    );
    loop {
        if watcher.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thorough_check_may_take_longer_than_a_statement() {
    let database = database().await;
    let limit = Duration::from_millis(200);
    let options = PostgresOptions { statement_timeout: limit, ..database.options() };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    append(&*store, &ann(), "s", &["one"]).await;
    let client = database.client().await;
    client.batch_execute("BEGIN; LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let checking = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.check(CheckDepth::Thorough).await }
    });
    wait_for_a_lock(&database.client().await, 3 * limit).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(checking.await.unwrap().unwrap().problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_takes_too_long_is_cancelled_and_may_be_tried_again() {
    let database = database().await;
    let limit = Duration::from_millis(200);
    let options = PostgresOptions { statement_timeout: limit, connections: 1, ..database.options() };
    let store = PostgresStore::open(options).await.unwrap();
    append(&store, &ann(), "s", &["one"]).await;
    let client = database.client().await;
    client.batch_execute("BEGIN; LOCK TABLE sessions, turns, jobs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let errors = [
        store.session(&ann(), &session("s")).await.err(),
        store.feed(&ann(), 0, 9).await.err(),
        store.lease_job(&lease(1, 1_000)).await.err(),
    ];
    for error in errors {
        let error = error.unwrap();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true), "{error}");
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(store.session(&ann(), &session("s")).await.unwrap().is_some());
    assert_eq!(store.feed(&ann(), 0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_nobody_waits_for_is_cancelled() {
    let database = database().await;
    let store = Arc::new(
        PostgresStore::open(PostgresOptions { connections: 1, ..database.options() }).await.unwrap(),
    );
    append(&*store, &ann(), "s", &["one"]).await;
    let (client, watcher) = (database.client().await, database.client().await);
    client.batch_execute("BEGIN; LOCK TABLE sessions, turns IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for is_snapshot in [false, true] {
        let reading = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                match is_snapshot {
                    true => drop(store.feed(&ann(), 0, 9).await),
                    false => drop(store.session(&ann(), &session("s")).await),
                }
            }
        });
        wait_for_a_lock(&watcher, Duration::ZERO).await;
        reading.abort();
        // The only connection of the pool is free, although the tables are still locked.
        assert!(store.head(&ann()).await.unwrap().revision > 0);
        let waiting = "SELECT 1 FROM pg_stat_activity
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while !watcher.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
