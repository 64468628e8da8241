//! Moving in and out: export, import, restore.

use serde_json::{Value, json};

use crate::harness::Machine;

#[test]
fn a_store_moves_to_another_machine_without_loss() {
    let (old, new) = (Machine::new(), Machine::new());
    old.record("orchard", &["We planted six pear trees.", "果园里有六棵梨树。"]);
    old.add(&["Tilda prunes in February", "--user", "tilda"]);
    let target = new.home().join("all.jsonl");
    let said = old.run(&["export", target.to_str().unwrap()]).ok();
    assert!(said.contains("2 users") && said.contains("2 turns"), "{said}");
    let report = new.run(&["import", "all.jsonl", "--json"]).json();
    assert_eq!((&report["added"]["turns"], &report["added"]["memories"]), (&json!(2), &json!(1)));
    assert_eq!(new.run(&["import", "all.jsonl", "--json"]).json()["added"]["turns"], 0);
    let lines = |machine: &Machine| -> Vec<String> {
        let text = machine.run(&["export", "-"]).ok();
        text.lines()
            .filter(|line| !line.starts_with("{\"strata\"") && !line.starts_with("{\"end\""))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(lines(&old), lines(&new));
    assert!(old.run(&["export", target.to_str().unwrap()]).failed(1).contains("exists already"));
    let one = old.run(&["export", "-", "--user", "tilda"]).ok();
    assert!(one.contains("prunes") && !one.contains("pear"), "{one}");
    // A cut file changes nothing.
    let text = std::fs::read_to_string(&target).unwrap();
    let empty = Machine::new();
    empty.write("cut.jsonl", &text[..text.len() - 30]);
    let error = empty.run(&["import", "cut.jsonl"]).failed(1);
    assert!(error.contains("is damaged: line ") && error.contains("nothing was imported"), "{error}");
    assert!(error.contains("`--skip-bad` imports the lines before it"), "{error}");
    assert!(!empty.run(&["users", "list"]).ok().contains("tilda"));
    // The lines before the damage are imported if that is asked for.
    let ran = empty.run(&["import", "cut.jsonl", "--skip-bad"]);
    let lines = text.lines().count();
    assert!(ran.stderr.contains(&format!("is damaged: line {lines}: ")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("nothing was imported"), "{}", ran.stderr);
    assert!(ran.ok().starts_with("2 of 2 turns, 1 of 1 memories"));
    assert!(empty.run(&["search", "prunes", "--user", "tilda"]).ok().contains("prunes"));
    // The whole file completes it.
    empty.write("all.jsonl", &text);
    assert_eq!(empty.run(&["import", "all.jsonl", "--json"]).json()["added"]["turns"], 0);
}

#[test]
fn files_of_other_programs_are_recognised() {
    let machine = Machine::new();
    machine.write("log.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"My canoe leaks.\"}]}\n");
    let ran = machine.run(&["import", "log.jsonl", "--user", "odd"]);
    assert!(ran.stderr.contains("strata learn"), "{}", ran.stderr);
    assert!(ran.ok().starts_with("openai, 1 conversation: 1 new turn,"));
    assert!(machine.run(&["search", "canoe", "--user", "odd"]).ok().contains("leaks"));
    machine.write("mem0.json", "{\"results\":[{\"id\":\"1\",\"memory\":\"Odd builds canoes\",\"user_id\":\"odd\"},{\"id\":\"2\",\"memory\":\"\"}]}");
    let ran = machine.run(&["import", "mem0", "mem0.json"]);
    assert!(ran.stderr.contains("left out: 1 empty memory"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "mem0: 1 new memory, 0 already imported\n");
    std::fs::create_dir_all(machine.home().join("notes/sub")).unwrap();
    machine.write("notes/a.md", "# Boat\n\nThe hull is cedar.\n");
    machine.write("notes/sub/b.txt", "桨是白蜡木做的。\n");
    machine.write("notes/c.png", "no");
    machine.write("notes/aa.md", " \n");
    let ran = machine.run(&["import", "notes", "--prefix", "n:"]);
    assert!(ran.stderr.contains("left out: `notes/aa.md` is empty"), "{}", ran.stderr);
    let said = ran.ok();
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(machine.run(&["sessions", "list"]).ok().contains("n:sub/b.txt"));
    machine.write("none.json", "{\"results\": []}");
    assert_eq!(
        machine.run(&["import", "mem0", "none.json"]).ok(),
        "mem0: 0 new memories, 0 already imported\n"
    );
    machine.write("odd.json", "{\"what\": 1}");
    assert!(machine.run(&["import", "odd.json"]).failed(1).contains("no form that Strata knows"));
    assert!(machine.run(&["import", "gone.json"]).failed(1).contains("cannot be read"));
    let database = machine.store();
    let error = machine.run(&["import", database.to_str().unwrap()]).failed(2);
    assert!(error.contains("strata import sqlite"), "{error}");
}

#[test]
fn an_imported_conversation_has_its_title_and_its_day() {
    let machine = Machine::new();
    let chat = |id: &str, title: &str, day: &str, text: &str| {
        json!({"uuid": id, "name": title, "chat_messages": [
            {"uuid": format!("{id}-1"), "sender": "human", "text": text, "created_at": format!("{day}T08:30:00Z")},
        ]})
    };
    let chats = json!([
        chat("c-1", "Caulking the skiff", "2025-02-03", "Which tar is best for a skiff?"),
        chat("c-2", "", "2025-04-05", "How long is a fathom?"),
    ]);
    machine.write("conversations.json", &chats.to_string());
    machine.run(&["import", "conversations.json"]).ok();
    let listed = machine.run(&["sessions", "list"]).ok();
    let line = |id: &str| listed.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{listed}"));
    assert!(line("c-1").contains("Caulking the skiff") && line("c-1").contains("2025-02-03"), "{listed}");
    assert!(line("c-2").contains("2025-04-05"), "{listed}");
    let shown = machine.run(&["sessions", "show", "c-1"]).ok();
    assert!(shown.contains("Caulking the skiff\n") && shown.contains("created 2025-02-03"), "{shown}");
    machine.run(&["sessions", "delete", "c-1", "--yes"]).ok();
    assert!(!machine.run(&["sessions", "list"]).ok().contains("TITLE"), "no session has one");
}

#[test]
fn a_table_is_no_conversation() {
    let machine = Machine::new();
    machine.write("rents.csv", "month,rent\nMay,900\nJune,920\n");
    let error = machine.run(&["import", "rents.csv"]).failed(1);
    assert!(error.contains("is a table") && error.contains("strata import text rents.csv"), "{error}");
    assert!(!machine.store().exists(), "nothing is imported");
    assert!(machine.run(&["import", "text", "rents.csv"]).ok().contains("1 new turn,"));
}

#[test]
fn an_export_leaves_other_files_alone() {
    let machine = Machine::new();
    machine.add(&["Odd builds canoes"]);
    machine.write("kept.txt", "mine");
    assert!(machine.run(&["export", "kept.txt"]).failed(1).contains("exists already and stays as it is"));
    assert!(
        machine.run(&["export", "--vault", "kept.txt"]).failed(1).contains("is a file and stays as it is")
    );
    assert_eq!(std::fs::read_to_string(machine.home().join("kept.txt")).unwrap(), "mine");
}

#[test]
fn files_are_imported_together_or_not_at_all() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.home().join("notes/sub")).unwrap();
    for (file, text) in [
        ("good.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"My canoe leaks.\"}]}\n"),
        ("bad.jsonl", "{\"messages\":[{\"role\":\"king\",\"content\":\"x\"}]}\n"),
        (
            "cut.jsonl",
            "{\"strata\":{\"version\":1,\"exported_at\":\"2026-01-01T00:00:00Z\",\"user\":null}}\n",
        ),
        ("notes/plan.md", "Sow peas.\n"),
        ("notes/sub/plan.md", "Mend the net.\n"),
    ] {
        machine.write(file, text);
    }
    for bad in ["bad.jsonl", "cut.jsonl"] {
        machine.run(&["import", "good.jsonl", bad]).failed(1);
        machine.run(&["import", "good.jsonl", "notes/plan.md", "notes/sub/plan.md"]).failed(1);
        assert_eq!(machine.run(&["sessions", "list", "--json"]).json()["sessions"], json!([]), "{bad}");
    }
    // In a folder, files of one name are told apart by their paths.
    let ran = machine.run(&["import", "good.jsonl", "notes"]);
    assert_eq!(ran.stderr.matches("strata learn").count(), 1, "one hint for all files: {}", ran.stderr);
    ran.ok();
    for (session, text) in [("plan.md", "Sow peas."), ("sub/plan.md", "Mend the net.")] {
        let shown = machine.run(&["sessions", "show", session]).ok();
        assert!(shown.contains("1 turn") || shown.contains(text), "{shown}");
        assert_eq!(machine.run(&["sessions", "show", session, "--json"]).json()["turn_count"], 1);
    }
}

#[test]
fn the_files_of_a_vault_are_not_taken_for_notes() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.home().join("cli/memory/entries/global/facts")).unwrap();
    let fact = "---\nid: one\nrole: memory\nconversation_id: global\ncreated_at: \"2026-03-01T10:00:00Z\"\n---\nAda keeps bees\n";
    machine.write("cli/memory/entries/global/facts/one.md", fact);
    for folder in ["cli/memory", "cli"] {
        let error = machine.run(&["import", folder]).failed(1);
        for command in ["strata import vault cli/memory", "strata import markdown cli/memory"] {
            assert!(error.contains(command), "{error}");
        }
    }
    assert!(!machine.store().exists(), "nothing is imported");
    machine.run(&["import", "vault", "cli/memory"]).ok();
    assert!(machine.run(&["memories", "list"]).ok().contains("Ada keeps bees"));
    // A person may say that the files are notes.
    assert!(machine.run(&["import", "markdown", "cli/memory", "--user", "ida"]).ok().contains("1 new turn,"));
}

