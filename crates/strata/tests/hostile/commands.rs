//! Bad arguments and bad input of every command.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support;

fn run(file: &Path, arguments: &[OsString], input: &[u8]) -> Output {
    let mut command = support::strata();
    command.current_dir(file.parent().unwrap()).args(arguments);
    if !arguments.iter().any(|argument| argument == "--store") {
        command.args(["--store", &support::store_url(file)]);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn assert_fails(output: &Output, what: &str) {
    let shown = support::show(output);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{what}: {shown}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("error:") && !errors.contains("panicked"), "{what}: {shown}");
    // The error may quote the argument once.
    assert!(errors.len() < 12_000, "{what}: the error should be short, not {} bytes", errors.len());
}

#[test]
fn every_command_refuses_bad_input() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("commands.db");
    let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
    let setup =
        run(&file, &words(&["record", "--session", "trip"]), b"{\"role\":\"user\",\"content\":\"hello\"}\n");
    assert!(setup.status.success(), "{}", support::show(&setup));
    let before = support::counts(&file);
    assert_eq!(before["turns"], 1, "{before}");

    let long = "x".repeat(10_000);
    let commands: &[&[&str]] = &[
        &["nonsense"],
        &["--nonsense"],
        &["chat", "--user", "*"],
        &["chat", "--session", &long],
        &["chat", "--upstream", "api.openai.com"],
        &["chat", "--store", "nonsense"],
        &["search"],
        &["search", ""],
        &["search", "a", "--limit", "0"],
        &["search", "a", "--limit=-1"],
        &["search", "a", "--limit", "many"],
        &["search", "a", "--limit", "99999999999999"],
        &["search", "a", "--scope", "everywhere"],
        &["search", "a", "--scope", "session"],
        &["search", "a", "--as-of", "yesterday"],
        &["search", "a", "--user", ""],
        &["search", "a", "--user", "*"],
        &["search", "a", "--session", &long],
        &["search", "a", "--store", "nonsense"],
        &["search", "a", "--store", "mysql://host/db"],
        &["search", "a", "--store", "sqlite:no/such/directory/x.db"],
        &["search", "a", "--config", "no-such-file.toml"],
        &["search", "a", "--setting", "default_top_kk=3"],
        &["search", "a", "--setting", "default_top_k=minus one"],
        &["search", "a", "--setting", "default_top_k"],
        &["search", "a", "--embedder", "nonsense"],
        &["search", "a", "--embedder", "onnx:no/such/directory"],
        &["explain"],
        &["explain", "not-an-id"],
        &["explain", "00000000-0000-7000-8000-000000000000"],
        &["explain", "00000000-0000-7000-8000-000000000000", "--item", "not-an-id"],
        &["prompt"],
        &["prompt", "a"],
        &["prompt", "", "--session", "trip"],
        &["prompt", "a", "--session", &long],
        &["prompt", "a", "--session", "trip", "--format", "round"],
        &["prompt", "a", "--session", "trip", "--max-tokens", "0"],
        &["prompt", "a", "--session", "trip", "--max-tokens=-1"],
        &["prompt", "a", "--session", "trip", "--setting", "prompt.enrichment=x"],
        &["prompt", "a", "--session", "trip", "--setting", "prompt.max_token=5"],
        &["context"],
        &["context", "nowhere"],
        &["context", "nowhere", "--compact"],
        &["context", "trip", "--write", "no-such-file.json"],
        &["context", "trip", "--write", "-"],
        &["state"],
        &["state", "show", "nowhere"],
        &["state", "set", "trip"],
        &["state", "set", "trip", "-"],
        &["state", "set", "trip", "no-such-file.json"],
        &["import"],
        &["import", "nonsense", "x"],
        &["import", "sqlite"],
        &["import", "sqlite", "no-such-file.db"],
        &["sessions", "show", "nowhere", "--summaries"],
        &["sessions", "points"],
        &["sessions", "points", "rumours"],
        &["sessions", "points", "todos", "--session", "nowhere"],
        &["models"],
        &["models", "pull", "../../x", "--from", "http://127.0.0.1:1/m"],
        &["models", "pull", "nobody-knows-this"],
        &["models", "pull", "x", "--from", "file:///etc"],
        &["models", "pull", "x", "--from", "http://127.0.0.1:1/m", "--sha256", "abc"],
        &["models", "use", "../../x"],
        &["models", "use", "nobody-has-this"],
        &["models", "use", "onnx:no/such/directory"],
        &["models", "use", "ftp://host#model"],
        &["add"],
        &["add", ""],
        &["add", "a", "--kind", "rumour"],
        &["add", "a", "--session", &long],
        &["record", "--user", &long],
        &["sessions", "nonsense"],
        &["sessions", "show", "nowhere"],
        &["sessions", "show", &long],
        &["sessions", "delete", "nowhere", "--yes"],
        &["sessions", "list", "--limit=-1"],
        &["memories", "show", "not-an-id"],
        &["memories", "history", "00000000-0000-7000-8000-000000000000"],
        &["memories", "forget", "00000000-0000-7000-8000-000000000000", "--yes"],
        &["memories", "edit", "00000000-0000-7000-8000-000000000000", "x"],
        &["jobs"],
        &["jobs", "list", "--status", "lost"],
        &["jobs", "list", "--limit=-1"],
        &["jobs", "list", "--user", "ada", "--all-users"],
        &["jobs", "show", "not-an-id"],
        &["jobs", "retry", "00000000-0000-7000-8000-000000000000"],
        &["learn", "nonsense"],
        &["learn", "--store", "sqlite:no/such/file.db"],
        &["learn", "--setting", "learn.model=nonsense"],
        &["learn", "--setting", "openai_base_url=nonsense"],
        &["migrate"],
        &["migrate", "nonsense", "memory:"],
        &["migrate", "sqlite:no/such/file.db", "sqlite:copy.db"],
        &["migrate", "memory:", "sqlite:copy.db"],
        &["import", "no-such-file.json"],
        &["import", "mem0", "no-such-file.json"],
        &["export"],
        &["export", "no/such/directory/x.jsonl"],
        &["memories", "export", "no/such/directory/x.jsonl"],
        &["restore"],
        &["restore", "no-such-backup.db"],
        &["restore", "ffffffff"],
        &["users"],
        &["users", "forget", "nobody", "--yes"],
        &["completions", "tcl"],
        &["doctor", "--yes"],
        &["doctor", "--memories", "--from", "no-such-file.json"],
        &["backup"],
        &["backup", "no/such/directory/copy.db"],
        &["doctor", "--store", "sqlite:"],
        &["serve", "--listen", "nonsense"],
        &["serve", "--upstream", "nonsense"],
        &["serve", "--setting", "memory_deadline_ms=0"],
        &["serve", "--listen", "0.0.0.0:0"],
    ];
    for line in commands {
        let shown: String = line.join(" ").chars().take(80).collect();
        assert_fails(&run(&file, &words(line), b""), &shown);
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt as _;
        let line = vec![OsString::from("add"), OsString::from_vec(b"caf\xe9".to_vec())];
        assert_fails(&run(&file, &line, b""), "an argument that is not UTF-8");
    }
    let two_megabytes = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(2 * 1024 * 1024));
    let inputs: &[&[u8]] = &[
        b"{\n",
        b"[]\n",
        b"caf\xe9\n",
        b"a \x00 b\n",
        b"{\"role\":\"user\",\"content\":\"caf\xe9\"}\n",
        b"{\"role\":\"king\",\"content\":\"a\"}\n",
        b"{\"role\":\"user\"}\n",
        b"{\"role\":\"user\",\"content\":\"a\",\"nonsense\":1}\n",
        b"{\"role\":\"user\",\"content\":\"a\\u0000\"}\n",
        b"{\"role\":\"user\",\"content\":\"a\",\"created_at\":\"soon\"}\n",
        two_megabytes.as_bytes(),
    ];
    for input in inputs {
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]).into_owned();
        assert_fails(&run(&file, &words(&["record", "--session", "trip"]), input), &shown);
    }
    assert_eq!(support::counts(&file), before);
}

#[test]
fn a_file_that_is_not_a_store_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letter.db");
    let letter = b"Dear Ada, this is a letter and no database.\n".repeat(200);
    std::fs::write(&file, &letter).unwrap();
    for line in [&["doctor"][..], &["search", "a"], &["add", "a"], &["serve", "--listen", "127.0.0.1:0"]] {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_fails(&run(&file, &line, b""), &format!("{line:?}"));
        assert_eq!(std::fs::read(&file).unwrap(), letter, "{line:?} changed a file that is not ours");
    }
}
