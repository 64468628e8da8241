//! The inspector in a real browser, with the real binary. `inspector.mjs` drives the browser; screenshots go to
//! `target/screenshots`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Client, Server, node_folder, show, store_url, strata};

/// Where Debian's package puts the browser.
const CHROMIUM: &str = "/usr/bin/chromium";

#[test]
fn every_page_works_in_a_browser() {
    let folder = node_folder();
    assert!(
        folder.join("node_modules/playwright-core").is_dir() && Path::new(CHROMIUM).is_file(),
        "no browser at {CHROMIUM} or no packages at {}; `cargo xtask check` installs them",
        folder.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("inspected.db");
    let dispute = disputed(directory.path(), &store);
    summarised(directory.path(), &store);
    given_up(&store);
    // The same store, as if its users were large. This server has nothing to write, so that both can be started.
    let settings =
        ["request_timeout_secs=300", "index_max_items=10", "embedder=words", "learn.enabled=false"];
    let large = Server::start_on(&store_url(&store), &directory.path().join("large.log"), &settings);
    let server = Server::start_with(&store, &["request_timeout_secs=300"]);
    let mut client = server.client();
    let mut pages = fill(&mut client);
    pages["paths"]["memory-disputed"] = format!("/inspect/memories/{dispute}").into();
    pages["large"] = format!("http://{}", large.address()).into();
    let (keyed, access) = with_keys(directory.path());
    pages["keyed"] = access;
    let vault = with_broken_file(directory.path());
    pages["vault"] = format!("http://{}", vault.address()).into();
    let screenshots: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../target/screenshots"].iter().collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inspector.mjs");
    let output = Command::new("node")
        .arg(&script)
        .arg(format!("http://{}", server.address()))
        .args([folder.canonicalize().unwrap(), screenshots, CHROMIUM.into()])
        .arg(pages.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}\n{}\n{}", show(&output), server.log(), keyed.log());
}

/// Runs `strata` on a store, and returns what it prints.
fn ran(store: &str, arguments: &[&str]) -> String {
    let output = strata().args(arguments).args(["--store", store]).output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Marks a finished job as given up, as a worker does after its last attempt.
fn given_up(store: &Path) {
    let program = "import sqlite3, sys\n\
                   with sqlite3.connect(sys.argv[1]) as file:\n\
                   \x20   last = file.execute('SELECT max(row) FROM jobs').fetchone()\n\
                   \x20   file.execute(\"UPDATE jobs SET status = 'dead', attempts = 5, last_error = 'the model `owl` refuses: no credit' WHERE row = ?\", last)\n";
    let output = Command::new("python3").args(["-c", program]).arg(store).output().unwrap();
    assert!(output.status.success(), "{}", show(&output));
}

/// A server with keys, and what a person needs for it: its address, a key for all, one that reads, and a memory.
fn with_keys(folder: &Path) -> (Server, Value) {
    let file = folder.join("keyed.db");
    let store = store_url(&file);
    let added =
        ran(&store, &["add", "Ada dries kelp on the slipway", "--user", "ada", "--verbatim", "--json"]);
    let memory: Value = serde_json::from_str(&added).unwrap();
    let key = |scopes: &str| {
        let printed = ran(&store, &["keys", "create", "--user", "ada", "--scopes", scopes]);
        printed.split_whitespace().find(|word| word.starts_with("strata_")).unwrap().to_owned()
    };
    let (key, reader) = (key("read,write"), key("read"));
    let server = Server::start_with(&file, &["request_timeout_secs=300"]);
    let access = json!({
        "root": format!("http://{}", server.address()), "key": key, "reader": reader,
        "memory": format!("/inspect/memories/{}", text(&memory["id"])),
    });
    (server, access)
}

/// A server on a vault in which a person has spoilt a file.
fn with_broken_file(folder: &Path) -> Server {
    let vault = folder.join("vault");
    let store = format!("vault:{}", vault.display());
    ran(&store, &["add", "The slipway is tarred in March", "--verbatim"]);
    let file = "---\nkind: nonsense\n---\nThe crane lifts two tonnes\n";
    std::fs::write(vault.join("entries/global/facts/broken.md"), file).unwrap();
    Server::start_on(&store, &folder.join("vault.log"), &["request_timeout_secs=300"])
}

/// Imports two memories that may contradict each other, and returns the id of the newer one.
fn disputed(folder: &Path, store: &Path) -> &'static str {
    let newer = "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d02";
    let memories = json!({"results": [
        {"id": "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d01", "memory": "The Petrel is insured until the end of May",
            "kind": "fact", "created_at": "2026-01-05T09:00:00Z"},
        {"id": newer, "memory": "The insurance of the Petrel ran out in April", "kind": "fact",
            "created_at": "2026-03-02T09:00:00Z", "disputed_with": "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d01", "certainty": 61},
    ]});
    let file = folder.join("disputed.json");
    std::fs::write(&file, memories.to_string()).unwrap();
    let imported = strata().args(["import", "--store", &store_url(store)]).arg(&file).output().unwrap();
    assert!(imported.status.success(), "{}", show(&imported));
    newer
}

