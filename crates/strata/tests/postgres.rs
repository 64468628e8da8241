//! The real binary on PostgreSQL: recording, searching, prompts, learning, several processes, readiness and passwords; behind
//! PgBouncer, over a failover, and while the database is away; and vectors of two engines on one database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strata::ports::{Embedder, EmbedderCost, Passage};
use strata::{Engine, NewMessage, RecallRequest, Role, SessionId, SystemClock, SystemIds, UserId};
use strata_postgres::test_server::{self, Database, Durability, Pooler};
use support::outage::{PATIENCE, await_recorded, chat, readiness};
use support::{Client, Server, Upstream, show, strata};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A database with a folder for logs, and the runtime that the database needs.
struct Place {
    database: Database,
    folder: TempDir,
    runtime: Runtime,
}

impl Place {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let database = runtime.block_on(test_server::database());
        Self { database, folder: tempfile::tempdir().unwrap(), runtime }
    }

    fn serve(&self, name: &str) -> Server {
        Server::start_on(&self.database.address(), &self.folder.path().join(name), &[])
    }

    fn run(&self, args: &[&str]) -> Output {
        run(&self.database.address(), self.folder.path(), args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", show(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn run(store: &str, folder: &Path, args: &[&str]) -> Output {
    strata().args(args).args(["--store", store]).current_dir(folder).output().unwrap()
}

fn record(client: &mut Client, session: &str, texts: &[&str]) {
    let messages: Vec<Value> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    let body = json!({ "user_id": "mira", "session_id": session, "messages": messages });
    let answer = client.post("/turns", &body).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn found(client: &mut Client, question: &str) -> Vec<String> {
    let answer = client.post("/search", &json!({ "query": question, "user_id": "mira" })).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let results = answer.json()["results"].as_array().unwrap().clone();
    results.iter().map(|result| result["memory"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_server_records_searches_and_builds_prompts() {
    let place = Place::new();
    let server = place.serve("one.log");
    let mut client = server.client();
    record(&mut client, "boat", &["the mast of the dinghy is cracked", "帆在车库里"]);
    assert_eq!(found(&mut client, "which mast is cracked?")[0], "the mast of the dinghy is cracked");
    assert_eq!(found(&mut client, "帆在哪里")[0], "帆在车库里");
    let body = json!({ "question": "what about the mast?", "user_id": "mira" });
    let prompt = client.post("/sessions/boat/prompt", &body).unwrap();
    assert_eq!(prompt.status, 200, "{}", prompt.text());
    assert!(prompt.text().contains("the mast of the dinghy is cracked"), "{}", prompt.text());
    let forgotten = client.send("DELETE", "/sessions/boat?user_id=mira", &[], b"").unwrap();
    assert_eq!(forgotten.status, 200, "{}", forgotten.text());
    assert_eq!(found(&mut client, "which mast is cracked?"), Vec::<String>::new());
    server.stop();
}

#[test]
fn commands_learn_and_check() {
    let place = Place::new();
    let added = place.json(&["add", "--json", "the harbour office opens at nine"]);
    assert_eq!(added["memory"], "the harbour office opens at nine", "{added}");
    let server = place.serve("one.log");
    record(&mut server.client(), "boat", &["I live in Gdynia. I like sailing at dawn."]);
    server.stop();
    let learned = place.json(&["learn", "--user", "mira", "--json"]);
    assert_eq!(learned["dead"], 0, "{learned}");
    let list = place.json(&["memories", "list", "--user", "mira", "--json"]);
    assert!(list.to_string().contains("Gdynia"), "{list}");
    let report = place.json(&["doctor", "--json"]);
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["store"]["users"], 2, "{report}");
}

/// The server that the tests start has no pgvector.
#[test]
fn a_missing_package_is_named_once_in_the_log_and_by_the_doctor() {
    let place = Place::new();
    let server = place.serve("one.log");
    assert!(found(&mut server.client(), "which package is missing?").is_empty());
    let log = server.log();
    let warned: Vec<&str> = log.lines().filter(|line| line.contains("-pgvector`")).collect();
    assert_eq!(warned.len(), 1, "{log}");
    assert!(warned[0].contains("WARN") && warned[0].contains("install the package `postgresql-"), "{log}");
    server.stop();
    let report = place.json(&["doctor", "--json"]);
    let checks = report["checks"].as_array().unwrap();
    let told = checks.iter().filter(|check| check["check"] == "database").collect::<Vec<_>>();
    assert!(told.len() == 1 && told[0]["status"] == "warning", "{report}");
    let advice = told[0]["found"].as_str().unwrap();
    assert!(warned[0].ends_with(advice) && !advice.contains("NN"), "{advice}");
    assert_eq!(report["ok"], true, "the store works without it: {report}");
    // Other commands do not repeat it.
    let searched = place.run(&["search", "which package is missing?", "--user", "mira"]);
    assert!(!show(&searched).contains("pgvector"), "{}", show(&searched));
}

#[test]
fn a_process_sees_at_once_what_another_one_wrote_and_forgot() {
    let place = Place::new();
    let (one, two) = (place.serve("one.log"), place.serve("two.log"));
    let (mut one, mut two) = (one.client(), two.client());
    for number in 0..10 {
        let text = format!("lantern number {number} hangs on pier{number}");
        record(&mut one, "pier", &[&text]);
        assert_eq!(found(&mut two, &format!("what hangs on pier{number}?"))[0], text);
    }
    let forgotten = one.send("DELETE", "/sessions/pier?user_id=mira", &[], b"").unwrap();
    assert_eq!(forgotten.status, 200, "{}", forgotten.text());
    assert_eq!(found(&mut two, "what hangs on pier3?"), Vec::<String>::new());
}

#[test]
fn readiness_tells_the_truth_and_passwords_stay_secret() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(test_server::Server::start(Durability::None).database());
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let client = database.client().await;
        client.batch_execute("CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 'hush-hush'").await.unwrap();
    });
    database.server().require_password("keeper");
    let with = |name: &str| database.address().replace("test@", &format!("{name}@"));

    // The wrong password is refused, and neither it nor the right one is shown anywhere.
    let refused = run(&with("keeper:wrong-word"), folder.path(), &["doctor"]);
    assert!(!refused.status.success(), "{}", show(&refused));
    assert!(
        show(&refused).contains("password") && !show(&refused).contains("wrong-word"),
        "{}",
        show(&refused)
    );
    let shown = run(&with("keeper:hush-hush"), folder.path(), &["config"]);
    assert!(shown.status.success() && !show(&shown).contains("hush-hush"), "{}", show(&shown));
    let file = folder.path().join("password");
    std::fs::write(&file, "hush-hush\n").unwrap();
    let setting = format!("postgres.password_file={}", file.display());
    let checked = run(&with("keeper"), folder.path(), &["doctor", "--setting", &setting]);
    assert!(checked.status.success(), "{}", show(&checked));

    let checked = |password: &str| {
        let mut command = strata();
        command.env("STRATA_POSTGRES_PASSWORD", password).args(["doctor", "--store", &with("keeper")]);
        command.current_dir(folder.path()).output().unwrap()
    };
    let (right, wrong) = (checked("hush-hush"), checked("wrong-word"));
    assert!(right.status.success() && !show(&right).contains("hush-hush"), "{}", show(&right));
    assert!(!wrong.status.success() && !show(&wrong).contains("wrong-word"), "{}", show(&wrong));

    let log = folder.path().join("serve.log");
    // The same server stands in for a replica, whose address has the password too.
    let replica = format!("postgres.replica={}", with("keeper:hush-hush"));
    let hidden = run(&with("keeper:hush-hush"), folder.path(), &["config", "--setting", &replica]);
    assert!(hidden.status.success() && !show(&hidden).contains("hush-hush"), "{}", show(&hidden));
    let server = Server::start_on(&with("keeper:hush-hush"), &log, &["log=trace", &replica]);
    let mut client = server.client();
    let ready = client.get("/readyz").unwrap();
    assert_eq!(ready.status, 200, "{}", ready.text());
    record(&mut client, "quay", &["the crane is out of order"]);
    database.server().stop_immediately();
    let away = client.get("/readyz").unwrap();
    assert_eq!(away.status, 503, "{}", away.text());
    assert_eq!(client.get("/healthz").unwrap().status, 200);
    database.server().resume();
    // The write waits for the server; `/readyz` does not.
    record(&mut client, "quay", &["the crane works again"]);
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    assert_eq!(found(&mut client, "crane").len(), 2);
    assert!(server.log().contains("tokio_postgres"), "the driver logs too");
    assert!(!server.log().contains("hush-hush"), "the log shows the password");
    assert!(!server.log().contains("crane"), "the log shows what was said");
    drop(server);
}

#[test]
fn a_store_moves_to_postgres_and_back() {
    let place = Place::new();
    let (file, back) = ("sqlite:first.db", "sqlite:second.db");
    let folder = place.folder.path();
    let server = Server::start_on(file, &folder.join("one.log"), &[]);
    let mut client = server.client();
    for number in 0..3 {
        let session = format!("dock{number}");
        record(&mut client, &session, &["I live in Sopot", "我喜欢划船", "the tide table hangs in the shed"]);
        assert!(!found(&mut client, "tide table").is_empty());
    }
    server.stop();
    for args in
        [&["learn", "--user", "mira"][..], &["keys", "create", "--user", "mira"], &["add", "spare rope"]]
    {
        let output = run(file, folder, args);
        assert!(output.status.success(), "{args:?} {}", show(&output));
    }
    let migrate = |from: &str, to: &str| {
        let output = strata().args(["migrate", from, to, "--json"]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", show(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let address = place.database.address();
    let moved = migrate(file, &address);
    assert_eq!((&moved["turns"], &moved["sessions"], &moved["keys"]), (&json!(9), &json!(3), &json!(1)));
    assert!(moved["memories"].as_u64().unwrap() > 1 && moved["requests"].as_u64().unwrap() > 2, "{moved}");
    // A second run finds everything there, and the way back gives the same again.
    assert_eq!(migrate(file, &address), moved);
    assert_eq!(migrate(&address, back), moved);
    let report = place.json(&["doctor", "--json"]);
    assert_eq!(report["ok"], true, "{report}");
    // The key was moved as well, so the server asks for it.
    assert_eq!(place.serve("two.log").client().get("/sessions").unwrap().status, 401);
    let answer = place.json(&["search", "where is the tide table?", "--user", "mira", "--json"]);
    assert_eq!(answer["results"][0]["memory"], "the tide table hangs in the shed", "{answer}");
    // A target with other data is refused.
    let line = r#"{"role": "user", "content": "something else"}"#;
    std::fs::write(folder.join("line.jsonl"), line).unwrap();
    let recorded = strata()
        .args(["record", "--user", "mira", "--session", "dock0", "--store", &address])
        .stdin(std::fs::File::open(folder.join("line.jsonl")).unwrap())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", show(&recorded));
    let other = strata().args(["migrate", back, &address]).current_dir(folder).output().unwrap();
    assert!(!other.status.success() && show(&other).contains("dock0"), "{}", show(&other));
}

#[test]
fn a_migration_that_was_killed_is_continued() {
    let place = Place::new();
    let folder = place.folder.path();
    let server = Server::start_on("sqlite:first.db", &folder.join("one.log"), &[]);
    let mut client = server.client();
    let texts: Vec<String> =
        (0..100).map(|number| format!("entry {number} of the log of the ship")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for number in 0..30 {
        record(&mut client, &format!("watch{number}"), &texts);
    }
    server.stop();
    let address = place.database.address();
    let database = place.runtime.block_on(place.database.client());
    let has_arrived = || {
        let count = place.runtime.block_on(database.query_one("SELECT count(*) FROM turns", &[]));
        count.unwrap().get::<_, i64>(0) > 0
    };
    let moved = kill_and_resume(folder, "sqlite:first.db", &address, has_arrived);
    assert_eq!((&moved["turns"], &moved["sessions"]), (&json!(3_000), &json!(30)), "{moved}");
    let report = place.json(&["doctor", "--json"]);
    assert_eq!((&report["ok"], &report["store"]["turns"]), (&json!(true), &json!(3_000)), "{report}");
    // The way back.
    let has_arrived = || {
        let only_read = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let opened = rusqlite::Connection::open_with_flags(folder.join("second.db"), only_read);
        let Ok(file) = opened else { return false };
        file.query_row("SELECT count(*) FROM turns", [], |row| row.get(0)).is_ok_and(|count: i64| count > 0)
    };
    assert_eq!(kill_and_resume(folder, &address, "sqlite:second.db", has_arrived), moved);
}

/// Kills a migration as soon as something has arrived, and returns what a second run of it has moved.
fn kill_and_resume(folder: &Path, from: &str, to: &str, has_arrived: impl Fn() -> bool) -> Value {
    let migrate = || {
        let mut command = strata();
        command.args(["migrate", from, to, "--json"]).current_dir(folder);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    let mut killed = migrate().spawn().unwrap();
    while !has_arrived() {
        assert!(killed.try_wait().unwrap().is_none(), "the migration ended without a turn");
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let resumed = migrate().output().unwrap();
    assert!(resumed.status.success(), "{}", show(&resumed));
    serde_json::from_slice(&resumed.stdout).unwrap()
}

#[test]
fn a_store_moves_between_postgres_and_a_vault() {
    let place = Place::new();
    let folder = place.folder.path();
    let server = place.serve("one.log");
    let mut client = server.client();
    for number in 0..3 {
        let session = format!("slip{number}");
        record(&mut client, &session, &["I live in Ustka", "我喜欢划船", "the winch needs grease"]);
        assert!(!found(&mut client, "which winch").is_empty());
    }
    server.stop();
    for args in [&["learn", "--user", "mira"][..], &["add", "two spare shackles"]] {
        let output = place.run(args);
        assert!(output.status.success(), "{args:?} {}", show(&output));
    }
    let migrate = |from: &str, to: &str| {
        let output = strata().args(["migrate", from, to, "--json"]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", show(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (address, vault) = (place.database.address(), "vault:notes");
    let moved = migrate(&address, vault);
    assert_eq!((&moved["turns"], &moved["sessions"]), (&json!(9), &json!(3)), "{moved}");
    let other = place.runtime.block_on(test_server::database());
    assert_eq!(migrate(vault, &other.address()), moved);
    assert_eq!(migrate(&address, &other.address()), moved, "the copy of the copy is the first store");
    // The same by lines, which hold no request rows and no jobs.
    let third = place.runtime.block_on(test_server::database());
    let exported = place.run(&["export", "all.jsonl"]);
    assert!(exported.status.success(), "{}", show(&exported));
    let imported = run(&third.address(), folder, &["import", "all.jsonl"]);
    assert!(imported.status.success(), "{}", show(&imported));
    let counts = |store: &str| {
        let output = run(store, folder, &["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        ["users", "sessions", "turns", "memories"].map(|what| report["store"][what].clone())
    };
    assert_eq!(counts(&third.address()), counts(&address));
    assert_eq!(counts(vault), counts(&address));
}

#[test]
fn a_process_works_behind_pgbouncer() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(test_server::empty_database());
    let pooler = Pooler::start(&database);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_on(&pooler.address(), &folder.path().join("one.log"), &["learn.delay_secs=0"]);
    let mut client = server.client();
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    record(&mut client, "boat", &["I live in Hel. The anchor chain is rusty."]);
    assert!(!found(&mut client, "which chain is rusty?").is_empty());
    // The worker finds its job without notices.
    let began = Instant::now();
    while !client.get("/memories?user_id=mira").unwrap().text().contains("Hel") {
        assert!(began.elapsed() < PATIENCE, "nothing was learned: {}", server.log());
    }
    server.stop();
}

#[test]
fn a_process_goes_on_after_a_failover() {
    let runtime = Runtime::new().unwrap();
    let (database, standby) = runtime.block_on(async {
        let database = test_server::Server::start(Durability::Durable).database().await;
        let standby = database.server().start_standby().await;
        (database, standby)
    });
    let folder = tempfile::tempdir().unwrap();
    let address = database.server().address_with(&standby, database.name()) + "&connect_timeout=1";
    let server = Server::start_on(&address, &folder.path().join("one.log"), &["postgres.patience_secs=60"]);
    let mut client = server.client();
    record(&mut client, "pier", &["the first lamp is lit"]);
    database.server().stop_immediately();
    standby.promote();
    record(&mut client, "pier", &["the second lamp is lit"]);
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    assert_eq!(found(&mut client, "which lamp is lit?").len(), 2);
}

#[test]
fn chats_go_on_while_the_database_is_away() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(test_server::Server::start(Durability::None).database());
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start();
    let settings = [&format!("upstream={}", upstream.url()), "postgres.patience_secs=1"];
    let server = Server::start_on(&database.address(), &folder.path().join("one.log"), &settings);
    let mut client = server.client();
    assert_eq!(chat(&mut client, "s", "before the outage").status, 200);
    await_recorded(&mut client, "s", "before the outage");
    database.server().stop_immediately();
    // Until whatever the process remembers of the store's keys is old.
    let began = Instant::now();
    let mut number = 0;
    while number < 3 || began.elapsed() < Duration::from_secs(3) {
        let answer = chat(&mut client, &format!("o{number}"), &format!("question {number}"));
        assert_eq!(answer.status, 200, "a chat never fails: {}", answer.text());
        number += 1;
    }
    assert_eq!(readiness(&mut client), 503);
    database.server().resume();
    for number in 0..number {
        await_recorded(&mut client, &format!("o{number}"), &format!("question {number}"));
    }
    assert_eq!(readiness(&mut client), 200);
    server.stop();
}

/// The log of a process that has started on a database.
fn log_of_a_start(address: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_on(address, &folder.path().join("one.log"), &[]);
    server.log()
}

#[test]
fn the_log_says_what_the_server_of_the_database_lacks() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(test_server::Server::start_with_pgvector().empty_database());
    let log = log_of_a_start(&database.address());
    assert!(log.contains("install the package `postgresql-contrib`"), "{log}");
    assert!(!log.contains("pgvector"), "{log}");

    let database = runtime.block_on(test_server::Server::start_with_c_locale().database());
    let log = log_of_a_start(&database.address());
    assert!(log.contains("createdb --template=template0 --encoding=UTF8 --locale=C.UTF-8"), "{log}");
    assert!(log.contains("-pgvector` on its server") && !log.contains("postgresql-NN"), "{log}");
    // A role that may not create extensions, in a schema of its own.
    runtime.block_on(async {
        let sql = "CREATE ROLE guest LOGIN; CREATE SCHEMA guest AUTHORIZATION guest;
                   DROP EXTENSION pg_trgm CASCADE; DROP EXTENSION btree_gin CASCADE";
        database.client().await.batch_execute(sql).await.unwrap();
    });
    let guest = database.address().replace("test@", "guest@").replace('?', "?options=-csearch_path%3Dguest&");
    let log = log_of_a_start(&guest);
    assert!(log.contains("`CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gin;`"), "{log}");
}

/// An embedder for which invented words of one meaning are alike. No lexicon knows them.
#[derive(Default)]
struct Meanings {
    /// The number of items that it has embedded.
    embedded: AtomicUsize,
}

impl Meanings {
    fn embed(text: &str) -> Vec<f32> {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let colour = has(&["quorlish", "tramvic", "besmet"]);
        vec![f32::from(u8::from(colour)), f32::from(u8::from(has(&["keel"]))), 0.1]
    }
}

#[async_trait::async_trait]
impl Embedder for Meanings {
    fn model(&self) -> &str {
        "meanings"
    }

    fn cost(&self) -> EmbedderCost {
        EmbedderCost::Local
    }

    async fn embed_passages(&self, passages: &[Passage]) -> strata::Result<Vec<Vec<f32>>> {
        self.embedded.fetch_add(passages.len(), Ordering::SeqCst);
        Ok(passages.iter().map(|passage| Self::embed(&passage.text)).collect())
    }

    async fn embed_question(&self, question: &str) -> strata::Result<Vec<f32>> {
        Ok(Self::embed(question))
    }
}

/// An engine on a database, as a process of its own has it. All users are large for it, so it asks the store.
async fn engine(database: &Database, embedder: &Arc<Meanings>) -> Engine {
    let mut settings = strata_engine::Settings::default();
    settings.recall.index_max_items = 1;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::new()));
    let tokenizer = Arc::new(strata_models::Tokenizer::default());
    Engine::new(Arc::new(database.open().await), clock, ids, tokenizer, settings)
        .with_lexicon(Arc::new(strata_models::BuiltinLexicon::new()))
        .with_embedder(Arc::clone(embedder) as Arc<dyn Embedder>)
}

/// What two engines find by vectors alone: the question shares no word with the answers.
async fn check_vectors_of_two_engines(database: &Database, has_pgvector: bool) {
    let (ones, twos) = (Arc::<Meanings>::default(), Arc::<Meanings>::default());
    let (one, two) = (engine(database, &ones).await, engine(database, &twos).await);
    let user = UserId::new("mira").unwrap();
    let record = async |session: &str, texts: &[&str]| {
        let session = SessionId::new(session).unwrap();
        let messages = texts.iter().map(|text| NewMessage::new(Role::User, *text)).collect();
        one.recording.record(&user, &session, messages, None).await.unwrap();
    };
    let ask = async || {
        let recalled = two.recall.ask(&user, &RecallRequest::new("which ones are besmet")).await.unwrap();
        let mut found: Vec<String> =
            recalled.items.iter().map(|item| item.item.content().to_owned()).collect();
        found.sort();
        found
    };
    record("hull", &["the hull was painted quorlish", "the keel is long"]).await;
    one.maintenance.maintain_all().await.unwrap();
    let query = strata_core::store::VectorQuery {
        model: "meanings".to_owned(),
        vector: strata_core::vector::Vector::quantise(&[1.0, 0.0, 0.1]),
        session: None,
        kinds: strata_core::store::ItemKinds::ALL,
        as_of: None,
        limit: 9,
    };
    assert_eq!(two.store().nearest(&user, &query).await.unwrap().is_some(), has_pgvector);
    assert_eq!(ask().await[0], "the hull was painted quorlish");
    // What the first engine adds and forgets counts for the second one, which has the vectors already.
    record("sails", &["tramvic sails hang in the loft"]).await;
    one.maintenance.maintain_all().await.unwrap();
    assert!(ask().await.contains(&"tramvic sails hang in the loft".to_owned()));
    one.sessions.delete(&user, &SessionId::new("hull").unwrap()).await.unwrap();
    assert_eq!(ask().await, ["tramvic sails hang in the loft"]);
    let embedded = [&ones, &twos].map(|embedder| embedder.embedded.load(Ordering::SeqCst));
    assert_eq!(embedded, [3, 0], "the second engine has the vectors of the first one");
    one.forgetting.user(&user).await.unwrap();
    assert_eq!(ask().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_finds_by_vectors_that_another_one_wrote_and_forgot() {
    let database = test_server::database().await;
    Box::pin(check_vectors_of_two_engines(&database, false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_finds_by_vectors_of_another_one_with_pgvector() {
    let database = test_server::Server::start_with_pgvector().database().await;
    Box::pin(check_vectors_of_two_engines(&database, true)).await;
}
