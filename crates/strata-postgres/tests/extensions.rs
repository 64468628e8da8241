//! The store with pgvector and without it, and the search for misspelled words with `pg_trgm` and without it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's own functions")]

use strata_core::store::conformance::fixture::*;
use strata_core::store::{Change, Forget, ItemKinds, VectorQuery, conformance};
use strata_core::vector::{ItemVector, Vector};
use strata_core::{ItemId, Store};
use strata_postgres::test_server::{Database, Server, database};
use strata_postgres::{PostgresOptions, PostgresStore};

async fn has(database: &Database, sql: &str) -> bool {
    database.client().await.query_one(&format!("SELECT EXISTS ({sql})"), &[]).await.unwrap().get(0)
}

/// Finds the column of vectors.
const COLUMN: &str = "SELECT 1 FROM pg_attribute
    WHERE attrelid = 'vectors'::regclass AND attname = 'embedding' AND NOT attisdropped";

#[tokio::test(flavor = "multi_thread")]
async fn pgvector_finds_the_nearest_items() {
    let database = Server::start_with_pgvector().database().await;
    assert!(has(&database, COLUMN).await);
    let store = database.open().await;
    conformance::vectors::keeps_vectors_of_every_kind_of_item(&store).await;
    let other = database.server().another_database().await;
    conformance::vectors::finds_the_nearest_items_if_it_has_an_index(&other.open().await).await;
    // Without pg_trgm the newest items are compared in Strata.
    append(&store, &ann(), "s", &["a marvellous lighthouse"]).await;
    assert_eq!(found(&store, &ann(), &similar("lighthuose", 0.3)).await, ["a marvellous lighthouse"]);
}

