//! Daily use: the default user, short ids, plain lines, shells, hygiene and the demo.

use serde_json::{Value, json};

use crate::harness::{Machine, Ran};

#[test]
fn the_default_user_is_a_setting() {
    let machine = Machine::new();
    let by_variable = |args: &[&str]| {
        let output = machine.command(args).env("STRATA_USER", "vera").output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    by_variable(&["add", "Vera collects stamps"]);
    assert!(by_variable(&["search", "stamps"]).0.contains("collects"));
    let ran = machine.run(&["search", "stamps"]);
    assert!(
        ran.stderr.contains("nothing of user `default`") && ran.stderr.contains("`vera`"),
        "{}",
        ran.stderr
    );
    machine.write("strata.toml", "user = \"vera\"\n");
    assert!(machine.run(&["memories", "list"]).ok().contains("stamps"));
    let ran = machine.run(&["memories", "list", "--user", "vero"]);
    assert!(ran.stderr.contains("`vero`; the store has `vera`"), "{}", ran.stderr);
    let users = machine.run(&["users", "list", "--json"]).json();
    assert_eq!(
        (&users["users"][0]["user"], &users["users"][0]["memories"], &users["default"]),
        (&json!("vera"), &json!(1), &json!("vera"))
    );
    assert!(machine.run(&["users", "forget", "nobody", "--yes"]).failed(1).contains("no user `nobody`"));
    machine.run(&["users", "forget", "vera", "--yes"]).ok();
    assert_eq!(machine.run(&["users", "list", "--json"]).json()["users"], json!([]));
    assert!(machine.run(&["add", "x", "--user", "*"]).code == 2);
}

#[test]
fn a_user_with_nothing_current_is_a_user() {
    let machine = Machine::new();
    let id = machine.add(&["Wim plays the horn", "--user", "wim"]);
    machine.run(&["memories", "delete", &id, "--user", "wim"]).ok();
    let users = machine.run(&["users", "list", "--json"]).json();
    assert_eq!(
        (&users["users"][0]["user"], &users["users"][0]["memories"]),
        (&json!("wim"), &json!(0)),
        "{users}"
    );
}

#[test]
fn a_mistyped_user_is_warned_of_everywhere() {
    let machine = Machine::new();
    machine.add(&["Vera collects stamps", "--user", "vera"]);
    for command in [
        &["report"][..],
        &["jobs", "list"],
        &["jobs", "show", "00000000-0000-0000-0000-000000000001"],
        &["learn"],
        &["feedback", "00000000-0000-0000-0000-000000000001"],
    ] {
        let with = |user: &str| machine.run(&[command, &["--user", user]].concat()).stderr;
        let warned = with("vero");
        assert!(warned.contains("nothing of user `vero`; the store has `vera`"), "{command:?}: {warned}");
        assert!(!with("vera").contains("nothing of user"), "{command:?}");
    }
}

#[test]
fn the_end_of_an_id_is_enough() {
    let machine = Machine::new();
    let id = machine.add(&["The anvil weighs ninety kilos"]);
    let end = &id[id.len() - 8..];
    assert!(machine.run(&["memories", "show", end]).ok().contains(&id));
    assert!(
        machine
            .run(&["memories", "edit", end, "The anvil weighs ninety-two kilos"])
            .ok()
            .contains("ninety-two")
    );
    assert!(machine.run(&["memories", "history", end]).ok().contains("ninety kilos"));
    let found = machine.run(&["search", "anvil", "--json", "--explain"]).json();
    let request = found["request_id"].as_str().unwrap();
    assert!(machine.run(&["explain", &request[request.len() - 8..]]).ok().contains("anvil"));
    assert!(machine.run(&["explain", request, "--item", end]).ok().contains("served"));
    // The edit has archived the first statement: ids made in one moment begin alike.
    let error = machine.run(&["memories", "show", &id[..6]]).failed(2);
    assert!(error.contains("2 ids") && error.contains("ninety-two"), "{error}");
    assert!(machine.run(&["memories", "show", "0000"]).failed(1).contains("no memory"));
    assert_eq!(machine.run(&["memories", "show", "zzzz"]).code, 2);
    let key = machine.run(&["keys", "create", "--user", "ivo", "--json"]).json();
    let key = key["id"].as_str().unwrap();
    assert!(machine.run(&["keys", "revoke", &key[key.len() - 8..]]).ok().starts_with("revoked"));
    machine.run(&["memories", "forget", end, "--yes"]).ok();
}

#[test]
fn plain_lines_are_what_the_user_says() {
    let machine = Machine::new();
    let lines = "The kiln fires at 1,200 degrees.\n窑要烧十二个小时。\n{\"role\":\"assistant\",\"content\":\"Noted.\"}\n";
    assert_eq!(
        machine.feed(&["record", "--session", "kiln"], lines).ok(),
        "recorded 3 turns in session `kiln`\n"
    );
    machine.feed(&["record", "--session", "kiln", "--role", "assistant"], "Shall I remind you?\n").ok();
    let shown = machine.run(&["sessions", "show", "kiln", "--json"]).json();
    let roles: Vec<&str> =
        shown["turns"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "user", "assistant", "assistant"]);
    let dated = "{\"role\":\"user\",\"content\":\"late\",\"created_at\":\"2026-01-31T12:00:00\"}\n{\"role\":\"user\",\"content\":\"last\",\"created_at\":\"9999-12-31\"}\n";
    machine.feed(&["record", "--session", "dated", "--learn"], dated).ok();
    assert!(machine.run(&["search", "late", "--as-of", "2026-02-01 10:00"]).ok().contains("late"));
    assert!(machine.run(&["search", "last"]).ok().contains("last"));
    let error = machine.run(&["search", "late", "--scope", "session"]).failed(2);
    assert!(error.contains("--session"), "{error}");
}

