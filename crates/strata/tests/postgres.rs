//! The real binary on PostgreSQL: recording, searching, prompts, learning, several processes, readiness and passwords.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use strata_postgres::test_server::{self, Database, Durability};
use support::{Client, Server, show, strata};
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
    let database = runtime.block_on(test_server::Server::start(Durability::Durable).database());
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

    let log = folder.path().join("serve.log");
    // The same server stands in for a replica, whose address has the password too.
    let replica = format!("postgres.replica={}", with("keeper:hush-hush"));
    let hidden = run(&with("keeper:hush-hush"), folder.path(), &["config", "--setting", &replica]);
    assert!(hidden.status.success() && !show(&hidden).contains("hush-hush"), "{}", show(&hidden));
    let server = Server::start_on(&with("keeper:hush-hush"), &log, &["log=trace", &replica]);
    let mut client = server.client();
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    record(&mut client, "quay", &["the crane is out of order"]);
    database.server().stop_immediately();
    let away = client.get("/readyz").unwrap();
    assert_eq!(away.status, 503, "{}", away.text());
    assert_eq!(client.get("/healthz").unwrap().status, 200);
    database.server().resume();
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    record(&mut client, "quay", &["the crane works again"]);
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