/// Adds turns of bob with vectors around a circle.
async fn put_vectors(store: &dyn Store, count: usize) {
    let texts: Vec<String> = (0..count).map(|number| format!("note {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let turns = append(store, &bob(), "s", &texts).await;
    let vectors = turns.iter().enumerate().map(|(number, turn)| ItemVector {
        item: ItemId::Turn(*turn),
        model: MODEL.to_owned(),
        vector: Vector::quantise(&angle(number)),
    });
    apply(store, &bob(), Change::PutVectors(vectors.collect())).await;
}

const MODEL: &str = "it's \\ a model";

fn angle(number: usize) -> [f32; 2] {
    [(number as f32 * 0.01).cos(), (number as f32 * 0.01).sin()]
}

fn near(number: usize) -> VectorQuery {
    VectorQuery {
        model: MODEL.to_owned(),
        vector: Vector::quantise(&angle(number)),
        session: None,
        kinds: ItemKinds::ALL,
        as_of: None,
        limit: 3,
    }
}

async fn nearest(store: &dyn Store, number: usize) -> Vec<String> {
    let hits = store.nearest(&bob(), &near(number)).await.unwrap().unwrap();
    hits.iter().map(|hit| hit.item.content().to_owned()).collect()
}

/// Asks until the user has an index that can be used.
async fn ask_until_indexed(database: &Database, store: &dyn Store) {
    let index = "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                 WHERE c.relname LIKE 'vectors_hnsw_%' AND i.indisvalid";
    while !has(database, index).await {
        nearest(store, 5).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_grows_gets_an_index_of_its_vectors() {
    let database = Server::start_with_pgvector().database().await;
    let options = PostgresOptions { hnsw_from: 100, ..database.options() };
    let store = PostgresStore::open(options.clone()).await.unwrap();
    put_vectors(&store, 10).await;
    assert_eq!(nearest(&store, 5).await[0], "note 5");
    // The user was small when it was asked for first, and has grown since then.
    put_vectors(&store, 200).await;
    let exact = nearest(&store, 70).await;
    assert_eq!((exact.len(), exact[0].as_str()), (3, "note 70"));
    ask_until_indexed(&database, &store).await;
    assert_eq!(nearest(&store, 70).await[0], "note 70");
    // A build that broke off leaves an index that is never read. Another process builds it again.
    let client = database.client().await;
    let broken = "UPDATE pg_index SET indisvalid = false
                  WHERE indexrelid IN (SELECT oid FROM pg_class WHERE relname LIKE 'vectors_hnsw_%')";
    client.batch_execute(broken).await.unwrap();
    let store = PostgresStore::open(options).await.unwrap();
    ask_until_indexed(&database, &store).await;
    assert_eq!(nearest(&store, 70).await[0], "note 70");
}

/// How often an index of vectors was read.
async fn reads_of_an_index(database: &Database) -> i64 {
    let sql = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
               WHERE indexrelname LIKE 'vectors_hnsw_%'";
    database.client().await.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_of_a_large_user_is_read_and_goes_with_the_user() {
    let database = Server::start_with_pgvector().database().await;
    let options = PostgresOptions { hnsw_from: 100, ..database.options() };
    let store = PostgresStore::open(options.clone()).await.unwrap();
    put_vectors(&store, 200).await;
    ask_until_indexed(&database, &store).await;
    // So few vectors are sorted more quickly than an index is read, so this process may do neither.
    let planner = "&options=-cenable_seqscan%3Doff%20-cenable_sort%3Doff";
    let address = (database.address() + planner).parse().unwrap();
    let reader = PostgresStore::open(PostgresOptions { address, ..options }).await.unwrap();
    let before = reads_of_an_index(&database).await;
    assert_eq!(nearest(&reader, 70).await[0], "note 70");
    // The server counts what a connection has read when it ends.
    reader.close().await.unwrap();
    while reads_of_an_index(&database).await == before {
        tokio::task::yield_now().await;
    }
    // The condition of the index holds the user's name.
    let named = "SELECT 1 FROM pg_index WHERE pg_get_expr(indpred, indrelid) LIKE '%bob%'";
    assert!(has(&database, named).await);
    apply(&store, &bob(), Change::Forget(Forget::User)).await;
    while has(&database, named).await {
        tokio::task::yield_now().await;
    }
    // A new user of that name gets an index again.
    put_vectors(&store, 200).await;
    ask_until_indexed(&database, &store).await;
}

/// A large store gets the additions by hand.
#[tokio::test(flavor = "multi_thread")]
async fn the_statements_of_the_page_make_the_additions() {
    let page = include_str!("../../../docs/scale.md");
    let block = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let for_vectors = "CREATE EXTENSION IF NOT EXISTS vector;";
    let (trigrams, vectors) = block.split_once(for_vectors).unwrap();
    let small = database().await;
    let client = small.client().await;
    client.batch_execute("DROP EXTENSION pg_trgm CASCADE; DROP EXTENSION btree_gin CASCADE").await.unwrap();
    client.batch_execute(trigrams).await.unwrap();
    for index in ["turns_trigrams", "memories_trigrams"] {
        assert!(has(&small, &format!("SELECT 1 FROM pg_class WHERE relname = '{index}'")).await, "{index}");
    }
    let database = Server::start_with_pgvector().database().await;
    drop(database.open().await);
    let client = database.client().await;
    client.batch_execute("DROP EXTENSION vector CASCADE").await.unwrap();
    assert!(!has(&database, COLUMN).await);
    client.batch_execute(&format!("{for_vectors}{vectors}")).await.unwrap();
    assert!(has(&database, COLUMN).await);
    let store = database.open().await;
    put_vectors(&store, 10).await;
    assert_eq!(nearest(&store, 5).await[0], "note 5");
}

#[tokio::test]
async fn without_pgvector_strata_compares_vectors_itself() {
    let database = database().await;
    let store = database.open().await;
    assert_eq!(store.nearest(&ann(), &near(0)).await.unwrap(), None);
    let advice = store.advice();
    assert!(advice.len() == 1 && advice[0].contains("lacks vector"), "{advice:?}");
    assert!(advice[0].contains("-pgvector`"), "{advice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trigrams_find_misspelled_words_in_old_items() {
    let database = database().await;
    let store = database.open().await;
    append(&store, &ann(), "s", &["the marvellous lighthouse of Rozewie", "我们去年去了西湖"]).await;
    add(&store, &ann(), memory("the user collects barometers")).await;
    let filler: Vec<String> = (0..500).map(|number| format!("note {number}")).collect();
    let filler: Vec<&str> = filler.iter().map(String::as_str).collect();
    for number in 0..21 {
        append(&store, &ann(), &format!("filler{number}"), &filler).await;
    }
    // The items above are the oldest, because the fixture gives every item the same time; move them back.
    let client = database.client().await;
    let older = "UPDATE turns SET created_at = created_at - 1000000 WHERE session = 's'";
    client.batch_execute(older).await.unwrap();
    let look = async |text: &str| found(&store, &ann(), &similar(text, 0.3)).await;
    assert_eq!(look("lighthuose").await, ["the marvellous lighthouse of Rozewie"]);
    assert_eq!(look("barometter").await, ["the user collects barometers"]);
    assert_eq!(look("西湖").await, ["我们去年去了西湖"]);
    assert_eq!(look("xx%_yy").await, Vec::<String>::new());
    client.batch_execute("DROP INDEX turns_trigrams").await.unwrap();
    let made = "SELECT 1 FROM pg_class WHERE relname = 'turns_trigrams'";
    assert!(!has(&database, made).await);
    // The next process makes the index again.
    let store = database.open().await;
    assert!(has(&database, made).await);
    assert_eq!(found(&store, &ann(), &similar("lighthuose", 0.3)).await.len(), 1);
}

#[tokio::test]
async fn a_locale_without_letters_and_a_role_without_rights_still_work() {
    let database = Server::start_with_c_locale().database().await;
    let store = database.open().await;
    // The test's server has no pgvector either.
    assert!(store.advice().iter().any(|advice| advice.contains("--locale=C.UTF-8")), "{:?}", store.advice());
    append(&store, &ann(), "s", &["我们去年去了西湖"]).await;
    assert_eq!(found(&store, &ann(), &similar("西湖", 0.3)).await, ["我们去年去了西湖"]);

    // A role that owns a schema and may not create extensions.
    let client = database.client().await;
    let sql = "CREATE ROLE guest LOGIN; CREATE SCHEMA guest AUTHORIZATION guest;
               DROP EXTENSION pg_trgm CASCADE; DROP EXTENSION btree_gin CASCADE";
    client.batch_execute(sql).await.unwrap();
    let address =
        database.address().replace("test@", "guest@").replace("?", "?options=-csearch_path%3Dguest&");
    let options = PostgresOptions { partitions: 2, ..PostgresOptions::new(address.parse().unwrap()) };
    let store = PostgresStore::open(options).await.unwrap();
    let to_run = "`CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gin;`";
    assert!(store.advice().iter().any(|advice| advice.contains(to_run)), "{:?}", store.advice());
    append(&store, &ann(), "s", &["a marvellous lighthouse"]).await;
    assert_eq!(found(&store, &ann(), &similar("lighthuose", 0.3)).await, ["a marvellous lighthouse"]);
    assert!(!has(&database, "SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'").await);
}