#[test]
fn shells_and_manuals_know_every_command() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = machine.run(&["completions", shell]).ok();
        assert!(text.contains("strata") && text.contains("memories") && text.contains("restore"), "{shell}");
    }
    assert_eq!(machine.run(&["completions", "nosuch"]).code, 2);
    assert!(machine.run(&["man"]).ok().contains(".TH strata 1"));
    machine.run(&["man", "--dir", "man1"]).ok();
    let pages = std::fs::read_dir(machine.home().join("man1")).unwrap().count();
    assert!(pages > 30, "{pages}");
}

#[test]
fn a_read_only_file_is_searched_and_stays_as_it_is() {
    let machine = Machine::new();
    machine.record("loft", &["The weather vane is a heron."]);
    machine.add(&["The loft ladder is ash", "--verbatim"]);
    let store = machine.store();
    std::fs::set_permissions(&store, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let before = std::fs::read(&store).unwrap();
    // Root writes files of any mode, unless it gives up that right.
    let starter = match std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&store).unwrap()) {
        0 => &["setpriv", "--bounding-set=-dac_override"][..],
        _ => &["env"],
    };
    let run = |args: &[&str]| Ran::from(machine.command_under(starter, args).output().unwrap());
    assert!(run(&["search", "what is the weather vane"]).ok().contains("heron"));
    assert!(run(&["memories", "list"]).ok().contains("ash"));
    assert!(run(&["sessions", "show", "loft"]).ok().contains("heron"));
    assert!(run(&["report"]).ok().contains("0 requests"), "the question left no row");
    run(&["add", "The ladder is oak", "--verbatim"]).failed(1);
    assert!(std::fs::read(&store).unwrap() == before, "the file is as it was");
    // In a folder that cannot be written no log can be made, whatever the mode of the file.
    let set = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    let folder = store.parent().unwrap();
    set(folder, 0o555);
    for mode in [0o644, 0o444] {
        set(&store, mode);
        let ran = run(&["search", "what is the weather vane", "--explain"]);
        assert!(!ran.stderr.contains("strata explain"), "nothing is kept: {}", ran.stderr);
        assert!(ran.ok().contains("heron"), "{mode:o}");
    }
    set(folder, 0o755);
    assert!(std::fs::read(&store).unwrap() == before, "the file is as it was");
}