#[test]
fn memories_come_back_as_they_were() {
    let machine = Machine::new();
    let home = machine.add(&["Ada lives in Porto"]);
    machine.run(&["memories", "edit", &home, "Ada lives in Faro"]).ok();
    let gone = machine.add(&["Ada owns a moped"]);
    machine.run(&["memories", "delete", &gone]).ok();
    machine.run(&["memories", "export", "all.jsonl", "--all"]).ok();
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(machine.home().join("all.jsonl")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "only the owner reads it");
    let states = |store: &str| {
        let all = machine.run(&["memories", "list", "--all", "--json", "--store", store]).json();
        let rows = all["results"].as_array().unwrap().iter();
        let mut states: Vec<_> = rows
            .map(|row| {
                [&row["memory"], &row["valid_from"], &row["valid_to"], &row["hidden"]].map(Value::to_string)
            })
            .collect();
        states.sort();
        states
    };
    machine.run(&["import", "all.jsonl", "--store", "sqlite:again.db"]).ok();
    let own = format!("sqlite:{}", machine.store().display());
    assert_eq!(states("sqlite:again.db"), states(&own));
    let current = machine.run(&["memories", "list", "--store", "sqlite:again.db"]).ok();
    assert!(
        current.contains("Faro") && !current.contains("Porto") && !current.contains("moped"),
        "{current}"
    );
}

