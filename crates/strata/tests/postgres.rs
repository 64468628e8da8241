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
    _runtime: Runtime,
}

impl Place {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let database = runtime.block_on(test_server::database());
        Self { database, folder: tempfile::tempdir().unwrap(), _runtime: runtime }
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
    let server = Server::start_on(&with("keeper:hush-hush"), &log, &["log=debug"]);
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
    assert!(!server.log().contains("hush-hush"), "the log shows the password");
    drop(server);
}