#[test]
fn the_doctor_examines_and_mends_memories() {
    let machine = Machine::new();
    for text in
        ["Noa rents a boat in Kiel", "Noa rents a boat in Emden", "noa paints icons.", "Noa paints icons"]
    {
        machine.add(&[text, "--verbatim"]);
    }
    machine.add(&["What time is it?", "--verbatim"]);
    machine.add(&["保险箱的密码是 haishui77", "--verbatim"]);
    machine.add(&["The staging server starts with DB_PASSWORD=plumtree", "--verbatim"]);
    let report = machine.run(&["doctor", "--memories", "--json"]).json();
    let kinds = |report: &Value| -> Vec<String> {
        report["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(report["examined"], 7);
    assert_eq!(kinds(&report), ["secret", "secret", "contradiction", "duplicate", "junk"]);
    for secret in ["haishui77", "plumtree"] {
        assert!(!report.to_string().contains(secret), "a report does not repeat a secret: {report}");
    }
    let contradiction = &report["problems"][2];
    assert!(contradiction["memory"].as_str().unwrap().contains("Kiel"), "{contradiction}");
    let ran = machine.run(&["doctor", "--memories"]);
    assert!(ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
    let listed = ran.ok();
    assert!(listed.ends_with("2 secrets, 1 contradiction, 1 duplicate, 1 junk\n"), "{listed}");
    assert!(machine.run(&["doctor", "--memories", "--yes"]).ok().contains("mended 4 of 5"));
    let left = machine.run(&["doctor", "--memories", "--json"]).json();
    assert_eq!(
        kinds(&left),
        ["contradiction"],
        "a person has to look at a contradiction that words alone show"
    );
    let left = machine.run(&["memories", "list"]).ok();
    assert!(left.contains("Emden") && left.contains("icons") && left.contains("Kiel"), "{left}");
    let history = machine.run(&["memories", "list", "--all"]).ok();
    assert!(history.contains("What time") && !history.contains("haishui77"), "{history}");
    machine.write(
        "mem0.json",
        "[{\"id\":\"a\",\"memory\":\"Bo's card is 4539 5787 6362 1486\",\"user_id\":\"bo\"}]",
    );
    let report = machine.run(&["doctor", "--memories", "--from", "mem0.json", "--json"]).json();
    assert_eq!(kinds(&report), ["secret"]);
    assert_eq!(machine.run(&["doctor", "--yes"]).code, 2);
    assert_eq!(machine.run(&["doctor", "--memories", "--to", "mended.json"]).code, 2);
}

#[test]
fn an_export_of_mem0_is_mended_in_a_copy() {
    let machine = Machine::new();
    let kept = "{\"id\":\"b\",\"memory\":\"Bo grinds lenses\",\"user_id\":\"bo\",\"created_at\":\"2021-01-01\",\"score\":1.50}";
    let secret = "{\"id\":\"a\",\"memory\":\"Bo's card is 4539 5787 6362 1486\",\"user_id\":\"bo\"}";
    let double =
        "{\"id\":\"c\",\"memory\":\"bo grinds lenses.\",\"user_id\":\"bo\",\"created_at\":\"2020-01-01\"}";
    machine.write("mem0.json", &format!("{{\"results\": [{secret}, {double}, {kept}]}}"));
    let looked_at = machine.run(&["doctor", "--memories", "--from", "mem0.json"]);
    assert!(looked_at.stderr.contains("`--to FILE`"), "{}", looked_at.stderr);
    let mend = ["doctor", "--memories", "--from", "mem0.json", "--to", "mended.json", "--yes"];
    let mended = machine.run(&mend).ok();
    assert!(mended.contains("mended 2 of 2"), "{mended}");
    let left = std::fs::read_to_string(machine.home().join("mended.json")).unwrap();
    assert_eq!(left, format!("[\n{kept}\n]\n"));
    assert!(!machine.store().exists(), "the store has no part in it");
    assert!(machine.run(&mend).stderr.contains("mended.json"), "a file is never overwritten");
}

#[test]
fn the_demo_needs_nothing() {
    // The settings of a newcomer, the reader included.
    let machine = Machine::with_encoder();
    let shown = machine.run(&["demo", "--no-serve", "--json", "--setting", "learn.reader=builtin"]).json();
    let questions = shown["questions"].as_array().unwrap();
    assert!(questions.len() >= 6 && shown["turns"].as_u64().unwrap() > 40, "{shown}");
    for question in questions {
        assert!(question["tokens"].as_u64() < question["raw_tokens"].as_u64(), "{question}");
    }
    let sources = |word: &str| {
        let question = questions.iter().find(|one| one["question"].as_str().unwrap().contains(word)).unwrap();
        question["sources"].to_string()
    };
    assert!(sources("birthday").contains("ninth of May") && sources("爸妈").contains("七月"), "{shown}");
    assert_eq!(sources("blood"), "[]", "what nobody has said is not known");
    // What holds now stands before what held once.
    for (question, now) in [
        ("live", "Utrecht"),
        ("port", "9443"),
        ("team lead", "Farah"),
        ("早上", "绿茶"),
        ("calibration", "five"),
    ] {
        let asked =
            questions.iter().find(|one| one["question"].as_str().unwrap().contains(question)).unwrap();
        let first = &asked["sources"][0];
        assert!(first["text"].as_str().unwrap().contains(now) && first["is_outdated"] == false, "{asked}");
    }
    assert!(!machine.store().exists(), "the demo leaves the user's store alone");
}
