//! A served store with two users, and the contents of its file.

use std::path::{Path, PathBuf};

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::matrix::Call;
use crate::support::{Answer, Client, Server, store_url, strata};

/// A word that is in all texts of ann and in no text that bob sends.
pub(crate) const MARKER: &str = "quokkaberry";

/// Derived tables, which are written in the background without a request.
const DERIVED: [&str; 3] = ["vectors", "segments", "progress"];

/// The number of ids of each kind that bob knows.
const KNOWN: usize = 2;

/// Bob's knowledge about ann: names and ids, but no texts.
pub(crate) struct Ann {
    pub(crate) session: &'static str,
    pub(crate) agent: &'static str,
    pub(crate) idempotency_key: &'static str,
    /// The tag of her session's context.
    pub(crate) tag: String,
    /// Ids of turns, memories, summaries, requests and jobs that bob knows, by their table.
    pub(crate) known: Vec<(String, Vec<String>)>,
    /// All other ids, which he never sends and must never see.
    pub(crate) unknown: Vec<String>,
}

pub(crate) struct World {
    // Declared before the directory, so that the server ends before its files are removed.
    _server: Server,
    client: Client,
    file: PathBuf,
    pub(crate) document: Value,
    pub(crate) ann: Ann,
    _directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("isolation.db");
        let upstream = format!("upstream=http://{}/v1", crate::upstream::start());
        // A user's data must change only by a request.
        let server = Server::start_with(&file, &["learn.enabled=false", &upstream]);
        let mut client = server.client();
        let (admin, key) = (make_key(&file, "ann", "read,write,admin"), make_key(&file, "ann", "read,write"));
        let document = send(&mut client, Some(&key), "GET", "/openapi.json", &[], None).json();
        let ann = settle(&mut client, &file, &key, &admin);
        Self { _server: server, client, file, document, ann, _directory: directory }
    }

    /// A fresh key.
    pub(crate) fn key(&self, user: &str, scopes: &str) -> String {
        make_key(&self.file, user, scopes)
    }

    /// Revokes a key, and waits until the server has noticed.
    pub(crate) fn revoke(&mut self, key: &str) {
        let list = run(&self.file, &["keys", "list", "--json"]);
        let keys = list["keys"].as_array().unwrap();
        let id = keys.iter().find(|found| key.starts_with(found["prefix"].as_str().unwrap())).unwrap()["id"]
            .clone();
        run(&self.file, &["keys", "revoke", id.as_str().unwrap(), "--json"]);
        while self.send_plain(Some(key), "GET", "/sessions").status != 401 {}
    }

    pub(crate) fn send(&mut self, key: &str, call: &Call) -> Answer {
        send(&mut self.client, Some(key), &call.method, &call.path, &call.headers, call.body.as_ref())
    }

    /// A request with an empty object for a body.
    pub(crate) fn send_plain(&mut self, key: Option<&str>, method: &str, path: &str) -> Answer {
        let body = (method != "GET").then(|| json!({}));
        send(&mut self.client, key, method, path, &[], body.as_ref())
    }

    /// Gives bob a session with the same name as ann's, so that a query without the user finds two.
    pub(crate) fn record_for_bob(&mut self) {
        let key = make_key(&self.file, "bob", "write");
        let said = json!({ "session_id": self.ann.session, "messages": [{ "role": "user", "content": "the garden of bob" }] });
        assert_eq!(send(&mut self.client, Some(&key), "POST", "/turns", &[], Some(&said)).status, 201);
    }

    /// All rows of a user in the file, by table.
    pub(crate) fn rows_of(&self, user: &str) -> Value {
        rows_of(&self.file, user)
    }
}

