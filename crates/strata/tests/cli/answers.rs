//! Search, memories and sessions.

use crate::harness::Machine;

#[test]
fn a_search_finds_turns_and_memories_in_their_scope() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon in March", "the weather is fine"]);
    machine.record("work", &["the report about Lisbon is due"]);
    let memory = machine.add(&["Ada likes Lisbon", "--kind", "preference"]);
    machine.add(&["Lisbon is in Portugal", "--scope", "global"]);
    machine.add(&["eve hates Lisbon", "--user", "eve"]);

    let found = |args: &[&str]| {
        let args: Vec<&str> =
            ["search", "lisbon", "--json"].into_iter().chain(args.iter().copied()).collect();
        let json = machine.run(&args).json();
        assert!(json["request_id"].is_string());
        assert_eq!(json["retrieval_path"], "fts");
        let results = json["results"].as_array().unwrap().clone();
        let mut texts: Vec<String> =
            results.iter().map(|result| result["memory"].as_str().unwrap().to_owned()).collect();
        // Neighbouring turns of a hit may be returned too.
        texts.retain(|text| text.contains("Lisbon"));
        texts.sort();
        texts
    };
    let (trip, work) = ("I moved to Lisbon in March", "the report about Lisbon is due");
    let shared = "Lisbon is in Portugal";
    assert_eq!(found(&[]), ["Ada likes Lisbon", trip, shared, work]);
    assert_eq!(found(&["--session", "trip", "--scope", "session"]), ["Ada likes Lisbon", trip]);
    assert_eq!(found(&["--session", "trip", "--scope", "user"]), ["Ada likes Lisbon", trip, work]);
    assert_eq!(found(&["--scope", "global"]), ["Ada likes Lisbon", trip, shared, work]);
    assert_eq!(found(&["--user", "eve"]), [shared, "eve hates Lisbon"]);
    assert_eq!(found(&["--limit", "1"]).len(), 1);

    let table = machine.run(&["search", "lisbon"]).ok();
    assert!(table.starts_with("SCORE") && table.contains("SPEAKER"), "{table}");
    assert!(table.lines().any(|line| line.contains("preference") && line.contains(&memory)), "{table}");
    assert!(table.lines().any(|line| line.contains("turn") && line.ends_with(trip)), "{table}");
}