#[test]
fn memories_are_exported_for_other_programs() {
    let machine = Machine::new();
    machine.add(&["The ladder is in the barn"]);
    machine.add(&["梯子在谷仓里", "--kind", "work"]);
    let lines = machine.run(&["memories", "export"]).ok();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((lines.lines().count(), first["memory"].as_str()), (2, Some("The ladder is in the barn")));
    let all: Value =
        serde_json::from_str(&machine.run(&["memories", "export", "--format", "mem0"]).ok()).unwrap();
    assert_eq!(all["results"].as_array().unwrap().len(), 2);
    // Both forms can be imported, with the same ids.
    let other = Machine::new();
    other.write("m.jsonl", &lines);
    other.write("m.json", &all.to_string());
    assert!(other.run(&["import", "m.jsonl"]).ok().contains("2 new memories"));
    assert!(other.run(&["import", "m.json"]).ok().contains("0 new memories, 2 already imported"));
    assert!(other.run(&["memories", "list", "--kind", "work"]).ok().contains("谷仓"));
}

#[test]
fn a_backup_is_restored_and_the_former_store_kept() {
    let machine = Machine::new();
    machine.record("s", &["first"]);
    machine.run(&["backup", "copy.db"]).ok();
    machine.record("s", &["second"]);
    let error = machine.run(&["restore", "copy.db"]).failed(2);
    assert!(error.contains("--yes"), "{error}");
    let server = machine.serve(&[]);
    let error = machine.run(&["restore", "copy.db", "--yes"]).failed(1);
    assert!(error.contains("another process uses"), "{error}");
    server.stop("TERM");
    let restored = machine.run(&["restore", "copy.db", "--yes", "--json"]).json();
    assert_eq!(restored["turns"], 1);
    assert_eq!(machine.run(&["sessions", "show", "s", "--json"]).json()["turn_count"], 1);
    let kept = format!("sqlite:{}", restored["kept"].as_str().unwrap());
    assert_eq!(machine.run(&["sessions", "show", "s", "--json", "--store", &kept]).json()["turn_count"], 2);
    // A file that is not a store, or damaged, changes nothing.
    machine.write("not.db", "nothing");
    machine.run(&["restore", "not.db", "--yes"]).failed(1);
    let mut bytes = std::fs::read(machine.home().join("copy.db")).unwrap();
    let end = bytes.len() - 4096;
    bytes[4096..end].fill(0xa5);
    std::fs::write(machine.home().join("broken.db"), bytes).unwrap();
    let error = machine.run(&["restore", "broken.db", "--yes"]).failed(1);
    assert!(error.contains("`broken.db` is damaged") && error.contains("nothing was changed"), "{error}");
    assert!(!error.contains("doctor") && !error.contains("restore a backup"), "{error}");
    assert_eq!(machine.run(&["sessions", "show", "s", "--json"]).json()["turn_count"], 1);
    let rest: Vec<_> = std::fs::read_dir(machine.store().parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(!rest.iter().any(|name| name.to_string_lossy().contains("restoring")), "{rest:?}");
    // A fresh machine needs no confirmation.
    let fresh = Machine::new();
    let copy = machine.home().join("copy.db");
    fresh.run(&["restore", copy.to_str().unwrap()]).ok();
    assert!(fresh.run(&["search", "first"]).ok().contains("first"));
    let id = machine.add(&["Ivo likes figs"]);
    machine.run(&["memories", "delete", &id]).ok();
    assert!(machine.run(&["restore", &id[id.len() - 8..]]).ok().contains("current"));
}
