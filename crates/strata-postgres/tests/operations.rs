//! The store in the places where it runs: with a standby that takes over, a replica, a pooler and encrypted connections.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strata_core::job::JobOutcome;
use strata_core::store::conformance::fixture::*;
use strata_core::store::{Change, ChangeSet, CheckDepth};
use strata_core::{ErrorKind, Store, TurnId};
use strata_postgres::test_server::{Durability, Pooler, Server, database};
use strata_postgres::{PostgresOptions, PostgresStore};
use tokio::sync::watch;

const WRITERS: usize = 12;

/// The number of acknowledged writes before and after the failover.
const ACKNOWLEDGED: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_has_every_acknowledged_write() {
    fail_over(Server::stop_immediately).await;
}

/// Its connections stay open, so nothing but time tells that it is away.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_hangs_is_replaced() {
    fail_over(Server::freeze).await;
}

async fn fail_over(lose: impl Fn(&Server)) {
    let database = Server::start(Durability::Durable).database().await;
    let standby = database.server().start_standby().await;
    let address = database.server().address_with(&standby, database.name()) + "&connect_timeout=1";
    let options = PostgresOptions {
        address: address.parse().unwrap(),
        statement_timeout: Duration::from_secs(2),
        ..database.options()
    };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(watch::Sender::new(0)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, over, count) = (Arc::clone(&store), Arc::clone(&over), Arc::clone(&count));
            tokio::spawn(async move { write(&store, writer, &over, &count).await })
        })
        .collect();
    wait_for(&count, ACKNOWLEDGED).await;
    // The primary is lost, and the standby takes its place. Strata finds it by itself.
    lose(database.server());
    standby.promote();
    let now = *count.borrow();
    wait_for(&count, now + ACKNOWLEDGED).await;
    over.store(true, Ordering::SeqCst);
    for (writer, task) in writers.into_iter().enumerate() {
        let acknowledged = task.await.unwrap();
        let user = user(&format!("user{}", writer % 4));
        let stored: Vec<TurnId> =
            all_turns(&*store, &user, &format!("s{writer}")).await.iter().map(|turn| turn.id).collect();
        let missing = acknowledged.iter().filter(|id| !stored.contains(id)).count();
        assert_eq!(missing, 0, "acknowledged turns of writer {writer} are missing");
        let mut once = stored.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), stored.len(), "a turn is stored twice");
    }
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