#[test]
fn without_a_match_nothing_answers() {
    let machine = Machine::new();
    machine.record("trip", &["first", "second"]);
    let ran = machine.run(&["search", "zebra crossing"]);
    assert!(ran.stderr.contains("nothing was found"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "");
    let ran = machine.run(&["search", "what did I just say?"]);
    assert!(ran.stderr.contains("most recent turns"), "{}", ran.stderr);
    assert!(ran.ok().contains("second"));
    let ran = machine.run(&["search", "zebra crossing", "--user", "nobody"]);
    assert!(ran.stderr.contains("nothing was found"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "");
}

#[test]
fn a_search_can_look_back() {
    let machine = Machine::new();
    let lines =
        [("2026-01-10", "the office is in Porto"), ("2026-02-10T12:00:00Z", "the office is in Braga")].map(
            |(day, text)| serde_json::json!({"role": "user", "content": text, "created_at": day}).to_string(),
        );
    machine.feed(&["record"], lines.join("\n")).ok();
    let found = |moment: &str| {
        let json = machine.run(&["search", "office", "--json", "--as-of", moment]).json();
        json["results"].as_array().unwrap().len()
    };
    assert_eq!(found("2026-01-09"), 0);
    assert_eq!(found("2026-01-10"), 1, "a date means all of its day");
    assert_eq!(found("2026-02-10T11:59:59Z"), 1);
    assert_eq!(found("2026-02-10T12:00:00Z"), 2);
}

#[test]
fn a_memory_is_edited_deleted_restored_and_forgotten() {
    let machine = Machine::new();
    let id = machine.add(&["Ada lives in Lisbon"]);
    let shown = machine.run(&["memories", "show", &id]).ok();
    assert!(shown.contains("Ada lives in Lisbon") && shown.contains("current"), "{shown}");

    let edited = machine.run(&["memories", "edit", &id, "Ada lives in Porto", "--json"]).json();
    assert_eq!((edited["id"].as_str(), edited["memory"].as_str()), (Some(&*id), Some("Ada lives in Porto")));
    let edited = machine.feed(&["memories", "edit", &id, "-", "--json"], "Ada lives in Braga\n").json();
    assert_eq!(edited["memory"], "Ada lives in Braga");
    let history = machine.run(&["memories", "history", &id, "--json"]).json();
    let texts: Vec<&str> = history["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|memory| memory["memory"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Ada lives in Lisbon", "Ada lives in Porto", "Ada lives in Braga"]);
    let error = machine.run(&["memories", "edit", &id]).failed(2);
    assert!(error.contains("the new statement is missing"), "{error}");

    let listed = |args: &[&str]| {
        let args: Vec<&str> =
            ["memories", "list", "--json"].into_iter().chain(args.iter().copied()).collect();
        machine.run(&args).json()["results"].as_array().unwrap().len()
    };
    assert_eq!((listed(&[]), listed(&["--all"])), (1, 3));
    assert_eq!((listed(&["--kind", "todo"]), listed(&["--user", "eve"])), (0, 0));
    let printed = machine.run(&["memories", "delete", &id]).ok();
    assert!(printed.contains(&format!("strata memories restore {id}")), "{printed}");
    assert_eq!((listed(&[]), listed(&["--all"])), (0, 3));
    machine.run(&["memories", "restore", &id]).ok();
    assert_eq!(listed(&[]), 1);

    let error = machine.run(&["memories", "forget", &id]).failed(2);
    assert!(error.contains("--yes"), "{error}");
    assert_eq!(listed(&["--all"]), 3);
    let removed = machine.run(&["memories", "forget", &id, "--yes", "--json"]).json();
    assert_eq!(removed["removed"]["memories"], 3);
    assert_eq!(listed(&["--all"]), 0);
}

#[test]
fn memories_that_all_share_are_kept_apart() {
    let machine = Machine::new();
    let id = machine.add(&["the office closes at six", "--scope", "global"]);
    machine.add(&["Ada has a cat"]);
    let list = machine.run(&["memories", "list", "--global"]).ok();
    assert!(list.contains("office") && !list.contains("cat"), "{list}");
    machine.run(&["memories", "show", &id]).failed(1);
    machine.run(&["memories", "show", &id, "--global"]).ok();
    let error = machine.run(&["memories", "list", "--global", "--user", "ada"]).failed(2);
    assert!(error.contains("--user"), "{error}");
    machine.run(&["memories", "forget", "--all", "--yes"]).ok();
    let list = machine.run(&["memories", "list", "--global"]).ok();
    assert!(list.contains("office"), "{list}");
}

#[test]
fn a_memory_bound_to_a_session_goes_with_it() {
    let machine = Machine::new();
    machine.record("../../x", &["hello", "there"]);
    machine.record("🦀", &["crab"]);
    machine.add(&["bound", "--session", "../../x"]);
    machine.add(&["free", "--session", "../../x", "--scope", "user"]);
    let sessions = machine.run(&["sessions", "list"]).ok();
    assert_eq!(sessions.lines().count(), 3, "{sessions}");
    let removed = machine.run(&["sessions", "delete", "../../x", "--yes", "--json"]).json();
    assert_eq!((&removed["removed"]["turns"], &removed["removed"]["memories"]), (&2.into(), &1.into()));
    let sessions = machine.run(&["sessions", "list", "--json"]).json();
    assert_eq!(sessions["sessions"][0]["id"], "🦀");
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    let memories = machine.run(&["memories", "list"]).ok();
    assert!(memories.contains("free") && !memories.contains("bound"), "{memories}");
}

#[test]
fn a_session_is_shown_in_parts() {
    let machine = Machine::new();
    machine.record("trip", &["zero", "one\nand a half \u{1b}[31mred", "two"]);
    let ran = machine.run(&["sessions", "show", "trip", "--after", "0", "--limit", "1"]);
    assert!(ran.stderr.contains("1 more turns; continue with `--after 1`"), "{}", ran.stderr);
    let shown = ran.ok();
    assert!(shown.contains("  one\n  and a half \u{fffd}[31mred\n"), "{shown:?}");
    assert!(!shown.contains("zero") && !shown.contains("two"), "{shown}");
}

#[test]
fn a_text_may_come_from_stdin() {
    let machine = Machine::new();
    machine.feed(&["add", "-"], "from\nstdin\n").ok();
    let list = machine.run(&["memories", "list", "--json"]).json();
    assert_eq!(list["results"][0]["memory"], "from\nstdin");
    machine.feed(&["add", "-"], b"\xff").failed(2);
    let error = machine.feed(&["add", "-", "--setting", "max_turn_bytes=3"], "four").failed(2);
    assert!(error.contains("`max_turn_bytes`"), "{error}");
}

#[test]
fn a_filter_narrows_searches_and_lists() {
    let machine = Machine::new();
    machine.add(&["Ada drinks green tea", "--kind", "preference"]);
    machine.add(&["Ada grows green tea", "--session", "garden"]);
    for (filter, expected) in [
        (r#"{"kind": "preference"}"#, &["Ada drinks green tea"][..]),
        (r#"{"NOT": [{"kind": "preference"}]}"#, &["Ada grows green tea"]),
        (r#"{"OR": [{"run_id": "garden"}, {"kind": {"in": ["preference"]}}]}"#, &["Ada drinks", "Ada grows"]),
        (r#"{"user_id": "eve"}"#, &[]),
    ] {
        for command in [&["search", "green tea"][..], &["memories", "list"]] {
            let found = machine.run(&[command, &["--json", "--filter", filter]].concat()).json();
            let found = found["results"].as_array().unwrap();
            assert_eq!(found.len(), expected.len(), "{command:?} {filter} {found:?}");
            for text in expected {
                assert!(
                    found.iter().any(|item| item["memory"].as_str().unwrap().contains(text)),
                    "{found:?}"
                );
            }
        }
    }
    for (filter, expected) in [("nonsense", "JSON"), (r#"{"a": {"like": 1}}"#, "`like`")] {
        for command in [&["search", "tea"][..], &["memories", "list"]] {
            let error = machine.run(&[command, &["--filter", filter]].concat()).failed(2);
            assert!(error.contains(expected), "{error}");
        }
    }
}