/// A session with several pages of turns.
fn watch(client: &mut Client, at: String) {
    let messages: Vec<Value> = (0..45)
        .map(|hour| {
            let role = if hour % 2 == 0 { "user" } else { "assistant" };
            let text =
                format!("Watch {hour:02}: wind {} knots, sea {} dm. 风向西。", 8 + hour % 7, 3 + hour % 5);
            json!({"role": role, "content": text, "created_at": at})
        })
        .collect();
    post(client, "/turns", &json!({"session_id": "night watch", "messages": messages}));
}

/// A session whose window is summarised three times.
fn summarised(folder: &Path, store: &Path) {
    let pump = [
        ("user", "The bilge pump of the Petrel runs all night. What could it be?"),
        (
            "assistant",
            "Found: the float switch sticks. I suspect that the hull has a leak.\n\n- [ ] dry the bilge\n- [x] check the fuse\n- [ ] look at the stern gland",
        ),
        ("user", "The stern gland drips, about a drop a second."),
        (
            "assistant",
            "Root cause: the packing of the stern gland is worn. We decided to replace it on Saturday.\n\n```\nbilge: 12 mm\npump: 4.2 A\n```",
        ),
        ("user", "船尾的水泵周六修好了，谢谢。"),
        ("assistant", "太好了，水泵已经修好，我记下来了。"),
        ("user", "The pump was quiet last night, and the bilge is dry."),
        ("assistant", "Then the new packing holds. Look at the gland again after a week."),
        ("user", "A week later there is still no drop. The fuse is a spare one of 10 A now."),
        ("assistant", "Noted: a fuse of 10 A, and nothing drips. The case is closed."),
    ];
    let file = folder.join("pump.jsonl");
    for part in [0..6, 6..8, 8..10] {
        let line = |(role, said): &(&str, &str)| format!("{}\n", json!({"role": role, "content": said}));
        std::fs::write(&file, pump[part].iter().map(line).collect::<String>()).unwrap();
        let record = ["record", "--session", "petrel: bilge pump"];
        // `strata learn` returns when the window is summarised.
        for arguments in [&record[..], &["learn"]] {
            let input = std::fs::File::open(&file).unwrap();
            let ran =
                strata().args(arguments).args(["--store", &store_url(store)]).stdin(input).output().unwrap();
            assert!(ran.status.success(), "{}", show(&ran));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn post(client: &mut Client, path: &str, body: &Value) -> Value {
    let answer = client.post(path, body).unwrap();
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.json()
}

#[allow(clippy::disallowed_methods, reason = "the charts show the last weeks")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Fills the store with a few weeks of a person's conversations, and returns the pages to open.
fn fill(client: &mut Client) -> Value {
    let now = now();
    let at = |days: i64| (now - jiff::SignedDuration::from_hours(24 * days)).to_string();
    for day in (0..28).rev() {
        let messages: Vec<Value> = (0..(day * 7) % 5 + 1)
            .flat_map(|number| {
                [
                    json!({"role": "user", "content": format!("Day {day}, note {number}: the tide was high at {}:30 and the wind came from the west.", 6 + number), "created_at": at(day)}),
                    json!({"role": "assistant", "content": "Noted. Shall I put it into the log of the harbour?", "created_at": at(day)}),
                ]
            })
            .collect();
        post(
            client,
            "/turns",
            &json!({"session_id": format!("harbour log {:02}", 28 - day), "messages": messages}),
        );
    }
    watch(client, at(2));
    let hostile = "<script>globalThis.hacked = 1</script><img src=x onerror=\"globalThis.hacked = 2\">";
    let long =
        format!("A log of the engine. {hostile} {}", "rpm 1800, oil 3.1 bar, water 71 °C; ".repeat(28_000));
    let odd =
        json!([{"role": "user", "content": hostile}, {"role": "tool", "name": "read_log", "content": long}]);
    // A user of its own, so that no question has to rank a megabyte.
    let odd = post(
        client,
        "/turns",
        &json!({"user_id": "odd", "session_id": "odd <b>session</b>", "messages": odd}),
    );
    let huge_turn = text(&odd["turns"][1]["id"]);
    let mut add = |statement: &str, kind: &str| -> String {
        let added = post(
            client,
            "/memories",
            &json!({"text": statement, "metadata": {"kind": kind}, "infer": false}),
        );
        text(&added["results"][0]["id"])
    };
    for statement in [
        "Lives aboard the Petrel in the outer harbour",
        "Prefers to be answered in short sentences",
        "The sister Ilse moved to Trieste in spring",
        "Has to renew the radio licence before June",
        "每周三晚上去合唱团",
        "Keeps a kayak under the pier",
    ] {
        add(statement, "fact");
    }
    let choir = add("Sings in the choir on Tuesdays", "fact");
    let hostile_memory = add(hostile, "fact");
    let path = format!("/memories/{choir}");
    let edited = json!({"text": "Sings in the choir on Thursdays"}).to_string();
    let edited =
        client.send("PUT", &path, &[("Content-Type", "application/json")], edited.as_bytes()).unwrap();
    assert_eq!(edited.status, 200, "{}", edited.text());
    let mut request = String::new();
    for number in 0..26 {
        let questions = [
            "Which day is the choir?",
            "Where does Ilse live?",
            "What is wrong with the bilge pump?",
            "水泵修好了吗？",
        ];
        let body = json!({"query": questions[number % questions.len()], "explain": number < 4});
        let answer = post(client, "/search", &body);
        if number == 0 {
            request = text(&answer["request_id"]);
        }
    }
    let odd_session = "/inspect/sessions/odd%20%3Cb%3Esession%3C%2Fb%3E?user=odd";
    let pump = "/inspect/sessions/petrel%3A%20bilge%20pump";
    json!({
        "paths": {
            "overview": "/inspect",
            "empty": "/inspect?user=nobody",
            "sessions": "/inspect/sessions",
            "session": pump,
            "state": format!("{pump}/state"),
            "session-long": "/inspect/sessions/night%20watch",
            "session-first": "/inspect/sessions/night%20watch?after=-1",
            "summaries": format!("{pump}/summaries"),
            "prompt": format!("{pump}/prompt"),
            "odd-session": odd_session,
            "turn": format!("/inspect/turns/{huge_turn}?user=odd"),
            "memories": "/inspect/memories",
            "memories-past": "/inspect/memories?state=past",
            "memories-nothing": "/inspect/memories?q=zeppelin",
            "memory": format!("/inspect/memories/{choir}"),
            "requests": "/inspect/requests",
            "request": format!("/inspect/requests/{request}"),
            "try": "/inspect/try?q=Which+day+is+the+choir%3F+My+brother+lives+in+Bergen.",
            "try-empty": "/inspect/try",
            "report": "/inspect/report",
            "sign-in": "/inspect/sign-in",
        },
        "hostile": [
            "/inspect",
            "/inspect/memories",
            format!("/inspect/memories/{hostile_memory}"),
            "/inspect/sessions?user=odd",
            odd_session,
            format!("/inspect/turns/{huge_turn}?user=odd"),
            "/inspect/try?q=%3Cscript%3EglobalThis.hacked%3D3%3C%2Fscript%3E",
            "/inspect/memories?q=%22%3E%3Cscript%3EglobalThis.hacked%3D4%3C%2Fscript%3E",
        ],
        "huge": [
            format!("/inspect/turns/{huge_turn}?user=odd"),
            format!("/inspect/turns/{huge_turn}?user=odd&page=3"),
            odd_session,
        ],
        "memory": format!("/inspect/memories/{choir}"),
        "request": format!("/inspect/requests/{request}"),
    })
}
