//! Settings, help and exit codes.

use crate::harness::Machine;

/// Every command that has a help page.
const PAGES: &[&[&str]] = &[
    &[],
    &["serve"],
    &["chat"],
    &["mcp"],
    &["record"],
    &["add"],
    &["search"],
    &["explain"],
    &["report"],
    &["feedback"],
    &["prompt"],
    &["context"],
    &["state"],
    &["state", "show"],
    &["state", "set"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "delete"],
    &["sessions", "export"],
    &["sessions", "points"],
    &["memories"],
    &["memories", "list"],
    &["memories", "show"],
    &["memories", "history"],
    &["memories", "edit"],
    &["memories", "delete"],
    &["memories", "restore"],
    &["memories", "forget"],
    &["users"],
    &["users", "forget"],
    &["learn"],
    &["jobs"],
    &["jobs", "list"],
    &["jobs", "show"],
    &["jobs", "retry"],
    &["import"],
    &["import", "sqlite"],
    &["keys"],
    &["keys", "create"],
    &["keys", "list"],
    &["keys", "revoke"],
    &["doctor"],
    &["backup"],
    &["reindex"],
    &["eval"],
    &["models"],
    &["models", "list"],
    &["models", "pull"],
    &["models", "use"],
    &["config"],
];

#[test]
fn every_command_has_help_with_an_example() {
    let machine = Machine::new();
    let mut pages = String::new();
    for page in PAGES {
        let args: Vec<&str> = page.iter().copied().chain(["--help"]).collect();
        let help = machine.run(&args).ok();
        assert!(help.contains("Example"), "strata {} has no example:\n{help}", page.join(" "));
        assert!(help.contains("--store <URL>"), "{help}");
        // The settings of every command are shown only on the first page.
        let shown = if page.is_empty() { help.as_str() } else { help.split("Settings:").next().unwrap() };
        pages.push_str(&format!("$ strata {}\n{}\n\n", args.join(" "), shown.trim_end()));
    }
    insta::assert_snapshot!("help", pages);
}

#[test]
fn wrong_usage_is_answered_with_two() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon"]);
    let check = |args: &[&str], expected: &str| {
        let error = machine.run(args).failed(2);
        assert!(error.contains(expected), "strata {}: {error}", args.join(" "));
    };
    check(&["serach"], "search");
    check(&["search"], "<QUERY>");
    check(&["search", ""], "the query is empty");
    check(&["search", "x", "--limit", "-1"], "--limit");
    check(&["search", "x", "--limit", "0"], "from 1 to 1000");
    check(&["search", "x", "--scope", "planet"], "`planet`");
    check(&["search", "x", "--scope", "session"], "needs a session");
    check(&["search", "x", "--as-of", "yesterday"], "is no time");
    check(&["search", "x", "--user", ""], "user id is empty");
    check(&["search", "x", "--user", "*"], "reserved");
    check(&["add", " "], "the memory is empty");
    check(&["add", "x", "--kind", "rumour"], "`rumour`");
    check(&["memories", "show", "7"], "an id is a UUID");
    check(&["memories", "forget"], "<ID>");
    check(&["jobs", "show", "7"], "an id is a UUID");
    check(&["jobs", "list", "--status", "lost"], "`queued`, `leased`, `done` or `dead`");
    check(&["jobs", "list", "--limit", "-1"], "--limit");
    check(&["learn", "--store", "memory:"], "ends with the process");
    check(&["sessions", "delete", "trip"], "--yes");
    check(&["sessions", "list", "--limit", "-5"], "--limit");
    check(&["keys", "create"], "--user");
    check(&["keys", "create", "--user", ""], "user id is empty");
    check(&["keys", "create", "--user", "ada", "--admin"], "--admin");
    check(&["keys", "create", "--user", "ada", "--scopes", "all"], "`read`, `write`, `admin` or `chat`");
    check(&["keys", "create", "--user", "ada", "--expires", "soon"], "`90d`");
    check(&["keys", "create", "--user", "ada", "--expires", "2020-01-01"], "in the past");
    check(&["keys", "create", "--user", "ada", "--rate", "0"], "60/min");
    check(&["keys", "create", "--user", "ada", "--concurrency", "0"], "--concurrency");
    check(&["keys", "create", "--user", "ada", "--name", "a\nb"], "control character");
    check(&["keys", "create", "--user", "ada", "--store", "memory:"], "ends with the process");
    check(&["keys", "revoke", "7"], "an id is a UUID");
    check(&["serve", "--setting", "cors_origins=*"], "without a path or `*`");
    check(&["record", "--store", "memory:"], "ends with the process");
    check(&["search", "x", "--setting", "colour"], "KEY=VALUE");
    check(&["search", "x", "--set", "default_top_k=3"], "--set");
    check(&["search", "x", "--embedder", "colour"], "from --embedder; use `builtin`");
    check(&["explain", "7"], "an id is a UUID");
    check(&["search", "x", "--log", "a=b=c"], "`log`");
    assert_eq!(machine.run(&["sessions", "show", "trip", "--json"]).json()["turn_count"], 1);
}

