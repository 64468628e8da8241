//! The store's file: doctor, backup, reindex, and files that are not a store.

use crate::harness::Machine;

#[track_caller]
fn status(json: &serde_json::Value, check: &str) -> String {
    let checks = json["checks"].as_array().unwrap();
    let finding = checks.iter().find(|finding| finding["check"] == check);
    finding.unwrap_or_else(|| panic!("{json}"))["status"].as_str().unwrap().to_owned()
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_new_store() {
    let machine = Machine::new();
    let json = machine.run(&["doctor", "--json"]).json();
    assert_eq!(json["ok"], true);
    assert!(!machine.store().exists(), "the doctor must not make a store");
    machine.record("trip", &["I moved to Lisbon"]);
    for args in [&["doctor", "--json"][..], &["doctor", "--json", "--quick"]] {
        let json = machine.run(args).json();
        assert_eq!(json["ok"], true);
        for check in ["configuration", "embedder", "file", "store", "index", "integrity", "disk"] {
            assert_ne!(status(&json, check), "problem", "{check}");
        }
        let store = &json["store"];
        let counts =
            ["users", "sessions", "turns", "memories", "unindexed"].map(|name| store[name].as_u64().unwrap());
        assert_eq!(counts[..4], [1, 1, 1, 0], "{store}");
        assert!(counts[4] <= 1 && store["bytes"].as_u64().unwrap() > 4096, "{store}");
    }
    let table = machine.run(&["doctor"]).ok();
    assert!(table.contains("1 user, 1 session, 1 turn, 0 memories"), "{table}");
}

#[test]
fn the_doctor_names_what_is_wrong_and_exits_with_one() {
    let machine = Machine::new();
    machine.write("strata.toml", "listen = '0.0.0.0:8100'\n");
    let ran = machine.run(&["doctor"]);
    assert!(ran.stdout.contains("loopback"), "{}", ran.stdout);
    assert!(ran.failed(1).contains("1 problem was found"));

    machine.write("strata.toml", "liste = 'x'\n");
    let ran = machine.run(&["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((status(&json, "configuration").as_str(), &json["ok"]), ("problem", &false.into()));
    ran.failed(1);

    machine.write("strata.toml", "");
    machine.write("notes.txt", &"this is no database. ".repeat(500));
    let ran = machine.run(&["doctor", "--store", "sqlite:notes.txt", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status(&json, "store"), "problem");
    ran.failed(1);
    let ran = machine.run(&["doctor", "--store", "sqlite:.", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status(&json, "file"), "problem");
    ran.failed(1);
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let machine = Machine::new();
    let text = "this is no database. ".repeat(500);
    machine.write("notes.txt", &text);
    for args in [&["search", "x"][..], &["add", "x"], &["serve"], &["backup", "copy.db"], &["reindex"]] {
        let args: Vec<&str> = args.iter().copied().chain(["--store", "sqlite:notes.txt"]).collect();
        let error = machine.run(&args).failed(1);
        assert!(error.contains("`sqlite:notes.txt` (from --store) cannot be opened"), "{error}");
        assert!(error.contains("because: "), "{error}");
    }
    assert_eq!(std::fs::read_to_string(machine.home().join("notes.txt")).unwrap(), text);
    assert!(!machine.home().join("copy.db").exists());
}

#[test]
fn a_backup_is_a_store() {
    let machine = Machine::new();
    let error = machine.run(&["backup", "copy.db"]).failed(1);
    assert!(error.contains("there is no store"), "{error}");
    machine.record("trip", &["I moved to Lisbon", "and back"]);
    let json = machine.run(&["backup", "copy.db", "--json"]).json();
    assert_eq!(json["file"], "copy.db");
    assert_eq!(json["bytes"], std::fs::metadata(machine.home().join("copy.db")).unwrap().len());
    machine.record("trip", &["said after the backup"]);
    let turns = |store: &str| {
        machine.run(&["sessions", "show", "trip", "--json", "--store", store]).json()["turn_count"].clone()
    };
    assert_eq!(turns("sqlite:copy.db"), 2);
    assert_eq!(turns(&format!("sqlite:{}", machine.store().display())), 3);
    let found = machine.run(&["search", "lisbon", "--store", "sqlite:copy.db"]).ok();
    assert!(found.contains("I moved to Lisbon"), "{found}");
    let error = machine.run(&["backup", "copy.db"]).failed(1);
    assert!(error.contains("already exists"), "{error}");
    machine.run(&["backup", "nowhere/copy.db"]).failed(1);
}

#[test]
fn reindexing_keeps_everything_findable() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon"]);
    machine.add(&["Ada likes Lisbon"]);
    assert_eq!(machine.run(&["reindex"]).ok(), "indexed 1 turn and 1 memory\n");
    let found = machine.run(&["search", "lisbon", "--json"]).json();
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
    assert_eq!(machine.run(&["reindex", "--json"]).json()["turns"], 1);
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_data_directory() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.add(&["Ada likes Lisbon"]);
    let mode = std::fs::metadata(machine.store().parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