/// Appends until the end and returns what was acknowledged. A failure has to say that it may be tried again, or that the caller
/// has to look.
async fn write(
    store: &PostgresStore,
    writer: usize,
    over: &AtomicBool,
    count: &watch::Sender<u64>,
) -> Vec<TurnId> {
    let user = user(&format!("user{}", writer % 4));
    let mut acknowledged = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let turn = turn("the tide turns");
        let id = turn.id;
        let change = ChangeSet::one(at(0), appending(&format!("s{writer}"), vec![turn]));
        match store.apply(&user, change).await {
            Ok(_) => {
                acknowledged.push(id);
                count.send_modify(|count| *count += 1);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    acknowledged
}

async fn wait_for(count: &watch::Sender<u64>, wanted: u64) {
    count.subscribe().wait_for(|count| *count >= wanted).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn recall_reads_from_the_replica_and_writes_go_to_the_primary() {
    let database = Server::start(Durability::Durable).database().await;
    let replica = database.server().start_standby().await;
    // The first of two replicas is away.
    let address = replica.address(database.name()).replace("@", "@127.0.0.1:1,");
    let options = PostgresOptions { replica: Some(address.parse().unwrap()), ..database.options() };
    let store = PostgresStore::open(options).await.unwrap();
    append(&store, &ann(), "s", &["the buoy is green"]).await;
    // A replica may be a moment behind.
    while found(&store, &ann(), &words("buoy")).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.head(&ann()).await.unwrap().revision, 1);
    assert_eq!(store.feed(&ann(), 0, 9).await.unwrap().len(), 1);
    let reads = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'strata'";
    let replica_client = replica.client(database.name()).await;
    let count: i64 = replica_client.query_one(reads, &[]).await.unwrap().get(0);
    assert!(count > 0, "nothing was read from the replica");
    // What changed is never older than a head that the primary has told of: an index would miss it for ever.
    replica_client.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
    append(&store, &ann(), "s", &["the buoy is blue"]).await;
    assert_eq!(store.head(&ann()).await.unwrap().revision, 1, "the replica is behind");
    assert_eq!(store.feed(&ann(), 0, 9).await.unwrap().len(), 2);
    replica_client.batch_execute("SELECT pg_wal_replay_resume()").await.unwrap();
    // Without the replica, recall reads from the primary. A commit no longer waits for it.
    let admin = database.client().await;
    admin.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").await.unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    replica.stop_immediately();
    append(&store, &ann(), "s", &["the buoy is red"]).await;
    assert_eq!(found(&store, &ann(), &words("buoy")).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_works_behind_a_pooler_in_transaction_mode() {
    let database = database().await;
    let pooler = Pooler::start(&database);
    let options = PostgresOptions {
        address: pooler.address().parse().unwrap(),
        // More than the pooler has, so connections change from transaction to transaction.
        connections: 16,
        ..database.options()
    };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let user = user(&format!("user{}", writer % 5));
                for _ in 0..10 {
                    append(&*store, &user, "s", &["the gull cries"]).await;
                    assert!(!found(&*store, &user, &words("gull")).await.is_empty());
                }
                let job = strata_core::job::Job { user: user.clone(), ..job(Some("s"), 0) };
                apply(&*store, &user, Change::EnqueueJob(Box::new(job))).await;
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut done = 0;
    while let Some(job) = store.lease_job(&lease(1, 1_000)).await.unwrap() {
        let lease = job.lease.clone().unwrap().id;
        let finish = Change::FinishJob { id: job.id, lease, outcome: JobOutcome::done() };
        apply(&*store, &job.user, finish).await;
        done += 1;
    }
    assert_eq!(done, 16);
    for number in 0..5 {
        let user = user(&format!("user{number}"));
        let turns = all_turns(&*store, &user, "s").await;
        assert!(turns.iter().enumerate().all(|(place, turn)| turn.seq == place as u64));
    }
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn encrypted_connections_check_the_certificate() {
    let database = Server::start(Durability::None).database().await;
    let authority = database.server().require_tls();
    let with = |mode: &str| database.address().replace("sslmode=disable", mode).parse().unwrap();
    let trusting = |mode: &str| PostgresOptions {
        root_certificates: Some(authority.clone()),
        ..PostgresOptions::new(with(mode))
    };
    let store = PostgresStore::open(trusting("sslmode=require")).await.unwrap();
    append(&store, &ann(), "s", &["a sealed letter"]).await;
    for mode in ["sslmode=verify-full", "sslmode=verify-ca"] {
        PostgresStore::open(trusting(mode)).await.unwrap();
    }
    // Neither an unencrypted connection nor an authority that did not sign the certificate is accepted.
    let plain = PostgresStore::open(trusting("sslmode=disable")).await.err().unwrap();
    assert_eq!(plain.kind(), ErrorKind::Invalid, "{plain}");
    let stranger = PostgresOptions {
        patience: std::time::Duration::from_millis(50),
        ..PostgresOptions::new(with("sslmode=require"))
    };
    assert!(PostgresStore::open(stranger).await.is_err());
}

/// With this variable, the test only starts a server and waits to be killed.
const ORPHAN: &str = "STRATA_TEST_ORPHAN";

#[test]
fn the_server_of_a_killed_test_ends() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    if std::env::var_os(ORPHAN).is_some() {
        let server = Server::start(Durability::None);
        println!("address {}", server.address("postgres"));
        loop {
            std::thread::park();
        }
    }
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["the_server_of_a_killed_test_ends", "--exact", "--nocapture"])
        .env(ORPHAN, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.into_iter().find_map(|line| Some(line.split_once("@")?.1.split_once('/')?.0.to_owned()));
    let address = address.expect("the server tells its address");
    test.kill().unwrap();
    test.wait().unwrap();
    while std::net::TcpStream::connect(&address).is_ok() {
        std::thread::yield_now();
    }
}