#[test]
fn what_does_not_exist_is_answered_with_one() {
    let machine = Machine::new();
    let id = "0197f3c2-5b1e-7c3a-9d2e-3f4a5b6c7d8e";
    let error = machine.run(&["search", "x"]).failed(1);
    assert!(error.contains("there is no store at") && error.contains("strata record"), "{error}");
    assert!(!machine.store().exists(), "a search must not make a store");
    machine.record("trip", &["I moved to Lisbon"]);
    let check = |args: &[&str], expected: &str| {
        let error = machine.run(args).failed(1);
        assert!(error.contains(expected), "strata {}: {error}", args.join(" "));
    };
    check(&["sessions", "show", "other"], "session `other` does not exist");
    check(&["sessions", "show", "trip", "--user", "eve"], "does not exist");
    check(&["sessions", "delete", "other", "--yes"], "does not exist");
    check(&["sessions", "export", "other"], "does not exist");
    for action in ["show", "history", "delete", "restore"] {
        check(&["memories", action, id], "does not exist");
    }
    check(&["memories", "edit", id, "x"], "does not exist");
    check(&["explain", id], "does not exist");
    check(&["keys", "revoke", id], "strata keys list");
    check(&["jobs", "show", id], "does not exist");
    check(&["jobs", "retry", id], "does not exist");
    check(&["memories", "forget", id, "--yes"], "does not exist");
}

#[test]
fn flags_win_over_variables_over_the_file() {
    let machine = Machine::new();
    machine.write("strata.toml", "default_top_k = 7\nmin_query_len = 3\nmin_similarity = 0.5\n");
    let output = machine
        .command(&["config", "--json", "--setting", "default_top_k=9"])
        .env("STRATA_DEFAULT_TOP_K", "8")
        .env("STRATA_MIN_QUERY_LEN", "4")
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let setting = |key: &str| {
        let setting =
            json["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
        (setting["value"].as_str().unwrap().to_owned(), setting["origin"].as_str().unwrap().to_owned())
    };
    assert_eq!(setting("default_top_k"), ("9".into(), "--setting".into()));
    assert_eq!(setting("min_query_len"), ("4".into(), "STRATA_MIN_QUERY_LEN".into()));
    assert_eq!(setting("min_similarity"), ("0.5".into(), "strata.toml".into()));
    assert_eq!(setting("listen"), ("127.0.0.1:8100".into(), "default".into()));
    assert_eq!(setting("store"), (format!("sqlite:{}", machine.store().display()), "default".into()));
}

/// The tables of the page are generated from the settings.
#[test]
fn every_setting_is_in_the_documentation() {
    const BEGIN: &str = "<!-- made by `strata config --markdown`: begin -->\n\n";
    const END: &str = "\n<!-- made by `strata config --markdown`: end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (tables, after) = rest.split_once(END).unwrap();
    let machine = Machine::new();
    let expected = machine.run(&["config", "--markdown", "--setting", "default_top_k=9"]).ok();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
    } else {
        let advice = "run `UPDATE_DOCS=1 cargo nextest run -p strata every_setting_is_in_the_documentation`";
        assert_eq!(tables, expected, "docs/configuration.md is out of date; {advice}");
    }
}

#[test]
fn another_configuration_file_replaces_the_first() {
    let machine = Machine::new();
    machine.write("strata.toml", "default_top_k = 7\n");
    machine.write("other.toml", "min_query_len = 3\n");
    let table = machine.run(&["config", "--config", "other.toml"]).ok();
    let row = |key: &str| table.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(row("min_query_len").contains("3 ") && row("min_query_len").contains("other.toml"), "{table}");
    assert!(row("default_top_k").contains("default"), "{table}");
    let output = machine.command(&["config"]).env("STRATA_CONFIG", "other.toml").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), table);
    let error = machine.run(&["config", "--config", "missing.toml"]).failed(2);
    assert!(error.contains("`missing.toml` cannot be read") && error.contains("because: "), "{error}");
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    let machine = Machine::new();
    machine.write("strata.toml", "max_turn_byte = 7\n");
    let error = machine.run(&["config"]).failed(2);
    assert!(
        error.contains("`max_turn_byte`, from strata.toml") && error.contains("`max_turn_bytes`?"),
        "{error}"
    );
    machine.write("strata.toml", "");
    let output = machine.command(&["config"]).env("STRATA_LISTN", "x").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("did you mean `STRATA_LISTEN`?"), "{error}");
    let error = machine.run(&["config", "--setting", "tokenzer=o200k"]).failed(2);
    assert!(error.contains("did you mean `tokenizer`?"), "{error}");
}

#[test]
fn a_vault_that_does_not_exist_is_not_made_by_a_question() {
    let machine = Machine::new();
    let error = machine.run(&["search", "x", "--store", "vault:notes"]).failed(1);
    assert!(error.contains("from --store") && error.contains("there is no vault"), "{error}");
    assert!(!machine.home().join("notes").exists());
}
