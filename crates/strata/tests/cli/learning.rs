//! Learning without a server, with a model and without, and its output.

use serde_json::{Value, json};

use crate::harness::{Machine, Ran};
use crate::model::{Model, Mood};

fn memories(machine: &Machine) -> Vec<String> {
    let list = machine.run(&["memories", "list", "--json"]).json();
    let mut memories: Vec<String> = list["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|memory| memory["memory"].as_str().unwrap().to_owned())
        .collect();
    memories.sort();
    memories
}

fn jobs(machine: &Machine, status: &str) -> Vec<Value> {
    let list = machine.run(&["jobs", "list", "--status", status, "--json"]).json();
    list["jobs"].as_array().unwrap().clone()
}

/// Runs with the model's setting and quick retries.
fn run(machine: &Machine, model: &Model, args: &[&str]) -> Ran {
    let setting = model.setting();
    let args: Vec<&str> = args.iter().copied().chain(["--setting", &setting]).collect();
    machine.run(&args)
}

#[test]
fn what_is_recorded_waits_until_somebody_learns_from_it() {
    let (machine, model) = (Machine::new(), Model::start());
    machine.record("trip", &["I live in Lisbon", "I like trams", "what time is it?"]);
    assert_eq!(memories(&machine), Vec::<String>::new());
    let waiting = jobs(&machine, "queued");
    assert_eq!(
        (waiting[0]["kind"].as_str(), waiting[0]["session_id"].as_str()),
        (Some("extract"), Some("trip"))
    );
    let report = run(&machine, &model, &["learn", "--json"]).json();
    assert_eq!((&report["events"]["ADD"], &report["dead"]), (&2.into(), &0.into()), "{report}");
    assert!(report["spent"]["calls"].as_u64().unwrap() >= 1, "{report}");
    assert_eq!(memories(&machine), ["The user likes trams", "The user lives in Lisbon"]);
    assert!(jobs(&machine, "queued").is_empty());
    let asked = model.requests();
    let again = run(&machine, &model, &["learn", "--json"]).json();
    assert_eq!((&again["jobs"], model.requests()), (&0.into(), asked), "nothing is learned twice: {again}");
}

#[test]
fn only_the_turns_of_the_named_user_are_learned() {
    let machine = Machine::new();
    for (user, said) in [("ada", "I live in Graz."), ("bea", "我住在长沙。")] {
        machine.feed(&["record", "--user", user], said).ok();
    }
    let known = |user: &str| machine.run(&["memories", "list", "--user", user, "--json"]).ok();
    machine.run(&["learn", "--user", "bea"]).ok();
    assert!(known("bea").contains("长沙") && !known("ada").contains("Graz"), "{}", known("ada"));
    machine.run(&["learn"]).ok();
    assert!(known("ada").contains("Graz"));
}

#[test]
fn recording_may_learn_at_once() {
    let (machine, model) = (Machine::new(), Model::start());
    let line = r#"{"role": "user", "content": "I like trams"}"#;
    let setting = model.setting();
    let printed = machine.feed(&["record", "--learn", "--setting", &setting], line).ok();
    assert!(printed.contains("recorded 1 turn") && printed.contains("1 memory added"), "{printed}");
    assert_eq!(memories(&machine), ["The user likes trams"]);
}

#[test]
fn a_change_of_mind_is_explained() {
    let (machine, model) = (Machine::new(), Model::start());
    let first = run(&machine, &model, &["add", "--infer", "I live in Lisbon", "--json"]).json();
    assert_eq!((&first["results"][0]["event"], &first["inferred"]), (&"ADD".into(), &true.into()));
    let known = run(&machine, &model, &["add", "--infer", "I live in Lisbon"]).ok();
    assert!(known.contains("already known"), "{known}");
    let moved = run(&machine, &model, &["add", "--infer", "I live in Porto"]).ok();
    assert!(moved.contains("remembered") && moved.contains("ended, as"), "{moved}");
    assert_eq!(memories(&machine), ["The user lives in Porto"]);
    let nothing = run(&machine, &model, &["add", "--infer", "hello there"]).ok();
    assert!(nothing.contains("the text holds no statement to remember"), "{nothing}");

    let id = first["results"][0]["id"].as_str().unwrap();
    let told = machine.run(&["memories", "history", id]).ok();
    for part in [
        "«The user lives in Lisbon» was believed since",
        "I live in Lisbon",
        "«The user lives in Porto» took its place",
        "I live in Porto",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = machine.run(&["memories", "history", id, "--json"]).json();
    assert_eq!(told["results"][0]["replaced_because"][0]["text"], "I live in Porto", "{told}");
    assert_eq!(told["results"][1]["memory"], "The user lives in Porto", "{told}");
}

#[test]
fn a_job_that_was_given_up_is_seen_and_tried_again() {
    let (machine, model) = (Machine::new(), Model::start());
    machine.record("trip", &["I like trams"]);
    model.set(Mood::Broken);
    // Without the reader, extraction falls back to the rules at the last attempt. This test checks that it waits until then.
    let setting = [
        "--setting",
        "learn.timeout_secs=1",
        "--setting",
        "learn.retry_secs=3600",
        "--setting",
        "learn.reader=off",
    ];
    let args: Vec<&str> = ["learn", "--json"].into_iter().chain(setting).collect();
    let report = run(&machine, &model, &args).json();
    assert_eq!((&report["waiting"], &report["done"]), (&1.into(), &0.into()), "{report}");
    let job = jobs(&machine, "queued").into_iter().find(|job| job["kind"] == "extract").unwrap();
    assert!(job["last_error"].as_str().unwrap().contains("500"), "{job}");
    let shown = machine.run(&["jobs", "show", job["id"].as_str().unwrap()]).ok();
    assert!(shown.contains("started 1 times") && shown.contains("last error:"), "{shown}");
    let error = machine.run(&["jobs", "retry", job["id"].as_str().unwrap()]).failed(1);
    assert!(error.contains("dead"), "{error}");
    let table = machine.run(&["jobs", "list", "--all-users"]).ok();
    assert!(table.contains("LAST ERROR") && table.contains("trip"), "{table}");
}

#[test]
fn the_reader_replaces_a_model_that_fails_and_doctor_says_so() {
    let (machine, model) = (Machine::new(), Model::start());
    machine.record("trip", &["I moved to Aveiro last spring."]);
    model.set(Mood::Broken);
    let reader = ["--setting", "learn.timeout_secs=1", "--setting", "learn.reader=builtin"];
    let args: Vec<&str> = ["learn", "--json"].into_iter().chain(reader).collect();
    let report = run(&machine, &model, &args).json();
    assert_eq!(report["waiting"], 0, "{report}");
    assert!(memories(&machine).iter().any(|memory| memory.contains("Aveiro")), "{:?}", memories(&machine));
    let checked = run(&machine, &model, &["doctor", "--quick"]).ok();
    assert!(
        checked.contains("learning model") && checked.contains("could not be used for 1 of"),
        "{checked}"
    );
    let without = machine.run(&["doctor", "--quick"]).ok();
    assert!(!without.contains("learning model"), "{without}");
}

#[test]
fn failed_summaries_are_told_by_doctor_and_jobs() {
    let (machine, model) = (Machine::new(), Model::start());
    let said: String = (0..4)
        .flat_map(|number| {
            let line = |role: &str, text: String| format!("{}\n", json!({ "role": role, "content": text }));
            let question = line("user", format!("Does row {number} of the vineyard need water?"));
            [question, line("assistant", format!("Row {number} gets water on Friday."))]
        })
        .collect();
    machine.feed(&["record", "--session", "vines"], said).ok();
    let healthy = machine.run(&["doctor"]).ok();
    assert!(healthy.contains("none was given up") && healthy.contains("no failures"), "{healthy}");
    model.set(Mood::Broken);
    let once = ["learn", "--setting", "learn.timeout_secs=1", "--setting", "learn.max_attempts=1"];
    run(&machine, &model, &once).ok();
    let shown = machine.run(&["sessions", "show", "vines", "--summaries", "--json"]).json();
    assert!(shown.to_string().contains("without_model"), "{shown}");
    let checked = machine.run(&["doctor", "--quick"]).ok();
    assert!(checked.contains("1 of the last 1 jobs were done without the model"), "{checked}");
    let table = machine.run(&["jobs", "list"]).ok();
    assert!(table.contains("done without the model: "), "{table}");

    let store = rusqlite::Connection::open(machine.store()).unwrap();
    let give_up = "UPDATE jobs SET status = 'dead', last_error = 'no room' WHERE kind = 'summarise';
        UPDATE summaries SET status = 'processing', created_at = 0 WHERE strategy = 'window';";
    store.execute_batch(give_up).unwrap();
    drop(store);
    let checked = machine.run(&["doctor"]);
    assert_eq!(checked.code, 1, "{}", checked.stdout);
    assert!(checked.stdout.contains("given up: 1 `summarise`; an error: no room"), "{}", checked.stdout);
    assert!(checked.stdout.contains("1 unfinished for more than five minutes"), "{}", checked.stdout);
    let checked = machine.run(&["doctor", "--json"]);
    assert!(
        checked.stdout.contains("\"ok\": false") || checked.stdout.contains("\"ok\":false"),
        "{}",
        checked.stdout
    );
}

#[test]
fn a_model_that_refuses_loses_nothing() {
    let (machine, model) = (Machine::new(), Model::start());
    model.set(Mood::Unwilling);
    let answer = run(&machine, &model, &["add", "--infer", "I like trams", "--json"]);
    assert_eq!(answer.json()["inferred"], true);
    let turns = machine.run(&["sessions", "show", "default", "--json"]).json();
    assert_eq!(turns["turns"][0]["content"], "I like trams", "what was said is there: {turns}");
    assert!(model.requests() >= 2, "it was asked again");
}

#[test]
fn learning_can_be_switched_off() {
    let machine = Machine::new();
    machine
        .feed(
            &["record", "--setting", "learn.enabled=false"],
            r#"{"role": "user", "content": "I like trams"}"#,
        )
        .ok();
    assert!(jobs(&machine, "queued").is_empty());
    let report = machine.run(&["learn", "--json"]).json();
    assert_eq!(report["jobs"], 0);
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let machine = Machine::new();
    machine
        .write("strata.toml", "openai_base_url = 'http://127.0.0.1:1'\nopenai_api_key = 'sk-very-secret'\n");
    let shown = machine.run(&["config"]).ok();
    assert!(shown.contains("(hidden)") && !shown.contains("sk-very-secret"), "{shown}");
    let ran = machine.run(&[
        "add",
        "--infer",
        "I like trams",
        "--log",
        "trace",
        "--setting",
        "learn.timeout_secs=1",
    ]);
    assert!(!ran.stderr.contains("sk-very-secret"), "{}", ran.stderr);
    ran.ok();
}

#[test]
fn open_todos_are_listed_from_summaries() {
    let machine = Machine::new();
    let rounds = ["I live in Lisbon.", "Remind me to book a flight.", "我要买牛奶。"].map(|said| {
        format!(
            "{}\n{}\n",
            serde_json::json!({"role": "user", "content": said}),
            serde_json::json!({"role": "assistant", "content": "Noted."})
        )
    });
    machine.feed(&["record", "--session", "trip", "--learn"], rounds.concat()).ok();
    let shown = machine.run(&["sessions", "points", "todos", "--json"]).json();
    let points = shown["points"].as_array().unwrap();
    let texts: Vec<_> = points.iter().map(|point| point["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["The user needs to book a flight", "用户要买牛奶"]);
    assert_eq!((&points[0]["session_id"], &points[0]["seq"]), (&"trip".into(), &2.into()));
    let table = machine.run(&["sessions", "points", "facts", "--session", "trip"]).ok();
    assert!(table.contains("SESSION") && table.contains("The user lives in Lisbon"), "{table}");
    let refused = machine.run(&["sessions", "points", "rumours"]).failed(2);
    assert!(refused.contains("`facts`"), "{refused}");
}

#[test]
fn a_search_for_summaries_finds_them() {
    let machine = Machine::new();
    let rounds =
        ["The loom in the attic squeaks.", "Its treadle rubs the frame.", "We sand the treadle on Monday."];
    let lines = rounds.map(|said| {
        format!(
            "{}\n{}\n",
            serde_json::json!({"role": "user", "content": said}),
            serde_json::json!({"role": "assistant", "content": "I see."})
        )
    });
    machine.feed(&["record", "--session", "attic", "--learn"], lines.concat()).ok();
    let question = "When do we sand the treadle of the loom?";
    let found = machine.run(&["search", question, "--kind", "summary", "--json"]).json();
    let results = found["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["kind"]), (1, &"summary".into()), "{found}");
    assert!(results[0]["memory"].as_str().unwrap().contains("sand the treadle"), "{found}");
    let table = machine.run(&["search", question, "--kind", "summary"]).ok();
    assert!(table.contains("summary") && table.contains("attic"), "{table}");
    assert!(!machine.run(&["search", question, "--kind", "turn"]).ok().contains("summary"));
}

#[test]
fn jobs_are_shown_of_all_users_unless_one_is_named() {
    let machine = Machine::new();
    for user in ["ada", "bob"] {
        machine.feed(&["record", "--user", user], r#"{"role": "user", "content": "I like trams"}"#).ok();
    }
    let all = machine.run(&["jobs", "list", "--json"]).json();
    let owners: Vec<_> = all["jobs"].as_array().unwrap().iter().map(|job| job["user_id"].clone()).collect();
    assert!(owners.contains(&"ada".into()) && owners.contains(&"bob".into()), "{all}");
    let hers = machine.run(&["jobs", "list", "--user", "ada"]).ok();
    assert!(hers.contains("ada") && !hers.contains("bob"), "{hers}");
    let id = all["jobs"][0]["id"].as_str().unwrap();
    assert!(machine.run(&["jobs", "show", id]).ok().contains("extract of user"));
}

#[test]
fn numbers_are_as_short_as_over_http() {
    let machine = Machine::new();
    machine.feed(&["record", "--learn"], r#"{"role": "user", "content": "I live in Lisbon."}"#).ok();
    let list = machine.run(&["memories", "list", "--json"]).ok();
    let confidence = list.lines().find(|line| line.contains("confidence")).unwrap().trim();
    assert!(confidence.len() < "\"confidence\": 0.12345,".len(), "{confidence}");
}

/// What `learn --explain` says about a message, as text and as JSON.
#[cfg(not(feature = "lite"))]
fn explained(machine: &Machine, said: &str) -> (String, Value) {
    let args = ["learn", "--explain", said, "--setting", "learn.reader=builtin"];
    let text = machine.run(&args).ok();
    let json: Vec<&str> = args.into_iter().chain(["--json"]).collect();
    (text, machine.run(&json).json())
}

#[test]
#[cfg(not(feature = "lite"))]
fn a_text_is_explained_without_being_learned() {
    let machine = Machine::new();
    let home = machine.add(&["The user lives in Aarhus.", "--verbatim"]);
    let before = memories(&machine);
    let (text, json) = explained(&machine, "I live in Odense now.");
    assert!(json["by"].as_str().is_some_and(|by| by != "rules"), "{json}");
    let statement = &json["sentences"][0]["statement"];
    let done = (&statement["effect"], &statement["about"]);
    assert_eq!(done, (&"replaces".into(), &home.as_str().into()), "{json}");
    assert!(statement["memory"].as_str().unwrap().contains("Odense"), "{json}");
    assert!(statement["candidates"][0]["replaces"].as_f64().unwrap() > 0.6, "{json}");
    for part in ["read by ", "voice: own", "worth remembering: ", "replaces (", "* repeats ", &home] {
        assert!(text.contains(part), "«{part}» in {text}");
    }
    let (text, json) = explained(&machine, "Could you plan a farewell party?");
    let sentence = &json["sentences"][0];
    assert_eq!((&sentence["voice"], &sentence["statement"]), (&"request".into(), &Value::Null), "{json}");
    let reason = sentence["left_out"].as_str().unwrap();
    assert!(text.contains(&format!("left out: {reason}")), "{text}");
    assert_eq!(memories(&machine), before, "nothing is learned");

    let (text, json) = explained(&machine, "我上周换到欧登塞的图书馆工作了。");
    assert!(json["sentences"][0]["statement"]["memory"].as_str().unwrap().contains("欧登塞"), "{json}");
    assert!(text.contains("adds ("), "{text}");
    machine.run(&["learn", "--explain", " "]).failed(2);
}
