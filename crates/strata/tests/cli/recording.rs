//! `strata record`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::Machine;

#[test]
fn turns_are_recorded_as_they_were_said() {
    let machine = Machine::new();
    let lines = [
        json!({"role": "system", "content": "be kind"}),
        json!({"role": "user", "content": "我上周三在西湖边骑车", "name": "ada", "created_at": "2026-03-01", "metadata": {"a": [1]}}),
        json!({"role": "assistant", "content": "nice", "created_at": "2026-03-01T10:00:00.123456+02:00"}),
        json!({"role": "tool", "content": ""}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
    let printed = machine.feed(&["record", "--session", "user:agent:1", "--user", "ada"], input).ok();
    assert_eq!(printed, "recorded 4 turns in session `user:agent:1`\n");

    let session = machine.run(&["sessions", "show", "user:agent:1", "--user", "ada", "--json"]).json();
    let turns = session["turns"].as_array().unwrap();
    let of = |key: &str| turns.iter().map(|turn| turn[key].clone()).collect::<Vec<Value>>();
    assert_eq!(of("seq"), [0, 1, 2, 3].map(Value::from));
    assert_eq!(of("role"), ["system", "user", "assistant", "tool"].map(Value::from));
    assert_eq!(turns[1]["content"], "我上周三在西湖边骑车");
    assert_eq!(turns[1]["name"], "ada");
    assert_eq!(turns[1]["created_at"], "2026-03-01T00:00:00Z");
    assert_eq!(turns[1]["metadata"], json!({"a": [1]}));
    assert_eq!(turns[2]["created_at"], "2026-03-01T08:00:00.123456Z");
    assert_eq!(of("token_count"), [2, 10, 1, 0].map(Value::from));
}

#[test]
fn each_turn_is_acknowledged_with_its_id_when_it_is_durable() {
    let machine = Machine::new();
    let mut child = machine
        .command(&["record", "--json"])
        .stdin(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // The next turn is sent only after the previous one is acknowledged: a stream is recorded as it arrives.
    for seq in 0..3 {
        writeln!(stdin, "{}", json!({"role": "user", "content": format!("turn {seq}")})).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let turn: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(turn["seq"], seq);
        assert_eq!(turn["id"].as_str().unwrap().len(), 36);
        let session = machine.run(&["sessions", "show", "default", "--json"]).json();
        assert_eq!(session["turns"][seq]["id"], turn["id"]);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_bad_line_stops_with_its_number_and_keeps_what_came_before() {
    let check = |bad: &[u8], expected: &str| {
        let machine = Machine::new();
        let good = |text: &str| format!("{}\n", json!({"role": "user", "content": text})).into_bytes();
        let input = [&good("one")[..], b"\n", &good("two"), bad, b"\n", &good("three")].concat();
        let ran = machine.feed(&["record", "--json"], input);
        assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
        let error = ran.failed(1);
        assert!(error.contains("line 4: ") && error.contains(expected), "{error}");
        assert!(error.contains("2 turns were recorded before it"), "{error}");
        let session = machine.run(&["sessions", "show", "default", "--json"]).json();
        assert_eq!(session["turn_count"], 2);
    };
    check(b"{\"role\": \"user\", ", "at column");
    check(b"\xff\xfe\xfd", "not valid UTF-8");
    check(br#"{"role": "robot", "content": "x"}"#, "`robot`");
    check(br#"{"role": "user", "content": "x", "creatd_at": "2026-03-01"}"#, "unknown field `creatd_at`");
    check(br#"{"role": "user", "content": "x", "created_at": "soon"}"#, "is no time");
    // The engine refuses a well-formed line, and the batch is recorded line by line to find it.
    check(br#"{"role": "user", "content": "a\u0000b"}"#, "`content` holds a NUL character");
    for metadata in [r#"{"a": ["\u0000"]}"#, r#"{"a\u0000": 1}"#] {
        let line = format!(r#"{{"role": "user", "content": "x", "metadata": {metadata}}}"#);
        check(line.as_bytes(), "`metadata` holds a NUL character");
    }
    check(br#"{"role": "user", "content": "x", "metadata": {"a": 1e400}}"#, "number out of range");
    let large = json!({"role": "user", "content": "x".repeat(1024 * 1024 + 1)}).to_string();
    check(large.as_bytes(), "`max_turn_bytes`");
    check(&vec![b'x'; 20 * 1024 * 1024], "longer than");
}

#[test]
fn nothing_on_stdin_records_nothing() {
    let machine = Machine::new();
    assert_eq!(machine.feed(&["record"], "").ok(), "recorded 0 turns in session `default`\n");
    assert_eq!(machine.feed(&["record"], "\n \n").ok(), "recorded 0 turns in session `default`\n");
}

#[test]
fn a_long_input_goes_in_batches_without_a_gap() {
    let machine = Machine::new();
    let input: String = (0..2_345)
        .map(|i| format!("{}\n", json!({"role": "user", "content": format!("turn {i}")})))
        .collect();
    let printed = machine.feed(&["record", "--json", "--setting", "max_turns_per_call=100"], &input).ok();
    let seqs: Vec<u64> = printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (0..2_345).collect::<Vec<u64>>());
}

#[test]
fn metadata_and_notes_come_back_byte_for_byte() {
    let machine = Machine::new();
    let lines = concat!(
        r#"{"role":"user","content":"hi","created_at":"2026-03-01T00:00:00Z","metadata":{"z":1.0,"a":"\\u0000","todo":"done","follows":3,"interrupted":true}}"#,
        "\n",
        r#"{"role":"assistant","content":"","created_at":"2026-03-01T00:00:01Z","interrupted":true,"tool_calls":[{"id":"c"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
        "\n",
        r#"{"role":"tool","content":"no","created_at":"2026-03-01T00:00:02Z","tool_call_id":"c","failed":true,"high_value":true}"#,
        "\n"
    );
    machine.feed(&["record"], lines).ok();
    assert_eq!(machine.run(&["sessions", "export", "default"]).ok(), lines);
}

#[test]
fn what_is_exported_can_be_recorded_again() {
    let machine = Machine::new();
    let lines = [
        json!({"role": "user", "content": "line\nbreak \u{1b}[31m", "created_at": "2026-03-01T00:00:00Z"}),
        json!({"role": "assistant", "content": "🦀", "name": "bot", "created_at": "2026-03-02T00:00:00Z", "metadata": {"b": null}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    machine.feed(&["record", "--session", "a"], input).ok();
    let exported = machine.run(&["sessions", "export", "a"]).ok();
    let read: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, lines);
    machine.feed(&["record", "--session", "b"], &exported).ok();
    assert_eq!(machine.run(&["sessions", "export", "b"]).ok(), exported);

    machine.run(&["sessions", "export", "a", "--output", "a.jsonl"]).ok();
    assert_eq!(std::fs::read_to_string(machine.home().join("a.jsonl")).unwrap(), exported);
    let error = machine.run(&["sessions", "export", "a", "--output", "a.jsonl"]).failed(1);
    assert!(error.contains("`a.jsonl` cannot be written"), "{error}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let machine = Machine::new();
    let text = "x".repeat(10_000);
    machine.record("long", &vec![text.as_str(); 100]);
    let mut child = machine.command(&["sessions", "export", "long"]).spawn().unwrap();
    let mut stdout = BufReader::with_capacity(512, child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn what_a_command_has_forgotten_is_in_no_file() {
    let machine = Machine::new();
    machine.record("kept", &["bread and salt"]);
    machine.record("gone", &["the zanzibarquux is in the cellar"]);
    let id = machine.add(&["keeps another zanzibarquux"]);
    machine.run(&["search", "where is the zanzibarquux?", "--session", "gone"]).ok();
    let holding = || {
        let folder = std::fs::read_dir(machine.store().parent().unwrap()).unwrap();
        let files = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files
            .filter(|path| {
                let bytes = std::fs::read(path).unwrap();
                bytes.windows(12).any(|window| window == b"zanzibarquux")
            })
            .collect::<Vec<_>>()
    };
    assert_ne!(holding(), Vec::<std::path::PathBuf>::new());
    machine.run(&["memories", "forget", &id, "--yes"]).ok();
    machine.run(&["sessions", "delete", "gone", "--yes"]).ok();
    assert_eq!(holding(), Vec::<std::path::PathBuf>::new());
    assert!(machine.run(&["search", "salt"]).ok().contains("bread and salt"));
    machine.run(&["doctor"]).ok();
}