/// Creates data of every kind for ann.
fn settle(client: &mut Client, file: &Path, key: &str, admin: &str) -> Ann {
    let (session, agent, idempotency_key) = ("walks", "guide", "anns-first-write");
    let mut call = |key: &str, method: &str, path: &str, headers: &[(&str, &str)], body: Value| {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer =
            send(client, Some(key), method, path, &headers, Some(&body).filter(|body| !body.is_null()));
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        answer
    };
    // Enough turns for a rolling summary.
    for round in 0..10 {
        let messages: Vec<Value> = ["user", "assistant"]
            .into_iter()
            .map(|role| {
                let content =
                    format!("the {MARKER} garden, walk {round}, root cause: {MARKER}, 10.0.0.{round}");
                json!({ "role": role, "content": content, "metadata": { "note": MARKER } })
            })
            .collect();
        let headers = if round == 0 { vec![("Idempotency-Key", idempotency_key)] } else { Vec::new() };
        call(key, "POST", "/turns", &headers, json!({ "session_id": session, "messages": messages }));
    }
    let memory = |text: &str| json!({ "text": format!("{text} {MARKER}"), "agent_id": agent, "infer": false, "metadata": { "note": MARKER } });
    let added = call(key, "POST", "/memories", &[], memory("likes the garden of")).json();
    let id = added["results"][0]["id"].as_str().unwrap().to_owned();
    call(
        key,
        "PUT",
        &format!("/memories/{id}"),
        &[],
        json!({ "text": format!("loves the {MARKER} garden") }),
    );
    let mut bound = memory("walks in the garden of");
    bound["run_id"] = json!(session);
    call(key, "POST", "/memories", &[], bound);
    let deleted = call(key, "POST", "/memories", &[], memory("deleted garden of")).json();
    let deleted = deleted["results"][0]["id"].as_str().unwrap().to_owned();
    call(key, "DELETE", &format!("/memories/{deleted}"), &[], Value::Null);
    call(key, "POST", "/search", &[], json!({ "query": format!("which {MARKER} garden"), "explain": true }));
    let state = json!({ "diagnostic": { "findings": [MARKER] }, "own": MARKER });
    call(key, "PUT", &format!("/sessions/{session}/state"), &[], state);
    let mut document = call(key, "GET", &format!("/sessions/{session}/context"), &[], Value::Null).json();
    document["long_term_summary"] = json!(format!("they walked in a {MARKER} garden"));
    document["facts"] = json!([format!("there is a {MARKER} garden")]);
    call(key, "PUT", &format!("/sessions/{session}/context"), &[("If-Match", "*")], document);
    let context = call(key, "GET", &format!("/sessions/{session}/context"), &[], Value::Null);
    let tag = context.header("etag").unwrap().to_owned();
    call(
        key,
        "POST",
        &format!("/sessions/{session}/prompt"),
        &[],
        json!({ "question": format!("{MARKER}?") }),
    );
    call(admin, "POST", "/memories", &[], json!({ "text": "the garden is open to all", "scope": "global" }));
    // Request rows are written in the background; reading them writes them now.
    call(key, "GET", "/requests", &[], Value::Null);

    let conn = Connection::open(file).unwrap();
    // A dead job, because no worker changes it any more.
    conn.execute(
        "INSERT INTO jobs (user_id, id, session, kind, payload, status, attempts, run_at, last_error, created_at, updated_at)
         SELECT id, ?1, ?2, 'extract', ?3, 'dead', 5, 0, ?4, 0, 0 FROM users WHERE name = 'ann'",
        rusqlite::params![
            uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001).as_bytes(),
            session,
            json!({ "note": MARKER }).to_string(),
            format!("the model did not understand {MARKER}")
        ],
    )
    .unwrap();

    let by_table = ids_of(file, "ann");
    for table in ["turns", "memories", "summaries", "requests", "jobs"] {
        let found = by_table.iter().find(|(name, _)| name == table);
        assert!(found.is_some_and(|(_, ids)| !ids.is_empty()), "ann has none in `{table}`");
    }
    let unknown: Vec<String> = by_table.iter().flat_map(|(_, ids)| ids.iter().skip(KNOWN).cloned()).collect();
    assert!(unknown.len() > 15, "{by_table:?}");
    let known = by_table.into_iter().map(|(table, ids)| (table, ids.into_iter().take(KNOWN).collect()));
    Ann { session, agent, idempotency_key, tag, known: known.collect(), unknown }
}

