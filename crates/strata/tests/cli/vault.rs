//! A vault at the command line: memory as files, edits, the doctor, copies and history.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::Machine;

/// All files below a folder whose path holds `part`.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, part));
        } else if path.to_string_lossy().contains(part) {
            found.push(path);
        }
    }
    found
}

#[test]
fn memory_is_files_that_can_be_edited() {
    let machine = Machine::new();
    let notes = machine.home().join("notes");
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    let facts = files(&notes.join("entries"), "/facts/");
    assert_eq!(facts.len(), 1);
    let text = fs::read_to_string(&facts[0]).unwrap();
    assert!(text.ends_with("---\nRosa keeps bees on the roof\n"), "{text}");
    fs::write(&facts[0], text.replace("bees", "pigeons")).unwrap();
    let found = machine.run(&["search", "what does Rosa keep on the roof", "--limit", "1"]).ok();
    assert!(found.contains("pigeons") && !found.contains("bees"), "{found}");

    machine.write("notes/entries/global/facts/broken.md", "---\nkind: mood\n---\nx\n");
    let ran = machine.run(&["doctor"]);
    assert!(
        ran.stdout.contains("`entries/global/facts/broken.md`, line 2: `kind` is not a kind"),
        "{}",
        ran.stdout
    );
    ran.failed(1);
    assert!(machine.run(&["vault", "sync"]).failed(1).contains("1 files cannot be used"));
    // The page shows the same, with line and reason.
    let server = machine.serve(&[]);
    let (_, overview) = server.http("GET", "/inspect", "");
    for part in
        ["Files that cannot be used", "“entries/global/facts/broken.md”, line 2: “kind” is not a kind"]
    {
        assert!(overview.contains(part), "{overview}");
    }
    server.stop("TERM");
    fs::remove_file(notes.join("entries/global/facts/broken.md")).unwrap();
    machine.run(&["vault", "rebuild"]).ok();
    let found = machine.run(&["search", "what does Rosa keep on the roof", "--limit", "1"]).ok();
    assert!(found.contains("pigeons"), "{found}");
    assert!(machine.run(&["backup", "copy.db"]).failed(2).contains("the store is a vault"));
}

#[test]
fn a_store_is_copied_into_a_vault_and_back() {
    let machine = Machine::new();
    machine.record("trip", &["I moved to Lisbon", "Welcome"]);
    machine.run(&["add", "Sails on Sundays", "--user", "ana maria"]).ok();
    let out = machine.run(&["export", "--vault", "copy"]).ok();
    assert!(out.contains("counts and digests agree"), "{out}");
    assert_eq!(files(&machine.home().join("copy/users/ana maria"), "/facts/").len(), 1);
    fs::remove_dir_all(machine.home().join("copy/.strata")).unwrap();
    machine.run(&["import", "vault", "copy", "--store", "sqlite:again.db"]).ok();
    let found = machine.run(&["search", "Lisbon", "--store", "sqlite:again.db", "--limit", "1"]).ok();
    assert!(found.contains("I moved to Lisbon"), "{found}");
    assert!(machine.run(&["vault", "log"]).failed(2).contains("is no vault"));
    // A folder that is no vault is left as it is.
    fs::create_dir(machine.home().join("letters")).unwrap();
    machine.write("letters/2026.md", "Dear Ada\n");
    let error = machine.run(&["import", "vault", "letters"]).failed(1);
    assert!(error.contains("neither a folder `entries` nor `users`"), "{error}");
    machine.run(&["migrate", "vault:letters", "sqlite:other.db"]).failed(1);
    machine.run(&["import", "vault", "nowhere"]).failed(1);
    assert_eq!(fs::read_dir(machine.home().join("letters")).unwrap().count(), 1);
    assert!(!machine.home().join("nowhere").exists() && !machine.home().join("other.db").exists());
}

#[test]
fn a_change_is_taken_back() {
    let machine = Machine::new();
    let settings =
        "memory_path = 'notes'\nenable_git_versioning = true\nstart_watcher = true\nlearn.enabled = false\n";
    machine.write("strata.toml", settings);
    machine.run(&["add", "Uri collects stamps"]).ok();
    machine.run(&["add", "Uri collects clocks"]).ok();
    let log = machine.run(&["vault", "log"]).ok();
    assert!(log.contains("Add 1 memory"), "{log}");
    assert!(machine.run(&["vault", "diff", "HEAD"]).ok().contains("+Uri collects clocks"));
    assert!(machine.run(&["vault", "undo"]).ok().contains("taken back: "));
    let found = machine.run(&["search", "what does Uri collect"]).ok();
    assert!(found.contains("stamps") && !found.contains("clocks"), "{found}");
    assert!(machine.run(&["vault", "redo"]).ok().contains("done again: Add 1 memory"));
    let found = machine.run(&["search", "what does Uri collect"]).ok();
    assert!(found.contains("stamps") && found.contains("clocks"), "{found}");
    assert!(machine.run(&["vault", "redo"]).failed(1).contains("nothing was taken back"));
}

#[test]
fn sync_counts_what_the_files_hold_now() {
    let machine = Machine::new();
    machine.write("strata.toml", "memory_path = 'notes'\nlearn.enabled = false\n");
    machine.run(&["add", "Rosa keeps bees on the roof"]).ok();
    machine.run(&["add", "阿华喜欢爬山"]).ok();
    machine.feed(&["record"], "My kite is red.\nIts tail is long.").ok();
    let notes = machine.home().join("notes/entries");
    let holding = |words: &str| {
        let is_meant = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(words));
        files(&notes, ".md").into_iter().find(is_meant).unwrap()
    };
    let bees = holding("bees");
    fs::write(&bees, fs::read_to_string(&bees).unwrap().replace("bees", "pigeons")).unwrap();
    fs::remove_file(holding("爬山")).unwrap();
    let told = machine.run(&["vault", "sync"]).ok();
    assert!(told.contains("sessions: 1, turns: 2, current memories: 1"), "{told}");
}

#[test]
fn a_folder_of_other_files_is_read_as_no_vault_and_stays_as_it_is() {
    let machine = Machine::new();
    fs::create_dir(machine.home().join("plans")).unwrap();
    machine.write("plans/garden.txt", "Plant beans.\n");
    let store = ["--store", "vault:plans"];
    for command in [
        &["search", "beans"][..],
        &["vault", "log"],
        &["vault", "sync"],
        &["doctor"],
        &["memories", "list"],
        &["learn"],
    ] {
        let ran = machine.run(&[command, &store].concat());
        assert!(
            ran.stdout.contains("is no vault") || ran.stderr.contains("is no vault"),
            "{command:?}: {}",
            ran.stderr
        );
        ran.failed(1);
        assert_eq!(fs::read_dir(machine.home().join("plans")).unwrap().count(), 1, "{command:?}");
    }
    machine.run(&[&["add", "Beans need sun"][..], &store].concat()).ok();
    assert!(machine.run(&[&["search", "what do beans need"][..], &store].concat()).ok().contains("sun"));
}
