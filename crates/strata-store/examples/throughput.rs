//! How fast the SQLite store writes and searches: `cargo run --release -p strata-store --example throughput -- FOLDER`.
//!
//! It prints turns a second for one transaction a turn and for 64 tasks at once, the bytes a turn takes on disk, and the
//! median search of a user with 10,000 turns inside stores of 100,000 and of 1,000,000 turns. Compare figures of one run
//! only.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a person, on data of its own")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use strata_core::store::{Change, ChangeSet, CheckDepth, ItemKinds, TextMatch, TextQuery};
use strata_core::{NewTurn, Role, SessionId, Store, TurnId, UserId};
use strata_store::{SqliteOptions, SqliteStore};
use uuid::Uuid;

/// Words of a turn, and of the language they are drawn from.
const WORDS: u64 = 20;
const VOCABULARY: f64 = 30_000.0;

static IDS: AtomicU64 = AtomicU64::new(1);

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let sizes: Vec<u64> = std::env::args().skip(2).map(|size| size.parse().unwrap()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000] } else { sizes };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        writes(Path::new(&folder)).await;
        for size in sizes {
            searches(Path::new(&folder), size).await;
        }
    });
}

/// A cheap stream of numbers that is the same in every run.
fn number(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A word whose rank follows Zipf's law, less the first five: the commonest is in a third of all turns, as names and topics
/// are in a conversation whose stop words are gone. With fewer common words every search looks quick.
fn word(seed: u64) -> String {
    let share = number(seed) as f64 / u64::MAX as f64;
    let rank = 5.0 * ((VOCABULARY + 5.0) / 5.0).powf(share) - 5.0;
    format!("w{}k", number(rank as u64) % 1_000_000_007)
}

fn text(seed: u64) -> String {
    let words: Vec<String> = (0..WORDS).map(|place| word(seed * WORDS + place)).collect();
    words.join(" ")
}

fn turns(session: &str, count: u64) -> ChangeSet {
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let turns = (0..count).map(|_| {
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let millis = jiff::SignedDuration::from_millis(id.cast_signed());
        NewTurn {
            id: TurnId(Uuid::from_u64_pair(id, number(id))),
            role: Role::User,
            name: None,
            content: text(id),
            created_at: now + millis,
            token_count: WORDS as u32,
            metadata: Default::default(),
            notes: Default::default(),
            hidden: None,
        }
    });
    ChangeSet::one(
        now,
        Change::AppendTurns { session: SessionId::new(session).unwrap(), turns: turns.collect() },
    )
}

fn open(folder: &Path, name: &str) -> SqliteStore {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("{name}{end}")));
    }
    SqliteStore::open(folder.join(name), SqliteOptions::default()).unwrap()
}

async fn indexed(store: &SqliteStore) {
    while store.check(CheckDepth::Quick).await.unwrap().unindexed > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn writes(folder: &Path) {
    let user = UserId::default();
    let store = open(folder, "one.db");
    let started = Instant::now();
    for _ in 0..1_000 {
        store.apply(&user, turns("s", 1)).await.unwrap();
    }
    let alone = 1_000.0 / started.elapsed().as_secs_f64();
    store.close().await.unwrap();

    let store = Arc::new(open(folder, "many.db"));
    let started = Instant::now();
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let (store, user) = (Arc::clone(&store), user.clone());
            tokio::spawn(async move {
                for _ in 0..800 {
                    store.apply(&user, turns(&format!("s{task}"), 1)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let together = 64.0 * 800.0 / started.elapsed().as_secs_f64();
    println!(
        "one at a time {alone:.0} turns/s, 64 tasks {together:.0} turns/s, {:.1} times",
        together / alone
    );
    let started = Instant::now();
    indexed(&store).await;
    println!("the rest was indexed {:.0} ms later", started.elapsed().as_secs_f64() * 1e3);
    store.close().await.unwrap();
    let bytes = std::fs::metadata(folder.join("many.db")).unwrap().len() as f64 / (64.0 * 800.0);
    println!("{bytes:.0} bytes a turn on disk, of which {} of text", text(1).len());
}

async fn searches(folder: &Path, size: u64) {
    let name = format!("search-{size}.db");
    let store = open(folder, &name);
    let users: Vec<UserId> = (0..size / 10_000).map(|n| UserId::new(format!("user {n}")).unwrap()).collect();
    let started = Instant::now();
    for _ in 0..100 {
        for user in &users {
            store.apply(user, turns("s", 100)).await.unwrap();
        }
    }
    indexed(&store).await;
    println!("{size} turns written and indexed in {:.1} s", started.elapsed().as_secs_f64());
    store.close().await.unwrap();

    let started = Instant::now();
    let store = SqliteStore::open(folder.join(&name), SqliteOptions::default()).unwrap();
    store.head(&users[0]).await.unwrap();
    let opened = started.elapsed().as_secs_f64() * 1e3;
    for words in [3, 6] {
        let (mut times, mut hits) = (Vec::new(), 0);
        for round in 0..400_u64 {
            let question: Vec<String> =
                (0..words).map(|place| word(round * 7 + place + 1_000_000_000)).collect();
            let query = TextQuery {
                text: question.join(" "),
                matching: TextMatch::Words,
                session: None,
                kinds: ItemKinds::ALL,
                as_of: None,
                keep: None,
                limit: 10,
            };
            let started = Instant::now();
            hits += store.search(&users[users.len() / 2], &query).await.unwrap().len();
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{size} turns, {words} words: median {:.2} ms, p99 {:.2} ms, {:.1} hits (opened in {opened:.1} ms)",
            times[200],
            times[395],
            hits as f64 / 400.0
        );
    }
    let question = TextQuery {
        text: "w12345k".to_owned(),
        matching: TextMatch::Similar { min_similarity: 0.3 },
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        keep: None,
        limit: 10,
    };
    let started = Instant::now();
    store.search(&users[0], &question).await.unwrap();
    println!("similar words: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
}