pub(crate) fn send(
    client: &mut Client,
    key: Option<&str>,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: Option<&Value>,
) -> Answer {
    let mut all: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.extend(key.map(|key| ("X-API-Key", key)));
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        all.push(("Content-Type", "application/json"));
    }
    client.send(method, path, &all, body.as_bytes()).unwrap()
}

fn make_key(file: &Path, user: &str, scopes: &str) -> String {
    let made = run(file, &["keys", "create", "--user", user, "--scopes", scopes, "--json"]);
    made["key"].as_str().unwrap().to_owned()
}

pub(crate) fn run(file: &Path, args: &[&str]) -> Value {
    let output = strata().args(args).args(["--store", &store_url(file)]).output().unwrap();
    assert!(output.status.success(), "{}", crate::support::show(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every table with rows of users in it, with its columns.
fn tables(conn: &Connection) -> Vec<(String, Vec<String>)> {
    let mut select = conn
        .prepare(
            "SELECT m.name, group_concat(c.name) FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type = 'table' GROUP BY m.name HAVING sum(c.name = 'user_id') > 0 ORDER BY m.name",
        )
        .unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
    let columns = |list: String| list.split(',').map(str::to_owned).collect();
    rows.map(|row| row.map(|(table, list)| (table, columns(list))).unwrap()).collect()
}

fn open(file: &Path) -> Connection {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn rows_of(file: &Path, user: &str) -> Value {
    let conn = open(file);
    let mut dump = serde_json::Map::new();
    for (table, columns) in tables(&conn) {
        if DERIVED.contains(&table.as_str()) {
            continue;
        }
        let sql = format!(
            "SELECT {} FROM {table} WHERE user_id = (SELECT id FROM users WHERE name = ?1) ORDER BY 1, 2, 3",
            columns.join(", ")
        );
        let mut select = conn.prepare(&sql).unwrap();
        let read = |row: &rusqlite::Row<'_>| {
            let cell = |index| match row.get(index).unwrap() {
                Cell::Null => Value::Null,
                Cell::Integer(number) => json!(number),
                Cell::Real(number) => json!(number),
                Cell::Text(text) => json!(text),
                Cell::Blob(bytes) => json!(format!("{bytes:02x?}")),
            };
            Ok(Value::Array((0..columns.len()).map(cell).collect()))
        };
        let rows: Vec<Value> = select.query_map([user], read).unwrap().map(Result::unwrap).collect();
        dump.insert(table, Value::Array(rows));
    }
    assert!(dump.len() >= 7, "{dump:?}");
    Value::Object(dump)
}

/// The ids of a user's items, as clients see them.
fn ids_of(file: &Path, user: &str) -> Vec<(String, Vec<String>)> {
    let conn = open(file);
    let with_id = tables(&conn).into_iter().filter(|(table, columns)| {
        // A session has its name as its id, and only its owner knows a key.
        !matches!(table.as_str(), "sessions" | "keys") && columns.iter().any(|column| column == "id")
    });
    let ids = |table: &str| {
        let sql = format!("SELECT id FROM {table} WHERE user_id = (SELECT id FROM users WHERE name = ?1)");
        let mut select = conn.prepare(&sql).unwrap();
        let rows = select.query_map([user], |row| row.get::<_, [u8; 16]>(0)).unwrap();
        rows.map(|row| uuid::Uuid::from_bytes(row.unwrap()).to_string()).collect::<Vec<_>>()
    };
    with_id.map(|(table, _)| (table.clone(), ids(&table))).collect()
}
